//! Stories of a journal on a real file system.

mod checkpoints;
mod damage;
mod fixture;
mod follow;
mod full_disk;
mod retention;
mod round_trip;
mod sealing;
mod tail;
mod torn_tail;
