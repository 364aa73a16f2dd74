//! The detector, whatever it is told and whenever: it never spins, forgets nothing over a checkpoint, and has one
//! authority at a time.

use std::time::Duration;

use agency_core::agent_state::{AgentState, Timing};
use agency_core::evidence::{
    Activity, Change, Consulted, Detector, Hook, Look, Mark, Matched, Probe, ProbedProcess, Rung, Waits, Why,
};
use agency_core::exit::ExitCode;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Status(&'static str),
    Hook(&'static str, Option<&'static str>),
    Title(Option<Matched>),
    Shell(bool),
    Progress(bool),
    Notice(Option<&'static str>),
    Input(bool),
    Probe(Probe),
    Look(Look),
    Resize(u64),
    Timing(u64, u64),
    Tick,
    Exit(i32),
}

fn activity() -> impl Strategy<Value = Activity> {
    prop_oneof![
        Just(Activity::Working),
        prop::sample::select(vec![Why::Prompt, Why::Permission, Why::Question, Why::Error, Why::Unknown])
            .prop_map(Activity::Waiting),
    ]
}

fn matched() -> impl Strategy<Value = Option<Matched>> {
    let one = (activity(), 0..3u8, prop::option::of(0..2u8));
    prop::option::of(one.prop_map(|(activity, rule, detail)| Matched {
        rule: format!("rule-{rule}"),
        activity,
        detail: detail.map(|number| format!("detail {number}")),
    }))
}

fn process() -> impl Strategy<Value = ProbedProcess> {
    let waits = prop::sample::select(vec![
        Waits::ForTerminal,
        Waits::ForTerminalToo,
        Waits::Otherwise,
        Waits::Hidden,
    ]);
    let name = prop::sample::select(vec!["bash", "sh", "claude", "make", "cat"]);
    (1..5i32, 0..5i32, 1..4i32, name, prop::bool::weighted(0.1), waits).prop_map(
        |(pid, parent, group, name, ended, waits)| ProbedProcess {
            pid,
            parent,
            group,
            name: name.to_owned(),
            ended,
            waits,
        },
    )
}

fn probe() -> impl Strategy<Value = Probe> {
    let processes = prop::collection::vec(process(), 0..4);
    (any::<bool>(), any::<bool>(), prop::option::of(1..4i32), processes)
        .prop_map(|(canonical, echo, foreground, processes)| Probe { canonical, echo, foreground, processes })
}

fn look() -> impl Strategy<Value = Look> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let at_cursor = prop::sample::select(vec!["", "$ ", "Go on? ", "> ", "\u{1b}odd"]);
    (0..8u64, flags, matched(), at_cursor).prop_map(|(digest, flags, matched, at_cursor)| {
        let (changed, full_screen, editor_open, blank) = flags;
        Look {
            digest,
            changed,
            rules: Consulted::Yes(matched),
            full_screen,
            editor_open,
            at_cursor: at_cursor.to_owned(),
            blank,
        }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let statuses = vec![
        "state=working",
        "state=idle",
        "state=blocked:kind=permission:msg=QQ==",
        "state=blocked",
        "state=done",
        "state=error:msg=%%%",
        "none",
        "nonsense",
    ];
    let events = vec!["PermissionRequest", "Stop", "PreToolUse", "SessionStart", "Notification", "Else"];
    let kinds = prop::option::of(prop::sample::select(vec!["idle_prompt", "permission_prompt"]));
    prop_oneof![
        2 => prop::sample::select(statuses).prop_map(Step::Status),
        2 => (prop::sample::select(events), kinds).prop_map(|(event, kind)| Step::Hook(event, kind)),
        2 => matched().prop_map(Step::Title),
        1 => any::<bool>().prop_map(Step::Shell),
        1 => any::<bool>().prop_map(Step::Progress),
        1 => prop::option::of(prop::sample::select(vec!["come", ""])).prop_map(Step::Notice),
        3 => any::<bool>().prop_map(Step::Input),
        4 => probe().prop_map(Step::Probe),
        8 => look().prop_map(Step::Look),
        1 => (0..8u64).prop_map(Step::Resize),
        1 => (0..9_000u64, 0..90_000u64).prop_map(|(needs, stale)| Step::Timing(needs, stale)),
        2 => Just(Step::Tick),
    ]
}

fn play(detector: &mut Detector, step: &Step, mark: Mark) {
    match step.clone() {
        Step::Status(text) => detector.on_status(text, mark),
        Step::Hook(event, kind) => {
            let (event, kind) = (event.to_owned(), kind.map(str::to_owned));
            detector.on_hook(&Hook { event, kind, ..Hook::default() }, mark);
        }
        Step::Title(matched) => detector.on_title(matched, mark),
        Step::Shell(shown) => detector.on_shell_prompt(shown, mark),
        Step::Progress(running) => detector.on_progress(running, mark),
        Step::Notice(words) => detector.on_notice(words, mark),
        Step::Input(enter) => detector.on_input(enter, mark),
        Step::Probe(probe) => detector.on_probe(&probe, mark),
        Step::Look(look) => detector.on_look(look, mark),
        Step::Resize(digest) => detector.on_resize(digest, mark),
        Step::Timing(needs, stale) => detector.set_timing(Timing {
            needs_input_after: Duration::from_millis(needs),
            stale_after: Duration::from_millis(stale),
        }),
        Step::Tick => {}
        Step::Exit(code) => detector.on_exit(ExitCode::Code(code), mark),
    }
    detector.tick(mark.at);
}

/// Who decides is the most trusted of those who claim something, and the state is what it says.
fn check_authority(detector: &Detector) -> Result<(), TestCaseError> {
    let standing = detector.standing();
    if matches!(standing.state, AgentState::Exited { .. }) {
        return Ok(());
    }
    let Some((rung, claim)) = detector.claims().next() else {
        prop_assert_eq!(standing.evidence.source, Rung::Silence);
        return Ok(());
    };
    prop_assert!(detector.claims().skip(1).all(|(below, _)| below > rung));
    match claim.activity {
        Activity::Working => prop_assert_eq!(standing.state, AgentState::Running),
        Activity::Waiting(_) => prop_assert!(standing.state.waiting().is_some(), "{standing:?}"),
    }
    prop_assert_eq!(standing.evidence.source, rung, "{:?}", detector);
    Ok(())
}

/// Each change goes on from the one before it, and time does not go back.
fn check_changes(changes: &[Change], last: &mut (AgentState, Duration)) -> Result<(), TestCaseError> {
    for change in changes {
        prop_assert_eq!(change.old, last.0);
        prop_assert!(change.old != change.new.state);
        prop_assert!(change.new.since.at >= last.1, "{change:?} after {last:?}");
        *last = (change.new.state, change.new.since.at);
    }
    Ok(())
}

const BEGAN: Duration = Duration::from_secs(100);

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_told_one_decides_and_nothing_spins(
        steps in prop::collection::vec((step(), prop_oneof![0..50u64, 0..9_000u64]), 1..80),
        exit in prop::option::of(0..80usize),
    ) {
        let mut detector = Detector::new(Timing::default(), BEGAN);
        let (mut now, mut last) = (BEGAN, (detector.state(), BEGAN));
        for (number, (step, wait)) in steps.into_iter().enumerate() {
            now += Duration::from_millis(wait);
            let step = if exit == Some(number) { Step::Exit(3) } else { step };
            play(&mut detector, &step, Mark { at: now, offset: number as u64 });
            let due = detector.deadline();
            prop_assert!(due.is_none_or(|due| due > now), "due {due:?} at {now:?} after {step:?}: {detector:?}");
            check_authority(&detector)?;
            check_changes(&detector.take_changes(), &mut last)?;
            prop_assert_eq!(last.0, detector.state());
            detector.outlook(now);
        }
    }

    #[test]
    fn a_checkpoint_anywhere_changes_nothing_later(
        steps in prop::collection::vec((step(), prop_oneof![0..50u64, 0..9_000u64]), 1..60),
        at in 0..60usize,
    ) {
        let mut whole = Detector::new(Timing::default(), BEGAN);
        let mut again = whole.clone();
        let mut now = BEGAN;
        for (number, (step, wait)) in steps.into_iter().enumerate() {
            now += Duration::from_millis(wait);
            let mark = Mark { at: now, offset: number as u64 };
            play(&mut whole, &step, mark);
            play(&mut again, &step, mark);
            prop_assert_eq!(whole.take_changes(), again.take_changes());
            if number == at {
                let text = serde_json::to_string(&again).expect("it can be written");
                again = serde_json::from_str(&text).expect("it can be read");
            }
            prop_assert_eq!(&whole, &again);
        }
    }

    /// Ticks are dated by when they were due: looking often and looking once come to the same.
    #[test]
    fn looking_often_changes_nothing(
        steps in prop::collection::vec((step(), 0..9_000u64), 1..40),
        pace in 1..700u64,
    ) {
        let steps: Vec<_> = steps.into_iter().filter(|(step, _)| !matches!(step, Step::Timing(..))).collect();
        let (mut often, mut once) = (Detector::new(Timing::default(), BEGAN), Detector::new(Timing::default(), BEGAN));
        let mut now = BEGAN;
        for (number, (step, wait)) in steps.into_iter().enumerate() {
            let next = now + Duration::from_millis(wait);
            while now + Duration::from_millis(pace) < next {
                now += Duration::from_millis(pace);
                often.tick(now);
            }
            now = next;
            let mark = Mark { at: now, offset: number as u64 };
            play(&mut often, &step, mark);
            play(&mut once, &step, mark);
            prop_assert_eq!(often.take_changes(), once.take_changes());
        }
    }
}
