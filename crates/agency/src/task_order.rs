//! The order of tasks in lists, and the task that comes next.

use std::cmp::Reverse;

use agency_api::Bytes;
use agency_api::view::{Task, Urgency};

use crate::task_words::age_seconds;

/// The order of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sort {
    /// Tasks that need you, the longest waiting first
    #[default]
    Need,
    /// Tasks by project and id
    Id,
    /// The newest tasks
    Age,
    /// Tasks by slug
    Slug,
    /// Tasks by agent
    Agent,
}

pub(crate) fn sorted(tasks: &[Task], sort: Sort) -> Vec<&Task> {
    let mut tasks: Vec<&Task> = tasks.iter().collect();
    tasks.sort_by_key(|task| place(task));
    match sort {
        Sort::Need => tasks.sort_by_key(|task| (!task.pinned, need(task))),
        Sort::Id => {}
        Sort::Age => tasks.sort_by_key(|task| task.age_seconds.unwrap_or(u64::MAX)),
        Sort::Slug => tasks.sort_by(|one, other| one.slug.cmp(&other.slug)),
        Sort::Agent => tasks.sort_by(|one, other| one.agent_name.cmp(&other.agent_name)),
    }
    tasks
}

fn place(task: &Task) -> (Bytes, u64) {
    (task.project.clone(), task.id)
}

/// The most urgent first; then agents that the user has not seen, because the user has just left the others; then those
/// that have waited longest.
fn need(task: &Task) -> (Urgency, bool, Reverse<u64>) {
    let waits = task.urgency.needs_user() || task.urgency == Urgency::Read;
    let age = age_seconds(task).filter(|_| waits).unwrap_or_default();
    (task.urgency, !task.unread, Reverse(age))
}

/// The live agent that waits and comes first. The task that the user has just left is not next.
pub(crate) fn next_waiting<'a>(tasks: &'a [Task], left: Option<&Task>) -> Option<&'a Task> {
    let is_left = |task: &Task| left.is_some_and(|left| place(left) == place(task));
    let waits = |task: &&Task| task.waiting_for.is_some() && task.elsewhere.is_none() && !is_left(task);
    // A pin is for lists only.
    sorted(tasks, Sort::Id).into_iter().filter(waits).min_by_key(|task| need(task))
}

#[cfg(test)]
mod tests {
    use agency_api::view::Why;

    use super::*;
    use crate::sample_task::{draft, ended, merged, read, waiting, working};

    /// Goes to one agent after another, as a user would who answers none of them.
    fn visited(mut tasks: Vec<Task>, steps: usize) -> Vec<u64> {
        let mut visited = Vec::new();
        for _ in 0..steps {
            let Some(id) = next_waiting(&tasks, None).map(|task| task.id) else { break };
            visited.push(id);
            tasks = tasks.into_iter().map(|task| if task.id == id { read(task) } else { task }).collect();
        }
        visited
    }

    #[test]
    fn next_goes_to_the_blocked_first_then_to_the_finished_then_to_prompts() {
        let tasks = vec![
            waiting(1, "prompt", Why::Prompt, 9_000),
            waiting(2, "done", Why::Finished, 60),
            waiting(3, "done-before", Why::Finished, 360),
            waiting(4, "asks", Why::Question, 5),
            waiting(5, "permission", Why::Permission, 54),
            waiting(6, "error", Why::Error, 30),
            working(7, "works", 1),
            ended(8, "over", "0", false),
            draft(9, "draft"),
        ];
        assert_eq!(visited(tasks.clone(), 3), [5, 6, 4], "the oldest of the blocked first");
        let free: Vec<Task> = tasks.into_iter().filter(|task| !(4..=6).contains(&task.id)).collect();
        assert_eq!(
            visited(free, 5),
            [3, 2, 1, 1, 1],
            "then finished work, then prompts, then the longest wait"
        );
    }

    #[test]
    fn a_finished_agent_that_was_read_comes_after_every_other() {
        let tasks = vec![read(waiting(1, "known", Why::Finished, 900)), waiting(2, "prompt", Why::Prompt, 3)];
        assert_eq!(visited(tasks, 2), [2, 1]);
        assert_eq!(visited(vec![working(1, "works", 1), merged(2, "old")], 1), [0_u64; 0]);
    }

    #[test]
    fn tasks_can_be_sorted_in_other_ways() {
        let mut tasks = vec![draft(1, "b"), waiting(2, "c", Why::Prompt, 5), draft(3, "a")];
        (tasks[0].age_seconds, tasks[2].age_seconds) = (Some(9), Some(1));
        tasks[0].agent_name = "Claude Code".to_owned();
        let ids = |sort| sorted(&tasks, sort).iter().map(|task| task.id).collect::<Vec<_>>();
        assert_eq!(ids(Sort::Need), [2, 1, 3]);
        let pinned = [tasks[1].clone(), Task { pinned: true, ..tasks[2].clone() }];
        assert_eq!(sorted(&pinned, Sort::Need)[0].id, 3, "a pinned task is at the top");
        assert_eq!(next_waiting(&pinned, None).map(|task| task.id), Some(2));
        assert_eq!(ids(Sort::Id), [1, 2, 3]);
        assert_eq!(ids(Sort::Age), [3, 1, 2]);
        assert_eq!(ids(Sort::Slug), [3, 1, 2]);
        assert_eq!(ids(Sort::Agent), [1, 2, 3]);
    }
}
