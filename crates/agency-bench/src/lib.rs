//! What the measuring programs share: figures, tables, and pages that hold them.

pub mod figure;
pub mod page;
pub mod table;
