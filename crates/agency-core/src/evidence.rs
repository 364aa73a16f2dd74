//! Who needs the user: what was seen, what it means, and which evidence decides.
//!
//! Each witness (a status report, a hook, the title, the kernel, the screen…) makes a claim; the claim on the
//! highest rung that has one is the authority, and silence decides where nobody claims anything. Everything
//! comes with its time and its place in the output: nothing here looks at a clock, a file or a process.

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

pub use claim::{Activity, Claim, Confidence, Rung, Why};
pub use detector::{Change, Consulted, Detector, Evidence, Look, Mark, Standing};
pub use hook::Hook;
pub use kernel::{Probe, ProbedProcess, Waits};
pub use rules::{Matched, RuleProblem, Rules};
