//! Real full-screen programs, cell by cell as in a bare terminal: attached, detached, resized, killed around.

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
    let mut twin = Twin::start(&stage, "vim", &["-u", "NONE", "-i", "NONE", "-N", "-n", &text]);
    twin.is_same("Line 1 ");
    twin.type_in(":set number hlsearch cursorline\r:syntax on\r/wide\r");
    twin.is_same("/wide");
    twin.attach(80, 24);
    twin.type_in("ggOtyped while somebody looks: 漢字 é\x1b");
    twin.is_same("typed while somebody looks: 漢字 é");
    twin.resize(101, 31);
    twin.is_same("Line 27 ");
    twin.type_in(":vsplit\r:echo winwidth(0)\r");
    twin.is_same("50");
    twin.goes_on_after_the_daemon_is_killed(
        // An Escape at the very end is held for a moment, and would die with its viewer.
        "Gotyped under the next daemon\x1b:echo 'all of it'\r",
        "all of it",
    );
    twin.viewer_is_killed();
    twin.type_in("otyped with nobody there\x1b");
    twin.is_same("typed with nobody there");
    twin.attach(60, 20);
    twin.is_same("typed with nobody there");
    twin.detach();
    twin.type_in(":only\r50Gzt");
    twin.is_same("Line 60 ");
    twin.type_in(":quit!\r");
    twin.ends();
}

#[test]
fn less_looks_as_in_a_bare_terminal() {
    let stage = Stage::new();
    let text = write_text(&stage);
    let mut twin = Twin::start(&stage, "less", &["-N", &text]);
    twin.is_same("Line 1 ");
    twin.attach(80, 24);
    twin.type_in("  /wide\r");
    twin.is_same("漢字");
    twin.resize(50, 15);
    twin.is_same("漢字");
    twin.type_in("n");
    twin.is_same("漢字");
    twin.goes_on_after_the_daemon_is_killed("G", "(END)");
    twin.viewer_is_killed();
    twin.type_in("gj");
    twin.is_same("Line 10 ");
    twin.attach(120, 40);
    twin.is_same("Line 30 ");
    twin.detach();
    twin.type_in("q");
    twin.ends();
}

/// It shows other numbers every time: what is compared is its own screen with what its viewer sees.
#[test]
fn htop_keeps_its_shape_for_everyone_who_looks() {
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

/// A head with names of columns, a foot with keys in the last row, and nothing of another size.
fn wait_in_shape(stage: &Stage, viewer: &mut Window, (cols, rows): (usize, usize)) {
    agree(&format!("htop at {cols} x {rows}"), || {
        let agent = Picture::from_snapshot(&snapshot(stage, "one"));
        let lines = agent.lines();
        let heads = lines.iter().filter(|line| line.contains("PID USER")).count();
        let feet = lines.iter().filter(|line| line.contains("F1Help")).count();
        let last = lines.last().is_some_and(|line| line.starts_with("F1Help"));
        let is_whole = (agent.rows.len(), agent.rows[0].len()) == (rows, cols);
        if !(is_whole && last && heads == 1 && feet == 1) {
            return Err(lines.join("\n"));
        }
        same(&viewer.look(), &agent)
    });
}

/// What agents drew when they were recorded, drawn by an agent that only repeats it.
#[test]
fn recorded_agents_look_as_they_did() {
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
        recording.look_from(&stage, (93, 27));
    }
    stage.kill_daemon();
    check_each(&stage, &recordings, |recording| recording.drawn(Some((93, 27))));
}

fn check_each(stage: &Stage, recordings: &[Recording], meant: impl Fn(&Recording) -> Screen) {
    for recording in recordings {
        let meant = meant(recording).snapshot();
        agree(&recording.slug, || same_state(&snapshot(stage, &recording.slug), &meant));
    }
}

struct Recording {
    slug: String,
    size: (u16, u16),
    output: Vec<u8>,
    /// Holds the output.
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

    /// Somebody starts it in a window of the recorded size, and leaves.
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
        agree(&self.slug, || {
            terminal.look();
            same_state(&snapshot(stage, &self.slug), &self.drawn(None).snapshot())
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

    /// Somebody looks from a window of another size, which becomes that of the agent's terminal.
    fn look_from(&self, stage: &Stage, (cols, rows): (u16, u16)) {
        let mut viewer = Window::attached(stage.agency(["attach", &self.slug]), cols, rows);
        let meant = Picture::of(&mut self.drawn(Some((cols, rows))));
        agree(&self.slug, || same(&viewer.look(), &meant));
        viewer.types(CTRL_Q);
        viewer.closes();
    }
}

/// One program twice: in a bare window, and as an agent.
struct Twin<'a> {
    stage: &'a Stage,
    bare: Window,
    viewer: Option<Window>,
    /// Both are to be drawn anew before they are compared: until then they are the same old picture, cut.
    resized: bool,
}

impl<'a> Twin<'a> {
    fn start(stage: &'a Stage, name: &str, args: &[&str]) -> Twin<'a> {
        let path = program(name);
        stage.run(["new", "one", "--no-attach", "--", &path].iter().chain(args)).ok();
        let mut alone: Command = stage.command(&path);
        alone.args(args).env("COLORTERM", "truecolor");
        Twin { stage, bare: Window::bare(alone, 80, 24), viewer: None, resized: false }
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
        self.viewer.as_mut().expect("somebody looks").resize(cols, rows);
        self.resized = true;
    }

    fn detach(&mut self) {
        let mut viewer = self.viewer.take().expect("somebody looks");
        viewer.types(CTRL_Q);
        viewer.closes();
    }

    fn viewer_is_killed(&mut self) {
        self.viewer.take().expect("somebody looks").kill();
    }

    fn goes_on_after_the_daemon_is_killed(&mut self, keys: &str, shows: &str) {
        self.stage.kill_daemon();
        // Keys that are on their way when a daemon is killed may be lost; they are typed once it is followed.
        self.stage.wait_task("one", "viewer of the next daemon", |task| task["viewers"] == 1);
        self.type_in(keys);
        self.is_same(shows);
    }

    /// The agent's terminal, the bare one, the viewer's and the other emulator agree, and show this.
    #[track_caller]
    fn is_same(&mut self, shows: &str) {
        let Twin { stage, bare, viewer, resized } = self;
        let run = stage.keeper("one").run;
        agree(shows, || {
            let seen = bare.look();
            if *resized && !(bare.has_redrawn() && has_redrawn(stage, &run, bare.size())) {
                return Err("it is not drawn anew yet".to_owned());
            }
            if !seen.shows(shows) {
                return Err(format!("it shows {}", seen.lines().join("\n")));
            }
            same(&bare.second_opinion(), &seen).map_err(|why| format!("the other emulator: {why}"))?;
            let agent = snapshot(stage, "one");
            same_look(&agent, &bare.screen.snapshot())?;
            match viewer {
                Some(viewer) => same(&viewer.look(), &seen).map_err(|why| format!("the viewer: {why}")),
                None => Ok(()),
            }
        });
        self.resized = false;
    }

    fn ends(mut self) {
        self.bare.closes();
        self.stage.wait_status("one", "stopped");
    }
}

/// Key by key: a text would be a paste to a program that knows pastes.
fn press(stage: &Stage, keys: &str) {
    let names: Vec<String> = keys.chars().map(name).collect();
    // Each is seen to before the next, so many at once would take long.
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

/// Waits until there is nothing left to complain about.
#[track_caller]
fn agree(what: &str, mut look: impl FnMut() -> Result<(), String>) {
    let deadline = Instant::now() + SOON;
    let outcome = eventually(what, SOON * 2, || match look() {
        Err(_) if Instant::now() < deadline => None,
        settled => Some(settled),
    });
    outcome.unwrap_or_else(|why| panic!("{what}: {why}"));
}

fn same(ours: &Picture, theirs: &Picture) -> Result<(), String> {
    ours.difference(theirs).map_or(Ok(()), Err)
}

/// The very same state, as the very same bytes make it.
fn same_state(agent: &Snapshot, meant: &Snapshot) -> Result<(), String> {
    if agent == meant {
        return Ok(());
    }
    same(&Picture::from_snapshot(agent), &Picture::from_snapshot(meant))?;
    let (agent, meant) = (format!("{agent:#?}"), format!("{meant:#?}"));
    let differing = agent.lines().zip(meant.lines()).enumerate().find(|(_, (one, other))| one != other);
    Err(format!("the state behind the cells differs: {differing:?}"))
}

/// All that matters of one program that ran twice: how it came to draw it, and with which pen last, may differ.
fn same_look(agent: &Snapshot, bare: &Snapshot) -> Result<(), String> {
    same(&Picture::from_snapshot(agent), &Picture::from_snapshot(bare))?;
    let behind = |it: &Snapshot| {
        let is_alternate = it.alternate.is_some();
        (it.size, it.modes, is_alternate, it.title.clone(), it.margins, it.scrollback.clone())
    };
    let (agent, bare) = (behind(agent), behind(bare));
    if agent == bare { Ok(()) } else { Err(format!("behind the cells: {agent:?}\nnot {bare:?}")) }
}

/// The agent's terminal as the daemon has it.
fn snapshot(stage: &Stage, slug: &str) -> Snapshot {
    // Also what starts the next daemon where one was killed.
    stage.listing();
    let dump = api::screen(stage, slug).dump;
    Screen::restore(&dump.0).expect("a dump is whole").snapshot()
}

/// A program that these tests cannot do without.
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
