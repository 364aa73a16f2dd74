//! The identity of a process: the kernel reuses pids, but not the whole identity.

use serde::{Deserialize, Serialize};

/// One process, and never another one that gets its pid later.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The process id.
    pub pid: i32,
    /// When the process began, in a unit of the kernel since boot. Only compare it.
    pub start_time: u64,
    /// The id of this boot of the machine.
    pub boot_id: String,
}
