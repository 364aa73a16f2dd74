//! Text that a send typed and whose Enter did not follow: its daemon was killed in between, or a dialog opened.
//!
//! A fold over the records of a run, so that every later daemon knows of the text. Decides nothing about orders.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::paste::without_marks;
use crate::typed::ends_line;

/// A note in the journal before the text of a send: how many bytes of input are that text.
///
/// A daemon repeats it at a checkpoint, because the fold of a later daemon starts there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendNote {
    /// The next bytes of input from `send` are a text. Zero if none of them are.
    pub bytes: u64,
    /// The text is a paste, so the ends of its lines do not enter it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paste: bool,
    /// The last of these bytes is Enter.
    #[serde(default, skip_serializing_if = "is_false")]
    pub enters: bool,
    /// The text that was typed before this note and is not entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<TypedText>,
}

/// A text that was typed and not entered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypedText {
    /// The text, without what the terminal did not echo.
    pub text: String,
    /// When its last part was typed, in the journal's time.
    pub at: Duration,
}

/// The unentered text of a run, as far as its journal has been folded.
#[derive(Debug, Clone, Default)]
pub struct UnenteredText {
    /// The part of the announced text that is not typed yet.
    announced: SendNote,
    bytes: Vec<u8>,
    typed_at: Option<Duration>,
    /// When a line was last entered or cleared. A note that was written for a checkpoint may not know of it yet.
    ended_at: Duration,
}

impl UnenteredText {
    /// A send announces its text.
    pub fn on_note(&mut self, note: SendNote) {
        if let Some(TypedText { text, at }) = note.typed.as_ref().filter(|typed| typed.at > self.ended_at) {
            (self.bytes, self.typed_at) = (text.clone().into_bytes(), Some(*at));
        }
        self.announced = SendNote { typed: None, ..note };
    }

    /// The keeper wrote this to the terminal, for a send or for a viewer.
    pub fn on_input(&mut self, is_send: bool, bytes: &[u8], at: Duration) {
        let (text, keys) = bytes.split_at(self.take_announced(is_send, bytes.len()));
        if !text.is_empty() {
            self.on_text(text, at);
        }
        if ends_line(keys) {
            self.clear(at);
        }
    }

    /// The keeper wrote something that the terminal did not echo, so the journal has only its length.
    pub fn on_hidden_input(&mut self, is_send: bool, len: u64, at: Duration) {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let text = self.take_announced(is_send, len);
        if text > 0 {
            self.on_text(&[], at);
        }
        // Input after a hidden text is most likely its Enter.
        if text < len {
            self.clear(at);
        }
    }

    /// The program has reported that it took a line, or it has exited.
    pub fn clear(&mut self, at: Duration) {
        (self.bytes, self.typed_at, self.ended_at) = (Vec::new(), None, at);
    }

    /// The text, if there is one.
    pub fn typed(&self) -> Option<TypedText> {
        let text = without_marks(&self.bytes);
        self.typed_at.map(|at| TypedText { text: String::from_utf8_lossy(&text).into_owned(), at })
    }

    /// Whether a text was announced and is not typed yet. If its daemon was killed in between, it never will be.
    pub fn is_announced(&self) -> bool {
        self.announced.bytes > 0
    }

    /// The note that tells all this to a fold that starts after it. `None` if there is nothing to tell.
    pub fn to_note(&self) -> Option<SendNote> {
        let typed = self.typed();
        (typed.is_some() || self.is_announced()).then(|| SendNote { typed, ..self.announced.clone() })
    }

    /// How many of these bytes belong to the announced text.
    fn take_announced(&mut self, is_send: bool, len: usize) -> usize {
        if !is_send {
            return 0;
        }
        let count = usize::try_from(self.announced.bytes).unwrap_or(usize::MAX).min(len);
        self.announced.bytes -= count as u64;
        count
    }

    fn on_text(&mut self, text: &[u8], at: Duration) {
        if self.announced.enters && self.announced.bytes == 0 {
            return self.clear(at);
        }
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        match text.iter().rposition(is_end).filter(|_| !self.announced.paste) {
            Some(end) if end + 1 == text.len() => self.clear(at),
            Some(end) => (self.bytes, self.typed_at) = (text[end + 1..].to_vec(), Some(at)),
            None => {
                self.bytes.extend_from_slice(text);
                self.typed_at = Some(at);
            }
        }
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Duration = Duration::from_millis(5);

    fn announce(bytes: u64) -> UnenteredText {
        let mut unentered = UnenteredText::default();
        unentered.on_note(SendNote { bytes, ..SendNote::default() });
        unentered
    }

    fn text(unentered: &UnenteredText) -> Option<String> {
        unentered.typed().map(|typed| typed.text)
    }

    #[test]
    fn a_text_without_its_enter_stays_until_a_line_ends() {
        for (keys, is_over) in [
            ("\r", true),
            ("\n", true),
            ("\x03", true),
            ("\x15", true),
            ("\x1b[13u", true),
            ("\x1b[117;5u", true),
            ("more", false),
            ("\x1b[A", false),
            ("\x1b[I", false),
            ("\x1b[200~one\ntwo\x1b[201~", false),
        ] {
            for is_send in [true, false] {
                let mut unentered = announce(11);
                assert_eq!(text(&unentered), None, "nothing is typed yet");
                unentered.on_input(true, b"echo ", AT);
                unentered.on_input(true, b"first ", AT);
                assert_eq!(text(&unentered).as_deref(), Some("echo first "));
                unentered.on_input(is_send, keys.as_bytes(), AT);
                assert_eq!(text(&unentered).is_none(), is_over, "{keys:?}");
            }
        }
    }

    #[test]
    fn keys_that_no_note_announced_are_no_text() {
        let mut unentered = UnenteredText::default();
        unentered.on_input(true, b"1", AT);
        unentered.on_input(false, b"half a thought", AT);
        assert_eq!(text(&unentered), None);
        // Its daemon was killed before it typed the text, and the next one says that it types another thing.
        let mut unentered = announce(11);
        assert!(unentered.is_announced());
        unentered.on_note(SendNote::default());
        unentered.on_input(true, b"1", AT);
        assert_eq!(text(&unentered), None);
    }

    #[test]
    fn a_text_with_its_enter_is_unentered_only_in_parts() {
        let mut unentered = UnenteredText::default();
        unentered.on_note(SendNote { bytes: 8, enters: true, ..SendNote::default() });
        unentered.on_input(true, b"one", AT);
        assert_eq!(text(&unentered).as_deref(), Some("one"));
        unentered.on_input(true, b"\rtwo", AT);
        assert_eq!(text(&unentered).as_deref(), Some("two"));
        unentered.on_input(true, b"\r", AT);
        assert_eq!(text(&unentered), None);
    }

    #[test]
    fn a_paste_is_one_text_whatever_it_holds() {
        let paste = b"\x1b[200~one\ntwo\x1b[201~";
        let mut unentered = UnenteredText::default();
        unentered.on_note(SendNote { bytes: paste.len() as u64, paste: true, ..SendNote::default() });
        unentered.on_input(true, paste, AT);
        assert_eq!(text(&unentered).as_deref(), Some("one\ntwo"));
        unentered.on_input(true, b"\r", AT);
        assert_eq!(text(&unentered), None);
    }

    #[test]
    fn a_hidden_text_is_known_without_its_letters() {
        let mut unentered = announce(7);
        unentered.on_hidden_input(true, 7, AT);
        assert_eq!(text(&unentered).as_deref(), Some(""));
        unentered.on_hidden_input(true, 1, AT);
        assert_eq!(text(&unentered), None);
        unentered.on_note(SendNote { bytes: 8, enters: true, ..SendNote::default() });
        unentered.on_hidden_input(true, 8, AT);
        assert_eq!(text(&unentered), None);
    }

    #[test]
    fn a_repeated_note_carries_everything_over_a_checkpoint() {
        let mut before = announce(11);
        before.on_input(true, b"echo ", AT);
        let note = serde_json::to_vec(&before.to_note().expect("a note")).expect("json");
        let mut after = UnenteredText::default();
        after.on_note(serde_json::from_slice(&note).expect("a note"));
        after.on_input(true, b"first ", AT);
        assert_eq!(text(&after).as_deref(), Some("echo first "));
        after.on_input(true, b"\r", AT);
        assert_eq!(after.to_note(), None);
    }

    #[test]
    fn a_repeated_note_that_is_late_brings_no_entered_text_back() {
        let mut unentered = announce(5);
        unentered.on_input(true, b"first", AT);
        let late = unentered.to_note().expect("a note");
        unentered.on_input(true, b"\r", AT + AT);
        unentered.on_note(late.clone());
        assert_eq!(text(&unentered), None);
        let mut from_checkpoint = UnenteredText::default();
        from_checkpoint.on_input(true, b"\r", AT + AT);
        from_checkpoint.on_note(late);
        assert_eq!(text(&from_checkpoint), None);
    }
}
