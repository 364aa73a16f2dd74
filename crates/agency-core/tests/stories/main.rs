//! Stories of the supervisor: what happens, line by line, and what it decides.

mod crashing;
mod excluding;
mod finding;
mod limits;
mod matrix;
mod removing;
mod script;
mod setting_up;
mod shutting_down;
mod starting;
mod stopping;
mod verdicts;
