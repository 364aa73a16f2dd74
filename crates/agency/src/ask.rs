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

/// Whether there is a terminal to ask on.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
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
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} {choice} ")?;
    stderr.flush()?;
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|err| failed("cannot read the answer", &err))?;
    Ok(is_yes(&line, default))
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
}
