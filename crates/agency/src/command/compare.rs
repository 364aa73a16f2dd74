//! `agency compare`: shows the candidates of `agency new --best-of` side by side.

use std::process::ExitCode;

use agency_api::chat::{ReadParams, Usage};
use agency_api::method::{ChatRead, TaskDiff, TaskTimeline};
use agency_api::timeline::{Moment, TimelineEntry, TimelineParams};
use agency_api::view::{StateName, Task, TaskStatus, WorkspaceStatus};
use agency_api::work::{Diff, DiffParams};
use agency_client::Client;
use jiff::Timestamp;
use serde::Serialize;

use crate::candidates::{self, Candidate};
use crate::cli::Compare;
use crate::context::{self, Context};
use crate::conversation;
use crate::outcome::CommandResult;
use crate::output::{self, cell, column, flexible, printable};

/// The document of `agency compare --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Comparison {
    group: String,
    candidates: Vec<ComparedCandidate>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ComparedCandidate {
    /// The number after the slash in `agency promote GROUP/NUMBER`.
    number: u64,
    /// The id of the task.
    task: u64,
    slug: String,
    agent: String,
    status: TaskStatus,
    workspace_status: WorkspaceStatus,
    /// How long the agent worked.
    worked_seconds: u64,
    /// Tokens and cost, as the agent reports them. Absent for an agent in a terminal.
    usage: Option<Usage>,
    /// The changes. Absent if there is no workspace to compare with a base.
    changes: Option<Changes>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Changes {
    files: u64,
    additions: u64,
    deletions: u64,
}

pub(super) async fn compare(context: &Context, args: Compare) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let found = candidates::require(&mut daemon, &args.group).await?;
    let mut rows = Vec::new();
    let mut compared = Vec::new();
    for candidate in &found {
        let candidate = compared_candidate(&mut daemon, candidate).await?;
        rows.push(row(&args.group, &candidate, found.iter().find(|other| other.number == candidate.number)));
        compared.push(candidate);
    }
    if args.json {
        output::json(&Comparison { group: args.group, candidates: compared })?;
        return Ok(ExitCode::SUCCESS);
    }
    let columns = [
        flexible("CANDIDATE", 8),
        column("TASK"),
        column("AGENT"),
        flexible("STATE", 8),
        column("COST"),
        column("WORKED"),
        column("FILES"),
        column("+"),
        column("-"),
    ];
    output::line(&output::table(&columns, &rows))?;
    let first = found.first().map_or(1, |candidate| candidate.number);
    output::note(&printable(&format!("next: agency diff TASK, agency promote {}/{first}", args.group)));
    Ok(ExitCode::SUCCESS)
}

async fn compared_candidate(
    daemon: &mut Client,
    candidate: &Candidate,
) -> Result<ComparedCandidate, agency_api::Failure> {
    let task = &candidate.task;
    let params =
        TimelineParams { task: context::reference(task), since: None, limit: Some(u64::from(u32::MAX)) };
    let timeline = daemon.call(TaskTimeline, params).await?;
    Ok(ComparedCandidate {
        number: candidate.number,
        task: task.id,
        slug: task.slug.clone(),
        agent: task.agent_name.clone(),
        status: task.status,
        workspace_status: task.workspace_status,
        worked_seconds: worked_seconds(&timeline.entries, Timestamp::now()),
        usage: usage(daemon, task).await,
        changes: changes(daemon, task).await,
    })
}

/// A task that never ran has no conversation and no cost.
async fn usage(daemon: &mut Client, task: &Task) -> Option<Usage> {
    if !conversation::has_conversation(task) {
        return None;
    }
    let params = ReadParams { limit: Some(0), ..ReadParams::of(context::reference(task)) };
    daemon.call(ChatRead, params).await.ok().map(|chat| chat.usage)
}

async fn changes(daemon: &mut Client, task: &Task) -> Option<Changes> {
    let params = DiffParams { task: context::reference(task), turn: None, stat: true };
    let Diff { files, additions, deletions, .. } = daemon.call(TaskDiff, params).await.ok()?;
    Some(Changes { files: files.len() as u64, additions, deletions })
}

/// The time in which the agent was starting or running.
fn worked_seconds(entries: &[TimelineEntry], now: Timestamp) -> u64 {
    let (mut worked, mut since) = (0, None::<Timestamp>);
    for entry in entries {
        let Ok(time) = entry.time.parse::<Timestamp>() else { continue };
        let works = match entry.moment {
            Moment::State { state, .. } => matches!(state, StateName::Starting | StateName::Running),
            Moment::Started { .. } => true,
            Moment::Exited { .. } => false,
            _ => continue,
        };
        worked += since.take().map_or(0, |since| time.duration_since(since).as_millis().max(0));
        since = works.then_some(time);
    }
    worked += since.map_or(0, |since| now.duration_since(since).as_millis().max(0));
    (worked / 1000) as u64
}

fn row(group: &str, candidate: &ComparedCandidate, found: Option<&Candidate>) -> Vec<output::Cell> {
    let unknown = || "-".to_owned();
    let state =
        found.and_then(|found| found.task.state.as_ref()).map(|state| output::state_text(state, None));
    let state = state.unwrap_or_else(|| output::status_name(candidate.status).to_owned());
    let cost = candidate.usage.and_then(|usage| usage.cost_usd).map(|cost| format!("${cost:.4}"));
    let change = |number: fn(&Changes) -> u64| {
        candidate.changes.as_ref().map_or_else(unknown, |changes| number(changes).to_string())
    };
    vec![
        cell(format!("{group}/{}", candidate.number)),
        cell(candidate.task.to_string()),
        cell(&candidate.agent),
        cell(state),
        cell(cost.unwrap_or_else(unknown)),
        cell(output::duration(candidate.worked_seconds)),
        cell(change(|changes| changes.files)),
        cell(change(|changes| changes.additions)),
        cell(change(|changes| changes.deletions)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_at_work_counts() {
        let at = |seconds: i64, moment| TimelineEntry {
            time: Timestamp::from_second(seconds).expect("a time").to_string(),
            run: None,
            moment,
        };
        let state = |state| Moment::State { state, why: None, detail: None };
        let started = Moment::Started { agent: String::new(), driver: String::new() };
        let entries = [
            at(10, started),
            at(15, state(StateName::Running)),
            at(20, Moment::Sent { text: String::new() }),
            at(30, state(StateName::NeedsInput)),
            at(90, state(StateName::Running)),
        ];
        let now = Timestamp::from_second(100).expect("a time");
        assert_eq!(worked_seconds(&entries, now), 30);
        let ended = [entries.to_vec(), vec![at(95, Moment::Exited { code: None })]].concat();
        assert_eq!(worked_seconds(&ended, now), 25);
        assert_eq!(worked_seconds(&[], now), 0);
    }
}
