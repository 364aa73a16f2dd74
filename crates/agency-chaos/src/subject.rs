//! The tasks of a run, the texts sent to them, and what must be true of both.

use std::path::{Path, PathBuf};

use agency_testkit::Process;

use crate::agent;
use crate::site::Vcs;
use crate::tree::Tree;

/// A kind of agent.
#[derive(Debug)]
pub struct Kind {
    pub name: &'static str,
    pub driver: &'static str,
    /// How many of them every run begins with.
    pub copies: usize,
    pub listens: Listens,
    pub ends: Ends,
    /// The version control that its project needs; `None` for any.
    pub vcs: Option<Vcs>,
    /// The command, or nothing for the configured agent. The arguments are this program, the truth and the slug.
    pub command: fn(&Path, &Path, &str) -> Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listens {
    No,
    /// One line after another; a torn send shows as a line of two texts.
    Lines,
    /// Messages of a protocol.
    Messages,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Only if something ends it.
    Never,
    /// By itself, at once.
    Soon,
}

pub const KINDS: &[Kind] = &[
    Kind { name: "count", copies: 2, command: part, ..TERMINAL },
    Kind { name: "flood", command: part, ..TERMINAL },
    Kind { name: "echo", copies: 2, listens: Listens::Lines, command: part, ..TERMINAL },
    Kind { name: "cat", listens: Listens::Lines, command: tee, ..TERMINAL },
    Kind { name: "git", copies: 2, vcs: Some(Vcs::Git), command: part, ..TERMINAL },
    Kind { name: "jj", vcs: Some(Vcs::Jj), command: part, ..TERMINAL },
    Kind { name: "brief", copies: 0, ends: Ends::Soon, command: brief, ..TERMINAL },
    Kind {
        name: "stream",
        driver: "stream-json",
        copies: 2,
        listens: Listens::Messages,
        command: stream,
        ..TERMINAL
    },
    Kind {
        name: "acp",
        driver: "acp",
        copies: 2,
        listens: Listens::Messages,
        command: configured,
        ..TERMINAL
    },
];

const TERMINAL: Kind = Kind {
    name: "",
    driver: "terminal",
    copies: 1,
    listens: Listens::No,
    ends: Ends::Never,
    vcs: None,
    command: configured,
};

fn part(program: &Path, truth: &Path, slug: &str) -> Vec<String> {
    let part = slug.split('-').next().unwrap_or(slug);
    [&program.display().to_string(), "agent", part, &truth.display().to_string(), slug]
        .map(str::to_owned)
        .into()
}

/// Echoes as `cat` does, and keeps what it read.
fn tee(_: &Path, truth: &Path, slug: &str) -> Vec<String> {
    ["tee", "-a", &agent::heard_file(truth, slug).display().to_string()].map(str::to_owned).into()
}

fn brief(_: &Path, _: &Path, _: &str) -> Vec<String> {
    ["sh", "-c", "echo short; sleep 0.1"].map(str::to_owned).into()
}

fn stream(_: &Path, truth: &Path, slug: &str) -> Vec<String> {
    let heard = format!("FAKE_AGENT_HEARD={}", agent::heard_file(truth, slug).display());
    ["env", &heard, "fake-agent", "--stream-json", "", "--resume", "$AGENCY_SESSION_ID"]
        .map(str::to_owned)
        .into()
}

fn configured(_: &Path, _: &Path, _: &str) -> Vec<String> {
    Vec::new()
}

#[derive(Debug)]
pub struct Subject {
    pub slug: String,
    pub kind: &'static Kind,
    /// The index of its project.
    pub project: usize,
    pub existence: Existence,
    /// Its workspace, once a check has seen it.
    pub workspace: Option<PathBuf>,
    /// The live agent at the last check.
    pub agent: Option<KnownAgent>,
    /// Something since the last check may have ended the agent, or started another one.
    pub may_change: bool,
    /// A command that starts, stops or removes it is under way.
    pub is_busy: bool,
    /// The files at a removal that was not yet taken back.
    pub removed: Option<Tree>,
    /// A merge reported success: its work must be in the base.
    pub is_merged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existence {
    /// `agency new` has not reported success.
    InDoubt,
    Certain,
    /// `agency new` failed, and no task came of it.
    Never,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownAgent {
    pub run: String,
    pub process: Option<Process>,
}

impl Subject {
    pub fn new(kind: &'static Kind, project: usize, number: usize) -> Subject {
        Subject {
            slug: format!("{}-{number}", kind.name),
            kind,
            project,
            existence: Existence::InDoubt,
            workspace: None,
            agent: None,
            may_change: true,
            is_busy: true,
            removed: None,
            is_merged: false,
        }
    }

    /// Whether commands may be sent to it now.
    pub fn is_free(&self) -> bool {
        self.existence == Existence::Certain && !self.is_busy && self.removed.is_none()
    }
}

/// A text that was sent to a listening agent.
#[derive(Debug)]
pub struct Text {
    pub token: String,
    pub subject: usize,
    pub receipt: Receipt,
    /// The agent ended around that time, so that it may have taken the text and not have written it down.
    pub is_excused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// The command has not ended, or failed.
    Unknown,
    Delivered,
    Typed,
    Queued,
    Refused,
}

impl Receipt {
    /// From the output of `agency send --json`.
    pub fn parse(stdout: &str) -> Receipt {
        let document: serde_json::Value = serde_json::from_str(stdout).unwrap_or_default();
        match document["receipt"].as_str() {
            Some("delivered") => Receipt::Delivered,
            Some("typed") => Receipt::Typed,
            Some("queued") => Receipt::Queued,
            Some("refused") => Receipt::Refused,
            _ => Receipt::Unknown,
        }
    }
}

/// The tokens in a line that an agent read, and whether the line consists of nothing else.
pub fn tokens_in(line: &str) -> (Vec<&str>, bool) {
    let mut tokens = Vec::new();
    let mut is_pure = true;
    let mut rest = line;
    while let Some(start) = rest.find('<') {
        is_pure &= start == 0;
        match rest[start..].find('>') {
            Some(end) => {
                tokens.push(&rest[start..=start + end]);
                rest = &rest[start + end + 1..];
            }
            None => return (tokens, false),
        }
    }
    (tokens, is_pure && rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::tokens_in;

    #[test]
    fn a_line_of_two_texts_is_recognized() {
        assert_eq!(tokens_in("<t1 a-1>"), (vec!["<t1 a-1>"], true));
        assert_eq!(tokens_in("<t1 a-1><t2 a-1>"), (vec!["<t1 a-1>", "<t2 a-1>"], true));
        assert_eq!(tokens_in("<t1 <t2 a-1>"), (vec!["<t1 <t2 a-1>"], true));
        assert_eq!(tokens_in("t1 a-1><t2 a-1>"), (vec!["<t2 a-1>"], false));
        assert_eq!(tokens_in("hello"), (vec![], false));
        assert_eq!(tokens_in(""), (vec![], true));
    }
}
