//! The command line: which measures, which peers, how much.

use std::path::PathBuf;

use clap::Parser;

use crate::measure::{MEASURES, Measure};
use crate::peer::{PEERS, Peer};

#[derive(Debug, Parser)]
#[command(
    name = "agency-bench",
    about = "Measure Agency beside other holders of terminal sessions, interleaved in one run",
    after_help = "\
Examples:
  agency-bench                            everything; about ten minutes
  agency-bench --quick                    small sizes, to check that it works
  agency-bench --only echo,attach --peers agency,tmux,bare
  agency-bench --json run.json --page docs/performance.md
  agency-bench --from run.json --page docs/performance.md"
)]
pub struct Options {
    /// Small sizes, one round: shows that everything works, not how fast it is
    #[arg(long)]
    pub quick: bool,
    /// Only these measures
    #[arg(long, value_delimiter = ',', value_name = "MEASURES", value_parser = measure)]
    pub only: Vec<&'static str>,
    /// Only these peers; without it, all that are installed
    #[arg(long, value_delimiter = ',', value_name = "PEERS", value_parser = peer)]
    pub peers: Vec<&'static str>,
    /// Megabytes of the large `cat`
    #[arg(long, value_name = "MB")]
    pub size: Option<usize>,
    /// How often each peer is measured
    #[arg(long)]
    pub rounds: Option<usize>,
    /// Write every value of every round to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print the tables as Markdown, for a page
    #[arg(long)]
    pub markdown: bool,
    /// Write the tables into this page, between its two marks
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// Measure nothing; show the run that --json wrote to this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "only", "peers", "size", "rounds", "json"])]
    pub from: Option<PathBuf>,
}

fn measure(text: &str) -> Result<&'static str, String> {
    let names = MEASURES.iter().map(|measure| measure.name);
    let known = names.clone().collect::<Vec<_>>().join(", ");
    names.into_iter().find(|name| *name == text).ok_or(format!("there are {known}"))
}

fn peer(text: &str) -> Result<&'static str, String> {
    let known = PEERS.iter().map(|peer| peer.name).collect::<Vec<_>>().join(", ");
    Peer::named(text).map(|peer| peer.name).ok_or(format!("there are {known}"))
}

impl Options {
    pub fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick { 1 } else { 5 }).max(1)
    }

    pub fn measures(&self) -> Vec<&'static Measure> {
        let wanted = |measure: &&Measure| self.only.is_empty() || self.only.contains(&measure.name);
        MEASURES.iter().filter(wanted).collect()
    }

    pub fn peers(&self) -> Vec<&'static Peer> {
        let wanted = |peer: &&Peer| self.peers.is_empty() || self.peers.contains(&peer.name);
        PEERS.iter().filter(wanted).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn measures_and_peers_are_chosen_by_name() {
        let options = Options::parse_from(["agency-bench", "--only", "echo,cat", "--peers", "agency,bare"]);
        let measures: Vec<&str> = options.measures().iter().map(|measure| measure.name).collect();
        assert_eq!(measures, ["cat", "echo"]);
        assert_eq!(options.peers().iter().map(|peer| peer.name).collect::<Vec<_>>(), ["agency", "bare pty"]);
        assert!(Options::try_parse_from(["agency-bench", "--only", "nothing"]).is_err());
    }
}
