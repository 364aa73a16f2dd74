//! Runs a command in a task's workspace.
//!
//! The process replaces itself with the command, so output, signals and exit code are those of the command.

use std::os::unix::process::CommandExt;
use std::process::Command;

use agency_api::config::Overrides;
use agency_api::method::{Plan, TaskPlan, TaskPlanParams};
use agency_api::{Bytes, Failure, FailureCode};

use crate::context::Context;
use crate::outcome::CommandError;

pub(crate) async fn plan(context: &Context, task: &str, message: Option<Bytes>) -> Result<Plan, Failure> {
    let overrides = Overrides::from_process(&context.options);
    let params = TaskPlanParams { task: context.task(task)?, message, overrides };
    context.daemon().await?.call(TaskPlan, params).await
}

/// Returns only if the command cannot be run.
pub(crate) fn become_command(plan: &Plan, argv: &[Bytes]) -> CommandError {
    match prepare(plan, argv) {
        Ok(mut command) => cannot_run(&argv[0], &command.exec()).into(),
        Err(failure) => failure.into(),
    }
}

fn prepare(plan: &Plan, argv: &[Bytes]) -> Result<Command, Failure> {
    let directory = plan.cwd.as_path();
    // Without this check a missing directory would be reported as a missing program.
    if !directory.is_dir() {
        return Err(Failure::new(format!(
            "the workspace of {}-{} does not exist",
            plan.task.id, plan.task.slug
        ))
        .code(FailureCode::WorkspaceMissing)
        .because(format!("{} is not a directory", directory.display()))
        .hint(format!("`agency start {}` creates it again", plan.task.slug)));
    }
    let none = || Failure::new("there is no command to run").code(FailureCode::InvalidArgument);
    let (program, arguments) = argv.split_first().ok_or_else(none)?;
    let mut command = Command::new(program.as_os_str());
    command.args(arguments.iter().map(Bytes::as_os_str)).current_dir(directory).env("PWD", directory);
    // If an agent calls us, our environment has the ports of its workspace. They do not belong to this one.
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"AGENCY_PORT"))
    {
        command.env_remove(name);
    }
    command.envs(plan.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())));
    Ok(command)
}

fn cannot_run(program: &Bytes, error: &std::io::Error) -> Failure {
    let failure = Failure::new(format!("cannot run {}", program.as_path().display()))
        .code(FailureCode::CommandNotFound)
        .caused_by(error);
    match error.kind() {
        std::io::ErrorKind::NotFound => failure.hint("is it installed, and in PATH?"),
        _ => failure,
    }
}
