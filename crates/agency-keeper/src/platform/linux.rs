//! Processes on Linux: procfs, pidfd, subreaper.
//!
//! A process may vanish while we read it; the result is then `None`, never an error.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use agency_api::ProcessIdentity;
use agency_api::keeper::ProcessProbe;
use rustix::io::Errno;
use rustix::ioctl;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use self::wait::{Wait, WaitsFor};
use super::Process;

mod wait;

/// The id of the current boot; empty if the kernel does not report it, which still compares equal.
pub fn boot_id() -> String {
    // It cannot change while we run.
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    let read = || fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    BOOT_ID.get_or_init(|| read().trim().to_string()).clone()
}

/// Makes orphans of the tree children of this process instead of init.
pub fn become_subreaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Sets the kernel's short name of this process. Without `/proc`, the name stays.
pub fn set_own_name(name: &str) {
    fs::write("/proc/self/comm", name).ok();
}

/// The process with this pid, if it exists.
pub fn process(pid: i32) -> Option<Process> {
    // A name may be invalid UTF-8; the fields around it are digits.
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&stat))
}

/// The process group in the foreground of the process's terminal. Negative if the terminal has none.
pub fn foreground_group(pid: i32) -> Option<i32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split_ascii_whitespace().nth(5)?.parse().ok()
}

fn parse_stat(stat: &str) -> Option<Process> {
    let (pid, rest) = stat.split_once(" (")?;
    // The name may contain anything, closing brackets included.
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<i64>().ok();
    Some(Process {
        pid: pid.trim().parse().ok()?,
        name: name.to_string(),
        state: fields.first()?.chars().next()?,
        parent: number(1)? as i32,
        group: number(2)? as i32,
        session: number(3)? as i32,
        terminal: device_of_tty_nr(number(4)? as u32),
        start_time: fields.get(19)?.parse().ok()?,
    })
}

/// `tty_nr` stores the minor number in two parts around the major number.
fn device_of_tty_nr(tty_nr: u32) -> u64 {
    let (major, minor) = ((tty_nr >> 8) & 0xfff, (tty_nr & 0xff) | ((tty_nr >> 12) & 0xfff00));
    match tty_nr {
        0 => 0,
        _ => rustix::fs::makedev(major, minor),
    }
}

/// Every process that we may see, in no particular order.
pub fn all_processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(process).collect()
}

/// The descendants of `root`, parents first. Skips a process that `belongs` rejects, with all below it.
pub fn descendants(root: i32, belongs: &dyn Fn(&Process) -> bool) -> Vec<Process> {
    if Path::new("/proc/thread-self/children").exists() {
        return walk(root, &children, belongs);
    }
    // The kernel has no child lists; a scan of all processes gives the same result, but slower.
    let everyone = all_processes();
    walk(root, &|parent| children_among(&everyone, parent), belongs)
}

fn walk(
    root: i32,
    children_of: &dyn Fn(i32) -> Vec<Process>,
    belongs: &dyn Fn(&Process) -> bool,
) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut next = Some(root);
    let mut walked = 0;
    while let Some(parent) = next {
        for child in children_of(parent) {
            // A pid can show up twice when its parent dies during the walk.
            if belongs(&child) && found.iter().all(|known| known.pid != child.pid) {
                found.push(child);
            }
        }
        next = found.get(walked).map(|process| process.pid);
        walked += 1;
    }
    found
}

fn children_among(everyone: &[Process], parent: i32) -> Vec<Process> {
    everyone.iter().filter(|process| process.parent == parent).cloned().collect()
}

fn children(parent: i32) -> Vec<Process> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        // A thread that ended meanwhile has passed its children on to another one.
        let Ok(list) = fs::read_to_string(thread.path().join("children")) else { continue };
        found.extend(list.split_ascii_whitespace().filter_map(|pid| process(pid.parse().ok()?)));
    }
    found
}

/// Processes whose initial environment contained exactly `name=value`.
pub fn processes_with_environment(name: &str, value: &str) -> Vec<Process> {
    let wanted = format!("{name}={value}");
    let holds = |process: &Process| {
        fs::read(format!("/proc/{}/environ", process.pid))
            .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes()))
    };
    all_processes().into_iter().filter(holds).collect()
}

/// The variables that a process was started with. Empty if we may not read them.
pub fn environment_of(pid: i32) -> Vec<(OsString, OsString)> {
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let entries = environ.split(|byte| *byte == 0).filter_map(|entry| {
        let equals = entry.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (entry.get(..equals)?, entry.get(equals + 1..)?);
        Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())))
    });
    entries.collect()
}

/// The arguments of a process, its name first. Empty if we may not read them.
pub fn arguments(pid: i32) -> Vec<Vec<u8>> {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let whole = arguments.strip_suffix(b"\0").unwrap_or(&arguments);
    if whole.is_empty() { Vec::new() } else { whole.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect() }
}

/// The working directory of a process, also if it was deleted.
pub fn working_directory(pid: i32) -> Option<PathBuf> {
    let directory = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let bytes = directory.as_os_str().as_bytes();
    let path = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes);
    Some(PathBuf::from(OsString::from_vec(path.to_vec())))
}

/// The contents of a small file in the working directory of a process.
pub fn file_in_directory_of(pid: i32, name: &str) -> Option<Vec<u8>> {
    let path = Path::new("/proc").join(pid.to_string()).join("cwd").join(name);
    let is_small_file = fs::metadata(&path).ok().filter(|meta| meta.is_file() && meta.len() <= 4096);
    is_small_file.and_then(|_| fs::read(path).ok())
}

/// Whether a process handles `caught` and would die of `other`.
pub fn handles_only(pid: i32, caught: Signal, other: Signal) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let mask = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0)
    };
    let bit = |signal: Signal| 1_u64 << (signal.as_raw() - 1);
    mask("SigCgt:") & bit(caught) != 0 && (mask("SigCgt:") | mask("SigIgn:")) & bit(other) == 0
}

/// Signals exactly this process, never a later one with the same pid. `false` if it has ended.
pub fn signal_if_same(identity: &ProcessIdentity, signal: Signal) -> io::Result<bool> {
    match Watch::open(identity) {
        Ok(Some(watch)) => watch.signal(signal),
        Ok(None) => Ok(false),
        Err(err) if err.raw_os_error() == Some(Errno::NOSYS.raw_os_error()) => {
            signal_by_pid(identity, signal)
        }
        Err(err) => Err(err),
    }
}

/// Before Linux 5.3 the check and the signal are two steps, so a small race remains.
fn signal_by_pid(identity: &ProcessIdentity, signal: Signal) -> io::Result<bool> {
    let Some(pid) = Pid::from_raw(identity.pid) else { return Ok(false) };
    match process(identity.pid) {
        Some(process) if process.identity() == *identity => {
            was_delivered(rustix::process::kill_process(pid, signal))
        }
        _ => Ok(false),
    }
}

fn was_delivered(result: rustix::io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(err) => Err(err.into()),
    }
}

/// A process held by a descriptor, so that its pid cannot be reused. The descriptor is readable once it ended.
pub struct Watch {
    pid: i32,
    start_time: u64,
    pidfd: OwnedFd,
}

impl Watch {
    /// `None` if the process has ended and was reaped.
    pub fn open(identity: &ProcessIdentity) -> io::Result<Option<Watch>> {
        let Some(pid) = Pid::from_raw(identity.pid) else { return Ok(None) };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(Errno::SRCH) => return Ok(None),
            // A pid that now belongs to a thread is another process's.
            Err(Errno::INVAL | Errno::NOENT) => return Ok(None),
            Err(err) => return Err(err.into()),
        };
        // Checked after opening: from here on the descriptor cannot refer to another process.
        let same = process(identity.pid).is_some_and(|process| process.identity() == *identity);
        Ok(same.then_some(Watch { pid: identity.pid, start_time: identity.start_time, pidfd }))
    }

    /// Signals the process. `false` if it has ended.
    pub fn signal(&self, signal: Signal) -> io::Result<bool> {
        was_delivered(pidfd_send_signal(&self.pidfd, signal))
    }

    /// The wait status of an ended process that is not our child: from its zombie, or from the kernel's record
    /// of it (Linux 6.15). `None` if the status is not known, or not yet.
    pub fn wait_status(&self) -> Option<i32> {
        let status = self.status_of_reaped().or_else(|| self.status_of_zombie());
        // It may be reaped between the two reads.
        status.or_else(|| self.status_of_reaped())
    }

    fn status_of_zombie(&self) -> Option<i32> {
        let stat = fs::read(format!("/proc/{}/stat", self.pid)).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        let process = parse_stat(&stat)?;
        if !process.has_ended() || process.start_time != self.start_time {
            return None;
        }
        stat.rsplit_once(") ")?.1.split_ascii_whitespace().nth(49)?.parse().ok()
    }

    #[allow(unsafe_code)]
    fn status_of_reaped(&self) -> Option<i32> {
        let mut info = PidfdInfo { mask: PIDFD_INFO_EXIT, ..PidfdInfo::default() };
        // SAFETY: PIDFD_GET_INFO reads and writes one `struct pidfd_info` of the size its number carries.
        let result =
            unsafe { ioctl::ioctl(&self.pidfd, ioctl::Updater::<PIDFD_GET_INFO, _>::new(&mut info)) };
        result.ok().filter(|()| info.mask & PIDFD_INFO_EXIT != 0).map(|()| info.exit_code)
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// `struct pidfd_info` of linux/pidfd.h, in its first published size.
#[derive(Default)]
#[repr(C)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_code: i32,
}

const PIDFD_INFO_EXIT: u64 = 1 << 3;
const PIDFD_GET_INFO: ioctl::Opcode = ioctl::opcode::read_write::<PidfdInfo>(0xff, 11);

/// One process and what it waits for. `terminal` is the device number of the agent's terminal.
pub fn probe(process: &Process, terminal: Option<u64>) -> ProcessProbe {
    let looked = Wait::of(process, terminal);
    let hidden = looked.as_ref().is_err_and(|err| err.kind() == io::ErrorKind::PermissionDenied);
    let wait = looked.ok().flatten();
    ProcessProbe {
        pid: process.pid,
        parent: process.parent,
        group: process.group,
        session: process.session,
        name: process.name.clone(),
        state: process.state.to_string(),
        start_time: process.start_time,
        wchan: None,
        syscall: wait.as_ref().map(|wait| wait.call),
        at_terminal: wait.as_ref().is_some_and(|wait| wait.on == Some(WaitsFor::Terminal)),
        watches_terminal: wait
            .as_ref()
            .and_then(|wait| wait.on)
            .map(|on| on == WaitsFor::TerminalAmongOthers),
        at_inner_terminal: wait.as_ref().is_some_and(|wait| wait.on == Some(WaitsFor::InnerTerminal)),
        hidden,
        timeout: wait.is_some_and(|wait| wait.has_timeout),
    }
}

/// The kernel function in which a process sleeps.
pub fn wchan(pid: i32) -> Option<String> {
    let wchan = fs::read_to_string(format!("/proc/{pid}/wchan")).ok()?;
    // "0" means that it does not sleep, or that we may not know.
    Some(wchan).filter(|wchan| !wchan.is_empty() && wchan != "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let stat = "42 (a) S (b) R 1 40 39 34817 40 4194304 1 2 3 4 5 6 7 8 20 0 1 0 777 0 0";
        let process = parse_stat(stat).unwrap();
        assert_eq!((process.name.as_str(), process.state), ("a) S (b", 'R'));
        assert_eq!((process.parent, process.group, process.session, process.start_time), (1, 40, 39, 777));
        assert_eq!(process.terminal, rustix::fs::makedev(136, 1));
        assert_eq!(parse_stat("42 (half"), None);
    }

    #[test]
    fn terminals_beyond_255_keep_their_number() {
        // new_encode_dev(136, 300)
        assert_eq!(
            device_of_tty_nr((300 & 0xff) | (136 << 8) | ((300 & !0xff) << 12)),
            rustix::fs::makedev(136, 300)
        );
    }

    #[test]
    fn a_pid_with_another_start_time_is_not_signalled() {
        let mut identity = super::super::own_identity();
        assert!(super::super::is_alive(&identity));
        identity.start_time += 1;
        assert!(!super::super::is_alive(&identity));
        assert!(!signal_if_same(&identity, Signal::KILL).unwrap());
    }

    /// Starts a shell with one child, and waits for the line that the shell prints when both run.
    fn shell_with_child() -> std::process::Child {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sleep 1000 & echo up; read line; kill $!; exit 42"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut up = [0; 3];
        io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut up).unwrap();
        shell
    }

    #[test]
    fn a_tree_is_the_same_with_and_without_the_kernels_lists() {
        let mut shell = shell_with_child();
        let root = shell.id() as i32;
        let everyone = all_processes();
        let pids = |found: Vec<Process>| found.into_iter().map(|process| process.pid).collect::<Vec<_>>();
        let found = pids(walk(root, &|parent| children_among(&everyone, parent), &|_| true));
        assert_eq!(found.len(), 1);
        assert_eq!(found, pids(descendants(root, &|_| true)));
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }

    #[test]
    fn the_exit_status_is_known_from_the_zombie_and_after_reaping() {
        let mut shell = shell_with_child();
        let watch = Watch::open(&super::super::identity_of(shell.id() as i32).unwrap()).unwrap().unwrap();
        assert_eq!(watch.wait_status(), None, "it is alive");
        drop(shell.stdin.take());
        let mut ended = [rustix::event::PollFd::new(&watch, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut ended, None).unwrap();
        assert_eq!(watch.status_of_zombie(), Some(42 << 8));
        shell.wait().unwrap();
        assert_eq!(watch.status_of_zombie(), None, "buried");
        let remembered = kernel_is_at_least(6, 15).then_some(42 << 8);
        assert_eq!(watch.wait_status(), remembered, "Linux keeps the status since 6.15");
    }

    fn kernel_is_at_least(major: u32, minor: u32) -> bool {
        let uname = rustix::system::uname();
        let release = uname.release().to_string_lossy();
        let mut numbers =
            release.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<u32>().ok());
        (numbers.next().unwrap(), numbers.next().unwrap()) >= (major, minor)
    }
}
