//! The user contradicts a state, and runs know what earlier runs learned.

use std::time::Duration;

use agency_core::agent_state::{AgentState, Timing};
use agency_core::evidence::{
    Activity, Belief, CannotContradict, Correction, Detector, EvidenceSource, Hook, Matched, Moment,
    ProgramMemory, RulesResult, ScreenSample, UserWords, Why,
};

struct Run {
    detector: Detector,
    digest: u64,
}

impl Run {
    fn new() -> Run {
        Run { detector: Detector::new(Timing::default(), Duration::ZERO), digest: 0 }
    }

    fn draw(&mut self, ms: u64, change: impl FnOnce(&mut ScreenSample)) {
        self.digest += 1;
        let mut sample = ScreenSample {
            digest: self.digest,
            changed: true,
            full_screen: true,
            cursor_visible: true,
            rules: RulesResult::Ran(None),
            ..ScreenSample::default()
        };
        change(&mut sample);
        self.detector.on_screen(sample, at(ms));
    }

    fn hook(&mut self, ms: u64, json: &str) {
        let hook: Hook = serde_json::from_str(json).expect("a hook");
        self.detector.on_hook(&hook, at(ms));
    }

    /// Does the same as the daemon with the user's word.
    fn contradict(&mut self, ms: u64, wrong: Belief) -> Result<Vec<Correction>, CannotContradict> {
        self.detector.tick(at(ms).at);
        let corrections = self.detector.corrections_for(wrong)?;
        let mut memory = self.detector.memory().clone();
        corrections.iter().for_each(|correction| memory.correct(correction.clone()));
        self.detector.on_memory(memory, Some(wrong), at(ms));
        Ok(corrections)
    }

    #[track_caller]
    fn check(&mut self, ms: u64, expected: &str) {
        self.detector.tick(at(ms).at);
        let state = match self.detector.state() {
            AgentState::NeedsInput { why, .. } | AgentState::Stale { why, .. } => format!("waits for {why}"),
            AgentState::Running => "works".to_owned(),
            other => format!("{other:?}"),
        };
        assert_eq!(format!("{state} ({})", self.detector.standing().evidence.source), expected);
    }
}

fn at(ms: u64) -> Moment {
    Moment { at: Duration::from_millis(ms), offset: ms }
}

fn rule(name: &str, activity: Activity, detail: Option<&str>) -> impl Fn(&mut ScreenSample) {
    let (rule, detail) = (name.to_owned(), detail.map(str::to_owned));
    let matched = Matched { rule, activity, detail, is_general: false };
    move |sample| sample.rules = RulesResult::Ran(Some(matched.clone()))
}

const ASKS: Activity = Activity::Waiting(Why::Question);

#[test]
fn a_corrected_rule_no_longer_decides_in_this_and_later_runs_and_decides_again_once_forgotten() {
    let waits = rule("done", Activity::Waiting(Why::Finished), None);
    let mut run = Run::new();
    run.draw(100, &waits);
    run.check(1_000, "waits for finished (screen)");
    let made = run.contradict(2_000, Belief::Waiting).expect("a correction");
    assert_eq!(
        made.iter().map(|made| (made.source, made.rule.as_str())).collect::<Vec<_>>(),
        [(EvidenceSource::Screen, "done")]
    );
    run.check(2_000, "works (user)");
    run.check(60_000, "works (user)");
    run.draw(61_000, &waits);
    run.check(61_500, "works (silence)");

    let memory = run.detector.memory().clone();
    let mut next = Run::new();
    next.detector.on_memory(memory, None, at(10));
    next.draw(100, &waits);
    next.check(1_000, "works (silence)");
    next.draw(2_000, rule("another", Activity::Waiting(Why::Finished), None));
    next.check(3_000, "waits for finished (screen)");
    next.draw(4_000, &waits);
    next.check(4_900, "works (silence)");
    next.detector.on_memory(ProgramMemory::default(), None, at(5_000));
    next.check(5_000, "waits for finished (screen)");
}

#[test]
fn the_users_word_holds_until_there_is_other_evidence() {
    let mut run = Run::new();
    run.draw(100, rule("busy", Activity::Working, None));
    run.check(1_000, "works (screen)");
    run.contradict(2_000, Belief::Working).expect("a correction");
    run.check(2_000, "waits for unknown (user)");
    run.draw(3_000, rule("busy", Activity::Working, None));
    run.check(3_500, "waits for unknown (user)");
    run.detector.on_progress(true, at(4_000));
    run.check(4_000, "works (progress)");
}

#[test]
fn a_correction_of_one_dialog_does_not_hide_another_one() {
    let mut run = Run::new();
    run.draw(100, rule("a menu by its shape", ASKS, Some("Which of 3 colours?")));
    run.check(1_000, "waits for question (screen)");
    run.contradict(2_000, Belief::Waiting).expect("a correction");
    run.draw(3_000, rule("a menu by its shape", ASKS, Some("Which of 4 colours?")));
    run.check(3_500, "works (silence)");
    run.draw(4_000, rule("a menu by its shape", ASKS, Some("Delete everything?")));
    run.check(4_500, "waits for question (screen)");
}

#[test]
fn a_program_that_is_silent_at_work_works_until_something_says_otherwise() {
    let mut run = Run::new();
    run.draw(100, |sample| sample.full_screen = false);
    run.check(20_000, "waits for unknown (silence)");
    run.contradict(21_000, Belief::Waiting).expect("a correction");
    run.check(21_000, "works (user)");
    run.draw(22_000, |sample| sample.full_screen = false);
    run.check(90_000, "works (silence)");
    run.detector.on_notice(None, at(91_000));
    run.check(91_000, "waits for unknown (notice)");
}

#[test]
fn a_request_of_the_agent_itself_cannot_be_contradicted_and_no_correction_hides_it() {
    let permission = r#"{"event":"PermissionRequest","tool":"Bash"}"#;
    let mut run = Run::new();
    run.hook(100, permission);
    run.check(1_000, "waits for permission (hook)");
    let hook = EvidenceSource::Hook;
    assert_eq!(run.contradict(2_000, Belief::Waiting), Err(CannotContradict::OwnRequest(hook)));
    assert_eq!(run.contradict(2_000, Belief::Working), Err(CannotContradict::NotBelieved));

    let rule = run.detector.standing().evidence.rule;
    let mut memory = ProgramMemory::default();
    for question in [None, Some(0), Some(0xcbf2_9ce4_8422_2325)] {
        let correction = Correction {
            source: hook,
            rule: rule.clone(),
            wrong: Belief::Waiting,
            question,
            time: String::new(),
        };
        memory.correct(correction);
    }
    let mut next = Run::new();
    next.detector.on_memory(memory, Some(Belief::Waiting), at(10));
    next.hook(100, permission);
    next.check(1_000, "waits for permission (hook)");
}

fn shows(text: &'static str) -> impl Fn(&mut ScreenSample) {
    move |sample| {
        sample.at_cursor = "> ".to_owned();
        sample.sign_texts = [text.to_owned()].into();
    }
}

/// A turn from the Enter on, and the rest after it.
fn turn(run: &mut Run, begin: u64, sign: &'static str) {
    run.draw(begin, |sample| sample.at_cursor = "> go".to_owned());
    run.detector.on_input(true, at(begin + 100));
    for ms in (begin + 200..begin + 5_000).step_by(100) {
        run.draw(ms, shows(sign));
    }
    run.draw(begin + 5_000, |sample| sample.at_cursor = "> ".to_owned());
    run.detector.tick(at(begin + 15_000).at);
}

#[test]
fn a_run_knows_the_signs_of_earlier_runs_and_forgets_one_that_is_wrong() {
    let mut first = Run::new();
    turn(&mut first, 1_000, "pondering");
    let learned = first.detector.signs_to_remember(&UserWords::default());
    assert_eq!(learned, ["pondering".to_owned()].into());
    assert_eq!(first.detector.signs_of_work().collect::<Vec<_>>(), [("pondering", false)]);

    let memory = ProgramMemory { signs: learned, ..ProgramMemory::empty("program") };
    let mut next = Run::new();
    next.detector.on_memory(memory.clone(), None, at(10));
    assert_eq!(next.detector.signs_of_work().collect::<Vec<_>>(), [("pondering", true)]);
    next.draw(1_000, |sample| sample.at_cursor = "> go".to_owned());
    next.detector.on_input(true, at(1_100));
    next.draw(1_200, shows("pondering"));
    next.check(1_300, "works (sign)");

    // The same text stays while the program waits.
    let mut wrong = Run::new();
    wrong.detector.on_memory(memory, None, at(10));
    turn(&mut wrong, 1_000, "thinking");
    wrong.draw(17_000, |sample| sample.at_cursor = "> go".to_owned());
    wrong.detector.on_input(true, at(17_100));
    (17_200..22_000).step_by(100).for_each(|ms| wrong.draw(ms, shows("pondering")));
    wrong.detector.on_notice(None, at(25_000));
    wrong.detector.tick(at(60_000).at);
    assert_eq!(
        wrong.detector.wrong_signs(),
        ["pondering".to_owned()].into(),
        "{:?}",
        wrong.detector.standing()
    );
}

#[test]
fn a_sign_with_a_word_of_the_user_or_a_path_is_not_remembered() {
    for (typed, sent, sign, is_remembered) in [
        ("", "", "esc to interrupt", true),
        ("", "", "a spinner of dots", true),
        ("fix login", "", "fixing the login", false),
        ("", "Interrupt nothing", "esc to interrupt", false),
        ("", "", "reading src/secret.rs", false),
        ("", "", "correcthorsebatterystaple", false),
        ("", "", "go on", false),
    ] {
        let mut run = Run::new();
        run.detector.on_typed(typed.as_bytes());
        turn(&mut run, 1_000, sign);
        assert_eq!(run.detector.signs_of_work().count(), 1, "{sign}");
        let kept = run.detector.signs_to_remember(&UserWords::of(sent));
        assert_eq!(kept.contains(sign), is_remembered, "{sign}");
    }
}

#[test]
fn a_checkpoint_keeps_the_memory_and_the_users_word() {
    let mut run = Run::new();
    run.draw(100, rule("done", Activity::Waiting(Why::Finished), None));
    run.check(1_000, "waits for finished (screen)");
    run.contradict(2_000, Belief::Waiting).expect("a correction");
    let json = serde_json::to_string(&run.detector).expect("JSON");
    let mut restored: Detector = serde_json::from_str(&json).expect("a detector");
    restored.tick(at(9_000).at);
    assert_eq!(restored.standing().evidence.source, EvidenceSource::User);
    assert_eq!(restored.memory(), run.detector.memory());
}
