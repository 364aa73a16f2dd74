//! `agency projects`: lists the projects that the daemon knows, adds one, forgets one.

use std::path::Path;
use std::process::ExitCode;

use agency_api::method::{Nothing, ProjectAdd, ProjectForget, ProjectList};
use agency_api::project::{ProjectAddParams, ProjectForgetParams, ProjectView};
use agency_client::Client;

use crate::cli::{Projects, ProjectsCommand};
use crate::context::{self, Context};
use crate::outcome::CommandResult;
use crate::output::{self, cell, column, flexible, printable};

pub(super) async fn projects(context: &Context, args: Projects) -> CommandResult {
    let mut daemon = context.daemon().await?;
    match args.command {
        None => list(&mut daemon, args.json).await,
        Some(ProjectsCommand::Add { directory }) => add(&mut daemon, &directory).await,
        Some(ProjectsCommand::Forget { project }) => forget(&mut daemon, project).await,
    }
}

async fn list(daemon: &mut Client, json: bool) -> CommandResult {
    let listed = daemon.call(ProjectList, Nothing {}).await?;
    match json {
        true => output::json(&listed)?,
        false if listed.projects.is_empty() => {
            output::note("no projects yet; any use of Agency in a repository adds it");
        }
        false => output::line(&table(&listed.projects))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn table(projects: &[ProjectView]) -> String {
    let columns = [flexible("NAME", 8), column("TASKS"), column("AGENTS"), flexible("DIRECTORY", 20)];
    let row = |project: &ProjectView| {
        let missing = if project.missing { " (missing)" } else { "" };
        vec![
            cell(project.name.clone()),
            cell(project.tasks.to_string()),
            cell(project.live_agents.to_string()),
            cell(format!("{}{missing}", root(project))),
        ]
    };
    output::table(&columns, &projects.iter().map(row).collect::<Vec<_>>())
}

async fn add(daemon: &mut Client, directory: &Path) -> CommandResult {
    let path = context::here()?.as_path().join(directory);
    let added = daemon.call(ProjectAdd, ProjectAddParams { path: path.into() }).await?;
    output::line(&format!("added {}", root(&added)))?;
    Ok(ExitCode::SUCCESS)
}

async fn forget(daemon: &mut Client, name: String) -> CommandResult {
    let forgotten = daemon.call(ProjectForget, ProjectForgetParams { cwd: context::here()?, name }).await?;
    let root = root(&forgotten);
    output::line(&format!(
        "forgot {root}; its files and tasks stay, and the next command in it adds it again"
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn root(project: &ProjectView) -> String {
    printable(&project.root.as_path().display().to_string())
}
