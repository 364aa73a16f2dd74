//! Real full-screen programs look the same as in a bare terminal, cell by cell: attached, detached, resized, with killed
//! viewers and daemons.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use agency_journal::{Body, Record};
use agency_terminal::{Screen, Snapshot};
use agency_testkit::{CommandOutput, Pty, eventually};
use serde_json::Value;

use crate::picture::Picture;
use crate::stage::{SOON, Stage};
use crate::window::{SCROLLBACK, Window};
use crate::{api, journal};

const CTRL_Q: &str = "\x11";

#[test]
fn vim_looks_as_in_a_bare_terminal() {
    let stage = Stage::new();
    let text = write_text(&stage);
    let mut twin = ProgramPair::start(&stage, "vim", &["-u", "NONE", "-i", "NONE", "-N", "-n", &text]);
    twin.check_same("Line 1 ");
    twin.type_in(":set number hlsearch cursorline\r:syntax on\r/wide\r");
    twin.check_same("/wide");
    twin.attach(80, 24);
    twin.type_in("ggOtyped with a viewer: 漢字 é\x1b");
    twin.check_same("typed with a viewer: 漢字 é");
    twin.resize(101, 31);
    twin.check_same("Line 27 ");
    twin.type_in(":vsplit\r:echo winwidth(0)\r");
    twin.check_same("50");
    twin.continue_after_killed_daemon(
        // The viewer holds an Escape at the end for a moment, and it would be lost with the viewer.
        "Gotyped under the next daemon\x1b:echo 'all of it'\r",
        "all of it",
    );
    twin.kill_viewer();
    twin.type_in("otyped without a viewer\x1b");
    twin.check_same("typed without a viewer");
    twin.attach(60, 20);
    twin.check_same("typed without a viewer");
    twin.detach();
    twin.type_in(":only\r50Gzt");
    twin.check_same("Line 60 ");
    twin.type_in(":quit!\r");
    twin.end();
}

#[test]
fn less_looks_as_in_a_bare_terminal() {
    let stage = Stage::new();
    let text = write_text(&stage);
    let mut twin = ProgramPair::start(&stage, "less", &["-N", &text]);
    twin.check_same("Line 1 ");
    twin.attach(80, 24);
    twin.type_in("  /wide\r");
    twin.check_same("漢字");
    twin.resize(50, 15);
    twin.check_same("漢字");
    twin.type_in("n");
    twin.check_same("漢字");
    twin.continue_after_killed_daemon("G", "(END)");
    twin.kill_viewer();
    twin.type_in("gj");
    twin.check_same("Line 10 ");
    twin.attach(120, 40);
    twin.check_same("Line 30 ");
    twin.detach();
    twin.type_in("q");
    twin.end();
}

/// htop shows other numbers every time, so this compares its own screen with the viewer's.
#[test]
fn htop_looks_the_same_for_its_viewer() {
    let stage = Stage::new();
    stage.run(["new", "one", "--no-attach", "--", &program("htop"), "-d", "100"]).ok();
    let mut viewer = Window::attached(stage.agency(["attach", "one"]), 80, 24);
    wait_in_shape(&stage, &mut viewer, (80, 24));
    viewer.resize(120, 40);
    wait_in_shape(&stage, &mut viewer, (120, 40));
    stage.kill_daemon();
    viewer.resize(60, 18);
    wait_in_shape(&stage, &mut viewer, (60, 18));
    viewer.kill();
    let mut viewer = Window::attached(stage.agency(["attach", "one"]), 100, 30);
    wait_in_shape(&stage, &mut viewer, (100, 30));
    viewer.types("q");
    viewer.closes();
    stage.wait_status("one", "stopped");
}

/// The names of columns, the keys in the last row, and no remains of another size.
fn wait_in_shape(stage: &Stage, viewer: &mut Window, (cols, rows): (usize, usize)) {
    wait_until_same(&format!("htop at {cols} x {rows}"), || {
        let agent = Picture::from_snapshot(&snapshot(stage, "one"));
        let lines = agent.lines();
        let heads = lines.iter().filter(|line| line.contains("PID USER")).count();
        let feet = lines.iter().filter(|line| line.contains("F1Help")).count();
        let last = lines.last().is_some_and(|line| line.starts_with("F1Help"));
        let is_whole = (agent.rows.len(), agent.rows[0].len()) == (rows, cols);
        if !(is_whole && last && heads == 1 && feet == 1) {
            return Err(lines.join("\n"));
        }
        compare_pictures(&viewer.look(), &agent)
    });
}

/// An agent that repeats the output of a recording draws the same screen.
#[test]
fn recorded_agents_look_as_recorded() {
    let stage = Stage::new();
    let recordings = recordings(&stage);
    assert!(recordings.len() >= 5, "recordings are missing");
    for recording in &recordings {
        recording.play(&stage);
    }
    check_each(&stage, &recordings, |recording| recording.drawn(None));
    stage.kill_daemon();
    check_each(&stage, &recordings, |recording| recording.drawn(None));
    for recording in &recordings {
        recording.attach_from(&stage, (93, 27));
    }
    stage.kill_daemon();
    check_each(&stage, &recordings, |recording| recording.drawn(Some((93, 27))));
}

fn check_each(stage: &Stage, recordings: &[Recording], meant: impl Fn(&Recording) -> Screen) {
    for recording in recordings {
        let meant = meant(recording).snapshot();
        wait_until_same(&recording.slug, || compare_states(&snapshot(stage, &recording.slug), &meant));
    }
}

struct Recording {
    slug: String,
    size: (u16, u16),
    output: Vec<u8>,
    /// The file with the output.
    file: PathBuf,
}

fn recordings(stage: &Stage) -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings");
    let entries = fs::read_dir(&folder).expect("the project keeps recordings");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let casts = paths.filter(|path| path.extension().is_some_and(|extension| extension == "cast"));
    casts.map(|path| Recording::read(stage, &path)).collect()
}

impl Recording {
    fn read(stage: &Stage, path: &Path) -> Recording {
        let text = fs::read_to_string(path).expect("a recording is text");
        let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let header = lines.next().expect("a header");
        let number = |name: &str| header[name].as_u64().expect("a number") as u16;
        let output = lines.filter(|event| event[1] == "o");
        let output: String = output.map(|event| event[2].as_str().expect("text").to_owned()).collect();
        let slug = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let file = stage.home().join(&slug);
        fs::write(&file, &output).expect("room for a copy");
        Recording { slug, size: (number("width"), number("height")), output: output.into_bytes(), file }
    }

    /// Starts it in a window of the recorded size, and detaches.
    fn play(&self, stage: &Stage) {
        let line = "stty raw -echo; cat \"$0\"; exec sleep 1000";
        let mut command = stage.agency(["new", &self.slug, "--", "sh", "-c", line]);
        command.arg(&self.file);
        let mut terminal = Pty::spawn(command, self.size.0, self.size.1);
        eventually(&format!("{} is played", self.slug), SOON, || {
            terminal.look();
            let listing = stage.listing();
            let tasks = listing["tasks"].as_array().expect("a list");
            tasks.iter().any(|task| task["slug"] == self.slug && task["viewers"] == 1).then_some(())
        });
        wait_until_same(&self.slug, || {
            terminal.look();
            compare_states(&snapshot(stage, &self.slug), &self.drawn(None).snapshot())
        });
        terminal.send(CTRL_Q);
        assert!(terminal.wait_exit().success(), "{terminal}");
    }

    fn drawn(&self, resized_to: Option<(u16, u16)>) -> Screen {
        let size = |(cols, rows)| agency_terminal::Size::cells(cols, rows);
        let mut screen = Screen::new(size(self.size), SCROLLBACK);
        screen.feed(&self.output);
        if let Some(resized) = resized_to {
            screen.resize(size(resized));
        }
        screen
    }

    /// Attaches a window of another size, which becomes the size of the agent's terminal.
    fn attach_from(&self, stage: &Stage, (cols, rows): (u16, u16)) {
        let mut viewer = Window::attached(stage.agency(["attach", &self.slug]), cols, rows);
        let meant = Picture::of(&mut self.drawn(Some((cols, rows))));
        wait_until_same(&self.slug, || compare_pictures(&viewer.look(), &meant));
        viewer.types(CTRL_Q);
        viewer.closes();
    }
}

/// The same program twice: in a bare window, and as an agent.
struct ProgramPair<'a> {
    stage: &'a Stage,
    bare: Window,
    viewer: Option<Window>,
    /// Both must redraw before a comparison; until then they show the old screen, cut.
    resized: bool,
}

impl<'a> ProgramPair<'a> {
    fn start(stage: &'a Stage, name: &str, args: &[&str]) -> ProgramPair<'a> {
        let path = program(name);
        stage.run(["new", "one", "--no-attach", "--", &path].iter().chain(args)).ok();
        let mut alone: Command = stage.command(&path);
        alone.args(args).env("COLORTERM", "truecolor");
        ProgramPair { stage, bare: Window::bare(alone, 80, 24), viewer: None, resized: false }
    }

    fn type_in(&mut self, keys: &str) {
        self.bare.types(keys);
        match &mut self.viewer {
            Some(viewer) => viewer.types(keys),
            None => press(self.stage, keys),
        }
    }

    fn attach(&mut self, cols: u16, rows: u16) {
        self.viewer = Some(Window::attached(self.stage.agency(["attach", "one"]), cols, rows));
        self.resized = self.bare.size() != (cols, rows);
        if self.resized {
            self.bare.resize(cols, rows);
        }
    }

    fn resize(&mut self, cols: u16, rows: u16) {
        self.bare.resize(cols, rows);
        self.viewer.as_mut().expect("a viewer is attached").resize(cols, rows);
        self.resized = true;
    }

    fn detach(&mut self) {
        let mut viewer = self.viewer.take().expect("a viewer is attached");
        viewer.types(CTRL_Q);
        viewer.closes();
    }

    fn kill_viewer(&mut self) {
        self.viewer.take().expect("a viewer is attached").kill();
    }

    fn continue_after_killed_daemon(&mut self, keys: &str, shows: &str) {
        self.stage.kill_daemon();
        // A killed daemon may lose keys, so type only when the next one follows the run.
        self.stage.wait_task("one", "viewer of the next daemon", |task| task["viewers"] == 1);
        self.type_in(keys);
        self.check_same(shows);
    }

    /// The agent's terminal, the bare one, the viewer's and the other emulator show the same, and this text.
    #[track_caller]
    fn check_same(&mut self, shows: &str) {
        let ProgramPair { stage, bare, viewer, resized } = self;
        let run = stage.keeper("one").run;
        wait_until_same(shows, || {
            let seen = bare.look();
            if *resized && !(bare.has_redrawn() && has_redrawn(stage, &run, bare.size())) {
                return Err("it has not redrawn yet".to_owned());
            }
            if !seen.shows(shows) {
                return Err(format!("it shows {}", seen.lines().join("\n")));
            }
            compare_pictures(&bare.second_opinion(), &seen)
                .map_err(|why| format!("the other emulator: {why}"))?;
            let agent = snapshot(stage, "one");
            compare_looks(&agent, &bare.screen.snapshot())?;
            match viewer {
                Some(viewer) => {
                    compare_pictures(&viewer.look(), &seen).map_err(|why| format!("the viewer: {why}"))
                }
                None => Ok(()),
            }
        });
        self.resized = false;
    }

    fn end(mut self) {
        self.bare.closes();
        self.stage.wait_status("one", "stopped");
    }
}

/// Sends single keys; a program that supports pastes would take a text as a paste.
fn press(stage: &Stage, keys: &str) {
    let names: Vec<String> = keys.chars().map(name).collect();
    // The program handles one key after the other, so many at once would take long.
    for some in names.chunks(20) {
        stage.run(["send", "one", "--keys", &some.join(",")]).ok();
    }
}

fn name(key: char) -> String {
    match key {
        '\r' => "enter".to_owned(),
        '\x1b' => "esc".to_owned(),
        ' ' => "space".to_owned(),
        other => other.to_string(),
    }
}

/// Whether an agent has written anything since its terminal got this size.
fn has_redrawn(stage: &Stage, run: &str, (cols, rows): (u16, u16)) -> bool {
    let records = journal::records(stage, run);
    let is_resize = |record: &Record| matches!(record.body, Body::Resize { .. });
    let Some(at) = records.iter().rposition(is_resize) else { return false };
    let is_it = matches!(records[at].body, Body::Resize { cols: c, rows: r, .. } if (c, r) == (cols, rows));
    is_it && records[at..].iter().any(|record| matches!(record.body, Body::Output { .. }))
}

/// Waits until the check succeeds.
#[track_caller]
fn wait_until_same(what: &str, mut look: impl FnMut() -> Result<(), String>) {
    let deadline = Instant::now() + SOON;
    let outcome = eventually(what, SOON * 2, || match look() {
        Err(_) if Instant::now() < deadline => None,
        settled => Some(settled),
    });
    outcome.unwrap_or_else(|why| panic!("{what}: {why}"));
}

fn compare_pictures(ours: &Picture, theirs: &Picture) -> Result<(), String> {
    ours.difference(theirs).map_or(Ok(()), Err)
}

/// The same bytes must give exactly the same state.
fn compare_states(agent: &Snapshot, meant: &Snapshot) -> Result<(), String> {
    if agent == meant {
        return Ok(());
    }
    compare_pictures(&Picture::from_snapshot(agent), &Picture::from_snapshot(meant))?;
    let (agent, meant) = (format!("{agent:#?}"), format!("{meant:#?}"));
    let differing = agent.lines().zip(meant.lines()).enumerate().find(|(_, (one, other))| one != other);
    Err(format!("the state behind the cells differs: {differing:?}"))
}

/// The visible state of two runs of one program; the order of drawing and the last pen may differ.
fn compare_looks(agent: &Snapshot, bare: &Snapshot) -> Result<(), String> {
    compare_pictures(&Picture::from_snapshot(agent), &Picture::from_snapshot(bare))?;
    let behind = |it: &Snapshot| {
        let is_alternate = it.alternate.is_some();
        (it.size, it.modes, is_alternate, it.title.clone(), it.margins, it.scrollback.clone())
    };
    let (agent, bare) = (behind(agent), behind(bare));
    if agent == bare { Ok(()) } else { Err(format!("behind the cells: {agent:?}\nnot {bare:?}")) }
}

/// The daemon's snapshot of the agent's terminal.
fn snapshot(stage: &Stage, slug: &str) -> Snapshot {
    // This command also starts the next daemon.
    stage.listing();
    let dump = api::screen(stage, slug).dump;
    Screen::restore(&dump.0).expect("a dump is whole").snapshot()
}

/// A program that these tests need.
fn program(name: &str) -> String {
    let mut found = Command::new("sh");
    found.args(["-c", &format!("command -v {name}")]);
    let ran = CommandOutput::of(found, b"");
    assert_eq!(ran.code, 0, "this test runs {name}: install it, for example with `apt-get install {name}`");
    ran.stdout.trim().to_owned()
}

/// Long and short lines, tabs, wide and accented characters.
fn write_text(stage: &Stage) -> String {
    let line = |number: usize| match number % 7 {
        3 => format!("Line {number} \tis wide: 漢字かな and naïve\n"),
        5 => format!("Line {number} {}\n", "goes on and on ".repeat(number % 13)),
        _ => format!("Line {number} fn main() {{ println!(\"{}\"); }}\n", "x".repeat(number % 30)),
    };
    let path = stage.home().join("text.rs");
    fs::write(&path, (1..=120).map(line).collect::<String>()).expect("room for a text");
    path.to_str().expect("a plain path").to_owned()
}
