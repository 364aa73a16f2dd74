//! Opens a task on the user's terminal: its terminal or its conversation, whichever it has.
//!
//! Not here: which task comes next (see `next`).

use std::time::Duration;

use agency_api::FailureCode;
use agency_api::config::Overrides;
use agency_api::method::{TaskGet, TaskList, TaskListParams, TaskRef};
use agency_api::pty::AttachMode;
use agency_api::view::{AgentState, Task, Why};

use super::chat;
use crate::attach::{self, Departure, Target};
use crate::context::Context;
use crate::conversation;
use crate::outcome::CommandError;
use crate::output::{self, printable};

/// More lines would hide where the user was.
const MOST_WHO_ASK: usize = 3;

/// The user waits for the prompt of the shell.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// How to open a task.
pub(super) struct Visit {
    pub(super) task: TaskRef,
    /// A terminal beside the agent.
    pub(super) shell: Option<String>,
    pub(super) mode: AttachMode,
    pub(super) frames: bool,
    pub(super) all_history: bool,
    /// Notes that the agent's screen hides. They are printed again when the user leaves.
    pub(super) notes: Vec<String>,
}

impl Visit {
    pub(super) fn of(task: TaskRef) -> Visit {
        Visit {
            task,
            shell: None,
            mode: AttachMode::Control,
            frames: false,
            all_history: false,
            notes: Vec::new(),
        }
    }
}

/// Opens the task until the user leaves it.
pub(super) async fn visit(context: &Context, visit: Visit) -> Result<Departure, CommandError> {
    let Visit { task, shell, mode, frames, all_history, notes } = visit;
    let is_agent = shell.is_none();
    let overrides = Overrides::from_process(&context.options);
    let target = Target { task: task.clone(), shell, mode, frames, all_history, overrides };
    // Attaching takes over the signals, and ctrl-c has to end a reader. Attaching reports a task that is not found.
    if is_agent && mode == AttachMode::ReadOnly && has_conversation(context, &task).await.unwrap_or(false) {
        return chat::print_chat(context, task, None, true, false).await.map(Departure::Over);
    }
    let departure = match attach::attach(context, target).await {
        Err(CommandError::Failed(failure)) if is_agent && failure.code == FailureCode::Unsupported => {
            match has_conversation(context, &task).await? {
                true => chat::open_chat(context, task.clone(), None).await?,
                false => return Err(failure.into()),
            }
        }
        other => other?,
    };
    notes.iter().for_each(|note| output::note(&printable(note)));
    if let Departure::Over(_) = departure {
        report_who_asks(context, &task).await;
    }
    Ok(departure)
}

async fn has_conversation(context: &Context, task: &TaskRef) -> Result<bool, CommandError> {
    let known = context.daemon().await?.call(TaskGet, task.clone()).await?;
    Ok(conversation::has_conversation(&known))
}

/// Names the other agents that wait for an answer.
async fn report_who_asks(context: &Context, left: &TaskRef) {
    let asked = async {
        let mut daemon = context.daemon().await.ok()?;
        let left = daemon.call(TaskGet, left.clone()).await.ok()?;
        let listing = daemon.call(TaskList, TaskListParams { cwd: None }).await.ok()?;
        Some((left, listing.tasks))
    };
    let Ok(Some((left, tasks))) = tokio::time::timeout(ANSWERED_WITHIN, asked).await else { return };
    let is_left = |task: &&Task| (&task.project, task.id) == (&left.project, left.id);
    let line = |task: &Task| {
        let detail = task.evidence.as_ref().and_then(|evidence| evidence.detail.as_deref());
        asking_line(&name_seen_from(task, &left), task.state.as_ref(), detail)
    };
    let lines: Vec<String> = tasks.iter().filter(|task| !is_left(task)).filter_map(line).collect();
    lines.iter().take(MOST_WHO_ASK).for_each(|line| output::note(line));
    if lines.len() > MOST_WHO_ASK {
        output::note(&format!("[and {} more ask: agency next]", lines.len() - MOST_WHO_ASK));
    }
}

/// The name of a task where the user is: with its project if that is another one.
fn name_seen_from(task: &Task, left: &Task) -> String {
    let project = task.project.as_path().file_name().map(|name| name.to_string_lossy().into_owned());
    match project.filter(|_| task.project != left.project) {
        Some(project) => format!("{project}/{}", task.slug),
        None => task.slug.clone(),
    }
}

/// `[third asks: approve Bash: rm -rf x]`. `None` if the agent asks for nothing.
fn asking_line(name: &str, state: Option<&AgentState>, detail: Option<&str>) -> Option<String> {
    let (AgentState::NeedsInput { why, .. } | AgentState::Stale { why, .. }) = state? else { return None };
    let what = match why {
        Why::Permission => "asks for permission",
        Why::Question => "asks a question",
        Why::Error => "needs help with an error",
        Why::Prompt | Why::Finished | Why::Unknown => return None,
    };
    let said = match detail.and_then(|detail| detail.lines().find(|line| !line.trim().is_empty())) {
        Some(line) => format!("asks: {}", line.trim()),
        None => what.to_owned(),
    };
    Some(printable(&format!("[{name} {said}]")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_agents_that_ask_for_something_are_named() {
        let waits = |why| AgentState::Stale { for_seconds: 90, why };
        let asks = Some("\napprove Bash: rm -rf x\nmore");
        let line = |state, detail| asking_line("third", Some(&state), detail);
        assert_eq!(
            line(waits(Why::Permission), asks).as_deref(),
            Some("[third asks: approve Bash: rm -rf x]")
        );
        assert_eq!(line(waits(Why::Question), None).as_deref(), Some("[third asks a question]"));
        assert_eq!(line(waits(Why::Finished), asks), None);
        assert_eq!(line(AgentState::Running { for_seconds: 1 }, asks), None);
        assert_eq!(asking_line("third", None, asks), None);
    }
}
