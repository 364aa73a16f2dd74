//! A task and an approval, reduced to what another agent needs.

use agency_api::chat::{Action, OpenApproval};
use agency_api::view::{AgentState, Task, Why};
use serde::Serialize;
use serde_json::Value;

use crate::output;

#[derive(Debug, Serialize)]
pub(super) struct TaskSummary<'a> {
    id: u64,
    slug: &'a str,
    /// The status in the task file.
    status: &'static str,
    /// `starting`, `running`, `needs_input`, `stale`, `exited`, or `none`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    for_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<&'a str>,
    agent: &'a str,
    driver: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    is_you: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl<'a> TaskSummary<'a> {
    /// `you` is the run of the agent that asks.
    pub(super) fn new(task: &'a Task, you: Option<&str>) -> TaskSummary<'a> {
        let (state, waits_for, for_seconds) = state(task.state.as_ref(), task.last_exit.is_some());
        TaskSummary {
            id: task.id,
            slug: &task.slug,
            status: output::status_name(task.status),
            state,
            waits_for: waits_for.map(Why::as_str),
            detail: task.evidence.as_ref().and_then(|evidence| evidence.detail.as_deref()),
            for_seconds,
            exit: task.last_exit.as_deref().filter(|_| task.run.is_none()),
            agent: &task.agent,
            driver: &task.driver,
            parent: task.parent,
            branch: task.branch.as_deref(),
            workspace: task.worktree.as_ref().map(|path| path.as_path().display().to_string()),
            is_you: you.is_some() && task.run.as_deref() == you,
        }
    }
}

fn state(state: Option<&AgentState>, has_run: bool) -> (&'static str, Option<Why>, Option<u64>) {
    match state {
        Some(AgentState::Starting { for_seconds }) => ("starting", None, Some(*for_seconds)),
        Some(AgentState::Running { for_seconds }) => ("running", None, Some(*for_seconds)),
        Some(AgentState::NeedsInput { for_seconds, why }) => ("needs_input", Some(*why), Some(*for_seconds)),
        Some(AgentState::Stale { for_seconds, why }) => ("stale", Some(*why), Some(*for_seconds)),
        Some(AgentState::Exited { .. }) => ("exited", None, None),
        None if has_run => ("exited", None, None),
        None => ("none", None, None),
    }
}

#[derive(Debug, Serialize)]
pub(super) struct ApprovalSummary<'a> {
    task: u64,
    slug: &'a str,
    id: &'a str,
    tool: &'a str,
    title: &'a str,
    action: &'a Action,
    input: &'a Value,
}

impl<'a> ApprovalSummary<'a> {
    pub(super) fn new(open: &'a OpenApproval) -> ApprovalSummary<'a> {
        let approval = &open.approval;
        ApprovalSummary {
            task: open.task,
            slug: &open.slug,
            id: &approval.id,
            tool: &approval.tool,
            title: &approval.title,
            action: &approval.action,
            input: &approval.input,
        }
    }
}
