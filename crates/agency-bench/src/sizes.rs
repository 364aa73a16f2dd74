//! How much a run measures: file sizes, repetitions, waiting times.

use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Sizes {
    pub logs: Logs,
    pub starts: Starts,
    pub times: Times,
    pub keys: usize,
    pub attaches: usize,
    /// Printed before the first client attaches; more than a scrollback holds.
    pub lines: usize,
    pub sessions: Vec<usize>,
    /// Sessions whose scrollback is filled.
    pub full_sessions: usize,
    pub agents: usize,
    /// Task files of stopped tasks.
    pub stopped: usize,
    /// Daemons that are killed.
    pub boots: usize,
    /// Repetitions of a command that lists or shows something.
    pub lists: usize,
    /// Entries of the long conversation.
    pub entries: usize,
}

/// Files that programs in sessions print.
#[derive(Clone, Debug)]
pub struct Logs {
    pub megabytes: usize,
    /// A file of that size.
    pub large: PathBuf,
    /// A quarter of it.
    pub quarter: PathBuf,
    /// As many lines as a scrollback holds, and a screen.
    pub lines: PathBuf,
}

#[derive(Clone, Debug)]
pub struct Starts {
    /// New sessions in a small repository.
    pub small: usize,
    /// Files of the small repository: enough that git has work with a worktree, as in a small project.
    pub files: usize,
    /// New sessions in a large repository.
    pub large: usize,
    /// Files of the large repository.
    pub many_files: usize,
    /// Sessions that as many callers start there at the same time.
    pub at_once: usize,
}

#[derive(Clone, Debug)]
pub struct Times {
    /// How long idle processes are measured.
    pub idle: Duration,
    /// Longer than an agent takes to become stale; after that the daemon has nothing to do for it.
    pub until_stale: Duration,
    /// A process that did nothing for this long has finished its work.
    pub quiet: Duration,
}

impl Sizes {
    /// `dir` will hold the logs; this does not write them.
    pub fn new(is_quick: bool, megabytes: Option<usize>, dir: &Path) -> Sizes {
        let quick = is_quick;
        Sizes {
            logs: Logs {
                megabytes: megabytes.unwrap_or(if quick { 1 } else { 100 }).max(1),
                large: dir.join("log"),
                quarter: dir.join("small-log"),
                lines: dir.join("lines-log"),
            },
            starts: Starts {
                small: if quick { 2 } else { 10 },
                files: if quick { 20 } else { 500 },
                large: if quick { 1 } else { 5 },
                many_files: if quick { 200 } else { 50_000 },
                at_once: if quick { 2 } else { 20 },
            },
            times: Times {
                idle: if quick { Duration::from_millis(100) } else { Duration::from_secs(5) },
                until_stale: Duration::from_secs(if quick { 0 } else { 75 }),
                quiet: Duration::from_millis(if quick { 40 } else { 250 }),
            },
            keys: if quick { 20 } else { 400 },
            attaches: if quick { 1 } else { 10 },
            lines: if quick { 2_000 } else { 12_000 },
            sessions: if quick { vec![1, 2] } else { vec![1, 10, 100] },
            full_sessions: if quick { 2 } else { 5 },
            agents: if quick { 4 } else { 200 },
            stopped: if quick { 20 } else { 1_000 },
            boots: if quick { 1 } else { 5 },
            lists: if quick { 3 } else { 50 },
            entries: if quick { 200 } else { 2_000 },
        }
    }
}
