//! Stories of notifications and their times, and laws that hold for all events.

use proptest::prelude::*;

use super::*;
use crate::ids::{ProjectId, TaskId};

fn key(task: u64) -> TaskKey {
    TaskKey { project: ProjectId("p".to_owned()), task: TaskId(task) }
}

fn cause(why: &str) -> Cause {
    let occasion = match why {
        "exited" => Occasion::Exited { detail: "exit code 1".to_owned() },
        why => Occasion::NeedsInput { why: why.to_owned(), detail: String::new() },
    };
    Cause { run: RunId("r".to_owned()), occasion }
}

fn crash(notifier: &mut Notifier, task: &TaskKey, now: Time) {
    notifier.record_need(task, cause("exited"), now);
    notifier.end_run(task);
}

fn millis(text: &str) -> Time {
    let seconds: f64 = text.parse().unwrap_or_else(|_| panic!("{text} is not a time"));
    Time::from_millis((seconds * 1000.0).round() as u64)
}

/// Advances the clock and lists the notifications until then: `2 1 permission + 2 prompt`.
fn notices_until(notifier: &mut Notifier, end: Time) -> Vec<String> {
    let mut notices = Vec::new();
    while let Some(now) = notifier.deadline().filter(|now| *now <= end) {
        let notice = notifier.take_due(now).expect("a deadline is kept");
        let words: Vec<String> =
            notice.iter().map(|(key, cause)| format!("{} {}", key.task, cause.occasion.why())).collect();
        notices.push(format!("{} {}", now.as_secs_f64(), words.join(" + ")));
    }
    notices
}

/// Lines of `seconds task event -> notifications since the line before; …`.
#[track_caller]
fn check(script: &str) {
    let mut notifier = Notifier::default();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (event, expected) = line.split_once("->").unwrap_or((line, ""));
        let words: Vec<&str> = event.split_whitespace().collect();
        let now = millis(words[0]);
        let notices = notices_until(&mut notifier, now);
        assert_eq!(notices.join("; "), expected.trim(), "{line}");
        let task = words.get(1).map(|task| key(task.parse().expect("a task"))).unwrap_or_else(|| key(0));
        match words.get(2..).unwrap_or_default() {
            [] => {}
            ["found"] => notifier.record_found(&task, None),
            ["found", why] => notifier.record_found(&task, Some(cause(why))),
            ["unread"] => notifier.expect_late_state(&task),
            ["needs", why] => notifier.record_need(&task, cause(why), now),
            ["works"] => notifier.clear_need(&task),
            ["crashes"] => crash(&mut notifier, &task, now),
            ["stops"] => notifier.end_run(&task),
            ["booted"] => notifier.mark_all_known(),
            ["viewed"] => notifier.set_viewed(&task, true),
            ["unviewed"] => notifier.set_viewed(&task, false),
            ["gone"] => notifier.forget(&task),
            other => panic!("unknown event {other:?}"),
        }
    }
}

#[test]
fn one_change_makes_one_notification() {
    check(
        "
        10 1 needs permission
        11 1 needs permission
        70 1 needs permission -> 12 1 permission
        90
        ",
    );
}

#[test]
fn a_state_that_held_at_boot_makes_no_notification() {
    check(
        "
        10 1 found permission
        10 2 found
        10 3 found
        10.1 3 unread
        10.2 3 needs prompt
        10.3 4 crashes
        10.3 0 booted
        30 1 needs permission
        60 2 needs prompt
        70 1 works -> 62 2 prompt
        80 1 needs permission
        99 -> 82 1 permission
        ",
    );
}

#[test]
fn a_flicker_makes_no_notification() {
    check(
        "
        10   1 needs prompt
        10.6 1 works
        20   2 needs prompt
        21.5 1 needs prompt
        22.1 1 works -> 22 2 prompt
        40
        ",
    );
}

#[test]
fn many_changes_at_once_make_one_notification_with_the_longest_wait_first() {
    check(
        "
        10   3 needs permission
        10.5 1 needs prompt
        11   2 needs question
        11.9 4 needs prompt
        30 -> 12 3 permission + 1 prompt + 2 question; 13.9 4 prompt
        ",
    );
}

#[test]
fn a_state_that_a_user_has_seen_makes_no_notification_then_or_later() {
    check(
        "
        10 1 viewed
        11 1 needs prompt
        20 1 unviewed
        40 2 needs prompt
        41 2 viewed
        42 2 unviewed
        60 1 works
        61 1 needs prompt
        80 -> 63 1 prompt
        ",
    );
}

#[test]
fn an_agent_that_flips_makes_a_notification_now_and_then() {
    check(
        "
        10 1 needs prompt
        13 1 works -> 12 1 prompt
        14 1 needs prompt
        17 1 works
        18 1 needs prompt
        40 -> 24 1 prompt
        ",
    );
}

#[test]
fn another_word_for_the_same_wait_is_no_news_but_a_dialog_is() {
    check(
        "
        10 1 needs unknown
        11 1 needs permission
        20 1 needs permission -> 12 1 permission
        21 1 needs finished
        30 2 needs finished
        40 2 needs prompt -> 32 2 finished
        50 2 needs question
        70 -> 52 2 question
        ",
    );
}

#[test]
fn a_crash_makes_a_notification_and_a_stop_does_not() {
    check(
        "
        10 1 needs prompt
        20 1 crashes -> 12 1 prompt
        40 2 needs prompt -> 24 1 exited
        41 2 stops
        50 3 viewed
        51 3 crashes
        60 3 needs prompt
        70 4 crashes -> 62 3 prompt
        71 4 works
        80 5 crashes
        81 5 gone
        99
        ",
    );
}

#[derive(Clone, Copy, Debug)]
enum NotifierStep {
    Needs(&'static str),
    Works,
    Crashes,
    Stops,
    View(bool),
    Found,
}

fn step() -> impl Strategy<Value = NotifierStep> {
    prop_oneof![
        4 => prop::sample::select(vec!["prompt", "permission", "question", "finished", ""]).prop_map(NotifierStep::Needs),
        4 => Just(NotifierStep::Works),
        1 => Just(NotifierStep::Crashes),
        1 => Just(NotifierStep::Stops),
        1 => any::<bool>().prop_map(NotifierStep::View),
        1 => Just(NotifierStep::Found),
    ]
}

/// The truth about a task: whether a user views it, since when it needs the user, and when the last notification was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Truth {
    viewed: bool,
    needs_since: Option<Time>,
    seen: bool,
    crashed: bool,
    notified_at: Option<Time>,
}

impl Truth {
    fn follow(&mut self, step: NotifierStep, now: Time) {
        match step {
            NotifierStep::Needs(_) | NotifierStep::Crashes => {
                self.seen |= self.viewed;
                self.needs_since.get_or_insert(now);
            }
            // The end of a run does not undo its crash.
            NotifierStep::Stops if self.crashed => {}
            NotifierStep::Works | NotifierStep::Stops => (self.needs_since, self.seen) = (None, false),
            NotifierStep::View(viewed) => {
                self.viewed = viewed;
                self.seen |= viewed && self.needs_since.is_some();
            }
            NotifierStep::Found => {
                let notified_at = self.notified_at;
                *self = Truth { needs_since: Some(now), seen: true, notified_at, ..Truth::default() };
            }
        }
        self.crashed = matches!(step, NotifierStep::Crashes)
            || self.crashed
                && !matches!(step, NotifierStep::Works | NotifierStep::Found | NotifierStep::Needs(_));
        if matches!(step, NotifierStep::Crashes | NotifierStep::Stops) {
            self.viewed = false;
        }
    }
}

fn apply(notifier: &mut Notifier, task: &TaskKey, step: NotifierStep, now: Time) {
    match step {
        NotifierStep::Needs(why) => notifier.record_need(task, cause(why), now),
        NotifierStep::Works => notifier.clear_need(task),
        NotifierStep::Crashes => crash(notifier, task, now),
        NotifierStep::Stops => notifier.end_run(task),
        NotifierStep::View(viewed) => notifier.set_viewed(task, viewed),
        NotifierStep::Found => notifier.record_found(task, Some(cause("prompt"))),
    }
}

proptest! {
    #[test]
    fn no_notification_comes_too_often_and_none_is_lost(
        steps in prop::collection::vec((0u64..3, step(), 0u64..4000), 0..60),
    ) {
        let (timing, mut notifier) = (Timing::default(), Notifier::default());
        let mut truth = [Truth::default(); 3];
        let mut now = Time::from_secs(1);
        let end = (0, NotifierStep::View(false), 60_000);
        for (task, step, wait) in steps.into_iter().chain([end]) {
            if wait < 60_000 {
                apply(&mut notifier, &key(task), step, now);
                truth[task as usize].follow(step, now);
            }
            let until = now + Duration::from_millis(wait);
            while let Some(deadline) = notifier.deadline().filter(|deadline| *deadline <= until) {
                let notice = notifier.take_due(deadline).expect("a deadline is kept");
                prop_assert!(notifier.deadline().is_none_or(|next| next > deadline), "no spinning");
                for (key, _) in notice {
                    let truth = &mut truth[key.task.0 as usize];
                    let since = truth.needs_since.expect("the task needs the user");
                    prop_assert!(!truth.viewed && since + timing.settle <= deadline);
                    prop_assert!(truth.notified_at.is_none_or(|last| last + timing.apart <= deadline));
                    truth.notified_at = Some(deadline);
                    truth.seen = true;
                }
            }
            now = until;
        }
        for truth in truth {
            prop_assert!(truth.seen || truth.needs_since.is_none(), "no notification was sent: {truth:?}");
        }
    }
}
