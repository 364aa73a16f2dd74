//! `agency approvals`: what agents want to do and may not before somebody says so, and what they were answered.

use std::process::ExitCode;

use agency_api::chat::{ApprovalListParams, DecidedApproval, OpenApproval};
use agency_api::method::{ApprovalList, ApprovalLog};

use crate::cli::Approvals;
use crate::context::Context;
use crate::output::{self, cell, column, flexible};
use crate::stop::Done;
use crate::{moment, talk};

pub(super) async fn approvals(context: &Context, args: Approvals) -> Done {
    let task = args.task.as_deref().map(|name| context.task(name)).transpose()?;
    let mut daemon = context.daemon().await?;
    if args.log {
        let log = daemon.call(ApprovalLog, ApprovalListParams { task }).await?;
        match args.json {
            true => output::json(&log)?,
            false if log.decisions.is_empty() => output::note("no decisions yet"),
            false => output::line(&decided(&log.decisions))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let listed = daemon.call(ApprovalList, ApprovalListParams { task }).await?;
    match args.json {
        true => output::json(&listed)?,
        false if listed.approvals.is_empty() => output::note("no request is waiting for an answer"),
        false => output::line(&table(&listed.approvals))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn table(approvals: &[OpenApproval]) -> String {
    let columns = [flexible("TASK", 8), column("TOOL"), flexible("WANTS", 20), column("ANSWER")];
    let row = |open: &OpenApproval| {
        vec![
            cell(format!("{}-{}", open.task, open.slug)),
            cell(open.approval.tool.clone()),
            cell(open.approval.title.clone()),
            cell(format!("agency approve {0} | deny {0}", open.task)),
        ]
    };
    output::table(&columns, &approvals.iter().map(row).collect::<Vec<_>>())
}

fn decided(decisions: &[DecidedApproval]) -> String {
    let columns = [column("TIME"), flexible("TASK", 8), flexible("WANTED", 20), flexible("ANSWER", 20)];
    let row = |decided: &DecidedApproval| {
        vec![
            cell(moment::format_local(&decided.time)),
            cell(format!("{}-{}", decided.task, decided.slug)),
            cell(decided.approval.title.clone()),
            cell(talk::verdict(&decided.approval)),
        ]
    };
    output::table(&columns, &decisions.iter().map(row).collect::<Vec<_>>())
}
