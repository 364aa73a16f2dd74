//! A question that is answered with yes or no, on a terminal.

use std::io::{self, IsTerminal, Write};

use agency_api::{Failure, FailureCode};

use crate::stop::{Stop, failed};

/// What a line without a word means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Otherwise {
    Yes,
    No,
}

/// Whether somebody is there to answer.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks; the hint is for those who cannot be asked.
pub(crate) fn ask(question: &str, otherwise: Otherwise, hint: &str) -> Result<bool, Stop> {
    if !can_ask() {
        let failure = Failure::new("cannot ask without a terminal").code(FailureCode::NeedsTerminal);
        return Err(failure.hint(hint).into());
    }
    let choice = match otherwise {
        Otherwise::Yes => "[Y/n]",
        Otherwise::No => "[y/N]",
    };
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} {choice} ")?;
    stderr.flush()?;
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|err| failed("cannot read the answer", &err))?;
    Ok(is_yes(&line, otherwise))
}

/// Of a line with its end: without one nobody answered, which agrees to nothing.
fn is_yes(line: &str, otherwise: Otherwise) -> bool {
    let word = line.trim().to_ascii_lowercase();
    match otherwise {
        Otherwise::Yes => !line.is_empty() && !word.starts_with('n'),
        Otherwise::No => matches!(word.as_str(), "y" | "yes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_word_is_what_the_question_says() {
        for line in ["y\n", "Yes\r\n"] {
            assert!(is_yes(line, Otherwise::Yes) && is_yes(line, Otherwise::No), "{line:?}");
        }
        for line in ["", "n\n", " No\n"] {
            assert!(!is_yes(line, Otherwise::Yes) && !is_yes(line, Otherwise::No), "{line:?}");
        }
        assert!(is_yes("\n", Otherwise::Yes) && !is_yes("\n", Otherwise::No));
        assert!(!is_yes("yonder\n", Otherwise::No));
    }
}
