//! The status line of `agency chat`: what the agent does and since when, its context, cost, mode, model and queue.

use std::time::{Duration, Instant};

use agency_api::chat::{ContextUse, SessionStatus, Usage};
use agency_api::view::{AgentState, Task, Why};

use crate::output::{duration, printable};

/// Everything that the status line shows.
#[derive(Debug, Default)]
pub(crate) struct ChatStatus {
    activity: Option<Activity>,
    session: SessionStatus,
    cost: Option<f64>,
    queued: u64,
}

#[derive(Debug)]
struct Activity {
    words: &'static str,
    is_working: bool,
    /// How long it had lasted at `read_at`.
    lasted: Duration,
    read_at: Instant,
}

impl ChatStatus {
    pub(crate) fn session(&self) -> &SessionStatus {
        &self.session
    }

    /// Whether the agent worked when the daemon was last asked.
    pub(crate) fn was_working(&self) -> Option<bool> {
        self.activity.as_ref().map(|activity| activity.is_working)
    }

    pub(crate) fn read_session(&mut self, session: &SessionStatus, usage: &Usage) {
        session.clone_into(&mut self.session);
        self.cost = usage.cost_usd;
    }

    pub(crate) fn read_task(&mut self, task: &Task, now: Instant) {
        self.queued = task.queued;
        self.activity = task.state.as_ref().map(|state| {
            let (words, is_working, seconds) = describe(state);
            Activity { words, is_working, lasted: Duration::from_secs(seconds), read_at: now }
        });
    }

    /// The line, without styles.
    pub(crate) fn line(&self, now: Instant) -> String {
        let activity = self.activity.as_ref().map(|activity| {
            let lasted = activity.lasted + now.saturating_duration_since(activity.read_at);
            let mark = if activity.is_working { "●" } else { "○" };
            format!("{mark} {} {}", activity.words, duration(lasted.as_secs()))
        });
        let cost = self.cost.map(|cost| format!("${cost:.2}"));
        let named = |word: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("{word} {}", printable(value)))
        };
        let queued = (self.queued > 0).then(|| format!("{} queued", self.queued));
        let parts = [
            activity,
            queued,
            self.session.context.map(context_text),
            cost,
            named("mode", &self.session.mode),
            named("model", &self.session.model),
            Some("/help".to_owned()),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

fn describe(state: &AgentState) -> (&'static str, bool, u64) {
    let waits = |why: &Why| match why {
        Why::Permission => "waits for your permission",
        Why::Question => "waits for your answer",
        Why::Error => "stopped with an error",
        Why::Prompt | Why::Finished | Why::Unknown => "waits for you",
    };
    match state {
        AgentState::Starting { for_seconds } => ("starting", true, *for_seconds),
        AgentState::Running { for_seconds } => ("working", true, *for_seconds),
        AgentState::NeedsInput { for_seconds, why } | AgentState::Stale { for_seconds, why } => {
            (waits(why), false, *for_seconds)
        }
        AgentState::Exited { .. } => ("ended", false, 0),
    }
}

/// `context 34k of 200k (17%)`
fn context_text(context: ContextUse) -> String {
    let ContextUse { used, size } = context;
    match used.saturating_mul(100).checked_div(size) {
        Some(percent) => format!("context {} of {} ({percent}%)", tokens(used), tokens(size)),
        None => format!("context {}", tokens(used)),
    }
}

fn tokens(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{}k", number / 1000),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_what_is_known_and_counts_the_time() {
        let mut status = ChatStatus::default();
        let now = Instant::now();
        assert_eq!(status.line(now), "/help");
        let session = SessionStatus {
            working: true,
            context: Some(ContextUse { used: 34_567, size: 200_000 }),
            mode: Some("plan\x1b[2J".into()),
            model: Some("opus".into()),
            ..SessionStatus::default()
        };
        let usage = Usage { cost_usd: Some(0.125), ..Usage::default() };
        status.read_session(&session, &usage);
        status.activity = Some(Activity {
            words: "working",
            is_working: true,
            lasted: Duration::from_secs(5),
            read_at: now,
        });
        status.queued = 1;
        let line = status.line(now + Duration::from_secs(7));
        let expected = "● working 12s · 1 queued · context 34k of 200k (17%) · $0.12 · mode plan\\u{1b}[2J · model opus · /help";
        assert_eq!(line, expected);
        assert_eq!(context_text(ContextUse { used: 1_500_000, size: 0 }), "context 1.5M");
    }
}
