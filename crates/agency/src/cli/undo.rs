//! Commands that bring back and clear up, as clap reads them.

use std::time::Duration;

use clap::Args;

use super::TaskName;
use crate::moment;

#[derive(Debug, Args)]
#[command(after_help = "\
Without an ID the newest removal of this project is undone: the workspace with
its files and index, the branch, the task and its runs. An ID is one of --list, or
the id or slug of a removed task. If another task or branch has its name by now,
nothing changes. What is removed stays in the trash until `agency gc --trash`.

--turn puts the files of a workspace back as they were before the last turn of its
agent, or after turn N (0: before the first). What is there now is kept first; its
id is printed. The agent must not be at work. Terminals have no turns.

Examples:
  agency undo
  agency undo --list
  agency undo fix-login
  agency undo --turn fix-login
  agency undo --turn fix-login 2")]
pub(crate) struct Undo {
    /// What to bring back
    #[arg(value_name = "ID", conflicts_with_all = ["list", "turn"])]
    pub(crate) id: Option<String>,
    /// Show what can be brought back
    #[arg(long, conflicts_with = "turn")]
    pub(crate) list: bool,
    /// Take the last turn of a task's agent back, or all after turn N
    #[arg(long, num_args = 1..=2, value_names = ["TASK", "N"])]
    pub(crate) turn: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Where the driver knows turns (stream-json, acp) the workspace is kept at the end of
each turn that changed something, under hidden refs: no branch, index or HEAD is
touched.

Examples:
  agency turns fix-login
  agency undo --turn fix-login 2")]
pub(crate) struct Turns {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Removes tasks that are merged, and those that are completed, failed, reviewed or
stopped with all of their work in the base; says why each goes and why the others
stay. One that lives, or has work that is not committed or not merged, stays. What
goes can be had back: `agency undo`.

With --trash what has been in the trash for long is deleted for good, with its
conversation. Nothing else ever deletes it.

Examples:
  agency gc --dry-run
  agency gc
  agency gc --trash --dry-run
  agency gc --trash --older-than 7d")]
pub(crate) struct Gc {
    /// Only say what would go
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Delete from the trash instead
    #[arg(long)]
    pub(crate) trash: bool,
    /// How long it has been there: `30d`, `0s` for everything
    #[arg(long, value_name = "AGE", default_value = "30d", requires = "trash", value_parser = moment::parse_span)]
    pub(crate) older_than: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
