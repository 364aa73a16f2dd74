//! Any events in a run over a protocol: the driver never panics, the conversation shows every open request as open, and no
//! request is open at the end.

use std::collections::BTreeSet;
use std::time::Duration;

use agency_core::exit::{ExitCode, RunExit};
use agency_driver::acp::ConnectionNote;
use agency_driver::conversation::{AgentSetting, ApprovalAnswer};
use agency_driver::protocol_run::ConversationRun;
use arbitrary::Arbitrary;

use crate::message::Message;

const NOW: Duration = Duration::ZERO;

#[derive(Arbitrary, Debug)]
pub enum Act<'a> {
    Says(Message<'a>),
    Writes(Message<'a>),
    Prints(&'a [u8]),
    Connected,
    Lost,
    Gap,
    Pay,
    Prompt(&'a str),
    Interrupt,
    SetMode(&'a str),
    Stop,
    Answer(u8, &'a str),
}

pub fn play(mut run: ConversationRun, acts: &[Act<'_>]) {
    for act in acts {
        step(&mut run, act);
        let open: BTreeSet<&str> = run.open_requests().into_iter().collect();
        let shown: BTreeSet<&str> =
            run.conversation().open_approvals().map(|known| known.id.as_str()).collect();
        assert_eq!(open, shown, "after {act:?}");
    }
    run.on_exit(RunExit::by_itself(ExitCode::Code(0)), NOW);
    assert_eq!((run.conversation().open_approvals().count(), run.open_requests().len()), (0, 0));
}

fn step(run: &mut ConversationRun, act: &Act<'_>) {
    match act {
        Act::Says(message) => drop(run.on_output(&message.bytes(), NOW)),
        Act::Writes(message) => drop(run.on_input(&message.bytes(), NOW)),
        Act::Prints(bytes) => run.on_errors(bytes, NOW),
        Act::Connected => drop(run.on_connection(&ConnectionNote::Connected, NOW)),
        Act::Lost => drop(run.on_connection(&ConnectionNote::Lost { cause: None }, NOW)),
        Act::Gap => run.on_gap(NOW),
        Act::Pay => run.owed_lines().into_iter().for_each(|(_, line)| written(run, &line)),
        Act::Prompt(text) => run.prompt(text).into_iter().for_each(|line| written(run, &line)),
        Act::Interrupt => run.interrupt().into_iter().for_each(|line| written(run, &line)),
        Act::SetMode(mode) => {
            run.set(AgentSetting::Mode, mode).into_iter().for_each(|request| written(run, &request.line));
        }
        Act::Stop => run.stop().into_iter().for_each(|line| written(run, &line)),
        Act::Answer(kind, text) => {
            let open: Vec<String> = run.open_requests().into_iter().map(str::to_owned).collect();
            for id in open {
                let verdict = verdict(*kind, text);
                run.answer(&id, &verdict).into_iter().for_each(|line| written(run, &line));
            }
        }
    }
}

/// Checks that a line of ours is one line of JSON, and feeds it to the run.
fn written(run: &mut ConversationRun, line: &[u8]) {
    let (last, rest) = line.split_last().expect("a line");
    assert!(*last == b'\n' && !rest.contains(&b'\n'));
    serde_json::from_slice::<serde_json::Value>(rest).expect("JSON");
    run.on_input(line, NOW);
}

fn verdict(kind: u8, text: &str) -> ApprovalAnswer {
    match kind % 5 {
        0 => ApprovalAnswer::Allow,
        1 => ApprovalAnswer::AllowAlways,
        2 => ApprovalAnswer::Deny { message: text.to_owned() },
        3 => ApprovalAnswer::Choose { id: text.to_owned() },
        _ => ApprovalAnswer::Answer { answers: [(text.to_owned(), text.to_owned())].into() },
    }
}
