//! Commands about the work in workspaces: look at it, take it over.

use clap::Args;

use super::TaskName;

#[derive(Debug, Args)]
#[command(after_help = "\
Against the place where the task's branch left its base, with all that is not
committed and files that git does not know yet; ignored files are left out. On a
terminal it is shown in $GIT_PAGER, $PAGER or less; elsewhere it is a patch that
`git apply` takes.

Examples:
  agency diff fix-login
  agency diff fix-login --stat
  agency diff fix-login --turn 3        # what the agent's third turn did
  agency diff fix-login | git apply     # take it over without its commits")]
pub(crate) struct Diff {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Files and counts alone
    #[arg(long)]
    pub(crate) stat: bool,
    /// What one turn of the agent's did, counted from 1
    #[arg(long, value_name = "N")]
    pub(crate) turn: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
