//! Commands that run something in a task's workspace.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap_complete::ArgValueCompleter;

use super::TaskName;
use crate::complete;

#[derive(Debug, Args)]
#[command(after_help = "\
Opens a terminal in the workspace, with the task's $AGENCY_* variables, and attaches
to it. It runs $SHELL, or the COMMAND. Ctrl-q detaches, and the terminal stays open:
it outlives your own terminal and the daemon, as agents do. The same command attaches
to it again. A workspace can have many terminals, each with a name; the first is called
shell. The agent cannot see them, and they do not count towards max_agents.

Without a terminal of your own, the command opens one and prints its name. `agency
stop`, `agency rm` and `agency gc` close the terminals of a task. If a program runs in
one, they ask first, and in scripts they refuse without --force.

Examples:
  agency shell fix-login
  agency shell fix-login --name server -- npm run dev
  agency attach fix-login:server
  agency logs fix-login:server               # what it printed, also after its end
  agency shell fix-login --name server --close
  agency shells                              # all open terminals")]
pub(crate) struct OpenShell {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The name of the terminal: letters, digits and dashes
    #[arg(short = 'n', long = "name", value_name = "NAME")]
    pub(crate) shell: Option<String>,
    /// Open another terminal even if one is open
    #[arg(long, conflicts_with = "shell")]
    pub(crate) new: bool,
    /// Do not attach to the terminal
    #[arg(long)]
    pub(crate) no_attach: bool,
    /// Close the terminal, or without --name all terminals of the task
    #[arg(long, conflicts_with_all = ["new", "no_attach", "command"])]
    pub(crate) close: bool,
    /// Close it even if a program runs in it
    #[arg(long, requires = "close")]
    pub(crate) force: bool,
    /// A command to run instead of your shell
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Shows what runs in each terminal: the command that it was opened with, or the program
in the foreground of your shell.

Examples:
  agency shells
  agency shells fix-login --json")]
pub(crate) struct Shells {
    /// Id, slug, or a unique prefix of the slug; all tasks of all projects if absent
    #[arg(add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) task: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Prints the output of the command and exits with its exit code.

Examples:
  agency exec fix-login -- git status
  agency exec fix-login -- sh -c 'make test | tail -3'")]
pub(crate) struct Exec {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Runs the agent's `run` action in the task's workspace, next to the agent in its
terminal. Prints its output and exits with its exit code.

Examples:
  agency run fix-login \"which tests cover the login?\"")]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The question
    #[arg(required = true, value_name = "MESSAGE")]
    pub(crate) text: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Lists one directory of the workspace. The daemon resolves the path and refuses one
that leads out of the workspace, also through a symbolic link.

Examples:
  agency files fix-login
  agency files fix-login src --json      # with kinds and sizes")]
pub(crate) struct Files {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The directory, relative to the workspace
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Prints the file as it is now, also if it is not committed. With --json you also get
its digest for `agency write --expect`, and at most its first 4 MiB.

Examples:
  agency cat fix-login src/login.rs
  agency cat fix-login src/login.rs --json | jq -r .digest")]
pub(crate) struct Cat {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The file, relative to the workspace
    pub(crate) path: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Reads the new content from standard input and prints its digest (SHA-256). It
replaces the file only if the file has the digest of --expect, so it never
overwrites what an agent wrote meanwhile. Without --expect it only makes new files.

Examples:
  agency write fix-login notes.md < notes.md
  sha=$(agency cat fix-login a.txt --json | jq -r .digest)
  agency write fix-login a.txt --expect $sha < a.txt")]
pub(crate) struct WriteFile {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The file, relative to the workspace
    pub(crate) path: PathBuf,
    /// The digest that the file must have now
    #[arg(long, value_name = "DIGEST")]
    pub(crate) expect: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
