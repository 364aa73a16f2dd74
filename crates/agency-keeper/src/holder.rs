//! The holder: the keeper's parent, which keeps the terminal open if the keeper is killed.
//!
//! It forks a new keeper at once, so the agent survives even if the daemon, which holds the terminal too, was
//! killed at the same moment. It has nothing else to do: it sleeps until the keeper ends.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use agency_api::ProcessIdentity;
use agency_api::keeper::{LaunchSpec, Start};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitOptions, waitpid};

use crate::platform;

/// The kernel's short name of a holder, so that `ps` tells a holder from a keeper.
pub(crate) const NAME: &str = "agency-holder";

/// After this many keepers in a row that were killed within a [`PAUSE`], the next one waits that long: the cause may
/// be the keeper itself.
const QUICK_DEATHS: u32 = 10;
const PAUSE: Duration = Duration::from_secs(1);

/// The next action of a process that returns from [`hold`].
pub(crate) enum Next {
    /// Exit: the keeper has exited, or it was killed before it had an agent.
    Exit,
    /// Be the new keeper.
    Keep { spec: Box<LaunchSpec>, master: OwnedFd },
}

/// Waits for the keeper to end, and forks a new one whenever it was killed. The keeper writes its agent into the
/// pipe when its launch is complete.
pub(crate) fn hold(
    mut keeper: Pid,
    mut spec: LaunchSpec,
    master: OwnedFd,
    agent: PipeReader,
) -> io::Result<Next> {
    platform::set_own_name(NAME);
    let mut agent = Some(agent);
    let mut forked_at = Instant::now();
    let mut quick_deaths = 0;
    while wait_for_kill(keeper)? {
        match agent.take().map(read_agent).transpose()? {
            Some(Some(child)) => spec = rescue_spec(spec, child),
            Some(None) => break,
            None => {}
        }
        quick_deaths = if forked_at.elapsed() < PAUSE { quick_deaths + 1 } else { 0 };
        if quick_deaths > QUICK_DEATHS {
            std::thread::sleep(PAUSE);
        }
        forked_at = Instant::now();
        match fork()? {
            Some(next) => keeper = next,
            None => return Ok(Next::Keep { spec: Box::new(spec), master }),
        }
    }
    Ok(Next::Exit)
}

/// Waits until the keeper has ended, and returns whether a signal killed it. A keeper that exits has ended its run, or
/// found another keeper on it.
fn wait_for_kill(keeper: Pid) -> io::Result<bool> {
    let ended = retry_on_intr(|| waitpid(Some(keeper), WaitOptions::empty()))?;
    Ok(ended.is_some_and(|(_, status)| status.signaled()))
}

/// Wakes the holder if it is suspended, so that it sees the end of the keeper and ends too. The keeper calls this last.
pub(crate) fn wake() {
    let Some(parent) = rustix::process::getppid() else { return };
    if platform::process(parent.as_raw_nonzero().get()).is_some_and(|process| process.name == NAME) {
        // A holder that has just ended needs no signal.
        rustix::process::kill_process(parent, Signal::CONT).ok();
    }
}

/// Tells the holder that the launch is complete, and which process is the agent.
pub(crate) fn write_agent(mut pipe: PipeWriter, agent: Option<&ProcessIdentity>) -> io::Result<()> {
    pipe.write_all(&serde_json::to_vec(&agent)?)
}

/// `None` if the keeper was killed before its launch was complete.
fn read_agent(mut pipe: PipeReader) -> io::Result<Option<Option<ProcessIdentity>>> {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes)?;
    if bytes.is_empty() { Ok(None) } else { Ok(Some(serde_json::from_slice(&bytes)?)) }
}

fn rescue_spec(spec: LaunchSpec, child: Option<ProcessIdentity>) -> LaunchSpec {
    let (Start::Spawn { env, .. } | Start::Rescue { env, .. }) = spec.start;
    LaunchSpec { start: Start::Rescue { child, env }, ..spec }
}

/// The child's pid, or `None` in the child itself.
#[allow(unsafe_code)]
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: there is only one thread, so the child may continue as a normal process.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}
