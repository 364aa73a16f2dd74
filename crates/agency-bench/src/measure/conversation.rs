//! A long conversation: opens it while its agent is alive and after its end, and searches for a word in it.

use std::fmt::Write;
use std::fs;
use std::time::Instant;

use agency_testkit::{CommandOutput, eventually};

use super::{Measure, PATIENCE};
use crate::figure::{Sample, Unit, quantile};
use crate::peer::{AGENCY, Peer};
use crate::sizes::Sizes;
use crate::stage::Stage;

pub const MEASURE: Measure = Measure {
    name: "conversation",
    title: "A conversation of two thousand entries",
    applies: |peer| peer.name == AGENCY,
    is_once: true,
    run,
};

/// The last text, which occurs once.
const LAST: &str = "quintessence";

fn run(peer: &'static Peer, sizes: &Sizes) -> Vec<Sample> {
    let stage = Stage::new(peer, sizes);
    begin(&stage, sizes.entries);
    let mut samples = vec![time_opening(&stage, "opened while its agent is running, p50", sizes.lists)];
    CommandOutput::of(stage.sealed.agency(["stop", "long"]), b"").ok();
    samples.push(time_opening(&stage, "opened when its agent has ended, p50", sizes.lists));
    let found = |text: &str| text.contains("agency chat");
    samples.push(time_command(&stage, "`agency search`, p50", &["search", LAST], sizes.lists, found));
    samples
}

/// Starts an agent that sends all entries at once, and then waits.
fn begin(stage: &Stage, entries: usize) {
    let (file, script) = (stage.path("transcript"), stage.path("conversation.sh"));
    fs::write(&file, transcript(entries)).expect("room for a conversation");
    fs::write(&script, format!("cat {}\nexec cat >/dev/null\n", file.display())).expect("room for a script");
    let agent =
        ["--driver", "stream-json", "-m", "go", "--", "sh", &script.to_string_lossy()].map(str::to_owned);
    let new = ["new", "long", "--no-attach"].map(str::to_owned);
    CommandOutput::of(stage.sealed.agency(new.into_iter().chain(agent)), b"").ok();
    eventually("the whole conversation", PATIENCE, || is_whole(&chat(stage)).then_some(()));
}

/// Texts, and tool calls with their results.
fn transcript(entries: usize) -> String {
    let mut lines = String::new();
    for number in 1..=entries {
        let text = match number == entries {
            true => LAST.to_owned(),
            false => format!("step {number}: ").repeat(20),
        };
        let content = match number % 4 {
            0 if number < entries => {
                let id = format!("toolu_{number}");
                let input = serde_json::json!({ "command": text });
                let call =
                    serde_json::json!({ "type": "tool_use", "id": id, "name": "Bash", "input": input });
                let output = serde_json::json!([{ "type": "tool_result", "tool_use_id": id, "content": text.repeat(10) }]);
                let result =
                    serde_json::json!({ "type": "user", "message": { "role": "user", "content": output } });
                add_line(&mut lines, number, call);
                writeln!(lines, "{result}").expect("memory takes it");
                continue;
            }
            _ => serde_json::json!({ "type": "text", "text": text }),
        };
        add_line(&mut lines, number, content);
    }
    lines
}

fn add_line(lines: &mut String, number: usize, block: serde_json::Value) {
    let message = serde_json::json!({ "id": format!("msg_{number}"), "content": [block] });
    let line = serde_json::json!({ "type": "assistant", "session_id": "bench", "message": message });
    writeln!(lines, "{line}").expect("memory takes it");
}

fn chat(stage: &Stage) -> String {
    CommandOutput::of(stage.sealed.agency(["chat", "long"]), b"").ok()
}

fn is_whole(text: &str) -> bool {
    text.contains(LAST)
}

fn time_opening(stage: &Stage, name: &str, times: usize) -> Sample {
    time_command(stage, name, &["chat", "long"], times, is_whole)
}

fn time_command(
    stage: &Stage,
    name: &str,
    args: &[&str],
    times: usize,
    is_right: fn(&str) -> bool,
) -> Sample {
    let once = |_| {
        let began = Instant::now();
        let text = CommandOutput::of(stage.sealed.agency(args), b"").ok();
        let took = began.elapsed().as_secs_f64();
        assert!(is_right(&text), "agency {}: something is missing", args.join(" "));
        took
    };
    let values: Vec<f64> = (0..times).map(once).collect();
    Sample::new(name, Unit::Seconds, quantile(&values, 0.5))
}
