//! The line about a task in lists: its headline with its age, then notes, then the agent's own text.
//!
//! The headline itself comes from the daemon, so that every surface uses the same words.

use agency_api::view::{AgentState, Task, TaskStatus};

use crate::moment;
use crate::output::{self, Paint};

/// The parts of the line, the most important first.
pub(crate) struct TaskWords {
    /// `asks permission 12s`
    pub(crate) lead: String,
    /// `, 2 queued: approve Bash: rm -rf build`
    pub(crate) rest: String,
}

/// How exact ages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ages {
    /// To the second in the first minute.
    Exact,
    /// Only whole minutes, so that a list that stays on the screen rarely changes.
    Coarse,
}

impl Ages {
    /// `12s`, `3m`, `2h`, `5d`.
    pub(crate) fn format(self, seconds: u64) -> String {
        match (self, seconds) {
            (Ages::Coarse, 0..=59) => "<1m".to_owned(),
            (Ages::Coarse | Ages::Exact, _) => output::duration(seconds),
        }
    }
}

/// `paint` decides whether the words must say what bold and dim show otherwise.
pub(crate) fn task_words(task: &Task, paint: Paint, ages: Ages) -> TaskWords {
    let headline = match &task.elsewhere {
        Some(host) if task.broken.is_none() => format!("on {host}"),
        _ if task.headline.is_empty() => output::status_name(task.status).to_owned(),
        _ => task.headline.clone(),
    };
    let age = age_seconds(task).map(|age| format!(" {}", ages.format(age))).unwrap_or_default();
    let notes: String = notes(task, paint).iter().map(|note| format!(", {note}")).collect();
    let detail = detail(task).map(|detail| format!(": {detail}")).unwrap_or_default();
    TaskWords { lead: format!("{headline}{age}"), rest: format!("{notes}{detail}") }
}

/// How long the headline has been true, if that is known.
pub(crate) fn age_seconds(task: &Task) -> Option<u64> {
    match &task.state {
        Some(AgentState::Running { for_seconds })
        | Some(AgentState::NeedsInput { for_seconds, .. })
        | Some(AgentState::Stale { for_seconds, .. }) => Some(*for_seconds),
        Some(AgentState::Starting { .. } | AgentState::Exited { .. }) => None,
        None => task.ended_seconds.filter(|_| is_about_last_run(task)),
    }
}

/// Whether the headline says how the last run ended.
fn is_about_last_run(task: &Task) -> bool {
    matches!(task.headline.as_str(), "stopped" | "done" | "failed" | "ended")
        && task.status == TaskStatus::Stopped
}

fn notes(task: &Task, paint: Paint) -> Vec<String> {
    let is_unread = task.unread && paint == Paint::Plain;
    let marked = match task.status {
        TaskStatus::Idle => Some("paused".to_owned()),
        TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Reviewed | TaskStatus::Merged => {
            Some(format!("marked {}", output::status_name(task.status)))
        }
        TaskStatus::Draft | TaskStatus::Running | TaskStatus::Stopped => None,
    };
    let pinned = task.pinned.then(|| "pinned".to_owned());
    let snoozed =
        task.snoozed_until.as_deref().map(|until| format!("snoozed until {}", moment::format_minute(until)));
    let queued = (task.queued > 0).then(|| format!("{} queued", task.queued));
    let unread = is_unread.then(|| "unread".to_owned());
    [unread, pinned, snoozed, marked.filter(|_| task.state.is_some()), queued].into_iter().flatten().collect()
}

fn detail(task: &Task) -> Option<String> {
    let evidence = task.evidence.as_ref().and_then(|evidence| evidence.detail.clone());
    match (&task.state, &task.last_exit) {
        (Some(_), _) => evidence.filter(|_| task.waiting_for.is_some()),
        (None, _) if task.merge_cut_off.is_some() && task.headline == "merge interrupted" => {
            Some("undone".to_owned())
        }
        (None, Some(code)) if is_about_last_run(task) && !task.asked_to_stop => exit_words(code),
        (None, _) => None,
    }
}

/// `exit 2`, `signal 11`; nothing for a good end.
fn exit_words(code: &str) -> Option<String> {
    match code.strip_prefix('-') {
        Some(signal) => Some(format!("signal {signal}")),
        None if code == "0" => None,
        None if code == "unknown" => Some("exit status unknown".to_owned()),
        None => Some(format!("exit {code}")),
    }
}
