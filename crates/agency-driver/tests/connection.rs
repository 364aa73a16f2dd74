//! The router and its sessions with a real process, `fake-agent`: several sessions on one connection, also after the
//! process died.

#![allow(clippy::disallowed_types, reason = "the tests talk to a real process")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use agency_core::agent_state::{AgentState, Timing};
use agency_core::conversation::Item;
use agency_driver::acp::router::{Recipient, RoutedLine};
use agency_driver::acp::{AcpRun, AcpTerms, ConnectionNote, Router};
use agency_driver::conversation::{ApprovalAnswer, ConversationEvent};
use agency_testkit::Binaries;
use serde_json::{Value, json};

const NOW: Duration = Duration::ZERO;

/// A process, its connection, and the sessions on it.
struct Connection {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    router: Router,
    runs: BTreeMap<String, AcpRun>,
    events: Vec<(String, ConversationEvent)>,
    /// The agent's lines that belong to a run, oldest first.
    heard: Vec<Value>,
}

impl Connection {
    /// Starts the process, greets it, and opens a session for each run.
    fn begin(options: &[&str], sessions: &Path, runs: BTreeMap<String, AcpRun>) -> Connection {
        let mut command = Command::new(Binaries::fake_agent());
        command.args(["--acp", ""]).args(options).env("FAKE_AGENT_SESSIONS", sessions);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("its output")));
        let mut connection = Connection {
            child,
            input,
            output,
            router: Router::new(),
            runs,
            events: Vec::new(),
            heard: Vec::new(),
        };
        let greeting = connection.router.initialize();
        connection.write(&greeting);
        connection.until(|connection| connection.router.greeting().is_some());
        let greeted = connection.router.greeting().expect("an answer").expect("a good one").line.clone();
        for run in connection.runs.values_mut() {
            run.on_connection(&ConnectionNote::Connected, NOW);
            run.on_output(&greeted, NOW);
        }
        connection.settle();
        connection
    }

    fn write(&mut self, line: &[u8]) {
        self.input.as_mut().expect("its input").write_all(line).expect("it reads");
        for routed in self.router.on_input(line, NOW) {
            if let Recipient::Run(name) = routed.to {
                let run = self.runs.get_mut(&name).expect("a run");
                let events = run.on_input(&routed.line, NOW);
                self.events.extend(events.into_iter().map(|event| (name.clone(), event)));
            }
        }
    }

    /// Writes every owed line.
    fn settle(&mut self) {
        let owed: Vec<Vec<u8>> = self
            .runs
            .values()
            .flat_map(AcpRun::owed_lines)
            .chain(self.router.owed_lines())
            .map(|(_, line)| line)
            .collect();
        owed.iter().for_each(|line| self.write(line));
    }

    /// Reads lines until something holds. `false` if the process ended before.
    fn until(&mut self, holds: impl Fn(&Connection) -> bool) -> bool {
        while !holds(self) {
            let mut line = Vec::new();
            if self.output.read_until(b'\n', &mut line).expect("a pipe") == 0 {
                return false;
            }
            for routed in self.router.on_output(&line, NOW) {
                assert_eq!(routed.problem, None, "{}", String::from_utf8_lossy(&routed.line));
                if let Recipient::Run(name) = routed.to {
                    self.heard.push(serde_json::from_slice(&routed.line).expect("JSON"));
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
            self.until(|connection| connection.state(name) == state),
            "{name} is never {state}: {}",
            self.state(name)
        );
    }

    fn state(&self, name: &str) -> String {
        match self.runs[name].core().state() {
            AgentState::NeedsInput { why, .. } => why.to_string(),
            AgentState::Running => "running".to_owned(),
            other => format!("{other:?}"),
        }
    }

    fn prompt(&mut self, name: &str, text: &str) {
        let line = self.runs.get_mut(name).expect("a run").prompt(text).expect("it takes one");
        self.write(&line);
    }

    fn answer(&mut self, name: &str, verdict: &ApprovalAnswer) {
        let run = &self.runs[name];
        let id = run.open_requests().next().expect("a request").to_owned();
        let line = run.answer(&id, verdict).expect("it is offered");
        self.write(&line);
    }

    fn outputs(&self, name: &str) -> Vec<&str> {
        let events = self.events.iter().filter(|(of, _)| of == name);
        events
            .filter_map(|(_, event)| match event {
                ConversationEvent::Output { text } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// Waits for the end of the process, and reports it to the sessions.
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
fn two_sessions_work_at_the_same_time_and_each_gets_its_own_lines() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut connection = Connection::begin(&["--early"], &dir.path().join("s"), runs(&["a", "b"], None));
    connection.wait("a", "prompt");
    connection.wait("b", "prompt");
    connection.prompt("a", "! tool Bash ls; say done; request dance; update waltz; edit f x|y; end");
    connection.prompt("b", "! ask Which?|Red|Blue; plan one|two; usage 0.5; wait");
    connection.wait("a", "permission");
    connection.wait("b", "question");
    connection.answer("a", &ApprovalAnswer::AllowAlways);
    connection
        .answer("b", &ApprovalAnswer::Answer { answers: [("Which?".to_owned(), "Blue".to_owned())].into() });
    connection.wait("a", "permission");
    connection.answer("a", &ApprovalAnswer::Deny { message: "no".into() });
    connection.wait("a", "finished");
    assert_eq!(connection.outputs("a"), ["done", "told: -32601"]);
    assert!(connection.until(|connection| connection.runs["b"].core().usage().cost_usd == Some(0.5)));
    let cancel = connection.runs.get_mut("b").and_then(AcpRun::interrupt).expect("a turn");
    connection.write(&cancel);
    connection.wait("b", "finished");
    assert_eq!(connection.outputs("b"), ["answered: Blue"]);
    connection.ends();
}

#[test]
fn a_process_that_dies_in_a_turn_comes_back_with_its_sessions() {
    for options in [&[][..], &["--no-resume"], &["--no-resume", "--no-load"]] {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("s");
        let mut connection = Connection::begin(options, &file, runs(&["a", "b"], Some("ask")));
        for name in ["a", "b"] {
            connection.wait(name, "prompt");
            connection.prompt(name, "hello");
            connection.wait(name, "finished");
        }
        let sessions = ["a", "b"].map(|name| connection.runs[name].core().session_id().map(str::to_owned));
        connection.prompt("b", "! tool Bash ls");
        connection.wait("b", "permission");
        connection.prompt("a", "! crash 9");
        let runs = connection.lost();
        assert_eq!(runs["b"].open_requests().count(), 0);
        let mut connection = Connection::begin(options, &file, runs);
        // The lost turn decides the state.
        connection.wait("a", "error");
        connection.wait("b", "error");
        let again = ["a", "b"].map(|name| connection.runs[name].core().session_id().map(str::to_owned));
        assert_eq!(again == sessions, !options.contains(&"--no-load"), "{options:?}");
        connection.prompt("b", "still there?");
        connection.wait("b", "finished");
        assert_eq!(connection.outputs("b"), ["echo: still there?"]);
        let prompts = connection.runs["b"].core().conversation().entries().iter();
        assert_eq!(prompts.filter(|entry| matches!(entry.item, Item::User { .. })).count(), 3);
        connection.ends();
    }
}

#[test]
fn a_stopped_session_is_closed_and_the_others_continue() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut connection = Connection::begin(&[], &dir.path().join("s"), runs(&["a", "b"], Some("auto")));
    connection.wait("a", "prompt");
    connection.wait("b", "prompt");
    connection.prompt("a", "! wait");
    let session = connection.runs["a"].core().session_id().map(str::to_owned).expect("a session");
    let mut close = Value::Null;
    for line in connection.runs.get_mut("a").expect("a run").stop() {
        connection.write(&line);
        close = serde_json::from_slice(&line).expect("JSON");
    }
    assert_eq!(close["method"], "session/close");
    assert!(connection.until(|connection| connection.heard.iter().any(|line| line["id"] == close["id"])));
    let late = json!({ "method": "session/update", "params": { "sessionId": session, "update": {} } });
    let routed = connection.router.on_output(format!("{late}\n").as_bytes(), NOW);
    assert!(
        matches!(&routed[..], [RoutedLine { to: Recipient::Connection, .. }]),
        "no run has the closed session: {routed:?}"
    );
    connection.prompt("b", "! tool Bash ls");
    connection.wait("b", "finished");
    connection.ends();
}
