//! Child processes that do not end by themselves: a stop must find them.
//!
//! Each is this program again under another name, so that the code needs no `fork`.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio, exit};

use crate::ending;
use crate::script::ChildKind;

/// Starts a child, waits until it has its name and its session, and returns its pid.
pub(crate) fn start(kind: ChildKind, name: &str, ignores_term: bool) -> std::io::Result<u32> {
    let word = match kind {
        ChildKind::Plain => "child",
        ChildKind::OwnSession => "session",
        ChildKind::Daemon => "daemon",
    };
    let mut child = this_program(word, name, ignores_term).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    if kind == ChildKind::Daemon {
        child.wait()?;
    }
    line.trim().parse().map_err(std::io::Error::other)
}

fn this_program(word: &str, name: &str, ignores_term: bool) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(name).args(["--child", word, name]);
    if ignores_term {
        command.arg("ignore-term");
    }
    command
}

/// The main function of such a child.
pub(crate) fn run(mut args: impl Iterator<Item = String>) -> ! {
    let (word, name) = (args.next().unwrap_or_default(), args.next().unwrap_or_default());
    let ignores_term = args.next().is_some();
    if word != "child"
        && let Err(err) = rustix::process::setsid()
    {
        eprintln!("{name}: no session of its own: {err}");
        exit(2);
    }
    if word == "daemon" {
        // The process in the middle ends, and its child becomes an orphan.
        exit(if this_program("child", &name, ignores_term).spawn().is_ok() { 0 } else { 2 });
    }
    if ignores_term {
        ending::ignore_term();
    }
    announce(&name);
    ending::wait_forever()
}

fn announce(name: &str) {
    if let Err(err) = std::fs::write("/proc/self/comm", name) {
        eprintln!("{name}: cannot take its name: {err}");
    }
    let mut out = std::io::stdout();
    if writeln!(out, "{}", std::process::id()).and_then(|()| out.flush()).is_err() {
        // The parent has ended.
        exit(2);
    }
}
