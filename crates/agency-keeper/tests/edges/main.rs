//! The keeper against the real thing: real terminals, real processes, real signals.
//!
//! One binary, because each one more costs a link. Nothing sleeps: every wait is for an event.

mod harness;

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
