//! Fakes for tests: an agent that plays a script, a sealed environment, a terminal, a seeded story.
//!
//! Real programs on real terminals, nothing mocked. Uses none of our other crates, so that each of them may use it.

mod binaries;
mod census;
mod eventually;
mod flood;
mod furnish;
mod gate;
mod process;
mod pty;
mod ran;
mod ready;
mod rng;
mod sealed;

pub use binaries::Binaries;
pub use census::Keeper;
pub use eventually::eventually;
pub use flood::Flood;
pub use gate::Gate;
pub use process::Process;
pub use pty::{Pty, TerminalModes};
pub use ran::Ran;
pub use rng::{Rng, seed_or};
pub use rustix::process::Signal;
pub use sealed::Sealed;
