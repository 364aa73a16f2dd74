//! `agency events`: what happens, one line each, as it happens.

use agency_api::Failure;
use agency_api::method::{EventSubscribe, EventSubscribeParams};
use agency_api::view::Event;

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
    let mut words = vec![moment::shown(&event.time), event.kind.clone()];
    words.extend(event.task.map(|task| format!("task {task}")));
    words.extend(event.agent.clone());
    words.extend((!event.data.is_null()).then(|| event.data.to_string()));
    printable(&words.join("  "))
}
