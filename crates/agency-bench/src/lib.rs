//! The parts that `agency-bench` and `accuracy` share: figures, tables, pages with figures, and the frame of a program.

pub mod figure;
pub mod page;
pub mod program;
pub mod table;
