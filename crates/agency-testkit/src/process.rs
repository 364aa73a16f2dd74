//! A process that pid and start time identify, signalled through a pidfd.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::Deserialize;

use crate::eventually::eventually;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Process {
    pub pid: i32,
    /// In the kernel's ticks since boot.
    pub start_time: u64,
}

impl Process {
    /// The process that has this pid now. A zombie is none.
    pub fn find(pid: i32) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may contain parentheses; the fields begin after the last one.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        // The first thread has ended in a zombie, but other threads may still hold files open.
        let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        let is_dead = matches!(*fields.first()?, "Z" | "X") && threads() <= 1;
        let start_time = fields.get(19)?.parse().ok()?;
        (!is_dead).then_some(Process { pid, start_time })
    }

    pub fn parent(&self) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Process::find(parent).filter(|_| self.is_alive())
    }

    pub fn all() -> Vec<Process> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter_map(Process::find).collect()
    }

    pub fn is_alive(&self) -> bool {
        Process::find(self.pid) == Some(*self)
    }

    /// `false`: the process has ended, and no process got a signal.
    pub fn signal(&self, signal: Signal) -> bool {
        let Some(pidfd) = self.pidfd() else { return false };
        pidfd_send_signal(pidfd, signal).is_ok()
    }

    /// Sends SIGKILL and waits until the process has ended.
    pub fn kill(&self) {
        if self.signal(Signal::KILL) {
            self.wait_gone(Duration::from_secs(20));
        }
    }

    pub fn wait_gone(&self, within: Duration) {
        let what = format!("the end of process {} ({})", self.pid, self.name());
        eventually(&what, within, || (!self.is_alive()).then_some(()));
    }

    /// The kernel's name for it, or `gone` after its end.
    pub fn name(&self) -> String {
        let comm = fs::read_to_string(format!("/proc/{}/comm", self.pid));
        comm.map_or_else(|_| "gone".into(), |comm| comm.trim_end().to_string())
    }

    /// Whether the process was started with this variable.
    pub fn has_env(&self, name: &str, value: &Path) -> bool {
        let wanted = [name.as_bytes(), b"=", value.as_os_str().as_encoded_bytes()].concat();
        let environ = fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|variable| variable == wanted) && self.is_alive()
    }

    /// Checks the start time after opening the pidfd: another process may have got the pid before that.
    fn pidfd(&self) -> Option<OwnedFd> {
        let pidfd = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        self.is_alive().then_some(pidfd)
    }
}
