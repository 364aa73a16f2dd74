//! `agency send --to`: the same message to every running agent that fits a filter, with a receipt from each.

use std::process::ExitCode;

use agency_api::method::{Receipt, ReceiptKind, TaskList, TaskListParams, TaskSend, TaskSendParams};
use agency_api::view::Task;
use agency_api::{Bytes, Failure, FailureCode};
use futures_util::future::join_all;
use serde::Serialize;

use super::receipt_text;
use crate::cli::Send;
use crate::context::{self, Context};
use crate::image;
use crate::outcome::CommandResult;
use crate::output::{self, count, printable};
use crate::task_filter::FilterTerms;

/// The document of `agency send --to FILTER --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Broadcast {
    /// One for each task that fits the filter and has a running agent.
    receipts: Vec<TaskReceipt>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct TaskReceipt {
    task: u64,
    slug: String,
    /// The receipt. Absent if the message could not be sent.
    receipt: Option<Receipt>,
    /// Why the message could not be sent.
    failure: Option<Failure>,
}

impl TaskReceipt {
    fn is_refused(&self) -> bool {
        self.receipt.as_ref().is_none_or(|receipt| receipt.receipt == ReceiptKind::Refused)
    }

    fn text(&self) -> String {
        let outcome = match (&self.receipt, &self.failure) {
            (Some(receipt), _) => receipt_text(receipt),
            (None, Some(failure)) => {
                let words: Vec<&str> =
                    std::iter::once(&failure.message).chain(&failure.causes).map(String::as_str).collect();
                format!("failed ({})", printable(&words.join(": ")))
            }
            (None, None) => "failed".to_owned(),
        };
        format!("{} {} {outcome}", self.task, printable(&self.slug))
    }
}

pub(super) async fn broadcast(
    context: &Context,
    args: &Send,
    filter: &FilterTerms,
    text: Bytes,
) -> CommandResult {
    let listing =
        context.daemon().await?.call(TaskList, TaskListParams { cwd: Some(context::here()?) }).await?;
    let fitting: Vec<&Task> =
        listing.tasks.iter().filter(|task| task.run.is_some() && filter.fits(task)).collect();
    if fitting.is_empty() {
        return Err(Failure::new(format!("no running agent fits {filter}"))
            .code(FailureCode::NotFound)
            .hint("agency ls shows the agents; --to takes label:NAME, agent:NAME, project:NAME, status:NAME and state:NAME")
            .into());
    }
    let receipts = join_all(fitting.into_iter().map(|task| send_to(context, args, task, &text))).await;
    let refused = receipts.iter().filter(|receipt| receipt.is_refused()).count();
    match args.json {
        true => output::json(&Broadcast { receipts })?,
        false => {
            receipts.iter().try_for_each(|receipt| output::line(&receipt.text()))?;
            if refused > 0 {
                output::note(&format!("{} did not take the message", count(refused, "agent")));
            }
        }
    }
    Ok(if refused > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn send_to(context: &Context, args: &Send, task: &Task, text: &Bytes) -> TaskReceipt {
    let sent = async {
        let images = args.images.iter().map(|path| image::read(path)).collect::<Result<_, _>>()?;
        let params = TaskSendParams {
            task: context::reference(task),
            text: text.clone(),
            enter: !args.no_enter,
            anyway: args.anyway,
            queue: args.queue,
            keys: Vec::new(),
            images,
        };
        context.daemon().await?.call(TaskSend, params).await
    };
    let (receipt, failure) = match sent.await {
        Ok(receipt) => (Some(receipt), None),
        Err(failure) => (None, Some(failure)),
    };
    TaskReceipt { task: task.id, slug: task.slug.clone(), receipt, failure }
}
