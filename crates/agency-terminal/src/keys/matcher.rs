//! Finds the detach keys in what the user types, and passes on the rest unchanged and in order.
//!
//! Reads no clock: the caller waits as long as [`Matcher::pending`] says and then flushes.
//!
//! Invariant: the bytes inside a bracketed paste are text and never match.

use std::time::Duration;

use super::Key;
use super::decoder::{Meaning, Rest, Token, read};

/// Terminals write a sequence at once; a pause this long means that the user pressed Escape.
const UNFINISHED_KEY: Duration = Duration::from_millis(25);

/// How long the first keys of a key sequence are held back from the agent.
const UNFINISHED_SEQUENCE: Duration = Duration::from_secs(1);

const PASTE_END: &[u8] = b"\x1b[201~";

/// The result of matching typed bytes.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Typed {
    /// Bytes for the agent.
    pub pass: Vec<u8>,
    /// The detach keys were pressed.
    pub detached: bool,
    /// Bytes after the detach keys. They are not for the agent.
    pub rest: Vec<u8>,
}

/// Matches typed bytes against the detach keys.
#[derive(Debug)]
pub struct Matcher {
    keys: Vec<Key>,
    /// Undecided bytes: complete keys that start the sequence, then possibly an incomplete one.
    held: Vec<u8>,
    matched: Prefix,
    place: Place,
}

/// How many bytes of `held` are complete keys, and how many of the sequence's keys they match.
#[derive(Debug, Default)]
struct Prefix {
    bytes: usize,
    keys: usize,
    first_len: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Keyboard,
    /// Inside a paste; this many bytes of its end marker have been seen.
    Paste {
        end_seen: usize,
    },
    Detached,
}

impl Matcher {
    pub(super) fn new(keys: Vec<Key>) -> Matcher {
        Matcher { keys, held: Vec::new(), matched: Prefix::default(), place: Place::Keyboard }
    }

    /// Matches the next typed bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> Typed {
        if self.keys.is_empty() {
            return Typed { pass: bytes.to_vec(), ..Typed::default() };
        }
        self.advance(bytes, Rest::MayCome)
    }

    /// How long to wait for more before [`Matcher::flush`]; `None` if nothing is held back.
    pub fn pending(&self) -> Option<Duration> {
        match self.held.len() {
            0 => None,
            len if len > self.matched.bytes => Some(UNFINISHED_KEY),
            _ => Some(UNFINISHED_SEQUENCE),
        }
    }

    /// Decides about the held-back bytes, because nothing more came.
    pub fn flush(&mut self) -> Typed {
        if self.held.len() > self.matched.bytes {
            return self.advance(b"", Rest::WillNotCome);
        }
        self.matched = Prefix::default();
        Typed { pass: std::mem::take(&mut self.held), ..Typed::default() }
    }

    fn advance(&mut self, bytes: &[u8], rest: Rest) -> Typed {
        let mut buffer = std::mem::take(&mut self.held);
        buffer.extend_from_slice(bytes);
        let (mut typed, mut start) = (Typed::default(), 0);
        while start < buffer.len() {
            let undecided = &buffer[start..];
            match self.next(undecided, rest) {
                Verdict::Pass(len) => {
                    typed.pass.extend_from_slice(&undecided[..len]);
                    start += len;
                }
                Verdict::Drop(len) => start += len,
                Verdict::Rest { from, len } => {
                    typed.rest.extend_from_slice(&undecided[from..]);
                    start += len;
                }
                Verdict::Hold => {}
                Verdict::Wait => break,
            }
        }
        typed.detached = self.place == Place::Detached;
        buffer.drain(..start);
        self.held = buffer;
        typed
    }

    fn next(&mut self, undecided: &[u8], rest: Rest) -> Verdict {
        match self.place {
            Place::Detached => {
                let from = std::mem::take(&mut self.matched).bytes;
                Verdict::Rest { from, len: undecided.len() }
            }
            Place::Paste { end_seen } => self.in_paste(undecided, end_seen),
            Place::Keyboard => {
                let behind = &undecided[self.matched.bytes..];
                match read(behind, rest) {
                    Some(token) => self.judge(&token, behind),
                    None => Verdict::Wait,
                }
            }
        }
    }

    fn in_paste(&mut self, bytes: &[u8], mut end_seen: usize) -> Verdict {
        for (at, byte) in bytes.iter().enumerate() {
            end_seen = match *byte {
                byte if byte == PASTE_END[end_seen] => end_seen + 1,
                byte => usize::from(byte == PASTE_END[0]),
            };
            if end_seen == PASTE_END.len() {
                self.place = Place::Keyboard;
                return Verdict::Pass(at + 1);
            }
        }
        self.place = Place::Paste { end_seen };
        Verdict::Pass(bytes.len())
    }

    fn judge(&mut self, token: &Token, bytes: &[u8]) -> Verdict {
        let wanted = self.keys[self.matched.keys];
        let between = self.matched.bytes > 0;
        match &token.meaning {
            Meaning::Press(keys) if keys.contains(&wanted) => self.take_key(token.len),
            Meaning::Release(_) | Meaning::Beside if between => self.hold(token.len),
            // Drop the release: its press was before we attached, so the agent never saw it.
            Meaning::Release(keys) if self.keys.len() == 1 && keys.contains(&wanted) => {
                Verdict::Drop(token.len)
            }
            _ if between => self.give_up_first(),
            Meaning::PasteBegins => {
                self.place = Place::Paste { end_seen: 0 };
                Verdict::Pass(token.len)
            }
            _ if is_escape_before_control(bytes) => Verdict::Pass(1),
            _ => Verdict::Pass(token.len),
        }
    }

    fn take_key(&mut self, len: usize) -> Verdict {
        self.matched.keys += 1;
        if self.matched.keys == self.keys.len() {
            self.place = Place::Detached;
        }
        self.hold(len)
    }

    fn hold(&mut self, len: usize) -> Verdict {
        if self.matched.bytes == 0 {
            self.matched.first_len = len;
        }
        self.matched.bytes += len;
        Verdict::Hold
    }

    /// The first held key does not start the sequence; the next one may.
    fn give_up_first(&mut self) -> Verdict {
        Verdict::Pass(std::mem::take(&mut self.matched).first_len)
    }
}

enum Verdict {
    Pass(usize),
    Drop(usize),
    /// The user has detached: the bytes from `from` on came after the detach keys.
    Rest {
        from: usize,
        len: usize,
    },
    /// The token after the matched ones matches too.
    Hold,
    /// More bytes are needed.
    Wait,
}

/// Escape and a control code in one write are more often two keys than one key with alt.
fn is_escape_before_control(bytes: &[u8]) -> bool {
    matches!(bytes, [0x1b, 0..=0x1f, ..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::DetachKeys;
    use super::*;

    fn matcher(keys: &str) -> Matcher {
        DetachKeys::parse(keys).unwrap().matcher()
    }

    /// Feeds all bytes at once, then flushes.
    fn type_all(keys: &str, bytes: &[u8]) -> Typed {
        type_in_pieces(keys, [bytes])
    }

    fn type_in_pieces<'a>(keys: &str, pieces: impl IntoIterator<Item = &'a [u8]>) -> Typed {
        let mut matcher = matcher(keys);
        let mut whole = Typed::default();
        let mut add = |typed: Typed| {
            whole.pass.extend(typed.pass);
            whole.detached |= typed.detached;
        };
        pieces.into_iter().for_each(|piece| add(matcher.feed(piece)));
        while matcher.pending().is_some() {
            add(matcher.flush());
        }
        whole
    }

    fn passes(keys: &str, bytes: &str) {
        let typed = type_all(keys, bytes.as_bytes());
        assert_eq!((typed.detached, String::from_utf8_lossy(&typed.pass).as_ref()), (false, bytes), "{keys}");
    }

    fn detaches(keys: &str, bytes: &str, before: &str) {
        let typed = type_all(keys, bytes.as_bytes());
        assert_eq!((typed.detached, String::from_utf8_lossy(&typed.pass).as_ref()), (true, before), "{keys}");
    }

    #[test]
    fn the_key_detaches_and_what_follows_is_not_sent() {
        detaches("ctrl-q", "ls\r\x11exit\r", "ls\r");
        detaches("ctrl-q", "ls\x1b[113;5urm", "ls");
        detaches("ctrl-q", "\x1b[27;5;113~", "");
        detaches("ctrl-q", "\x1b\x11", "\x1b");
        detaches("ctrl-alt-q", "\x1b\x11", "");
        detaches("ctrl-space", "a\0", "a");
        detaches("f12", "a\x1b[24~", "a");
        detaches("esc", "a\x1b", "a");
        detaches("~", "a~", "a");
        passes("none", "\x11\x1b[113;5u");
        assert_eq!(matcher("ctrl-q").feed(b"ls\r\x11exit\r").rest, b"exit\r");
        assert_eq!(matcher("ctrl-p,ctrl-q").feed(b"\x10\x11n").rest, b"n");
    }

    #[test]
    fn a_sequence_detaches_only_as_a_whole() {
        detaches("ctrl-p,ctrl-q", "a\x10\x11b", "a");
        detaches("ctrl-p,ctrl-q", "\x10\x10\x11", "\x10");
        detaches("ctrl-a,ctrl-a,d", "\x01\x01\x01d", "\x01");
        passes("ctrl-p,ctrl-q", "\x10x\x11");
        passes("ctrl-p,ctrl-q", "\x10");
        passes("ctrl-p,ctrl-q", "\x10\x1b[A");
    }

    #[test]
    fn releases_and_modifiers_do_not_part_a_sequence() {
        detaches("ctrl-p,ctrl-q", "\x1b[57442;5u\x1b[112;5u\x1b[112;5:3u\x1b[113;5:1u", "\x1b[57442;5u");
        detaches("ctrl-p,ctrl-q", "\x1b[112;5u\x1b[<35;1;1M\x1b[57442;5u\x1b[113;5u", "");
        passes("ctrl-p,ctrl-q", "\x1b[112;5u\x1b[112;5:3ux");
    }

    #[test]
    fn a_release_of_the_key_is_swallowed() {
        let typed = type_all("ctrl-q", b"a\x1b[113;5:3ub");
        assert_eq!((typed.detached, typed.pass.as_slice()), (false, b"ab".as_slice()));
        passes("ctrl-q", "\x1b[97;5:3u");
    }

    #[test]
    fn a_paste_is_text() {
        passes("ctrl-q", "\x1b[200~a\x11b\x1b[113;5u\x1b[201~c");
        detaches("ctrl-q", "\x1b[200~\x11\x1b[201~\x11", "\x1b[200~\x11\x1b[201~");
        passes("ctrl-q", "\x1b[200~\x11\x1b\x1b[20\x11");
        passes("ctrl-p,ctrl-q", "\x10\x1b[200~\x11\x1b[201~");
    }

    #[test]
    fn escape_waits_a_moment_and_no_longer() {
        let mut matcher = matcher("ctrl-q");
        assert_eq!(matcher.feed(b"\x1b"), Typed::default());
        assert_eq!(matcher.pending(), Some(UNFINISHED_KEY));
        assert_eq!(matcher.flush().pass, b"\x1b");
        assert_eq!(matcher.pending(), None);
        assert_eq!(matcher.feed(b"[A").pass, b"[A");
    }

    #[test]
    fn the_beginning_of_a_sequence_waits_longer() {
        let mut matcher = matcher("ctrl-p,ctrl-q");
        assert_eq!(matcher.feed(b"\x10"), Typed::default());
        assert_eq!(matcher.pending(), Some(UNFINISHED_SEQUENCE));
        assert_eq!(matcher.flush().pass, b"\x10");
        assert!(!matcher.feed(b"\x11").detached);
    }

    const PIECES: &[&str] = &[
        "a",
        "q",
        "ä",
        "\u{1f600}",
        "\x1b",
        "[",
        "1",
        ";5u",
        "\x10",
        "\x11",
        "\x1b[A",
        "\x1bOP",
        "\x1b[112;5u",
        "\x1b[113;5u",
        "\x1b[113;5:1u",
        "\x1b[112;5:3u",
        "\x1b[27;5;113~",
        "\x1b[200~",
        "\x1b[201~",
        "\x1b[M !!",
        "\x1b[<0;1;1M",
        "\x1b[57442;5u",
        "\x1b[113;6u",
        "\r",
        "\x1b[I",
        "\x1b[111111111111111111111111111111111111111111111111111111111111111111111113;5u",
    ];

    fn typing() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => proptest::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
            1 => proptest::collection::vec(any::<u8>(), 0..6),
        ];
        proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
    }

    fn cut(bytes: &[u8], mut cuts: Vec<usize>) -> Vec<&[u8]> {
        cuts.iter_mut().for_each(|cut| *cut %= bytes.len() + 1);
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
    }

    const KEYS: &[&str] = &["ctrl-q", "ctrl-p,ctrl-q", "alt-q", "esc,q", "f1", "q", "none"];

    proptest! {
        #[test]
        fn how_reads_are_cut_never_matters(
            keys in proptest::sample::select(KEYS),
            bytes in typing(),
            cuts in proptest::collection::vec(any::<usize>(), 0..8),
        ) {
            prop_assert_eq!(type_in_pieces(keys, cut(&bytes, cuts)), type_all(keys, &bytes));
        }

        #[test]
        fn without_the_key_everything_passes_unchanged(bytes in typing()) {
            // None of the pieces above can be read as F24, pressed or released.
            let typed = type_all("f24,ctrl-q", &bytes);
            prop_assert_eq!(typed, Typed { pass: bytes, ..Typed::default() });
        }

        #[test]
        fn what_passes_is_a_beginning_of_what_was_typed(bytes in typing()) {
            let typed = type_all("ctrl-p,ctrl-q", &bytes);
            prop_assert!(bytes.starts_with(&typed.pass));
            prop_assert!(typed.detached || typed.pass.len() == bytes.len());
        }
    }
}
