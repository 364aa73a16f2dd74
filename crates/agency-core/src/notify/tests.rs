//! Stories of who is told what, and when; and what holds whatever happens.

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
    notifier.needs(task, cause("exited"), now);
    notifier.over(task);
}

fn millis(text: &str) -> Time {
    let seconds: f64 = text.parse().unwrap_or_else(|_| panic!("{text} is no time"));
    Time::from_millis((seconds * 1000.0).round() as u64)
}

/// Lets the clock go on, and says what is told until then: `2 1 permission + 2 prompt`.
fn told_until(notifier: &mut Notifier, end: Time) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(now) = notifier.deadline().filter(|now| *now <= end) {
        let notice = notifier.due(now).expect("a deadline is kept");
        let words: Vec<String> =
            notice.iter().map(|(key, cause)| format!("{} {}", key.task, cause.occasion.why())).collect();
        told.push(format!("{} {}", now.as_secs_f64(), words.join(" + ")));
    }
    told
}

/// Lines of `seconds task event -> what was told since the line before; …`.
#[track_caller]
fn check(script: &str) {
    let mut notifier = Notifier::default();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (event, expected) = line.split_once("->").unwrap_or((line, ""));
        let words: Vec<&str> = event.split_whitespace().collect();
        let now = millis(words[0]);
        let told = told_until(&mut notifier, now);
        assert_eq!(told.join("; "), expected.trim(), "{line}");
        let task = words.get(1).map(|task| key(task.parse().expect("a task"))).unwrap_or_else(|| key(0));
        match words.get(2..).unwrap_or_default() {
            [] => {}
            ["found"] => notifier.found(&task, None),
            ["found", why] => notifier.found(&task, Some(cause(why))),
            ["unread"] => notifier.read_late(&task),
            ["needs", why] => notifier.needs(&task, cause(why), now),
            ["works"] => notifier.needs_nobody(&task),
            ["crashes"] => crash(&mut notifier, &task, now),
            ["stops"] => notifier.over(&task),
            ["booted"] => notifier.all_known(),
            ["viewed"] => notifier.viewed(&task, true),
            ["unviewed"] => notifier.viewed(&task, false),
            ["gone"] => notifier.forget(&task),
            other => panic!("what is {other:?}?"),
        }
    }
}

#[test]
fn one_change_is_told_once() {
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
fn what_was_so_at_boot_is_not_told() {
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
fn a_flicker_is_not_told() {
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
fn many_at_once_are_one_notice_and_the_longest_wait_comes_first() {
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
fn what_is_on_a_screen_is_not_told_then_or_later() {
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
fn an_agent_that_flips_is_told_of_now_and_then() {
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
fn a_crash_is_told_and_a_stop_is_not() {
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
enum Step {
    Needs(&'static str),
    Works,
    Crashes,
    Stops,
    View(bool),
    Found,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::sample::select(vec!["prompt", "permission", "question", "finished", ""]).prop_map(Step::Needs),
        4 => Just(Step::Works),
        1 => Just(Step::Crashes),
        1 => Just(Step::Stops),
        1 => any::<bool>().prop_map(Step::View),
        1 => Just(Step::Found),
    ]
}

/// What a person would say of a task: who looks, since when it needs somebody, and when it was told last.
#[derive(Clone, Copy, Debug, Default)]
struct Truth {
    viewed: bool,
    needs_since: Option<Time>,
    seen: bool,
    crashed: bool,
    told_at: Option<Time>,
}

impl Truth {
    fn follow(&mut self, step: Step, now: Time) {
        match step {
            Step::Needs(_) | Step::Crashes => {
                self.seen |= self.viewed;
                self.needs_since.get_or_insert(now);
            }
            // That it crashed stays true when it is over.
            Step::Stops if self.crashed => {}
            Step::Works | Step::Stops => (self.needs_since, self.seen) = (None, false),
            Step::View(viewed) => {
                self.viewed = viewed;
                self.seen |= viewed && self.needs_since.is_some();
            }
            Step::Found => {
                let told_at = self.told_at;
                *self = Truth { needs_since: Some(now), seen: true, told_at, ..Truth::default() };
            }
        }
        self.crashed = matches!(step, Step::Crashes)
            || self.crashed && !matches!(step, Step::Works | Step::Found | Step::Needs(_));
        if matches!(step, Step::Crashes | Step::Stops) {
            self.viewed = false;
        }
    }
}

fn apply(notifier: &mut Notifier, task: &TaskKey, step: Step, now: Time) {
    match step {
        Step::Needs(why) => notifier.needs(task, cause(why), now),
        Step::Works => notifier.needs_nobody(task),
        Step::Crashes => crash(notifier, task, now),
        Step::Stops => notifier.over(task),
        Step::View(viewed) => notifier.viewed(task, viewed),
        Step::Found => notifier.found(task, Some(cause("prompt"))),
    }
}

proptest! {
    #[test]
    fn whatever_happens_nobody_is_pestered_and_nothing_is_kept_back(
        steps in prop::collection::vec((0u64..3, step(), 0u64..4000), 0..60),
    ) {
        let (timing, mut notifier) = (Timing::default(), Notifier::default());
        let mut truth = [Truth::default(); 3];
        let mut now = Time::from_secs(1);
        let end = (0, Step::View(false), 60_000);
        for (task, step, wait) in steps.into_iter().chain([end]) {
            if wait < 60_000 {
                apply(&mut notifier, &key(task), step, now);
                truth[task as usize].follow(step, now);
            }
            let until = now + Duration::from_millis(wait);
            while let Some(deadline) = notifier.deadline().filter(|deadline| *deadline <= until) {
                let notice = notifier.due(deadline).expect("a deadline is kept");
                prop_assert!(notifier.deadline().is_none_or(|next| next > deadline), "no spinning");
                for (key, _) in notice {
                    let truth = &mut truth[key.task.0 as usize];
                    let since = truth.needs_since.expect("it needs somebody");
                    prop_assert!(!truth.viewed && since + timing.settle <= deadline);
                    prop_assert!(truth.told_at.is_none_or(|last| last + timing.apart <= deadline));
                    truth.told_at = Some(deadline);
                    truth.seen = true;
                }
            }
            now = until;
        }
        for truth in truth {
            prop_assert!(truth.seen || truth.needs_since.is_none(), "nobody was told: {truth:?}");
        }
    }
}
