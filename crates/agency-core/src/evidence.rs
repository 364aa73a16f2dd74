//! Evidence about what an agent does, and the decision between contradicting evidence.
//!
//! Each witness (a status report, a hook, the title, the kernel, the screen…) makes a claim. The claim on the highest source is
//! the authority; without any claim, silence decides. Everything comes with its time and its offset in the output: nothing
//! here reads a clock, a file or a process.

mod animation;
mod claim;
mod detector;
mod editor;
mod hook;
mod kernel;
mod outlook;
mod rules;
mod settling;
mod status;
mod title;

pub use claim::{Claim, Confidence, EvidenceSource};
pub use detector::{Change, DetectedState, Detector, Evidence, Moment, RulesResult, ScreenSample};
pub use hook::Hook;
pub use kernel::{Probe, ProbedProcess, Waits};
pub use rules::{Matched, RuleProblem, Rules};

pub use crate::activity::{Activity, Why};
