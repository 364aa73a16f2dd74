//! Stories of the supervisor: what happens, line by line, and what it decides.

mod crashing;
mod finding;
mod limits;
mod removing;
mod script;
mod setting_up;
mod shutting_down;
mod starting;
mod stopping;
mod verdicts;
