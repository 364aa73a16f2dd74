//! `agency ls`, and `agency` without a command: lists tasks and suggests the next step.

use std::process::ExitCode;

use agency_api::method::{TaskList, TaskListParams, TaskListing};
use agency_api::view::{SetupState, Task, WorkspaceStatus};

use crate::cli::Ls;
use crate::context::{self, Context};
use crate::outcome::{CommandResult, with_hint};
use crate::output::{self, Cell, Colour, Paint, cell, column, count, flexible, printable};
use crate::task_tree;

const NO_TASKS: &str = "\
No tasks yet. Start one:

  agency new fix-login -m \"make the login work\"   an agent in its own workspace
  agency new shell -- sh                          or any command

`agency help` lists the commands.";

pub(super) async fn ls(context: &Context, args: Ls) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let listing = match args.all {
        true => daemon.call(TaskList, TaskListParams { cwd: None }).await?,
        false => {
            let here = TaskListParams { cwd: Some(context::here()?) };
            let everywhere = |failure| with_hint(failure, "agency ls --all shows the tasks of every project");
            daemon.call(TaskList, here).await.map_err(everywhere)?
        }
    };
    if args.json {
        output::json(&listing)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&listing, args.all)
}

/// `agency` without a command: the tasks of this project, or of all projects outside a project.
pub(super) async fn overview(context: &Context) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let here = TaskListParams { cwd: Some(context::here()?) };
    let (listing, all) = match daemon.call(TaskList, here).await {
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
    print(&listing, all)?;
    if let Some(task) = next_task(&listing.tasks) {
        output::line(&next_steps(task, &listing.tasks, all))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The first task that waits for a person, or else the last task.
fn next_task(tasks: &[Task]) -> Option<&Task> {
    let waits =
        |task: &&Task| matches!(task.workspace_status, WorkspaceStatus::NeedsInput | WorkspaceStatus::Stale);
    tasks.iter().find(waits).or(tasks.last())
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

fn print(listing: &TaskListing, all: bool) -> CommandResult {
    match listing.tasks.is_empty() {
        true => output::line(NO_TASKS)?,
        false => output::line(&table(&listing.tasks, all))?,
    }
    for line in below(listing) {
        output::line(&line)?;
    }
    let broken = listing.tasks.iter().filter_map(|task| Some((task, task.broken.as_ref()?)));
    broken.for_each(|(task, why)| {
        output::warning(&format!("task {}-{} cannot be read: {why}", task.id, task.slug))
    });
    listing.warnings.iter().for_each(|warning| output::warning(warning));
    Ok(ExitCode::SUCCESS)
}

fn table(tasks: &[Task], all: bool) -> String {
    let mut columns = vec![
        column("ID"),
        flexible("SLUG", 8),
        column("STATUS"),
        column("STATE"),
        flexible("AGENT", 5),
        column("AGE"),
    ];
    let collide = tasks.iter().any(|task| !task.conflicts.is_empty());
    if collide {
        columns.push(flexible("CONFLICTS", 12));
    }
    if all {
        columns.push(flexible("PROJECT", 12));
    }
    let rows =
        task_tree::order_by_parent(tasks).into_iter().map(|(task, depth)| row(task, depth, collide, all));
    output::table(&columns, &rows.collect::<Vec<_>>())
}

fn row(task: &Task, depth: usize, collide: bool, all: bool) -> Vec<Cell> {
    let mut cells = vec![
        cell(task.id.to_string()),
        cell(format!("{}{}", task_tree::indent(depth), task.slug)),
        cell(output::status_name(task.status)),
        cell(state(task)).coloured(colour(task.workspace_status)),
        cell(if task.agent_name.is_empty() { "-" } else { &task.agent_name }),
        cell(task.age_seconds.map_or_else(|| "-".to_owned(), output::duration)),
    ];
    if collide {
        cells.push(cell(conflicts(task)).coloured(Some(Colour::Yellow)));
    }
    if all {
        cells.push(cell(task.project.as_path().display().to_string()));
    }
    cells
}

fn state(task: &Task) -> String {
    let words = match (&task.broken, &task.elsewhere, &task.state) {
        (Some(_), _, _) => "broken".to_owned(),
        (None, Some(host), _) => format!("on {host}"),
        (None, None, Some(state)) => {
            let detail = task.evidence.as_ref().and_then(|evidence| evidence.detail.as_deref());
            let seen = if task.seen { ", seen" } else { "" };
            let queued = if task.queued > 0 { format!(", {} queued", task.queued) } else { String::new() };
            format!("{}{seen}{queued}", output::state_text(state, detail))
        }
        (None, None, None) if task.vanished.is_some() => "workspace missing".to_owned(),
        (None, None, None) if task.merge_cut_off.is_some() => "merge interrupted, undone".to_owned(),
        (None, None, None) => match (task.setup, &task.last_exit) {
            (Some(SetupState::Running), _) => "setting up".to_owned(),
            (Some(SetupState::Failed), _) => "setup failed".to_owned(),
            (Some(SetupState::Pending), None) => "not set up".to_owned(),
            (_, Some(code)) => format!("exited {code}"),
            (_, None) => "-".to_owned(),
        },
    };
    format!("{} {words}", output::mark(task.workspace_status))
}

/// The workspaces that this one conflicts with, each with its file or the number of files.
fn conflicts(task: &Task) -> String {
    let words = task.conflicts.iter().map(|conflict| match conflict.files.as_slice() {
        [file] => format!("⚔ {}: {}", conflict.with, file.as_path().display()),
        files => format!("⚔ {}: {}", conflict.with, count(files.len(), "file")),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn colour(status: WorkspaceStatus) -> Option<Colour> {
    match status {
        WorkspaceStatus::Idle => Some(Colour::Faint),
        WorkspaceStatus::Running | WorkspaceStatus::Completed => Some(Colour::Green),
        WorkspaceStatus::NeedsInput | WorkspaceStatus::Stale => Some(Colour::Yellow),
        WorkspaceStatus::Errored => Some(Colour::Red),
    }
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
    let paint = Paint::for_stdout();
    lines.iter().map(|line| paint.paint(Colour::Yellow, &printable(line))).collect()
}

#[cfg(test)]
mod tests {
    use agency_api::Bytes;
    use agency_api::view::{AgentState, Conflict, TaskStatus, Why};

    use super::*;

    fn task(id: u64, slug: &str, status: TaskStatus, state: Option<AgentState>) -> Task {
        let workspace_status = match state {
            Some(AgentState::NeedsInput { .. }) => WorkspaceStatus::NeedsInput,
            Some(_) => WorkspaceStatus::Running,
            None => WorkspaceStatus::Idle,
        };
        Task {
            id,
            slug: slug.into(),
            project: Bytes::from("/p"),
            status,
            run: state.as_ref().map(|_| "r".into()),
            state,
            evidence: None,
            stream_state: None,
            mode_warning: None,
            seen: false,
            queued: 0,
            workspace_status,
            agent: "shell".into(),
            agent_name: "Shell".into(),
            driver: "terminal".into(),
            labels: Vec::new(),
            parent: None,
            base_branch: None,
            branch: None,
            worktree: None,
            port: None,
            ports: 0,
            setup: None,
            conflicts: Vec::new(),
            file: Bytes::default(),
            created_at: None,
            age_seconds: Some(200),
            last_exit: None,
            viewers: 0,
            elsewhere: None,
            vanished: None,
            merge_cut_off: None,
            broken: None,
        }
    }

    #[test]
    fn the_table_says_what_runs_and_what_waits() {
        let mut far = task(3, "far", TaskStatus::Running, None);
        far.elsewhere = Some("build-7".into());
        let tasks = [
            task(
                1,
                "fix-login",
                TaskStatus::Running,
                Some(AgentState::NeedsInput { for_seconds: 12, why: Why::Prompt }),
            ),
            task(2, "idea", TaskStatus::Draft, None),
            far,
        ];
        assert_eq!(
            table(&tasks, false),
            "\
ID  SLUG       STATUS   STATE                        AGENT  AGE
1   fix-login  running  🟡 needs input 12s (prompt)  Shell  3m
2   idea       draft    ⚪ -                         Shell  3m
3   far        running  ⚪ on build-7                Shell  3m"
        );
    }

    #[test]
    fn conflicts_have_a_column_while_there_are_any() {
        let conflict = |with: &str, files: &[&str]| Conflict {
            with: with.into(),
            task: None,
            files: files.iter().map(|file| Bytes::from(*file)).collect(),
        };
        let conflicts = vec![conflict("main", &["a.rs"]), conflict("2-docs", &["a.rs", "b.rs"])];
        let tasks = [
            Task { conflicts, ..task(1, "fix", TaskStatus::Draft, None) },
            task(2, "docs", TaskStatus::Draft, None),
        ];
        assert_eq!(
            table(&tasks, false),
            "\
ID  SLUG  STATUS  STATE  AGENT  AGE  CONFLICTS
1   fix   draft   ⚪ -   Shell  3m   ⚔ main: a.rs, ⚔ 2-docs: 2 files
2   docs  draft   ⚪ -   Shell  3m   "
        );
    }

    #[test]
    fn a_task_that_an_agent_started_is_shown_under_it() {
        let child =
            |id: u64, parent: u64| Task { parent: Some(parent), ..task(id, "x", TaskStatus::Draft, None) };
        let tasks = [
            task(1, "boss", TaskStatus::Draft, None),
            task(2, "other", TaskStatus::Draft, None),
            child(3, 1),
            child(4, 3),
            child(5, 1),
        ];
        let shown = table(&tasks, false);
        let names: Vec<&str> = shown
            .lines()
            .skip(1)
            .map(|line| line.split(" draft").next().unwrap_or(line).trim_end())
            .collect();
        assert_eq!(names, ["1   boss", "3   └ x", "4     └ x", "5   └ x", "2   other"]);
        let circle = [child(1, 2), child(2, 1)];
        assert_eq!(table(&circle, false).lines().count(), 3, "no task is left out");
    }

    #[test]
    fn the_next_step_is_the_task_that_waits() {
        let tasks = [
            task(1, "works", TaskStatus::Running, Some(AgentState::Running { for_seconds: 3 })),
            task(
                2,
                "waits",
                TaskStatus::Running,
                Some(AgentState::NeedsInput { for_seconds: 1, why: Why::Prompt }),
            ),
            task(3, "done", TaskStatus::Stopped, None),
        ];
        assert_eq!(next_task(&tasks).map(|task| task.id), Some(2));
        assert!(next_steps(&tasks[1], &tasks, false).contains("agency attach waits"));
        assert!(next_steps(&tasks[2], &tasks, false).contains("agency start done"));
        let chat = Task { driver: "acp".into(), ..tasks[1].clone() };
        assert!(next_steps(&chat, &tasks, false).contains("agency chat waits"));
        assert!(next_steps(&tasks[2], &tasks, true).contains("agency start p/done"));
    }

    #[test]
    fn no_suggested_name_means_two_tasks() {
        let draft = |id: u64, slug: &str| task(id, slug, TaskStatus::Draft, None);
        let tasks =
            [draft(1, "x"), draft(2, "x"), draft(3, "1"), draft(4, "1-x"), draft(5, "y"), draft(6, "6")];
        let names: Vec<String> = tasks.iter().map(|task| clear_name(task, &tasks)).collect();
        assert_eq!(names, ["1-x", "2-x", "3-1", "4-1-x", "y", "6"]);
        let elsewhere = Task { project: Bytes::from("/q"), ..draft(1, "y") };
        assert_eq!(clear_name(&tasks[4], &[draft(5, "y"), elsewhere]), "y", "names are names in a project");
    }
}
