//! The detector handles everything that is due: after a tick, no deadline is in the past. A deadline that stays would hide all
//! later ones, and the daemon would wake up for it again and again.

use std::collections::BTreeSet;
use std::time::Duration;

use agency_core::agent_state::Timing;
use agency_core::evidence::{
    Activity, Detector, Field, Matched, MenuSample, Moment, Probe, ProbedProcess, RulesResult, ScreenSample,
    Waits, Why, tickers,
};
use proptest::prelude::*;

/// One thing that happens to an agent.
#[derive(Clone, Debug)]
enum Step {
    Screen { frame: u64, flags: u16, text: usize, sign: usize, rule: usize },
    Probe { canonical: bool, foreground: i32, waits: usize, child: Option<usize> },
    Input { enter: bool },
    Prompt { shown: bool },
    Progress { running: bool },
    Notice,
    Title { rule: usize },
    Resize,
    Wait,
}

const TEXTS: [&str; 6] = ["", "$ ", "Go on? ", "> ", "a line of text", "Name: "];
const SIGNS: [&str; 3] = ["", "thinking", "working on it"];
const WAITS: [Waits; 6] = [
    Waits::ForTerminal,
    Waits::ForTerminalToo,
    Waits::ForTerminalOrTimer,
    Waits::ForInnerTerminal,
    Waits::Otherwise,
    Waits::Hidden,
];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..12u64, any::<u16>(), 0..6usize, 0..3usize, 0..5usize)
            .prop_map(|(frame, flags, text, sign, rule)| Step::Screen { frame, flags, text, sign, rule }),
        4 => (any::<bool>(), 1..3i32, 0..6usize, prop::option::of(0..6usize))
            .prop_map(|(canonical, foreground, waits, child)| Step::Probe { canonical, foreground, waits, child }),
        3 => any::<bool>().prop_map(|enter| Step::Input { enter }),
        1 => any::<bool>().prop_map(|shown| Step::Prompt { shown }),
        1 => any::<bool>().prop_map(|running| Step::Progress { running }),
        1 => Just(Step::Notice),
        1 => (0..5usize).prop_map(|rule| Step::Title { rule }),
        1 => Just(Step::Resize),
        3 => Just(Step::Wait),
    ]
}

fn matched(rule: usize) -> Option<Matched> {
    let activity = match rule {
        0 | 1 => return None,
        2 => Activity::Working,
        3 => Activity::Waiting(Why::Permission),
        _ => Activity::Waiting(Why::Prompt),
    };
    Some(Matched { rule: format!("rule {rule}"), activity, detail: None, is_general: rule == 2 })
}

fn process(pid: i32, group: i32, waits: usize) -> ProbedProcess {
    let name = if pid == 1 { "sh" } else { "program" };
    ProbedProcess { pid, parent: pid - 1, group, name: name.to_owned(), ended: false, waits: WAITS[waits] }
}

fn play(detector: &mut Detector, step: &Step, moment: Moment) {
    match step {
        Step::Screen { frame, flags, text, sign, rule } => {
            let flag = |bit: u16| flags & (1 << bit) != 0;
            let why = if flag(6) { Why::Permission } else { Why::Question };
            let menu = flag(5).then(|| MenuSample { why, question: None, labels: vec!["Yes".to_owned()] });
            let sample = ScreenSample {
                digest: *frame,
                changed: flag(0) || flag(7),
                rules: if flag(1) { RulesResult::Ran(matched(*rule)) } else { RulesResult::NotRun },
                full_screen: flag(2),
                editor_open: flag(3),
                at_cursor: TEXTS[*text].to_owned(),
                blank: false,
                cursor_row: u16::from(flag(4)),
                cursor_visible: flag(8),
                above_cursor: TEXTS[(*text + 1) % TEXTS.len()].to_owned(),
                menu,
                field: [None, Some(Field::InputBox), Some(Field::Question)][usize::from(flags >> 9) % 3],
                sign_texts: BTreeSet::from([SIGNS[*sign].to_owned()]),
                tickers: if flag(10) { tickers(&[format!("{} {frame}", SIGNS[*sign])]) } else { Vec::new() },
            };
            detector.on_screen(sample, moment);
        }
        Step::Probe { canonical, foreground, waits, child } => {
            let mut processes = vec![process(1, 1, *waits)];
            processes.extend(child.map(|waits| process(2, *foreground, waits)));
            let probe =
                Probe { canonical: *canonical, echo: *canonical, foreground: Some(*foreground), processes };
            detector.on_probe(&probe, moment);
        }
        Step::Input { enter } => detector.on_input(*enter, moment),
        Step::Prompt { shown } => detector.on_shell_prompt(*shown, moment),
        Step::Progress { running } => detector.on_progress(*running, moment),
        Step::Notice => detector.on_notice(None, moment),
        Step::Title { rule } => detector.on_title(matched(*rule), moment),
        Step::Resize => detector.on_resize(7, moment),
        Step::Wait => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn no_deadline_stays_in_the_past(
        needs_input_after in prop_oneof![Just(300u64), Just(5_000)],
        steps in prop::collection::vec((step(), prop_oneof![4 => 1..400u64, 1 => 400..9_000u64]), 1..60),
    ) {
        let timing = Timing { needs_input_after: Duration::from_millis(needs_input_after), ..Timing::default() };
        let mut detector = Detector::new(timing, Duration::ZERO);
        let mut ms = 0;
        for (step, pause) in &steps {
            ms += pause;
            let moment = Moment { at: Duration::from_millis(ms), offset: ms };
            play(&mut detector, step, moment);
            detector.tick(moment.at);
            let deadline = detector.deadline();
            prop_assert!(
                deadline.is_none_or(|due| due > moment.at),
                "after {step:?} at {ms} ms, {deadline:?} is still due: {detector:#?}"
            );
        }
    }
}
