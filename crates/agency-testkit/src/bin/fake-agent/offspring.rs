//! Children that live on: the processes that a stop must find.
//!
//! Each is this program again under another name, so that nothing has to be forked by hand.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio, exit};

use crate::player;
use crate::script::Kinship;

/// Starts one and returns its pid when it is what it shall be.
pub(crate) fn start(kinship: Kinship, name: &str, ignores_term: bool) -> std::io::Result<u32> {
    let word = match kinship {
        Kinship::Child => "child",
        Kinship::OwnSession => "session",
        Kinship::Daemon => "daemon",
    };
    let mut child = myself(word, name, ignores_term).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    if kinship == Kinship::Daemon {
        child.wait()?;
    }
    line.trim().parse().map_err(std::io::Error::other)
}

fn myself(word: &str, name: &str, ignores_term: bool) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(name).args(["--offspring", word, name]);
    if ignores_term {
        command.arg("ignore-term");
    }
    command
}

/// The life of such a child.
pub(crate) fn live(mut args: impl Iterator<Item = String>) -> ! {
    let (word, name) = (args.next().unwrap_or_default(), args.next().unwrap_or_default());
    let ignores_term = args.next().is_some();
    if word != "child"
        && let Err(err) = rustix::process::setsid()
    {
        eprintln!("{name}: no session of its own: {err}");
        exit(2);
    }
    if word == "daemon" {
        // The one in the middle: it leaves its child to whoever takes orphans.
        exit(if myself("child", &name, ignores_term).spawn().is_ok() { 0 } else { 2 });
    }
    if ignores_term {
        player::ignore_term();
    }
    announce(&name);
    player::stay()
}

fn announce(name: &str) {
    if let Err(err) = std::fs::write("/proc/self/comm", name) {
        eprintln!("{name}: cannot take its name: {err}");
    }
    let mut out = std::io::stdout();
    if writeln!(out, "{}", std::process::id()).and_then(|()| out.flush()).is_err() {
        // Nobody waits for it any more.
        exit(2);
    }
}
