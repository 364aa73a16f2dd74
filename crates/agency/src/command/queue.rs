//! `agency queue`: lists or drops texts that wait for an agent's prompt.

use std::process::ExitCode;

use agency_api::method::{QueueDrop as DropQueued, QueueDropParams, QueueList, QueueListParams, Queued};

use crate::cli::{Queue, QueueCommand, QueueDrop};
use crate::context::Context;
use crate::moment;
use crate::outcome::CommandResult;
use crate::output::{self, cell, column, count, flexible};

pub(super) async fn queue(context: &Context, args: Queue) -> CommandResult {
    if let Some(QueueCommand::Drop(drop)) = args.command {
        return drop_texts(context, drop).await;
    }
    let task = args.task.as_deref().map(|name| context.task(name)).transpose()?;
    let mut daemon = context.daemon().await?;
    let queue = daemon.call(QueueList, QueueListParams { task }).await?;
    match args.json {
        true => output::json(&queue)?,
        false if queue.queued.is_empty() => output::note("no message is queued"),
        false => output::line(&table(&queue.queued))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn drop_texts(context: &Context, args: QueueDrop) -> CommandResult {
    let task = context.task(&args.name.task)?;
    let mut daemon = context.daemon().await?;
    let dropped = daemon.call(DropQueued, QueueDropParams { task, id: args.number }).await?;
    output::line(&format!("{} dropped", count(dropped.queued.len(), "text")))?;
    Ok(ExitCode::SUCCESS)
}

fn table(queued: &[Queued]) -> String {
    let columns = [column("NUMBER"), flexible("TASK", 8), column("SINCE"), flexible("MESSAGE", 20)];
    let row = |queued: &Queued| {
        let mark = match (queued.uncertain, queued.stranded) {
            (true, _) => "(uncertain) ",
            (false, true) => "(its agent is not running) ",
            (false, false) => "",
        };
        let text = String::from_utf8_lossy(&queued.text.0).split_whitespace().collect::<Vec<_>>().join(" ");
        vec![
            cell(queued.id.to_string()),
            cell(format!("{}-{}", queued.task, queued.slug)),
            cell(moment::format_local(&queued.time)),
            cell(format!("{mark}{text}")),
        ]
    };
    output::table(&columns, &queued.iter().map(row).collect::<Vec<_>>())
}
