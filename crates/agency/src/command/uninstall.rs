//! `agency uninstall`: lists and removes everything that Agency has created.
//!
//! Invariant: it removes nothing before it knows that it can remove everything.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agency_api::method::{
    Nothing, OrphanList, ProjectErase, ProjectEraseParams, ProjectTraces, ProjectTracesParams, TaskRef,
    TaskRemove, TaskRemoveParams, Traces,
};
use agency_api::paths::global_config;
use agency_api::view::{ProjectTraces as Project, RunElsewhere, WorkspaceTraces};
use agency_api::{Bytes, Failure, FailureCode};
use agency_client::Client;
use serde::Serialize;

use super::daemon::{self, NextDaemon, service};
use crate::ask::{DefaultAnswer, ask};
use crate::caller;
use crate::cli::Uninstall;
use crate::context::Context;
use crate::installed_files;
use crate::outcome::{CommandError, CommandResult};
use crate::output::{self, count, printable};
use crate::progress;

/// Everything that Agency has created.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Inventory {
    /// Files and directories outside of projects: state, configuration, units, manual pages.
    files: Vec<Bytes>,
    projects: Vec<Project>,
    /// Live agents that no task owns.
    orphans: u64,
    /// Agents on other hosts that share the home directory.
    elsewhere: Vec<RunElsewhere>,
    /// The programs, which always stay.
    programs: Vec<Bytes>,
}

pub(super) async fn uninstall(context: &Context, args: Uninstall) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let inventory = progress::during("listing every project", take_inventory(context, &mut daemon)).await?;
    if args.json {
        output::json(&inventory)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.dry_run {
        show(&inventory)?;
        output::line("\nNothing was removed.")?;
        return Ok(ExitCode::SUCCESS);
    }
    refuse_live_agents(&inventory)?;
    refuse_agents_on_other_hosts(&inventory)?;
    if !args.discard {
        refuse_work(&inventory)?;
    }
    show(&inventory)?;
    if !args.yes && !ask_to_remove()? {
        return Err(Failure::new("nothing was removed")
            .code(FailureCode::Cancelled)
            .because("you did not agree")
            .into());
    }
    remove(context, daemon, &inventory, args.discard).await
}

async fn take_inventory(context: &Context, daemon: &mut Client) -> Result<Inventory, Failure> {
    let Traces { projects, elsewhere, .. } =
        daemon.call(ProjectTraces, ProjectTracesParams::default()).await?;
    let orphans = daemon.call(OrphanList, Nothing {}).await?.orphans.len() as u64;
    let mut files = owned_directories(context);
    files.extend(service::files(&context.executable));
    files.extend(installed_files::existing(&context.state));
    files.sort();
    files.dedup();
    let keeper = context.executable.with_file_name("agency-keeper");
    let programs = [context.executable.clone(), keeper].into_iter().filter(|path| path.exists());
    Ok(Inventory {
        files: files.into_iter().map(Bytes::from).collect(),
        projects,
        orphans,
        elsewhere,
        programs: programs.map(Bytes::from).collect(),
    })
}

/// Directories that are removed with their content. Everything else in the list is a file.
fn owned_directories(context: &Context) -> Vec<PathBuf> {
    let config = global_config().and_then(|file| Some(file.parent()?.to_path_buf()));
    [context.state.root().to_path_buf()].into_iter().chain(config.filter(|dir| dir.exists())).collect()
}

fn show(inventory: &Inventory) -> Result<(), CommandError> {
    output::line("Files and directories:")?;
    for path in &inventory.files {
        output::line(&format!("  {}", path_text(path)))?;
    }
    for project in &inventory.projects {
        output::line(&format!("\nIn {}:", path_text(&project.root)))?;
        project_lines(project).iter().try_for_each(|line| output::line(&format!("  {}", printable(line))))?;
    }
    output::line("\nNot removed, because they came with the installation:")?;
    for path in &inventory.programs {
        output::line(&format!("  {}", path_text(path)))?;
    }
    Ok(())
}

fn project_lines(project: &Project) -> Vec<String> {
    if let Some(why) = &project.unreachable {
        return vec![format!("cannot be read ({why}), so everything there stays")];
    }
    let mut lines: Vec<String> = Vec::new();
    lines.extend(
        project
            .directory
            .as_ref()
            .map(|directory| format!("{} with {}", path_text(directory), count(project.tasks.len(), "task"))),
    );
    lines.extend(project.workspaces.iter().map(workspace_line));
    if !project.kept.is_empty() {
        lines.push(format!(
            "{}, which {} removed work",
            count(project.kept.len(), "hidden ref"),
            match project.kept.len() {
                1 => "keeps",
                _ => "keep",
            }
        ));
    }
    lines.extend(
        project.exclude.as_ref().map(|file| format!("the lines about .agency/ in {}", path_text(file))),
    );
    lines.extend(project.stays.as_ref().map(|file| format!("not {}: you wrote it", path_text(file))));
    lines
}

fn workspace_line(workspace: &WorkspaceTraces) -> String {
    let directory = workspace.directory.as_ref().map(path_text);
    let branch = workspace.branch.as_ref().map(|branch| format!("branch {branch}"));
    let mut line = [directory, branch].into_iter().flatten().collect::<Vec<_>>().join(", ");
    if let Some(risk) = &workspace.at_risk {
        line.push_str(&format!("  (holds work: {risk})"));
    }
    line
}

fn path_text(path: &Bytes) -> String {
    printable(&path.as_path().display().to_string())
}

fn refuse_live_agents(inventory: &Inventory) -> Result<(), Failure> {
    let shells: u64 = inventory.projects.iter().map(|project| project.open_shells).sum();
    let live: u64 =
        inventory.projects.iter().map(|project| project.live_runs).sum::<u64>() + inventory.orphans;
    match (live, shells) {
        (0, 0) => Ok(()),
        (0, shells) => Err(Failure::new("nothing was removed")
            .code(FailureCode::ProgramRunning)
            .because(format!("{} still open", is_or_are(shells as usize, "terminal")))
            .hint("close them first: agency daemon stop --agents; `agency shells` lists them")),
        (live, _) => Err(Failure::new("nothing was removed")
            .code(FailureCode::AgentRunning)
            .because(format!("{} still running", is_or_are(live as usize, "agent")))
            .hint(
                "stop them first: agency daemon stop --agents; `agency orphans` lists those that no task owns",
            )),
    }
}

fn refuse_agents_on_other_hosts(inventory: &Inventory) -> Result<(), Failure> {
    let Some(first) = inventory.elsewhere.first() else { return Ok(()) };
    let failure = Failure::new("nothing was removed").code(FailureCode::RunningElsewhere).hint(format!(
        "stop them there: agency daemon stop --agents; if that host no longer exists: rm '{}'",
        first.pid_file.as_path().display()
    ));
    let mut hosts: Vec<&str> = inventory.elsewhere.iter().map(|run| run.host.as_str()).collect();
    hosts.sort_unstable();
    let causes = hosts.chunk_by(|one, other| one == other);
    let causes =
        causes.map(|runs| format!("{} still running on {}", is_or_are(runs.len(), "agent"), runs[0]));
    Err(causes.fold(failure, Failure::because))
}

fn refuse_work(inventory: &Inventory) -> Result<(), Failure> {
    let workspaces = inventory.projects.iter().flat_map(|project| &project.workspaces);
    let risks: Vec<String> = workspaces.filter_map(|workspace| workspace.at_risk.clone()).collect();
    if risks.is_empty() {
        return Ok(());
    }
    let failure = Failure::new("nothing was removed")
        .code(FailureCode::UnmergedWork)
        .hint("commit and merge it, or pass --discard");
    Err(risks.into_iter().fold(failure, Failure::because))
}

fn is_or_are(number: usize, noun: &str) -> String {
    format!("{} {}", count(number, noun), if number == 1 { "is" } else { "are" })
}

fn ask_to_remove() -> Result<bool, CommandError> {
    let hint = "read the list above; `agency uninstall --yes` removes all of it";
    ask("\nRemove all of this?", DefaultAnswer::No, hint)
}

async fn remove(
    context: &Context,
    mut daemon: Client,
    inventory: &Inventory,
    discard: bool,
) -> CommandResult {
    let mut left = Vec::new();
    for project in inventory.projects.iter().filter(|project| project.unreachable.is_none()) {
        let what = format!("removing Agency from {}", path_text(&project.root));
        left.extend(progress::during(&what, remove_project(&mut daemon, project, discard)).await?);
    }
    refuse_another_daemon(&daemon::stop_daemon(context, daemon, false, false).await?)?;
    let trees = owned_directories(context);
    for path in &inventory.files {
        let whole = trees.iter().any(|tree| tree == path.as_path());
        left.extend(delete(path.as_path(), whole).err().map(|err| format!("{}: {err}", path_text(path))));
    }
    output::line("\nRemoved.")?;
    for line in &left {
        output::line(&format!("  not removed: {}", printable(line)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Does not delete files that a running daemon uses.
fn refuse_another_daemon(after: &NextDaemon) -> Result<(), Failure> {
    match after {
        NextDaemon::None => Ok(()),
        NextDaemon::Running(view) => Err(Failure::new("Agency removed only what it created in projects")
            .code(FailureCode::ChangedMeanwhile)
            .because(format!("another daemon was started meanwhile, pid {}", view.pid))
            .hint("close attached terminals, then run `agency uninstall` again")),
    }
}

/// Removes everything in one project, and returns what could not be removed.
async fn remove_project(
    daemon: &mut Client,
    project: &Project,
    discard: bool,
) -> Result<Vec<String>, Failure> {
    for task in &project.tasks {
        let task = TaskRef { cwd: project.root.clone(), name: task.to_string() };
        let caller = caller::caller(&[]);
        daemon
            .call(
                TaskRemove,
                TaskRemoveParams { task, discard, force: false, reason: None, batch: None, caller },
            )
            .await?;
    }
    let spare = if discard { Vec::new() } else { project.kept.clone() };
    let params = ProjectEraseParams { root: project.root.clone(), discard, spare };
    Ok(daemon.call(ProjectErase, params).await?.left)
}

fn delete(path: &Path, whole: bool) -> std::io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(err) => Err(err),
        Ok(meta) if meta.is_dir() && whole => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(at_risk: Option<&str>, live_runs: u64) -> Inventory {
        let workspace = WorkspaceTraces {
            name: "1-one".into(),
            directory: Some("/p/.agency/worktrees/1-one".into()),
            branch: Some("agency/1-one".into()),
            at_risk: at_risk.map(str::to_owned),
        };
        let project = Project {
            root: "/p".into(),
            unreachable: None,
            directory: Some("/p/.agency".into()),
            tasks: vec![1],
            workspaces: vec![workspace],
            kept: vec!["refs/agency/trash/2-two-1".into()],
            exclude: Some("/p/.git/info/exclude".into()),
            stays: Some("/p/.agency/config.toml".into()),
            live_runs,
            open_shells: 0,
        };
        Inventory {
            files: Vec::new(),
            projects: vec![project],
            orphans: 0,
            elsewhere: Vec::new(),
            programs: Vec::new(),
        }
    }

    #[test]
    fn everything_in_a_project_has_a_line() {
        assert_eq!(
            project_lines(&project(Some("1 file is not committed"), 0).projects[0]),
            [
                "/p/.agency with 1 task",
                "/p/.agency/worktrees/1-one, branch agency/1-one  (holds work: 1 file is not committed)",
                "1 hidden ref, which keeps removed work",
                "the lines about .agency/ in /p/.git/info/exclude",
                "not /p/.agency/config.toml: you wrote it",
            ]
        );
    }

    #[test]
    fn live_agents_and_unmerged_work_are_refused() {
        assert!(refuse_live_agents(&project(None, 0)).is_ok() && refuse_work(&project(None, 0)).is_ok());
        let failure = refuse_live_agents(&project(None, 1)).expect_err("refused");
        assert_eq!(failure.causes, ["1 agent is still running"]);
        let failure = refuse_work(&project(Some("2 commits are not merged"), 0)).expect_err("refused");
        assert_eq!(failure.causes, ["2 commits are not merged"]);
    }

    #[test]
    fn only_our_own_directories_are_deleted_with_their_content() {
        let home = tempfile::tempdir().unwrap();
        let (dir, file) = (home.path().join("dir"), home.path().join("dir/file"));
        std::fs::create_dir(&dir).and_then(|()| std::fs::write(&file, "")).unwrap();
        assert!(delete(&dir, false).is_err() && file.exists());
        assert!(delete(&dir, true).is_ok() && !dir.exists());
        assert!(delete(&dir, false).is_ok(), "a missing directory is no error");
    }

    #[test]
    fn the_files_of_a_new_daemon_are_kept() {
        assert!(refuse_another_daemon(&NextDaemon::None).is_ok());
        let view = serde_json::json!({
            "pid": 7, "version": "1", "epoch": 2, "uptime_seconds": 0, "socket": "/s/d", "state_dir": "/s",
            "log": "/s/log", "projects": 0, "live_runs": 0, "orphans": 0,
        });
        let view = serde_json::from_value(view).expect("a daemon's description");
        let failure = refuse_another_daemon(&NextDaemon::Running(Box::new(view))).expect_err("refused");
        assert_eq!(failure.causes, ["another daemon was started meanwhile, pid 7"]);
    }
}
