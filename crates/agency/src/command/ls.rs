//! `agency ls`, and `agency` without a command: lists tasks and suggests the next step.

mod watch;

use std::process::ExitCode;

use agency_api::Failure;
use agency_api::method::{TaskList, TaskListParams, TaskListing};
use agency_api::view::{Task, Urgency};

use crate::cli::Ls;
use crate::context::{self, Context};
use crate::marks::Marks;
use crate::outcome::{CommandResult, with_hint};
use crate::output::{self, Colour, Paint, count, printable};
use crate::task_order::{Sort, next_waiting, sorted};
use crate::task_table::{self, Look};
use crate::task_tree;
use crate::task_words::Ages;

const NO_TASKS: &str = "\
No tasks yet. Start one:

  agency new fix-login -m \"make the login work\"   an agent in its own workspace
  agency new shell -- sh                          or any command

`agency help` lists the commands.";

const NO_REPOSITORY: &str = "
This directory is not in a git repository. Go to one, run `git init` and commit,
or work in the directory itself: agency new SLUG --vcs none";

/// The tasks that a list shows, and their order.
#[derive(Default)]
struct Shown {
    all_projects: bool,
    /// Whether merged tasks are listed and not only counted.
    all_states: bool,
    sort: Sort,
    is_filtered: bool,
}

pub(super) async fn ls(context: &Context, args: Ls) -> CommandResult {
    if args.brief {
        return super::brief::brief(context, args.all, &args.filter).await;
    }
    let all_projects = args.all || !args.filter.project.is_empty();
    if args.watch {
        let shown = Shown {
            all_projects,
            all_states: args.all_states || args.filter.chooses_states(),
            sort: args.sort.unwrap_or_default(),
            is_filtered: args.filter.is_any(),
        };
        return watch::watch(context, shown, args.filter).await;
    }
    let mut listing = list(context, all_projects).await?;
    let whole = listing.tasks.len();
    listing.tasks.retain(|task| args.filter.fits(task));
    if args.json {
        if let Some(sort) = args.sort {
            listing.tasks = sorted(&listing.tasks, sort).into_iter().cloned().collect();
        }
        output::json(&listing)?;
        return Ok(ExitCode::SUCCESS);
    }
    let shown = Shown {
        all_projects,
        all_states: args.all_states || args.filter.chooses_states(),
        sort: args.sort.unwrap_or_default(),
        is_filtered: whole > 0,
    };
    print(context, &listing, &shown)
}

async fn list(context: &Context, all_projects: bool) -> Result<TaskListing, Failure> {
    let mut daemon = context.daemon().await?;
    if all_projects {
        return daemon.call(TaskList, TaskListParams { cwd: None }).await;
    }
    let here = TaskListParams { cwd: Some(context::here()?) };
    let everywhere = |failure| with_hint(failure, "agency ls --all shows the tasks of every project");
    daemon.call(TaskList, here).await.map_err(everywhere)
}

/// `agency` without a command: the tasks of this project, or of all projects outside a project.
pub(super) async fn overview(context: &Context) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let here = TaskListParams { cwd: Some(context::here()?) };
    let (listing, all_projects) = match daemon.call(TaskList, here).await {
        Ok(listing) => (listing, false),
        Err(failure) => {
            let listing = daemon.call(TaskList, TaskListParams { cwd: None }).await?;
            // The advice in an empty list would fail here.
            if listing.tasks.is_empty() {
                return Err(failure.into());
            }
            (listing, true)
        }
    };
    print(context, &listing, &Shown { all_projects, ..Shown::default() })?;
    match next_task(&listing.tasks) {
        Some(task) => output::line(&next_steps(task, &listing.tasks, all_projects))?,
        None if all_projects => output::line(NO_REPOSITORY)?,
        None => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The task that `agency next` takes, or else the first one of the list.
fn next_task(tasks: &[Task]) -> Option<&Task> {
    next_waiting(tasks, None).or_else(|| sorted(tasks, Sort::Need).into_iter().next())
}

fn next_steps(task: &Task, tasks: &[Task], all: bool) -> String {
    let (verb, what) = match (&task.state, task.driver.as_str()) {
        (Some(_), "terminal") => ("attach", "open its terminal; ctrl-q leaves"),
        (Some(_), _) => ("chat", "read its conversation and answer"),
        (None, _) => ("start", "start its agent again"),
    };
    let name = clear_name(task, tasks);
    let command = match all {
        true => {
            let project = task.project.as_path().file_name().unwrap_or_default();
            format!("agency {verb} {}/{name}", project.to_string_lossy())
        }
        false => format!("agency {verb} {name}"),
    };
    let commands = [
        (command, what),
        ("agency new SLUG -m MESSAGE".to_owned(), "start another task"),
        ("agency help".to_owned(), "see all commands"),
    ];
    let width = commands.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
    let lines = commands.iter().map(|(command, what)| format!("  {command:width$}  {what}"));
    std::iter::once("\nNext:".to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
}

/// The shortest name that means this task and no other: its slug, or its id and its slug.
fn clear_name(task: &Task, tasks: &[Task]) -> String {
    let is_other = |other: &&Task| (&other.project, other.id) != (&task.project, task.id);
    let same_project = tasks.iter().filter(|other| other.project == task.project).filter(is_other);
    let means_other = |other: &Task| {
        other.slug == task.slug
            || other.id.to_string() == task.slug
            || format!("{}-{}", other.id, other.slug) == task.slug
    };
    match same_project.into_iter().any(means_other) {
        true => format!("{}-{}", task.id, task.slug),
        false => task.slug.clone(),
    }
}

fn print(context: &Context, listing: &TaskListing, shown: &Shown) -> CommandResult {
    let look = Look {
        paint: Paint::for_stdout(),
        marks: Marks::choose(&listing.marks, &context.options),
        width: output::stdout_width(),
        all_projects: shown.all_projects,
        ages: Ages::Exact,
    };
    for line in lines(listing, shown, look) {
        output::line(&line)?;
    }
    let broken = listing.tasks.iter().filter_map(|task| Some((task, task.broken.as_ref()?)));
    broken.for_each(|(task, why)| {
        output::warning(&format!("task {}-{} cannot be read: {why}", task.id, task.slug))
    });
    listing.warnings.iter().for_each(|warning| output::warning(warning));
    Ok(ExitCode::SUCCESS)
}

/// The table, and the lines below it.
fn lines(listing: &TaskListing, shown: &Shown, look: Look) -> Vec<String> {
    let (mut lines, folded) = fold(&listing.tasks, shown, look);
    if lines.is_empty() && folded.is_none() {
        let text = if shown.is_filtered { "no task fits" } else { NO_TASKS };
        lines.extend(text.lines().map(|line| task_table::cut_line(line, look)));
    }
    let mut add = |colour: Colour, line: &str| {
        let line = task_table::cut_line(&printable(line), look);
        lines.push(look.paint.paint(colour, &line));
    };
    if let Some(folded) = folded {
        add(Colour::Faint, &format!("{folded} merged: --all-states lists them"));
    }
    below(listing).iter().for_each(|line| add(Colour::Yellow, line));
    lines
}

/// The lines of the table, and how many merged tasks are only counted.
fn fold(tasks: &[Task], shown: &Shown, look: Look) -> (Vec<String>, Option<usize>) {
    let is_listed = |task: &&Task| shown.all_states || task.urgency != Urgency::Over;
    let listed: Vec<&Task> = sorted(tasks, shown.sort).into_iter().filter(is_listed).collect();
    let folded = tasks.len() - listed.len();
    let lines = match listed.is_empty() {
        true => Vec::new(),
        false => task_table::lines(&task_tree::order_by_parent(&listed), look),
    };
    (lines, (folded > 0).then_some(folded))
}

/// Lines below the table: agents in doubtful modes, tasks on other hosts, orphans.
fn below(listing: &TaskListing) -> Vec<String> {
    let in_doubt = listing.tasks.iter().filter_map(|task| Some((task, task.mode_warning.as_ref()?)));
    let mut lines: Vec<String> = in_doubt
        .map(|(task, why)| format!("{}-{}: {why} (agency mode {})", task.id, task.slug, task.id))
        .collect();
    let elsewhere: Vec<_> = listing.tasks.iter().filter(|task| task.elsewhere.is_some()).collect();
    if !elsewhere.is_empty() {
        lines.push(format!("{} on another host: attach there", count(elsewhere.len(), "task")));
    }
    if !listing.orphans.is_empty() {
        lines.push(format!("{}: agency orphans", count(listing.orphans.len(), "orphan")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use agency_api::Bytes;
    use agency_api::view::{TaskStatus, Why};

    use super::*;
    use crate::sample_task::{draft, ended, merged, waiting, working};

    #[test]
    fn merged_tasks_are_only_counted_unless_all_states_are_wanted() {
        let look = Look {
            paint: Paint::Plain,
            marks: Marks::Emoji,
            width: None,
            all_projects: false,
            ages: Ages::Exact,
        };
        let tasks = [draft(1, "idea"), merged(2, "old"), merged(3, "older")];
        let (lines, folded) = fold(&tasks, &Shown::default(), look);
        assert_eq!((lines.len(), folded), (2, Some(2)));
        let (lines, folded) = fold(&tasks, &Shown { all_states: true, ..Shown::default() }, look);
        assert_eq!((lines.len(), folded), (4, None));
        assert_eq!(fold(&tasks[1..], &Shown::default(), look), (Vec::new(), Some(2)));
    }

    #[test]
    fn the_next_step_is_the_task_that_needs_the_user_most() {
        let tasks = [
            working(1, "works", 3),
            waiting(2, "finished", Why::Finished, 900),
            waiting(3, "blocked", Why::Permission, 1),
            ended(4, "done", "0", false),
        ];
        assert_eq!(next_task(&tasks).map(|task| task.id), Some(3));
        assert!(next_steps(&tasks[2], &tasks, false).contains("agency attach blocked"));
        assert!(next_steps(&tasks[3], &tasks, false).contains("agency start done"));
        let chat = Task { driver: "acp".into(), ..tasks[2].clone() };
        assert!(next_steps(&chat, &tasks, false).contains("agency chat blocked"));
        assert!(next_steps(&tasks[3], &tasks, true).contains("agency start p/done"));
        assert_eq!(next_task(&tasks[..1]).map(|task| task.status), Some(TaskStatus::Running));
    }

    #[test]
    fn no_suggested_name_means_two_tasks() {
        let tasks =
            [draft(1, "x"), draft(2, "x"), draft(3, "1"), draft(4, "1-x"), draft(5, "y"), draft(6, "6")];
        let names: Vec<String> = tasks.iter().map(|task| clear_name(task, &tasks)).collect();
        assert_eq!(names, ["1-x", "2-x", "3-1", "4-1-x", "y", "6"]);
        let elsewhere = Task { project: Bytes::from("/q"), ..draft(1, "y") };
        assert_eq!(clear_name(&tasks[4], &[draft(5, "y"), elsewhere]), "y", "names are names in a project");
    }
}
