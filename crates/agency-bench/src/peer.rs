//! The programs that are measured: for each peer, the commands that start it and attach to it.
//!
//! `{home}` stands for a private directory, `{session}` for a name, `{script}` for a program to run, `{cols}` and
//! `{rows}` for a size.

use std::process::Command;

use crate::terminal::{COLS, ROWS};

#[derive(Debug)]
pub struct Peer {
    pub name: &'static str,
    version: &'static [&'static str],
    /// The command that starts its daemon before the first session; most start themselves.
    daemon: &'static [&'static str],
    /// Starts a detached session and returns.
    start: &'static [&'static str],
    attach: &'static [&'static str],
    /// Starts a session and attaches to it.
    open: &'static [&'static str],
    pub env: &'static [(&'static str, &'static str)],
    pub dirs: &'static [&'static str],
    /// Paths and contents of files that it needs before its start.
    pub files: &'static [(&'static str, &'static str)],
    /// The same, for each session.
    pub session_files: &'static [(&'static str, &'static str)],
    /// Knows the screen, and shows it to a client that attaches.
    pub redraws: bool,
}

/// The values of the placeholders in a command.
pub struct Names<'a> {
    pub home: &'a str,
    pub session: &'a str,
    pub script: &'a str,
}

impl Names<'_> {
    pub fn fill(&self, template: &str) -> String {
        template
            .replace("{home}", self.home)
            .replace("{session}", self.session)
            .replace("{script}", self.script)
            .replace("{cols}", &COLS.to_string())
            .replace("{rows}", &ROWS.to_string())
    }

    fn all(&self, template: &[&str]) -> Option<Vec<String>> {
        (!template.is_empty()).then(|| template.iter().map(|word| self.fill(word)).collect())
    }
}

pub const AGENCY: &str = "agency";
pub const TMUX: &str = "tmux";
pub const BARE: &str = "bare pty";

const PLAIN: Peer = Peer {
    name: "",
    version: &[],
    daemon: &[],
    start: &[],
    attach: &[],
    open: &[],
    env: &[],
    dirs: &[],
    files: &[],
    session_files: &[],
    redraws: true,
};

/// In the order of the tables.
pub static PEERS: [Peer; 8] = [
    Peer {
        name: AGENCY,
        version: &["agency", "--version"],
        start: &["agency", "new", "{session}", "--no-attach", "-m", "measured", "--", "{script}"],
        attach: &["agency", "attach", "{session}"],
        open: &["agency", "new", "{session}", "-m", "measured", "--", "{script}"],
        ..PLAIN
    },
    // The lower bound: the same program on a terminal that only this program reads.
    Peer { name: BARE, attach: &["sh", "{script}"], open: &["sh", "{script}"], redraws: false, ..PLAIN },
    Peer {
        name: TMUX,
        version: &["tmux", "-V"],
        start: &[
            "tmux",
            "-S",
            "{home}/tmux.sock",
            "-f",
            "{home}/tmux.conf",
            "new-session",
            "-d",
            "-s",
            "{session}",
            "-x",
            "{cols}",
            "-y",
            "{rows}",
            "{script}",
        ],
        attach: &["tmux", "-S", "{home}/tmux.sock", "attach", "-t", "{session}"],
        open: &[
            "tmux",
            "-S",
            "{home}/tmux.sock",
            "-f",
            "{home}/tmux.conf",
            "new-session",
            "-s",
            "{session}",
            "{script}",
        ],
        files: &[("tmux.conf", "set -g history-limit 10000\n")],
        ..PLAIN
    },
    Peer {
        name: "screen",
        version: &["screen", "--version"],
        start: &["screen", "-c", "{home}/screenrc", "-dmS", "{session}", "{script}"],
        // `-x` attaches beside other clients: screen may need a second to notice that the last one left.
        attach: &["screen", "-c", "{home}/screenrc", "-x", "{session}"],
        open: &["screen", "-c", "{home}/screenrc", "-S", "{session}", "{script}"],
        env: &[("SCREENDIR", "{home}/screen")],
        dirs: &["screen"],
        files: &[("screenrc", "defscrollback 10000\nstartup_message off\n")],
        ..PLAIN
    },
    Peer {
        name: "dtach",
        version: &["dtach", "--version"],
        start: &["dtach", "-n", "{home}/{session}.sock", "-E", "-z", "{script}"],
        attach: &["dtach", "-a", "{home}/{session}.sock", "-E", "-z", "-r", "none"],
        open: &["dtach", "-c", "{home}/{session}.sock", "-E", "-z", "-r", "none", "{script}"],
        redraws: false,
        ..PLAIN
    },
    Peer {
        name: "abduco",
        version: &["abduco", "-v"],
        start: &["abduco", "-n", "{session}", "{script}"],
        attach: &["abduco", "-a", "{session}"],
        open: &["abduco", "-c", "{session}", "{script}"],
        env: &[("ABDUCO_SOCKET_DIR", "{home}")],
        redraws: false,
        ..PLAIN
    },
    Peer {
        name: "shpool",
        version: &["shpool", "version"],
        daemon: &["shpool", "-s", "{home}/shpool.sock", "-c", "{home}/shpool.toml", "daemon"],
        start: &[
            "shpool",
            "-s",
            "{home}/shpool.sock",
            "-c",
            "{home}/shpool.toml",
            "attach",
            "-b",
            "-c",
            "{script}",
            "{session}",
        ],
        attach: &[
            "shpool",
            "-s",
            "{home}/shpool.sock",
            "-c",
            "{home}/shpool.toml",
            "attach",
            "-f",
            "{session}",
        ],
        files: &[(
            "shpool.toml",
            "session_restore_mode = \"screen\"\noutput_spool_lines = 10000\nprompt_prefix = \"\"\n",
        )],
        ..PLAIN
    },
    Peer {
        name: "zellij",
        version: &["zellij", "--version"],
        start: &[
            "zellij",
            "--config-dir",
            "{home}",
            "--layout",
            "{home}/{session}.kdl",
            "attach",
            "--create-background",
            "{session}",
        ],
        attach: &["zellij", "--config-dir", "{home}", "attach", "{session}"],
        files: &[(
            "config.kdl",
            "scroll_buffer_size 10000\nshow_startup_tips false\nshow_release_notes false\nsession_serialization false\n",
        )],
        session_files: &[("{session}.kdl", "layout {\n pane command=\"{script}\"\n}\n")],
        ..PLAIN
    },
];

impl Peer {
    pub fn named(name: &str) -> Option<&'static Peer> {
        // `bare` is easier to type than a name with a space.
        PEERS.iter().find(|peer| peer.name == name || peer.name.split(' ').next() == Some(name))
    }

    pub fn is_bare(&self) -> bool {
        self.start.is_empty()
    }

    pub fn daemon(&self, names: &Names) -> Option<Vec<String>> {
        names.all(self.daemon)
    }

    pub fn start(&self, names: &Names) -> Option<Vec<String>> {
        names.all(self.start)
    }

    pub fn attach(&self, names: &Names) -> Vec<String> {
        names.all(self.attach).unwrap_or_default()
    }

    pub fn open(&self, names: &Names) -> Option<Vec<String>> {
        names.all(self.open)
    }

    pub fn opens(&self) -> bool {
        !self.open.is_empty()
    }

    /// Its version line, or `None` if it is not installed.
    pub fn version(&self, mut program: impl FnMut(&str) -> Command) -> Option<String> {
        let (name, args) = self.version.split_first()?;
        let output = program(name).args(args).output().ok()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        Some(text.lines().find(|line| !line.trim().is_empty()).unwrap_or("unknown").trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_of_a_command_is_filled() {
        let names = Names { home: "/h", session: "s", script: "/h/s.sh" };
        for peer in &PEERS {
            let commands =
                [peer.daemon(&names), peer.start(&names), Some(peer.attach(&names)), peer.open(&names)];
            for word in commands.into_iter().flatten().flatten() {
                assert!(!word.contains(['{', '}']), "{}: {word}", peer.name);
            }
        }
    }

    #[test]
    fn peers_are_found_by_the_names_that_users_type() {
        assert_eq!(Peer::named("bare").map(|peer| peer.name), Some(BARE));
        assert_eq!(Peer::named("tmux").map(|peer| peer.name), Some(TMUX));
        assert!(Peer::named("byobu").is_none());
    }
}
