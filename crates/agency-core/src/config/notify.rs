//! The channels of notifications: `[notify]`.
//!
//! Not here: when to send one (`crate::notify`), and the sending.

use std::str::FromStr;

/// The table `[notify]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notify {
    /// Desktop notifications. Unset: if a desktop is present.
    pub desktop: Option<bool>,
    /// Notifications through the terminal of an attached user.
    pub terminal: TerminalNotice,
    /// A program that gets the event as JSON on standard input.
    pub command: Option<Vec<String>>,
    /// An address that gets the event as JSON.
    pub webhook: Option<String>,
    /// Words of [`OCCASIONS`]. Agency sends no notification for the others.
    pub on: Vec<String>,
}

/// The reasons for a notification: what an agent waits for, and that it ended. Any other reason counts as `unknown`.
pub const OCCASIONS: [&str; 7] =
    ["prompt", "permission", "question", "finished", "error", "unknown", "exited"];

impl Default for Notify {
    fn default() -> Notify {
        Notify {
            desktop: None,
            terminal: TerminalNotice::Auto,
            command: None,
            webhook: None,
            on: OCCASIONS.map(str::to_owned).to_vec(),
        }
    }
}

impl Notify {
    /// Whether the user wants a notification for this reason.
    pub fn wants(&self, why: &str) -> bool {
        let occasion = OCCASIONS.into_iter().find(|word| *word == why).unwrap_or("unknown");
        self.on.iter().any(|word| word == occasion)
    }
}

/// How the terminal of a user who is attached to another task shows a notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TerminalNotice {
    /// The sequence that this terminal is known to understand, otherwise the bell.
    #[default]
    Auto,
    /// The sequence OSC 9.
    Osc9,
    /// The sequence OSC 777.
    Osc777,
    /// BEL
    Bell,
    /// No notification.
    None,
}

impl TerminalNotice {
    /// Every way.
    pub const ALL: [TerminalNotice; 5] = [
        TerminalNotice::Auto,
        TerminalNotice::Osc9,
        TerminalNotice::Osc777,
        TerminalNotice::Bell,
        TerminalNotice::None,
    ];

    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            TerminalNotice::Auto => "auto",
            TerminalNotice::Osc9 => "osc9",
            TerminalNotice::Osc777 => "osc777",
            TerminalNotice::Bell => "bell",
            TerminalNotice::None => "none",
        }
    }
}

/// The text is not one of the words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a way to notify through a terminal")]
pub struct UnknownTerminalNotice(pub String);

impl FromStr for TerminalNotice {
    type Err = UnknownTerminalNotice;

    fn from_str(text: &str) -> Result<TerminalNotice, UnknownTerminalNotice> {
        let found = TerminalNotice::ALL.into_iter().find(|word| word.as_str() == text);
        found.ok_or_else(|| UnknownTerminalNotice(text.to_owned()))
    }
}

/// Whether the text is an address with a host and a scheme that we support.
pub(super) fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    !host.is_empty()
        && !host.starts_with(':')
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_gets_the_chosen_reasons_and_other_reasons_count_as_unknown() {
        let all = Notify::default();
        assert!(OCCASIONS.iter().all(|why| all.wants(why)));
        assert!(all.wants("") && all.wants("a word of a later version"));
        let few = Notify { on: vec!["permission".to_owned()], ..Notify::default() };
        assert!(few.wants("permission") && !few.wants("finished") && !few.wants(""));
    }

    #[test]
    fn addresses_have_a_scheme_and_a_host() {
        for good in
            ["http://h", "https://me:secret@h:8080/p?q=1#f", "https://[::1]:80/", "http://127.0.0.1:1"]
        {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "",
            "h",
            "ftp://h",
            "http://",
            "http:///p",
            "https://a b",
            "http://:80",
            "http://me@/p",
            "http://h/\n",
        ] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
