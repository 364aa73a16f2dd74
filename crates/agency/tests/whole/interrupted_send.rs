//! A daemon that is killed during a `send`: the text never becomes the beginning of the next one.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use agency_journal::Body;
use agency_testkit::{CommandOutput, Pause, Rng, seed_or};

use crate::journal;
use crate::stage::{SOON, Stage};
use crate::state_log::NO_SILENCE;

const TRIES: usize = 30;

/// A shell whose command `log` appends its words to a file, one line for each call.
struct Shell {
    stage: Stage,
    got: PathBuf,
    rng: Rng,
    /// Words that a receipt calls delivered.
    delivered: Vec<String>,
}

impl Shell {
    fn start(program: &[&str]) -> Shell {
        let seed = seed_or(20_261_117);
        println!("AGENCY_SEED={seed}");
        let stage = Stage::with_config(NO_SILENCE);
        let got = stage.home().join("got");
        fs::write(&got, "").expect("room");
        stage.run([&["new", "sh", "--no-attach", "--"], program].concat()).ok();
        let function = format!("log() {{ echo \"$*\" >>'{}'; }}", got.display());
        stage.run(["send", "sh", &function]).ok();
        let shell = Shell { stage, got, rng: Rng::seeded(seed), delivered: Vec::new() };
        shell.stage.run(["send", "sh", "log begin"]).ok();
        shell.wait_for("begin");
        shell
    }

    fn lines(&self) -> Vec<String> {
        fs::read_to_string(&self.got).expect("it is there").lines().map(str::to_owned).collect()
    }

    fn wait_for(&self, word: &str) {
        let what = format!("the shell runs `log {word}`");
        self.stage.eventually(&what, SOON, || self.lines().iter().any(|line| line == word).then_some(()));
    }

    /// Kills the daemon at some moment of a send, and sends another text through the next one.
    fn interrupt_a_send(&mut self, number: usize) {
        let (first, second) = (format!("first-{number}"), format!("second-{number}"));
        let interrupted = self.spawn_send(&format!("log {first} "));
        sleep(Duration::from_micros(self.rng.below(150_000)));
        if let Some(daemon) = self.stage.daemon() {
            daemon.kill();
        }
        let receipt = interrupted.wait_with_output().expect("our own child");
        if receipt.stdout.starts_with(b"delivered") {
            self.delivered.push(first);
        }
        self.send(&second);
    }

    fn spawn_send(&self, text: &str) -> Child {
        let mut send = self.stage.agency(["send", "sh", text]);
        send.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        send.spawn().expect("agency can be run")
    }

    /// Sends a command. If the refusal names the text of the interrupted send, clears that text and sends again.
    fn send(&mut self, word: &str) {
        let text = format!("log {word}");
        let mut ran = self.stage.run(["send", "sh", &text]);
        if ran.code != 0 {
            assert!(ran.stderr.contains("and did not press Enter"), "{ran}");
            self.stage.run(["send", "sh", "--keys", "ctrl-u"]).ok();
            ran = self.stage.run(["send", "sh", &text]);
        }
        if ran.ok().starts_with("delivered") {
            self.delivered.push(word.to_owned());
        }
    }

    fn end(mut self) {
        self.send("end");
        self.wait_for("end");
        let lines = self.lines();
        for line in &lines {
            let is_one_text = !line.contains("log");
            assert!(is_one_text, "two texts became one line: {line:?}");
        }
        for word in &self.delivered {
            let count = lines.iter().filter(|line| *line == word).count();
            assert_eq!(count, 1, "{word} was delivered: {lines:?}");
        }
    }
}

#[test]
fn an_interrupted_send_to_a_program_that_reads_lines_joins_no_other() {
    let mut shell = Shell::start(&["sh"]);
    (0..TRIES).for_each(|number| shell.interrupt_a_send(number));
    shell.end();
}

#[test]
fn an_interrupted_send_to_a_line_editor_joins_no_other() {
    let mut shell = Shell::start(&["bash", "--norc", "-i"]);
    (0..TRIES).for_each(|number| shell.interrupt_a_send(number));
    shell.end();
}

/// Waits until the agent has the text of a send, which needs a screen that shows it before it presses Enter.
fn wait_typed(stage: &Stage, run: &str, text: &str) {
    let has_text = |body: &Body| matches!(body, Body::Input { bytes, .. } if bytes == text.as_bytes());
    stage.eventually("the text is typed", SOON, || {
        journal::records(stage, run).iter().any(|record| has_text(&record.body)).then_some(())
    });
}

#[test]
fn the_next_daemon_knows_the_text_and_refuses_to_append_to_it() {
    let stage = Stage::with_config(NO_SILENCE);
    let pause = Pause::at(stage.home().join("pause"));
    // It reports that it is at its prompt, but nothing on the screen marks the prompt, so that only the journal knows that the prompt holds a text.
    let script = [
        r"raw; print \e[?1049h\e[?2004h\e[?25l\e]7501\x3bstate=idle\aAsk me: ; wait-for \e[201~".to_owned(),
        format!("await {}; print fix the login", pause.path().display()),
        r"wait-for \x15; print \e[2J\e[HAsk me: ; wait-for \e[201~; print and the tests".to_owned(),
        r"wait-for \r; print \r\nthanks; no-read".to_owned(),
    ];
    stage.play("one", &script.join("; "));
    stage.wait_printed("one", "Ask me:");
    let run = stage.keeper("one").run;
    let mut send = stage.agency(["send", "one", "fix the login"]);
    send.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut interrupted = send.spawn().expect("agency can be run");
    wait_typed(&stage, &run, "\x1b[200~fix the login\x1b[201~");
    stage.kill_daemon();
    assert!(!interrupted.wait().expect("our own child").success());
    pause.release();
    stage.wait_printed("one", "fix the login");

    for _ in 0..2 {
        let ran = stage.run(["send", "one", "and the tests"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran}");
        let why =
            "refused: an earlier send was interrupted: it typed \"fix the login\" and did not press Enter";
        assert!(ran.stderr.contains(why) && ran.stderr.contains("--keys ctrl-u"), "{ran}");
        let explained = stage.run(["explain", "one"]).ok();
        let line = "an interrupted send typed \"fix the login\" and did not press Enter";
        assert!(explained.contains(line), "{explained}");
        // Every later daemon knows it too.
        stage.kill_daemon();
    }
    stage.run(["send", "one", "--keys", "ctrl-u"]).ok();
    CommandOutput::of(stage.agency(["send", "one", "and the tests"]), b"").ok();
    stage.wait_printed("one", "thanks");
    let explained = stage.run(["explain", "one"]).ok();
    assert!(!explained.contains("interrupted"), "{explained}");
}
