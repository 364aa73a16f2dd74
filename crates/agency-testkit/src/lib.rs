//! Fakes for tests: an agent that plays a script, a sealed environment, a terminal, seeded random numbers.
//!
//! Real programs on real terminals, nothing mocked. Uses none of our other crates, so that each of them may use it.

mod binaries;
mod command_output;
mod eventually;
mod flood;
mod pause;
mod process;
mod pty;
mod ready;
mod rng;
mod sealed;

pub use binaries::Binaries;
pub use command_output::CommandOutput;
pub use eventually::eventually;
pub use flood::Flood;
pub use pause::Pause;
pub use process::Process;
pub use pty::{Pty, TerminalModes};
pub use rng::{Rng, seed_or};
pub use rustix::process::Signal;
pub use sealed::{Keeper, Sealed};
