//! What a person typed, made into a question that FTS5 understands whatever it was.

/// None if there is no word in it.
///
/// Every word has to be there, and the last may be the beginning of one; what stands between double quotes has to be
/// there in that order.
pub fn expression(typed: &str) -> Option<String> {
    let terms: Vec<Term> = terms(typed).into_iter().filter(Term::has_a_word).collect();
    let last = terms.len().checked_sub(1)?;
    let quoted = terms.iter().enumerate().map(|(at, term)| {
        let goes_on = if at == last && !term.is_phrase { "*" } else { "" };
        format!("\"{}\"{goes_on}", term.text)
    });
    Some(quoted.collect::<Vec<_>>().join(" "))
}

#[derive(Debug, PartialEq, Eq)]
struct Term {
    /// Without quotes and zero bytes, which would end it.
    text: String,
    is_phrase: bool,
}

impl Term {
    /// The tokenizer passes over everything else.
    fn has_a_word(&self) -> bool {
        self.text.chars().any(char::is_alphanumeric)
    }
}

fn terms(typed: &str) -> Vec<Term> {
    let clean = typed.replace('\0', " ");
    let mut terms = Vec::new();
    // Every second part stands between quotes; one that is never closed ends with the text.
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
    fn words_are_quoted_and_the_last_may_go_on() {
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
    fn without_a_word_there_is_no_question() {
        for typed in ["", "  ", "-- * ()", "\"\"", "\0"] {
            assert_eq!(expression(typed), None, "{typed:?}");
        }
    }
}
