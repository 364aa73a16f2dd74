//! What to measure, of whom, and how much of it.

use std::path::PathBuf;
use std::time::Duration;

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
  agency-bench --quick                    small sizes, to see that it works
  agency-bench --only echo,attach --peers agency,tmux,bare
  agency-bench --json run.json --page docs/performance.md
  agency-bench --from run.json --page docs/performance.md"
)]
pub struct Options {
    /// Small sizes, one round: shows that everything works and says nothing about speed
    #[arg(long)]
    pub quick: bool,
    /// Only these measures
    #[arg(long, value_delimiter = ',', value_name = "MEASURES", value_parser = measure)]
    pub only: Vec<&'static str>,
    /// Only these peers; all that are installed when absent
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
    /// Put the tables between the marks in this page
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// Measure nothing: show the run in this file, written by --json
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

/// How much of everything.
#[derive(Clone, Debug)]
pub struct Sizes {
    pub megabytes: usize,
    /// A file of that size.
    pub log: PathBuf,
    /// A quarter of it.
    pub small_log: PathBuf,
    /// As many lines as a scrollback holds, and a screen.
    pub lines_log: PathBuf,
    pub keys: usize,
    pub attaches: usize,
    /// Printed before somebody attaches; more than a scrollback holds.
    pub lines: usize,
    pub sessions: Vec<usize>,
    /// Of these, each gets a full scrollback.
    pub full_sessions: usize,
    pub starts: usize,
    /// In the repository of those starts: enough that a worktree is work, as in a small project.
    pub files: usize,
    /// In a big one.
    pub many_files: usize,
    pub big_starts: usize,
    /// Started there by as many callers.
    pub at_once: usize,
    pub agents: usize,
    /// How often they are listed.
    pub lists: usize,
    /// Of the long conversation.
    pub entries: usize,
    pub idle: Duration,
    /// Longer than an agent takes to be called stale, after which nothing more is said of it.
    pub lull: Duration,
    /// Who has done nothing for so long is done.
    pub quiet: Duration,
}

impl Sizes {
    /// Logs in this directory, which are not written yet.
    pub fn of(options: &Options, dir: &std::path::Path) -> Sizes {
        let quick = options.quick;
        Sizes {
            megabytes: options.size.unwrap_or(if quick { 1 } else { 100 }).max(1),
            log: dir.join("log"),
            small_log: dir.join("small-log"),
            lines_log: dir.join("lines-log"),
            keys: if quick { 20 } else { 400 },
            attaches: if quick { 1 } else { 10 },
            lines: if quick { 2_000 } else { 12_000 },
            sessions: if quick { vec![1, 2] } else { vec![1, 10, 100] },
            full_sessions: if quick { 2 } else { 5 },
            files: if quick { 20 } else { 500 },
            starts: if quick { 2 } else { 10 },
            many_files: if quick { 200 } else { 50_000 },
            big_starts: if quick { 1 } else { 5 },
            at_once: if quick { 2 } else { 20 },
            agents: if quick { 4 } else { 200 },
            lists: if quick { 3 } else { 50 },
            entries: if quick { 200 } else { 2_000 },
            lull: Duration::from_secs(if quick { 0 } else { 75 }),
            quiet: Duration::from_millis(if quick { 40 } else { 250 }),
            idle: if quick { Duration::from_millis(100) } else { Duration::from_secs(5) },
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_hold_together() {
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
