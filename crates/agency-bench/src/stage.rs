//! A peer in a sealed environment, with the sessions that it holds.
//!
//! Touches no files of the user, and no process that was started here outlives it.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use agency_testkit::{CommandOutput, Pause, Process, Sealed, eventually};

use crate::holders::Meter;
use crate::peer::{AGENCY, Names, Peer};
use crate::signal::Signal;
use crate::sizes::Sizes;
use crate::terminal::Terminal;

/// A variable of every program inside a session, to tell it from the processes that hold the session.
const INSIDE: &str = "AGENCY_BENCH_INSIDE";

pub struct Stage {
    pub peer: &'static Peer,
    pub sealed: Sealed,
    home: String,
    /// A process that did nothing for this long has finished its work.
    quiet: Duration,
    /// It ends with all processes of the environment.
    _daemon: Option<Child>,
}

impl Stage {
    pub fn new(peer: &'static Peer, sizes: &Sizes) -> Stage {
        let sealed = Sealed::new();
        sealed.write_config("max_agents = 0\n");
        let home = sealed.home().to_str().expect("temporary paths are text").to_owned();
        let mut stage = Stage { peer, sealed, home, quiet: sizes.times.quiet, _daemon: None };
        for dir in peer.dirs {
            let made = fs::DirBuilder::new().mode(0o700).create(stage.path(dir));
            made.unwrap_or_else(|err| panic!("cannot make {dir}: {err}"));
        }
        stage.write_files(peer.files, "");
        stage._daemon = stage.start_daemon();
        stage
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.sealed.home().join(name)
    }

    /// A pipe to which a script in a session writes when it reaches a point.
    pub fn signal(&self, name: &str) -> Signal {
        Signal::at(self.path(name))
    }

    pub fn pause(&self, name: &str) -> Pause {
        Pause::at(self.path(name))
    }

    /// Starts a detached session that runs this shell script, and waits until the peer's command returns.
    pub fn start(&self, session: &str, body: &str) {
        self.write_script(session, body);
        if let Some(words) = self.with_names(session, |names| self.peer.start(names)) {
            CommandOutput::of(self.command(&words), b"").ok();
        }
    }

    fn write_script(&self, session: &str, body: &str) {
        let script = self.script(session);
        let body_path = self.path(&format!("{session}.body"));
        fs::write(&body_path, body).expect("room for a script");
        let wrapper = format!("#!/bin/sh\nexec env {INSIDE}=1 sh {}\n", body_path.display());
        fs::write(&script, wrapper)
            .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)))
            .expect("room for a script");
        self.write_files(self.peer.session_files, session);
    }

    pub fn attach(&self, session: &str) -> Terminal {
        let words = self.with_names(session, |names| self.peer.attach(names));
        Terminal::spawn(self.command(&words), self.quiet)
    }

    /// Attaches, and waits until the client has drawn everything.
    pub fn attach_and_draw(&self, session: &str) -> Terminal {
        let mut terminal = self.attach(session);
        terminal.wait_taken();
        terminal.settle();
        terminal
    }

    /// Shows the session to a terminal once, which gives it that terminal's size.
    pub fn show(&self, session: &str) {
        self.attach_and_draw(session).leave();
    }

    /// Starts a session attached to a terminal of this program.
    pub fn open(&self, session: &str, body: &str) -> Terminal {
        self.write_script(session, body);
        let words = self.with_names(session, |names| self.peer.open(names));
        let words = words.expect("a peer that can start and attach at once");
        Terminal::spawn(self.command(&words), self.quiet)
    }

    /// All processes that hold sessions now, clients included.
    pub fn holders(&self) -> Vec<Process> {
        let keepers = self.keepers();
        let mut holders = self.sealed.processes();
        holders.retain(|process| !process.has_env(INSIDE, "1".as_ref()) && !keepers.contains(process));
        holders.extend(keepers);
        holders
    }

    /// Agency's keepers. Their environment does not identify them, so pid files do.
    pub fn keepers(&self) -> Vec<Process> {
        match self.peer.name {
            AGENCY => self.sealed.keepers().into_iter().map(|keeper| keeper.process).collect(),
            _ => Vec::new(),
        }
    }

    /// Waits until the holders rest, and counts their CPU time from then on.
    pub fn meter(&self) -> Meter {
        Meter::of(self.holders(), self.quiet * 2)
    }

    fn script(&self, session: &str) -> PathBuf {
        self.path(&format!("{session}.sh"))
    }

    fn with_names<T>(&self, session: &str, then: impl FnOnce(&Names) -> T) -> T {
        let script = self.script(session);
        then(&Names { home: &self.home, session, script: &script.to_string_lossy() })
    }

    fn command(&self, words: &[String]) -> Command {
        let (program, args) = words.split_first().expect("a command names a program");
        let mut command = self.sealed.command(program);
        command.args(args);
        for (name, value) in self.peer.env {
            command.env(name, self.with_names("", |names| names.fill(value)));
        }
        command
    }

    fn write_files(&self, files: &[(&str, &str)], session: &str) {
        for (path, content) in files {
            let filled = self.with_names(session, |names| (names.fill(path), fill_script(names, content)));
            fs::write(self.path(&filled.0), filled.1).expect("room for a configuration");
        }
    }

    fn start_daemon(&self) -> Option<Child> {
        let words = self.with_names("", |names| self.peer.daemon(names))?;
        let mut command = self.command(&words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|err| panic!("cannot run {}: {err}", words[0]));
        let socket = self.path(&format!("{}.sock", self.peer.name));
        eventually("the socket of the daemon", Duration::from_secs(20), || socket.exists().then_some(()));
        Some(child)
    }
}

/// Configurations contain other braces, so this replaces only the script.
fn fill_script(names: &Names, content: &str) -> String {
    content.replace("{script}", names.script)
}
