//! Candidates: tasks with the same message. The user promotes one of them. A label of each says to which group it belongs.

use agency_api::method::{TaskList, TaskListParams};
use agency_api::view::Task;
use agency_api::{Failure, FailureCode};
use agency_client::Client;

use crate::context;

/// The beginning of the label, before the name of the group and the number of the candidate.
const LABEL: &str = "best-of:";

pub(crate) struct Candidate {
    pub(crate) number: u64,
    pub(crate) task: Task,
}

/// The label of a candidate.
pub(crate) fn label(group: &str, number: usize) -> String {
    format!("{LABEL}{group}/{number}")
}

/// The candidates of a group in this project, in order. May be empty.
pub(crate) async fn find(daemon: &mut Client, group: &str) -> Result<Vec<Candidate>, Failure> {
    let listing = daemon.call(TaskList, TaskListParams { cwd: Some(context::here()?) }).await?;
    let mut candidates: Vec<Candidate> =
        listing.tasks.into_iter().filter_map(|task| of_group(task, group)).collect();
    candidates.sort_by_key(|candidate| candidate.number);
    Ok(candidates)
}

/// The candidates of a group that exists.
pub(crate) async fn require(daemon: &mut Client, group: &str) -> Result<Vec<Candidate>, Failure> {
    let candidates = find(daemon, group).await?;
    match candidates.is_empty() {
        true => Err(Failure::new(format!("there are no candidates called {group}"))
            .code(FailureCode::NotFound)
            .hint(format!("agency new {group} --best-of 3 -m MESSAGE"))),
        false => Ok(candidates),
    }
}

fn of_group(task: Task, group: &str) -> Option<Candidate> {
    let number = task.labels.iter().find_map(|label| number_in(label, group))?;
    Some(Candidate { number, task })
}

fn number_in(label: &str, group: &str) -> Option<u64> {
    label.strip_prefix(LABEL)?.strip_prefix(group)?.strip_prefix('/')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_the_group_and_the_number() {
        assert_eq!(number_in(&label("landing", 2), "landing"), Some(2));
        assert_eq!(number_in(&label("landing-page", 2), "landing"), None);
        assert_eq!(number_in("landing/2", "landing"), None);
    }
}
