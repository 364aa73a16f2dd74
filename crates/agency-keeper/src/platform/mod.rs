//! The one door to what only some kernels can do: process identity, signals to the right process,
//! subreaping, the walk of a process tree, exit statuses of processes that are not ours.
//!
//! Decides nothing: who is ended, watched or spared is said by the callers.

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
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    pub start_time: u64,
    /// The kernel's short name for it, at most 15 bytes.
    pub name: String,
    /// `R`, `S`, `D`, `T`, `Z`…
    pub state: char,
    /// The device number of its controlling terminal; 0 is none.
    pub terminal: u64,
}

impl Process {
    /// A zombie has ended; only its status is still there.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Whether this is its name, of which the kernel keeps only the beginning.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name
            || (name.len() > KERNEL_NAME_BYTES && name.get(..KERNEL_NAME_BYTES) == Some(&self.name))
    }

    pub fn is(&self, identity: &ProcessIdentity) -> bool {
        self.pid == identity.pid && self.start_time == identity.start_time
    }

    pub fn identity(&self) -> ProcessIdentity {
        ProcessIdentity { pid: self.pid, start_time: self.start_time, boot_id: boot_id() }
    }
}

const KERNEL_NAME_BYTES: usize = 15;

/// Who we are.
pub fn own_identity() -> ProcessIdentity {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    identity_of(pid).unwrap_or(ProcessIdentity { pid, start_time: 0, boot_id: boot_id() })
}

/// The identity behind a pid right now.
pub fn identity_of(pid: i32) -> Option<ProcessIdentity> {
    process(pid).map(|process| process.identity())
}

/// Whether this very process still runs; a zombie does not.
pub fn is_alive(identity: &ProcessIdentity) -> bool {
    identity.boot_id == boot_id()
        && process(identity.pid).is_some_and(|process| process.is(identity) && !process.has_ended())
}
