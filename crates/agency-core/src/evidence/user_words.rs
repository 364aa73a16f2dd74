//! The words that the user typed or sent, as hashes: a text with one of them is not the program's own and is never
//! remembered.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Shorter words are in every text.
const SHORTEST: usize = 4;
/// The most words that are kept. A user with more of them has used nearly every word, so no text is foreign.
const MOST: usize = 2_000;

/// The words of the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserWords {
    words: BTreeSet<u64>,
    /// The word that is being typed.
    #[serde(default)]
    typing: String,
    #[serde(default)]
    is_full: bool,
}

impl UserWords {
    /// The words of a text.
    pub fn of(text: &str) -> UserWords {
        let mut words = UserWords::default();
        words.add(text);
        words
    }

    /// Adds the words of a whole text.
    pub fn add(&mut self, text: &str) {
        words_of(text).for_each(|word| self.insert(&word));
    }

    /// The user typed this. A word may come key by key.
    pub fn on_typed(&mut self, bytes: &[u8]) {
        for c in String::from_utf8_lossy(bytes).chars() {
            match c {
                '\u{8}' | '\u{7f}' => drop(self.typing.pop()),
                c if c.is_alphabetic() => self.typing.push(c),
                _ => self.end_word(),
            }
        }
        // A word may be finished by other means than a key, for example by a click.
        let unfinished = self.typing.clone();
        self.add(&unfinished);
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.typing);
        self.add(&word);
    }

    fn insert(&mut self, word: &str) {
        self.is_full |= self.words.len() >= MOST;
        if !self.is_full {
            self.words.insert(hash(word));
        }
    }

    /// Whether the text has a word to recognize it by, and none of the user.
    pub fn is_foreign(&self, text: &str) -> bool {
        let mut words = words_of(text).peekable();
        !self.is_full && words.peek().is_some() && words.all(|word| !self.words.contains(&hash(&word)))
    }
}

fn words_of(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphabetic());
    words.filter(|word| word.chars().count() >= SHORTEST).map(str::to_lowercase)
}

/// 64 bits of FNV-1a.
pub(super) fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_a_word_of_the_user_is_not_foreign() {
        let mut words = UserWords::of("Fix the login, please");
        assert!(words.is_foreign("esc to interrupt"));
        assert!(!words.is_foreign("fixing login"));
        assert!(!words.is_foreign("do it"), "nothing in it is long enough to tell");
        for key in ["s", "e", "x", "\u{7f}", "c", "r", "e", "t"] {
            words.on_typed(key.as_bytes());
        }
        assert!(!words.is_foreign("the secret"), "also before the word is finished");
        words.on_typed(b"\x1b[200~hunter\x1b[201~\r");
        assert!(!words.is_foreign("hunter"));
    }

    #[test]
    fn a_user_with_too_many_words_leaves_nothing_foreign() {
        let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
        let word = |n: usize| [letter(n), letter(n / 26), letter(n / 676), 'x'].iter().collect::<String>();
        let text: Vec<String> = (0..=MOST).map(word).collect();
        assert!(UserWords::of("").is_foreign("thinking"));
        assert!(!UserWords::of(&text.join(" ")).is_foreign("thinking"));
    }
}
