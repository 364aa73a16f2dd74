//! Limits of runs, and the open-file limit of the daemon itself.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The size of a journal segment.
pub const SEGMENT_BYTES: u64 = 8 << 20;

/// Beyond this the keeper deletes the oldest segments of a terminal's journal.
pub const TERMINAL_JOURNAL_BYTES: u64 = 256 << 20;

/// A keeper whose agent has ended keeps the environment for a restart. Without a daemon it exits after this time.
pub const KEEPER_LINGERS: Duration = Duration::from_secs(60 * 60);

/// The longest argument or variable that exec takes is 128 KiB with its name and final zero byte.
pub const LONGEST_EXEC_VALUE: usize = (128 << 10) - 64;

/// Raises the daemon's soft limit of open files to the hard limit. Returns the old limits, for its children.
pub fn raise_open_files() -> Option<(u64, u64)> {
    let before = getrlimit(Resource::Nofile);
    let (soft, hard) = (before.current?, before.maximum?);
    if let Err(cause) = setrlimit(Resource::Nofile, Rlimit { current: Some(hard), maximum: Some(hard) }) {
        tracing::warn!(%cause, soft, hard, "cannot raise the limit of open files");
    }
    Some((soft, hard))
}
