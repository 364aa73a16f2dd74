//! States of programs that have no rules of their own: synthetic evidence in, changes of state out.

use std::time::Duration;

use agency_core::agent_state::{AgentState, Timing};
use agency_core::evidence::{
    Activity, Detector, Field, Matched, MenuSample, Moment, Probe, ProbedProcess, RulesResult, ScreenSample,
    Waits, Why, tickers,
};

struct Run {
    detector: Detector,
    now: Duration,
    digest: u64,
}

impl Run {
    fn new() -> Run {
        Run { detector: Detector::new(Timing::default(), Duration::ZERO), now: Duration::ZERO, digest: 0 }
    }

    fn moment(&mut self, ms: u64) -> Moment {
        self.now = Duration::from_millis(ms);
        Moment { at: self.now, offset: ms }
    }

    /// A new picture with this text before the cursor.
    fn draw(&mut self, ms: u64, at_cursor: &str, change: impl FnOnce(&mut ScreenSample)) {
        self.digest += 1;
        let mut sample = ScreenSample {
            digest: self.digest,
            changed: true,
            rules: RulesResult::Ran(None),
            at_cursor: at_cursor.to_owned(),
            cursor_visible: true,
            ..ScreenSample::default()
        };
        change(&mut sample);
        let moment = self.moment(ms);
        self.detector.on_screen(sample, moment);
    }

    fn spin(&mut self, from: u64, to: u64, change: impl Fn(&mut ScreenSample)) {
        for ms in (from..to).step_by(100) {
            self.draw(ms, "", &change);
        }
    }

    fn probe(&mut self, ms: u64, canonical: bool, name: &str, waits: Waits) {
        let process =
            ProbedProcess { pid: 1, parent: 0, group: 1, name: name.to_owned(), ended: false, waits };
        let probe = Probe { canonical, echo: canonical, foreground: Some(1), processes: vec![process] };
        let moment = self.moment(ms);
        self.detector.on_probe(&probe, moment);
    }

    fn enter(&mut self, ms: u64) {
        let moment = self.moment(ms);
        self.detector.on_input(true, moment);
    }

    fn key(&mut self, ms: u64) {
        let moment = self.moment(ms);
        self.detector.on_input(false, moment);
    }

    fn tick(&mut self, ms: u64) {
        let moment = self.moment(ms);
        self.detector.tick(moment.at);
    }

    /// The state in one word, and since when it waits.
    fn state(&mut self) -> String {
        match self.detector.state() {
            AgentState::NeedsInput { why, since } => format!("waits for {why} since {}", since.as_millis()),
            AgentState::Stale { why, since } => format!("stale for {why} since {}", since.as_millis()),
            AgentState::Running => "works".to_owned(),
            other => format!("{other:?}"),
        }
    }

    #[track_caller]
    fn check(&mut self, expected: &str) {
        let state = self.state();
        assert_eq!(state, expected, "at {:?}: {:?}", self.now, self.detector.standing().evidence);
    }
}

fn full(sample: &mut ScreenSample) {
    sample.full_screen = true;
}

fn menu(question: &str, why: Why) -> impl Fn(&mut ScreenSample) {
    let question = question.to_owned();
    move |sample| {
        sample.full_screen = true;
        let labels = vec!["Yes".to_owned(), "No".to_owned()];
        sample.menu = Some(MenuSample { why, question: Some(question.clone()), labels });
    }
}

#[test]
fn an_answered_question_is_no_reason_to_wait_any_more() {
    let mut run = Run::new();
    run.draw(100, "Password: ", |_| {});
    run.probe(150, true, "login", Waits::ForTerminal);
    run.check("waits for question since 150");
    run.draw(1_000, "", |_| {});
    run.enter(1_100);
    run.probe(1_200, false, "login", Waits::Otherwise);
    run.check("works");
}

#[test]
fn the_next_question_of_a_line_program_is_a_new_wait() {
    let mut run = Run::new();
    run.draw(100, "Name? ", |_| {});
    run.probe(150, true, "setup", Waits::ForTerminal);
    run.check("waits for question since 150");
    run.key(2_000);
    run.draw(2_050, "Name? b", |_| {});
    run.tick(2_400);
    run.check("waits for question since 150");
    run.enter(3_000);
    run.draw(3_050, "Name? ", |_| {});
    run.tick(3_500);
    run.check("waits for question since 3200");
    assert!(run.detector.take_changes().last().is_some_and(|change| change.is_new_wait()));
}

#[test]
fn a_permission_after_a_prompt_is_a_new_wait() {
    let mut run = Run::new();
    run.draw(100, "> ", full);
    run.detector.on_status("state=idle", Moment { at: run.now, offset: 1 });
    run.check("waits for prompt since 100");
    run.tick(70_000);
    run.check("stale for prompt since 100");
    let moment = run.moment(80_000);
    run.detector.on_status("state=blocked:kind=permission", moment);
    run.check("waits for permission since 80000");
}

#[test]
fn enter_that_leaves_its_row_begins_work_after_the_screen_came_to_rest() {
    let mut run = Run::new();
    run.spin(0, 3_000, full);
    run.draw(3_000, "> ", full);
    run.tick(9_000);
    run.check("waits for unknown since 5300");
    run.key(10_000);
    run.draw(10_050, "> go", full);
    run.enter(11_000);
    run.draw(11_050, "> ", full);
    run.check("works");
    run.tick(17_000);
    assert!(run.state().starts_with("waits for unknown"));
    run.enter(20_000);
    run.tick(20_300);
    assert!(run.state().starts_with("waits for unknown"), "an Enter that changes nothing is no work");
}

#[test]
fn an_open_editor_means_waiting_only_while_nothing_animates() {
    let open = |sample: &mut ScreenSample| sample.editor_open = true;
    let mut run = Run::new();
    run.draw(100, "> ", open);
    run.draw(1_000, "", |_| {});
    run.draw(2_000, "> ", open);
    run.check("waits for prompt since 2000");
    run.enter(3_000);
    run.spin(3_100, 6_000, open);
    run.check("works");
    run.tick(12_000);
    assert!(run.state().starts_with("waits for prompt"), "{}", run.state());
}

#[test]
fn a_menu_beside_a_spinner_is_found_and_a_list_that_typing_opens_is_not() {
    let mut run = Run::new();
    run.draw(100, "> go", full);
    run.enter(200);
    run.spin(300, 3_000, full);
    run.check("works");
    run.spin(3_000, 4_000, menu("Allow it?", Why::Permission));
    assert!(run.state().starts_with("waits for permission"), "{}", run.state());
    run.enter(5_000);
    run.spin(5_100, 7_000, full);
    run.check("works");
    run.key(20_000);
    run.draw(20_100, "> /", menu("commands", Why::Question));
    run.tick(20_400);
    assert!(!run.state().contains("question"), "{}", run.state());
}

#[test]
fn the_next_menu_is_a_new_wait() {
    let mut run = Run::new();
    run.spin(300, 3_000, full);
    run.draw(3_000, "", menu("Allow a?", Why::Permission));
    run.tick(3_300);
    run.check("waits for permission since 3150");
    run.key(6_000);
    run.draw(6_500, "", menu("Allow b?", Why::Permission));
    run.tick(7_000);
    run.check("waits for permission since 6500");
}

#[test]
fn a_help_text_before_the_first_enter_is_no_work() {
    let hint = |sample: &mut ScreenSample| {
        sample.full_screen = true;
        let activity = agency_core::evidence::Activity::Working;
        let rule = "generic-working".to_owned();
        sample.rules = RulesResult::Ran(Some(Matched { rule, activity, detail: None, is_general: true }));
    };
    let mut run = Run::new();
    run.draw(100, "> ", hint);
    run.tick(9_000);
    assert!(run.state().starts_with("waits"), "{}", run.state());
    run.enter(10_000);
    run.draw(10_100, "> x", hint);
    run.tick(20_000);
    assert!(run.state().starts_with("waits"), "the same text is still there: {}", run.state());
    run.draw(21_000, "> ", full);
    run.tick(22_000);
    run.draw(22_100, "> ", hint);
    run.tick(40_000);
    run.check("works");
}

#[test]
fn a_line_editor_that_reads_keys_only_at_its_prompt_shows_what_it_does() {
    let mut run = Run::new();
    run.draw(100, "db> ", |_| {});
    run.probe(120, false, "node", Waits::ForTerminalToo);
    run.tick(500);
    run.check("waits for prompt since 420");
    run.enter(1_000);
    run.draw(1_050, "", |_| {});
    run.probe(1_100, true, "node", Waits::ForTerminalToo);
    run.check("works");
    run.tick(30_000);
    run.check("works");
    run.draw(31_000, "db> ", |_| {});
    run.probe(31_020, false, "node", Waits::ForTerminalToo);
    run.check("waits for prompt since 31020");
}

#[test]
fn a_server_that_has_asked_nothing_works() {
    let mut run = Run::new();
    run.draw(100, "", |sample| sample.above_cursor = "listening on port 3000".to_owned());
    run.probe(120, true, "node", Waits::ForTerminalToo);
    run.tick(30_000);
    run.check("works");
    run.draw(31_000, "Name: ", |_| {});
    run.tick(31_400);
    run.check("waits for question since 31300");
}

#[test]
fn a_child_that_was_there_before_the_first_enter_is_no_work() {
    let mut run = Run::new();
    let process = |pid, parent, name: &str, waits| ProbedProcess {
        pid,
        parent,
        group: pid,
        name: name.to_owned(),
        ended: false,
        waits,
    };
    let agent = process(1, 0, "agent", Waits::ForTerminalToo);
    let hub = process(2, 1, "hub", Waits::Otherwise);
    let probe = Probe { canonical: false, echo: false, foreground: Some(1), processes: vec![agent, hub] };
    run.draw(100, "> ", full);
    let moment = run.moment(150);
    run.detector.on_probe(&probe, moment);
    run.check("works");
    run.tick(10_000);
    assert!(run.state().starts_with("waits"), "{}", run.state());
}

#[test]
fn marks_of_a_shell_count_at_once_only_where_a_shell_is_in_front() {
    let mut run = Run::new();
    run.draw(100, "", |_| {});
    run.probe(120, false, "agent", Waits::Otherwise);
    let moment = run.moment(1_000);
    run.detector.on_shell_prompt(true, moment);
    run.check("works");
    let moment = run.moment(1_100);
    run.detector.on_shell_prompt(false, moment);
    run.tick(2_000);
    run.check("works");
    let moment = run.moment(3_000);
    run.detector.on_shell_prompt(true, moment);
    run.tick(3_300);
    run.check("waits for prompt since 3250");
}

#[test]
fn a_programs_own_sign_of_work_is_learned_in_its_first_turn() {
    let shows = |texts: &'static [&'static str]| {
        move |sample: &mut ScreenSample| {
            sample.full_screen = true;
            sample.sign_texts = texts.iter().map(|text| (*text).to_owned()).collect();
        }
    };
    let mut run = Run::new();
    for begin in [1_000, 21_000] {
        run.draw(begin, "> go", shows(&["ready"]));
        run.enter(begin + 500);
        for ms in (begin + 600..begin + 5_000).step_by(100) {
            run.draw(ms, "", shows(&["pondering"]));
        }
        run.check("works");
        run.draw(begin + 5_000, ">", shows(&["ready"]));
        run.tick(begin + 5_700);
        match begin {
            1_000 => run.check("works"),
            _ => run.check("waits for finished since 26500"),
        }
        run.tick(begin + 15_000);
        run.key(begin + 15_000);
    }
    assert_eq!(run.detector.signs_of_work().collect::<Vec<_>>(), [("pondering", false)]);
}

#[test]
fn a_program_that_always_reads_keys_works_after_it_left_its_prompt() {
    let mut run = Run::new();
    run.draw(100, "Which? ", |_| {});
    run.probe(120, false, "node", Waits::ForTerminalToo);
    run.tick(1_000);
    run.check("waits for question since 420");
    run.enter(2_000);
    run.draw(2_050, "", |sample| sample.above_cursor = "Which? staging".to_owned());
    run.tick(30_000);
    run.check("works");
}

#[test]
fn a_cursor_that_the_program_draws_itself_blinks_and_is_no_work() {
    let mut run = Run::new();
    run.draw(100, "", full);
    for ms in (600..9_000).step_by(500) {
        run.digest = 0;
        run.draw(ms, "", full);
    }
    assert!(run.state().starts_with("waits"), "{}", run.state());
}

#[test]
fn a_question_that_comes_later_than_the_probe_is_the_reason() {
    let mut run = Run::new();
    run.probe(100, true, "sh", Waits::ForTerminal);
    run.check("waits for unknown since 100");
    run.draw(110, "Well? ", |_| {});
    run.tick(400);
    run.check("waits for question since 100");
    // From the first key on, the text before the cursor may be the user's.
    run.key(500);
    run.draw(510, "Well? y", |_| {});
    run.tick(900);
    run.check("waits for question since 100");
}

#[test]
fn what_the_user_types_is_no_question() {
    let mut run = Run::new();
    run.probe(100, true, "cat", Waits::ForTerminal);
    run.key(200);
    run.draw(210, "hello", |_| {});
    run.tick(900);
    run.check("waits for unknown since 100");
}

#[test]
fn a_program_that_reads_keys_and_shows_an_input_box_waits_before_silence_says_so() {
    let mut run = Run::new();
    let boxed = |sample: &mut ScreenSample| {
        (sample.full_screen, sample.field) = (true, Some(Field::InputBox));
    };
    run.draw(100, "", boxed);
    run.probe(200, false, "agent", Waits::ForTerminalToo);
    run.detector.tick(Duration::from_millis(1_200));
    assert_eq!(run.detector.state().waiting().map(|(_, why)| why), Some(Why::Prompt));
    run.enter(3_000);
    run.spin(3_100, 6_000, boxed);
    assert_eq!(run.detector.state(), AgentState::Running, "many agents keep their box open at work");
    run.detector.tick(Duration::from_millis(9_000));
    assert_eq!(run.detector.state().waiting().map(|(_, why)| why), Some(Why::Finished));
}

#[test]
fn an_open_question_of_a_program_that_hides_its_cursor_is_a_question() {
    let mut run = Run::new();
    run.probe(100, false, "node", Waits::ForTerminalToo);
    run.draw(200, "", |sample| {
        (sample.full_screen, sample.field) = (true, Some(Field::Question));
    });
    run.detector.tick(Duration::from_millis(1_200));
    assert_eq!(run.detector.state().waiting().map(|(_, why)| why), Some(Why::Question));
}

#[test]
fn a_program_that_reads_keys_behind_a_question_asks_it() {
    for (text, why) in [("Which host? ", Why::Question), ("(Pdb) ", Why::Prompt), (":", Why::Unknown)] {
        let mut run = Run::new();
        run.draw(100, text, |_| {});
        run.probe(200, false, "program", Waits::ForTerminal);
        assert_eq!(run.detector.state().waiting().map(|(_, why)| why), Some(why), "{text}");
    }
}

#[test]
fn a_turn_is_over_soon_after_the_row_that_ticked_is_gone() {
    let spinning = |ms: u64| {
        move |sample: &mut ScreenSample| {
            sample.full_screen = true;
            sample.tickers =
                tickers(&[format!("{} Cooking ({ms} ms)", ["|", "/", "-"][ms as usize / 100 % 3])]);
        }
    };
    let mut run = Run::new();
    (0..40).for_each(|frame| run.draw(frame * 100, "", spinning(frame * 100)));
    run.draw(4_000, "", full);
    run.tick(4_900);
    run.check("works");
    run.tick(5_400);
    assert!(run.detector.state().waiting().is_some(), "{:?}", run.detector.standing());
    // The same picture with a spinner that stands still is no end.
    let mut run = Run::new();
    (0..40).for_each(|frame| run.draw(frame * 100, "", spinning(frame * 100)));
    run.tick(5_500);
    run.check("works");
}

#[test]
fn a_full_screen_program_that_only_a_key_or_its_timer_can_wake_waits_when_it_rests() {
    let mut run = Run::new();
    run.draw(100, "", full);
    run.probe(150, false, "editor", Waits::ForTerminalOrTimer);
    run.tick(900);
    run.check("works");
    run.tick(1_200);
    run.check("waits for unknown since 1150");
    run.draw(4_000, "", full);
    run.check("works");
    run.tick(6_000);
    run.check("works");
    run.key(6_100);
    run.draw(6_150, "", full);
    run.tick(7_500);
    assert!(run.detector.state().waiting().is_some(), "a key asks it to draw");
}

#[test]
fn an_answered_question_that_stays_on_the_screen_of_a_line_program_does_not_count() {
    let asks = |sample: &mut ScreenSample| {
        let (rule, activity) = ("generic-press-key".to_owned(), Activity::Waiting(Why::Question));
        sample.rules = RulesResult::Ran(Some(Matched { rule, activity, detail: None, is_general: true }));
        sample.cursor_visible = true;
    };
    let mut run = Run::new();
    run.draw(100, "Press Enter to continue", asks);
    run.tick(300);
    run.check("waits for question since 250");
    run.enter(1_000);
    run.draw(1_050, "Installing", asks);
    run.draw(1_400, "Installing more", asks);
    run.check("works");
    run.draw(3_200, "Press Enter to continue", asks);
    run.tick(3_400);
    run.check("waits for question since 3350");
}

#[test]
fn a_line_program_that_asks_for_a_permission_says_so_on_its_screen() {
    let mut run = Run::new();
    run.draw(100, "Execute rm? [y/N] ", |sample| {
        let (rule, activity) = ("generic-yes-no-permission".to_owned(), Activity::Waiting(Why::Permission));
        sample.rules = RulesResult::Ran(Some(Matched { rule, activity, detail: None, is_general: true }));
    });
    run.probe(150, true, "agent", Waits::ForTerminal);
    run.tick(400);
    run.check("waits for permission since 150");
}
