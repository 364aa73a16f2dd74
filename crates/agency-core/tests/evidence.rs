//! Laws of the detector for any evidence at any time: it never spins, a checkpoint loses nothing, and there is one authority
//! at a time.

use std::time::Duration;

use agency_core::agent_state::{AgentState, Timing};
use agency_core::evidence::{
    Activity, Change, Detector, EvidenceSource, Hook, Matched, MenuSample, Moment, Probe, ProbedProcess,
    RulesResult, ScreenSample, Waits, Why, tickers,
};
use agency_core::exit::ExitCode;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum EvidenceStep {
    Status(&'static str),
    Hook(&'static str, Option<&'static str>),
    Title(Option<Matched>),
    Shell(bool),
    Progress(bool),
    Notice(Option<&'static str>),
    Input(bool),
    Probe(Probe),
    ScreenSample(ScreenSample),
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
        is_general: rule == 0,
    }))
}

fn process() -> impl Strategy<Value = ProbedProcess> {
    let waits = prop::sample::select(vec![
        Waits::ForTerminal,
        Waits::ForTerminalToo,
        Waits::ForTerminalOrTimer,
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

fn sample() -> impl Strategy<Value = ScreenSample> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let at_cursor = prop::sample::select(vec!["", "$ ", "Go on? ", "> ", "\u{1b}odd"]);
    let cursor = (0..3u16, any::<bool>());
    let menu = prop::option::of((any::<bool>(), 0..3u8));
    (0..8u64, flags, matched(), at_cursor, cursor, menu).prop_map(|sampled| {
        let (digest, flags, matched, at_cursor, (cursor_row, cursor_visible), menu) = sampled;
        let menu = menu.map(|(permits, number)| MenuSample {
            why: if permits { Why::Permission } else { Why::Question },
            question: Some(format!("question {number}")),
            labels: vec!["Yes".to_owned(), format!("No {number}")],
        });
        let (changed, full_screen, editor_open, blank) = flags;
        ScreenSample {
            digest,
            changed,
            rules: RulesResult::Ran(matched),
            full_screen,
            editor_open,
            at_cursor: at_cursor.to_owned(),
            blank,
            cursor_row,
            cursor_visible,
            above_cursor: String::new(),
            menu,
            field: None,
            sign_texts: [format!("text {}", digest % 3)].into(),
            tickers: tickers(&[format!("Working {digest}")]),
        }
    })
}

fn step() -> impl Strategy<Value = EvidenceStep> {
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
        2 => prop::sample::select(statuses).prop_map(EvidenceStep::Status),
        2 => (prop::sample::select(events), kinds).prop_map(|(event, kind)| EvidenceStep::Hook(event, kind)),
        2 => matched().prop_map(EvidenceStep::Title),
        1 => any::<bool>().prop_map(EvidenceStep::Shell),
        1 => any::<bool>().prop_map(EvidenceStep::Progress),
        1 => prop::option::of(prop::sample::select(vec!["come", ""])).prop_map(EvidenceStep::Notice),
        3 => any::<bool>().prop_map(EvidenceStep::Input),
        4 => probe().prop_map(EvidenceStep::Probe),
        8 => sample().prop_map(EvidenceStep::ScreenSample),
        1 => (0..8u64).prop_map(EvidenceStep::Resize),
        1 => (0..9_000u64, 0..90_000u64).prop_map(|(needs, stale)| EvidenceStep::Timing(needs, stale)),
        2 => Just(EvidenceStep::Tick),
    ]
}

fn play(detector: &mut Detector, step: &EvidenceStep, moment: Moment) {
    match step.clone() {
        EvidenceStep::Status(text) => detector.on_status(text, moment),
        EvidenceStep::Hook(event, kind) => {
            let (event, kind) = (event.to_owned(), kind.map(str::to_owned));
            detector.on_hook(&Hook { event, kind, ..Hook::default() }, moment);
        }
        EvidenceStep::Title(matched) => detector.on_title(matched, moment),
        EvidenceStep::Shell(shown) => detector.on_shell_prompt(shown, moment),
        EvidenceStep::Progress(running) => detector.on_progress(running, moment),
        EvidenceStep::Notice(words) => detector.on_notice(words, moment),
        EvidenceStep::Input(enter) => detector.on_input(enter, moment),
        EvidenceStep::Probe(probe) => detector.on_probe(&probe, moment),
        EvidenceStep::ScreenSample(sample) => detector.on_screen(sample, moment),
        EvidenceStep::Resize(digest) => detector.on_resize(digest, moment),
        EvidenceStep::Timing(needs, stale) => detector.set_timing(Timing {
            needs_input_after: Duration::from_millis(needs),
            stale_after: Duration::from_millis(stale),
        }),
        EvidenceStep::Tick => {}
        EvidenceStep::Exit(code) => detector.on_exit(ExitCode::Code(code), moment),
    }
    detector.tick(moment.at);
}

/// The most trusted claim decides, and the state follows it.
fn check_authority(detector: &Detector) -> Result<(), TestCaseError> {
    let standing = detector.standing();
    if matches!(standing.state, AgentState::Exited { .. }) {
        return Ok(());
    }
    let Some((source, claim)) = detector.claims().next() else {
        prop_assert_eq!(standing.evidence.source, EvidenceSource::Silence);
        return Ok(());
    };
    prop_assert!(detector.claims().skip(1).all(|(below, _)| below > source));
    match claim.activity {
        Activity::Working => prop_assert_eq!(standing.state, AgentState::Running),
        Activity::Waiting(_) => prop_assert!(standing.state.waiting().is_some(), "{standing:?}"),
    }
    prop_assert_eq!(standing.evidence.source, source, "{:?}", detector);
    Ok(())
}

/// Each change starts from the state of the change before it, and time does not go back.
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
    fn one_claim_decides_and_no_deadline_repeats(
        steps in prop::collection::vec((step(), prop_oneof![0..50u64, 0..9_000u64]), 1..80),
        exit in prop::option::of(0..80usize),
    ) {
        let mut detector = Detector::new(Timing::default(), BEGAN);
        let (mut now, mut last) = (BEGAN, (detector.state(), BEGAN));
        for (number, (step, wait)) in steps.into_iter().enumerate() {
            now += Duration::from_millis(wait);
            let step = if exit == Some(number) { EvidenceStep::Exit(3) } else { step };
            play(&mut detector, &step, Moment { at: now, offset: number as u64 });
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
            let moment = Moment { at: now, offset: number as u64 };
            play(&mut whole, &step, moment);
            play(&mut again, &step, moment);
            prop_assert_eq!(whole.take_changes(), again.take_changes());
            if number == at {
                let text = serde_json::to_string(&again).expect("it can be written");
                again = serde_json::from_str(&text).expect("it can be read");
            }
            prop_assert_eq!(&whole, &again);
        }
    }

    /// A change begins when it was due, so many ticks and a single late one give the same changes.
    #[test]
    fn more_ticks_change_nothing(
        steps in prop::collection::vec((step(), 0..9_000u64), 1..40),
        pace in 1..700u64,
    ) {
        let steps: Vec<_> = steps.into_iter().filter(|(step, _)| !matches!(step, EvidenceStep::Timing(..))).collect();
        let (mut often, mut once) = (Detector::new(Timing::default(), BEGAN), Detector::new(Timing::default(), BEGAN));
        let mut now = BEGAN;
        for (number, (step, wait)) in steps.into_iter().enumerate() {
            let next = now + Duration::from_millis(wait);
            while now + Duration::from_millis(pace) < next {
                now += Duration::from_millis(pace);
                often.tick(now);
            }
            now = next;
            let moment = Moment { at: now, offset: number as u64 };
            play(&mut often, &step, moment);
            play(&mut once, &step, moment);
            prop_assert_eq!(often.take_changes(), once.take_changes());
        }
    }
}
