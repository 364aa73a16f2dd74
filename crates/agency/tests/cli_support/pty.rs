//! A terminal that runs a program, for a test that reads its screen and types.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use super::PATIENCE;

pub struct Pty {
    master: File,
    child: Child,
    screen: Arc<Screen>,
}

/// All bytes that the program wrote to the terminal.
#[derive(Default)]
struct Screen {
    drawn: Mutex<Vec<u8>>,
    changed: Condvar,
    hangs: AtomicBool,
}

impl Pty {
    pub fn spawn(mut command: Command) -> Pty {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = File::options().read(true).write(true).open(name).unwrap();
        set_size(&master, 80, 24);
        let end = || Stdio::from(slave.try_clone().unwrap());
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let master = File::from(master);
        let screen = Arc::new(Screen::default());
        let (reader, watched) = (master.try_clone().unwrap(), screen.clone());
        std::thread::spawn(move || watched.watch(reader));
        // The terminal outlives the program, so that the test can check its settings afterwards.
        std::mem::forget(slave);
        Pty { master, child, screen }
    }

    pub fn type_in(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    pub fn resize(&self, cols: u16, rows: u16) {
        set_size(&self.master, cols, rows);
        // It is not the controlling terminal of the program, so the kernel sends no SIGWINCH.
        self.signal(Signal::WINCH);
    }

    /// From now on the terminal takes no more output, like one whose connection hangs.
    pub fn hang(&self) {
        self.screen.hangs.store(true, Ordering::Relaxed);
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn settings(&self) -> Settings {
        Settings::of(&tcgetattr(&self.master).unwrap())
    }

    /// Waits until `text` is drawn, and returns everything drawn so far.
    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        self.screen.wait_for(text)
    }

    pub fn drawn(&self) -> String {
        self.screen.text()
    }

    /// Waits until the program ends.
    #[track_caller]
    pub fn end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "still running after:\n{}", self.drawn().escape_debug());
            std::thread::yield_now();
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // Both fail if the program has ended, which is expected.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn set_size(terminal: &impl std::os::fd::AsFd, cols: u16, rows: u16) {
    tcsetwinsize(terminal, Winsize { ws_col: cols, ws_row: rows, ws_xpixel: 8 * cols, ws_ypixel: 16 * rows })
        .unwrap();
}

/// The part of a terminal's settings that a program can leave changed.
#[derive(Debug, PartialEq, Eq)]
pub struct Settings(u32, u32, u32);

impl Settings {
    fn of(termios: &Termios) -> Settings {
        Settings(termios.input_modes.bits(), termios.output_modes.bits(), termios.local_modes.bits())
    }
}

impl Screen {
    fn watch(&self, mut reader: File) {
        let mut buffer = [0; 4096];
        while !self.hangs.load(Ordering::Relaxed)
            && let Ok(len @ 1..) = reader.read(&mut buffer)
        {
            self.drawn.lock().unwrap().extend_from_slice(&buffer[..len]);
            self.changed.notify_all();
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.drawn.lock().unwrap()).into_owned()
    }

    #[track_caller]
    fn wait_for(&self, text: &str) -> String {
        let missing =
            |drawn: &mut Vec<u8>| !drawn.windows(text.len()).any(|window| window == text.as_bytes());
        let drawn = self.drawn.lock().unwrap();
        let (drawn, timeout) = self.changed.wait_timeout_while(drawn, PATIENCE, missing).unwrap();
        let seen = String::from_utf8_lossy(&drawn).into_owned();
        assert!(!timeout.timed_out(), "no {text:?} in:\n{}", seen.escape_debug());
        seen
    }
}
