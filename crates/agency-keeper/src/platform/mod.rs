//! The only access to what some kernels can do and others cannot: process identity, signals to exactly one
//! process, subreaping, walking a process tree, exit statuses of processes that are not our children.
//!
//! Decides nothing: the callers choose which processes to end, watch or spare.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::*;

#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(not(target_os = "linux"))]
pub use other::*;

use agency_api::ProcessIdentity;

/// One process as the kernel describes it at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The process id.
    pub pid: i32,
    /// The parent's pid.
    pub parent: i32,
    /// The process group.
    pub group: i32,
    /// The session.
    pub session: i32,
    /// When it started, in clock ticks since boot.
    pub start_time: u64,
    /// The kernel's short name of the process, at most 15 bytes.
    pub name: String,
    /// `R`, `S`, `D`, `T`, `Z`…
    pub state: char,
    /// The device number of the controlling terminal; 0 if there is none.
    pub terminal: u64,
}

impl Process {
    /// A zombie has ended; only its status remains.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Whether this is the process's name. The kernel keeps only its beginning, so only that is compared.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name
            || (name.len() > KERNEL_NAME_BYTES && name.get(..KERNEL_NAME_BYTES) == Some(&self.name))
    }

    /// Whether this is the process with that identity.
    pub fn has_identity(&self, identity: &ProcessIdentity) -> bool {
        self.pid == identity.pid && self.start_time == identity.start_time
    }

    /// The identity of this process.
    pub fn identity(&self) -> ProcessIdentity {
        ProcessIdentity { pid: self.pid, start_time: self.start_time, boot_id: boot_id() }
    }
}

const KERNEL_NAME_BYTES: usize = 15;

/// The identity of this process.
pub fn own_identity() -> ProcessIdentity {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    identity_of(pid).unwrap_or(ProcessIdentity { pid, start_time: 0, boot_id: boot_id() })
}

/// The identity of the process that has this pid now.
pub fn identity_of(pid: i32) -> Option<ProcessIdentity> {
    process(pid).map(|process| process.identity())
}

/// Whether exactly this process still runs. A zombie does not.
pub fn is_alive(identity: &ProcessIdentity) -> bool {
    identity.boot_id == boot_id()
        && process(identity.pid).is_some_and(|process| process.has_identity(identity) && !process.has_ended())
}
