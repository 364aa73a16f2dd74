//! `agency send`: sends a text to an agent, in its terminal or as a message of its conversation.

pub(crate) mod broadcast;

use std::ffi::OsString;
use std::process::ExitCode;

use agency_api::method::{Receipt, ReceiptKind, TaskSend, TaskSendParams};
use agency_api::{Bytes, Failure, FailureCode};

use crate::cli::Send;
use crate::context::Context;
use crate::image;
use crate::outcome::CommandResult;
use crate::output;
use crate::text_input::{LONGEST_MESSAGE, check_length, join_words, read_stdin};

pub(super) async fn send(context: &Context, args: Send) -> CommandResult {
    let enter = !args.no_enter;
    if let Some(filter) = &args.to {
        // With a filter there is no task, so every word belongs to the message.
        let words: Vec<OsString> =
            std::iter::once(OsString::from(&args.name.task)).chain(args.text.iter().cloned()).collect();
        let text = message(&words, enter)?;
        return broadcast::broadcast(context, &args, filter, text).await;
    }
    let task = context.task(&args.name.task)?;
    let text = message(&args.text, enter)?;
    let mut daemon = context.daemon().await?;
    let (anyway, queue) = (args.anyway, args.queue);
    let images = args.images.iter().map(|path| image::read(path)).collect::<Result<_, _>>()?;
    let params = TaskSendParams { task, text, enter, anyway, queue, keys: args.keys, images };
    let receipt = daemon.call(TaskSend, params).await?;
    if args.json {
        output::json(&receipt)?;
    } else if receipt.receipt == ReceiptKind::Refused {
        return Err(refusal(&args.name.task, &receipt).into());
    } else {
        output::line(&receipt_text(&receipt))?;
    }
    let is_refused = receipt.receipt == ReceiptKind::Refused;
    Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn message(words: &[OsString], enter: bool) -> Result<Bytes, Failure> {
    let text = match words {
        [only] if only == "-" => text_from_stdin(enter)?,
        words => join_words(words),
    };
    check_length(&text)?;
    Ok(text)
}

fn receipt_text(receipt: &Receipt) -> String {
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

/// Also prints the agent's screen, if the receipt has it.
fn refusal(task: &str, receipt: &Receipt) -> Failure {
    let why = receipt.why.as_deref().unwrap_or("the agent accepts no message now");
    if let Some(screen) = &receipt.screen {
        output::note("Its screen shows:");
        screen.lines().for_each(|row| output::note(&format!("  │ {}", output::printable(row))));
    }
    let hint = match receipt.screen.is_some() {
        true => format!(
            "answer it: agency approve {task} or agency attach {task}; --keys presses keys, --anyway types the message regardless"
        ),
        // An agent without a terminal.
        false => format!("agency chat {task} shows why; --queue holds the message until the agent takes it"),
    };
    Failure::new(format!("refused: {why}")).code(FailureCode::NotDelivered).hint(hint)
}

fn text_from_stdin(enter: bool) -> Result<Bytes, Failure> {
    // Twice the limit, so that a slightly longer text gets the message of `check_length`.
    let mut text = read_stdin(2 * LONGEST_MESSAGE as u64)?;
    // Enter takes the place of the last line end.
    if enter && text.ends_with(b"\n") {
        text.pop();
    }
    Ok(Bytes(text))
}
