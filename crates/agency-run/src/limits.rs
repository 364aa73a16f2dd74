//! Numbers that bound what runs may take, and the limits of the process itself.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub const SEGMENT_BYTES: u64 = 8 << 20;

/// Beyond this the oldest segments of a terminal go.
pub const TERMINAL_JOURNAL_BYTES: u64 = 256 << 20;

/// A keeper whose agent ended keeps the environment for a restart; without a daemon, this long.
pub const KEEPER_LINGERS: Duration = Duration::from_secs(60 * 60);

/// A single argument or variable that exec still takes (128 KiB with its name and closing zero).
pub const LONGEST_EXEC_VALUE: usize = (128 << 10) - 64;

/// Lets the daemon hold as many descriptors as it may; returns what it had, for its children.
pub fn raise_open_files() -> Option<(u64, u64)> {
    let before = getrlimit(Resource::Nofile);
    let (soft, hard) = (before.current?, before.maximum?);
    if let Err(cause) = setrlimit(Resource::Nofile, Rlimit { current: Some(hard), maximum: Some(hard) }) {
        tracing::warn!(%cause, soft, hard, "the limit of open files stays");
    }
    Some((soft, hard))
}
