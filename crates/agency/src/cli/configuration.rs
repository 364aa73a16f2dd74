//! Commands that configure Agency, connect it to other programs, and show help.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Sources, the last one wins for each key: defaults, your file, the project's
.agency/config.toml, AGENCY_… variables (AGENCY_MAX_AGENTS is max_agents),
--config KEY=VALUE.

Examples:
  agency config                          # every key and its value, as TOML
  agency config --show-origin            # and where each value comes from
  agency config set max_agents 20
  agency config set agents.mine.start my-agent '$AGENCY_PROMPT'
  agency config edit                     # check and save your file from $VISUAL or $EDITOR"
)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: Option<ConfigCommand>,
    /// Show where each value comes from
    #[arg(long)]
    pub(crate) show_origin: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the value of one key
    #[command(after_help = "\
Exit code 1 if the key is not set.

Examples:
  agency config get max_agents
  agency config get agents.codex.start --json")]
    Get {
        /// A key, as `agency config` lists it
        key: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Set a key; comments and the rest of the file stay unchanged
    #[command(after_help = "\
Checks the value before it writes the file, and says when the change takes effect.

Examples:
  agency config set needs_input_timeout 10s
  agency config set --project default_agent codex
  agency config set agents.mine.start '[\"my-agent\", \"--prompt\", \"$AGENCY_PROMPT\"]'
  agency config set agents.mine.start -- my-agent --prompt '$AGENCY_PROMPT'
  agency config set agents.mine.env.RUST_LOG info")]
    Set {
        /// A key, as `agency config` lists it
        key: String,
        /// The value; for a command, also its words one by one
        #[arg(required = true, value_name = "VALUE")]
        words: Vec<String>,
        /// Change the project's file instead of yours
        #[arg(long)]
        project: bool,
    },
    /// Remove a key from the file
    #[command(after_help = "Examples:\n  agency config unset max_agents")]
    Unset {
        /// A key, as `agency config` lists it
        key: String,
        /// Change the project's file instead of yours
        #[arg(long)]
        project: bool,
    },
    /// Edit the file; Agency checks it before it is saved
    #[command(after_help = "Examples:\n  agency config edit\n  agency config edit --project")]
    Edit {
        /// Edit the project's file instead of yours
        #[arg(long)]
        project: bool,
    },
    /// Print the path of the file
    #[command(after_help = "Examples:\n  cat \"$(agency config path)\"")]
    Path {
        /// Print the path of the project's file instead of yours
        #[arg(long)]
        project: bool,
    },
    /// Print the JSON Schema of config.toml, for editors
    #[command(after_help = "\
Examples:
  agency config schema > ~/.config/agency/schema.json
  # then put this first in config.toml: #:schema ./schema.json")]
    Schema,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A repository can contain a .agency/config.toml or task files that run commands.
Agency runs them only after you have trusted exactly this content. When it changes,
Agency asks again.

Examples:
  agency trust                   # show the commands and ask
  agency trust --yes             # in a script
  agency trust --list            # everything that you trust, in all projects
  agency trust --revoke")]
pub(crate) struct Trust {
    /// Stop trusting this project
    #[arg(long, conflicts_with = "yes")]
    pub(crate) revoke: bool,
    /// List the projects that you trust, and their commands
    #[arg(long, conflicts_with_all = ["yes", "revoke"])]
    pub(crate) list: bool,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["yes", "revoke"])]
    pub(crate) json: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Asks only the built-in agents for their version, because an unknown program might
do anything when it is run.

Examples:
  agency agents
  agency agents --no-versions
  agency agents --json | jq -r '.agents[] | select(.installed) | .name'")]
pub(crate) struct Agents {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not ask programs for their version, which can take a second
    #[arg(long)]
    pub(crate) no_versions: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NotifyCommand {
    /// Send a test notification on every configured channel
    #[command(after_help = "\
Exit code 1 if a configured channel does not work. A desktop in do-not-disturb mode
may accept a notification without showing it, so check that you see it.

Examples:
  agency notify test
  agency notify test --json | jq -r '.ways[] | select(.outcome == \"failed\") | .detail'")]
    Test {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Runs an MCP server on standard input and output. With it, an agent can start,
watch, wait for, read and message other tasks of its project. `agency ls` shows a
task that an agent started below that agent's task. You set the limits in
config.toml:

  [mcp]
  allow     = [\"list_tasks\", \"read_task\"]   # the allowed tools; docs/configuration.md
  depth     = 1                             # agents that agents start may start none
  max_tasks = 5                             # live tasks per agent

Agents can interrupt and stop only the tasks that they started. They cannot answer
approvals for you, unless you allow `answer_approval`.

Agency recognizes an agent by AGENCY_RUN_ID in its environment. Codex passes on
only the variables that ~/.codex/config.toml names:

  [mcp_servers.agency]
  command  = \"agency\"
  args     = [\"mcp\"]
  env_vars = [\"AGENCY_SOCKET\", \"AGENCY_RUN_ID\", \"AGENCY_PROJECT_ROOT\"]

Over ACP (`--driver acp`) tasks share a process. `offer = true` in [mcp] gives each
session this server with the variables of its own task.

Examples:
  claude mcp add --scope user agency -- agency mcp     # for Claude Code, in all projects
  claude mcp add agency -- agency mcp                  # in this project only")]
pub(crate) struct Mcp {}

#[derive(Debug, Args)]
#[command(after_help = "\
The script completes commands, options, and the current names of tasks and agents.

Examples:
  echo 'source <(agency completions bash)' >> ~/.bashrc
  echo 'source <(agency completions zsh)' >> ~/.zshrc      # below compinit
  echo 'agency completions fish | source' >> ~/.config/fish/config.fish")]
pub(crate) struct Completions {
    /// Your shell
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
On a terminal, opens the page with man; otherwise prints its source.

Examples:
  agency man
  agency man new
  agency man daemon stop
  agency man --install ~/.local/share/man      # then: man agency-new")]
pub(crate) struct Man {
    /// The command, for example `daemon stop`; without it, the page of Agency
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands to DIR/man1
    #[arg(long, visible_alias = "dir", value_name = "DIR", conflicts_with = "command", value_hint = ValueHint::DirPath)]
    pub(crate) install: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agency help                  # the commands of a normal day
  agency help --all            # all commands
  agency help daemon stop      # the same as: agency daemon stop --help")]
pub(crate) struct Help {
    /// The command, for example `daemon stop`
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// List all commands
    #[arg(short, long, conflicts_with = "command")]
    pub(crate) all: bool,
}
