//! Which process is meant: a pid alone is reused, this is not.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: i32,
    /// In the kernel's own unit since boot; only ever compared.
    pub start_time: u64,
    pub boot_id: String,
}
