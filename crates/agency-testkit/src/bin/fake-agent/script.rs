//! The language of scripts: one command per line (or between `;`), `#` begins a comment line.
//!
//! Only parses: `player.rs` carries the commands out.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, PartialEq)]
pub(crate) struct Script {
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    Do(Command),
    /// `loop N … end`; without a number, for ever.
    Loop(Option<u64>, Vec<Step>),
}

#[derive(Debug, PartialEq)]
pub(crate) enum Command {
    /// `say TEXT`: a line.
    Say(String),
    /// `print TEXT`: no newline; the escapes are `\e \n \r \t \a \\ \xNN`.
    Print(Vec<u8>),
    /// `ask TEXT`: prompts, reads a line, says `got: LINE`.
    Ask(String),
    /// `wait-for TEXT`: reads until the input contains TEXT; escapes as in `print`.
    WaitFor(Vec<u8>),
    /// `sleep SECONDS`
    Sleep(Duration),
    /// `await PATH`: waits until another process has opened and closed the named pipe at PATH.
    Await(PathBuf),
    /// `ignore-term`: neither SIGTERM nor SIGHUP ends it or its later children.
    IgnoreTerm,
    /// `fork-child [setsid|double] NAME`: starts a child that does not end by itself; says `child PID`.
    ForkChild(ChildKind, String),
    /// `crash SIGNAL` or `crash CODE`
    Crash(Ending),
    /// `exit CODE`
    Exit(i32),
    /// `flood BYTES`: prints numbered lines; BYTES may end with `K` or `M`.
    Flood(u64),
    /// `env NAME`: says the value or `unset`.
    Env(String),
    /// `args`: says `arg N: VALUE` for each argument that followed the script.
    Args,
    /// `cwd`: says the working directory.
    Cwd,
    /// `size`: says `ROWS COLS`.
    Size,
    /// `on-winch`: from now on says `resized ROWS COLS` at each SIGWINCH.
    OnWinch,
    /// `getpass [TEXT]`: prompts with ECHO off, reads a line, says `got secret of N`.
    GetPass(String),
    /// `raw`: puts the terminal into raw mode.
    Raw,
    /// `mark-file PATH`: appends a line with its pid.
    MarkFile(PathBuf),
    /// `query SEQ`: prints an escape sequence, says `reply: HEX` or `reply: none`.
    Query(Vec<u8>),
    /// `menu QUESTION | CHOICE | …`: a menu with a mark that arrow keys, `j` and `k` move. Enter takes the marked choice:
    /// it removes the menu and says `chose: CHOICE`.
    Menu(Vec<String>),
    /// `flush`: discards what was typed so far and not read.
    Flush,
    /// `no-read`: runs for ever and never reads.
    NoRead,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ChildKind {
    /// In the same session and process group.
    Plain,
    /// Leads a session of its own.
    OwnSession,
    /// In a session of its own, and its parent has ended, as daemons do.
    Daemon,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ending {
    Code(i32),
    Signal(i32),
}

#[derive(Debug, PartialEq)]
pub(crate) struct ScriptError {
    line: String,
    why: &'static str,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.line, self.why)
    }
}

impl Script {
    pub(crate) fn parse(text: &str) -> Result<Script, ScriptError> {
        let lines = text.split(['\n', ';']).map(str::trim);
        let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let steps = parse_steps(&mut lines, None)?;
        Ok(Script { steps })
    }
}

/// Reads up to the end of the text, or to the `end` of the loop that `opened_by` began.
fn parse_steps<'a>(
    lines: &mut impl Iterator<Item = &'a str>,
    opened_by: Option<&str>,
) -> Result<Vec<Step>, ScriptError> {
    let mut steps = Vec::new();
    while let Some(line) = lines.next() {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let wrong = |why| ScriptError { line: line.to_string(), why };
        match word {
            "end" if opened_by.is_some() => return Ok(steps),
            "end" => return Err(wrong("nothing to end")),
            "loop" => {
                let times = if rest.is_empty() { None } else { Some(number(rest).map_err(wrong)?) };
                // Without `dyn`, each depth would need an iterator type of its own.
                let lines: &mut dyn Iterator<Item = &'a str> = lines;
                steps.push(Step::Loop(times, parse_steps(&mut { lines }, Some(line))?));
            }
            _ => steps.push(Step::Do(parse_command(word, rest.trim_start()).map_err(wrong)?)),
        }
    }
    match opened_by {
        None => Ok(steps),
        Some(line) => Err(ScriptError { line: line.to_string(), why: "has no end" }),
    }
}

fn parse_command(word: &str, rest: &str) -> Result<Command, &'static str> {
    Ok(match word {
        "say" => Command::Say(rest.into()),
        "print" => Command::Print(unescape(rest)?),
        "ask" => Command::Ask(rest.into()),
        "wait-for" => Command::WaitFor(unescape(rest)?),
        "sleep" => Command::Sleep(seconds(rest)?),
        "await" => Command::Await(rest.into()),
        "ignore-term" => Command::IgnoreTerm,
        "fork-child" => fork_child(rest),
        "crash" => Command::Crash(ending(rest)?),
        "exit" => Command::Exit(number(rest)?),
        "flood" => Command::Flood(bytes(rest)?),
        "env" => Command::Env(rest.into()),
        "args" => Command::Args,
        "cwd" => Command::Cwd,
        "size" => Command::Size,
        "on-winch" => Command::OnWinch,
        "getpass" => Command::GetPass(rest.into()),
        "raw" => Command::Raw,
        "mark-file" => Command::MarkFile(rest.into()),
        "query" => Command::Query(unescape(rest)?),
        "menu" => Command::Menu(rest.split('|').map(|part| part.trim().to_owned()).collect()),
        "flush" => Command::Flush,
        "no-read" => Command::NoRead,
        _ => return Err("no such command"),
    })
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, &'static str> {
    text.trim().parse().map_err(|_| "not a number")
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    Duration::try_from_secs_f64(number(text)?).map_err(|_| "not a time")
}

fn bytes(text: &str) -> Result<u64, &'static str> {
    let (digits, unit) = match text.strip_suffix(['K', 'M']) {
        Some(digits) => (digits, if text.ends_with('K') { 1 << 10 } else { 1 << 20 }),
        None => (text, 1),
    };
    Ok(number::<u64>(digits)?.saturating_mul(unit))
}

fn fork_child(rest: &str) -> Command {
    match rest.split_once(char::is_whitespace) {
        Some(("setsid", name)) => Command::ForkChild(ChildKind::OwnSession, name.trim().into()),
        Some(("double", name)) => Command::ForkChild(ChildKind::Daemon, name.trim().into()),
        _ => Command::ForkChild(ChildKind::Plain, rest.into()),
    }
}

const SIGNALS: [(&str, i32); 12] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("SEGV", 11),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
];

fn ending(text: &str) -> Result<Ending, &'static str> {
    if let Ok(code) = text.parse() {
        return Ok(Ending::Code(code));
    }
    let name = text.strip_prefix("SIG").unwrap_or(text);
    let known = SIGNALS.iter().find(|(known, _)| *known == name);
    known.map(|(_, signal)| Ending::Signal(*signal)).ok_or("neither a code nor a signal that ends a process")
}

fn unescape(text: &str) -> Result<Vec<u8>, &'static str> {
    let mut out = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match rest.next() {
            Some(b'e') => 0x1b,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'a') => 0x07,
            Some(b'\\') => b'\\',
            Some(b'x') => hex_byte(rest.next(), rest.next())?,
            _ => return Err("no such escape"),
        });
    }
    Ok(out)
}

fn hex_byte(high: Option<u8>, low: Option<u8>) -> Result<u8, &'static str> {
    let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
    match (digit(high), digit(low)) {
        (Some(high), Some(low)) => Ok((high * 16 + low) as u8),
        _ => Err("\\x needs two hex digits"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str) -> Vec<Step> {
        Script::parse(text).expect("a good script").steps
    }

    #[test]
    fn lines_and_semicolons_separate_commands() {
        let expected = vec![
            Step::Do(Command::Say("hello  there".into())),
            Step::Do(Command::Sleep(Duration::from_millis(200))),
            Step::Do(Command::Exit(-1)),
        ];
        assert_eq!(commands("say hello  there; sleep 0.2;; exit -1"), expected);
        assert_eq!(commands("# a comment\nsay hello  there\n\n  sleep 0.2\nexit -1\n"), expected);
    }

    #[test]
    fn loops_nest() {
        let inner = Step::Loop(None, vec![Step::Do(Command::Raw)]);
        let outer = Step::Loop(Some(3), vec![inner, Step::Do(Command::Size)]);
        assert_eq!(commands("loop 3; loop; raw; end; size; end"), [outer]);
    }

    #[test]
    fn escapes_are_bytes() {
        assert_eq!(unescape(r"\e[6n\x07\\é"), Ok(b"\x1b[6n\x07\\\xc3\xa9".to_vec()));
        assert!(unescape(r"\q").is_err());
        assert!(unescape(r"\x4").is_err());
    }

    #[test]
    fn sizes_signals_and_kinds_of_children_have_words() {
        assert_eq!(bytes("3K"), Ok(3072));
        assert_eq!(bytes("2M"), Ok(2 << 20));
        assert_eq!(ending("SIGSEGV"), Ok(Ending::Signal(11)));
        assert_eq!(ending("7"), Ok(Ending::Code(7)));
        assert_eq!(fork_child("double helper"), Command::ForkChild(ChildKind::Daemon, "helper".into()));
        assert_eq!(fork_child("helper"), Command::ForkChild(ChildKind::Plain, "helper".into()));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, why) in [
            ("dance", "dance: no such command"),
            ("say a; end", "end: nothing to end"),
            ("loop 2; say a", "loop 2: has no end"),
            ("sleep long", "sleep long: not a number"),
            ("crash CHLD", "crash CHLD: neither a code nor a signal that ends a process"),
        ] {
            assert_eq!(Script::parse(text).map_err(|err| err.to_string()), Err(why.to_string()));
        }
    }
}
