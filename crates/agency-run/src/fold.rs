//! The journal of a run folded into its terminal: the same code for live, adopted and ended runs.

use std::io;
use std::path::Path;
use std::time::Duration;

use agency_api::keeper::{HOOK_TAG, PROBE_TAG, Probe, TerminalProbe};
use agency_core::evidence::{Belief, Hook, ProgramMemory};
use agency_core::exit::{ExitCode, RunExit, StoppedBy};
use agency_driver::sending::{SendNote, UnenteredText};
use agency_driver::terminal::{Settings, TerminalRun};
use agency_journal::{Body, ExitStatus, Reader, Record, Source, StopSignal};
use agency_terminal::{Prompt, ScreenEvent, Size};
use serde::{Deserialize, Serialize};

use crate::probe;

/// The tag of notes that announce the text of a send: JSON of a [`SendNote`].
pub const SEND_TAG: &str = "send";

/// The tag of notes about the memory of a program: JSON of a [`MemoryNote`].
pub const MEMORY_TAG: &str = "memory";

/// The memory of the program of a run, so that every fold of its journal knows the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryNote {
    /// The memory from now on.
    pub memory: ProgramMemory,
    /// The user said that this was wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrong: Option<Belief>,
}

/// The hook of an agent that has taken a message from its prompt.
const PROMPT_TAKEN: &str = "UserPromptSubmit";

/// A terminal as far as its journal has been folded.
pub struct Fold {
    /// The screen and the detector.
    pub run: TerminalRun,
    /// The first record that has not been folded.
    pub next_seq: u64,
    /// Output bytes of the run up to that record.
    pub output_offset: u64,
    /// A checkpoint holds the output up to here.
    pub checkpointed_to: u64,
    /// How the run ended.
    pub exit: Option<RunExit>,
    /// The session that the agent's hooks named last.
    pub session_id: Option<String>,
    /// The terminal's modes in the keeper's last probe.
    pub terminal: Option<TerminalProbe>,
    /// The text that a send typed and did not enter.
    pub unentered: UnenteredText,
    settings: Settings,
    has_begun: bool,
}

impl Fold {
    /// Without any record.
    pub fn fresh(settings: Settings) -> Fold {
        let run = TerminalRun::began(Size::cells(80, 24), &settings, Duration::ZERO);
        Fold {
            run,
            next_seq: 0,
            output_offset: 0,
            checkpointed_to: 0,
            exit: None,
            session_id: None,
            terminal: None,
            unentered: UnenteredText::default(),
            settings,
            has_begun: false,
        }
    }

    /// Blocking. Folds everything that the journal in `dir` holds now, from its newest checkpoint on.
    pub fn rebuild(dir: &Path, settings: Settings) -> io::Result<Fold> {
        Fold::rebuild_before(dir, settings, u64::MAX)
    }

    /// Blocking. Folds the records before this one, from the newest checkpoint among them on.
    pub fn rebuild_before(dir: &Path, settings: Settings, end: u64) -> io::Result<Fold> {
        let mut fold = Fold::from_checkpoint(dir, settings, end)?;
        let mut reader = Reader::open(dir, unseal)?;
        reader.seek(fold.next_seq)?;
        while let Some(record) = reader.next()? {
            if record.seq >= end {
                break;
            }
            fold.record(&record);
        }
        Ok(fold)
    }

    fn from_checkpoint(dir: &Path, settings: Settings, end: u64) -> io::Result<Fold> {
        let mut before = Some(end);
        while let Some(record) = agency_journal::latest_checkpoint(dir, unseal, before)? {
            if let Body::Checkpoint { at_seq, bytes } = &record.body {
                match restored(bytes, &settings) {
                    Ok(run) => {
                        let next_seq = if *at_seq == NO_RECORD { record.seq + 1 } else { at_seq + 1 };
                        let output_offset = record.output_offset;
                        let checkpointed_to = output_offset;
                        return Ok(Fold {
                            run,
                            next_seq,
                            output_offset,
                            checkpointed_to,
                            exit: None,
                            session_id: None,
                            terminal: None,
                            unentered: UnenteredText::default(),
                            settings,
                            has_begun: true,
                        });
                    }
                    Err(cause) => tracing::warn!(seq = record.seq, %cause, "cannot use a checkpoint"),
                }
            }
            before = Some(record.seq);
        }
        Ok(Fold::fresh(settings))
    }

    /// Folds one record. Returns what the agent sent to its terminal apart from drawing.
    pub fn record(&mut self, record: &Record) -> Vec<ScreenEvent> {
        let at = Duration::from_nanos(record.at_ns);
        if !self.has_begun {
            // The detector counts silence from here: the journal's first record is the spawn.
            self.run = TerminalRun::began(Size::cells(80, 24), &self.settings, at);
            self.has_begun = true;
        }
        // A record that the disk did not take has no number. The screen shows it; the journal will have a gap.
        if record.seq > 0 {
            self.next_seq = record.seq + 1;
            self.output_offset = record.end_offset();
        }
        match &record.body {
            Body::Output { bytes, .. } => {
                let events = self.run.on_output(bytes, record.end_offset(), at);
                if events.iter().any(|event| matches!(event, ScreenEvent::Prompt(Prompt::Output))) {
                    self.unentered.clear(at);
                }
                return events;
            }
            Body::Input { source: Source::Answer { output_offset }, .. }
            | Body::HiddenInput { source: Source::Answer { output_offset }, .. } => {
                self.run.on_answered(*output_offset);
            }
            Body::Input { source, bytes } => {
                self.unentered.on_input(*source == Source::Send, bytes, at);
                self.run.on_input(bytes, at);
            }
            Body::HiddenInput { source, len } => {
                self.unentered.on_hidden_input(*source == Source::Send, *len, at);
                self.run.on_hidden_input(at);
            }
            Body::Resize { cols, rows, x_pixels, y_pixels } => {
                let size = Size { cols: *cols, rows: *rows, x_pixels: *x_pixels, y_pixels: *y_pixels };
                self.run.on_resize(size, at);
            }
            Body::Exit { status, stopped_by } => {
                let exit = run_exit(*status, *stopped_by);
                self.run.on_exit(exit.code, at);
                self.unentered.clear(at);
                self.exit = Some(exit);
            }
            // The first state of the run, handed to the keeper at launch.
            Body::Checkpoint { at_seq, bytes } if *at_seq == NO_RECORD => {
                match restored(bytes, &self.settings) {
                    Ok(run) => self.run = run,
                    Err(cause) => {
                        tracing::warn!(seq = record.seq, %cause, "cannot use the first checkpoint")
                    }
                }
            }
            Body::Note { tag, bytes } => self.note(tag, bytes, at),
            Body::Checkpoint { .. } | Body::Anchor { .. } | Body::Gap { .. } => {}
            Body::Unknown { .. } => {}
        }
        Vec::new()
    }

    /// Folds a probe, a hook report, the announcement of a text or the memory of a program. An invalid note is ignored.
    fn note(&mut self, tag: &str, bytes: &[u8], at: Duration) {
        match tag {
            PROBE_TAG => {
                let Ok(noted) = serde_json::from_slice::<Probe>(bytes) else { return };
                self.terminal.clone_from(&noted.terminal);
                if let Some(probe) = probe::to_evidence(noted) {
                    self.run.on_probe(&probe, at);
                }
            }
            HOOK_TAG => {
                if let Ok(hook) = serde_json::from_slice::<Hook>(bytes) {
                    if hook.event == PROMPT_TAKEN {
                        self.unentered.clear(at);
                    }
                    self.run.on_hook(&hook, at);
                    if hook.shows_turn() {
                        self.session_id = hook.session_id.filter(|id| is_name(id)).or(self.session_id.take());
                    }
                }
            }
            SEND_TAG => {
                if let Ok(note) = serde_json::from_slice::<SendNote>(bytes) {
                    self.unentered.on_note(note);
                }
            }
            MEMORY_TAG => {
                if let Ok(MemoryNote { memory, wrong }) = serde_json::from_slice(bytes) {
                    self.run.on_memory(memory, wrong, at);
                }
            }
            _ => {}
        }
    }

    /// A checkpoint for the journal, so that the next fold starts here, and the last record that it includes.
    pub fn checkpoint(&mut self) -> io::Result<(u64, Vec<u8>)> {
        let bytes = compress(&self.run.checkpoint())?;
        self.checkpointed_to = self.output_offset;
        Ok((self.next_seq.saturating_sub(1), bytes))
    }
}

/// Whether a session id is safe. It becomes an argument of the agent's next start, and any program in the agent's terminal
/// can leave a note, so an id must not look like an option.
pub fn is_name(id: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    !id.is_empty() && !id.starts_with('-') && id.chars().all(is_plain)
}

/// The position of the checkpoint that came with the launch: before every record.
pub const NO_RECORD: u64 = u64::MAX;

/// Blocking. The first checkpoint of a new run: everything that the last run showed, and a separator.
pub fn seed(last_journal: &Path, size: Size, settings: Settings, now: Duration) -> io::Result<Vec<u8>> {
    let last = Fold::rebuild(last_journal, settings.clone())?;
    let mut next = TerminalRun::continued(last.run, size, &settings, now);
    compress(&next.checkpoint())
}

fn restored(bytes: &[u8], settings: &Settings) -> Result<TerminalRun, String> {
    let plain = zstd::decode_all(bytes).map_err(|err| err.to_string())?;
    TerminalRun::restored(&plain, settings).map_err(|err| err.to_string())
}

/// Every byte of an agent goes to a journal, so speed matters more than size.
const COMPRESSION_LEVEL: i32 = 1;

/// Compresses a segment or a checkpoint.
pub fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd::encode_all(bytes, COMPRESSION_LEVEL)
}

/// Reads a sealed segment.
pub fn unseal(path: &Path) -> io::Result<Vec<u8>> {
    zstd::decode_all(std::fs::File::open(path)?)
}

/// The exit of a run from its record.
pub fn run_exit(status: ExitStatus, stopped_by: Option<StopSignal>) -> RunExit {
    let raw = match status {
        ExitStatus::Code(code) => ExitCode::Code(code),
        ExitStatus::Signal(signal) => ExitCode::Signal(signal),
        ExitStatus::Unknown => ExitCode::Unknown,
    };
    match stopped_by {
        Some(StopSignal::Term) => RunExit::stopped(StoppedBy::Term, raw),
        Some(StopSignal::Kill) => RunExit::stopped(StoppedBy::Kill, raw),
        None => RunExit::by_itself(raw),
    }
}

/// Blocking. How the run of a journal ended, if the journal holds its exit.
pub fn exit_in(journal: &Path) -> io::Result<Option<RunExit>> {
    let mut before = None;
    loop {
        // The last checkpoint may be after the exit. Then search from the checkpoint before it.
        let checkpoint = agency_journal::latest_checkpoint(journal, unseal, before)?;
        before = checkpoint.map(|record| record.seq);
        let exit = last_exit(journal, before.unwrap_or(0))?;
        if exit.is_some() || before.is_none() {
            return Ok(exit);
        }
    }
}

fn last_exit(journal: &Path, from_seq: u64) -> io::Result<Option<RunExit>> {
    let mut reader = Reader::open(journal, unseal)?;
    reader.seek(from_seq)?;
    let mut exit = None;
    while let Some(record) = reader.next()? {
        if let Body::Exit { status, stopped_by } = record.body {
            exit = Some(run_exit(status, stopped_by));
        }
    }
    Ok(exit)
}

/// Blocking. The records from `from_seq` up to but not including `until_seq`.
pub fn records(journal: &Path, from_seq: u64, until_seq: u64) -> io::Result<Vec<Record>> {
    let mut reader = Reader::open(journal, unseal)?;
    reader.seek(from_seq)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next()? {
        if record.seq >= until_seq {
            break;
        }
        records.push(record);
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use agency_core::agent_state::Timing;
    use agency_core::evidence::Rules;
    use agency_journal::Stream;

    use super::*;

    fn fold(bodies: Vec<Body>) -> Fold {
        let rules = Arc::new(Rules::shipped());
        let program = "sh".to_owned();
        let mut fold = Fold::fresh(Settings { timing: Timing::default(), scrollback: 10, rules, program });
        for (number, body) in bodies.into_iter().enumerate() {
            let seq = number as u64 + 1;
            fold.record(&Record { seq, output_offset: 0, at_ns: seq * 1_000_000, body });
        }
        fold
    }

    fn input(source: Source, text: &str) -> Body {
        Body::Input { source, bytes: text.as_bytes().to_vec() }
    }

    fn note(tag: &str, json: &str) -> Body {
        Body::Note { tag: tag.to_owned(), bytes: json.as_bytes().to_vec() }
    }

    #[test]
    fn a_text_that_a_send_left_is_known_until_the_agent_has_taken_it() {
        let left = || vec![note(SEND_TAG, r#"{"bytes":5}"#), input(Source::Send, "first")];
        let text = |bodies| fold(bodies).unentered.typed().map(|typed| typed.text);
        assert_eq!(text(left()).as_deref(), Some("first"));
        let ends = [
            input(Source::Send, "\r"),
            input(Source::User, "\r"),
            note(HOOK_TAG, r#"{"event":"UserPromptSubmit"}"#),
            Body::Output { stream: Stream::Terminal, bytes: b"\x1b]133;C\x07".to_vec() },
            Body::Exit { status: ExitStatus::Code(0), stopped_by: None },
        ];
        for end in ends {
            assert_eq!(text([left(), vec![end.clone()]].concat()), None, "{end:?}");
        }
        let answer = input(Source::Answer { output_offset: 0 }, "\x1b[0n\r");
        assert_eq!(text([left(), vec![answer]].concat()).as_deref(), Some("first"));
    }

    #[test]
    fn a_note_tells_every_fold_what_the_run_knew_about_the_program_in_front() {
        let known = |program: &str| {
            note(MEMORY_TAG, &format!(r#"{{"memory":{{"program":"{program}","signs":["pondering"]}}}}"#))
        };
        let probe = note(
            PROBE_TAG,
            r#"{"terminal":{"canonical":false,"echo":false,"foreground_group":2},"processes":[
                {"pid":1,"parent":0,"group":1,"session":1,"name":"sh","state":"S"},
                {"pid":2,"parent":1,"group":2,"session":1,"name":"claude","state":"S"}]}"#,
        );
        let signs = |bodies| fold(bodies).run.detector().signs_of_work().count();
        assert_eq!(signs(vec![known("sh")]), 1);
        assert_eq!(signs(vec![known("claude")]), 0, "it is about another program");
        assert_eq!(signs(vec![known("sh"), probe.clone()]), 0, "the shell started another program");
        assert_eq!(signs(vec![probe, known("claude")]), 1);
        assert_eq!(signs(vec![note(MEMORY_TAG, "{")]), 0);
    }

    #[test]
    fn a_session_without_a_turn_is_not_kept() {
        let hook = |event: &str, id: &str| {
            note(HOOK_TAG, &format!(r#"{{"event":"{event}","session_id":"{id}","kind":"idle_prompt"}}"#))
        };
        let session = |bodies| fold(bodies).session_id;
        assert_eq!(session(vec![hook("SessionStart", "s-1"), hook("Notification", "s-1")]), None);
        assert_eq!(session(vec![hook("SessionStart", "s-1"), hook("SessionEnd", "s-1")]), None);
        let talked =
            vec![hook("SessionStart", "s-1"), hook("UserPromptSubmit", "s-1"), hook("SessionEnd", "s-1")];
        assert_eq!(session(talked.clone()).as_deref(), Some("s-1"));
        // The user cleared the conversation, and has not begun another one.
        let cleared = talked.into_iter().chain([hook("SessionStart", "s-2")]).collect();
        assert_eq!(session(cleared).as_deref(), Some("s-1"));
    }

    #[test]
    fn a_session_id_must_not_look_like_an_option() {
        assert!(is_name("6f1d2c1e-0b4e-4a51-9d0e-3a8a3f6f7a11"));
        for id in ["", "--dangerously-skip-permissions", "-r", "a b", "a\n", "$(id)", "../x"] {
            assert!(!is_name(id), "{id:?}");
        }
    }
}
