//! Commands that look after Agency itself: what is installed, what it needs, how to be rid of it.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

#[derive(Debug, Args)]
#[command(after_help = "\
Looks at programs, versions, permissions, limits, the daemon and what earlier
runs left behind, and says for each finding what to do about it. Mends nothing
itself; starts the daemon if none runs, because that has to work too.
Exit code 1 when something is broken, 0 when there are only warnings.

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
Only the agents that are built in are asked for their version: another program
might do anything when it is called.

Examples:
  agency agents
  agency agents --no-versions
  agency agents --json | jq -r '.agents[] | select(.installed) | .name'")]
pub(crate) struct Agents {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not ask programs for their version, which may take a second
    #[arg(long)]
    pub(crate) no_versions: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Prints what a shell needs to complete commands, options, and the names of tasks
and agents as they are at that moment.

Examples:
  echo 'source <(agency completions bash)' >> ~/.bashrc
  echo 'source <(agency completions zsh)' >> ~/.zshrc      # below compinit
  echo 'agency completions fish | source' >> ~/.config/fish/config.fish")]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
#[command(after_help = "\
On a terminal the page is shown with man; otherwise its source is printed.

Examples:
  agency man
  agency man new
  agency man daemon stop
  agency man --install ~/.local/share/man      # then: man agency-new")]
pub(crate) struct Man {
    /// The command, in as many words as it has; Agency itself when absent
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands to DIR/man1
    #[arg(long, visible_alias = "dir", value_name = "DIR", conflicts_with = "command", value_hint = ValueHint::DirPath)]
    pub(crate) install: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Lists every file, directory, branch, hidden ref and line that Agency has made,
in all projects; then asks, and removes them. Refuses while agents live. A
workspace with uncommitted or unmerged work stops it before anything is removed,
unless --discard is given. The programs themselves stay: remove them as they
were installed.

Examples:
  agency uninstall --dry-run
  agency daemon stop --agents && agency uninstall
  agency uninstall --yes --discard      # also what is not committed or merged")]
pub(crate) struct Uninstall {
    /// Only list what would be removed
    #[arg(long, conflicts_with_all = ["yes", "discard"])]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Remove also work that is not committed or not merged, and what `rm --discard` kept
    #[arg(long)]
    pub(crate) discard: bool,
    /// The list as JSON; with --dry-run
    #[arg(long, requires = "dry_run")]
    pub(crate) json: bool,
}
