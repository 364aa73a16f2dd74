//! Finds out what a process waits for: the system call of its main thread, and the descriptors in its arguments.
//!
//! Only an ancestor may read this. Other threads are checked only if the main thread waits for another thread:
//! we cannot know which thread does the work, but we can see whether one of them reads the terminal.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::Process;

/// A process with more descriptors is a server; checking them all would cost more than it tells.
const MAX_DESCRIPTORS: usize = 32;
/// The size limit of `fd_set`.
const MAX_SELECTED: u64 = 1024;

pub(super) struct Wait {
    /// The number and the first argument of the system call.
    pub(super) call: (i64, u64),
    /// `None` if not known.
    pub(super) on: Option<WaitsFor>,
    pub(super) has_timeout: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsFor {
    Terminal,
    TerminalAmongOthers,
    /// A terminal other than the agent's.
    InnerTerminal,
    Others,
}

/// A descriptor in the call's arguments, and whether the process waits to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WatchedFd {
    fd: u64,
    to_read: bool,
}

impl Wait {
    /// `None` if the process is in no system call. An error if it is gone, or if we may not look.
    pub(super) fn of(process: &Process, terminal: Option<u64>) -> io::Result<Option<Wait>> {
        let line = fs::read_to_string(format!("/proc/{}/syscall", process.pid))?;
        let Some(call) = SystemCall::parse(&line) else { return Ok(None) };
        let mut wait = Wait::in_call(&call, process, terminal);
        if call.number == libc::SYS_futex && other_thread_reads(process, terminal) {
            wait.on = Some(WaitsFor::TerminalAmongOthers);
        }
        Ok(Some(wait))
    }

    fn in_call(call: &SystemCall, process: &Process, terminal: Option<u64>) -> Wait {
        let SystemCall { number, arguments } = *call;
        let (pid, [first, second, third, fourth, fifth, _]) = (process.pid, arguments);
        let (watched, has_timeout) = match call_kind(number) {
            CallKind::Read => (Some(vec![WatchedFd { fd: first, to_read: true }]), false),
            CallKind::Select => (select_fds(pid, first, [second, third, fourth]), fifth != 0),
            CallKind::Poll => (poll_fds(pid, first, second), third as i32 >= 0),
            CallKind::TimespecPoll => (poll_fds(pid, first, second), third != 0),
            CallKind::Epoll => (epoll_fds(pid, first), fourth as i32 >= 0),
            CallKind::TimespecEpoll => (epoll_fds(pid, first), fourth != 0),
            CallKind::Unnamed => (None, false),
            CallKind::Other => (Some(Vec::new()), false),
        };
        let on = watched.map(|watched| waits_for(&watched, |fd| Device::of(process, fd, terminal)));
        Wait { call: (number, first), on, has_timeout }
    }
}

/// A process with more threads is a server.
const MAX_THREADS: usize = 32;

fn other_thread_reads(process: &Process, terminal: Option<u64>) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", process.pid)) else { return false };
    threads.flatten().take(MAX_THREADS).any(|thread| {
        let call =
            fs::read_to_string(thread.path().join("syscall")).ok().and_then(|line| SystemCall::parse(&line));
        let on = call.and_then(|call| Wait::in_call(&call, process, terminal).on);
        matches!(on, Some(WaitsFor::Terminal | WaitsFor::TerminalAmongOthers))
    })
}

fn waits_for(watched: &[WatchedFd], device: impl Fn(u64) -> Device) -> WaitsFor {
    let reads = |wanted: Device| {
        watched.iter().filter(|watched| watched.to_read && device(watched.fd) == wanted).count()
    };
    match (reads(Device::Terminal), reads(Device::InnerTerminal)) {
        (0, inner) if inner > 0 && inner == watched.len() => WaitsFor::InnerTerminal,
        (0, _) => WaitsFor::Others,
        (count, _) if count == watched.len() => WaitsFor::Terminal,
        _ => WaitsFor::TerminalAmongOthers,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SystemCall {
    number: i64,
    arguments: [u64; 6],
}

impl SystemCall {
    /// `None` for "running", and for "-1": a process that sleeps outside a system call (a page fault).
    fn parse(line: &str) -> Option<SystemCall> {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.parse().ok().filter(|number| *number >= 0)?;
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok()?;
        }
        Some(SystemCall { number, arguments })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKind {
    Read,
    Select,
    /// With a timeout in milliseconds.
    Poll,
    TimespecPoll,
    Epoll,
    TimespecEpoll,
    /// The call does not name what it waits for.
    Unnamed,
    Other,
}

fn call_kind(number: i64) -> CallKind {
    match number {
        libc::SYS_read | libc::SYS_readv => CallKind::Read,
        libc::SYS_pselect6 => CallKind::Select,
        libc::SYS_ppoll => CallKind::TimespecPoll,
        libc::SYS_epoll_pwait => CallKind::Epoll,
        libc::SYS_epoll_pwait2 => CallKind::TimespecEpoll,
        // A restarted call does not say which call it was.
        libc::SYS_restart_syscall => CallKind::Unnamed,
        // Waits for another thread, or for requests that were submitted to a ring earlier.
        libc::SYS_futex | libc::SYS_io_uring_enter => CallKind::Unnamed,
        other => older_call_kind(other),
    }
}

/// System calls that newer architectures never had.
#[cfg(target_arch = "x86_64")]
fn older_call_kind(number: i64) -> CallKind {
    match number {
        libc::SYS_select => CallKind::Select,
        libc::SYS_poll => CallKind::Poll,
        libc::SYS_epoll_wait => CallKind::Epoll,
        _ => CallKind::Other,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn older_call_kind(_number: i64) -> CallKind {
    CallKind::Other
}

/// The three sets of select(2). The kernel writes into them only when the call returns.
fn select_fds(pid: i32, count: u64, sets: [u64; 3]) -> Option<Vec<WatchedFd>> {
    let memory = Memory::of(pid)?;
    let fds = |set: u64| match set {
        0 => Some(Vec::new()),
        _ => memory.read(set, count.min(MAX_SELECTED).div_ceil(64) as usize * 8).map(|bits| {
            (0..count.min(MAX_SELECTED)).filter(|fd| is_set(&bits, *fd as usize)).collect::<Vec<u64>>()
        }),
    };
    let [read, written, exceptions] = sets;
    let (read, written, mut exceptions) = (fds(read)?, fds(written)?, fds(exceptions)?);
    // Editors also ask for exceptions on descriptors that they read; that is nothing else to wait for.
    exceptions.retain(|fd| !read.contains(fd));
    let others = written.into_iter().chain(exceptions).map(|fd| WatchedFd { fd, to_read: false });
    let watched = read.into_iter().map(|fd| WatchedFd { fd, to_read: true }).chain(others).collect();
    if_few(watched)
}

fn is_set(bits: &[u8], index: usize) -> bool {
    bits.get(index / 8).is_some_and(|byte| byte & (1 << (index % 8)) != 0)
}

/// `struct pollfd`: a descriptor, the wanted events, the returned events.
fn poll_fds(pid: i32, array: u64, count: u64) -> Option<Vec<WatchedFd>> {
    let count = usize::try_from(count).ok().filter(|count| *count <= MAX_DESCRIPTORS)?;
    let bytes = Memory::of(pid)?.read(array, count * 8)?;
    let (entries, _) = bytes.as_chunks::<8>();
    // poll(2) ignores negative descriptors.
    let watched = entries.iter().filter_map(|[a, b, c, d, low, high, ..]| {
        let fd = u64::try_from(i32::from_ne_bytes([*a, *b, *c, *d])).ok()?;
        Some(WatchedFd { fd, to_read: wants_to_read(u32::from(u16::from_ne_bytes([*low, *high]))) })
    });
    Some(watched.collect())
}

fn wants_to_read(events: u32) -> bool {
    events & (libc::POLLIN | libc::POLLRDNORM) as u32 != 0
}

/// The kernel lists what an epoll descriptor watches: `tfd: 0 events: 19 data: …`.
fn epoll_fds(pid: i32, epoll: u64) -> Option<Vec<WatchedFd>> {
    let list = fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}")).ok()?;
    if_few(list.lines().filter_map(epoll_entry).collect())
}

fn epoll_entry(line: &str) -> Option<WatchedFd> {
    let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
    let fd = words.next()?.parse().ok()?;
    let events = words.nth(1).and_then(|events| u32::from_str_radix(events, 16).ok())?;
    Some(WatchedFd { fd, to_read: wants_to_read(events) })
}

fn if_few(watched: Vec<WatchedFd>) -> Option<Vec<WatchedFd>> {
    Some(watched).filter(|watched| watched.len() <= MAX_DESCRIPTORS)
}

/// Another process's memory, as far as we may read it.
struct Memory(File);

impl Memory {
    fn of(pid: i32) -> Option<Memory> {
        File::open(format!("/proc/{pid}/mem")).ok().map(Memory)
    }

    fn read(&self, address: u64, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.0.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }
}

/// The object that a descriptor refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Device {
    Terminal,
    /// The slave end of another pseudo-terminal.
    InnerTerminal,
    Other,
}

impl Device {
    fn of(process: &Process, fd: u64, terminal: Option<u64>) -> Device {
        // Without synchronising: a network file system that does not answer must not block us.
        let path = format!("/proc/{}/fd/{fd}", process.pid);
        let Ok(meta) = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE) else {
            return Device::Other;
        };
        let device = rustix::fs::makedev(meta.stx_rdev_major, meta.stx_rdev_minor);
        // /dev/tty is the controlling terminal of the process.
        let own_terminal = rustix::fs::makedev(5, 0);
        let device = if device == own_terminal { process.terminal } else { device };
        match u32::from(meta.stx_mode) & libc::S_IFMT == libc::S_IFCHR {
            true if Some(device) == terminal => Device::Terminal,
            true if PSEUDO_TERMINALS.contains(&rustix::fs::major(device)) => Device::InnerTerminal,
            _ => Device::Other,
        }
    }
}

/// The kernel's major numbers of pseudo-terminals.
const PSEUDO_TERMINALS: std::ops::RangeInclusive<u32> = 136..=143;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_its_number_and_six_arguments() {
        let line = "0 0x0 0x7ffd 0x400 0x0 0x0 0x1f 0x7ffd5 0x7f3\n";
        let call = SystemCall { number: 0, arguments: [0, 0x7ffd, 0x400, 0, 0, 0x1f] };
        assert_eq!(SystemCall::parse(line), Some(call));
        for none in ["running\n", "-1 0x7ffd 0x7f3\n", "", "7 0x1"] {
            assert_eq!(SystemCall::parse(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_process_waits_for_the_terminal_alone_or_with_others_or_not_at_all() {
        let reads =
            |fds: &[u64]| fds.iter().map(|fd| WatchedFd { fd: *fd, to_read: true }).collect::<Vec<_>>();
        let terminal = |fd| match fd {
            0..3 => Device::Terminal,
            3..6 => Device::InnerTerminal,
            _ => Device::Other,
        };
        assert_eq!(waits_for(&reads(&[0]), terminal), WaitsFor::Terminal);
        assert_eq!(waits_for(&reads(&[0, 2]), terminal), WaitsFor::Terminal);
        assert_eq!(waits_for(&reads(&[0, 7]), terminal), WaitsFor::TerminalAmongOthers);
        assert_eq!(waits_for(&reads(&[7]), terminal), WaitsFor::Others);
        assert_eq!(waits_for(&reads(&[4]), terminal), WaitsFor::InnerTerminal);
        assert_eq!(waits_for(&reads(&[4, 7]), terminal), WaitsFor::Others);
        assert_eq!(waits_for(&[], terminal), WaitsFor::Others, "a sleeper");
        let writes = [WatchedFd { fd: 1, to_read: false }];
        assert_eq!(waits_for(&writes, terminal), WaitsFor::Others, "it wants to print");
    }

    #[test]
    fn an_epoll_list_says_descriptor_and_events() {
        let entry = "tfd:        0 events:       19 data:                0  pos:0 ino:5 sdev:17";
        assert_eq!(epoll_entry(entry), Some(WatchedFd { fd: 0, to_read: true }));
        assert_eq!(epoll_entry("tfd: 4 events: 4 data: 0"), Some(WatchedFd { fd: 4, to_read: false }));
        assert_eq!(epoll_entry("flags:\t02"), None);
    }

    #[test]
    fn a_set_is_read_bit_by_bit() {
        assert!(is_set(&[0b100, 0], 2) && is_set(&[0, 1], 8));
        assert!(!is_set(&[0b100, 0], 3) && !is_set(&[1], 64));
    }
}
