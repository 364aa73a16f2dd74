//! What a start will do, found out before anything is made: which agent, which command, on which terms.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use agency_api::keeper::{LaunchSpec, Size, Start, Stdio};
use agency_api::method::Caller;
use agency_api::paths::RunDir;
use agency_api::{Bytes, Failure};
use agency_core::agent::{Agent, AgentError, Driver, Restart};
use agency_core::agent_state::Timing;
use agency_core::config::Config;
use agency_core::ids::RunId;
use agency_core::restart::RestartPolicy;
use agency_core::slug::TaskName;
use agency_core::supervisor::RunTerms;
use agency_core::task_file::TaskFile;
use agency_core::tokens::{self, Tokens};

use crate::environment::{self, Environment};
use crate::fold::FoldSettings;
use crate::limits;

/// A start that is known to be possible.
#[derive(Debug, Clone)]
pub struct LaunchPlan {
    pub agent: Agent,
    pub driver: Driver,
    pub size: Size,
    pub open_files: Option<(u64, u64)>,
    pub environment: Environment,
    pub fold: FoldSettings,
    pub terms: RunTerms,
    /// Instead of the agent's own command: what `agency new SLUG -- COMMAND…` was given.
    pub command: Option<Vec<String>>,
}

/// What differs from one launch of a task to the next.
#[derive(Debug)]
pub struct Place<'a> {
    pub name: &'a TaskName,
    pub root: &'a Path,
    pub worktree: &'a Path,
    pub run: &'a RunId,
    pub run_dir: &'a RunDir,
    pub daemon_socket: &'a Path,
}

/// Which agent a task that names none gets, and a word about it.
pub fn choose_agent<'a>(
    config: &'a Config,
    asked: Option<&str>,
    env: &Environment,
) -> Result<(&'a Agent, Option<String>), Failure> {
    if let Some(name) = asked {
        return Ok((config.agents.find(name).map_err(agent_failure)?, None));
    }
    let agent = config.choose_default_agent(|program| find_program(program, env, Path::new("/")).is_some());
    let agent = agent.map_err(agent_failure)?;
    let note = match config.default_agent {
        Some(_) => None,
        None => Some(format!("agent: {} (`default_agent` in config.toml chooses another)", agent.name)),
    };
    Ok((agent, note))
}

pub fn plan(
    config: &Config,
    agent: &Agent,
    file: PlannedTask<'_>,
    caller: &Caller,
) -> Result<LaunchPlan, Failure> {
    let env = environment::from_caller(&caller.env);
    let driver = file.driver.unwrap_or(agent.driver);
    if driver != Driver::Terminal {
        return Err(Failure::new(format!("the {driver} driver is not there yet"))
            .because(format!("agent {} was asked to run with it", agent.name))
            .hint("pass --driver terminal"));
    }
    let program = match file.command {
        Some(command) => command.first().cloned().unwrap_or_default(),
        None => agent.launch(driver, file.session_known).map_err(agent_failure)?[0].clone(),
    };
    if !mentions_place(&program) && find_program(&program, &env, file.directory).is_none() {
        let agent = agent.name.clone();
        return Err(match file.command {
            None => agent_failure(AgentError::NotInstalled { agent, program }),
            Some(_) => Failure::new(format!("cannot find the command `{program}`"))
                .because(format!("it is not in {} directories of PATH", path_directories(&env).count()))
                .hint("give its whole path, or install it"),
        });
    }
    Ok(LaunchPlan {
        driver,
        size: caller.size.unwrap_or_default(),
        open_files: caller.open_files,
        environment: env,
        fold: fold_settings(config, agent),
        terms: terms(agent, driver),
        command: file.command.map(<[String]>::to_vec),
        agent: agent.clone(),
    })
}

/// What of a task decides its launch.
#[derive(Debug, Clone, Copy)]
pub struct PlannedTask<'a> {
    pub driver: Option<Driver>,
    pub command: Option<&'a [String]>,
    pub session_known: bool,
    /// Where a command with a relative path is looked for.
    pub directory: &'a Path,
}

pub fn fold_settings(config: &Config, agent: &Agent) -> FoldSettings {
    let timing = Timing {
        needs_input_after: config.needs_input_timeout(agent),
        stale_after: config.stale_timeout(agent),
    };
    FoldSettings { timing, scrollback: config.scrollback as usize }
}

pub fn terms(agent: &Agent, driver: Driver) -> RunTerms {
    let restart = match agent.restart(driver) {
        Restart::Never => RestartPolicy::Never,
        Restart::OnCrash => RestartPolicy::OnCrash { max_restarts: agent.max_restarts(driver) },
    };
    RunTerms { stop_grace: agent.stop_grace(driver), restart }
}

impl LaunchPlan {
    /// The launch, and what the user should know about it.
    pub fn spec(&self, file: &TaskFile, place: &Place<'_>) -> Result<(LaunchSpec, Vec<String>), Failure> {
        let tokens = Tokens {
            task_id: place.name.id,
            slug: place.name.slug.clone(),
            body: file.body().to_vec(),
            project_root: place.root.to_path_buf(),
            worktree: place.worktree.to_path_buf(),
            session_id: file.fields().session_id.clone(),
            message: None,
        };
        let action = match &self.command {
            Some(command) => command,
            None => self.agent.launch(self.driver, tokens.session_id.is_some()).map_err(agent_failure)?,
        };
        let mut argv = tokens.expand(action);
        let mut env = self.environment.clone();
        env.extend(self.agent.env.iter().map(|(name, value)| (name.into(), value.into())));
        env.extend(tokens.exported().into_iter().map(|(name, value)| (name.into(), value)));
        env.insert("PWD".into(), place.worktree.into());
        env.insert(environment::RUN_ID.into(), place.run.0.clone().into());
        env.insert(environment::SOCKET.into(), place.daemon_socket.into());
        link_ssh_agent(&mut env, place.run_dir)?;
        let notes = pass_long_values_by_file(&mut argv, &mut env, file, place.run_dir)?;
        let spec = LaunchSpec {
            run_id: place.run.0.clone(),
            name: place.name.to_string(),
            run_dir: place.run_dir.path().into(),
            start: Start::Spawn {
                argv: argv.into_iter().map(Bytes::from).collect(),
                env: environment::to_wire(env),
                cwd: place.worktree.into(),
                stdio: Stdio::Pty { size: self.size },
            },
            segment_bytes: limits::SEGMENT_BYTES,
            max_journal_bytes: Some(limits::TERMINAL_JOURNAL_BYTES),
            open_files: self.open_files,
            linger_ms: limits::KEEPER_LINGERS.as_millis() as u64,
            spare: self.agent.spare.clone(),
        };
        Ok((spec, notes))
    }
}

/// Replaced by a link that follows the user: their agent socket is another one after each login.
fn link_ssh_agent(env: &mut Environment, run_dir: &RunDir) -> Result<(), Failure> {
    let Some(target) = env.get(OsStr::new("SSH_AUTH_SOCK")).filter(|target| !target.is_empty()) else {
        return Ok(());
    };
    let link = refresh_ssh_link(run_dir, target)
        .map_err(|err| Failure::new("cannot link the ssh agent's socket").caused_by(&err))?;
    env.insert("SSH_AUTH_SOCK".into(), link.into());
    Ok(())
}

pub fn refresh_ssh_link(run_dir: &RunDir, target: &OsStr) -> std::io::Result<PathBuf> {
    let link = run_dir.path().join("ssh");
    if Path::new(target) == link {
        // A caller inside this very run.
        return Ok(link);
    }
    let fresh = run_dir.path().join("ssh.new");
    if fresh.symlink_metadata().is_ok() {
        std::fs::remove_file(&fresh)?;
    }
    std::os::unix::fs::symlink(target, &fresh)?;
    std::fs::rename(&fresh, &link)?;
    Ok(link)
}

/// Exec takes no single value beyond 128 KiB: a longer prompt waits in a file, and the agent is told where.
fn pass_long_values_by_file(
    argv: &mut [OsString],
    env: &mut Environment,
    file: &TaskFile,
    run_dir: &RunDir,
) -> Result<Vec<String>, Failure> {
    let too_long = |value: &OsString| value.len() > limits::LONGEST_EXEC_VALUE;
    if !argv.iter().any(too_long) && !env.values().any(too_long) {
        return Ok(Vec::new());
    }
    let path = run_dir.path().join("prompt.md");
    crate::atomic::write(&path, tokens::first_message(file.body()))
        .map_err(|err| Failure::new(format!("cannot write {}", path.display())).caused_by(&err))?;
    for argument in argv.iter_mut().filter(|argument| too_long(argument)) {
        *argument = format!("Your task is in the file {}. Read it first.", path.display()).into();
    }
    env.retain(|_, value| !too_long(value));
    env.insert(environment::PROMPT_FILE.into(), path.clone().into());
    let size = file.body().len();
    Ok(vec![format!(
        "the task's text is too long for a command ({size} bytes): the agent is told to read {}",
        path.display()
    )])
}

pub fn agent_failure(error: AgentError) -> Failure {
    Failure::new(error.to_string()).hint(error.hint())
}

/// A program whose path contains a token is known only once the workspace is there.
fn mentions_place(program: &str) -> bool {
    program.contains("$AGENCY_")
}

/// Where exec would find it.
pub fn find_program(program: &str, env: &Environment, directory: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(directory.join(program)).filter(|path| is_executable(path));
    }
    path_directories(env).map(|dir| dir.join(program)).find(|path| is_executable(path))
}

fn path_directories(env: &Environment) -> impl Iterator<Item = PathBuf> + '_ {
    let path =
        env.get(OsStr::new("PATH")).map_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"), OsString::as_os_str);
    path.as_bytes().split(|byte| *byte == b':').map(|dir| PathBuf::from(OsStr::from_bytes(dir)))
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
