//! `agency events`: what happens, one line each, as it happens.

use agency_api::Failure;
use agency_api::method::{EventSubscribe, Nothing};
use agency_api::view::Event;

use crate::cli::Events;
use crate::context::Context;
use crate::output::{self, printable};
use crate::stop::Done;

pub(super) async fn events(context: &Context, args: Events) -> Done {
    let mut daemon = context.daemon().await?;
    daemon.call(EventSubscribe, Nothing {}).await?;
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
    let mut words = vec![local_time(&event.time), event.kind.clone()];
    words.extend(event.task.map(|task| format!("task {task}")));
    words.extend(event.agent.clone());
    words.extend((!event.data.is_null()).then(|| event.data.to_string()));
    printable(&words.join("  "))
}

/// The time of day where the reader is.
fn local_time(time: &str) -> String {
    match time.parse::<jiff::Timestamp>() {
        Ok(time) => time.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string(),
        Err(_) => time.to_owned(),
    }
}
