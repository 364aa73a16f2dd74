//! Commands that review, merge, remove and restore the work of tasks.

use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCompleter;

use super::TaskName;
use crate::{complete, moment};

#[derive(Debug, Args)]
#[command(after_help = "\
Compares the workspace with the commit at which the task's branch left its base.
Includes uncommitted changes and untracked files, but no ignored files. On a
terminal the diff opens in $GIT_PAGER, git's core.pager, $PAGER or less; elsewhere
the command prints a patch for `git apply`.

Examples:
  agency diff fix-login
  agency diff fix-login --stat
  agency diff fix-login --turn 3        # the changes of turn 3; see `agency turns`
  agency diff fix-login | git apply     # take the changes without the commits")]
pub(crate) struct Diff {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Show only file names and line counts
    #[arg(long)]
    pub(crate) stat: bool,
    /// Show the changes of one turn; `agency turns` lists the turns that changed files
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) turn: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Opens the diff in your editor ($VISUAL, $EDITOR). Each line that you add is a
remark about the line above it. Agency sends them and all open remarks of `agency
remark` to the agent in one message, once the agent is at its prompt. Without remarks, Agency asks whether you
accept the work; if you do, the task becomes reviewed. Without a terminal the
command prints the diff.

Examples:
  agency review fix-login
  agency review fix-login --accept
  agency queue fix-login               # remarks that wait for the agent's prompt")]
pub(crate) struct Review {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Accept the work without opening the diff
    #[arg(long)]
    pub(crate) accept: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A remark is about a line, a file, or without a place about the whole change. It keeps
to its line while the agent edits the file. If the line is changed or deleted, the
remark is outdated, and --send leaves it out. --send sends all open remarks as one
message with file, line and quote, once the agent is at its prompt.

Examples:
  agency remark fix-login src/a.rs:17 \"handle the error\"
  agency remark fix-login src/a.rs:17 --old \"why did you remove this?\"
  agency remark fix-login src/a.rs \"split this file\"
  agency remark fix-login --whole \"add tests\"
  agency remarks fix-login
  agency remark fix-login --drop 2
  agency remark fix-login --send")]
pub(crate) struct Remark {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// FILE:LINE or FILE, then the remark
    #[arg(value_name = "PLACE AND TEXT", required_unless_present_any = ["drop", "send"])]
    pub(crate) words: Vec<String>,
    /// The line is one that the work removed, with its number in the old file
    #[arg(long)]
    pub(crate) old: bool,
    /// The remark is about the whole change
    #[arg(long, conflicts_with = "old")]
    pub(crate) whole: bool,
    /// Drop the remark with this number
    #[arg(long, value_name = "ID", conflicts_with_all = ["words", "old", "whole", "send"])]
    pub(crate) drop: Option<u64>,
    /// Send all open remarks to the agent as one message
    #[arg(long, conflicts_with_all = ["words", "old", "whole"])]
    pub(crate) send: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A remark is open, outdated (its line is gone) or sent. The line is the present one.

Examples:
  agency remarks fix-login
  agency remarks fix-login --json")]
pub(crate) struct Remarks {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
On a terminal, Agency lists every obstacle and asks once: stop the agent, commit the
files, merge? Without a terminal it refuses and lists the same;
--finish does it without a question. An agent that is in the middle of its turn is
stopped only if you say yes or pass --interrupt. Agency merges everything or changes
nothing: it refuses on conflicts, which it names, and on uncommitted changes in a
checkout of the target branch. Your git hooks, identity and signing apply. The task
becomes completed and merged; its workspace stays until `agency rm`.

Examples:
  agency merge fix-login
  agency merge fix-login --finish       # for scripts: commit, stop its agent, merge
  agency merge fix-login --squash -m \"Make the login work\"
  agency merge fix-login --rebase --into develop")]
pub(crate) struct Merge {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Merge as one commit
    #[arg(long, conflicts_with_all = ["rebase", "ff"])]
    pub(crate) squash: bool,
    /// Rebase the task's commits onto the target
    #[arg(long, conflicts_with = "ff")]
    pub(crate) rebase: bool,
    /// Fast-forward only; refused if the target has other commits
    #[arg(long)]
    pub(crate) ff: bool,
    /// The target, a local branch; by default the task's base, or the current branch if the base is not a branch
    #[arg(long, value_name = "BRANCH")]
    pub(crate) into: Option<String>,
    /// The message of the new commit
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// Commit uncommitted changes in the workspace first
    #[arg(long)]
    pub(crate) commit: bool,
    /// Commit uncommitted changes and stop the agent first, without a question
    #[arg(long)]
    pub(crate) finish: bool,
    /// With --finish: stop the agent even in the middle of its turn
    #[arg(long, requires = "finish")]
    pub(crate) interrupt: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Rebases the task's commits onto its base. The previous commits are saved under a
hidden ref, which the command prints. On conflicts, Agency names them and changes
nothing. Uncommitted files stay as they are; if they are in the way, the command
is refused. It is also refused while the agent is working.

Examples:
  agency sync fix-login
  agency sync fix-login --merge         # make a merge commit instead
  agency sync fix-login --agent         # let its agent resolve a conflict")]
pub(crate) struct Sync {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Make a merge commit instead of rebasing
    #[arg(long)]
    pub(crate) merge: bool,
    /// On a conflict, ask the agent to resolve it; starts the agent if it is not running
    #[arg(long, conflicts_with = "json")]
    pub(crate) agent: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Checks every unmerged workspace of the project, including uncommitted changes.
Agency also checks in the background when agents have changed something; `agency
ls` shows the results.

Examples:
  agency conflicts
  agency conflicts --json | jq -r '.conflicts[] | \"\\(.slug): \\(.conflict.with)\"'")]
pub(crate) struct Conflicts {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Refuses to remove a workspace with uncommitted or unmerged work, unless you pass
--discard. In both cases `agency undo` restores everything: files, branch, task
and conversation. It restores ignored files only with workspace.keep_ignored;
before it acts, rm prints how many ignored files there are and what else is lost.
workspace.teardown runs first; if it fails, nothing is removed without --discard.
Open terminals of the task are closed; if a program runs in one, rm asks first, and
in a script it refuses without --force.

Examples:
  agency rm fix-login
  agency rm 1 2 3
  agency rm --merged             # every merged task of this project
  agency rm --discard fix-login
  agency undo                    # restores what the last rm removed")]
pub(crate) struct Rm {
    /// Ids, slugs, or unique prefixes of slugs
    #[arg(required_unless_present = "merged", value_name = "TASK", add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) tasks: Vec<String>,
    /// Remove every merged task of this project
    #[arg(long, conflicts_with = "tasks")]
    pub(crate) merged: bool,
    /// Remove even uncommitted or unmerged work
    #[arg(long)]
    pub(crate) discard: bool,
    /// Close its terminals even if programs run in them
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without an ID, undoes the newest removal or merge of this project. A removal comes
back with its workspace, files, index, branch, task and runs; everything that one gc
or rm removed comes back together. A merge is taken back as long as nothing was built
on it: its target moves to the commit before, and the task is completed again. An ID
comes from --list, or is the id or slug of a task. If another task or branch has taken
the name, nothing changes. Removed tasks stay in the trash until `agency gc --trash`.

--turn restores the files of a workspace to the state before the agent's last
turn, or after turn N (0: before the first turn). Agency saves the current state
first and prints its id. The agent must not be working. Agents in terminals have
no recorded turns.

Examples:
  agency undo
  agency undo --list
  agency undo fix-login
  agency undo --turn fix-login
  agency undo --turn fix-login 2")]
pub(crate) struct Undo {
    /// The removal or merge to undo
    #[arg(value_name = "ID", conflicts_with_all = ["list", "turn"])]
    pub(crate) id: Option<String>,
    /// List everything that can be undone
    #[arg(long, conflicts_with = "turn")]
    pub(crate) list: bool,
    /// Undo the last turn of a task's agent, or all turns after turn N
    #[arg(long, num_args = 1..=2, value_names = ["TASK", "N"])]
    pub(crate) turn: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
`agency new GROUP --best-of …` makes candidates: tasks with the same message and
different agents. Agents in terminals report no cost.

Examples:
  agency compare landing
  agency diff landing-2
  agency promote landing/2")]
pub(crate) struct Compare {
    /// The name that was given to `agency new`
    pub(crate) group: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The agents of the other candidates are stopped and their tasks go to the trash with
all of their work; `agency undo` restores each of them.

Examples:
  agency promote landing/2
  agency merge landing-2")]
pub(crate) struct Promote {
    /// The candidate, as `agency compare` lists it: GROUP/NUMBER
    pub(crate) candidate: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
With the drivers stream-json and acp, Agency saves the workspace at the end of
each turn that changed a file. It uses hidden refs and does not touch branches,
index or HEAD. Agents in terminals have no recorded turns.

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
Removes merged tasks, and tasks that are completed, failed, reviewed or stopped if
all of their work is in the base. Prints a reason for each task that it removes
and for each that it keeps. It keeps tasks with a running agent and tasks with
uncommitted or unmerged work. `agency undo` restores a removed task.

With --trash, deletes old entries from the trash permanently, with their
conversations. Nothing else deletes them.

Examples:
  agency gc --dry-run
  agency gc
  agency gc --trash --dry-run
  agency gc --trash --older-than 7d")]
pub(crate) struct Gc {
    /// Only show what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Delete from the trash instead
    #[arg(long)]
    pub(crate) trash: bool,
    /// The minimum age in the trash: `30d`, or `0s` for everything
    #[arg(long, value_name = "AGE", default_value = "30d", requires = "trash", value_parser = moment::parse_span)]
    pub(crate) older_than: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
