//! Who is told, and how, when an agent needs somebody: `[notify]`.
//!
//! Not here: when something is worth telling (`crate::notify`), and the telling.

use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notify {
    /// Unset: where a desktop is there.
    pub desktop: Option<bool>,
    pub terminal: TerminalNotice,
    pub command: Option<Vec<String>>,
    pub webhook: Option<String>,
    /// Words of [`OCCASIONS`]; the others are not told.
    pub on: Vec<String>,
}

/// What an agent can wait for, and that it ended. A wait whose reason is not among them is `unknown`.
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
    /// Does the user want to hear of this one?
    pub fn wants(&self, why: &str) -> bool {
        let occasion = OCCASIONS.into_iter().find(|word| *word == why).unwrap_or("unknown");
        self.on.iter().any(|word| word == occasion)
    }
}

/// How the terminal of somebody who is attached elsewhere tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TerminalNotice {
    /// What that terminal is known to understand, else the bell.
    #[default]
    Auto,
    Osc9,
    Osc777,
    Bell,
    None,
}

impl TerminalNotice {
    pub const ALL: [TerminalNotice; 5] = [
        TerminalNotice::Auto,
        TerminalNotice::Osc9,
        TerminalNotice::Osc777,
        TerminalNotice::Bell,
        TerminalNotice::None,
    ];

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

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no way for a terminal to tell something")]
pub struct UnknownTerminalNotice(pub String);

impl FromStr for TerminalNotice {
    type Err = UnknownTerminalNotice;

    fn from_str(text: &str) -> Result<TerminalNotice, UnknownTerminalNotice> {
        let found = TerminalNotice::ALL.into_iter().find(|word| word.as_str() == text);
        found.ok_or_else(|| UnknownTerminalNotice(text.to_owned()))
    }
}

/// An address that can be called: a scheme we speak, and a host.
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
    fn what_is_wanted_is_told_and_reasons_without_a_name_are_unknown() {
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
