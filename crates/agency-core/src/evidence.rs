//! Evidence about what an agent does, and the decision between contradicting evidence.
//!
//! Each witness (a status report, a hook, the title, the kernel, the screen…) makes a claim. The claim on the highest source is
//! the authority; without any claim, silence decides. Everything comes with its time and its offset in the output: nothing
//! here reads a clock, a file or a process.

mod animation;
mod choice;
mod claim;
mod contradiction;
mod detector;
mod editor;
mod field;
mod hook;
mod kernel;
mod key_words;
mod memory;
mod menu;
mod menu_watch;
mod outlook;
mod question;
mod rules;
mod settling;
mod sign;
mod status;
mod ticker;
mod title;
mod user_words;

pub use choice::Choice;
pub use claim::{Claim, Confidence, EvidenceSource};
pub use detector::{Change, DetectedState, Detector, Evidence, Moment, RulesResult, ScreenSample};
pub use field::{Field, field};
pub use hook::Hook;
pub use kernel::{Probe, ProbedProcess, Waits, is_shell_name};
pub use memory::{Belief, CannotContradict, Correction, ProgramMemory};
pub use menu::{Menu, MenuForm, is_furniture, menu};
pub use menu_watch::MenuSample;
pub use rules::{Matched, RuleProblem, Rules};
pub use sign::sign_texts;
pub use ticker::{Ticker, tickers};
pub use user_words::UserWords;

pub use crate::activity::{Activity, Why};
