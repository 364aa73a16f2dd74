//! Asks the user a yes-or-no question on the terminal.

use std::io::{self, IsTerminal, Write};

use agency_api::{Failure, FailureCode};

use crate::outcome::{CommandError, failed};

/// The meaning of an empty line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DefaultAnswer {
    Yes,
    No,
}

/// The answer to a question about work that the user may want to see first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
    Show,
}

/// Whether there is a terminal to ask on.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks whether to go on, and offers the diff. The caller has checked that there is a terminal.
pub(crate) fn ask_or_show(question: &str, default: DefaultAnswer) -> Result<Answer, CommandError> {
    let choice = match default {
        DefaultAnswer::Yes => "[Y/n/diff]",
        DefaultAnswer::No => "[y/N/diff]",
    };
    let line = read_answer(question, choice)?;
    Ok(answer(&line, default))
}

/// A word that is not understood is no.
fn answer(line: &str, default: DefaultAnswer) -> Answer {
    match (line.trim().to_ascii_lowercase().as_str(), default) {
        ("d" | "diff", _) => Answer::Show,
        ("y" | "yes", _) => Answer::Yes,
        ("", DefaultAnswer::Yes) if !line.is_empty() => Answer::Yes,
        _ => Answer::No,
    }
}

/// Asks the question. Without a terminal it fails with `hint`.
pub(crate) fn ask(question: &str, default: DefaultAnswer, hint: &str) -> Result<bool, CommandError> {
    if !can_ask() {
        let failure = Failure::new("cannot ask without a terminal").code(FailureCode::NeedsTerminal);
        return Err(failure.hint(hint).into());
    }
    let choice = match default {
        DefaultAnswer::Yes => "[Y/n]",
        DefaultAnswer::No => "[y/N]",
    };
    Ok(is_yes(&read_answer(question, choice)?, default))
}

/// The line that the user types, with its line end.
fn read_answer(question: &str, choice: &str) -> Result<String, CommandError> {
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} {choice} ")?;
    stderr.flush()?;
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|err| failed("cannot read the answer", &err))?;
    Ok(line)
}

/// `line` has its line end. If it has none, input ended without an answer, and the answer is no.
fn is_yes(line: &str, default: DefaultAnswer) -> bool {
    let word = line.trim().to_ascii_lowercase();
    match default {
        DefaultAnswer::Yes => !line.is_empty() && !word.starts_with('n'),
        DefaultAnswer::No => matches!(word.as_str(), "y" | "yes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_line_is_the_default_answer() {
        for line in ["y\n", "Yes\r\n"] {
            assert!(is_yes(line, DefaultAnswer::Yes) && is_yes(line, DefaultAnswer::No), "{line:?}");
        }
        for line in ["", "n\n", " No\n"] {
            assert!(!is_yes(line, DefaultAnswer::Yes) && !is_yes(line, DefaultAnswer::No), "{line:?}");
        }
        assert!(is_yes("\n", DefaultAnswer::Yes) && !is_yes("\n", DefaultAnswer::No));
        assert!(!is_yes("yonder\n", DefaultAnswer::No));
    }

    #[test]
    fn only_yes_merges_and_only_a_whole_word_is_yes() {
        for (line, expected) in [("\n", Answer::Yes), ("Y\n", Answer::Yes), ("diff\n", Answer::Show)] {
            assert_eq!(answer(line, DefaultAnswer::Yes), expected, "{line:?}");
        }
        for line in ["", "n\n", "what?\n"] {
            assert_eq!(answer(line, DefaultAnswer::Yes), Answer::No, "{line:?}");
        }
        assert_eq!(answer("\n", DefaultAnswer::No), Answer::No);
    }
}
