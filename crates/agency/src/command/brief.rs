//! `agency ls --brief`: one line with the number of tasks in each state, for a shell prompt.
//!
//! Never starts a daemon: a prompt must be quick and must not change anything.

use std::process::ExitCode;
use std::time::Duration;

use agency_api::desk::Desk;
use agency_api::method::{DeskRead, Nothing};
use agency_api::view::{Task, Urgency};
use agency_client::Client;

use crate::context::{self, Context};
use crate::marks::Marks;
use crate::outcome::CommandResult;
use crate::output;
use crate::task_filter::TaskFilter;

/// A prompt that waits for longer is worse than a prompt without counts.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

pub(super) async fn brief(context: &Context, all_projects: bool, filter: &TaskFilter) -> CommandResult {
    let desk = tokio::time::timeout(LONGEST_WAIT, ask_running_daemon(context)).await;
    let Some(mut desk) = desk.ok().flatten() else { return Ok(ExitCode::SUCCESS) };
    if !all_projects && filter.project.is_empty() {
        keep_project_here(&mut desk.tasks);
    }
    desk.tasks.retain(|task| filter.fits(task));
    let marks = Marks::choose(&desk.marks, &context.options);
    let line = counts(&desk.tasks).join(marks.separator());
    if !line.is_empty() {
        output::line(&line)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the desk, because listing tasks also makes the daemon look for conflicts.
async fn ask_running_daemon(context: &Context) -> Option<Desk> {
    let mut daemon = Client::connect(&context.state).await.ok()?;
    daemon.call(DeskRead, Nothing {}).await.ok()
}

/// Inside a project, only its own tasks count.
fn keep_project_here(tasks: &mut Vec<Task>) {
    let Ok(here) = context::here() else { return };
    let is_here = |task: &Task| here.as_path().starts_with(task.project.as_path());
    if tasks.iter().any(is_here) {
        tasks.retain(is_here);
    }
}

/// `2 ask`, `1 done`, `4 work`: nothing that is zero.
fn counts(tasks: &[Task]) -> Vec<String> {
    let is_asking = |task: &Task| task.headline.starts_with("asks");
    let has_failed = |task: &Task| task.headline == "failed";
    let count = |is_counted: &dyn Fn(&Task) -> bool| tasks.iter().filter(|task| is_counted(task)).count();
    let is = |urgency: Urgency| move |task: &Task| task.urgency == urgency;
    let blocked = is(Urgency::Blocked);
    [
        (count(&|task| blocked(task) && is_asking(task)), "ask"),
        (count(&|task| blocked(task) && has_failed(task)), "failed"),
        (count(&|task| blocked(task) && !is_asking(task) && !has_failed(task)), "blocked"),
        (count(&is(Urgency::Unread)), "done"),
        (count(&is(Urgency::Waiting)), "wait"),
        (count(&is(Urgency::Working)), "work"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, word)| format!("{number} {word}"))
    .collect()
}

#[cfg(test)]
mod tests {
    use agency_api::view::Why;

    use super::*;
    use crate::sample_task::{draft, merged, read, waiting, working};

    #[test]
    fn only_what_matters_now_is_counted() {
        let tasks = [
            waiting(1, "a", Why::Permission, 5),
            waiting(2, "b", Why::Question, 5),
            waiting(3, "c", Why::Error, 5),
            waiting(4, "d", Why::Finished, 5),
            read(waiting(5, "e", Why::Finished, 5)),
            waiting(6, "f", Why::Prompt, 5),
            working(7, "g", 5),
            draft(8, "h"),
            merged(9, "i"),
        ];
        assert_eq!(counts(&tasks), ["2 ask", "1 failed", "1 done", "1 wait", "1 work"]);
        assert_eq!(counts(&tasks[7..]), [""; 0]);
    }
}
