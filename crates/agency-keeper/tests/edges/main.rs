//! The keeper against real terminals, real processes and real signals.
//!
//! One binary, because each binary costs a link. Nothing sleeps: every wait is for an event.

mod harness;

mod holder;
mod hooks;
mod launching;
mod life;
mod notes;
mod peers;
mod probing;
mod rescue;
mod trees;
mod trouble;
mod waiter;
