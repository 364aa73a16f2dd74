//! The keys that leave a terminal or a conversation: the detach keys, and a key after them that goes on to the next task.
//!
//! Reads no clock: the caller waits as long as [`LeaveKeys::pending`] says and then flushes.

use std::time::Duration;

use agency_terminal::keys::{DetachKeys, Matcher, Typed};

/// A second key follows within this time. A user who only detaches hardly notices the pause.
const SECOND_KEY_WITHIN: Duration = Duration::from_millis(300);

pub(crate) struct LeaveKeys {
    keys: DetachKeys,
    matcher: Matcher,
    /// The detach keys were pressed; another key may follow.
    second: Option<SecondKey>,
}

/// After the detach keys: the detach keys again, or `n`.
struct SecondKey {
    again: Matcher,
    next: Option<Matcher>,
}

/// The result of typed bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Pressed {
    /// Bytes for the agent.
    pub(crate) pass: Vec<u8>,
    pub(crate) leave: Option<Leave>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    Detach,
    /// Go on to the next task that needs the user.
    Next,
}

impl LeaveKeys {
    pub(crate) fn new(keys: DetachKeys) -> LeaveKeys {
        LeaveKeys { matcher: keys.matcher(), keys, second: None }
    }

    pub(crate) fn keys(&self) -> &DetachKeys {
        &self.keys
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Pressed {
        match &mut self.second {
            Some(second) => second.feed(bytes),
            None => {
                let typed = self.matcher.feed(bytes);
                self.first(typed)
            }
        }
    }

    /// How long to wait for more keys before [`LeaveKeys::flush`]; `None` if nothing is undecided.
    pub(crate) fn pending(&self) -> Option<Duration> {
        match self.second {
            Some(_) => Some(SECOND_KEY_WITHIN),
            None => self.matcher.pending(),
        }
    }

    pub(crate) fn flush(&mut self) -> Pressed {
        if self.second.is_some() {
            return Pressed { leave: Some(Leave::Detach), ..Pressed::default() };
        }
        let typed = self.matcher.flush();
        self.first(typed)
    }

    fn first(&mut self, typed: Typed) -> Pressed {
        if !typed.detached {
            return Pressed { pass: typed.pass, leave: None };
        }
        let next = DetachKeys::parse("n").ok().map(|key| key.matcher());
        let mut second = SecondKey { again: self.keys.matcher(), next };
        let leave = second.feed(&typed.rest).leave;
        self.second = Some(second);
        Pressed { pass: typed.pass, leave }
    }
}

impl SecondKey {
    fn feed(&mut self, bytes: &[u8]) -> Pressed {
        let again = self.again.feed(bytes);
        let next = self.next.as_mut().map(|next| next.feed(bytes)).unwrap_or_default();
        // Text that follows at once was typed for the agent by a user who did not see that they left.
        let is_key = |typed: &Typed| typed.detached && typed.pass.is_empty() && typed.rest.is_empty();
        let leave = match () {
            () if is_key(&again) || is_key(&next) => Some(Leave::Next),
            // A key that the terminal reports as released, or the beginning of a key sequence.
            () if again.pass.is_empty() => None,
            () => Some(Leave::Detach),
        };
        Pressed { pass: Vec::new(), leave }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(keys: &str, pieces: &[&str], pass: &str, leave: Option<Leave>) {
        let mut keys = LeaveKeys::new(DetachKeys::parse(keys).expect("keys"));
        let mut passed = Vec::new();
        let mut outcome = None;
        for piece in pieces {
            let pressed = if piece.is_empty() { keys.flush() } else { keys.feed(piece.as_bytes()) };
            passed.extend(pressed.pass);
            outcome = outcome.or(pressed.leave);
        }
        assert_eq!((String::from_utf8_lossy(&passed).as_ref(), outcome), (pass, leave), "{pieces:?}");
    }

    #[test]
    fn the_detach_key_waits_a_moment_for_a_second_key() {
        check("ctrl-q", &["ls\r\x11"], "ls\r", None);
        check("ctrl-q", &["ls\r\x11", ""], "ls\r", Some(Leave::Detach));
        check("ctrl-q", &["\x11", "\x11"], "", Some(Leave::Next));
        check("ctrl-q", &["a\x11\x11"], "a", Some(Leave::Next));
        check("ctrl-q", &["\x11", "n"], "", Some(Leave::Next));
        check("ctrl-q", &["\x1b[113;5u", "\x1b[113;5u"], "", Some(Leave::Next));
        // The release of the first press.
        check("ctrl-q", &["\x1b[113;5u", "\x1b[113;5:3u", ""], "", Some(Leave::Detach));
        check("ctrl-q", &["\x11", "x"], "", Some(Leave::Detach));
        check("ctrl-q", &["\x11exit\r"], "", Some(Leave::Detach));
        check("ctrl-q", &["\x11not for the agent"], "", Some(Leave::Detach));
        check("ctrl-p,ctrl-q", &["\x10\x11", "\x10", "\x11"], "", Some(Leave::Next));
        check("ctrl-p,ctrl-q", &["\x10", ""], "\x10", None);
        check("none", &["\x11\x11"], "\x11\x11", None);
    }
}
