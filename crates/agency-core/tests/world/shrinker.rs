//! Makes a history that breaks a law as short as possible, and prints it as a story.
//!
//! Not here: what a law is. A part of a history counts as the same failure if it breaks a law with the same words.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use agency_core::Time;

use crate::history::{History, StepKind};
use crate::scribe::Scribe;
use crate::universe::World;

/// A law that is checked after every step, in addition to those of every world.
pub(crate) type ExtraLaw = fn(&World);

/// A failing history that cannot be made shorter.
pub(crate) struct Shrunk {
    pub(crate) history: History,
    pub(crate) message: String,
    /// Events outside the supervisor, in words.
    pub(crate) account: String,
    /// The supervisor's part of it, in the language of the stories.
    pub(crate) story: String,
}

/// The words of the law that this history breaks.
pub(crate) fn broken_law(history: &History, law: Option<ExtraLaw>) -> Option<String> {
    let mut world = World::new(history.seed);
    world.extra_law = law;
    message_of(|| world.replay(history))
}

/// Runs it without the usual output of a panic.
pub(crate) fn message_of(run: impl FnOnce()) -> Option<String> {
    thread_local!(static IS_QUIET: Cell<bool> = const { Cell::new(false) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_QUIET.get() {
                usual(panic);
            }
        }));
    });
    IS_QUIET.set(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    IS_QUIET.set(false);
    let payload = result.err()?;
    let text = payload.downcast_ref::<String>().cloned();
    Some(text.or_else(|| payload.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default())
}

/// `None` if the replay of the whole history breaks no law.
pub(crate) fn shrink(history: History, law: Option<ExtraLaw>) -> Option<Shrunk> {
    let wanted = kind(&broken_law(&history, law)?);
    let fails = |part: &History| broken_law(part, law).is_some_and(|message| kind(&message) == wanted);
    let mut shortest = history;
    loop {
        let steps = shortest.steps.len();
        shorten_steps(&mut shortest, fails);
        keep_daemons_alive(&mut shortest, fails);
        shorten_tasks(&mut shortest, fails);
        if shortest.steps.len() == steps {
            break;
        }
    }
    use_plain_terms(&mut shortest, fails);
    use_whole_seconds(&mut shortest, fails);
    begin_early(&mut shortest, fails);
    Some(describe(shortest, law))
}

/// Two failures are the same if their words are the same apart from numbers.
fn kind(message: &str) -> String {
    message.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

fn shorten_steps(history: &mut History, fails: impl Fn(&History) -> bool) {
    let steps = history.steps.clone();
    history.steps = shortest(steps, |steps| fails(&History { steps: steps.to_vec(), ..history.clone() }));
}

fn shorten_tasks(history: &mut History, fails: impl Fn(&History) -> bool) {
    let tasks = history.tasks.clone();
    history.tasks = shortest(tasks, |tasks| fails(&History { tasks: tasks.to_vec(), ..history.clone() }));
}

fn keep_daemons_alive(history: &mut History, fails: impl Fn(&History) -> bool) {
    for at in 0..history.steps.len() {
        let mut calmer = history.clone();
        if calmer.steps[at].dies_after.take().is_some() && fails(&calmer) {
            *history = calmer;
        }
    }
}

fn use_plain_terms(history: &mut History, fails: impl Fn(&History) -> bool) {
    for at in 0..history.steps.len() {
        let StepKind::Act(act) = &history.steps[at].kind else { continue };
        let Some(plain) = act.with_plain_terms() else { continue };
        let mut plainer = history.clone();
        plainer.steps[at].kind = StepKind::Act(plain);
        if fails(&plainer) {
            *history = plainer;
        }
    }
}

fn use_whole_seconds(history: &mut History, fails: impl Fn(&History) -> bool) {
    let mut rounder = history.clone();
    rounder.has_whole_seconds = true;
    for step in &mut rounder.steps {
        step.at = Time::from_secs(step.at.as_secs());
    }
    if fails(&rounder) {
        *history = rounder;
    }
}

/// Every step comes as early as possible: at once, or when it is due.
fn begin_early(history: &mut History, fails: impl Fn(&History) -> bool) {
    for at in 0..history.steps.len() {
        let mut earlier = history.clone();
        earlier.steps[at].at = Time::ZERO;
        if fails(&earlier) {
            *history = earlier;
        }
    }
}

/// Delta debugging: leaves out parts, first large ones, as long as the rest still fails. At the end no single item can be
/// left out.
pub(crate) fn shortest<T: Clone>(mut items: Vec<T>, fails: impl Fn(&[T]) -> bool) -> Vec<T> {
    let mut size = items.len().div_ceil(2).max(1);
    loop {
        let before = items.len();
        let mut at = 0;
        while at < items.len() {
            let end = (at + size).min(items.len());
            let rest = [&items[..at], &items[end..]].concat();
            match fails(&rest) {
                true => items = rest,
                false => at = end,
            }
        }
        if size == 1 && items.len() == before {
            return items;
        }
        size = (size / 2).max(1);
    }
}

fn describe(history: History, law: Option<ExtraLaw>) -> Shrunk {
    let mut world = World::new(history.seed);
    world.extra_law = law;
    world.account = Some(String::new());
    world.scribe = Some(Scribe::default());
    let message = message_of(|| world.replay(&history)).expect("it failed before");
    let scribe = world.scribe.take().expect("it was just given");
    let earlier = scribe.daemons().saturating_sub(1);
    let mut account = world.account.take().expect("it was just given");
    if earlier > 0 {
        account += &format!("(the story below is that of the last daemon; earlier ones: {earlier})\n");
    }
    Shrunk { history, message, account, story: scribe.story() }
}

impl std::fmt::Display for Shrunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Shrunk { history, message, account, story } = self;
        let steps = history.steps.len();
        write!(f, "seed {}, shortened to {steps} steps: {message}\n\n{account}\n{story}", history.seed)
    }
}
