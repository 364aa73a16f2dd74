//! Commands that maintain Agency itself: daemon, shared processes, orphans, removal.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use crate::complete;

#[derive(Debug, Subcommand)]
pub(crate) enum Daemon {
    /// Show whether the daemon is running, since when, and where its files are
    #[command(after_help = "Exit code 1 if it is not running.\n\nExamples:\n  agency daemon status --json")]
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Start the daemon if it is not running
    #[command(after_help = "Examples:\n  agency daemon start")]
    Start,
    /// Stop the daemon; agents keep running unless you pass --agents
    #[command(after_help = "Examples:\n  agency daemon stop\n  agency daemon stop --agents")]
    Stop {
        /// Stop every agent first, and close every terminal
        #[arg(long)]
        agents: bool,
        /// Close terminals even if programs run in them
        #[arg(long, requires = "agents")]
        force: bool,
    },
    /// Stop the daemon and start it again; agents keep running
    #[command(after_help = "Examples:\n  agency daemon restart")]
    Restart,
    /// Write a service file that starts the daemon at login
    #[command(after_help = "\
Writes a systemd user unit, or a launchd agent on macOS. Stopping or restarting
the service leaves the agents running, as `agency daemon stop` does. The command
does not enable the service; it prints the commands for that.

Examples:
  agency daemon install
  agency daemon install --print")]
    Install {
        /// Print the file and write nothing
        #[arg(long)]
        print: bool,
    },
    /// Remove the service file; agents keep running
    #[command(after_help = "Examples:\n  agency daemon uninstall")]
    Uninstall,
    /// Run the daemon in the foreground
    #[command(hide = true)]
    Run,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Any use of Agency in a repository adds it to the list. From everywhere, NAME/TASK
names a task of the project NAME.

Examples:
  agency projects
  agency projects add ~/src/shop
  agency projects forget shop     # its files and tasks stay
  agency attach shop/fix-login"
)]
pub(crate) struct Projects {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<ProjectsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProjectsCommand {
    /// Add a project to the list
    #[command(after_help = "Examples:\n  agency projects add ~/src/shop")]
    Add {
        /// A directory in the project
        directory: PathBuf,
    },
    /// Leave a project out of lists until you use it again; deletes nothing
    #[command(after_help = "Examples:\n  agency projects forget shop\n  agency projects forget ~/src/shop")]
    Forget {
        /// The name or the path of the project
        #[arg(add = ArgValueCompleter::new(complete::projects))]
        project: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Checks programs, versions, permissions, limits, the daemon and what earlier runs
left behind, and suggests a fix for each problem. It changes nothing, but it starts
the daemon if none is running, because that has to work too.
Exit code 1 if something is broken, 0 if there are only warnings.

Examples:
  agency doctor
  agency doctor --json | jq -r '.findings[] | select(.level == \"broken\") | .fix'")]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
An agent with the driver acp (Agent Client Protocol) serves all its tasks with one
process, which starts with the first of these tasks. If the process ends, Agency
restarts it after 1, 2, 4, 8 and 16 seconds, and its sessions continue.

Examples:
  agency connections
  agency connections --sessions claude-code   # the sessions that the agent knows
  agency connections --json")]
pub(crate) struct Connections {
    /// List the sessions that this agent knows, including those of other programs
    #[arg(long, value_name = "CONNECTION")]
    pub(crate) sessions: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Stops the process, if it is running, and starts a new one at once. Its sessions
continue. A message in progress is reported as lost and is not resent.

Examples:
  agency reconnect claude-code")]
pub(crate) struct Reconnect {
    /// The name from `agency connections`, usually the name of the agent
    #[arg(value_name = "CONNECTION")]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
An orphan is a running agent that no task owns, for example because the directory
of its project was deleted.

Examples:
  agency orphans
  agency orphans adopt k3v9x0a2bc     # return it to its task; recreate the task if needed
  agency orphans stop k3v9x0a2bc"
)]
pub(crate) struct Orphans {
    #[command(subcommand)]
    pub(crate) command: Option<OrphanCommand>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OrphanCommand {
    /// Stop an orphan and everything it started
    #[command(visible_alias = "stop", after_help = "Examples:\n  agency orphans stop k3v9x0a2bc")]
    Kill(RunName),
    /// Return an orphan to its task and attach to it
    #[command(visible_alias = "adopt", after_help = "Examples:\n  agency orphans adopt k3v9x0a2bc")]
    Attach(RunName),
}

#[derive(Debug, Args)]
pub(crate) struct RunName {
    /// The run, as `agency orphans` lists it
    pub(crate) run: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Lists every file, directory, branch, hidden ref and line that Agency has created,
in all projects. Then it asks, and removes them. It refuses while agents are
running, and, without --discard, if a workspace has uncommitted or unmerged work.
In that case it removes nothing. The programs stay: remove them the way you
installed them.

Examples:
  agency uninstall --dry-run
  agency daemon stop --agents && agency uninstall
  agency uninstall --yes --discard      # also remove uncommitted and unmerged work")]
pub(crate) struct Uninstall {
    /// Only list what would be removed
    #[arg(long, conflicts_with_all = ["yes", "discard"])]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Also remove uncommitted and unmerged work, and what `rm --discard` saved
    #[arg(long)]
    pub(crate) discard: bool,
    /// With --dry-run: print the list as JSON
    #[arg(long, requires = "dry_run")]
    pub(crate) json: bool,
}
