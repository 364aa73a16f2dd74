//! Starts a keeper: sends the launch spec through a pipe and reads one line back.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use agency_api::keeper::{Frame, LaunchAnswer, LaunchSpec, RESCUE_FD};
use command_fds::{CommandFdExt, FdMapping};

use crate::fold::NO_RECORD;

/// Why a keeper could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The keeper's program cannot be run.
    #[error("cannot start the keeper {}", path.display())]
    Keeper {
        /// The program.
        path: std::path::PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The keeper exited before it answered.
    #[error("the keeper ended without an answer")]
    Silent,
    /// The keeper could not do one of its steps.
    #[error("cannot {what}")]
    Step {
        /// The step, as an infinitive.
        what: String,
        /// The cause.
        source: io::Error,
    },
}

/// Blocking. `seed` becomes the first checkpoint in the run's journal. `rescued` is the PTY master of a run whose keeper was
/// killed.
pub fn start_keeper(
    keeper: &Path,
    spec: &LaunchSpec,
    seed: Option<Vec<u8>>,
    rescued: Option<BorrowedFd<'_>>,
) -> Result<(), LaunchError> {
    let failed = |source| LaunchError::Keeper { path: keeper.to_path_buf(), source };
    let mut command = Command::new(keeper);
    command.arg0(format!("agency-keeper: {} {}", spec.name, spec.run_id));
    // The spec holds everything that the keeper needs. The agent must not see the daemon's own environment.
    command.env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some(master) = rescued {
        let parent_fd: OwnedFd = master.try_clone_to_owned().map_err(failed)?;
        command
            .fd_mappings(vec![FdMapping { parent_fd, child_fd: RESCUE_FD }])
            .map_err(|err| failed(io::Error::other(err.to_string())))?;
    }
    let mut child = command.spawn().map_err(failed)?;
    let stdin = child.stdin.take().map(OwnedFd::from).map(File::from);
    let stdout = child.stdout.take();
    let sent = stdin.map_or(Err(LaunchError::Silent), |pipe| send_spec(pipe, spec, seed).map_err(failed));
    let answer = stdout.map_or(Err(LaunchError::Silent), |pipe| read_answer(pipe).map_err(failed));
    // The keeper forks twice, and this first process exits at once.
    child.wait().map_err(failed)?;
    match answer? {
        Some(LaunchAnswer::Ready { .. }) => Ok(()),
        Some(LaunchAnswer::Failed { what, errno }) => {
            Err(LaunchError::Step { what, source: io::Error::from_raw_os_error(errno) })
        }
        // If the spec did not arrive, that is the cause.
        None => sent.and(Err(LaunchError::Silent)),
    }
}

fn send_spec(mut pipe: File, spec: &LaunchSpec, seed: Option<Vec<u8>>) -> io::Result<()> {
    let mut bytes = Frame::control(spec)?.encoded();
    if let Some(seed) = seed {
        Frame::Checkpoint { at_seq: NO_RECORD, bytes: seed }.encode_into(&mut bytes);
    }
    pipe.write_all(&bytes)
}

fn read_answer(pipe: impl io::Read) -> io::Result<Option<LaunchAnswer>> {
    let mut line = String::new();
    BufReader::new(pipe).read_line(&mut line)?;
    Ok(serde_json::from_str(&line).ok())
}
