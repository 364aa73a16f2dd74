//! `agency approvals`: lists open requests for approval or past decisions, or suggests rules.

use std::process::ExitCode;

use agency_api::chat::{ApprovalListParams, DecidedApproval, OpenApproval, Suggestion};
use agency_api::method::{ApprovalList, ApprovalLog, ApprovalSuggest};

use crate::cli::Approvals;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output::{self, cell, column, flexible};
use crate::{conversation, moment};

pub(super) async fn approvals(context: &Context, args: Approvals) -> CommandResult {
    let task = args.task.as_deref().map(|name| context.task(name)).transpose()?;
    let mut daemon = context.daemon().await?;
    if args.suggest {
        let suggested = daemon.call(ApprovalSuggest, ApprovalListParams { task }).await?;
        match args.json {
            true => output::json(&suggested)?,
            false if suggested.suggestions.is_empty() => {
                output::note("no command was allowed three times and never denied");
            }
            false => output::line(&suggestion_text(&suggested.suggestions))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.log {
        let log = daemon.call(ApprovalLog, ApprovalListParams { task }).await?;
        match args.json {
            true => output::json(&log)?,
            false if log.decisions.is_empty() => output::note("no decisions yet"),
            false => output::line(&decision_table(&log.decisions))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let listed = daemon.call(ApprovalList, ApprovalListParams { task }).await?;
    match args.json {
        true => output::json(&listed)?,
        false if listed.approvals.is_empty() => output::note("no request is waiting for an answer"),
        false => output::line(&approval_table(&listed.approvals))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// TOML that can be pasted into a configuration file as it is.
fn suggestion_text(suggestions: &[Suggestion]) -> String {
    let text = |suggestion: &Suggestion| {
        let examples =
            suggestion.examples.iter().map(|example| format!("#   {}\n", output::printable(example)));
        format!(
            "# You allowed this {} times:\n{}{}",
            suggestion.allowed,
            examples.collect::<String>(),
            suggestion.toml
        )
    };
    suggestions.iter().map(text).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

fn approval_table(approvals: &[OpenApproval]) -> String {
    let columns = [flexible("TASK", 8), column("TOOL"), flexible("WANTS", 20), column("ANSWER")];
    // A task with several requests needs their ids. A dialog on a terminal may change before the user answers.
    let is_alone = |open: &OpenApproval| {
        let of_task = approvals.iter().filter(|other| other.task == open.task);
        of_task.count() == 1 && open.approval.tool != conversation::TERMINAL
    };
    let row = |open: &OpenApproval| {
        vec![
            cell(format!("{}-{}", open.task, open.slug)),
            cell(open.approval.tool.clone()),
            cell(open.approval.action.summary.clone()),
            cell(match is_alone(open) {
                true => format!("agency approve {0} | deny {0}", open.task),
                false => {
                    format!("agency approve {0} --id {1} | deny {0} --id {1}", open.task, open.approval.id)
                }
            }),
        ]
    };
    let table = output::table(&columns, &approvals.iter().map(row).collect::<Vec<_>>());
    let mut lines = table.lines();
    let mut text: Vec<String> = lines.next().map(str::to_owned).into_iter().collect();
    for (line, open) in lines.zip(approvals) {
        text.push(line.to_owned());
        let details = conversation::details(&open.approval);
        text.extend(details.iter().map(|line| format!("    {}", output::printable(line))));
    }
    text.join("\n")
}

fn decision_table(decisions: &[DecidedApproval]) -> String {
    let columns = [column("TIME"), flexible("TASK", 8), flexible("WANTED", 20), flexible("ANSWER", 20)];
    let row = |decided: &DecidedApproval| {
        vec![
            cell(moment::format_local(&decided.time)),
            cell(format!("{}-{}", decided.task, decided.slug)),
            cell(decided.approval.action.summary.clone()),
            cell(conversation::outcome_text(&decided.approval)),
        ]
    };
    output::table(&columns, &decisions.iter().map(row).collect::<Vec<_>>())
}
