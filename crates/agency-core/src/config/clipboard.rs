//! Whether agents may write to the clipboard of the user who is attached and types.
//!
//! Agents may never read it, so there is no setting for that.

use std::str::FromStr;

/// The setting `clipboard`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clipboard {
    /// Agents cannot write to it, so the user pastes only what the user copied.
    #[default]
    Deny,
    /// Agents can write to it.
    Allow,
}

impl Clipboard {
    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Clipboard::Deny => "deny",
            Clipboard::Allow => "allow",
        }
    }
}

/// The text is neither of the two words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither deny nor allow")]
pub struct UnknownClipboard(pub String);

impl FromStr for Clipboard {
    type Err = UnknownClipboard;

    fn from_str(text: &str) -> Result<Clipboard, UnknownClipboard> {
        let found = [Clipboard::Deny, Clipboard::Allow].into_iter().find(|word| word.as_str() == text);
        found.ok_or_else(|| UnknownClipboard(text.to_owned()))
    }
}
