//! The timeline of a task from the files of its runs: metadata, state logs, journals, and the entries of its conversation.

use std::io;
use std::path::{Path, PathBuf};

use agency_api::chat::{self, Chat, Item};
use agency_api::timeline::{Moment, Timeline, TimelineEntry};
use agency_api::view::StateName;
use agency_journal::{Body, Reader, Record, Source};
use jiff::{SignedDuration, Timestamp};

use crate::conversation::{PastDecision, wall_time};
use crate::fold::{SEND_TAG, unseal};
use crate::state_log;
use crate::wall_clock::WallClock;

/// A person reads about this many entries.
const USUAL_ENTRIES: u64 = 200;

/// Characters of a message that are shown.
const LONGEST_TEXT: usize = 200;

/// The pieces of one message follow each other at once. Keys of two commands do not.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// Where the entries of one run are.
#[derive(Debug)]
pub struct RunFiles {
    /// The run.
    pub run: String,
    /// The name of the agent.
    pub agent: String,
    /// How Agency talks to it.
    pub driver: String,
    /// RFC 3339, to the second. The journal knows it better.
    pub started_at: String,
    /// The state log.
    pub states: PathBuf,
    /// The journal. That of a terminal has the messages that were typed.
    pub journal: PathBuf,
    /// The agent runs in a terminal.
    pub is_terminal: bool,
}

/// Blocking. The entries of one run. A file that cannot be read is left out.
pub fn run_entries(files: &RunFiles) -> Vec<TimelineEntry> {
    let at = |time: String, moment| TimelineEntry { time, run: Some(files.run.clone()), moment };
    let (agent, driver) = (files.agent.clone(), files.driver.clone());
    let began = began_at(&files.journal).ok().flatten().map(|time| time.to_string());
    let began = began.unwrap_or_else(|| files.started_at.clone());
    let mut entries = vec![at(began, Moment::Started { agent, driver })];
    let changes = state_log::read(files.states.clone()).unwrap_or_else(|cause| {
        tracing::warn!(run = files.run, %cause, "a state log cannot be read and is left out");
        Vec::new()
    });
    for change in changes.into_iter().map(|line| line.change) {
        let Some(time) = change.time else { continue };
        let moment = match change.state {
            StateName::Exited => Moment::Exited { code: change.code },
            state => Moment::State { state, why: change.why, detail: change.evidence.detail },
        };
        entries.push(at(time, moment));
    }
    if !files.is_terminal {
        return entries;
    }
    let sent = messages(&files.journal).unwrap_or_else(|cause| {
        tracing::warn!(run = files.run, %cause, "a journal cannot be read and is left out");
        Vec::new()
    });
    entries.extend(sent.into_iter().map(|(time, text)| at(time.to_string(), Moment::Sent { text })));
    entries
}

/// The messages, requests and turns of a conversation.
pub fn chat_entries(chat: Chat) -> Vec<TimelineEntry> {
    let entry = |entry: chat::Entry| {
        let moment = match entry.item {
            Item::User { text } => Moment::Sent { text: shorten(&text) },
            Item::Approval(asked) => Moment::Asked { title: asked.title },
            Item::TurnEnd(end) => Moment::TurnEnd { failed: end.failed, usage: end.usage },
            Item::Assistant { .. } | Item::Thinking { .. } | Item::ToolCall(_) | Item::Plan { .. } => {
                return None;
            }
            Item::Notice { .. } | Item::Error { .. } => return None,
        };
        Some(TimelineEntry { time: entry.time, run: None, moment })
    };
    chat.entries.into_iter().filter_map(entry).collect()
}

/// The answers to approvals.
pub fn decision_entries(decisions: Vec<PastDecision>) -> Vec<TimelineEntry> {
    let entry = |decided: PastDecision| {
        let outcome = decided.approval.outcome?;
        let (title, by) = (decided.approval.title, outcome.by);
        let moment = Moment::Decided { title, allowed: outcome.allowed, cancelled: outcome.cancelled, by };
        Some(TimelineEntry { time: wall_time(decided.at), run: None, moment })
    };
    decisions.into_iter().filter_map(entry).collect()
}

/// Puts the entries in order and keeps the newest ones.
pub fn assemble(entries: Vec<TimelineEntry>, since: Option<Timestamp>, limit: Option<u64>) -> Timeline {
    let timed = entries.into_iter().filter_map(|entry| Some((entry.time.parse::<Timestamp>().ok()?, entry)));
    let mut timed: Vec<_> = timed.filter(|(time, _)| since.is_none_or(|since| *time >= since)).collect();
    timed.sort_by_key(|(time, _)| *time);
    let surplus = timed.len().saturating_sub(limit.unwrap_or(USUAL_ENTRIES) as usize);
    let entries = timed.split_off(surplus).into_iter().map(|(_, entry)| entry).collect();
    Timeline { entries, more: surplus > 0 }
}

/// Blocking. The time of the first anchor, which the keeper writes when it starts the agent.
fn began_at(journal: &Path) -> io::Result<Option<Timestamp>> {
    let (mut reader, mut clock) = (Reader::open(journal, unseal)?, WallClock::default());
    while let Some(record) = reader.next()? {
        clock.record(&record);
        if matches!(record.body, Body::Anchor { .. }) {
            return Ok(clock.time_of(record.at_ns));
        }
    }
    Ok(None)
}

/// Blocking. The messages that `send` typed into a terminal, with the time of their first key.
fn messages(journal: &Path) -> io::Result<Vec<(Timestamp, String)>> {
    let (mut reader, mut clock) = (Reader::open(journal, unseal)?, WallClock::default());
    let mut typed = TypedMessages::default();
    while let Some(record) = reader.next()? {
        clock.record(&record);
        typed.record(&record, clock.time_of(record.at_ns));
    }
    Ok(typed.finish())
}

/// Puts the pieces of messages together: one message may be in several records, and its Enter is in another one.
#[derive(Default)]
struct TypedMessages {
    whole: Vec<(Timestamp, String)>,
    open: Option<(Timestamp, Vec<u8>)>,
    last_key: Option<Timestamp>,
}

impl TypedMessages {
    fn record(&mut self, record: &Record, time: Option<Timestamp>) {
        match &record.body {
            Body::Input { source: Source::Send, bytes } => {
                let Some(time) = time else { return };
                let pause = self.last_key.replace(time).map(|last| time.duration_since(last));
                if pause.is_some_and(|pause| pause > LONGEST_PAUSE) {
                    self.close();
                }
                self.open.get_or_insert((time, Vec::new())).1.extend_from_slice(bytes);
                if bytes.ends_with(b"\r") {
                    self.close();
                }
            }
            Body::Note { tag, .. } if tag == SEND_TAG => self.close(),
            _ => {}
        }
    }

    fn close(&mut self) {
        let Some((time, bytes)) = self.open.take() else { return };
        let text = without_keys(&String::from_utf8_lossy(&bytes)).replace('\r', "\n");
        let text: String = text.chars().filter(|c| !c.is_control() || *c == '\n').collect();
        if !text.trim().is_empty() {
            self.whole.push((time, shorten(text.trim())));
        }
    }

    fn finish(mut self) -> Vec<(Timestamp, String)> {
        self.close();
        self.whole
    }
}

/// The text without escape sequences: arrow keys, and the marks of a paste.
fn without_keys(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            plain.push(c);
            continue;
        }
        match rest.next() {
            Some('[') => drop(rest.by_ref().find(|c| ('@'..='~').contains(c))),
            Some('O') => drop(rest.next()),
            _ => {}
        }
    }
    plain
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(records: &[(&str, &str)]) -> Vec<String> {
        let mut typed = TypedMessages::default();
        for (kind, text) in records {
            let bytes = text.as_bytes().to_vec();
            let body = match *kind {
                "note" => Body::Note { tag: SEND_TAG.to_owned(), bytes },
                "send" => Body::Input { source: Source::Send, bytes },
                _ => Body::Input { source: Source::User, bytes },
            };
            typed.record(&Record { seq: 1, output_offset: 0, at_ns: 0, body }, Some(Timestamp::UNIX_EPOCH));
        }
        typed.finish().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn a_message_in_several_records_is_one_entry() {
        let sent = typed(&[
            ("note", ""),
            ("send", "\u{1b}[200~fix the "),
            ("send", "login\u{1b}[201~"),
            ("send", "\r"),
            ("user", "typed by hand\r"),
            ("note", ""),
            ("send", "again"),
            ("note", ""),
            ("send", "\u{1b}[A\u{1b}OB\r"),
        ]);
        assert_eq!(sent, ["fix the login", "again"]);
    }

    fn sent(time: &str) -> TimelineEntry {
        TimelineEntry { time: time.to_owned(), run: None, moment: Moment::Sent { text: String::new() } }
    }

    #[test]
    fn entries_are_in_order_and_the_newest_stay() {
        let times = ["2026-01-01T10:00:00.5Z", "2026-01-01T10:00:00Z", "2026-01-01T09:00:00Z", "not a time"];
        let entries = || times.iter().map(|time| sent(time)).collect::<Vec<_>>();
        let timeline = assemble(entries(), None, Some(2));
        assert!(timeline.more);
        assert_eq!(timeline.entries, [sent(times[1]), sent(times[0])]);
        let since = "2026-01-01T10:00:00.2Z".parse().ok();
        assert_eq!(assemble(entries(), since, None).entries, [sent(times[0])]);
    }
}
