//! `[ui]`: how lists look on the user's terminal.
//!
//! Not here: what the terminal can show. The client finds that out.

use std::str::FromStr;

/// The table `[ui]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ui {
    /// The signs in lists.
    pub marks: MarkStyle,
}

/// The signs in lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkStyle {
    /// Emoji, unless the terminal or the locale shows only ASCII.
    #[default]
    Auto,
    /// ASCII.
    Ascii,
    /// Emoji.
    Emoji,
}

impl MarkStyle {
    /// Every style.
    pub const ALL: [MarkStyle; 3] = [MarkStyle::Auto, MarkStyle::Ascii, MarkStyle::Emoji];

    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            MarkStyle::Auto => "auto",
            MarkStyle::Ascii => "ascii",
            MarkStyle::Emoji => "emoji",
        }
    }
}

/// The text is not one of the words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a kind of marks")]
pub struct UnknownMarkStyle(pub String);

impl FromStr for MarkStyle {
    type Err = UnknownMarkStyle;

    fn from_str(text: &str) -> Result<MarkStyle, UnknownMarkStyle> {
        let found = MarkStyle::ALL.into_iter().find(|word| word.as_str() == text);
        found.ok_or_else(|| UnknownMarkStyle(text.to_owned()))
    }
}
