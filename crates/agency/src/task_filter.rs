//! Which tasks a list shows: by status, state, agent, label, project, and whether they need the user.

use std::fmt;
use std::str::FromStr;

use agency_api::view::{AgentState, StateName, Task, TaskStatus};
use agency_core::headline::Headline;
use clap_complete::ArgValueCompleter;

use crate::{complete, output};

/// A task must fit one word of every filter that is given.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct TaskFilter {
    /// Only tasks with this status: draft, running, idle, stopped, completed, failed, reviewed or merged
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = parse_status)]
    pub(crate) status: Vec<TaskStatus>,
    /// Only tasks in this state, for example asks-permission, done, working or needs-input
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = parse_state)]
    pub(crate) state: Vec<String>,
    /// Only tasks of this agent
    #[arg(long, value_delimiter = ',', add = ArgValueCompleter::new(complete::agents))]
    pub(crate) agent: Vec<String>,
    /// Only tasks with this label
    #[arg(long, value_delimiter = ',')]
    pub(crate) label: Vec<String>,
    /// Only tasks of this project: its directory, or the last part of it
    #[arg(long, value_name = "PROJECT", value_delimiter = ',')]
    pub(crate) project: Vec<String>,
    /// Only tasks that need you: agents that ask, and work that you have not looked at
    #[arg(long)]
    pub(crate) needs_me: bool,
}

const STATUSES: [TaskStatus; 8] = [
    TaskStatus::Draft,
    TaskStatus::Running,
    TaskStatus::Idle,
    TaskStatus::Stopped,
    TaskStatus::Completed,
    TaskStatus::Failed,
    TaskStatus::Reviewed,
    TaskStatus::Merged,
];

const STATES: [StateName; 5] =
    [StateName::Starting, StateName::Running, StateName::NeedsInput, StateName::Stale, StateName::Exited];

fn parse_status(text: &str) -> Result<TaskStatus, String> {
    let found = STATUSES.into_iter().find(|status| output::status_name(*status) == text);
    let names = || STATUSES.map(output::status_name).join(", ");
    found.ok_or_else(|| format!("it is not a status: try one of {}", names()))
}

fn parse_state(text: &str) -> Result<String, String> {
    let mut words: Vec<String> = Headline::ALL.iter().map(|headline| with_dashes(headline.words())).collect();
    words.extend(STATES.iter().map(|state| with_dashes(state.as_str())));
    words.sort();
    words.dedup();
    let wanted = with_dashes(text);
    match words.contains(&wanted) {
        true => Ok(wanted),
        false => Err(format!("it is not a state: try one of {}", words.join(", "))),
    }
}

fn with_dashes(words: &str) -> String {
    words.replace([' ', '_'], "-")
}

impl TaskFilter {
    /// Whether the filter names statuses or states, so that no task may be left out for its state.
    pub(crate) fn chooses_states(&self) -> bool {
        !self.status.is_empty() || !self.state.is_empty()
    }

    /// Whether any filter is given.
    pub(crate) fn is_any(&self) -> bool {
        let words = [&self.state, &self.agent, &self.label, &self.project];
        self.needs_me || !self.status.is_empty() || words.iter().any(|words| !words.is_empty())
    }

    pub(crate) fn fits(&self, task: &Task) -> bool {
        let agent = |agent: &String| *agent == task.agent || agent.eq_ignore_ascii_case(&task.agent_name);
        fits_one(&self.status, |status| *status == task.status)
            && fits_one(&self.state, |state| is_in_state(task, state))
            && fits_one(&self.agent, agent)
            && fits_one(&self.label, |label| task.labels.contains(label))
            && fits_one(&self.project, |project| is_of_project(task, project))
            && (!self.needs_me || task.urgency.needs_user())
    }
}

/// A filter in one word: `label:api,state:needs-input`. All of its terms must fit. There is no term for everything.
#[derive(Debug, Clone)]
pub(crate) struct FilterTerms {
    text: String,
    terms: Vec<TaskFilter>,
}

impl FilterTerms {
    pub(crate) fn fits(&self, task: &Task) -> bool {
        self.terms.iter().all(|term| term.fits(task))
    }
}

impl FromStr for FilterTerms {
    type Err = String;

    fn from_str(text: &str) -> Result<FilterTerms, String> {
        let terms: Result<Vec<TaskFilter>, String> = text.split(',').map(parse_term).collect();
        Ok(FilterTerms { text: text.to_owned(), terms: terms? })
    }
}

impl fmt::Display for FilterTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn parse_term(text: &str) -> Result<TaskFilter, String> {
    let wrong = || {
        format!(
            "`{text}` is not a filter: try label:NAME, agent:NAME, project:NAME, status:NAME or state:NAME"
        )
    };
    let (key, value) =
        text.trim().split_once(':').filter(|(_, value)| !value.is_empty()).ok_or_else(wrong)?;
    let (all, words) = (TaskFilter::default(), vec![value.to_owned()]);
    match key {
        "label" => Ok(TaskFilter { label: words, ..all }),
        "agent" => Ok(TaskFilter { agent: words, ..all }),
        "project" => Ok(TaskFilter { project: words, ..all }),
        "status" => Ok(TaskFilter { status: vec![parse_status(value)?], ..all }),
        "state" => Ok(TaskFilter { state: vec![parse_state(value)?], ..all }),
        _ => Err(wrong()),
    }
}

fn fits_one<T>(wanted: &[T], fits: impl FnMut(&T) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(fits)
}

fn is_in_state(task: &Task, wanted: &str) -> bool {
    let state = match &task.state {
        Some(AgentState::Starting { .. }) => Some(StateName::Starting),
        Some(AgentState::Running { .. }) => Some(StateName::Running),
        Some(AgentState::NeedsInput { .. }) => Some(StateName::NeedsInput),
        Some(AgentState::Stale { .. }) => Some(StateName::Stale),
        Some(AgentState::Exited { .. }) => Some(StateName::Exited),
        None => task.last_exit.as_ref().map(|_| StateName::Exited),
    };
    // An agent that has waited for long still needs input.
    let is_waiting = wanted == "needs-input" && task.waiting_for.is_some();
    let is_shown = with_dashes(&task.headline) == wanted;
    is_waiting || is_shown || state.is_some_and(|state| with_dashes(state.as_str()) == wanted)
}

fn is_of_project(task: &Task, wanted: &str) -> bool {
    let root = task.project.as_path();
    let wanted = std::path::Path::new(wanted);
    root == wanted
        || (wanted.components().count() == 1 && root.ends_with(wanted))
        || wanted.canonicalize().is_ok_and(|path| path.starts_with(root))
}

#[cfg(test)]
mod tests {
    use agency_api::view::{Why, WorkspaceStatus};

    use super::*;
    use crate::sample_task::{draft, ended, merged, read, waiting, working};

    fn fitting(filter: TaskFilter) -> Vec<u64> {
        let mut stale = waiting(3, "stale", Why::Question, 900);
        stale.state = Some(AgentState::Stale { for_seconds: 900, why: Why::Question });
        stale.workspace_status = WorkspaceStatus::Stale;
        stale.labels = vec!["api".to_owned()];
        let mut codex = working(2, "works", 5);
        (codex.agent, codex.agent_name) = ("codex".to_owned(), "Codex".to_owned());
        let tasks = [
            draft(1, "idea"),
            codex,
            stale,
            read(waiting(4, "known", Why::Finished, 9)),
            ended(5, "stopped", "-15", true),
            merged(6, "old"),
        ];
        tasks.iter().filter(|task| filter.fits(task)).map(|task| task.id).collect()
    }

    #[test]
    fn a_task_fits_one_word_of_every_filter() {
        let all = TaskFilter::default;
        let states = |words: &[&str]| -> Vec<String> {
            words.iter().map(|word| parse_state(word).expect("a state")).collect()
        };
        assert_eq!(fitting(all()), [1, 2, 3, 4, 5, 6]);
        assert_eq!(fitting(TaskFilter { needs_me: true, ..all() }), [3]);
        assert_eq!(fitting(TaskFilter { state: states(&["needs-input"]), ..all() }), [3, 4]);
        assert_eq!(fitting(TaskFilter { state: states(&["stale"]), ..all() }), [3]);
        assert_eq!(fitting(TaskFilter { state: states(&["working", "asks"]), ..all() }), [2, 3]);
        assert_eq!(fitting(TaskFilter { state: states(&["exited"]), ..all() }), [5, 6]);
        let status = vec![TaskStatus::Draft, TaskStatus::Merged];
        assert_eq!(fitting(TaskFilter { status, ..all() }), [1, 6]);
        assert_eq!(fitting(TaskFilter { agent: vec!["codex".to_owned()], ..all() }), [2]);
        assert_eq!(fitting(TaskFilter { agent: vec!["shell".to_owned()], ..all() }), [1, 3, 4, 5, 6]);
        assert_eq!(fitting(TaskFilter { label: vec!["api".to_owned()], needs_me: true, ..all() }), [3]);
        assert_eq!(fitting(TaskFilter { project: vec!["p".to_owned()], ..all() }).len(), 6);
        assert_eq!(fitting(TaskFilter { project: vec!["q".to_owned()], ..all() }), [0_u64; 0]);
    }

    #[test]
    fn all_terms_of_a_filter_must_fit_and_none_means_everything() {
        let fitting = |text: &str| {
            let filter: FilterTerms = text.parse().expect("a filter");
            let api = Task { labels: vec!["api".to_owned()], ..waiting(1, "one", Why::Question, 9) };
            let both = Task { labels: vec!["api".to_owned(), "slow".to_owned()], ..working(2, "two", 5) };
            [api, both].iter().filter(|task| filter.fits(task)).map(|task| task.id).collect::<Vec<_>>()
        };
        assert_eq!(fitting("label:api"), [1, 2]);
        assert_eq!(fitting("label:api,label:slow"), [2]);
        assert_eq!(fitting("label:api, state:needs_input"), [1]);
        for wrong in ["", "*", "all", "api", "label:", "colour:red", "label:api,"] {
            assert!(wrong.parse::<FilterTerms>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_word_that_is_no_state_is_refused_with_all_words() {
        let refusal = parse_state("bored").expect_err("no such state");
        for word in ["asks-permission", "at-its-prompt", "needs-input", "working"] {
            assert!(refusal.contains(word), "{refusal}");
        }
        assert_eq!(parse_state("at its prompt").as_deref(), Ok("at-its-prompt"));
        assert!(parse_status("done").is_err() && parse_status("merged").is_ok());
    }
}
