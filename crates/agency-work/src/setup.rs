//! Prepares a new workspace: copies ignored files into it, then runs the user's commands. Also runs the commands before
//! a removal.
//!
//! Not here: whether a setup is owed, and what follows from its end.

use std::pin::Pin;

use agency_api::{Failure, FailureCode};
use agency_core::ids::TaskId;
use agency_workspace::{CopyError, Project, WorkspaceName};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::failure::AsFailure;
use crate::setup_commands::{self, OldContent, SetupCommands, SetupError, SetupLog};

/// How many files that were not copied are named.
const NAMED_FILES: usize = 3;

/// Reports whole lines of output. The next lines wait until it is done.
pub type Report = Box<dyn Fn(String) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// Everything that a setup needs.
#[derive(Debug)]
pub struct SetupPlan {
    pub project: Project,
    pub name: WorkspaceName,
    /// Ignored files that are copied into the workspace first.
    pub patterns: Vec<String>,
    pub commands: SetupCommands,
    /// The way out if a command fails.
    pub hint: String,
}

/// The reason why a workspace is not set up.
#[derive(Debug)]
pub struct SetupFailure {
    pub failure: Failure,
    /// A user stopped it.
    pub stopped: bool,
}

/// Copies ignored files, then runs the commands. On success returns what the user should know.
pub async fn set_up(
    plan: SetupPlan,
    stopped: watch::Receiver<bool>,
    report: Report,
) -> Result<Vec<String>, SetupFailure> {
    let (log, pieces) = SetupLog::open(&plan.commands.log, OldContent::Replace);
    let reporting = report_output(pieces, report);
    let outcome = copy_and_run(plan, log, stopped).await;
    await_reports(reporting).await;
    outcome
}

/// Runs the commands before the workspace of `task` is removed.
pub async fn tear_down(
    task: TaskId,
    commands: SetupCommands,
    stopped: watch::Receiver<bool>,
    report: Report,
) -> Result<(), Failure> {
    let (log, pieces) = SetupLog::open(&commands.log, OldContent::Keep);
    let reporting = report_output(pieces, report);
    // The reports end when the log is dropped.
    let outcome = setup_commands::run(&commands, log, stopped).await.map(drop).map_err(|(error, _)| error);
    await_reports(reporting).await;
    outcome.map_err(|error| {
        let hint = format!("repair it, or remove the task without it: agency rm {task} --discard");
        describe_failure(format!("the teardown of task {task} failed"), error, hint)
    })
}

fn report_output(mut pieces: mpsc::Receiver<String>, report: Report) -> JoinHandle<()> {
    tokio::spawn(async move {
        while let Some(text) = pieces.recv().await {
            report(text).await;
        }
    })
}

/// The end is reported after all of the output.
async fn await_reports(reporting: JoinHandle<()>) {
    if let Err(cause) = reporting.await {
        tracing::warn!(%cause, "a part of a setup's output was not reported");
    }
}

async fn copy_and_run(
    plan: SetupPlan,
    mut log: SetupLog,
    stopped: watch::Receiver<bool>,
) -> Result<Vec<String>, SetupFailure> {
    let SetupPlan { project, name, patterns, commands, hint } = plan;
    let copy_failed = |err: CopyError| SetupFailure {
        stopped: matches!(err, CopyError::Stopped),
        failure: err.as_failure(),
    };
    let stop = stopped.clone();
    let copying = tokio::task::spawn_blocking(move || {
        agency_workspace::copy_ignored(&project, &name, &patterns, || !*stop.borrow()).map_err(copy_failed)
    });
    let copied = copying.await.unwrap_or_else(|cause| {
        let failure = Failure::new("copying ignored files crashed inside Agency (a bug)")
            .code(FailureCode::Internal)
            .caused_by(&cause);
        Err(SetupFailure { failure, stopped: false })
    })?;
    if copied.files > 0 {
        let files = if copied.files == 1 { "file" } else { "files" };
        log.write_line(&format!("copied {} ignored {files}", copied.files)).await;
    }
    let notes = not_copied(&copied.left_out);
    match setup_commands::run(&commands, log, stopped).await {
        Ok(_) => Ok(notes),
        Err((error, _)) => {
            let stopped = error.stopped;
            let failure = describe_failure("the setup of its workspace failed".to_owned(), error, hint);
            Err(SetupFailure { failure, stopped })
        }
    }
}

fn not_copied(left_out: &[String]) -> Vec<String> {
    let named = left_out.iter().take(NAMED_FILES).map(|file| format!("not copied: {file}"));
    let more = left_out.len().saturating_sub(NAMED_FILES);
    named.chain((more > 0).then(|| format!("not copied: {more} files more"))).collect()
}

fn describe_failure(message: String, error: SetupError, hint: String) -> Failure {
    let failure = Failure::new(message).code(FailureCode::SetupFailed).because(error.why);
    let failure = match error.last_lines.is_empty() {
        true => failure,
        false => failure.because(format!("its last lines:\n  {}", error.last_lines.join("\n  "))),
    };
    failure.hint(hint)
}
