//! Terminals beside an agent: starts one under a keeper of its own, and finds out what runs in it.
//!
//! Not here: which terminals a task has (see the daemon), and whether a program may be ended (see `agency_core::shell`).

use std::path::{Path, PathBuf};

use agency_api::keeper::{LaunchSpec, Size, Start, Stdio};
use agency_api::paths::RunDir;
use agency_api::{Bytes, Failure, FailureCode};
use agency_core::shell::{Opened, running_group};
use agency_keeper::pidfile::PidFile;
use agency_keeper::platform;

use crate::environment::{self, Environment, drop_long_variables, find_program, link_ssh_agent};
use crate::launch::start_keeper;
use crate::limits;
use crate::report::ReportSink;
use crate::run_context::RunContext;
use crate::run_meta::{RunMeta, ShellMeta};
use crate::start::{StartedRun, launch_failure, prepare_directory, start_and_follow};

/// Everything that a terminal is started with.
#[derive(Debug)]
pub struct ShellLaunch {
    /// The program and its arguments.
    pub argv: Vec<Bytes>,
    /// The environment, without the variables of the run itself.
    pub environment: Environment,
    /// The directory of the workspace.
    pub directory: PathBuf,
    /// The size of the terminal.
    pub size: Size,
    /// The daemon's socket.
    pub socket: PathBuf,
    /// The file of the run on disk.
    pub meta: RunMeta,
    /// The terms under which the daemon follows the run.
    pub context: RunContext,
}

impl ShellLaunch {
    /// Starts the terminal and follows it. A start that fails leaves no process and no directory.
    pub async fn run(self, sink: ReportSink) -> Result<StartedRun, Failure> {
        let (context, meta) = (self.context.clone(), self.meta.clone());
        start_and_follow(context, meta, sink, move || self.start()).await
    }

    /// Blocking.
    fn start(self) -> Result<Vec<String>, Failure> {
        self.check_program()?;
        prepare_directory(&self.context.dir, &self.meta)?;
        let binary = self.context.keeper_binary.clone();
        let (spec, notes) = self.spec()?;
        start_keeper(&binary, &spec, None, None).map_err(|err| launch_failure(&err))?;
        Ok(notes)
    }

    fn check_program(&self) -> Result<(), Failure> {
        let none = || Failure::new("there is no command to run").code(FailureCode::InvalidArgument);
        let program = self.argv.first().ok_or_else(none)?;
        // exec itself refuses a name that is not text and that does not exist.
        let Some(program) = program.as_path().to_str() else { return Ok(()) };
        match find_program(program, &self.environment, &self.directory) {
            Some(_) => Ok(()),
            None => Err(Failure::new(format!("cannot find the command `{program}`"))
                .code(FailureCode::CommandNotFound)
                .because(format!("it is neither in PATH nor in {}", self.directory.display()))
                .hint("give its whole path, or install it")),
        }
    }

    fn spec(self) -> Result<(LaunchSpec, Vec<String>), Failure> {
        let (dir, mut env) = (&self.context.dir, self.environment);
        let name = self.meta.shell.as_ref().map(|shell| shell.name.clone()).unwrap_or_default();
        env.insert("PWD".into(), self.directory.clone().into());
        env.insert(environment::RUN_ID.into(), self.context.id.0.clone().into());
        env.insert(environment::SOCKET.into(), self.socket.into());
        env.insert(environment::SHELL_NAME.into(), name.into());
        link_ssh_agent(&mut env, dir).map_err(|err| {
            Failure::new("cannot link the ssh agent's socket").code(FailureCode::IoError).caused_by(&err)
        })?;
        let dropped = drop_long_variables(&mut env);
        let notes = dropped
            .iter()
            .map(|name| format!("the variable {name} is too long for a program: it is left out"))
            .collect();
        let spec = LaunchSpec {
            run_id: self.context.id.0.clone(),
            name: self.meta.process_name(),
            run_dir: dir.path().into(),
            start: Start::Spawn {
                argv: self.argv,
                env: environment::to_wire(env),
                cwd: self.directory.into(),
                stdio: Stdio::Pty { size: self.size },
            },
            segment_bytes: limits::SEGMENT_BYTES,
            max_journal_bytes: Some(limits::TERMINAL_JOURNAL_BYTES),
            open_files: self.context.open_files,
            linger_ms: limits::KEEPER_LINGERS.as_millis() as u64,
            spare: self.context.spare.clone(),
            owner: self.context.owner.clone(),
        };
        Ok((spec, notes))
    }
}

/// The program of a terminal, and what runs in it now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellActivity {
    /// The process id of the program that the terminal was opened with.
    pub pid: Option<i32>,
    /// The command line of the program that runs in it. `None` while the user's shell is at its prompt.
    pub running: Option<String>,
}

/// Looks at the processes of a terminal. Reads two or three files of `/proc`.
pub fn look(dir: &RunDir, shell: &ShellMeta) -> ShellActivity {
    let file = PidFile::read(&dir.pid_file()).ok().flatten();
    let Some(child) = file.and_then(|file| file.child).filter(platform::is_alive) else {
        return ShellActivity::default();
    };
    let opened = if shell.command.is_some() { Opened::Command } else { Opened::UserShell };
    let group = running_group(opened, child.pid, platform::foreground_group(child.pid));
    ShellActivity { pid: Some(child.pid), running: group.map(command_line) }
}

/// The command line of the first process of a group, or its number if that process has ended.
fn command_line(group: i32) -> String {
    let words: Vec<String> = platform::arguments(group)
        .iter()
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .filter(|word| !word.is_empty())
        .collect();
    let name = || platform::process(group).map(|process| process.name);
    match words.split_first() {
        Some((program, rest)) => {
            let program = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
            std::iter::once(program.as_ref())
                .chain(rest.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join(" ")
        }
        None => name().unwrap_or_else(|| format!("process group {group}")),
    }
}
