//! One choice of a menu, and the words of choices that mean yes and no.

/// One choice of a menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The text of the choice, without its mark and number.
    pub label: String,
    /// The key that the screen names for this choice: `2` in `2. No`, `n` in `[y/n]`. `None` for a whole word: `[yes/no]`.
    pub key: Option<char>,
}

/// First words of choices that agree.
pub(super) const YES: &[&str] = &[
    "yes", "allow", "always", "approve", "accept", "proceed", "run", "execute", "grant", "apply", "confirm",
    "ok", "continue", "permit", "auto",
];
/// First words of choices that refuse.
pub(super) const NO: &[&str] = &[
    "no", "deny", "reject", "cancel", "skip", "decline", "abort", "never", "don't", "dont", "disallow",
    "block", "stop", "exit", "quit", "refuse",
];

/// The choices of a row, the one that Enter takes, and the text before them.
pub(super) type Line = (Vec<Choice>, Option<usize>, Option<String>);

/// Whether the first word of the text is in the list.
pub(super) fn begins_with(text: &str, list: &[&str]) -> bool {
    first_word(text).is_some_and(|word| list.contains(&word.as_str()))
}

pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    let is_letter = |c: char| c.is_alphanumeric() || c == '\'';
    text.split(move |c: char| !is_letter(c)).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

pub(super) fn first_word(text: &str) -> Option<String> {
    words(text).next()
}
