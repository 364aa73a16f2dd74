//! `agency send`: types a text into a task's terminal.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::process::ExitCode;

use agency_api::method::{Receipt, ReceiptKind, TaskSend, TaskSendParams};
use agency_api::{Bytes, Failure, FailureCode};

use crate::cli::Send;
use crate::context::Context;
use crate::output;
use crate::stop::Done;

/// A keeper takes no more at once; what makes it a paste has room beside it.
const LONGEST_TEXT: usize = (1 << 20) - 1024;

pub(super) async fn send(context: &Context, args: Send) -> Done {
    let task = context.task(&args.name.task)?;
    let enter = !args.no_enter;
    let text = match args.text.as_slice() {
        [only] if only == "-" => from_stdin(enter)?,
        words => joined(words),
    };
    not_too_long(&text)?;
    let mut daemon = context.daemon().await?;
    let (anyway, queue) = (args.anyway, args.queue);
    let params = TaskSendParams { task, text, enter, anyway, queue, keys: args.keys };
    let receipt = daemon.call(TaskSend, params).await?;
    if args.json {
        output::json(&receipt)?;
    } else if receipt.receipt == ReceiptKind::Refused {
        return Err(refused(&args.name.task, &receipt).into());
    } else {
        output::line(&human(&receipt))?;
    }
    let is_refused = receipt.receipt == ReceiptKind::Refused;
    Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn human(receipt: &Receipt) -> String {
    let word = match receipt.receipt {
        ReceiptKind::Delivered => "delivered",
        ReceiptKind::Typed => "typed",
        ReceiptKind::Refused => "refused",
        ReceiptKind::Queued => "queued",
    };
    let why = receipt.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    let unit = if receipt.bytes == 1 { "byte" } else { "bytes" };
    output::printable(&format!("{word} {} {unit}{why}", receipt.bytes))
}

fn refused(task: &str, receipt: &Receipt) -> Failure {
    let why = receipt.why.as_deref().unwrap_or("the agent accepts no text now");
    if let Some(screen) = &receipt.screen {
        output::note("Its screen shows:");
        screen.lines().for_each(|row| output::note(&format!("  │ {}", output::printable(row))));
    }
    Failure::new(format!("refused: {why}")).code(FailureCode::NotDelivered).hint(format!(
        "answer it: agency attach {task}, or agency send {task} --keys …; --anyway types the text regardless"
    ))
}

pub(super) fn joined(words: &[OsString]) -> Bytes {
    words.join(OsStr::new(" ")).into()
}

fn from_stdin(enter: bool) -> Result<Bytes, Failure> {
    // A little more, so that the refusal is one and the same.
    let mut text = read_stdin(2 * LONGEST_TEXT as u64)?;
    // The line's own end is what Enter stands for.
    if enter && text.ends_with(b"\n") {
        text.pop();
    }
    Ok(Bytes(text))
}

pub(super) fn not_too_long(text: &Bytes) -> Result<(), Failure> {
    if text.0.len() <= LONGEST_TEXT {
        return Ok(());
    }
    Err(Failure::new(format!("the text is too long to type ({} bytes)", text.0.len()))
        .code(FailureCode::InvalidArgument)
        .because("a terminal takes at most 1 MiB at once")
        .hint("put it in a file and tell the agent to read that file"))
}

/// Standard input to its end, and an error instead of more than `limit` bytes.
pub(super) fn read_stdin(limit: u64) -> Result<Vec<u8>, Failure> {
    let cannot_read = || Failure::new("cannot read the text from standard input").code(FailureCode::IoError);
    let mut text = Vec::new();
    std::io::stdin()
        .lock()
        .take(limit + 1)
        .read_to_end(&mut text)
        .map_err(|err| cannot_read().caused_by(&err))?;
    if text.len() as u64 > limit {
        return Err(Failure::new(format!("the text on standard input is longer than {} MiB", limit >> 20))
            .code(FailureCode::InvalidArgument)
            .hint("put it in a file in the repository and name that file in a short text"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn words_are_joined_byte_for_byte() {
        let odd = OsStr::from_bytes(b"\xff").to_owned();
        assert_eq!(joined(&["cargo test".into(), odd]).0, b"cargo test \xff");
        assert_eq!(joined(&["".into()]).0, b"");
    }

    #[test]
    fn a_text_that_no_keeper_would_take_is_refused_with_a_way_out() {
        assert!(not_too_long(&Bytes(vec![b'x'; LONGEST_TEXT])).is_ok());
        let failure = not_too_long(&Bytes(vec![b'x'; 1 << 20])).expect_err("refused");
        assert_eq!(failure.message, "the text is too long to type (1048576 bytes)");
        assert!(failure.hint.is_some_and(|hint| hint.contains("in a file")));
    }
}
