//! Why an agent is said to be in its state: who says what now, and what was said before.

use std::path::PathBuf;
use std::time::Duration;

use agency_api::Failure;
use agency_api::view::{StateChange, Witness};
use agency_core::evidence::{Activity, Detector, Standing};

use crate::{state_log, view};

/// As many of the changes before as a person reads.
const SHOWN: usize = 20;

/// Who says what, and what would change it.
pub fn witnesses(detector: &Detector, now: Duration) -> (Vec<Witness>, Vec<String>) {
    let decides = detector.standing().evidence.source;
    let witness = |(rung, claim): (agency_core::evidence::Rung, &agency_core::evidence::Claim)| Witness {
        source: rung.as_str().to_owned(),
        rule: claim.rule.clone(),
        decides: rung == decides,
        why: match claim.activity {
            Activity::Working => None,
            Activity::Waiting(why) => Some(view::why(why)),
        },
        detail: claim.detail.clone(),
        for_seconds: now.saturating_sub(claim.at).as_secs(),
    };
    (detector.claims().map(witness).collect(), detector.outlook(now))
}

/// A state that goes on may rest on something else by now than when it began.
pub fn rest_on(state: &mut Option<StateChange>, standing: &Standing) {
    let now = view::change(standing, Duration::ZERO, None);
    if let Some(state) = state.as_mut().filter(|state| (state.state, state.why) == (now.state, now.why)) {
        state.evidence = now.evidence;
    }
}

/// The last change up to `at` (or of all), and those before it. `logs` are those of a task's runs, oldest first.
pub fn history(
    logs: &[PathBuf],
    at: Option<jiff::Timestamp>,
) -> Result<(Option<StateChange>, Vec<StateChange>), Failure> {
    let mut changes = Vec::new();
    for log in logs {
        let lines = state_log::read(log.clone())
            .map_err(|err| Failure::new(format!("cannot read {}", log.display())).caused_by(&err))?;
        changes.extend(lines.into_iter().map(|line| line.change));
    }
    if let Some(at) = at {
        let is_before = |change: &StateChange| {
            change
                .time
                .as_deref()
                .and_then(|time| time.parse::<jiff::Timestamp>().ok())
                .is_some_and(|time| time <= at)
        };
        changes.retain(is_before);
    }
    let last = changes.pop();
    let shown = changes.len().saturating_sub(SHOWN);
    Ok((last, changes.split_off(shown)))
}
