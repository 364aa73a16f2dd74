//! The command line: the seed, how long, which faults.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::agent::Role;
use crate::names;

#[derive(Debug, Parser)]
#[command(
    name = "agency-chaos",
    about = "Run Agency under random faults and check every line, message, commit and process",
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  agency-chaos --seed 7 --minutes 20
  agency-chaos --faults kill-daemon,pause-keeper
  agency-chaos --only kill-daemon,kill-keeper --kills 2000,500 --minutes 60"
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub options: Options,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Play one of the agents of a run
    #[command(hide = true)]
    Agent(Role),
}

#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Repeat the plan of this seed; without it, the seed is random and printed
    #[arg(long)]
    pub seed: Option<u64>,
    /// How long to make faults; the checks at the end come on top
    #[arg(long, default_value_t = 5.0)]
    pub minutes: f64,
    /// Which faults: names, or `all`
    #[arg(long, value_delimiter = ',', default_value = "all")]
    pub faults: Vec<String>,
    /// Only these faults, one in every step
    #[arg(long, value_delimiter = ',', conflicts_with = "faults")]
    pub only: Vec<String>,
    /// End as soon as this many daemons and keepers have been killed
    #[arg(long, value_name = "DAEMONS,KEEPERS", value_parser = parse_kills)]
    pub kills: Option<(u64, u64)>,
    /// Keep the directory of the run even if nothing is wrong
    #[arg(long)]
    pub keep: bool,
    /// Print every step
    #[arg(long)]
    pub verbose: bool,
    /// List the names of all faults
    #[arg(long)]
    pub list: bool,
}

impl Options {
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.minutes.max(0.0) * 60.0)
    }

    /// The names of the enabled faults.
    pub fn enabled(&self) -> Result<BTreeSet<&'static str>, String> {
        let words = if self.only.is_empty() { &self.faults } else { &self.only };
        let mut enabled = BTreeSet::new();
        for word in words {
            match word.as_str() {
                "all" => enabled.extend(names::ALL),
                word => enabled.extend([names::find(word)?]),
            }
        }
        Ok(enabled)
    }
}

fn parse_kills(text: &str) -> Result<(u64, u64), String> {
    let pair = text
        .split_once(',')
        .and_then(|(daemons, keepers)| Some((daemons.parse().ok()?, keepers.parse().ok()?)));
    pair.ok_or_else(|| "two numbers are needed, as in 2000,500".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn enabled(words: &[&str]) -> Result<BTreeSet<&'static str>, String> {
        Cli::parse_from([&["agency-chaos"], words].concat()).options.enabled()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn faults_are_chosen_by_name_and_all_of_them_by_default() {
        assert_eq!(enabled(&[]).expect("names").len(), names::ALL.len());
        let one = enabled(&["--only", "kill-daemon"]).expect("a name");
        assert_eq!(one.into_iter().collect::<Vec<_>>(), ["kill-daemon"]);
        assert!(enabled(&["--faults", "kill-demon"]).is_err());
    }
}
