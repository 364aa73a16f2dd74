//! Hundreds of SIGKILLs at random moments, and nothing is lost.
//!
//! The test kills each daemon during an operation: boot, create, start, stop, restart, send, draw. `$AGENCY_SEED` repeats
//! a run, as far as the timing of other processes allows.

use std::collections::HashMap;
use std::fs::{self, File};
use std::process::{Child, Stdio};
use std::time::Duration;

use agency_testkit::{Flood, Process, Pty, Rng, seed_or};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

use crate::fold::Fold;
use crate::stage::{SOON, Stage};
use crate::{api, journal};

const KILLS: usize = 200;

/// Small, so that dumps are quick to make and compare; every agent prints far more.
const SCROLLBACK: usize = 200;

/// Tasks that are started and stopped meanwhile.
const EXTRAS: usize = 8;

/// How much the flooding agent prints at a time, and how often: enough for a checkpoint and a sealed segment.
const FLOOD_BYTES: u64 = 48 << 10;
const FLOODS: usize = 420;

/// One frame of the painting agent: colours, wide and combined characters, margins, tabs, the alternate screen, a
/// character in two writes, an escape sequence in three.
const STROKES: &[&str] = &[
    r"\e[2J\e[H\e[1\x3b38\x3b5\x3b208mwarm \e[48\x3b2\x3b10\x3b20\x3b30mdeep\e[m plain",
    r"\e[5\x3b15r\e[6\x3b3H\e[3Linserted\e[2Mgone\e[r\e[?7l\e[20\x3b70Hno wrap here at all\e[?7h",
    r"\e[10\x3b1H\xe6\xbc\xa2\xe5\xad\x97 e\xcc\x81 \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80 |",
    r"\xe2\x82",
    r"\xac\e",
    r"[3",
    r"1mred\e[0m\e(0lqk\e(B\e[3g\eH\e[12\x3b40H\eH\r\t|\t|",
    r"\e7\e[?1049h\e[2Jon the other screen\e[?25l\e[?2004h\e[>5u",
    r"\e]0\x3bpainter at work\a\e]8\x3b\x3bhttps://example.com\e\\link\e]8\x3b\x3b\e\\",
    r"\e[<u\e[?2004l\e[?25h\e[?1049l\e8back again\r\n",
    r"one line that is longer than any terminal here is wide, so that it wraps and must wrap again when the size changes\r\n",
];

struct Story {
    rng: Rng,
    stage: Stage,
    /// Tasks whose agent must survive everything, and that agent.
    lasting: Vec<(&'static str, Process)>,
    folds: HashMap<String, Fold>,
    /// Texts that were sent to the listening agent with a receipt.
    typed: Vec<String>,
    words: usize,
    made: usize,
    terminal: Pty,
    kills: usize,
}

#[test]
fn two_hundred_killed_daemons_lose_nothing() {
    let seed = seed_or(20_260_731);
    println!("AGENCY_SEED={seed}");
    let mut story = Story::begin(seed);
    while story.kills < KILLS {
        story.kill_during_a_command();
        if story.rng.one_in(4) {
            story.kill_while_it_boots();
        }
        story.check();
    }
    story.end();
}

impl Story {
    fn begin(seed: u64) -> Story {
        let stage = Stage::with_config(&format!("max_agents = 0\nscrollback = {SCROLLBACK}\n"));
        stage.play(
            "flooder",
            &format!("raw; loop {FLOODS}; flood {FLOOD_BYTES}; sleep 0.02; end; say flooded; no-read"),
        );
        stage.play("painter", &format!("raw; loop; {}; sleep 0.01; end", strokes("print ", "; ")));
        stage.play(
            "asker",
            r"raw; loop; print \e[6n; wait-for R; print \e[c; wait-for c; print .\e[5n; wait-for n; sleep 0.01; end",
        );
        stage.play("listener", "loop; ask ready?; end");
        stage.play("phoenix", "size; flood 2K; loop; ask ready?; end");
        let lasting =
            ["flooder", "painter", "asker", "listener"].map(|slug| (slug, stage.agent(slug))).into();
        let mut terminal = stage.on_terminal(["attach", "painter"]);
        terminal.wait_for("back again");
        Story {
            rng: Rng::seeded(seed),
            stage,
            lasting,
            folds: HashMap::new(),
            typed: Vec::new(),
            words: 0,
            made: 0,
            terminal,
            kills: 0,
        }
    }

    fn kill_during_a_command(&mut self) {
        let (mut command, word) = self.start_random_command();
        let patience = Duration::from_micros(self.rng.below(90_000));
        if self.rng.one_in(3) {
            let (cols, rows) = (self.rng.between(20, 120), self.rng.between(5, 40));
            self.terminal.resize(cols as u16, rows as u16);
        }
        end_within(&command, patience);
        self.kill_daemon();
        let done = command.wait().expect("our own child").success();
        self.typed.extend(word.filter(|_| done));
        self.terminal.look();
    }

    /// Kills the next daemon before it answers.
    fn kill_while_it_boots(&mut self) {
        let mut command = self.start(&["ls"]);
        self.stage.eventually("the next daemon", SOON, || self.stage.daemon());
        let patience = Duration::from_micros(self.rng.below(40_000));
        end_within(&command, patience);
        self.kill_daemon();
        command.wait().expect("our own child");
    }

    /// Kills any daemon: an attached viewer may have started another one.
    fn kill_daemon(&mut self) {
        if let Some(daemon) = self.stage.daemon() {
            daemon.kill();
            self.kills += 1;
        }
    }

    /// Starts a random command; returns it, and the word that it sends, if any.
    fn start_random_command(&mut self) -> (Child, Option<String>) {
        self.words += 1;
        let word = format!("<{}>", self.words);
        let slug = format!("extra-{}", self.rng.below(1 + self.made as u64));
        match self.rng.below(10) {
            0 | 1 if self.made < EXTRAS => {
                self.made += 1;
                let slug = format!("extra-{}", self.made);
                (self.start(&["new", &slug, "--no-attach", "--", "fake-agent", "-c", "ask ready?"]), None)
            }
            2 => (self.start(&["stop", &slug]), None),
            3 => (self.start(&["start", &slug]), None),
            4 => (self.start(&["restart", "phoenix"]), None),
            5 => (self.start(&["logs", "painter"]), None),
            6 | 7 => (self.start(&["send", "listener", &word]), Some(word)),
            _ => (self.start(&["ls"]), None),
        }
    }

    fn start(&self, args: &[&str]) -> Child {
        let mut command = self.stage.agency(args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("agency can be run")
    }

    /// Checks the invariants after each kill.
    fn check(&mut self) {
        let listing = self.stage.listing();
        let tasks = listing["tasks"].as_array().expect("a list").clone();
        assert_eq!(listing["orphans"], Value::Array(Vec::new()), "every agent has its task");
        for (slug, agent) in &self.lasting {
            let task = tasks.iter().find(|task| task["slug"] == *slug).expect("no task is lost");
            assert_eq!(task["status"], "running", "{task}");
            let run = task["run"].as_str().unwrap_or_else(|| panic!("no run: {task}"));
            assert_eq!(self.stage.keeper_of(run).child, Some(*agent), "{slug} is neither lost nor doubled");
            assert!(agent.is_alive());
        }
        for task in tasks.iter().filter(|task| !task["run"].is_null()) {
            let is_extra = task["slug"].as_str().is_some_and(|slug| slug.starts_with("extra"));
            if !is_extra || self.rng.one_in(4) {
                self.compare(task);
            }
        }
    }

    /// The daemon's screen must equal the fold of the whole journal.
    fn compare(&mut self, task: &Value) {
        let (Some(slug), Some(run)) = (task["slug"].as_str(), task["run"].as_str()) else { panic!("{task}") };
        // A run that was about to end may have ended by now.
        let Some(screen) = api::try_screen(&self.stage, slug) else { return };
        let fold = match self.folds.entry(run.to_owned()) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert(Fold::of(&self.stage, run, SCROLLBACK))
            }
        };
        let expected = fold.dump_before(screen.next_seq);
        assert!(
            screen.dump.0 == expected,
            "{slug} after {} kills: the screen at record {} is not what its journal says",
            self.kills,
            screen.next_seq
        );
    }

    fn end(mut self) {
        self.terminal.send("\x11");
        assert!(self.terminal.wait_exit().success(), "{}", self.terminal);
        self.check_every_task_can_be_started();
        self.check_floods();
        self.check_pictures();
        self.check_questions();
        self.check_words();
        self.stage.run(["daemon", "stop", "--agents"]).ok();
        self.stage
            .eventually("the end of all processes", SOON, || self.stage.processes().is_empty().then_some(()));
    }

    /// Every task can be started, however far its creation had come, and then has one agent.
    fn check_every_task_can_be_started(&self) {
        let listing = self.stage.listing();
        let tasks = listing["tasks"].as_array().expect("a list");
        for task in tasks {
            let id = task["id"].to_string();
            self.stage.run(["start", &id]).ok();
        }
        let listing = self.stage.listing();
        let tasks = listing["tasks"].as_array().expect("a list");
        assert!(tasks.iter().all(|task| task["status"] == "running" && !task["run"].is_null()), "{listing}");
        assert_eq!(self.stage.keepers().len(), tasks.len());
        assert_eq!(agents(&self.stage), tasks.len(), "no agent without a keeper");
    }

    fn check_floods(&self) {
        self.stage.eventually("the flood is over", SOON * 2, || {
            api::try_screen(&self.stage, "flooder")?.text.contains("flooded").then_some(())
        });
        let mut expected = Flood::bytes(FLOOD_BYTES).repeat(FLOODS);
        expected.extend_from_slice(b"flooded\r\n");
        let printed = self.raw_logs("flooder");
        assert_eq!(printed.len(), expected.len());
        assert!(printed == expected, "every byte of the flood is there, once and in its place");
    }

    fn check_pictures(&self) {
        let picture: Vec<u8> = STROKES.iter().flat_map(|stroke| unescaped(stroke)).collect();
        let printed = self.raw_logs("painter");
        assert!(printed.len() > picture.len());
        let expected = picture.iter().cycle();
        assert!(printed.iter().eq(expected.take(printed.len())), "every byte of the pictures is there");
    }

    fn check_questions(&self) {
        let run = self.stage.keeper("asker").run;
        let printed = self.raw_logs("asker");
        let answered = journal::answered_queries(&self.stage, &run);
        assert!(answered.is_sorted_by(|one, next| one < next), "no question is answered twice");
        let asked = printed.iter().filter(|byte| **byte == 0x1b).count();
        assert!(asked > KILLS, "it went on asking: {asked}");
        assert!(
            answered.len() + 1 >= asked,
            "only the last may be open: {asked} asked, {} answered",
            answered.len()
        );
        let expected = b"\x1b[6n\x1b[c.\x1b[5n".iter().cycle();
        assert!(printed.iter().eq(expected.take(printed.len())));
    }

    /// A daemon that is killed between a text and its Enter leaves the text on the agent's line, without a receipt.
    fn check_words(&self) {
        let logs = self.stage.wait_printed("listener", "ready?");
        let heard: String = logs.lines().filter(|line| line.starts_with("got: ")).collect();
        for word in &self.typed {
            assert_eq!(heard.matches(word.as_str()).count(), 1, "{word} was acknowledged:\n{logs}");
        }
    }

    fn raw_logs(&self, slug: &str) -> Vec<u8> {
        let path = self.stage.home().join("raw");
        let mut logs = self.stage.agency(["logs", "--raw", slug]);
        logs.stdin(Stdio::null()).stdout(File::create(&path).expect("room"));
        assert!(logs.status().expect("agency can be run").success());
        fs::read(path).expect("it was just written")
    }
}

/// Waits for the command's end, at most this long.
fn end_within(command: &Child, patience: Duration) {
    let pid = Pid::from_raw(command.id() as i32).expect("a child has a pid");
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).expect("our own child");
    let patience = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
    poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&patience)).expect("a pidfd can be polled");
}

fn strokes(before: &str, between: &str) -> String {
    STROKES.iter().map(|stroke| format!("{before}{stroke}")).collect::<Vec<_>>().join(between)
}

/// The bytes that fake-agent prints for this text.
fn unescaped(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        out.push(match byte {
            b'\\' => match rest.next().expect("an escape") {
                b'e' => 0x1b,
                b'a' => 0x07,
                b'r' => b'\r',
                b'n' => b'\n',
                b't' => b'\t',
                b'x' => {
                    let digits = [rest.next(), rest.next()].map(|digit| char::from(digit.expect("a digit")));
                    u8::from_str_radix(&digits.iter().collect::<String>(), 16).expect("two digits")
                }
                other => other,
            },
            other => other,
        });
    }
    out
}

/// The number of live processes that play a script.
fn agents(stage: &Stage) -> usize {
    stage.processes().iter().filter(|process| process.name() == "fake-agent").count()
}
