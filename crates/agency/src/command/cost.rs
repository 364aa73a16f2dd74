//! `agency cost`: shows tokens and cost of each task, as the agents report them.

use std::process::ExitCode;

use agency_api::Bytes;
use agency_api::chat::{ReadParams, Usage};
use agency_api::method::{ChatRead, TaskList, TaskListParams};
use agency_api::view::{Task, TaskStatus};
use serde::Serialize;

use crate::cli::Cost;
use crate::context::{self, Context};
use crate::conversation;
use crate::outcome::CommandResult;
use crate::output::{self, cell, column, flexible, printable};

/// The document of `agency cost --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Costs {
    pub(crate) tasks: Vec<TaskCost>,
    /// Tasks whose agents ran in a terminal, so their cost is not known.
    pub(crate) unknown: Vec<UnknownCost>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct UnknownCost {
    pub(crate) task: u64,
    pub(crate) slug: String,
    pub(crate) project: Bytes,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct TaskCost {
    pub(crate) task: u64,
    pub(crate) slug: String,
    pub(crate) project: Bytes,
    #[serde(flatten)]
    pub(crate) usage: Usage,
}

pub(super) async fn cost(context: &Context, args: Cost) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let listing = daemon.call(TaskList, TaskListParams { cwd: None }).await?;
    let mut tasks = Vec::new();
    for task in listing.tasks.iter().filter(|task| conversation::has_conversation(task)) {
        let params = ReadParams { limit: Some(0), ..ReadParams::of(context::reference(task)) };
        // A task that never ran has no conversation and no cost.
        if let Ok(chat) = daemon.call(ChatRead, params).await {
            tasks.push(task_cost(task, chat.usage));
        }
    }
    let unknown = listing.tasks.iter().filter(|task| ran_in_terminal(task)).map(unknown_cost).collect();
    let costs = Costs { tasks, unknown };
    if args.json {
        output::json(&costs)?;
        return Ok(ExitCode::SUCCESS);
    }
    match costs.tasks.is_empty() {
        true => output::note("no agent has reported tokens or cost"),
        false => output::line(&table(&costs.tasks))?,
    }
    unknown_note(&costs.unknown).iter().for_each(|note| output::note(note));
    Ok(ExitCode::SUCCESS)
}

fn ran_in_terminal(task: &Task) -> bool {
    !conversation::has_conversation(task) && task.status != TaskStatus::Draft
}

fn unknown_cost(task: &Task) -> UnknownCost {
    UnknownCost { task: task.id, slug: task.slug.clone(), project: task.project.clone() }
}

fn unknown_note(unknown: &[UnknownCost]) -> Option<String> {
    let names: Vec<String> = unknown.iter().map(|task| format!("{}-{}", task.task, task.slug)).collect();
    (!names.is_empty())
        .then(|| format!("not known: {} (agents in terminals report no cost)", printable(&names.join(", "))))
}

fn task_cost(task: &Task, usage: Usage) -> TaskCost {
    TaskCost { task: task.id, slug: task.slug.clone(), project: task.project.clone(), usage }
}

fn table(tasks: &[TaskCost]) -> String {
    let columns = [
        flexible("TASK", 8),
        column("TOKENS IN"),
        column("FROM CACHE"),
        column("TOKENS OUT"),
        column("COST"),
    ];
    let row = |task: &TaskCost| {
        let usage = &task.usage;
        vec![
            cell(format!("{}-{}", task.task, task.slug)),
            cell((usage.input_tokens + usage.cached_tokens).to_string()),
            cell(usage.cached_tokens.to_string()),
            cell(usage.output_tokens.to_string()),
            cell(usage.cost_usd.map_or("not reported".to_owned(), |cost| format!("${cost:.4}"))),
        ]
    };
    output::table(&columns, &tasks.iter().map(row).collect::<Vec<_>>())
}
