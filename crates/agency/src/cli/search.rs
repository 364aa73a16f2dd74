//! The command that finds words again.

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::complete;

#[derive(Debug, Args)]
#[command(after_help = "\
Finds what was said to agents and by them: messages, thinking, tool calls with
what they printed, plans, approvals, notices, errors; and the names, labels and
texts of tasks. Every word has to be there, the last may go on; words between
double quotes stand in that order. Case and accents do not count. The newest come
first.

What an agent showed in a terminal is a screen and no conversation, and is not
searched: `agency logs TASK | grep WORD`.

Examples:
  agency search login
  agency search '\"connection refused\" redis' --project
  agency search timeout --task fix-login --limit 100
  agency search login --json | jq -r '.hits[] | \"\\(.task) \\(.number)\"'")]
pub(crate) struct Search {
    /// What to look for
    #[arg(required = true, value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// Only in this task
    #[arg(long, value_name = "TASK", add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) task: Option<String>,
    /// Only in the project around this directory
    #[arg(long, conflicts_with = "task")]
    pub(crate) project: bool,
    /// In every project, which is so if nothing else is said
    #[arg(short, long, conflicts_with_all = ["task", "project"])]
    pub(crate) all: bool,
    /// At most so many hits
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) limit: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
