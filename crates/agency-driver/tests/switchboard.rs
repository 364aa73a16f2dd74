//! Both halves against a process: a connection with several sessions, as the daemon has one, to an agent of the tests'
//! own; and what is left of them when it dies.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use agency_core::agent_state::{AgentState, Timing};
use agency_core::conversation::Item;
use agency_driver::acp::peer::To;
use agency_driver::acp::{AcpRun, AcpTerms, ConnectionNote, Peer};
use agency_driver::conversation::{ConversationEvent, Verdict};
use agency_testkit::Binaries;

const NOW: Duration = Duration::ZERO;

/// A process, its connection, and the sessions on it.
struct Board {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    peer: Peer,
    runs: BTreeMap<String, AcpRun>,
    events: Vec<(String, ConversationEvent)>,
}

impl Board {
    /// Greets it, and puts these sessions on it.
    fn begin(options: &[&str], sessions: &Path, runs: BTreeMap<String, AcpRun>) -> Board {
        let mut command = Command::new(Binaries::fake_agent());
        command.args(["--acp", ""]).args(options).env("FAKE_AGENT_SESSIONS", sessions);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("its output")));
        let mut board = Board { child, input, output, peer: Peer::new(), runs, events: Vec::new() };
        let greeting = board.peer.initialize();
        board.write(&greeting);
        board.until(|board| board.peer.greeted().is_some());
        let greeted = board.peer.greeted().expect("an answer").expect("a good one").line.clone();
        for run in board.runs.values_mut() {
            run.on_connection(&ConnectionNote::Connected, NOW);
            run.on_output(&greeted, NOW);
        }
        board.settle();
        board
    }

    fn write(&mut self, line: &[u8]) {
        self.input.as_mut().expect("its input").write_all(line).expect("it reads");
        for routed in self.peer.on_input(line, NOW) {
            if let To::Run(name) = routed.to {
                let run = self.runs.get_mut(&name).expect("a run");
                let events = run.on_input(&routed.line, NOW);
                self.events.extend(events.into_iter().map(|event| (name.clone(), event)));
            }
        }
    }

    /// Writes what is owed by anybody.
    fn settle(&mut self) {
        let owed: Vec<Vec<u8>> =
            self.runs.values().flat_map(AcpRun::owed).chain(self.peer.owed()).map(|(_, line)| line).collect();
        owed.iter().for_each(|line| self.write(line));
    }

    /// Hears lines until something holds. False: it ended before.
    fn until(&mut self, holds: impl Fn(&Board) -> bool) -> bool {
        while !holds(self) {
            let mut line = Vec::new();
            if self.output.read_until(b'\n', &mut line).expect("a pipe") == 0 {
                return false;
            }
            for routed in self.peer.on_output(&line, NOW) {
                assert_eq!(routed.problem, None, "{}", String::from_utf8_lossy(&routed.line));
                if let To::Run(name) = routed.to {
                    let run = self.runs.get_mut(&name).expect("a run");
                    let events = run.on_output(&routed.line, NOW);
                    self.events.extend(events.into_iter().map(|event| (name.clone(), event)));
                }
            }
            self.settle();
        }
        true
    }

    fn wait(&mut self, name: &str, state: &str) {
        assert!(
            self.until(|board| board.state(name) == state),
            "{name} is never {state}: {}",
            self.state(name)
        );
    }

    fn state(&self, name: &str) -> String {
        match self.runs[name].state() {
            AgentState::NeedsInput { why, .. } => why.to_string(),
            AgentState::Running => "running".to_owned(),
            other => format!("{other:?}"),
        }
    }

    fn prompt(&mut self, name: &str, text: &str) {
        let line = self.runs.get_mut(name).expect("a run").prompt(text).expect("it takes one");
        self.write(&line);
    }

    fn answer(&mut self, name: &str, verdict: &Verdict) {
        let run = &self.runs[name];
        let id = run.open().next().expect("a request").to_owned();
        let line = run.answer(&id, verdict).expect("it is offered");
        self.write(&line);
    }

    fn said(&self, name: &str) -> Vec<&str> {
        let said = self.events.iter().filter(|(of, _)| of == name);
        said.filter_map(|(_, event)| match event {
            ConversationEvent::Output { text } => Some(text.as_str()),
            _ => None,
        })
        .collect()
    }

    /// The process is gone; its sessions are told so.
    fn lost(mut self) -> BTreeMap<String, AcpRun> {
        assert!(!self.until(|_| false), "it ends");
        self.child.wait().expect("an end");
        for run in self.runs.values_mut() {
            run.on_connection(&ConnectionNote::Lost { cause: None }, NOW);
        }
        self.runs
    }

    fn ends(mut self) {
        drop(self.input.take());
        assert!(!self.until(|_| false));
        assert_eq!(self.child.wait().expect("an end").code(), Some(0));
    }
}

fn runs(names: &[&str], mode: Option<&str>) -> BTreeMap<String, AcpRun> {
    let run = |name: &&str| {
        let terms = AcpTerms {
            must_resume: false,
            run: (*name).to_owned(),
            cwd: "/w".into(),
            mode: mode.map(str::to_owned),
            ..AcpTerms::default()
        };
        ((*name).to_owned(), AcpRun::began(Timing::default(), NOW, terms))
    };
    names.iter().map(run).collect()
}

#[test]
fn two_sessions_talk_at_once_and_each_hears_its_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut board = Board::begin(&["--early"], &dir.path().join("s"), runs(&["a", "b"], None));
    board.wait("a", "prompt");
    board.wait("b", "prompt");
    board.prompt("a", "! tool Bash ls; say done; request dance; update waltz; edit f x|y; end");
    board.prompt("b", "! ask Which?|Red|Blue; plan one|two; usage 0.5; wait");
    board.wait("a", "permission");
    board.wait("b", "question");
    board.answer("a", &Verdict::AllowAlways);
    board.answer("b", &Verdict::Answer { answers: [("Which?".to_owned(), "Blue".to_owned())].into() });
    board.wait("a", "permission");
    board.answer("a", &Verdict::Deny { message: "no".into() });
    board.wait("a", "finished");
    assert_eq!(board.said("a"), ["done", "told: -32601"]);
    assert!(board.until(|board| board.runs["b"].usage().cost_usd == Some(0.5)));
    let cancel = board.runs.get_mut("b").and_then(AcpRun::interrupt).expect("a turn");
    board.write(&cancel);
    board.wait("b", "finished");
    assert_eq!(board.said("b"), ["answered: Blue"]);
    board.ends();
}

#[test]
fn a_process_that_dies_in_a_turn_comes_back_with_its_sessions() {
    for options in [&[][..], &["--no-resume"], &["--no-resume", "--no-load"]] {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("s");
        let mut board = Board::begin(options, &file, runs(&["a", "b"], Some("ask")));
        for name in ["a", "b"] {
            board.wait(name, "prompt");
            board.prompt(name, "hello");
            board.wait(name, "finished");
        }
        let sessions = ["a", "b"].map(|name| board.runs[name].session_id().map(str::to_owned));
        board.prompt("b", "! tool Bash ls");
        board.wait("b", "permission");
        board.prompt("a", "! crash 9");
        let runs = board.lost();
        assert_eq!(runs["b"].open().count(), 0);
        let mut board = Board::begin(options, &file, runs);
        // What was lost is what there is to say.
        board.wait("a", "error");
        board.wait("b", "error");
        let again = ["a", "b"].map(|name| board.runs[name].session_id().map(str::to_owned));
        assert_eq!(again == sessions, !options.contains(&"--no-load"), "{options:?}");
        board.prompt("b", "still there?");
        board.wait("b", "finished");
        assert_eq!(board.said("b"), ["echo: still there?"]);
        let prompts = board.runs["b"].conversation().entries().iter();
        assert_eq!(prompts.filter(|entry| matches!(entry.item, Item::User { .. })).count(), 3);
        board.ends();
    }
}

#[test]
fn a_stopped_session_is_closed_and_the_others_go_on() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut board = Board::begin(&[], &dir.path().join("s"), runs(&["a", "b"], Some("auto")));
    board.wait("a", "prompt");
    board.wait("b", "prompt");
    board.prompt("a", "! wait");
    let session = board.runs["a"].session_id().map(str::to_owned).expect("a session");
    for line in board.runs.get_mut("a").expect("a run").stop() {
        board.write(&line);
    }
    assert!(board.until(|board| board.peer.run_of(&session).is_none()));
    board.prompt("b", "! tool Bash ls");
    board.wait("b", "finished");
    board.ends();
}
