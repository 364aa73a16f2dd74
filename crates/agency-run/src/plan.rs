//! Plans a start before the daemon makes anything: which agent, which command, on which terms.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use agency_api::config::Overrides;
use agency_api::keeper::{self, LaunchSpec, Size, Start, Stdio};
use agency_api::method::Caller;
use agency_api::paths::RunDir;
use agency_api::{Bytes, Failure, FailureCode};
use agency_core::agent::{Agent, AgentError, Driver, FirstMessage, Restart};
use agency_core::agent_state::Timing;
use agency_core::config::{Config, Key, Origin};
use agency_core::ids::RunId;
use agency_core::restart::RestartPolicy;
use agency_core::slug::TaskName;
use agency_core::supervisor::RunTerms;
use agency_core::task_file::TaskFile;
use agency_core::tokens::{self, Ports, Tokens};

use crate::connection::ConnectionSpec;
use crate::environment::{
    self, Environment, drop_long_variables, find_program, link_ssh_agent, path_directories,
};
use crate::run_context::FoldSettings;
use crate::{hooks, limits};

/// A start that is known to be possible.
#[derive(Debug, Clone)]
pub struct LaunchPlan {
    /// The agent.
    pub agent: Agent,
    /// How Agency talks to the agent.
    pub driver: Driver,
    /// The size of its terminal.
    pub size: Size,
    /// Soft and hard limit of open files.
    pub open_files: Option<(u64, u64)>,
    /// The environment of the agent.
    pub environment: Environment,
    /// How its journal is folded.
    pub fold: FoldSettings,
    /// How the run is stopped and restarted.
    pub terms: RunTerms,
    /// The configuration that the caller passed with the start.
    pub overrides: Overrides,
    /// Begin a new session even if the task has one.
    pub fresh: bool,
    /// The command of `agency new SLUG -- COMMAND…`, which replaces the agent's own.
    pub command: Option<Vec<String>>,
}

/// A caller's options for a start that differ from the task's file.
#[derive(Debug, Clone, Copy, Default)]
pub struct StartOptions {
    /// Another driver.
    pub driver: Option<Driver>,
    /// Begin a new session.
    pub fresh: bool,
    /// Start even if the setup has not run.
    pub skip_setup: bool,
}

/// Makes Claude Code report when it works and when it waits.
const REPORTS_STATES: &str = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS";

/// The parts of a launch that differ from one run of a task to the next.
#[derive(Debug)]
pub struct LaunchContext<'a> {
    /// The name of the task.
    pub name: &'a TaskName,
    /// The root of the project.
    pub root: &'a Path,
    /// The task's workspace.
    pub worktree: &'a Path,
    /// The run.
    pub run: &'a RunId,
    /// The directory of the run.
    pub run_dir: &'a RunDir,
    /// The daemon's socket.
    pub daemon_socket: &'a Path,
    /// The keeper's program.
    pub keeper_binary: &'a Path,
    /// The task's ports.
    pub ports: Option<Ports>,
}

/// Chooses the agent of a task. Returns a note for the user if the choice may surprise them.
pub fn choose_agent<'a>(
    config: &'a Config,
    wanted: Option<&str>,
    env: &Environment,
) -> Result<(&'a Agent, Option<String>), Failure> {
    if let Some(name) = wanted {
        return Ok((config.agents.find(name).map_err(agent_failure)?, None));
    }
    let agent = config.choose_default_agent(|program| find_program(program, env, Path::new("/")).is_some());
    let agent = agent.map_err(agent_failure)?;
    let note = match config.default_agent {
        // Users know their own choice, so only a project's choice is worth a note.
        Some(_) => match config.origin(&Key::DEFAULT_AGENT) {
            Origin::File { file, .. } if Path::new(&file).ends_with(".agency/config.toml") => {
                Some(format!("agent: {}, chosen by {file}", agent.display_name))
            }
            _ => None,
        },
        None => {
            Some(format!("agent: {} (`default_agent` in config.toml chooses another)", agent.display_name))
        }
    };
    Ok((agent, note))
}

/// A command of the user's own is a terminal program, whatever the agent is that it replaces.
pub fn driver_for(agent: &Agent, has_command: bool) -> Driver {
    if has_command { Driver::Terminal } else { agent.usual_driver() }
}

/// Plans the start of a task. Fails if the agent's program is not installed.
pub fn plan(
    config: &Config,
    agent: &Agent,
    file: PlannedTask<'_>,
    caller: &Caller,
) -> Result<LaunchPlan, Failure> {
    let env = environment::from_caller(&caller.env);
    let driver = file.driver.unwrap_or_else(|| driver_for(agent, file.command.is_some()));
    let program = match file.command {
        Some(command) => command.first().cloned().unwrap_or_default(),
        None => agent_command(agent, driver, file.session_known, &env)?[0].clone(),
    };
    if !has_tokens(&program) && find_program(&program, &env, file.directory).is_none() {
        let agent = agent.name.clone();
        return Err(match file.command {
            None => missing_program(agent, program, &env, file.directory),
            Some(_) if program.contains('/') => Failure::new(format!("cannot run `{program}`"))
                .code(FailureCode::CommandNotFound)
                .because(format!("{} is not an executable file", file.directory.join(&program).display()))
                .hint("name a program, or make the file executable"),
            Some(_) => Failure::new(format!("cannot find the command `{program}`"))
                .code(FailureCode::CommandNotFound)
                .because(format!("it is not in {} directories of PATH", path_directories(&env).count()))
                .hint("give its whole path, or install it"),
        });
    }
    Ok(LaunchPlan {
        driver,
        size: caller.size.unwrap_or_default(),
        open_files: caller.open_files,
        environment: env,
        fold: fold_settings(config, agent, &program),
        terms: run_terms(agent, driver),
        overrides: caller.overrides.clone(),
        fresh: false,
        command: file.command.map(<[String]>::to_vec),
        agent: agent.clone(),
    })
}

fn agent_command<'a>(
    agent: &'a Agent,
    driver: Driver,
    session_known: bool,
    env: &Environment,
) -> Result<&'a Vec<String>, Failure> {
    let is_installed = |program: &str| find_program(program, env, Path::new("/")).is_some();
    match driver {
        Driver::Acp => agent.launch_acp(is_installed),
        Driver::Terminal | Driver::StreamJson => agent.launch(driver, session_known),
    }
    .map_err(agent_failure)
}

/// The parts of a task that decide its launch.
#[derive(Debug, Clone, Copy)]
pub struct PlannedTask<'a> {
    /// The driver, if the task or the caller names one.
    pub driver: Option<Driver>,
    /// The command that replaces the agent's own.
    pub command: Option<&'a [String]>,
    /// The task has a session to resume.
    pub session_known: bool,
    /// Where to look for a command with a relative path.
    pub directory: &'a Path,
}

/// How the journal of an agent is folded. `program` is the first word of its command.
pub fn fold_settings(config: &Config, agent: &Agent, program: &str) -> FoldSettings {
    let timing = Timing {
        needs_input_after: config.needs_input_timeout(agent),
        stale_after: config.stale_timeout(agent),
    };
    let program = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    FoldSettings { timing, scrollback: config.scrollback as usize, program }
}

/// How a run is stopped and restarted.
pub fn run_terms(agent: &Agent, driver: Driver) -> RunTerms {
    let restart = match agent.restart(driver) {
        // The daemon restarts the connection and resumes the session.
        _ if driver == Driver::Acp => RestartPolicy::Never,
        Restart::Never => RestartPolicy::Never,
        Restart::OnCrash => RestartPolicy::OnCrash { max_restarts: agent.max_restarts(driver) },
    };
    // A session costs no process of its own.
    let takes_slot = driver != Driver::Acp;
    RunTerms { stop_grace: agent.stop_grace(driver), restart, takes_slot }
}

impl LaunchPlan {
    /// The launch spec for the keeper, and notes for the user.
    pub fn spec(
        &self,
        file: &TaskFile,
        context: &LaunchContext<'_>,
    ) -> Result<(LaunchSpec, Vec<String>), Failure> {
        let tokens = Tokens {
            task_id: context.name.id,
            slug: context.name.slug.clone(),
            body: file.body().to_vec(),
            project_root: context.root.to_path_buf(),
            worktree: context.worktree.to_path_buf(),
            session_id: file.fields().session_id.clone().filter(|_| !self.fresh),
            message: None,
            ports: context.ports,
        };
        let command = match &self.command {
            Some(command) => command,
            None => agent_command(&self.agent, self.driver, tokens.session_id.is_some(), &self.environment)?,
        };
        let mut argv = tokens.expand(command);
        let mut env = self.environment.clone();
        let (stdio, max_journal_bytes) = match self.driver {
            Driver::Terminal => {
                hooks::inject(&mut argv, context.run_dir, context.keeper_binary).map_err(|err| {
                    Failure::new("cannot write the agent's hooks").code(FailureCode::IoError).caused_by(&err)
                })?;
                (Stdio::Pty { size: self.size }, Some(limits::TERMINAL_JOURNAL_BYTES))
            }
            // The whole journal of a conversation is kept.
            Driver::StreamJson | Driver::Acp => {
                env.insert(REPORTS_STATES.into(), "1".into());
                (Stdio::Pipes, None)
            }
        };
        env.extend(self.agent.env.iter().map(|(name, value)| (name.into(), value.into())));
        env.extend(tokens.exported().into_iter().map(|(name, value)| (name.into(), value)));
        env.insert("PWD".into(), context.worktree.into());
        env.insert(environment::RUN_ID.into(), context.run.0.clone().into());
        env.insert(environment::SOCKET.into(), context.daemon_socket.into());
        env.insert(keeper::SOCKET_VARIABLE.into(), context.run_dir.socket().into());
        link_ssh_agent(&mut env, context.run_dir).map_err(|err| {
            Failure::new("cannot link the ssh agent's socket").code(FailureCode::IoError).caused_by(&err)
        })?;
        let notes = pass_long_values_by_file(&mut argv, &mut env, file, context.run_dir)?;
        let spec = LaunchSpec {
            run_id: context.run.0.clone(),
            name: context.name.to_string(),
            run_dir: context.run_dir.path().into(),
            start: Start::Spawn {
                argv: argv.into_iter().map(Bytes::from).collect(),
                env: environment::to_wire(env),
                cwd: context.worktree.into(),
                stdio,
            },
            segment_bytes: limits::SEGMENT_BYTES,
            max_journal_bytes,
            open_files: self.open_files,
            linger_ms: limits::KEEPER_LINGERS.as_millis() as u64,
            spare: self.agent.spare.clone(),
            owner: None,
        };
        Ok((spec, notes))
    }
}

impl LaunchPlan {
    /// The task does not share its process: the process knows the workspace, or runs another command than the agent's usual.
    pub fn has_own_connection(&self) -> bool {
        self.agent.per_workspace || self.command.is_some()
    }

    /// How to start a process that tasks share. It knows none of them.
    pub fn shared_connection_spec(&self) -> Result<ConnectionSpec, Failure> {
        let argv = agent_command(&self.agent, self.driver, false, &self.environment)?;
        let mut env = self.environment.clone();
        env.extend(self.agent.env.iter().map(|(name, value)| (name.into(), value.into())));
        drop_long_variables(&mut env);
        let home = env.get(OsStr::new("HOME")).map(PathBuf::from).filter(|home| home.is_dir());
        let cwd = home.unwrap_or_else(|| PathBuf::from("/"));
        env.insert("PWD".into(), cwd.clone().into());
        Ok(ConnectionSpec {
            argv: argv.iter().map(|word| Bytes::from(word.as_str())).collect(),
            env,
            cwd,
            spare: self.agent.spare.clone(),
            open_files: self.open_files,
        })
    }

    /// The first message, if the agent takes it only at its prompt. The command that resumes a session has no message.
    pub fn typed_message(&self, file: &TaskFile) -> Option<Bytes> {
        let text = tokens::first_message(file.body());
        let is_own = self.command.is_some() && self.driver == Driver::Terminal;
        let is_resumed = file.fields().session_id.is_some() && !self.fresh;
        let is_typed = match self.agent.first_message(self.driver) {
            _ if is_own => false,
            FirstMessage::Typed => true,
            FirstMessage::InCommand => is_resumed,
            FirstMessage::ExportedOnly => false,
        };
        (is_typed && !text.is_empty()).then(|| Bytes(text.to_vec()))
    }
}

/// Exec takes no single value over 128 KiB. A longer prompt goes to a file, and the agent gets its path. Returns notes for
/// the user.
fn pass_long_values_by_file(
    argv: &mut [OsString],
    env: &mut Environment,
    file: &TaskFile,
    run_dir: &RunDir,
) -> Result<Vec<String>, Failure> {
    let path = run_dir.path().join("prompt.md");
    let is_replaced = shorten_arguments(argv, file.body(), &path)?;
    let dropped = drop_long_variables(env);
    let (text, others): (Vec<String>, Vec<String>) =
        dropped.into_iter().partition(|name| name == tokens::PROMPT || name == tokens::BODY);
    let mut notes: Vec<String> = others
        .iter()
        .map(|name| format!("the variable {name} is too long for a program: the agent runs without it"))
        .collect();
    if is_replaced || !text.is_empty() {
        agency_store::atomic::write(&path, tokens::first_message(file.body())).map_err(|err| {
            Failure::new(format!("cannot write {}", path.display()))
                .code(FailureCode::IoError)
                .caused_by(&err)
        })?;
        env.insert(environment::PROMPT_FILE.into(), path.clone().into());
        let size = file.body().len();
        let instead = match is_replaced {
            true => format!("the agent gets the path {}", path.display()),
            false => format!("{} names the file that has it", environment::PROMPT_FILE),
        };
        notes.push(format!("the task's message is too long for a command ({size} bytes): {instead}"));
    }
    Ok(notes)
}

/// Replaces the task's text by the path of its file in arguments that are too long. Returns whether it replaced any.
fn shorten_arguments(argv: &mut [OsString], body: &[u8], path: &Path) -> Result<bool, Failure> {
    let text: Vec<u8> = tokens::first_message(body).iter().copied().filter(|byte| *byte != 0).collect();
    let instead = format!("Your task is in the file {}. Read it first.", path.display());
    let mut is_replaced = false;
    for (position, argument) in argv.iter_mut().enumerate() {
        if argument.len() <= limits::LONGEST_EXEC_VALUE {
            continue;
        }
        let shortened = replace_all(argument.as_bytes(), &text, instead.as_bytes());
        if shortened.len() > limits::LONGEST_EXEC_VALUE {
            return Err(Failure::new(format!("argument {position} of the agent's command is too long"))
                .code(FailureCode::InvalidArgument)
                .because(format!("it has {} bytes, and programs take 128 KiB at most", argument.len()))
                .hint("put it in a file and name that file in the command"));
        }
        *argument = OsString::from_vec(shortened);
        is_replaced = true;
    }
    Ok(is_replaced)
}

fn replace_all(haystack: &[u8], needle: &[u8], instead: &[u8]) -> Vec<u8> {
    // A text as short as its replacement may occur anywhere by chance, and is not what is too long.
    if needle.len() <= instead.len() {
        return haystack.to_vec();
    }
    let (mut result, mut rest) = (Vec::new(), haystack);
    while let Some((first, tail)) = rest.split_first() {
        match rest.strip_prefix(needle) {
            Some(after) => {
                result.extend_from_slice(instead);
                rest = after;
            }
            None => {
                result.push(*first);
                rest = tail;
            }
        }
    }
    result
}

/// The error of an agent as a person reads it.
pub fn agent_failure(error: AgentError) -> Failure {
    let code = match &error {
        AgentError::Unknown { .. } | AgentError::NoCommand { .. } | AgentError::CannotRun { .. } => {
            FailureCode::AgentNotConfigured
        }
        AgentError::CannotResume { .. } => FailureCode::Unsupported,
        AgentError::NotInstalled { .. } | AgentError::NotExecutable { .. } => FailureCode::AgentNotInstalled,
    };
    Failure::new(error.to_string()).code(code).hint(error.hint())
}

/// Why the program of an agent cannot be started.
fn missing_program(agent: String, program: String, env: &Environment, directory: &Path) -> Failure {
    let places = path_directories(env).map(|directory| directory.join(&program));
    let named = program.contains('/').then(|| directory.join(&program));
    let is_file = |path: &PathBuf| path.is_file();
    agent_failure(match named.into_iter().chain(places).find(is_file) {
        Some(path) => AgentError::NotExecutable { agent, path: path.display().to_string() },
        None => AgentError::NotInstalled { agent, program },
    })
}

/// A path with a token can be checked only once the workspace exists.
fn has_tokens(program: &str) -> bool {
    program.contains("$AGENCY_")
}

#[cfg(test)]
mod tests {
    use agency_core::task_file::Fields;

    use super::*;

    struct Passed {
        argv: Vec<String>,
        env: Environment,
        notes: Vec<String>,
        prompt_file: Option<String>,
        path: String,
    }

    fn pass(body: &str, argv: &[&str], env: &[(&str, &str)]) -> Result<Passed, Failure> {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir(dir.path().to_path_buf());
        let file = TaskFile::create(Fields::default(), body.as_bytes().to_vec());
        let mut argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        let mut env: Environment = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let notes = pass_long_values_by_file(&mut argv, &mut env, &file, &run_dir)?;
        let path = dir.path().join("prompt.md");
        Ok(Passed {
            argv: argv.into_iter().map(|argument| argument.into_string().unwrap()).collect(),
            env,
            notes,
            prompt_file: std::fs::read_to_string(&path).ok(),
            path: path.display().to_string(),
        })
    }

    fn long(letter: &str) -> String {
        letter.repeat(limits::LONGEST_EXEC_VALUE + 1)
    }

    #[test]
    fn what_fits_is_passed_as_it_is() {
        let passed = pass("do it\n", &["tool", "do it"], &[("AGENCY_PROMPT", "do it")]).unwrap();
        assert_eq!(
            (passed.argv, passed.notes, passed.prompt_file),
            (vec!["tool".into(), "do it".into()], vec![], None)
        );
    }

    #[test]
    fn a_long_text_waits_in_a_file_and_the_rest_of_its_argument_stays() {
        let text = long("t");
        let argument = format!("--prompt={text}");
        let passed =
            pass(&text, &["tool", &argument], &[("AGENCY_PROMPT", &text), ("EDITOR", "vi")]).unwrap();
        let path = &passed.path;
        assert_eq!(passed.argv[1], format!("--prompt=Your task is in the file {path}. Read it first."));
        assert_eq!(passed.prompt_file, Some(text));
        let names: Vec<_> = passed.env.keys().map(|name| name.to_str().unwrap()).collect();
        assert_eq!(names, ["AGENCY_PROMPT_FILE", "EDITOR"]);
        assert_eq!(passed.notes.len(), 1);
        assert!(passed.notes[0].ends_with(&format!("the agent gets the path {path}")), "{}", passed.notes[0]);
    }

    #[test]
    fn another_argument_that_is_too_long_is_an_error_that_names_it() {
        for body in ["", "x", "do it"] {
            let failure = pass(body, &["tool", "--all", &long("x")], &[]).err().expect("refused");
            assert_eq!(failure.message, "argument 2 of the agent's command is too long", "{body:?}");
        }
    }

    #[test]
    fn a_long_variable_of_the_caller_is_named_and_the_text_is_not_blamed() {
        let passed = pass("do it", &["tool"], &[("SECRETS", &long("s")), ("EDITOR", "vi")]).unwrap();
        assert_eq!(
            passed.notes,
            ["the variable SECRETS is too long for a program: the agent runs without it"]
        );
        assert_eq!(passed.prompt_file, None);
        assert_eq!(passed.env.len(), 1);
    }
}
