//! A named way to run a coding CLI: its commands, its driver, its limits, and those that are built in.
//!
//! Looks at no PATH and starts nothing. The caller passes a function that says what is installed.

mod agents;
mod built_in;
mod driver;
mod error;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::tokens;

pub use agents::Agents;
pub use built_in::{built_ins, canonical_name};
pub use driver::{Driver, UnknownDriver};
pub use error::AgentError;

/// A program and its arguments, before tokens are replaced. Never a shell string.
pub type Action = Vec<String>;

/// One agent as it is configured: its commands, its driver and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The name in the configuration and on the command line.
    pub name: String,
    /// The name that people see.
    pub display_name: String,
    /// Begins a run in a terminal.
    pub start: Option<Action>,
    /// Begins a run in a terminal that resumes the task's session.
    pub resume: Option<Action>,
    /// Answers one message and exits.
    pub run: Option<Action>,
    /// Begins a stream-json run.
    pub stream: Option<Action>,
    /// Starts the shared process of ACP sessions.
    pub acp: Option<Action>,
    /// The same bridge under its older name, for users who have not renamed it yet.
    pub acp_before_rename: Option<Action>,
    /// The permission mode of its ACP sessions. Without one, three of five agents approve their own actions.
    pub mode: Option<String>,
    /// Each workspace gets an ACP process of its own.
    pub per_workspace: bool,
    /// The driver of a task that names none.
    pub driver: Driver,
    /// Whether a crash is followed by a restart; unset: the driver decides.
    pub restart: Option<Restart>,
    /// Restarts in a row; unset: the driver decides.
    pub max_restarts: Option<u32>,
    /// Time to exit after SIGTERM, before SIGKILL; unset: the driver decides.
    pub stop_grace: Option<Duration>,
    /// Programs that `stop` leaves alone although this agent started them (`gpg-agent`).
    pub spare: Vec<String>,
    /// Variables for this agent's processes.
    pub env: BTreeMap<String, String>,
    /// Overrides the general setting.
    pub needs_input_timeout: Option<Duration>,
    /// Overrides the general setting.
    pub stale_timeout: Option<Duration>,
    /// The CLI has no argument for a first message and stays open, so Agency types the message at its prompt.
    pub types_first_message: bool,
}

/// Servers that many programs share and start when they need them. Ending them would hurt other programs.
const SPARED: [&str; 2] = ["gpg-agent", "sccache"];

impl Agent {
    /// An agent without any command. A `[agents.NAME]` table starts from this.
    pub fn named(name: &str) -> Agent {
        Agent {
            name: name.to_owned(),
            display_name: name.to_owned(),
            start: None,
            resume: None,
            run: None,
            stream: None,
            acp: None,
            acp_before_rename: None,
            mode: None,
            per_workspace: false,
            driver: Driver::Terminal,
            restart: None,
            max_restarts: None,
            stop_grace: None,
            spare: SPARED.map(str::to_owned).to_vec(),
            env: BTreeMap::new(),
            needs_input_timeout: None,
            stale_timeout: None,
            types_first_message: false,
        }
    }

    /// Whether the mode is that of the built-in agent of this name, so that no user has chosen it.
    pub fn has_usual_mode(&self) -> bool {
        built_ins().iter().any(|usual| usual.name == self.name && usual.mode == self.mode)
    }

    /// The command that begins a run: `resume` if the task has a session and the agent can resume it, otherwise `start`.
    pub fn launch(&self, driver: Driver, session_known: bool) -> Result<&Action, AgentError> {
        let resumable = self.resume.as_ref().filter(|_| session_known);
        let action = match driver {
            Driver::Terminal => resumable.or(self.command(driver)),
            Driver::StreamJson | Driver::Acp => self.command(driver),
        };
        action.ok_or_else(|| self.no_command(driver))
    }

    fn command(&self, driver: Driver) -> Option<&Action> {
        match driver {
            Driver::Terminal => self.start.as_ref(),
            Driver::StreamJson => self.stream.as_ref(),
            Driver::Acp => self.acp.as_ref(),
        }
    }

    /// Like [`launch`](Agent::launch) for `acp`, but also accepts a bridge that is installed under its older name.
    pub fn launch_acp(&self, installed: impl Fn(&str) -> bool) -> Result<&Action, AgentError> {
        let newer = self.launch(Driver::Acp, false)?;
        let installed = |action: &Action| action.first().is_some_and(|program| installed(program));
        match &self.acp_before_rename {
            Some(older) if !installed(newer) && installed(older) => Ok(older),
            _ => Ok(newer),
        }
    }

    /// The command that `agency run TASK TEXT` executes.
    pub fn run_action(&self) -> Result<&Action, AgentError> {
        self.run.as_ref().ok_or_else(|| AgentError::CannotRun { agent: self.name.clone() })
    }

    fn no_command(&self, driver: Driver) -> AgentError {
        AgentError::NoCommand { agent: self.name.clone(), driver, possible: self.drivers() }
    }

    /// The drivers this agent has a command for.
    pub fn drivers(&self) -> Vec<Driver> {
        Driver::ALL.into_iter().filter(|driver| self.command(*driver).is_some()).collect()
    }

    /// The driver of a task that names none: the configured one, or the only one that has a command.
    pub fn usual_driver(&self) -> Driver {
        match self.drivers()[..] {
            [only] if self.driver == Driver::default() => only,
            _ => self.driver,
        }
    }

    /// Fails if a run with this driver cannot resume a session of an earlier run. ACP always can: it is in the protocol.
    pub fn check_resume(&self, driver: Driver) -> Result<(), AgentError> {
        let can = match driver {
            Driver::Terminal => self.resume.is_some(),
            Driver::StreamJson => self.stream.iter().flatten().any(|word| tokens::mentions_session(word)),
            Driver::Acp => true,
        };
        can.then_some(()).ok_or_else(|| AgentError::CannotResume { agent: self.name.clone(), driver })
    }

    /// The program that the usual driver starts, or that of another driver if the usual one has no command.
    pub fn program(&self) -> Option<&str> {
        let any = || Driver::ALL.into_iter().find_map(|driver| self.command(driver));
        self.command(self.usual_driver()).or_else(any)?.first().map(String::as_str)
    }

    /// How a run gets the task's text.
    pub fn first_message(&self, driver: Driver) -> FirstMessage {
        if driver != Driver::Terminal {
            return FirstMessage::Typed;
        }
        let in_command = self.start.iter().flatten().any(|argument| tokens::mentions_prompt(argument));
        match (in_command, self.types_first_message) {
            (true, _) => FirstMessage::InCommand,
            (false, true) => FirstMessage::Typed,
            (false, false) => FirstMessage::ExportedOnly,
        }
    }

    /// Time to exit after SIGTERM, before SIGKILL.
    pub fn stop_grace(&self, driver: Driver) -> Duration {
        self.stop_grace.unwrap_or(match driver {
            Driver::Terminal => Duration::from_secs(2),
            Driver::StreamJson => Duration::from_secs(30),
            Driver::Acp => Duration::from_secs(5),
        })
    }

    /// Whether a crash is followed by a restart.
    pub fn restart(&self, driver: Driver) -> Restart {
        self.restart.unwrap_or(match driver {
            Driver::Terminal => Restart::Never,
            Driver::StreamJson | Driver::Acp => Restart::OnCrash,
        })
    }

    /// Restarts in a row before Agency gives up.
    pub fn max_restarts(&self, driver: Driver) -> u32 {
        self.max_restarts.unwrap_or(match driver {
            Driver::Terminal | Driver::StreamJson => 3,
            Driver::Acp => 5,
        })
    }
}

/// How a run gets the task's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstMessage {
    /// As an argument of the command.
    InCommand,
    /// Agency types or sends it.
    Typed,
    /// A shell would run the text as commands, so the text is only in `$AGENCY_PROMPT`.
    ExportedOnly,
}

/// Whether Agency starts a new run after an exit that was not requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// An exit stays an exit.
    Never,
    /// A crash is followed by a restart.
    OnCrash,
}

impl Restart {
    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Restart::Never => "never",
            Restart::OnCrash => "on-crash",
        }
    }
}

impl fmt::Display for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Restart {
    type Err = UnknownRestart;
    fn from_str(text: &str) -> Result<Restart, UnknownRestart> {
        let found = [Restart::Never, Restart::OnCrash].into_iter().find(|restart| restart.as_str() == text);
        found.ok_or_else(|| UnknownRestart(text.to_owned()))
    }
}

/// The text is not a restart rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a restart rule", .0.escape_debug())]
pub struct UnknownRestart(pub String);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TaskId;
    use crate::slug::Slug;
    use crate::tokens::Tokens;

    const NOTHING: fn(&str) -> bool = |_| false;

    fn launched(agent: &str, driver: Driver, body: &str, session: Option<&str>) -> String {
        let tokens = Tokens {
            task_id: TaskId(1),
            slug: Slug::new("x").expect("a slug"),
            body: body.as_bytes().to_vec(),
            project_root: "/p".into(),
            worktree: "/w".into(),
            session_id: session.map(str::to_owned),
            message: None,
            ports: None,
        };
        let agents = Agents::built_in();
        let action = agents.find(agent).and_then(|agent| agent.launch(driver, session.is_some()));
        let argv = tokens.expand(action.expect("a command"));
        let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy().replace(' ', "~")).collect();
        words.join(" ")
    }

    #[test]
    fn built_in_agents_start_with_the_prompt_and_resume_their_session() {
        for (agent, with_prompt, without, resumed) in [
            ("shell", "sh", "sh", "sh"),
            ("shell", "sh", "sh", "sh"),
            (
                "opencode",
                "opencode --agent plan --prompt=-~fix~it",
                "opencode --agent plan --prompt=",
                "opencode --session s1",
            ),
            (
                "claude-code",
                "claude --permission-mode default -- -~fix~it",
                "claude --permission-mode default",
                "claude --permission-mode default --resume s1",
            ),
            (
                "codex",
                "codex --no-daemon --ask-for-approval on-request -- -~fix~it",
                "codex --no-daemon --ask-for-approval on-request",
                "codex resume --no-daemon --ask-for-approval on-request s1",
            ),
            ("gemini", "gemini -- -~fix~it", "gemini", "gemini --resume s1"),
            (
                "qwen",
                "qwen --approval-mode default --prompt-interactive=-~fix~it",
                "qwen --approval-mode default --prompt-interactive=",
                "qwen --approval-mode default --resume s1",
            ),
            ("copilot", "copilot --interactive -~fix~it", "copilot", "copilot --resume=s1"),
            ("vibe", "vibe --agent ask -- -~fix~it", "vibe --agent ask", "vibe --agent ask --resume s1"),
            ("aider", "aider", "aider", "aider"),
        ] {
            let terminal = Driver::Terminal;
            assert_eq!(launched(agent, terminal, "- fix it\n", None), with_prompt);
            assert_eq!(launched(agent, terminal, "", None), without);
            assert_eq!(launched(agent, terminal, "- fix it\n", Some("s1")), resumed);
        }
    }

    #[test]
    fn a_stream_resumes_its_session_if_there_is_one() {
        let fresh = "claude --permission-mode default -p --verbose --include-partial-messages --input-format stream-json \
                     --output-format stream-json --permission-prompt-tool stdio";
        assert_eq!(launched("claude-code", Driver::StreamJson, "fix", None), fresh);
        let resumed = format!("{fresh} --resume s1");
        assert_eq!(launched("claude-code", Driver::StreamJson, "fix", Some("s1")), resumed);
    }

    #[test]
    fn a_session_is_resumed_by_the_drivers_that_can() {
        let agents = Agents::built_in();
        for (agent, terminal, stream) in [
            ("claude-code", true, true),
            ("codex", true, false),
            ("aider", false, false),
            ("shell", false, false),
        ] {
            let agent = agents.find(agent).expect("built in");
            let can = [Driver::Terminal, Driver::StreamJson].map(|driver| agent.check_resume(driver).is_ok());
            assert_eq!(can, [terminal, stream], "{}", agent.name);
            assert!(agent.check_resume(Driver::Acp).is_ok());
        }
    }

    #[test]
    fn only_agents_that_accept_the_text_get_it() {
        let agents = Agents::built_in();
        for (agent, expected) in [
            ("shell", FirstMessage::ExportedOnly),
            ("aider", FirstMessage::Typed),
            ("claude-code", FirstMessage::InCommand),
            ("codex", FirstMessage::InCommand),
            ("opencode", FirstMessage::InCommand),
            ("gemini", FirstMessage::InCommand),
        ] {
            let found = agents.find(agent).map(|agent| agent.first_message(Driver::Terminal));
            assert_eq!(found, Ok(expected), "{agent}");
        }
    }

    #[test]
    fn agents_that_approve_their_own_actions_over_acp_have_a_mode_in_which_they_ask() {
        for agent in built_ins().iter().filter(|agent| agent.acp.is_some() && agent.name != "opencode") {
            assert!(agent.mode.is_some() && agent.has_usual_mode(), "{}", agent.name);
        }
        let qwen = Agents::built_in().find("qwen").expect("built in").clone();
        assert!(!Agent { mode: Some("yolo".to_owned()), ..qwen }.has_usual_mode(), "the user's own choice");
    }

    #[test]
    fn the_bridge_is_found_under_either_of_its_names() {
        let agents = Agents::built_in();
        let claude = agents.find("claude-code").expect("built in");
        for (installed, expected) in [
            (vec![], "claude-agent-acp"),
            (vec!["claude-code-acp"], "claude-code-acp"),
            (vec!["claude-agent-acp"], "claude-agent-acp"),
            (vec!["claude-code-acp", "claude-agent-acp"], "claude-agent-acp"),
        ] {
            let action = claude.launch_acp(|program| installed.contains(&program));
            assert_eq!(action, Ok(&vec![expected.to_owned()]));
        }
    }

    #[test]
    fn the_default_agent_is_the_configured_one_or_the_first_installed() {
        let agents = Agents::built_in();
        for (configured, installed, expected) in [
            (None, "claude codex opencode", "claude-code"),
            (None, "opencode codex", "codex"),
            (None, "opencode gemini", "opencode"),
            (None, "gemini aider", "shell"),
            (Some("aider"), "claude", "aider"),
            (Some("shell"), "claude", "shell"),
            (Some("fake"), "claude", "shell"),
        ] {
            let chosen =
                agents.choose_default(configured, |program| installed.split(' ').any(|p| p == program));
            assert_eq!(chosen.map(|agent| agent.name.as_str()), Ok(expected), "{configured:?} {installed}");
        }
        assert!(agents.choose_default(Some("unheard-of"), NOTHING).is_err());
    }

    #[test]
    fn the_program_of_an_agent_names_it_unless_another_agent_has_that_name() {
        let mut agents = Agents::built_in();
        assert_eq!(agents.find("claude").map(|agent| agent.name.as_str()), Ok("claude-code"));
        assert_eq!(agents.find("sh").map(|agent| agent.name.as_str()), Ok("shell"));
        agents.entry("claude");
        assert_eq!(agents.find("claude").map(|agent| agent.name.as_str()), Ok("claude"));
    }

    #[test]
    fn an_unusable_agent_gives_a_reason_and_a_hint() {
        let agents = Agents::built_in();
        let none = Agent::named("mine");
        let known = "aider, claude-code, codex, copilot, gemini, opencode, qwen, shell, vibe";
        let unknown = |name: &str| agents.find(name).expect_err(name);
        let refused = |agent: &Agent, driver| agent.launch(driver, false).expect_err("refused");
        let shell = agents.find("fake").expect("built in");
        for (error, text, hint) in [
            (
                unknown("cladue-code"),
                "no agent is called `cladue-code`",
                format!("did you mean `claude-code`? known agents: {known}"),
            ),
            (
                unknown("cursor"),
                "no agent is called `cursor`",
                format!("known agents: {known}; or add [agents.cursor] to config.toml"),
            ),
            (
                refused(shell, Driver::Acp),
                "agent shell has no command for the acp driver",
                "set `acp` under [agents.shell] in config.toml, or pass --driver terminal".to_owned(),
            ),
            (
                refused(&none, Driver::StreamJson),
                "agent mine has no command for the stream-json driver",
                "set `stream` under [agents.mine] in config.toml".to_owned(),
            ),
            (
                none.run_action().expect_err("no run"),
                "agent mine has no `run` command",
                "set `run` under [agents.mine] in config.toml".to_owned(),
            ),
            (
                AgentError::NotInstalled { agent: "codex".to_owned(), program: "codex".to_owned() },
                "agent codex is not installed: `codex` was not found",
                "install `codex`, or choose another agent with --agent".to_owned(),
            ),
        ] {
            assert_eq!((error.to_string().as_str(), error.hint()), (text, hint));
        }
    }

    #[test]
    fn limits_follow_the_driver_unless_set() {
        let agent = Agent::named("mine");
        let limits = |agent: &Agent, driver| {
            (agent.stop_grace(driver).as_secs(), agent.restart(driver), agent.max_restarts(driver))
        };
        assert_eq!(limits(&agent, Driver::Terminal), (2, Restart::Never, 3));
        assert_eq!(limits(&agent, Driver::StreamJson), (30, Restart::OnCrash, 3));
        assert_eq!(limits(&agent, Driver::Acp), (5, Restart::OnCrash, 5));
        let set = Agent {
            stop_grace: Some(Duration::from_secs(9)),
            restart: Some(Restart::OnCrash),
            max_restarts: Some(1),
            ..agent
        };
        assert_eq!(limits(&set, Driver::Terminal), (9, Restart::OnCrash, 1));
    }

    #[test]
    fn names_of_drivers_and_rules_are_read_back() {
        for driver in Driver::ALL {
            assert_eq!(driver.to_string().parse(), Ok(driver));
        }
        for restart in [Restart::Never, Restart::OnCrash] {
            assert_eq!(restart.to_string().parse(), Ok(restart));
        }
        let error = "tty".parse::<Driver>().expect_err("no driver");
        assert_eq!(error.to_string(), "no driver is called `tty`");
        assert_eq!(error.hint(), "drivers are terminal, stream-json and acp");
    }
}
