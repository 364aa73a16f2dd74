//! `agency logs --daemon`: prints the log of the daemon.
//!
//! Reads the file itself, so it works without a running daemon.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use agency_api::{Failure, FailureCode};

use crate::context::Context;
use crate::outcome::{CommandError, CommandResult};

/// How often to check the file with `--follow`. Users notice no shorter delay.
const CHECK_EVERY: Duration = Duration::from_millis(200);

pub(super) async fn print_daemon_log(context: &Context, follow: bool) -> CommandResult {
    let path = context.state.daemon_log();
    let cannot = |err: &io::Error| cannot_read(&path, err);
    let mut log = Log::open(&path).map_err(|err| cannot(&err))?;
    loop {
        log.copy(cannot)?;
        if !follow {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(CHECK_EVERY).await;
        if log.was_rotated(&path) {
            log.copy(cannot)?;
            log = Log::open(&path).map_err(|err| cannot(&err))?;
        }
    }
}

struct Log {
    file: File,
    inode: u64,
}

impl Log {
    fn open(path: &Path) -> io::Result<Log> {
        let file = File::open(path)?;
        let inode = file.metadata()?.ino();
        Ok(Log { file, inode })
    }

    /// Prints everything that is new.
    fn copy(&mut self, cannot: impl Fn(&io::Error) -> Failure) -> Result<(), CommandError> {
        let mut piece = [0; 64 << 10];
        let mut stdout = io::stdout().lock();
        loop {
            match self.file.read(&mut piece).map_err(|err| cannot(&err))? {
                0 => return Ok(stdout.flush()?),
                read => stdout.write_all(&piece[..read])?,
            }
        }
    }

    /// Another file has this name now.
    fn was_rotated(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|meta| meta.ino() != self.inode)
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    let failure =
        Failure::new(format!("cannot read {}", path.display())).code(FailureCode::IoError).caused_by(error);
    match error.kind() {
        io::ErrorKind::NotFound => {
            failure.code(FailureCode::NotFound).hint("no daemon has run here yet; `agency ls` starts one")
        }
        _ => failure,
    }
}
