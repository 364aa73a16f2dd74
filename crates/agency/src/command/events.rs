//! `agency events`: prints events as they happen, one per line.

use agency_api::event::{Event, EventData, StateChangeEvent};
use agency_api::method::{EventSubscribe, EventSubscribeParams};
use agency_api::view::Evidence;
use agency_api::{Failure, FailureCode};
use serde_json::Value;

use crate::cli::Events;
use crate::context::Context;
use crate::moment;
use crate::outcome::CommandResult;
use crate::output::{self, printable};

pub(super) async fn events(context: &Context, args: Events) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let since = args.since.map(|since| since.to_string());
    daemon.call(EventSubscribe, EventSubscribeParams { since }).await?;
    while let Some(event) = daemon.next_event().await {
        match args.json {
            true => output::json_line(&event)?,
            false => output::line(&event_line(&event))?,
        }
    }
    // The reader must know that events after this point are missing.
    Err(Failure::new("the daemon ended, so no more events follow")
        .code(FailureCode::DaemonLost)
        .hint("run the same command again")
        .into())
}

fn event_line(event: &Event) -> String {
    let mut words = vec![moment::format_local(&event.time), format!("{:<12}", event.data.kind())];
    words.extend(event.task.map(|task| format!("task {task}")));
    words.extend(event.agent.clone());
    words.extend(match &event.data {
        EventData::StateChange(change) => Some(state_change(change)),
        other => Some(data_words(&other.data())).filter(|words| !words.is_empty()),
    });
    printable(&words.join("  "))
}

/// The data of an event as text for people: `status: running`.
fn data_words(data: &Value) -> String {
    match data {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => data.to_string(),
        Value::Array(items) => items.iter().map(data_words).collect::<Vec<_>>().join(" "),
        Value::Object(keys) => {
            let words = keys.iter().map(|(key, value)| (key.replace('_', " "), data_words(value)));
            let words = words.filter(|(_, value)| !value.is_empty());
            words.map(|(key, value)| format!("{key}: {value}")).collect::<Vec<_>>().join(", ")
        }
    }
}

/// A change of state in the words that `agency ls` uses.
fn state_change(change: &StateChangeEvent) -> String {
    let Evidence { source, rule, confidence, detail } = &change.evidence;
    let words = output::state_name(&change.new, detail.as_deref());
    format!("{words:<40}  {source}: {rule} ({confidence})")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn people_read_words_and_no_json() {
        for (data, words) in [
            (json!({ "status": "running" }), "status: running"),
            (json!({ "id": 2, "bytes": 9 }), "id: 2, bytes: 9"),
            (json!({ "into": "main", "before": null, "cut_off": false }), "into: main, cut off: false"),
            (json!({ "keys": ["a", "b"] }), "keys: a b"),
            (json!({}), ""),
            (json!(null), ""),
        ] {
            assert_eq!(data_words(&data), words, "{data}");
        }
    }
}
