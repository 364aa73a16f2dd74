//! Starts the agent's process on a terminal or on pipes. Does not watch or end it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio as Spawned};

use agency_api::{Bytes, ProcessIdentity};
use agency_journal::ExitStatus;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::failure::Failure;
use crate::platform;
use crate::port::{Pipes, Port};
use crate::signals;
use crate::terminal::Terminal;

/// A program to start; borrows from the launch spec.
pub(crate) struct SpawnSpec<'a> {
    pub(crate) argv: &'a [Bytes],
    pub(crate) env: &'a [(Bytes, Bytes)],
    pub(crate) cwd: &'a Bytes,
    pub(crate) open_files: Option<(u64, u64)>,
}

/// Starts the agent on this terminal, or on pipes.
pub(crate) fn spawn(
    spec: &SpawnSpec<'_>,
    terminal: Option<Terminal>,
) -> Result<(ProcessIdentity, Port), Failure> {
    match terminal {
        Some(terminal) => {
            let pid = spawn_on_terminal(spec, &terminal)?;
            Ok((identify(pid)?, Port::terminal(terminal)))
        }
        None => spawn_on_pipes(spec),
    }
}

fn spawn_on_terminal(spec: &SpawnSpec<'_>, terminal: &Terminal) -> Result<u32, Failure> {
    let end = || terminal.slave().map(Spawned::from).map_err(Failure::at("open a terminal"));
    let mut command = build_command(spec)?;
    command.stdin(end()?).stdout(end()?).stderr(end()?);
    prepare_exec(&mut command, spec, true);
    run_command(&mut command, spec)
}

fn spawn_on_pipes(spec: &SpawnSpec<'_>) -> Result<(ProcessIdentity, Port), Failure> {
    let pipe = || io::pipe().map_err(Failure::at("open pipes"));
    let (stdin, our_stdin) = pipe()?;
    let (our_stdout, stdout) = pipe()?;
    let (our_stderr, stderr) = pipe()?;
    let mut command = build_command(spec)?;
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    prepare_exec(&mut command, spec, false);
    let pid = run_command(&mut command, spec)?;
    let pipes = Pipes::new(our_stdin.into(), our_stdout.into(), our_stderr.into())
        .map_err(Failure::at("open pipes"))?;
    Ok((identify(pid)?, Port::Pipes(pipes)))
}

fn build_command(spec: &SpawnSpec<'_>) -> Result<Command, Failure> {
    // Check the directory here as well: inside `spawn` a bad directory looks like a missing program.
    let cwd = spec.cwd.as_path();
    open_directory(spec.cwd).map_err(Failure::at(format!("enter {}", cwd.display())))?;
    let (program, arguments) =
        spec.argv.split_first().ok_or_else(|| Failure::new("exec: no command", invalid()))?;
    let mut command = Command::new(program.as_os_str());
    command.args(arguments.iter().map(Bytes::as_os_str)).current_dir(cwd).env_clear();
    command.envs(spec.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())));
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
fn prepare_exec(command: &mut Command, spec: &SpawnSpec<'_>, has_terminal: bool) {
    let limit = spec.open_files.map(allowed_limit);
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

/// The user's own limit, capped at what this process may set.
fn allowed_limit((soft, hard): (u64, u64)) -> Rlimit {
    let ceiling = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    Rlimit { current: Some(soft.min(hard).min(ceiling)), maximum: Some(hard.min(ceiling)) }
}

fn run_command(command: &mut Command, spec: &SpawnSpec<'_>) -> Result<u32, Failure> {
    let program = spec.argv.first().map(|program| program.as_path().display().to_string());
    let what = format!("exec {}", program.unwrap_or_default());
    // The loop reaps all children by pid, never through this handle.
    command.spawn().map(|child| child.id()).map_err(Failure::at(what))
}

fn identify(pid: u32) -> Result<ProcessIdentity, Failure> {
    // This also works if the agent ended at once, because no process has reaped it yet.
    platform::identity_of(pid as i32)
        .ok_or_else(|| Failure::new("identify the agent", io::ErrorKind::NotFound.into()))
}

fn invalid() -> io::Error {
    rustix::io::Errno::INVAL.into()
}

/// Decodes a wait status in the kernel's encoding.
pub(crate) fn exit_status(wait_status: i32) -> ExitStatus {
    match (wait_status & 0x7f, (wait_status >> 8) & 0xff) {
        (0, code) => ExitStatus::Code(code),
        (0x7f, _) => ExitStatus::Unknown,
        (signal, _) => ExitStatus::Signal(signal),
    }
}
