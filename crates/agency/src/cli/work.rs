//! Commands about the work in workspaces: look at it, take it over.

use clap::Args;

use super::TaskName;

#[derive(Debug, Args)]
#[command(after_help = "\
Against the place where the task's branch left its base, with all that is not
committed and files that git does not know yet; ignored files are left out. On a
terminal it is shown in $GIT_PAGER, git's core.pager, $PAGER or less; elsewhere it
is a patch that `git apply` takes.

Examples:
  agency diff fix-login
  agency diff fix-login --stat
  agency diff fix-login --turn 3        # what turn 3 did: `agency turns fix-login` lists them
  agency diff fix-login | git apply     # take it over without its commits")]
pub(crate) struct Diff {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Files and counts alone
    #[arg(long)]
    pub(crate) stat: bool,
    /// What one turn of the agent's did, as `agency turns` counts those that changed something
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) turn: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Opens the diff in your editor ($VISUAL, $EDITOR). Whatever lines you add to it are
remarks about the line above them; all of them go to the agent as one message,
at its prompt. Without remarks you are asked whether you accept the work: the
task becomes reviewed. Without a terminal the diff is printed.

Examples:
  agency review fix-login
  agency review fix-login --accept
  agency queue fix-login               # remarks that wait for the agent's prompt")]
pub(crate) struct Review {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Say that the work has been looked at and is good
    #[arg(long)]
    pub(crate) accept: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Only completed and reviewed tasks, without a live agent. All of it is merged or
nothing is changed: conflicts are named and refuse it, and so do changes in a
checkout of the target that are not committed. Your hooks, identity and signing
have their say. The task becomes merged; its workspace stays until `agency rm`.

Examples:
  agency merge fix-login
  agency merge fix-login --squash -m \"Make the login work\"
  agency merge fix-login --rebase --into develop
  agency merge fix-login --commit       # commits what is not committed first")]
pub(crate) struct Merge {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// As one commit
    #[arg(long, conflicts_with_all = ["rebase", "ff"])]
    pub(crate) squash: bool,
    /// Its commits, written anew on top of the target
    #[arg(long, conflicts_with = "ff")]
    pub(crate) rebase: bool,
    /// Its commits as they are; refused if the target has others
    #[arg(long)]
    pub(crate) ff: bool,
    /// A local branch; the default is the task's base, or the current branch if that is none
    #[arg(long, value_name = "BRANCH")]
    pub(crate) into: Option<String>,
    /// The message of the new commit
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// Commit what is not committed in the workspace first
    #[arg(long)]
    pub(crate) commit: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The task's commits are written anew on top of its base; as they were, they are
kept under a hidden ref, which is printed. Conflicts are named, and nothing
changes then. Files that are not committed stay as they are, and refuse it if
they are in the way. An agent at work refuses it.

Examples:
  agency sync fix-login
  agency sync fix-login --merge         # a merge commit instead")]
pub(crate) struct Sync {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// A merge commit instead of commits written anew
    #[arg(long)]
    pub(crate) merge: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Looks at every workspace of the project that may be merged one day, with what is
not committed in it. It is also looked at in the background when agents have done
something; `agency ls` shows what was found.

Examples:
  agency conflicts
  agency conflicts --json | jq -r '.conflicts[] | \"\\(.slug): \\(.conflict.with)\"'")]
pub(crate) struct Conflicts {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
