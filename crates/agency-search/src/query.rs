//! Turns the words that a user typed into an FTS5 expression that is always valid.

/// Returns none if the text has no word.
///
/// A hit contains every word. The last word may be the beginning of a longer one. Words in double quotes follow each
/// other in that order.
pub fn expression(typed: &str) -> Option<String> {
    let terms: Vec<Term> = terms(typed).into_iter().filter(Term::has_a_word).collect();
    let last = terms.len().checked_sub(1)?;
    let quoted = terms.iter().enumerate().map(|(at, term)| {
        let star = if at == last && !term.is_phrase { "*" } else { "" };
        format!("\"{}\"{star}", term.text)
    });
    Some(quoted.collect::<Vec<_>>().join(" "))
}

#[derive(Debug, PartialEq, Eq)]
struct Term {
    /// Without quotes and zero bytes: both would end the term.
    text: String,
    is_phrase: bool,
}

impl Term {
    /// FTS5 ignores all other characters.
    fn has_a_word(&self) -> bool {
        self.text.chars().any(char::is_alphanumeric)
    }
}

fn terms(typed: &str) -> Vec<Term> {
    let clean = typed.replace('\0', " ");
    let mut terms = Vec::new();
    // Every second part is in quotes. A quote that is never closed ends with the text.
    for (at, part) in clean.split('"').enumerate() {
        let is_phrase = at % 2 == 1;
        match is_phrase {
            true => terms.push(Term { text: part.to_owned(), is_phrase }),
            false => {
                let words = part.split_whitespace().map(|word| Term { text: word.to_owned(), is_phrase });
                terms.extend(words);
            }
        }
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_and_the_last_may_be_a_prefix() {
        for (typed, wanted) in [
            ("login", "\"login\"*"),
            ("fix the login", "\"fix\" \"the\" \"login\"*"),
            ("\"the login\" page", "\"the login\" \"page\"*"),
            ("page \"the login\"", "\"page\" \"the login\""),
            ("\"never closed", "\"never closed\""),
            ("kill -9 AND", "\"kill\" \"-9\" \"AND\"*"),
            ("a - b", "\"a\" \"b\"*"),
        ] {
            assert_eq!(expression(typed).as_deref(), Some(wanted), "{typed}");
        }
    }

    #[test]
    fn a_text_without_words_has_no_expression() {
        for typed in ["", "  ", "-- * ()", "\"\"", "\0"] {
            assert_eq!(expression(typed), None, "{typed:?}");
        }
    }
}
