//! Which recordings, and what the detector may know.

use std::path::PathBuf;

use clap::Parser;

use crate::knowledge::Knowledge;

#[derive(Debug, Parser)]
#[command(
    name = "accuracy",
    about = "Judge over recordings with ground truth when Agency says that an agent needs its user",
    after_help = "\
Examples:
  accuracy                                all recordings, with and without the rules
  accuracy --verbose --with everything    every mistake, with its file and time
  accuracy --json run.json mine.cast      one recording, every phase of it

Exits with 1 if a goal is missed."
)]
pub struct Options {
    /// The recordings; all of the project when absent
    pub files: Vec<PathBuf>,
    /// What the detector may know
    #[arg(long = "with", value_delimiter = ',', value_enum, value_name = "KNOWLEDGE",
          default_values_t = Knowledge::ALL)]
    pub knowledge: Vec<Knowledge>,
    /// List every phase that was missed, and all that was said falsely
    #[arg(long)]
    pub verbose: bool,
    /// Write what was found of every phase to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Put the tables between the marks in this page
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// The project whose recordings and rules these are
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub project: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_hold_together() {
        Options::command().debug_assert();
        assert_eq!(Options::parse_from(["accuracy"]).knowledge, Knowledge::ALL);
        let options = Options::parse_from(["accuracy", "--with", "everything"]);
        assert_eq!(options.knowledge, [Knowledge::Everything]);
    }
}
