//! A sealed environment with a real agent, and helpers to run commands and wait for states.
//!
//! The steps that Claude Code and Codex share are in `shared.rs`. The other agents run over ACP only.

use std::fs;
use std::ops::Deref;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use agency_journal::{Body, Reader};
use agency_testkit::{CommandOutput, Sealed};
use serde_json::Value;

use crate::model::Model;

/// Far more than any test needs, so that only a condition that never holds reaches it.
pub const SOON: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    Claude,
    Codex,
    Opencode,
    Gemini,
    Qwen,
    Copilot,
}

impl Agent {
    /// Its name in Agency.
    fn name(self) -> &'static str {
        match self {
            Agent::Claude => "claude-code",
            Agent::Codex => "codex",
            Agent::Opencode => "opencode",
            Agent::Gemini => "gemini",
            Agent::Qwen => "qwen",
            Agent::Copilot => "copilot",
        }
    }
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

/// The receipt of `agency send`.
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
        scene.write_agent_settings();
        scene
    }

    /// Starts the agent on a terminal, answers its questions, and waits until it is at its prompt.
    #[track_caller]
    pub fn at_prompt(agent: Agent) -> Scene {
        let scene = Scene::new(agent);
        scene.new_task();
        scene.wait_waiting("question");
        scene.trust();
        scene.wait_waiting("prompt");
        scene
    }

    /// Writes the settings of a user who has used the agents before; they need no network.
    fn write_agent_settings(&self) {
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
        let opencode = format!(
            r#"{{"model": "anthropic/fake-model", "small_model": "anthropic/fake-model", "autoupdate": false,
            "share": "disabled", "permission": {{"bash": "ask", "edit": "ask"}}, "provider": {{"anthropic":
            {{"options": {{"baseURL": "http://127.0.0.1:{}/v1", "apiKey": "dummy"}},
            "models": {{"fake-model": {{"name": "fake"}}}}}}}}}}"#,
            self.model.port
        );
        let config = self.config().parent().and_then(Path::parent).expect("a directory").join("opencode");
        fs::create_dir_all(&config)
            .and_then(|()| fs::write(config.join("opencode.json"), opencode))
            .expect("room");
        let private =
            r#""general": {"enableAutoUpdate": false}, "privacy": {"usageStatisticsEnabled": false}"#;
        for (file, login) in [(".gemini/settings.json", "gemini-api-key"), (".qwen/settings.json", "openai")]
        {
            let auth = format!(r#""security": {{"auth": {{"selectedType": "{login}"}}}}"#);
            self.write_home(file, &format!("{{{auth}, {private}}}"));
        }
    }

    pub fn write_home(&self, name: &str, content: &str) {
        let path = self.home().join(name);
        let dir = path.parent().expect("a file lies in a directory");
        fs::create_dir_all(dir).and_then(|()| fs::write(&path, content)).expect("room for a file");
    }

    /// A command for `agency ARG…`, with the variables that lead agents to the fake model.
    pub fn agency_command(&self, args: &[&str]) -> Command {
        let mut command = self.agency(args);
        command.env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", self.model.port));
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "COPILOT_PROVIDER_API_KEY"] {
            command.env(name, "dummy");
        }
        let model = format!("http://127.0.0.1:{}", self.model.port);
        match self.agent {
            Agent::Gemini => drop(command.env("GOOGLE_GEMINI_BASE_URL", model)),
            Agent::Qwen => {
                command.env("OPENAI_BASE_URL", format!("{model}/v1")).env("OPENAI_MODEL", "fake-model");
            }
            Agent::Copilot => {
                command.env("COPILOT_PROVIDER_BASE_URL", model).env("COPILOT_PROVIDER_TYPE", "anthropic");
                command.env("COPILOT_MODEL", "claude-sonnet-4").env("COPILOT_OFFLINE", "true");
                command.env("COPILOT_AUTO_UPDATE", "false");
            }
            Agent::Claude | Agent::Codex | Agent::Opencode => {}
        }
        for name in ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY"] {
            command.env(name, "1");
        }
        command
    }

    pub fn run(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::of(self.agency_command(args), b"")
    }

    /// `agency new x`, with the agent of this scene.
    #[track_caller]
    pub fn new_task(&self) {
        self.run(&["new", "x", "--agent", self.agent.name(), "--no-attach"]).ok();
    }

    /// Answers yes to the question whether the agent may trust this directory.
    #[track_caller]
    pub fn trust(&self) {
        match self.agent {
            Agent::Claude => self.keys("down,enter"),
            Agent::Codex => self.keys("enter"),
            Agent::Opencode | Agent::Gemini | Agent::Qwen | Agent::Copilot => {
                panic!("{:?} runs over ACP only", self.agent)
            }
        }
    }

    /// Starts a conversation with the agent over this driver, with a first message.
    #[track_caller]
    pub fn conversation(agent: Agent, driver: &str, message: &str) -> Scene {
        let scene = Scene::new(agent);
        scene.begin(driver, message);
        scene
    }

    /// `agency new x` over this driver, with a first message.
    #[track_caller]
    pub fn begin(&self, driver: &str, message: &str) {
        let name = self.agent.name();
        self.run(&["new", "x", "--agent", name, "--driver", driver, "--no-attach", "-m", message]).ok();
    }

    #[track_caller]
    pub fn chat(&self) -> String {
        self.run(&["chat", "x"]).ok()
    }

    /// Waits for a whole line of the conversation; the prompt that contains its text does not count.
    #[track_caller]
    pub fn wait_said(&self, line: &str) -> String {
        self.eventually(&format!("the line {line:?}"), SOON, || {
            Some(self.chat()).filter(|chat| chat.lines().any(|said| said == line))
        })
    }

    /// The line with the session id in the task's file.
    pub fn session(&self) -> Option<String> {
        let file = self.task_file();
        file.lines().find(|line| line.starts_with("session_id:")).map(str::to_owned)
    }

    /// Whether the agent has made the file that the prompt asked for.
    pub fn is_made(&self) -> bool {
        self.repo().join(".agency/worktrees/1-x/made").exists()
    }

    #[track_caller]
    pub fn keys(&self, keys: &str) {
        self.run(&["send", "x", "--keys", keys]).ok();
    }

    /// `agency send x TEXT`, with the text on standard input: an argument has at most 128 KiB.
    pub fn send(&self, text: &str) -> Receipt {
        self.send_with(text, &[])
    }

    pub fn send_with(&self, text: &str, options: &[&str]) -> Receipt {
        let args = [&["send", "x", "--json"], options, &["-"]].concat();
        let ran = CommandOutput::of(self.agency_command(&args), text.as_bytes());
        let receipt: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|err| panic!("no receipt ({err}): {ran}"));
        let field = |name: &str| receipt[name].as_str().unwrap_or_default().to_owned();
        let kind = field("receipt");
        assert_eq!(ran.code == 0, kind != "refused", "{ran}");
        Receipt { kind, screen: field("screen") }
    }

    /// Sends a text and checks that the agent took it.
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

    /// The task in `agency ls --json`.
    #[track_caller]
    pub fn task(&self) -> Value {
        self.run(&["ls", "--json"]).json()["tasks"][0].clone()
    }

    #[track_caller]
    pub fn wait_task(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        self.eventually(&format!("x {what}"), SOON, || Some(self.task()).filter(&is_so))
    }

    /// Waits until the agent needs input for this reason: `prompt`, `permission`, `question`, `finished`, `error`.
    #[track_caller]
    pub fn wait_waiting(&self, why: &str) -> Value {
        self.wait_task(&format!("waits: {why}"), |task| is_waiting(task, why))
    }

    #[track_caller]
    pub fn wait_running(&self) {
        self.wait_task("works", |task| task["state"]["state"] == "running");
    }

    #[track_caller]
    pub fn wait_model_got(&self, text: &str) {
        let shown: String = text.chars().take(40).collect();
        self.eventually(&format!("the model got {shown:?}"), SOON, || self.model.got(text).then_some(()));
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

    /// Every state of the newest run, in order, each with its source: `needs_input permission status`.
    #[track_caller]
    pub fn history(&self) -> Vec<String> {
        self.changes().iter().map(describe).collect()
    }

    /// Every change of state of the newest run, from `agency explain`.
    #[track_caller]
    pub fn changes(&self) -> Vec<Value> {
        let explained = self.explain();
        let mut changes = explained["before"].as_array().expect("a list of changes").clone();
        changes.push(explained["state"].clone());
        changes
    }

    /// The notes with this tag in the journal of a run.
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

    /// The hooks that have reported so far.
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
fn describe(change: &Value) -> String {
    let words = ["state", "why", "source"].map(|name| change[name].as_str());
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn unseal(path: &Path) -> std::io::Result<Vec<u8>> {
    zstd::decode_all(fs::File::open(path)?)
}

/// The tested agents must not reach a network.
fn assert_no_network() {
    let devices = fs::read_to_string("/proc/net/dev").expect("Linux lists its network devices");
    let others: Vec<&str> =
        devices.lines().skip(2).filter(|line| !line.trim_start().starts_with("lo:")).collect();
    assert!(
        others.is_empty(),
        "there is a network here; run `make test-agents`, which removes it: {others:?}"
    );
}

impl Drop for Scene {
    /// The output appears if the test fails, or with `--nocapture`.
    fn drop(&mut self) {
        let ran = self.run(&["explain", "x", "--json"]);
        let explained: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
        let before = explained["before"].as_array().cloned().unwrap_or_default();
        for change in before.iter().chain([&explained["state"]]) {
            eprintln!(
                "{:>8.3}  {}  {}",
                change["t"].as_f64().unwrap_or_default(),
                describe(change),
                change["rule"]
            );
        }
        if std::thread::panicking() {
            eprintln!("--- screen\n{}", self.screen());
            self.model.requests().iter().rev().take(3).for_each(|request| eprintln!("request: {request}"));
        }
    }
}
