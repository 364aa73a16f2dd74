//! Asks before a command ends programs that run in terminals beside agents.

use agency_api::{Failure, FailureCode};

use crate::ask::{DefaultAnswer, ask, can_ask};
use crate::outcome::CommandError;
use crate::output::{self, printable};

/// Calls without force first. If a program runs in a terminal, asks the user, and calls again with force. Without a terminal to
/// ask on, the refusal of the daemon is the answer.
pub(crate) async fn ask_to_end<T>(
    force: bool,
    call: impl AsyncFn(bool) -> Result<T, Failure>,
) -> Result<T, CommandError> {
    match call(force).await {
        Err(failure) if may_ask(&failure) => match agrees(&failure)? {
            true => Ok(call(true).await?),
            false => Err(Failure { hint: None, ..failure }.into()),
        },
        outcome => Ok(outcome?),
    }
}

fn may_ask(failure: &Failure) -> bool {
    failure.code == FailureCode::ProgramRunning && can_ask()
}

fn agrees(failure: &Failure) -> Result<bool, CommandError> {
    // The message says what cannot be done, unless the program is all that there is to say.
    let sentences =
        if failure.causes.is_empty() { std::slice::from_ref(&failure.message) } else { &failure.causes };
    sentences.iter().for_each(|sentence| output::note(&printable(sentence)));
    let question = if sentences.len() == 1 { "End it?" } else { "End them?" };
    ask(question, DefaultAnswer::No, "pass --force")
}
