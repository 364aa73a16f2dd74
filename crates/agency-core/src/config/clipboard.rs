//! Whether agents may write to the clipboard of who types.
//!
//! Reading it is never allowed, so there is no word for that.

use std::str::FromStr;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clipboard {
    /// What is pasted next was copied by the user.
    #[default]
    Deny,
    Allow,
}

impl Clipboard {
    pub fn as_str(self) -> &'static str {
        match self {
            Clipboard::Deny => "deny",
            Clipboard::Allow => "allow",
        }
    }
}

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
