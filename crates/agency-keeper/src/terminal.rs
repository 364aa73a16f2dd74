//! The master side of the agent's pseudo-terminal.
//!
//! Draws nothing and does not interpret escape sequences.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use agency_api::keeper::{Size, TerminalProbe};
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, openpt, unlockpt};
use rustix::termios::{InputModes, LocalModes, OptionalActions, Winsize};

pub(crate) struct Terminal {
    master: OwnedFd,
    /// Held while the agent lives: without it the master reports a hangup whenever the agent briefly closes the
    /// terminal. Dropped at the agent's exit, so that a hangup then means that all output has been read.
    slave: Option<OwnedFd>,
    /// The device number of the agent's end.
    device: u64,
}

impl Terminal {
    pub(crate) fn open(size: Size) -> io::Result<Terminal> {
        let master = openpt(OPEN)?;
        unlockpt(&master)?;
        let terminal = Terminal::with_master(master)?;
        terminal.set_utf8()?;
        terminal.resize(size)?;
        Ok(terminal)
    }

    /// Takes over a terminal that another keeper opened.
    pub(crate) fn adopt(master: OwnedFd) -> io::Result<Terminal> {
        Terminal::with_master(master)
    }

    fn with_master(master: OwnedFd) -> io::Result<Terminal> {
        rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&master, true)?;
        let slave = open_slave(&master)?;
        let device = device_of(&slave)?;
        Ok(Terminal { master, slave: Some(slave), device })
    }

    /// Closes the agent's end and returns the master.
    pub(crate) fn into_master(self) -> OwnedFd {
        self.master
    }

    /// Makes the kernel's line editor erase whole characters instead of single bytes.
    fn set_utf8(&self) -> io::Result<()> {
        let mut modes = rustix::termios::tcgetattr(&self.master)?;
        #[cfg(any(target_os = "linux", target_os = "macos"))]
        modes.input_modes.insert(InputModes::IUTF8);
        Ok(rustix::termios::tcsetattr(&self.master, OptionalActions::Now, &modes)?)
    }

    /// A descriptor of the agent's end.
    pub(crate) fn slave(&self) -> io::Result<OwnedFd> {
        match &self.slave {
            Some(slave) => slave.try_clone(),
            None => open_slave(&self.master),
        }
    }

    /// From now on, the master reports a hangup when the last process has closed the terminal.
    pub(crate) fn release_slave(&mut self) {
        self.slave = None;
    }

    pub(crate) fn resize(&self, size: Size) -> io::Result<()> {
        let winsize = Winsize {
            ws_row: size.rows,
            ws_col: size.cols,
            ws_xpixel: size.x_pixels,
            ws_ypixel: size.y_pixels,
        };
        Ok(rustix::termios::tcsetwinsize(&self.master, winsize)?)
    }

    pub(crate) fn device(&self) -> u64 {
        self.device
    }

    pub(crate) fn master(&self) -> BorrowedFd<'_> {
        self.master.as_fd()
    }

    /// Whether the user is typing a secret: the terminal is in line mode without echo.
    pub(crate) fn hides_input(&self) -> bool {
        self.modes().is_some_and(|(canonical, echo)| canonical && !echo)
    }

    pub(crate) fn probe(&self) -> Option<TerminalProbe> {
        let (canonical, echo) = self.modes()?;
        // Only the agent's end counts waiting input; the master counts what the agent printed.
        let waiting = self.slave.as_ref().and_then(|slave| rustix::io::ioctl_fionread(slave).ok());
        let foreground_group = self.foreground_group();
        Some(TerminalProbe { canonical, echo, foreground_group, input_waiting: waiting })
    }

    pub(crate) fn foreground_group(&self) -> Option<i32> {
        rustix::termios::tcgetpgrp(&self.master).ok().map(|group| group.as_raw_nonzero().get())
    }

    fn modes(&self) -> Option<(bool, bool)> {
        let local = rustix::termios::tcgetattr(&self.master).ok()?.local_modes;
        Some((local.contains(LocalModes::ICANON), local.contains(LocalModes::ECHO)))
    }
}

#[cfg(target_os = "linux")]
const OPEN: OpenptFlags = OpenptFlags::RDWR.union(OpenptFlags::NOCTTY).union(OpenptFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const OPEN: OpenptFlags = OpenptFlags::RDWR.union(OpenptFlags::NOCTTY);

/// Opens the slave through the master if possible: a path could lead to another devpts mount.
fn open_slave(master: &OwnedFd) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    match rustix::pty::ioctl_tiocgptpeer(master, OPEN) {
        // Before Linux 4.13 there is only the path.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOTTY) => {}
        opened => return Ok(opened?),
    }
    let name = rustix::pty::ptsname(master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(name, flags, rustix::fs::Mode::empty())?)
}

#[allow(clippy::unnecessary_cast, reason = "a device number is 32 bits on some systems")]
fn device_of(slave: &OwnedFd) -> io::Result<u64> {
    Ok(rustix::fs::fstat(slave)?.st_rdev as u64)
}
