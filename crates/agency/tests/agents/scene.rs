//! A sealed environment with a real agent in it: what its user types, and what Agency says about it.
//!
//! Says what is there; what should be there is for the stories to say.

use std::fs;
use std::ops::Deref;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use agency_journal::{Body, Reader};
use agency_testkit::{CommandOutput, Sealed};
use serde_json::Value;

use crate::model::Model;

/// Far more than anything needs, so that only what never comes reaches it.
pub const SOON: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    Claude,
    Codex,
}

pub struct Scene {
    sealed: Sealed,
    pub model: Model,
    agent: Agent,
}

impl Deref for Scene {
    type Target = Sealed;

    fn deref(&self) -> &Sealed {
        &self.sealed
    }
}

/// What a receipt of `agency send` says.
#[derive(Debug)]
pub struct Receipt {
    pub kind: String,
    pub screen: String,
}

impl Scene {
    pub fn new(agent: Agent) -> Scene {
        assert_no_network();
        let sealed = Sealed::new();
        let model = Model::start(&sealed);
        let scene = Scene { sealed, model, agent };
        scene.furnish();
        scene
    }

    /// Past the agent's questions at its start: at its prompt, which waits.
    #[track_caller]
    pub fn at_prompt(agent: Agent) -> Scene {
        let scene = Scene::new(agent);
        scene.new_task();
        scene.wait_waiting("question");
        scene.trust();
        scene.wait_waiting("prompt");
        scene
    }

    /// What a user has who has used the agents before, and nothing that asks for a network.
    fn furnish(&self) {
        let claude = r#"{"hasCompletedOnboarding": true, "lastOnboardingVersion": "2.1.325", "theme": "dark",
            "customApiKeyResponses": {"approved": ["dummy"], "rejected": []}}"#;
        self.write_home(".claude.json", claude);
        let codex = format!(
            "model = \"fake-model\"\nmodel_provider = \"fake\"\napproval_policy = \"on-request\"\n\
             sandbox_mode = \"workspace-write\"\ncheck_for_update_on_startup = false\n\
             [analytics]\nenabled = false\n[model_providers.fake]\nname = \"fake\"\n\
             base_url = \"http://127.0.0.1:{}/v1\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n",
            self.model.port
        );
        self.write_home(".codex/config.toml", &codex);
    }

    pub fn write_home(&self, name: &str, content: &str) {
        let path = self.home().join(name);
        let dir = path.parent().expect("a file lies in a directory");
        fs::create_dir_all(dir).and_then(|()| fs::write(&path, content)).expect("room for a file");
    }

    /// `agency ARG…`, as one types it whose agents talk to the fake model.
    pub fn typed(&self, args: &[&str]) -> Command {
        let mut command = self.agency(args);
        command.env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", self.model.port));
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"] {
            command.env(name, "dummy");
        }
        for name in ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY"] {
            command.env(name, "1");
        }
        command
    }

    pub fn run(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::of(self.typed(args), b"")
    }

    /// `agency new x`, with the agent of this scene.
    #[track_caller]
    pub fn new_task(&self) {
        let agent = match self.agent {
            Agent::Claude => "claude-code",
            Agent::Codex => "codex",
        };
        self.run(&["new", "x", "--agent", agent, "--no-attach"]).ok();
    }

    /// Yes to the question whether this directory is to be trusted.
    #[track_caller]
    pub fn trust(&self) {
        match self.agent {
            Agent::Claude => self.keys("down,enter"),
            Agent::Codex => self.keys("enter"),
        }
    }

    #[track_caller]
    pub fn keys(&self, keys: &str) {
        self.run(&["send", "x", "--keys", keys]).ok();
    }

    /// `agency send x TEXT`, from standard input: an argument has at most 128 KiB.
    pub fn send(&self, text: &str) -> Receipt {
        self.send_with(text, &[])
    }

    pub fn send_with(&self, text: &str, options: &[&str]) -> Receipt {
        let args = [&["send", "x", "--json"], options, &["-"]].concat();
        let ran = CommandOutput::of(self.typed(&args), text.as_bytes());
        let receipt: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|err| panic!("no receipt ({err}): {ran}"));
        let field = |name: &str| receipt[name].as_str().unwrap_or_default().to_owned();
        let kind = field("receipt");
        assert_eq!(ran.code == 0, kind != "refused", "{ran}");
        Receipt { kind, screen: field("screen") }
    }

    /// With evidence that it was taken.
    #[track_caller]
    pub fn deliver(&self, text: &str) {
        let receipt = self.send(text);
        assert_eq!(receipt.kind, "delivered", "{receipt:?}");
    }

    /// `agency wait x --until STATE`.
    #[track_caller]
    pub fn wait(&self, state: &str) {
        self.run(&["wait", "x", "--until", state, "--timeout", "50s"]).ok();
    }

    /// As `agency ls --json` shows it.
    #[track_caller]
    pub fn task(&self) -> Value {
        self.run(&["ls", "--json"]).json()["tasks"][0].clone()
    }

    #[track_caller]
    pub fn wait_task(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        self.eventually(&format!("x {what}"), SOON, || Some(self.task()).filter(&is_so))
    }

    /// Until it waits for this: `prompt`, `permission`, `question`, `finished`, `error`.
    #[track_caller]
    pub fn wait_waiting(&self, why: &str) -> Value {
        self.wait_task(&format!("waits: {why}"), |task| is_waiting(task, why))
    }

    #[track_caller]
    pub fn wait_running(&self) {
        self.wait_task("works", |task| task["state"]["state"] == "running");
    }

    #[track_caller]
    pub fn wait_told(&self, text: &str) {
        let shown: String = text.chars().take(40).collect();
        self.eventually(&format!("the model is told {shown:?}"), SOON, || {
            self.model.was_told(text).then_some(())
        });
    }

    #[track_caller]
    pub fn wait_shown(&self, text: &str) {
        self.eventually(&format!("{text:?} on the screen"), SOON, || {
            self.screen().contains(text).then_some(())
        });
    }

    #[track_caller]
    pub fn explain(&self) -> Value {
        self.run(&["explain", "x", "--json"]).json()
    }

    pub fn screen(&self) -> String {
        self.run(&["screen", "x"]).stdout
    }

    /// Every state of the newest run, in order, each with its witness: `needs_input permission status`.
    #[track_caller]
    pub fn history(&self) -> Vec<String> {
        self.changes().iter().map(words_of).collect()
    }

    /// Every change of state of the newest run, as `agency explain` knows them.
    #[track_caller]
    pub fn changes(&self) -> Vec<Value> {
        let explained = self.explain();
        let mut changes = explained["before"].as_array().expect("a list of changes").clone();
        changes.push(explained["state"].clone());
        changes
    }

    /// The notes of one tag in the journal of the task's newest run.
    pub fn notes(&self, run: &str, tag: &str) -> Vec<Value> {
        let dir = self.state().join("r").join(run).join("j");
        let mut reader = Reader::open(&dir, unseal).expect("a journal can be read");
        let records = std::iter::from_fn(|| reader.next().expect("a journal can be read"));
        let notes = records.filter_map(|record| match record.body {
            Body::Note { tag: of, bytes } if of == tag => Some(bytes),
            _ => None,
        });
        notes.map(|note| serde_json::from_slice(&note).expect("a note in JSON")).collect()
    }

    /// Which hooks have reported so far.
    pub fn hooks(&self, run: &str) -> Vec<String> {
        let notes = self.notes(run, "hook");
        notes.iter().filter_map(|note| note["event"].as_str().map(str::to_owned)).collect()
    }

    #[track_caller]
    pub fn task_file(&self) -> String {
        fs::read_to_string(self.repo().join(".agency/tasks/1-x.md")).expect("the task has a file")
    }
}

pub fn is_waiting(task: &Value, why: &str) -> bool {
    task["state"]["state"] == "needs_input" && task["state"]["why"] == why
}

/// `needs_input permission status`
fn words_of(change: &Value) -> String {
    let words = ["state", "why", "source"].map(|name| change[name].as_str());
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn unseal(path: &Path) -> std::io::Result<Vec<u8>> {
    zstd::decode_all(fs::File::open(path)?)
}

/// Agents of other people's making get no chance to call anybody.
fn assert_no_network() {
    let devices = fs::read_to_string("/proc/net/dev").expect("Linux tells its network devices");
    let others: Vec<&str> =
        devices.lines().skip(2).filter(|line| !line.trim_start().starts_with("lo:")).collect();
    assert!(
        others.is_empty(),
        "there is a network here; say `make test-agents`, which takes it away: {others:?}"
    );
}

impl Drop for Scene {
    /// Shown if the story fails, or with `--nocapture`.
    fn drop(&mut self) {
        let ran = self.run(&["explain", "x", "--json"]);
        let explained: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        let before = explained["before"].as_array().cloned().unwrap_or_default();
        for change in before.iter().chain([&explained["state"]]) {
            eprintln!(
                "{:>8.3}  {}  {}",
                change["t"].as_f64().unwrap_or_default(),
                words_of(change),
                change["rule"]
            );
        }
        if std::thread::panicking() {
            eprintln!("--- screen\n{}", self.screen());
            self.model.requests().iter().rev().take(3).for_each(|request| eprintln!("asked: {request}"));
        }
    }
}
