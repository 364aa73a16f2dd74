//! Why an agent is said to be in its state: what each source claims now, and the changes before.

use std::path::PathBuf;
use std::time::Duration;

use agency_api::view::{SignOfWork, StateChange, Witness};
use agency_api::{Failure, FailureCode};
use agency_core::evidence::{Activity, Claim, DetectedState, Detector, EvidenceSource, ProgramMemory};

use crate::{state_log, view};

/// A person reads about this many earlier changes.
const CHANGES_SHOWN: usize = 20;

/// The state of an agent, what each source claims about it, and what would change it.
#[derive(Debug)]
pub struct Explanation {
    /// The state and the evidence that decides it.
    pub standing: DetectedState,
    /// One entry per source that claims something.
    pub witnesses: Vec<Witness>,
    /// Sentences that say what would change the state.
    pub outlook: Vec<String>,
    /// A text that an interrupted send typed into the terminal and did not enter.
    pub unentered: Option<String>,
    /// The signs of work of its program.
    pub signs: Vec<SignOfWork>,
    /// The memory of its program.
    pub memory: ProgramMemory,
}

/// The explanation of the current state.
pub fn explain(detector: &Detector, unentered: Option<String>, now: Duration) -> Explanation {
    let standing = detector.standing();
    let decides = standing.evidence.source;
    let witness = |(source, claim): (EvidenceSource, &Claim)| Witness {
        source: source.as_str().to_owned(),
        rule: claim.rule.clone(),
        decides: source == decides,
        why: match claim.activity {
            Activity::Working => None,
            Activity::Waiting(why) => Some(view::why(why)),
        },
        detail: claim.detail.clone(),
        for_seconds: now.saturating_sub(claim.at).as_secs(),
    };
    let witnesses = detector.claims().map(witness).collect();
    let sign = |(text, remembered): (&str, bool)| SignOfWork { text: text.to_owned(), remembered };
    let signs = detector.signs_of_work().map(sign).collect();
    let (outlook, memory) = (detector.outlook(now), detector.memory().clone());
    Explanation { standing, witnesses, outlook, unentered, signs, memory }
}

/// The signs of work that later runs of a program will know.
pub fn remembered_signs(memory: &ProgramMemory) -> Vec<SignOfWork> {
    memory.signs.iter().map(|text| SignOfWork { text: text.clone(), remembered: true }).collect()
}

/// Replaces the evidence of a logged state that still holds: other evidence may decide it by now.
pub fn update_evidence(state: &mut Option<StateChange>, standing: &DetectedState) {
    let now = view::change(standing, Duration::ZERO, None);
    if let Some(state) = state.as_mut().filter(|state| (state.state, state.why) == (now.state, now.why)) {
        state.evidence = now.evidence;
    }
}

/// The last change up to `at` (or of all), and the changes before it. `logs` are the state logs of a task's runs, oldest
/// first.
pub fn history(
    logs: &[PathBuf],
    at: Option<jiff::Timestamp>,
) -> Result<(Option<StateChange>, Vec<StateChange>), Failure> {
    let mut changes = Vec::new();
    for log in logs {
        let lines = state_log::read(log.clone()).map_err(|err| {
            Failure::new(format!("cannot read {}", log.display())).code(FailureCode::IoError).caused_by(&err)
        })?;
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
    let shown = changes.len().saturating_sub(CHANGES_SHOWN);
    Ok((last, changes.split_off(shown)))
}
