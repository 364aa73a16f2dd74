//! The command line: which recordings, and which rules the detector may use.

use std::path::PathBuf;

use clap::Parser;

use crate::half::Half;
use crate::knowledge::Knowledge;

#[derive(Debug, Parser)]
#[command(
    name = "accuracy",
    about = "Compare the states that Agency detects in recordings with the true ones",
    after_help = "\
Examples:
  accuracy                                all recordings, with and without the rules
  accuracy --verbose --with everything    every mistake, with its file and time
  accuracy --json run.json mine.cast      one recording, every phase of it
  accuracy --half unseen --verbose        programs without rules, the half to work with
  accuracy --half unseen,held-out --live target/accuracy-live
                                          both halves, in replay and as a daemon saw them

Exits with 1 if a goal is missed."
)]
pub struct Options {
    /// The recordings; without any, all of the project
    pub files: Vec<PathBuf>,
    /// Judge programs without rules of their own instead, with all shipped rules
    #[arg(long = "half", value_delimiter = ',', value_enum, value_name = "HALF", conflicts_with = "files")]
    pub halves: Vec<Half>,
    /// The directory of live runs, made by `scripts/record-unseen --out DIR`
    #[arg(long, value_name = "DIR", requires = "halves")]
    pub live: Option<PathBuf>,
    /// The rules that the detector may use
    #[arg(long = "with", value_delimiter = ',', value_enum, value_name = "KNOWLEDGE",
          default_values_t = Knowledge::ALL)]
    pub knowledge: Vec<Knowledge>,
    /// List every mistake: missed waits, false reports, late reports
    #[arg(long)]
    pub verbose: bool,
    /// Write the result for every phase to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the tables into this page, between its two marks
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// The project that has the recordings and the rules
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub project: PathBuf,
}

impl Options {
    pub fn rules(&self) -> PathBuf {
        self.project.join("crates/agency-core/rules")
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
        assert_eq!(Options::parse_from(["accuracy"]).knowledge, Knowledge::ALL);
        let options = Options::parse_from(["accuracy", "--with", "everything"]);
        assert_eq!(options.knowledge, [Knowledge::Everything]);
    }
}
