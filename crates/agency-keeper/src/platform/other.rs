//! Processes on other systems: only what POSIX offers. There is only a pid, so identity is weaker.
//!
//! Compiles on macOS so that support can be added; it was never run there.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use agency_api::ProcessIdentity;
use agency_api::keeper::ProcessProbe;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::Process;

/// Always empty: POSIX has no boot id.
pub fn boot_id() -> String {
    String::new()
}

/// Does nothing: only Linux lets a process set its name.
pub fn set_own_name(_name: &str) {}

/// Does nothing: there are no subreapers here, so processes that leave the tree are lost.
pub fn become_subreaper() -> io::Result<()> {
    Ok(())
}

/// The process with this pid, if it exists.
pub fn process(pid: i32) -> Option<Process> {
    let known = Pid::from_raw(pid)?;
    rustix::process::test_kill_process(known).ok()?;
    Some(Process {
        pid,
        parent: 0,
        group: rustix::process::getpgid(Some(known)).map_or(0, |group| group.as_raw_nonzero().get()),
        session: rustix::process::getsid(Some(known)).map_or(0, |session| session.as_raw_nonzero().get()),
        start_time: 0,
        name: String::new(),
        state: 'S',
        terminal: 0,
    })
}

/// Unknown: only the owner of a terminal may ask for its foreground group.
pub fn foreground_group(_pid: i32) -> Option<i32> {
    None
}

/// Always empty: POSIX has no process table.
pub fn all_processes() -> Vec<Process> {
    Vec::new()
}

/// Always empty: without a process table the children are unknown.
pub fn descendants(_root: i32, _belongs: &dyn Fn(&Process) -> bool) -> Vec<Process> {
    Vec::new()
}

/// Always empty: environments of other processes cannot be read.
pub fn processes_with_environment(_name: &str, _value: &str) -> Vec<Process> {
    Vec::new()
}

/// Always empty: environments of other processes cannot be read.
pub fn environment_of(_pid: i32) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    Vec::new()
}

/// Always empty: arguments of other processes cannot be read.
pub fn arguments(_pid: i32) -> Vec<Vec<u8>> {
    Vec::new()
}

/// Always `None`: working directories of other processes cannot be read.
pub fn working_directory(_pid: i32) -> Option<std::path::PathBuf> {
    None
}

/// Always `None`: working directories of other processes cannot be read.
pub fn file_in_directory_of(_pid: i32, _name: &str) -> Option<Vec<u8>> {
    None
}

/// Always `false`: signal handlers of other processes cannot be read.
pub fn handles_only(_pid: i32, _caught: Signal, _other: Signal) -> bool {
    false
}

/// Signals the whole group of a group leader: without a process table, the group is the tree.
pub fn signal_if_same(identity: &ProcessIdentity, signal: Signal) -> io::Result<bool> {
    let Some(pid) = Pid::from_raw(identity.pid) else { return Ok(false) };
    let sent = match rustix::process::getpgid(Some(pid)) {
        Ok(group) if group == pid => rustix::process::kill_process_group(pid, signal),
        _ => rustix::process::kill_process(pid, signal),
    };
    match sent {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(err) => Err(err.into()),
    }
}

/// Exists for the interface only: a process cannot be watched here, so only its terminal shows that it ended.
pub struct Watch {
    never: OwnedFd,
}

impl Watch {
    /// Always `None`.
    pub fn open(_identity: &ProcessIdentity) -> io::Result<Option<Watch>> {
        Ok(None)
    }

    /// Always `None`.
    pub fn wait_status(&self) -> Option<i32> {
        None
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.never.as_fd()
    }
}

/// One process, without what it waits for.
pub fn probe(process: &Process, _terminal: Option<u64>) -> ProcessProbe {
    ProcessProbe {
        pid: process.pid,
        parent: process.parent,
        group: process.group,
        session: process.session,
        name: process.name.clone(),
        state: process.state.to_string(),
        start_time: process.start_time,
        hidden: true,
        ..ProcessProbe::default()
    }
}

/// Always `None`.
pub fn wchan(_pid: i32) -> Option<String> {
    None
}
