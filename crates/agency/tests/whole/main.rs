//! The whole program: the real binary, a real daemon, real keepers and real git, in a home of its own.
//!
//! Nothing is mocked. What a story waits for is a condition that it can see, never a time.

mod api;
mod attach;
mod bad_inputs;
mod care;
mod config;
mod daemon;
mod delivery;
mod elsewhere;
mod ending;
mod environment;
mod files;
mod fold;
mod inside;
mod journal;
mod json;
mod limits;
mod line_programs;
mod load;
mod new;
mod notify;
mod orphans;
mod picture;
mod places;
mod privacy;
mod programs;
mod queue;
mod queued;
mod recording;
mod refusals;
mod reports;
mod rescue;
mod screen_rules;
mod second_opinion;
mod sigkill;
mod stage;
mod status;
mod talk;
mod told;
mod trust;
mod views;
mod waiting;
mod window;
mod words;
mod workspace;
