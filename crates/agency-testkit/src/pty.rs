//! A program on a real terminal, with the test at the other end: keys in, bytes out.
//!
//! Emulates nothing: tests see the bytes that the program wrote.

use std::cell::Cell;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{ControlModes, InputModes, LocalModes, OutputModes, Winsize, tcgetattr, tcsetwinsize};

use crate::ready::{is_ready_before, pidfd_of};

/// Far more than any program needs, so that only one that hangs reaches it.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Pty {
    master: OwnedFd,
    child: Child,
    pidfd: OwnedFd,
    seen: Vec<u8>,
    /// `wait_for` has searched the bytes before this index.
    looked: usize,
    /// The program and all other processes on the terminal closed it.
    is_closed: bool,
}

/// How the kernel treats keys and output on a terminal: raw or line by line, with echo or without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalModes {
    input: InputModes,
    output: OutputModes,
    control: ControlModes,
    local: LocalModes,
}

impl Pty {
    /// Starts the command as the leader of a session whose terminal has this size.
    pub fn spawn(mut command: Command, cols: u16, rows: u16) -> Pty {
        let (master, slave) = open_pair().expect("a pseudo terminal is free");
        set_size(&master, cols, rows);
        let shared = || slave.try_clone().expect("a descriptor is free");
        command.stdin(shared()).stdout(shared()).stderr(shared());
        lead_session(&mut command);
        let child = command.spawn().unwrap_or_else(|err| panic!("cannot run {command:?}: {err}"));
        Pty { master, pidfd: pidfd_of(&child), child, seen: Vec::new(), looked: 0, is_closed: false }
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid is a positive i32")
    }

    /// Types, and reads output meanwhile, so that neither side waits for the other.
    pub fn send(&mut self, keys: impl AsRef<[u8]>) {
        let mut left = keys.as_ref();
        let deadline = Instant::now() + PATIENCE;
        while !left.is_empty() {
            match rustix::io::write(&self.master, left) {
                Ok(written) => left = &left[written..],
                Err(Errno::AGAIN) => {
                    assert!(
                        self.read_before(deadline, PollFlags::IN | PollFlags::OUT),
                        "the program does not read its input: {self}"
                    );
                }
                Err(Errno::INTR) => {}
                Err(err) => panic!("cannot type: {err}: {self}"),
            }
        }
    }

    /// Types as much as the terminal accepts without waiting, and returns the number of bytes.
    pub fn send_what_fits(&mut self, keys: &[u8]) -> usize {
        let mut sent = 0;
        while let Ok(written @ 1..) = rustix::io::write(&self.master, &keys[sent..]) {
            sent += written;
        }
        sent
    }

    /// Waits until the text appears behind the one that it last waited for, and returns the output before it.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) -> String {
        let from = self.looked;
        // Each search begins where the last one ended, so that a flood is not searched from its start each time.
        let searched = Cell::new(from);
        let at = self.wait_until(text, |seen| {
            let start = searched.replace(seen.len().saturating_sub(text.len()).max(from));
            find(&seen[start..], text.as_bytes()).map(|at| start - from + at)
        });
        self.looked = from + at + text.len();
        String::from_utf8_lossy(&self.seen[from..from + at]).into_owned()
    }

    /// Waits until the bytes seen so far satisfy the condition; `what` describes it in the panic message.
    #[track_caller]
    pub fn wait_until<T>(&mut self, what: &str, found: impl Fn(&[u8]) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = found(&self.seen) {
                return found;
            }
            let more = !self.is_closed && self.read_before(deadline, PollFlags::IN);
            assert!(more, "never seen: {what:?}: {self}");
        }
    }

    /// Reads the output that is available now, without waiting.
    pub fn look(&mut self) {
        while !self.is_closed && self.read_before(Instant::now(), PollFlags::IN) {}
    }

    /// Waits for output, returns all that was not taken before, and forgets it, so that a flood takes no memory.
    /// `None`: no output came in time, or the terminal is closed.
    pub fn take(&mut self, deadline: Instant) -> Option<Vec<u8>> {
        while self.seen.is_empty() && !self.is_closed && self.read_before(deadline, PollFlags::IN) {}
        self.looked = 0;
        let taken = std::mem::take(&mut self.seen);
        (!taken.is_empty()).then_some(taken)
    }

    /// All output so far.
    pub fn output(&self) -> &[u8] {
        &self.seen
    }

    /// The terminal's current modes, also after the program ended.
    pub fn modes(&self) -> TerminalModes {
        let modes = tcgetattr(&self.master).expect("a terminal has modes");
        TerminalModes {
            input: modes.input_modes,
            output: modes.output_modes,
            control: modes.control_modes,
            local: modes.local_modes,
        }
    }

    /// Whether the kernel echoes input; programs that read single keys turn this off.
    pub fn echoes(&self) -> bool {
        self.modes().local.contains(LocalModes::ECHO)
    }

    pub fn resize(&self, cols: u16, rows: u16) {
        set_size(&self.master, cols, rows);
    }

    /// Waits until the program ends, and reads the rest of its output.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        while !self.has_ended_before(Instant::now()) {
            let in_time = if self.is_closed {
                self.has_ended_before(deadline)
            } else {
                // The program may wait until its output is read, or print nothing and end.
                let mut fds =
                    [PollFd::new(&self.master, PollFlags::IN), PollFd::new(&self.pidfd, PollFlags::IN)];
                is_ready_before(deadline, &mut fds)
            };
            assert!(in_time, "the program does not end: {self}");
            self.read();
        }
        self.look();
        self.child.wait().expect("our own child can be waited for")
    }

    /// Takes the terminal away, as if a user closed its window.
    pub fn hang_up(mut self) -> ExitStatus {
        self.master = File::open("/dev/null").expect("/dev/null can be opened").into();
        self.is_closed = true;
        self.wait_exit()
    }

    fn has_ended_before(&self, deadline: Instant) -> bool {
        is_ready_before(deadline, &mut [PollFd::new(&self.pidfd, PollFlags::IN)])
    }

    /// Waits for one of these events and reads the available output. `false`: the deadline came first.
    fn read_before(&mut self, deadline: Instant, events: PollFlags) -> bool {
        let is_ready = is_ready_before(deadline, &mut [PollFd::new(&self.master, events)]);
        if is_ready {
            self.read();
        }
        is_ready
    }

    fn read(&mut self) {
        let mut buf = [0; 16 * 1024];
        match rustix::io::read(&self.master, &mut buf) {
            Ok(count) => self.seen.extend_from_slice(&buf[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Linux answers this when no slave is open any more.
            Err(Errno::IO) => self.is_closed = true,
            Err(err) => panic!("cannot read the terminal: {err}"),
        }
    }
}

impl std::fmt::Display for Pty {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "seen so far: {}", self.seen.escape_ascii())
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // Most programs have ended by now. The rest of the session gets SIGHUP when the master closes.
        if let Err(err) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("cannot end the program on a test terminal: {err}");
        }
    }
}

fn open_pair() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    fcntl_setfl(&master, OFlags::RDWR | OFlags::NONBLOCK)?;
    Ok((master, slave))
}

fn set_size(master: impl AsFd, cols: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).expect("a terminal takes any size");
}

#[allow(unsafe_code)]
fn lead_session(command: &mut Command) {
    let in_child = || {
        // A test that runs in the background, or under nohup, ignores some of these.
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
            // SAFETY: async-signal-safe.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        setsid()?;
        // Standard input is the slave by now.
        ioctl_tiocsctty(rustix::stdio::stdin())?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes system calls, allocates nothing and takes no lock.
    unsafe { command.pre_exec(in_child) };
}

fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes.windows(text.len().max(1)).position(|window| window == text)
}
