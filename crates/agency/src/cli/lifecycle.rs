//! Commands that start and follow agents.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;

use super::{TaskName, TaskNames};
use crate::agent_wait::Until;
use crate::task_filter::TaskFilter;
use crate::task_order::Sort;
use crate::{complete, moment};

#[derive(Debug, Args)]
#[command(after_help = "\
Without -m, your editor ($VISUAL, $EDITOR) opens for the text, and leaving it
without a text starts nothing; in a script the text comes from standard input. On a terminal you are then attached; ctrl-q
detaches, and the agent keeps running. Otherwise the command prints one line: id,
slug, status.

Examples:
  agency new fix-login -m \"make the login work\"
  agency new -m \"make the login work\"       # its name is made from the text
  agency new fix-login --agent claude-code
  agency new fix-login --no-attach < issue.md
  agency new login-2 --agent claude-code --resume 64782cd6-9e4f   # continues an old session
  agency new later --draft -m \"an idea\"      # starts nothing
  agency new build -- make -j8               # runs a command instead of an agent
  agency new fix -n 5 -m \"fix test {{num}}\"   # makes fix-1 to fix-5 and starts all agents
  agency new fix --foreach bugs.txt -m \"fix: {{line}}\"
  agency new landing --best-of claude-code,codex -m \"a landing page\"   # then: agency compare landing

With -n, --foreach or --best-of, Agency makes all tasks or none: it checks max_agents before it
makes the first one. {{num}} and {{line}} are also filled into a COMMAND.")]
pub(crate) struct New {
    /// The name of the task: letters, digits and dashes; by default from the text
    pub(crate) slug: Option<String>,
    /// The first message for the agent
    #[arg(short, long = "message", value_name = "MESSAGE")]
    pub(crate) message: Option<OsString>,
    /// The agent; by default the configured one, or the first that is installed
    #[arg(long, add = ArgValueCompleter::new(complete::agents))]
    pub(crate) agent: Option<String>,
    /// How Agency talks to the agent: terminal, stream-json or acp
    #[arg(long)]
    pub(crate) driver: Option<String>,
    /// The branch that the task starts from; by default the current branch
    #[arg(long, value_name = "BRANCH")]
    pub(crate) base_branch: Option<String>,
    /// Add a label; may be given more than once
    #[arg(long = "label", value_name = "LABEL")]
    pub(crate) labels: Vec<String>,
    /// Create the task without starting it
    #[arg(long)]
    pub(crate) draft: bool,
    /// Do not attach to the agent
    #[arg(long)]
    pub(crate) no_attach: bool,
    /// Print JSON and do not attach
    #[arg(long)]
    pub(crate) json: bool,
    /// Continue this earlier session of the agent, in the workspace of the new task
    #[arg(long, value_name = "SESSION")]
    pub(crate) resume: Option<String>,
    /// Use a git worktree, a jj workspace, or the current directory itself (works outside a repository)
    #[arg(long, value_enum)]
    pub(crate) vcs: Option<Vcs>,
    /// Make N tasks and start all their agents; {{num}} in the message becomes 1 to N
    #[arg(short, long, value_name = "N", conflicts_with_all = ["foreach", "resume"])]
    pub(crate) number: Option<u32>,
    /// Make a task for each line of a file (`-`: standard input) and start all their agents; {{line}} in the message
    /// becomes the line, and without -m the line is the message
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub(crate) foreach: Option<PathBuf>,
    /// Give the same message to several agents and promote the best work: names of agents, or a number of equal ones
    #[arg(long, value_name = "AGENTS", conflicts_with_all = ["number", "foreach", "resume"])]
    pub(crate) best_of: Option<String>,
    /// A command to run instead of an agent
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Vcs {
    Git,
    Jj,
    None,
}

impl Vcs {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Vcs::Git => "git",
            Vcs::Jj => "jj",
            Vcs::None => "none",
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
STATE says what the task wants or does, and for how long. Tasks that need you come
first: an agent that asks, then work that is done, then agents at their prompts.
Work that you have not looked at is bold, work that you have looked at is dim.
Merged tasks are counted in one line; --all-states lists them too.

--state takes the words of the STATE column with dashes (asks-permission, done,
at-its-prompt, working, …) and the states of --json (needs-input, stale, …). With
several words or several filters, a task must fit one word of every filter.

--watch keeps the list on the screen: the daemon sends every change, and nothing
runs in between. q or ctrl-c leaves.

--brief prints one short line for a shell prompt or a status line, for example
`2 ask · 1 done · 4 work`, and nothing if no daemon is running. It counts the
tasks of the current project, and outside a project those of all projects.

Examples:
  agency ls
  agency ls --all --needs-me
  agency ls --watch --all
  agency ls --state working,done --label api
  set -g status-right '#(agency ls --all --brief)'          # in tmux.conf
  agency ls --json | jq -r '.tasks[] | select(.waiting_for) | .slug'
  agency ls --json | jq -r '.tasks[] | select(.waiting_for == \"permission\") | .slug'")]
pub(crate) struct Ls {
    /// List the tasks of every project
    #[arg(short, long)]
    pub(crate) all: bool,
    /// List merged tasks too
    #[arg(long)]
    pub(crate) all_states: bool,
    #[command(flatten)]
    pub(crate) filter: TaskFilter,
    /// The order of the tasks; by default those that need you come first
    #[arg(long, value_enum, value_name = "ORDER")]
    pub(crate) sort: Option<Sort>,
    /// Keep the list on the screen and up to date
    #[arg(short, long, conflicts_with_all = ["json", "brief"])]
    pub(crate) watch: bool,
    /// Print one short line of counts, for a shell prompt or a status line
    #[arg(long, conflicts_with = "json")]
    pub(crate) brief: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Opens the terminal of a task, or its conversation if it has no terminal. Without
TASK: the task that `agency next` opens, or else the newest running one.

Ctrl-q leaves; the agent keeps running. Ctrl-q twice, or ctrl-q and n, goes on to
the next task that needs you. To use another key, set detach_keys in config.toml
or AGENCY_DETACH_KEYS (`ctrl-p,ctrl-q` is a sequence, `none` turns it off). If you
run Agency inside Agency, the outer one sees the key first. You stay attached when
the daemon restarts.

If another viewer types, your first key says so, and Enter takes over.

The viewer that types decides the size of the terminal. A viewer of another size
sees the part around the cursor, or empty space beside the screen. With --frames,
Agency draws every frame itself and positions each unusual character. Use it for
terminals that give emoji or symbols other widths, for example over ssh. Images
and new scrollback are not shown then.

The first time, the scrollback of the agent goes to the scrollback of your terminal.
When the same terminal attaches again, it gets the newest 200 lines of it only;
--all-history sends everything again, and `agency logs` prints it.

Examples:
  agency attach fix-login
  agency attach shop/fix-login         # from everywhere
  agency attach 3 --read-only
  agency attach fix --take             # take control from another viewer")]
pub(crate) struct Attach {
    /// Id, slug or unique prefix of a slug; from elsewhere PROJECT/TASK
    #[arg(add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) task: Option<String>,
    /// Take control from the viewer that types now
    #[arg(long, conflicts_with = "read_only")]
    pub(crate) take: bool,
    /// Watch only: send no keys and do not change the size
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Draw complete frames instead of passing on the agent's output
    #[arg(long)]
    pub(crate) frames: bool,
    /// Send the whole scrollback, even if this terminal has it already
    #[arg(long)]
    pub(crate) all_history: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A task has at most one agent process: starting it twice does not start a second
one. Scrollback is kept across runs. Agency sets up a new workspace first
(`agency help setup`); ctrl-c stops the setup, and the workspace stays.
With another --driver, the agent continues the same session; if it cannot, the
command is refused and says why.

--all starts, in every project, the agents that a reboot, a shutdown of the daemon or
a signal ended. They continue their sessions.

Examples:
  agency start fix-login
  agency start -a fix-login
  agency start 2 3
  agency start --all             # after a reboot")]
pub(crate) struct Start {
    /// Ids, slugs, or unique prefixes of slugs
    #[arg(required_unless_present = "all", value_name = "TASK", add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) tasks: Vec<String>,
    /// Start every agent that a reboot or a shutdown ended
    #[arg(long, conflicts_with_all = ["tasks", "attach"])]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) options: StartOptions,
    /// Print JSON, one document per line
    #[arg(long, conflicts_with = "attach")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Stops the agent first, with everything that it started. With another --driver, the
agent continues the same session.

Examples:
  agency restart fix-login
  agency restart fix-login --driver terminal     # it was stream-json before")]
pub(crate) struct Restart {
    #[command(flatten)]
    pub(crate) name: TaskName,
    #[command(flatten)]
    pub(crate) options: StartOptions,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StartOptions {
    /// Use another driver from now on: terminal, stream-json or acp
    #[arg(long, value_name = "DRIVER")]
    pub(crate) driver: Option<String>,
    /// Start a new session of the agent, with the text of the task
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Attach to the agent
    #[arg(short, long)]
    pub(crate) attach: bool,
    /// Skip setup commands that have not run yet
    #[arg(long)]
    pub(crate) skip_setup: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The agent gets SIGTERM and SIGHUP, and SIGKILL if it is still running after its
grace period (2 s). Child processes that left its process group are stopped too;
the command names them. The terminals of the task are closed; if a program runs in
one, the command asks first, and in a script it refuses without --force. The
workspace stays.

Examples:
  agency stop fix-login
  agency stop 2 3
  agency stop --all              # every agent of this project
  agency start fix-login         # start it again")]
pub(crate) struct Stop {
    /// Ids, slugs, or unique prefixes of slugs
    #[arg(required_unless_present = "all", value_name = "TASK", add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) tasks: Vec<String>,
    /// Stop every agent of this project
    #[arg(long, conflicts_with = "tasks")]
    pub(crate) all: bool,
    /// Close their terminals even if programs run in them
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON, one document per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A pinned task is at the top of every list.

Examples:
  agency pin fix-login
  agency pin fix-login --off")]
pub(crate) struct Pin {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Take the pin away
    #[arg(long)]
    pub(crate) off: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Until then the task does not count as one that needs you: `agency ls` shows it
below, and `agency next` passes it over. It comes back by itself earlier if it
needs you for something new: its agent asks again, finishes or fails.

Examples:
  agency snooze fix-login 14:30
  agency snooze fix-login --for 2h
  agency snooze fix-login --off")]
pub(crate) struct Snooze {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// A time of day, or a date and a time
    #[arg(value_name = "UNTIL", value_parser = moment::parse_future, conflicts_with_all = ["span", "off"])]
    pub(crate) until: Option<jiff::Timestamp>,
    /// For this long: `30m`, `2h`, `1d`
    #[arg(long = "for", id = "span", value_name = "TIME", value_parser = moment::parse_span, conflicts_with = "off")]
    pub(crate) span: Option<Duration>,
    /// Bring the task back now
    #[arg(long)]
    pub(crate) off: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The agent gets the new text at its next fresh start: the first start of a draft, or
`agency start --fresh`. A running agent has its text already; `agency send` reaches it.
Without -m, the text opens in $VISUAL or $EDITOR, or comes from standard input if
that is not a terminal. If you leave the editor without a change, or with an empty
text, the text stays as it was.

Examples:
  agency edit fix-login
  agency edit fix-login -m \"make the login work, and test it\"
  agency edit fix-login < plan.md")]
pub(crate) struct Edit {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The new text
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) message: Option<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Changes the name of a draft: its file, and the name that lists, completions and
commands use. Its id stays. After the first start a task keeps its name, because its
branch, its workspace and its recordings have that name.
No other task that is not merged may have the new name.

Examples:
  agency rename fix-login repair-login")]
pub(crate) struct Rename {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The new name
    #[arg(value_name = "NEW-NAME")]
    pub(crate) slug: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Waits for all of the tasks, or with --any for the first one. `finished` is an agent
that is done or at its prompt, `needs-input` one that waits for anything. While a
message for the agent is queued, the agent does not count as finished.
Exit codes: 0 the state was reached, 3 the agent exited first, 4 timed out.
A stale agent counts as one that needs input.

Examples:
  agency wait fix-login && agency send fix-login \"go on\"
  agency wait fix-login --until exited --timeout 10m
  agency wait 1 2 3 --any --until permission,question --json")]
pub(crate) struct Wait {
    #[command(flatten)]
    pub(crate) names: TaskNames,
    /// Wait for the first of the tasks
    #[arg(long)]
    pub(crate) any: bool,
    /// The state to wait for; with several, separated by commas, the first one ends the wait
    #[arg(long, value_enum, value_delimiter = ',', default_value = "needs-input")]
    pub(crate) until: Vec<Until>,
    /// Stop waiting after this time: seconds, or `90s`, `10m`
    #[arg(long, value_name = "TIME", value_parser = moment::parse_seconds_or_span)]
    pub(crate) timeout: Option<Duration>,
    /// Print JSON, one document per line
    #[arg(long)]
    pub(crate) json: bool,
}
