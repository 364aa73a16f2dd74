//! `agency review`: look at a task's work, write remarks into it, accept it.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

use agency_api::method::{TaskGet, TaskReview, TaskSend, TaskSendParams};
use agency_api::view::TaskStatus;
use agency_api::{Bytes, Failure, work};

use super::{diff, prompt, send};
use crate::annotated::{self, Remark};
use crate::ask::{Otherwise, ask};
use crate::cli::Review;
use crate::context::Context;
use crate::output::{self, count};
use crate::stop::{Done, Stop, failed, with_hint};

pub(super) async fn review(context: &Context, args: Review) -> Done {
    let task = &args.name.task;
    if args.accept {
        return accept(context, task).await;
    }
    let diff = diff::fetch(context, task, None, false).await?;
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        diff::show(&diff)?;
        output::note(&format!("`agency review {task} --accept` accepts it"));
        return Ok(ExitCode::SUCCESS);
    }
    walk(context, task, &diff).await
}

/// In the editor, where remarks are written.
async fn walk(context: &Context, task: &str, diff: &work::Diff) -> Done {
    let patch = diff.patch.as_ref().map_or(&[][..], |patch| &patch.0);
    let patch = String::from_utf8_lossy(patch);
    let sheet = Sheet::new(context, &diff.slug, &annotated::sheet(&patch))?;
    let edited = sheet.edited().await?;
    let remarks = annotated::remarks(&patch, &edited);
    if !remarks.is_empty() {
        return match send_back(context, task, &remarks).await {
            Ok(()) => sheet.forget(),
            Err(failure) => Err(sheet.kept(failure).into()),
        };
    }
    sheet.forget()?;
    let hint = format!("`agency review {task} --accept` accepts it");
    match ask(&format!("No remarks. Accept the work of {}-{}?", diff.task, diff.slug), Otherwise::No, &hint)?
    {
        true => accept(context, task).await,
        false => Ok(ExitCode::SUCCESS),
    }
}

async fn accept(context: &Context, task: &str) -> Done {
    let mut daemon = context.daemon().await?;
    let now = daemon.call(TaskGet, context.task(task)?).await?;
    let reviewed = match now.status {
        TaskStatus::Reviewed => {
            output::note("it was already accepted");
            now
        }
        _ => daemon.call(TaskReview, context.task(task)?).await?,
    };
    output::line(&output::task_line(&reviewed))?;
    Ok(ExitCode::SUCCESS)
}

/// As one message, held until the agent is at its prompt.
async fn send_back(context: &Context, task: &str, remarks: &[Remark]) -> Result<(), Failure> {
    let text = Bytes::from(annotated::message(remarks));
    send::not_too_long(&text)?;
    let (enter, anyway, queue, keys) = (true, false, true, Vec::new());
    let params = TaskSendParams { task: context.task(task)?, text, enter, anyway, queue, keys };
    let mut daemon = context.daemon().await?;
    let receipt = daemon.call(TaskSend, params).await?;
    let (remarks, now) = (count(remarks.len(), "remark"), daemon.call(TaskGet, context.task(task)?).await?);
    output::note(&match (now.run, receipt.why) {
        (None, _) => {
            format!("{remarks} queued as one message; the agent gets it after `agency start {task}`")
        }
        (Some(_), Some(why)) => format!("{remarks} sent to the agent as one message ({why})"),
        (Some(_), None) => format!("{remarks} sent to the agent as one message"),
    });
    Ok(())
}

/// The file in the editor. What was written into it is not lost.
struct Sheet {
    path: std::path::PathBuf,
}

impl Sheet {
    fn new(context: &Context, slug: &str, content: &str) -> Result<Sheet, Stop> {
        let drafts = context.state.root().join("drafts");
        let made = prompt::new_draft(&drafts, slug, "diff", content.as_bytes());
        made.map(|path| Sheet { path }).map_err(|err| failed("cannot create a file for the editor", &err))
    }

    async fn edited(&self) -> Result<String, Stop> {
        prompt::edit(&self.path).await.map_err(|failure| {
            let message = "the editor failed, so nothing was sent".to_owned();
            self.kept(Failure { message, hint: Some("set $VISUAL or $EDITOR".to_owned()), ..failure })
        })?;
        let cannot = || format!("cannot read the edited file {}", shown(&self.path));
        let content = std::fs::read(&self.path).map_err(|err| failed(&cannot(), &err))?;
        Ok(String::from_utf8_lossy(&content).into_owned())
    }

    fn kept(&self, failure: Failure) -> Failure {
        with_hint(failure, &format!("your text is saved in {}", shown(&self.path)))
    }

    fn forget(self) -> Done {
        if let Err(err) = std::fs::remove_file(&self.path) {
            output::warning(&format!("cannot delete {}: {err}", shown(&self.path)));
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
