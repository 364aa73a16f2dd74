//! Stories of texts and keys on their way to an agent, at chosen milliseconds; and one law about any screen.

use agency_core::evidence::Why;
use agency_testkit::Rng;

use super::*;

struct Story {
    machine: SendMachine<()>,
    seen: Observation,
    /// The note of the last write.
    note: Option<SendNote>,
}

fn send_text(text: &str, seen: Observation) -> Story {
    let order = SendOrder::Text { text: text.as_bytes().to_vec(), enter: true, anyway: false };
    Story::of(order, seen)
}

fn send_keys(names: &[&str], seen: Observation) -> Story {
    let keys = names.iter().map(|name| Keystroke::parse(name).expect("a key")).collect();
    Story::of(SendOrder::Keys(keys), seen)
}

impl Story {
    fn of(order: SendOrder, seen: Observation) -> Story {
        let mut machine = SendMachine::default();
        machine.push(order, ());
        Story { machine, seen, note: None }
    }

    /// The bytes that the machine writes after this many milliseconds.
    fn at(&mut self, ms: u64) -> String {
        self.seen.now = Duration::from_millis(ms);
        let seen = self.seen.clone();
        let write = self.machine.next_write(&mut || seen.clone()).unwrap_or_default();
        self.note = write.note;
        String::from_utf8(write.bytes).expect("text")
    }

    fn written(&mut self, ms: u64) {
        self.machine.on_written(Duration::from_millis(ms));
    }

    fn draw(&mut self, ms: u64, rows: &[&str]) {
        self.seen.drawn_at = Duration::from_millis(ms);
        self.seen.rows = rows.iter().map(|row| (*row).to_owned()).collect();
    }

    fn whole_receipt(&mut self) -> SendReceipt {
        let ((), receipt) = self.machine.take_receipts().pop().expect("a receipt");
        receipt
    }

    fn receipt(&mut self) -> (SendOutcome, String) {
        let receipt = self.whole_receipt();
        (receipt.outcome, receipt.why.unwrap_or_default())
    }
}

/// Work that the agent reports.
fn work(since_ms: u64) -> Option<SeenWork> {
    let (since, evidence) = (Duration::from_millis(since_ms), "status: working".to_owned());
    Some(SeenWork { since, evidence, is_reported: true })
}

/// A program that edits lines, at its prompt.
fn editor() -> Observation {
    let modes = TerminalModes { bracketed_paste: true, ..TerminalModes::default() };
    Observation { modes, why: Some(Why::Prompt), ..Observation::default() }
}

fn agent() -> Observation {
    let modes = TerminalModes { full_screen: true, bracketed_paste: true, ..TerminalModes::default() };
    Observation { modes, rows: vec!["> ".into()], ..Observation::default() }
}

#[test]
fn a_text_is_pasted_entered_and_proven() {
    let mut story = send_text("fix the login", agent());
    assert_eq!(story.at(0), "\x1b[200~fix the login\x1b[201~");
    story.written(5);
    story.draw(20, &["│ > fix the lo │", "│ gin │"]);
    assert_eq!(story.at(40), "", "not quiet yet");
    assert_eq!(story.at(90), "\r");
    story.written(91);
    assert_eq!(story.at(100), "");
    story.seen.works = work(150);
    assert_eq!(story.at(160), "");
    assert_eq!(story.receipt(), (SendOutcome::Delivered, "status: working".into()));
}

#[test]
fn a_dialog_is_never_answered_by_a_prompt() {
    let mut seen = agent();
    seen.dialog = Some("it asks for a permission".into());
    let mut refused = send_text("fix it", seen);
    assert_eq!(refused.at(2_000), "");
    assert_eq!(
        refused.receipt(),
        (SendOutcome::Refused, "it asks for a permission; nothing was typed".into())
    );

    let mut late = send_text("fix the login", agent());
    late.at(0);
    late.written(5);
    late.draw(20, &["> fix the login"]);
    late.seen.dialog = Some("it asks for a permission".into());
    assert_eq!(late.at(90), "", "it came up in between");
    assert_eq!(late.receipt().0, SendOutcome::Refused);

    let mut unknown = send_text("fix the login", agent());
    unknown.at(0);
    unknown.written(5);
    unknown.draw(20, &["Update now?", "1. Yes"]);
    assert_eq!(unknown.at(1_000), "");
    assert_eq!(unknown.at(6_100), "", "a text that does not show is at no prompt");
    assert_eq!(unknown.receipt().0, SendOutcome::Refused);
}

#[test]
fn an_enter_that_was_swallowed_is_pressed_once_more() {
    let mut story = send_text("fix the login", agent());
    story.at(0);
    story.written(5);
    story.draw(20, &["> fix the login"]);
    assert_eq!(story.at(100), "\r");
    story.written(101);
    assert_eq!(story.at(500), "");
    assert_eq!(story.at(1_002), "\r");
    story.written(1_003);
    assert_eq!(story.at(2_000), "");
    assert_eq!(story.at(3_010), "");
    assert_eq!(story.receipt().0, SendOutcome::Typed, "there is no evidence");
}

#[test]
fn a_second_enter_is_not_pressed_once_the_text_is_gone() {
    let mut story = send_text("fix the login", agent());
    story.at(0);
    story.written(5);
    story.draw(20, &["> ", "fix the login"]);
    assert_eq!(story.at(100), "\r");
    story.written(101);
    story.draw(200, &["> ", "Update now? 1. Yes"]);
    assert_eq!(story.at(1_002), "", "the cursor's row is the same, and the text is gone");
}

#[test]
fn a_program_that_reads_lines_has_taken_the_text_once_it_has_read_it() {
    let mut story = send_text("y", Observation { reads_lines: true, ..Observation::default() });
    assert_eq!(story.at(0), "y\r", "nothing can come between the text and its Enter");
    assert_eq!(story.note, Some(SendNote { bytes: 2, enters: true, ..SendNote::default() }));
    story.written(71);
    story.seen.all_read_at = Some(Duration::from_millis(95));
    story.at(96);
    assert_eq!(story.receipt(), (SendOutcome::Delivered, "the program has read it".into()));
    let mut long = send_text(&"x".repeat(5_000), Observation { reads_lines: true, ..Observation::default() });
    assert_eq!(long.at(0), "");
    assert_eq!(long.receipt().0, SendOutcome::Refused);
}

#[test]
fn keys_are_pressed_one_by_one_also_on_a_dialog() {
    let mut seen = agent();
    seen.dialog = Some("it asks for a permission".into());
    let mut story = send_keys(&["down", "enter"], seen);
    assert_eq!(story.at(2_000), "\x1b[B");
    story.written(2_001);
    assert_eq!(story.at(2_020), "");
    assert_eq!(story.at(2_070), "\r");
    story.written(2_071);
    assert_eq!(story.at(2_072), "", "the dialog is still there");
    story.seen.dialog = None;
    story.at(2_140);
    assert_eq!(story.receipt(), (SendOutcome::Delivered, "the dialog is gone".into()));
}

#[test]
fn a_new_dialog_is_given_time_to_show_and_to_listen() {
    let mut seen = agent();
    seen.dialog = Some("it asks for a permission".into());
    seen.state_since = Duration::from_millis(5_000);
    let mut undrawn = send_keys(&["1"], seen.clone());
    assert_eq!(undrawn.at(6_990), "");
    assert_eq!(undrawn.at(7_000), "1");
    seen.dialog_shown = true;
    let mut keys = send_keys(&["1"], seen.clone());
    assert_eq!(keys.at(5_010), "");
    assert_eq!(keys.at(5_690), "");
    assert_eq!(keys.at(5_700), "1");
    keys.written(5_701);
    // The next dialog opens at once, and the keys still answered the first one.
    keys.seen.dialog = Some("it asks for another permission".into());
    keys.at(5_800);
    assert_eq!(keys.receipt(), (SendOutcome::Delivered, "the dialog is gone".into()));

    let mut text = send_text("fix it", seen);
    text.at(5_010);
    assert!(text.machine.deadline(Duration::from_millis(5_010)).is_some());
    text.draw(5_100, &["May I?"]);
    text.at(5_700);
    let receipt = text.whole_receipt();
    assert_eq!(receipt.screen.as_deref(), Some("May I?"));
}

#[test]
fn a_text_is_not_appended_to_a_draft_at_the_prompt() {
    let drawn =
        |row: &str, column: u16| Observation { rows: vec![row.into()], cursor: (0, column), ..agent() };
    for (row, column, kind) in [
        ("❯\u{a0}half a thought", 16, Some("half a thought")),
        ("│ > half                │", 8, Some("half")),
        ("› Ask Codex to do anything", 2, None),
        ("❯\u{a0}", 2, None),
        ("~/project  main", 15, None),
    ] {
        assert_eq!(drawn(row, column).draft().as_deref(), kind, "{row}");
    }
    let mut refused = send_text("fix it", drawn("❯ half a thought", 16));
    assert_eq!(refused.at(0), "");
    assert_eq!(refused.at(1_500), "");
    assert_eq!(refused.receipt().0, SendOutcome::Refused);
    let mut entered = send_text("fix it", drawn("❯ what was entered just now", 27));
    assert_eq!(entered.at(0), "");
    entered.seen = drawn("❯ ", 2);
    assert_eq!(entered.at(100), "\x1b[200~fix it\x1b[201~");
}

fn interrupted(text: &str, at_ms: u64) -> Option<TypedText> {
    Some(TypedText { text: text.to_owned(), at: Duration::from_millis(at_ms) })
}

#[test]
fn a_text_is_not_appended_to_one_that_was_never_entered() {
    let line_program = Observation { reads_lines: true, ..Observation::default() };
    for seen in [line_program, editor()] {
        let mut story =
            send_text("echo second", Observation { unentered: interrupted("echo first ", 5), ..seen });
        assert_eq!(story.at(2_000), "");
        let (outcome, why) = story.receipt();
        assert_eq!(outcome, SendOutcome::Refused);
        for part in
            ["it typed \"echo first \" and did not press Enter", "--keys enter", "--keys ctrl-u", "--anyway"]
        {
            assert!(why.contains(part), "{part}: {why}");
        }
        let order = SendOrder::Text { text: b"echo second".to_vec(), enter: true, anyway: true };
        assert!(
            Story::of(order, story.seen.clone()).at(2_000).contains("echo second"),
            "the caller asks for it"
        );
        let mut keys = story.seen.clone();
        keys.now = Duration::from_secs(2);
        assert_eq!(send_keys(&["ctrl-u"], keys).at(2_000), "\x15", "this removes it");
    }
}

#[test]
fn an_unentered_text_counts_as_long_as_a_full_screen_program_shows_it() {
    let mut seen = agent();
    seen.why = Some(Why::Prompt);
    seen.unentered = interrupted("fix the login", 5);
    seen.rows = vec!["Ask me: fix the login".into()];
    let mut shown = send_text("and the tests", seen.clone());
    assert_eq!(shown.at(2_000), "");
    assert_eq!(shown.receipt().0, SendOutcome::Refused);
    seen.rows = vec!["Ask me:".into()];
    assert_ne!(send_text("and the tests", seen).at(2_000), "");
}

#[test]
fn a_text_whose_enter_is_written_but_not_yet_recorded_stops_no_other() {
    let mut story = send_text("echo first", editor());
    let order = SendOrder::Text { text: b"echo second".to_vec(), enter: true, anyway: false };
    story.machine.push(order, ());
    assert_eq!(story.at(0), "\x1b[200~echo first\x1b[201~");
    assert_eq!(story.note, Some(SendNote { bytes: 22, paste: true, ..SendNote::default() }));
    story.written(5);
    story.seen.unentered = interrupted("echo first", 5);
    assert_eq!(story.at(70), "\r");
    assert_eq!(story.note, None);
    story.written(71);
    story.seen.works = work(80);
    assert_eq!(story.at(90), "\x1b[200~echo second\x1b[201~");
    assert_eq!(story.receipt().0, SendOutcome::Delivered);
}

#[test]
fn a_menu_gets_not_even_letters() {
    let menu = |rows: &[&str]| Observation {
        rows: rows.iter().map(|row| (*row).to_owned()).collect(),
        why: Some(Why::Unknown),
        ..agent()
    };
    for rows in [
        &["? Delete which database? (Use arrow keys)", " » production", "   staging"][..],
        &["◆  Drop the table?", "│  ○ Yes / ● No", "└"],
        &["Execute shell? [Y/n/c/e/a/?]"],
    ] {
        let mut story = send_text("fix the login", menu(rows));
        assert_eq!(story.at(20_000), "", "the shape may be that of a half-drawn screen");
        assert_eq!(story.at(20_400), "");
        let receipt = story.whole_receipt();
        assert_eq!((receipt.outcome, receipt.bytes), (SendOutcome::Refused, 0));
        assert!(receipt.why.as_ref().is_some_and(|why| why.contains("it shows a menu")), "{receipt:?}");
        assert!(receipt.screen.is_some());
    }
}

#[test]
fn an_unknown_screen_gets_not_even_letters() {
    let pager = Observation { rows: vec!["one".into(), ":".into()], why: Some(Why::Unknown), ..agent() };
    let modes = TerminalModes { alternate: true, cursor_visible: true, ..pager.modes };
    let pager = Observation { modes, cursor: (1, 1), ..pager };
    let mut story = send_text("fix the login", pager.clone());
    assert_eq!(story.at(20_000), "");
    assert!(story.machine.deadline(Duration::from_secs(20)).is_some(), "a prompt may come");
    assert_eq!(story.at(22_000), "");
    let receipt = story.whole_receipt();
    assert_eq!((receipt.outcome, receipt.bytes), (SendOutcome::Refused, 0), "{receipt:?}");
    let order = SendOrder::Text { text: b"q".to_vec(), enter: false, anyway: true };
    assert!(Story::of(order, pager).at(20_000).contains('q'), "the caller asks for it");
}

#[test]
fn a_line_with_keys_in_brackets_takes_an_offered_answer_and_nothing_else() {
    let seen = Observation {
        rows: vec!["Execute shell? [Y/n/c/e/a/?]".into()],
        cursor: (0, 28),
        modes: TerminalModes { cursor_visible: true, ..TerminalModes::default() },
        reads_lines: true,
        why: Some(Why::Question),
        ..Observation::default()
    };
    let mut text = send_text("fix the login", seen.clone());
    text.at(0);
    assert_eq!(text.at(400), "");
    assert_eq!(text.receipt().0, SendOutcome::Refused);
    let mut answer = send_text("n", seen);
    answer.at(0);
    assert_eq!(answer.at(400), "n\r");
}

#[test]
fn a_text_above_a_new_line_of_the_prompt_is_typed_and_not_delivered() {
    for is_full_screen in [true, false] {
        let empty = Observation {
            modes: TerminalModes { full_screen: is_full_screen, cursor_visible: true, ..agent().modes },
            cursor: (0, 4),
            rows: vec!["│ >             │".into()],
            ..agent()
        };
        let mut story = send_text("fix it now", empty);
        assert_ne!(story.at(0), "");
        story.written(5);
        story.draw(20, &["│ > fix it now  │"]);
        story.seen.cursor = (0, 14);
        assert_eq!(story.at(90), "\r");
        story.written(91);
        story.draw(100, &["│ > fix it now  │", "│               │"]);
        story.seen.cursor = (1, 4);
        story.seen.works = Some(SeenWork {
            since: Duration::from_millis(110),
            evidence: "animation: the screen keeps changing".into(),
            is_reported: false,
        });
        assert_eq!(story.at(1_200), "", "another Enter would be another line");
        assert_eq!(story.at(2_200), "");
        let (outcome, why) = story.receipt();
        assert_eq!(outcome, SendOutcome::Typed);
        assert!(why.contains("Enter began a new line"), "{why}");
    }
}

#[test]
fn a_program_that_did_not_read_yet_may_lose_the_line() {
    let starting = Observation { reads_lines: true, is_busy: true, ..Observation::default() };
    let mut story = send_text("fix it", starting.clone());
    assert_eq!(story.at(100), "", "it may begin to read");
    assert_eq!(story.at(4_200), "fix it\r");
    story.written(4_201);
    story.seen.is_busy = false;
    story.seen.all_read_at = Some(Duration::from_millis(4_300));
    assert_eq!(story.at(4_300), "");
    assert_eq!(story.at(6_300), "");
    let (outcome, why) = story.receipt();
    assert_eq!(outcome, SendOutcome::Typed);
    assert!(why.contains("still starting"), "{why}");

    let mut reading = send_text("fix it", starting);
    assert_eq!(reading.at(100), "");
    reading.seen.is_busy = false;
    assert_eq!(reading.at(200), "fix it\r");
    reading.written(201);
    reading.seen.all_read_at = Some(Duration::from_millis(250));
    reading.at(250);
    assert_eq!(reading.receipt().0, SendOutcome::Delivered);
}

#[test]
fn the_exit_of_a_busy_program_proves_nothing() {
    for (is_busy, outcome) in [(true, SendOutcome::Typed), (false, SendOutcome::Delivered)] {
        let seen = Observation { reads_lines: true, is_busy, ..Observation::default() };
        let mut story = send_text("fix it", seen);
        story.at(0);
        story.at(4_100);
        story.written(4_101);
        story.machine.on_exit();
        assert_eq!(story.receipt().0, outcome);
    }
}

#[test]
fn work_that_only_the_screen_shows_needs_a_text_that_left_the_prompt() {
    let mut story = send_text("fix the login", agent());
    story.at(0);
    story.written(5);
    story.draw(20, &["> fix the login"]);
    assert_eq!(story.at(100), "\r");
    story.written(101);
    let (since, evidence) = (Duration::from_millis(150), "screen: generic-working".to_owned());
    story.seen.works = Some(SeenWork { since, evidence, is_reported: false });
    assert_eq!(story.at(200), "");
    assert!(story.machine.take_receipts().is_empty(), "the text is still at the prompt");
    story.draw(300, &["> fix the login", "* Working", "> "]);
    story.at(350);
    assert_eq!(story.receipt(), (SendOutcome::Delivered, "screen: generic-working".into()));
}

fn any_screen(rng: &mut Rng, now: u64, text: &str) -> Observation {
    let past = |back: u64| Duration::from_millis(now.saturating_sub(back));
    let rows: [&[&str]; 4] =
        [&["> "], &["> ", text], &["1. Yes", "2. No"], &["Delete which?", "❯ production", "  staging"]];
    let is_working = rng.below(4) == 0;
    let whys = [None, Some(Why::Prompt), Some(Why::Unknown), Some(Why::Finished)];
    Observation {
        now: Duration::from_millis(now),
        state_since: past(rng.below(2_000)),
        dialog: (rng.below(3) == 0).then(|| "it waits for a permission".to_owned()),
        dialog_shown: rng.below(2) == 0,
        reads_lines: rng.below(3) == 0,
        modes: TerminalModes {
            hides_input: rng.below(6) == 0,
            full_screen: rng.below(3) != 0,
            alternate: rng.below(2) == 0,
            cursor_visible: rng.below(2) == 0,
            bracketed_paste: rng.below(2) == 0,
            app_cursor: rng.below(2) == 0,
            kitty_flags: [0, 1, 8][rng.below(3) as usize],
        },
        drawn_at: past(rng.below(200)),
        works: work(now.saturating_sub(rng.below(500))).filter(|_| is_working),
        question: None,
        why: whys[rng.below(4) as usize],
        began: past(rng.below(30_000)),
        is_busy: rng.below(4) == 0,
        all_read_at: (rng.below(3) == 0).then(|| past(rng.below(100))),
        rows: rows[rng.below(4) as usize].iter().map(|row| (*row).to_owned()).collect(),
        cursor: (rng.below(2) as u16, 0),
        unentered: None,
    }
}

#[test]
fn on_any_screen_no_dialog_gets_an_enter_and_no_text_gets_more_than_two() {
    let text = "fix the login";
    for seed in 0..3_000 {
        let mut rng = Rng::seeded(seed);
        let mut story = send_text(text, Observation::default());
        let (mut now, mut texts, mut enters) = (0, 0, 0);
        while story.machine.take_receipts().is_empty() {
            now += rng.below(120);
            assert!(now < 20_000, "seed {seed}: it never ends");
            let seen = any_screen(&mut rng, now, text);
            let written = story.machine.next_write(&mut || seen.clone());
            let is_enter = |bytes: &[u8]| bytes == b"\r" || bytes == b"\x1b[13u";
            match written.as_ref().map(|write| write.bytes.as_slice()) {
                Some(bytes) if is_enter(bytes) => {
                    assert_eq!(seen.open_dialog(), None, "seed {seed}: Enter on a dialog");
                    assert_eq!(texts, 1, "seed {seed}: Enter before the text");
                    enters += 1;
                }
                Some(bytes) => {
                    assert_eq!(seen.open_dialog(), None, "seed {seed}: typed into a dialog");
                    assert_ne!(seen.place(), Place::Unknown, "seed {seed}: typed where no prompt is");
                    assert!(String::from_utf8_lossy(bytes).contains(text));
                    assert!(
                        written.as_ref().is_some_and(|write| write.note.is_some()),
                        "seed {seed}: no note"
                    );
                    texts += 1;
                    enters += usize::from(bytes.ends_with(b"\r"));
                }
                None => {}
            }
            if written.is_some() {
                story.machine.on_written(Duration::from_millis(now));
            }
        }
        assert!(texts <= 1 && enters <= 2, "seed {seed}: {texts} texts, {enters} times Enter");
        assert!(story.machine.is_idle());
    }
}
