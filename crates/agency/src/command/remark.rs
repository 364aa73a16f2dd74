//! `agency remark` and `agency remarks`: the user's remarks about a task's work.

use std::process::ExitCode;

use agency_api::method::{RemarkAdd, RemarkDrop, RemarkList, RemarkSend, TaskGet};
use agency_api::remark::{
    DiffSide, NewRemark, Remark as Shown, RemarkAddParams, RemarkDropParams, RemarkSendParams, RemarkState,
};
use agency_api::{Failure, FailureCode};

use crate::cli::{Remark, Remarks};
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output::{self, cell, column, count, flexible};

pub(super) async fn remark(context: &Context, args: Remark) -> CommandResult {
    let task = &args.name.task;
    if args.send {
        return send_remarks(context, task, Vec::new()).await;
    }
    let mut daemon = context.daemon().await?;
    if let Some(id) = args.drop {
        daemon.call(RemarkDrop, RemarkDropParams { task: context.task(task)?, id }).await?;
        output::line(&format!("remark {id} dropped"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let remarks = vec![new_remark(&args)?];
    let added = daemon.call(RemarkAdd, RemarkAddParams { task: context.task(task)?, remarks }).await?;
    for added in &added.remarks {
        output::line(&format!("remark {} on {}", added.id, place(added)))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn list(context: &Context, args: Remarks) -> CommandResult {
    let remarks = context.daemon().await?.call(RemarkList, context.task(&args.name.task)?).await?;
    match args.json {
        true => output::json(&remarks)?,
        false if remarks.remarks.is_empty() => output::note("no remarks"),
        false => output::line(&table(&remarks.remarks))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Sends all open remarks, and these even if their lines are gone.
pub(super) async fn send_remarks(context: &Context, task: &str, outdated: Vec<u64>) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let params = RemarkSendParams { task: context.task(task)?, outdated };
    let sent = daemon.call(RemarkSend, params).await?;
    let remarks = count(sent.remarks.len(), "remark");
    let now = daemon.call(TaskGet, context.task(task)?).await?;
    output::note(&match (now.run, sent.why) {
        (None, _) => {
            format!("{remarks} queued as one message; the agent gets it after `agency start {task}`")
        }
        (Some(_), Some(why)) => format!("{remarks} sent to the agent as one message ({why})"),
        (Some(_), None) => format!("{remarks} sent to the agent as one message"),
    });
    Ok(ExitCode::SUCCESS)
}

fn new_remark(args: &Remark) -> Result<NewRemark, Failure> {
    let side = if args.old { DiffSide::Old } else { DiffSide::New };
    let (place, words) = match args.whole {
        true => (None, args.words.as_slice()),
        false => (args.words.first(), args.words.get(1..).unwrap_or_default()),
    };
    let (file, line) = place.map(|place| parse_place(place)).unzip();
    let text = words.join(" ");
    if text.trim().is_empty() {
        return Err(Failure::new("a remark needs a text")
            .code(FailureCode::InvalidArgument)
            .hint(format!("agency remark {} src/a.rs:17 \"handle the error\"", args.name.task)));
    }
    Ok(NewRemark { file, line: line.flatten(), side, quote: None, text })
}

/// `FILE:LINE`, or `FILE`.
fn parse_place(place: &str) -> (String, Option<u64>) {
    let split = place.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    split.map_or((place.to_owned(), None), |(file, line)| (file.to_owned(), Some(line)))
}

fn place(remark: &Shown) -> String {
    let line = remark.line.map(|line| format!(":{line}")).unwrap_or_default();
    let old = if remark.side == DiffSide::Old { " (removed)" } else { "" };
    remark.file.as_ref().map_or_else(|| "the whole change".to_owned(), |file| format!("{file}{line}{old}"))
}

fn table(remarks: &[Shown]) -> String {
    let columns = [column("ID"), column("STATE"), flexible("PLACE", 12), flexible("REMARK", 20)];
    let row = |remark: &Shown| {
        let state = match remark.state {
            RemarkState::Open => "open",
            RemarkState::Outdated => "outdated",
            RemarkState::Sent => "sent",
        };
        let text = remark.text.split_whitespace().collect::<Vec<_>>().join(" ");
        vec![cell(remark.id.to_string()), cell(state.to_owned()), cell(place(remark)), cell(text)]
    };
    output::table(&columns, &remarks.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_file_with_or_without_a_line() {
        assert_eq!(parse_place("src/a.rs:17"), ("src/a.rs".to_owned(), Some(17)));
        assert_eq!(parse_place("src/a.rs"), ("src/a.rs".to_owned(), None));
        assert_eq!(parse_place("a:b"), ("a:b".to_owned(), None));
    }
}
