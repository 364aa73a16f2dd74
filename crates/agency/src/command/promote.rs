//! `agency promote`: keeps one candidate of `agency new --best-of` and moves the others to the trash.

use std::process::ExitCode;

use agency_api::method::{TaskRemove, TaskRemoveParams};
use agency_api::{Failure, FailureCode};

use crate::caller;
use crate::candidates;
use crate::cli::Promote;
use crate::context::{self, Context};
use crate::outcome::CommandResult;
use crate::output;
use crate::several;

pub(super) async fn promote(context: &Context, args: Promote) -> CommandResult {
    let (group, number) = parse(&args.candidate)?;
    let mut daemon = context.daemon().await?;
    let found = candidates::require(&mut daemon, group).await?;
    let Some(winner) = found.iter().find(|candidate| candidate.number == number) else {
        let numbers: Vec<String> = found.iter().map(|candidate| candidate.number.to_string()).collect();
        return Err(Failure::new(format!("{group} has no candidate {number}"))
            .code(FailureCode::NotFound)
            .hint(format!("its candidates are {}", numbers.join(", ")))
            .into());
    };
    let batch = several::new_batch("promote");
    for other in found.iter().filter(|candidate| candidate.number != number) {
        let reason = Some(format!("{} was promoted", args.candidate));
        let (task, caller) = (context::reference(&other.task), caller::caller(&context.options));
        let params =
            TaskRemoveParams { task, discard: true, force: true, reason, batch: Some(batch.clone()), caller };
        let removed = daemon.call(TaskRemove, params).await?;
        removed.lost.iter().chain(&removed.notes).for_each(|note| output::warning(note));
        output::line(&format!("{} {} removed", removed.id, removed.slug))?;
    }
    output::line(&format!("{} {} promoted", winner.task.id, winner.task.slug))?;
    output::note(&format!("undo: agency undo {batch}"));
    output::note(&format!("next: agency merge {}", winner.task.id));
    Ok(ExitCode::SUCCESS)
}

fn parse(candidate: &str) -> Result<(&str, u64), Failure> {
    let parts = candidate.rsplit_once('/').and_then(|(group, number)| Some((group, number.parse().ok()?)));
    parts.ok_or_else(|| {
        Failure::new(format!("`{candidate}` names no candidate"))
            .code(FailureCode::InvalidArgument)
            .hint("name the group and the number, for example landing/2; agency compare landing lists them")
    })
}
