//! `agency events`: what happens, one line each, as it happens.

use agency_api::Failure;
use agency_api::method::{EventSubscribe, EventSubscribeParams};
use agency_api::view::{Event, Evidence};

use crate::cli::Events;
use crate::context::Context;
use crate::moment;
use crate::output::{self, printable};
use crate::stop::Done;

pub(super) async fn events(context: &Context, args: Events) -> Done {
    let mut daemon = context.daemon().await?;
    let since = args.since.map(|since| since.to_string());
    daemon.call(EventSubscribe, EventSubscribeParams { since }).await?;
    while let Some(event) = daemon.next_event().await {
        match args.json {
            true => output::json_line(&event)?,
            false => output::line(&human(&event))?,
        }
    }
    // Whoever reads this must know that events may have been missed from here on.
    Err(Failure::new("the daemon has gone, and with it the events").hint("run the same command again").into())
}

fn human(event: &Event) -> String {
    let mut words = vec![moment::format_local(&event.time), format!("{:<12}", event.kind)];
    words.extend(event.task.map(|task| format!("task {task}")));
    words.extend(event.agent.clone());
    words.extend(state_change(event).or((!event.data.is_null()).then(|| event.data.to_string())));
    printable(&words.join("  "))
}

/// A change of state as people say it.
fn state_change(event: &Event) -> Option<String> {
    let state =
        serde_json::from_value(event.data["new"].clone()).ok().filter(|_| event.kind == "StateChange")?;
    let evidence: Evidence = serde_json::from_value(event.data["evidence"].clone()).ok()?;
    let Evidence { source, rule, confidence, detail } = &evidence;
    let words = output::state_name(&state, detail.as_deref());
    Some(format!("{words:<40}  {source}: {rule} ({confidence})"))
}
