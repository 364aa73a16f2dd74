//! `agency edit`: changes the text of a task.
//!
//! Invariant: a text that the user wrote in the editor is not lost. It is in a draft until the task has it.

use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use agency_api::method::{TaskEdit, TaskEditParams, TaskText, TaskTextView};
use agency_api::view::{Task, TaskStatus};
use agency_api::{Bytes, Failure, FailureCode};

use crate::cli::Edit;
use crate::context::Context;
use crate::draft::Draft;
use crate::outcome::{CommandResult, with_hint};
use crate::output;
use crate::text_input::{LONGEST_TEXT, read_stdin};

pub(super) async fn edit(context: &Context, args: Edit) -> CommandResult {
    let task = context.task(&args.name.task)?;
    let mut daemon = context.daemon().await?;
    let before = daemon.call(TaskText, task.clone()).await?;
    let name = format!("{}-{}", before.task.id, before.task.slug);
    let (text, draft) = match args.message {
        Some(message) => (message.as_bytes().to_vec(), None),
        None if io::stdin().is_terminal() => written_in_editor(context, &name, &before).await?,
        None => (read_stdin(LONGEST_TEXT)?, None),
    };
    let text = without_line_ends(&text);
    if text == without_line_ends(&before.text.0) {
        discard(draft);
        output::line(&format!("{name}: the text is unchanged"))?;
        return Ok(ExitCode::SUCCESS);
    }
    if text.trim_ascii().is_empty() {
        discard(draft);
        return Err(empty(&name).into());
    }
    let params = TaskEditParams { task, text: Bytes(text.to_vec()), replaces: Some(before.text) };
    match daemon.call(TaskEdit, params).await {
        Ok(task) => {
            discard(draft);
            output::line(&format!("{name}: {}", outcome(&task)))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(failure) => Err(match draft {
            Some(draft) => with_hint(failure, &format!("your text is saved: {}", draft.path().display())),
            None => failure,
        }
        .into()),
    }
}

/// Says how the new text reaches the agent.
fn outcome(task: &Task) -> String {
    let slug = &task.slug;
    match (task.run.is_some(), task.status == TaskStatus::Draft) {
        (true, _) => format!("saved; its agent has the old text already: agency send {slug} TEXT reaches it"),
        (false, true) => format!("saved; agency start {slug} sends it"),
        (false, false) => format!("saved; agency start {slug} --fresh sends it in a new session"),
    }
}

async fn written_in_editor(
    context: &Context,
    name: &str,
    before: &TaskTextView,
) -> Result<(Vec<u8>, Option<Draft>), Failure> {
    let lines = [without_line_ends(&before.text.0), b"\n"].concat();
    let draft = Draft::create(&context.state, name, "md", &lines)?;
    let edited = draft.edit().await;
    let text = draft.read()?;
    match edited {
        Ok(()) => Ok((text, Some(draft))),
        Err(failure) if without_line_ends(&text) == without_line_ends(&before.text.0) => {
            draft.delete();
            Err(failure)
        }
        Err(failure) => Err(with_hint(failure, &format!("your text is saved: {}", draft.path().display()))),
    }
}

fn discard(draft: Option<Draft>) {
    if let Some(draft) = draft {
        draft.delete();
    }
}

fn empty(name: &str) -> Failure {
    Failure::new(format!("the text of {name} is unchanged"))
        .code(FailureCode::Cancelled)
        .because("the new text is empty")
}

/// Editors end a file with a newline. That is no change of the text.
fn without_line_ends(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_end_that_an_editor_adds_is_no_change() {
        assert_eq!(without_line_ends(b"fix it\r\n\n"), b"fix it");
        assert_eq!(without_line_ends(b"  a\n b "), b"  a\n b ");
        assert_eq!(without_line_ends(b"\n"), b"");
    }
}
