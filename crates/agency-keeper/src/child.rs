//! Starting the agent's process.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio as Spawned};

use agency_api::keeper::Stdio;
use agency_api::{Bytes, ProcessIdentity};
use agency_journal::ExitStatus;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::launch::Failure;
use crate::platform;
use crate::port::{Pipes, Port};
use crate::signals;
use crate::terminal::Terminal;

/// What to start, borrowed from the launch spec.
pub(crate) struct Recipe<'a> {
    pub(crate) argv: &'a [Bytes],
    pub(crate) env: &'a [(Bytes, Bytes)],
    pub(crate) cwd: &'a Bytes,
    pub(crate) stdio: Stdio,
    pub(crate) open_files: Option<(u64, u64)>,
}

pub(crate) fn spawn(recipe: &Recipe<'_>) -> Result<(ProcessIdentity, Port), Failure> {
    match recipe.stdio {
        Stdio::Pty { size } => {
            let terminal = Terminal::open(size).map_err(Failure::at("open a terminal"))?;
            let pid = spawn_in(recipe, &terminal)?;
            Ok((identity(pid)?, Port::terminal(terminal)))
        }
        Stdio::Pipes => spawn_on_pipes(recipe),
    }
}

fn spawn_in(recipe: &Recipe<'_>, terminal: &Terminal) -> Result<u32, Failure> {
    let end = || terminal.slave().map(Spawned::from).map_err(Failure::at("open a terminal"));
    let mut command = command(recipe)?;
    command.stdin(end()?).stdout(end()?).stderr(end()?);
    before_exec(&mut command, recipe, true);
    start(&mut command, recipe)
}

fn spawn_on_pipes(recipe: &Recipe<'_>) -> Result<(ProcessIdentity, Port), Failure> {
    let pipe = || io::pipe().map_err(Failure::at("open pipes"));
    let (stdin, our_stdin) = pipe()?;
    let (our_stdout, stdout) = pipe()?;
    let (our_stderr, stderr) = pipe()?;
    let mut command = command(recipe)?;
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    before_exec(&mut command, recipe, false);
    let pid = start(&mut command, recipe)?;
    let pipes = Pipes::new(our_stdin.into(), our_stdout.into(), our_stderr.into())
        .map_err(Failure::at("open pipes"))?;
    Ok((identity(pid)?, Port::Pipes(pipes)))
}

fn command(recipe: &Recipe<'_>) -> Result<Command, Failure> {
    // Entered here as well, because afterwards its failure looks like that of the program.
    let cwd = recipe.cwd.as_path();
    open_directory(recipe.cwd).map_err(Failure::at(format!("enter {}", cwd.display())))?;
    let (program, arguments) =
        recipe.argv.split_first().ok_or_else(|| Failure::new("exec: no command", invalid()))?;
    let mut command = Command::new(program.as_os_str());
    command.args(arguments.iter().map(Bytes::as_os_str)).current_dir(cwd).env_clear();
    command.envs(recipe.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())));
    Ok(command)
}

fn open_directory(path: &Bytes) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    let directory = rustix::fs::open(
        path.as_path(),
        OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY,
        Mode::empty(),
    )?;
    rustix::fs::accessat(directory.as_fd(), ".", rustix::fs::Access::EXEC_OK, rustix::fs::AtFlags::empty())?;
    Ok(directory)
}

#[allow(unsafe_code)]
fn before_exec(command: &mut Command, recipe: &Recipe<'_>, has_terminal: bool) {
    let limit = recipe.open_files.map(allowed_limit);
    let prepare = move || {
        rustix::process::setsid()?;
        if has_terminal {
            rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        }
        if let Some(limit) = limit {
            setrlimit(Resource::Nofile, limit)?;
        }
        signals::reset_for_exec()
    };
    // SAFETY: system calls only, in a process that never had a second thread; nothing allocates.
    unsafe { command.pre_exec(prepare) };
}

/// The user's own limit, as far as we may give it.
fn allowed_limit((soft, hard): (u64, u64)) -> Rlimit {
    let ceiling = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    Rlimit { current: Some(soft.min(hard).min(ceiling)), maximum: Some(hard.min(ceiling)) }
}

fn start(command: &mut Command, recipe: &Recipe<'_>) -> Result<u32, Failure> {
    let program = recipe.argv.first().map(|program| program.as_path().display().to_string());
    let what = format!("exec {}", program.unwrap_or_default());
    // Reaped by number with all the others, never through this handle.
    command.spawn().map(|child| child.id()).map_err(Failure::at(what))
}

fn identity(pid: u32) -> Result<ProcessIdentity, Failure> {
    // Even when it ended at once: nobody has reaped it yet.
    platform::identity_of(pid as i32)
        .ok_or_else(|| Failure::new("identify the agent", io::ErrorKind::NotFound.into()))
}

fn invalid() -> io::Error {
    rustix::io::Errno::INVAL.into()
}

/// A wait status as the kernel encodes it.
pub(crate) fn exit_status(wait_status: i32) -> ExitStatus {
    match (wait_status & 0x7f, (wait_status >> 8) & 0xff) {
        (0, code) => ExitStatus::Code(code),
        (0x7f, _) => ExitStatus::Unknown,
        (signal, _) => ExitStatus::Signal(signal),
    }
}
