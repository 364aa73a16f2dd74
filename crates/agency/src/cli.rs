//! The command line as clap reads it: names, options, and help that teaches.
//!
//! Only definitions. What a command does is in the file of its name under `command/`.

use std::ffi::OsString;
use std::path::PathBuf;

mod care;
mod mcp;
mod search;
mod talk;
mod undo;
mod work;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::ArgValueCompleter;

pub(crate) use care::{Agents, Completions, Doctor, Man, Shell, Uninstall};
pub(crate) use mcp::Mcp;
pub(crate) use search::Search;
pub(crate) use talk::{Approvals, Approve, Chat, Connections, Cost, Deny, Reconnect, SettingArgs};
pub(crate) use undo::{Gc, Turns, Undo};
pub(crate) use work::{Conflicts, Diff, Merge, Review, Sync};

use crate::complete;

#[derive(Debug, Parser)]
#[command(
    name = "agency",
    version,
    about = "Run many coding agents side by side, each in a workspace of its own",
    long_about = "Run many coding agents side by side, each in a workspace of its own.\n\n\
        A task is one piece of work for one agent. It gets a git worktree and a branch, and a terminal\n\
        that goes on when you leave, when Agency is upgraded and when the daemon crashes.",
    after_help = "\
Examples:
  agency new fix-login -m \"make the login work\"   start an agent and watch it
  ctrl-q                                          leave; the agent goes on
  agency ls                                       who is working, who needs you
  agency attach fix-login                         come back
  agency rm fix-login                             remove workspace and task

A TASK is named by its id, its slug, or any unique beginning of the slug.
`agency help COMMAND` shows examples for each command."
)]
pub(crate) struct Cli {
    /// Say nothing but what was asked for, and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Set a key of the configuration for this command alone
    #[arg(long = "config", global = true, value_name = "KEY=VALUE", help_heading = "Configuration")]
    pub(crate) options: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a task, start its agent, and attach to it
    New(New),
    /// List tasks: what runs, what waits for you
    #[command(visible_alias = "list")]
    Ls(Ls),
    /// Show a task's terminal and type into it
    Attach(Attach),
    /// Type a text into a task's terminal and press Enter
    Send(Send),
    /// Read a task's conversation and talk to its agent
    Chat(Chat),
    /// Find words in conversations and in the texts of tasks
    Search(Search),
    /// What agents want to do and may not before you say so
    Approvals(Approvals),
    /// Allow what an agent asks for, or answer its question
    Approve(Approve),
    /// Do not allow what an agent asks for
    Deny(Deny),
    /// End an agent's turn; its session goes on
    #[command(after_help = "\
For tasks with a conversation. In a terminal: agency send TASK --keys esc

Examples:
  agency interrupt fix-login")]
    Interrupt(TaskName),
    /// Show or change the model that an agent uses
    #[command(after_help = "\
For tasks with a conversation. Names are the agent's own.

Examples:
  agency model fix-login            # which one, and which there are
  agency model fix-login opus")]
    Model(SettingArgs),
    /// Show or change how much an agent may do without asking
    #[command(after_help = "\
For tasks with a conversation. Names are the agent's own.

Examples:
  agency mode fix-login
  agency mode fix-login plan")]
    Mode(SettingArgs),
    /// Agents that serve many tasks with one process: how they stand
    Connections(Connections),
    /// Start such an agent's process again, and bring its sessions back
    Reconnect(Reconnect),
    /// Tokens and money per task, as the agents report them
    Cost(Cost),
    /// Texts that wait for an agent's prompt: list them, take them back
    Queue(Queue),
    /// Print what a task's agent printed, as text
    Logs(Logs),
    /// Show a task's screen and scrollback as they are now, without attaching
    Screen(Screen),
    /// Write what a task's terminal showed to a recording (asciicast v2)
    Export(Export),
    /// Play a recording
    Replay(Replay),
    /// Start a task's agent, or wake an idle one
    Start(Start),
    /// End a task's agent and everything it started
    #[command(after_help = "\
The agent gets SIGTERM and SIGHUP, and SIGKILL if it is still there after its
grace (2 s). Children that left its process group are ended too, and named. The
workspace stays.

Examples:
  agency stop fix-login
  agency start fix-login         # brings it back")]
    Stop(TaskName),
    /// Stop a task's agent, wait until it is gone, start it again
    Restart(Start),
    /// Set a running task aside: its agent lives on and keeps its slot
    #[command(after_help = "\
Examples:
  agency idle fix-login
  agency start fix-login         # running again, the same process")]
    Idle(TaskName),
    /// Say that a task's work is done
    #[command(after_help = "\
The agent is left alone: say `agency stop` to end it.

Examples:
  agency complete fix-login
  agency start fix-login         # there was more to do after all")]
    Complete(TaskName),
    /// Say that a task's work has failed
    #[command(after_help = "\
The agent is left alone: say `agency stop` to end it.

Examples:
  agency fail fix-login
  agency start fix-login         # try again in the same workspace")]
    Fail(TaskName),
    /// Set a task's workspace up again: copy files, run the setup commands
    #[command(after_help = "\
Copies what .worktreeinclude and workspace.copy name and is not there, then runs
workspace.setup (docs/configuration.md). A fresh workspace is set up by itself
before its agent starts; this is for one whose setup failed or has changed. The
agent must not run. Ctrl-c ends it.

Examples:
  agency setup fix-login
  agency logs fix-login --setup      # what it printed
  agency start fix-login --skip-setup")]
    Setup(TaskName),
    /// What a task's workspace changes
    Diff(Diff),
    /// Read a task's work, write remarks for its agent, accept it
    Review(Review),
    /// Merge a task's work into its base
    Merge(Merge),
    /// Bring the base's new commits into a task's workspace
    Sync(Sync),
    /// Which workspaces would collide with their base or with each other
    Conflicts(Conflicts),
    /// Remove a task and its workspace
    Rm(Rm),
    /// Bring back what was removed, or take an agent's turn back
    Undo(Undo),
    /// The turns of a task's agent, and what each of them changed
    Turns(Turns),
    /// Remove tasks that are finished, or empty the trash
    Gc(Gc),
    /// Open a task's workspace in your editor
    #[command(after_help = "\
Runs workspace.opener, else $VISUAL or $EDITOR with the workspace's directory. It
has the task's $AGENCY_* variables.

Examples:
  agency open fix-login
  agency config set workspace.opener code '$AGENCY_WORKTREE'")]
    Open(TaskName),
    /// Print the directory of a task's workspace
    #[command(after_help = "\
Examples:
  cd \"$(agency path fix-login)\"
  git -C \"$(agency path fix-login)\" log --oneline")]
    Path(TaskName),
    /// Open your own shell in a task's workspace
    #[command(after_help = "\
Runs $SHELL there, with the task's $AGENCY_* variables. It is yours, not the
agent's: it ends when you leave it.

Examples:
  agency shell fix-login")]
    Shell(TaskName),
    /// Run a command in a task's workspace
    Exec(Exec),
    /// Ask a task's agent one question, without its terminal
    Run(Run),
    /// Print what happens, as it happens
    Events(Events),
    /// Say why a task's agent is taken to work or to wait
    Explain(Explain),
    /// Block until a task's agent needs you, works, or has exited
    Wait(Wait),
    /// Attach to the agent that has waited longest for you
    #[command(after_help = "\
Of all projects. Those that you have looked at since they began to wait come
last. Without a terminal it prints the task instead: `{id} {slug} {status}`.

Examples:
  agency next")]
    Next,
    /// How you are told that an agent needs you
    #[command(after_help = "\
You are told when an agent begins to wait for you and when one crashes:
once for each change, not for what you are looking at, and together when many
change at once. `[notify]` in config.toml says how: a notification of the
desktop, a command of yours, a webhook, and the terminal of whoever is attached
to another task (docs/configuration.md).

Examples:
  agency notify test
  agency notify test --config notify.command='[\"tee\", \"/tmp/notice\"]'
  agency config set notify.webhook https://example.org/hook
  agency config set notify.on permission question exited")]
    Notify {
        #[command(subcommand)]
        command: NotifyCommand,
    },
    /// Agents that nobody owns any more: list, end or take them back
    Orphans(Orphans),
    /// The configuration in force: show, change, edit
    Config(Config),
    /// Agree to the commands in this project's configuration
    Trust(Trust),
    /// Every agent: what it runs, whether it is installed, where it was defined
    Agents(Agents),
    /// What is missing or wrong on this machine, and how to mend it
    Doctor(Doctor),
    /// The process behind it all: status, start, stop, restart
    #[command(after_help = "\
The daemon is started by the first command that needs it. Agents outlive it.

Examples:
  agency daemon status
  agency daemon restart          # after an upgrade; agents go on
  agency daemon stop --agents    # end every agent, then the daemon")]
    Daemon {
        #[command(subcommand)]
        command: Daemon,
    },
    /// Let an agent start, watch, read and message other tasks (MCP)
    Mcp(Mcp),
    /// Let a shell complete commands, tasks and agents
    Completions(Completions),
    /// Show or install the manual
    Man(Man),
    /// Remove everything that Agency has made
    Uninstall(Uninstall),
}

#[derive(Debug, Subcommand)]
pub(crate) enum NotifyCommand {
    /// Send a test by every way that is set up, and say for each whether it worked
    #[command(after_help = "\
Exit code 1 when a way that is set up does not work. What is sent there can also
fail to be shown, by a desktop that is told not to disturb, say: look.

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
pub(crate) struct TaskName {
    /// Id, slug, or a unique beginning of the slug
    #[arg(add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) task: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without -m your editor ($VISUAL, $EDITOR) opens for the text; in a script it is
read from standard input. On a terminal you are attached: ctrl-q leaves, and the
agent goes on. Otherwise one line is printed: id, slug, status.

Examples:
  agency new fix-login -m \"make the login work\"
  agency new fix-login --agent claude-code
  agency new fix-login --no-attach < issue.md
  agency new later --draft -m \"an idea\"      # nothing is started
  agency new build -- make -j8               # any command instead of an agent")]
pub(crate) struct New {
    /// The task's name: letters, digits and dashes
    pub(crate) slug: String,
    /// What the agent should do
    #[arg(short, long = "message", value_name = "TEXT")]
    pub(crate) message: Option<OsString>,
    /// Which agent; the default is the configured one, or the first installed
    #[arg(long, add = ArgValueCompleter::new(complete::agents))]
    pub(crate) agent: Option<String>,
    /// How to talk to the agent: terminal, stream-json or acp
    #[arg(long)]
    pub(crate) driver: Option<String>,
    /// Where the task's branch begins; the default is the current branch
    #[arg(long, value_name = "BRANCH")]
    pub(crate) base_branch: Option<String>,
    /// A label; may be given more than once
    #[arg(long = "label", value_name = "LABEL")]
    pub(crate) labels: Vec<String>,
    /// Write the task down and start nothing
    #[arg(long)]
    pub(crate) draft: bool,
    /// Stay here instead of showing the agent's terminal
    #[arg(long)]
    pub(crate) no_attach: bool,
    /// How the workspace is kept apart: a git worktree, a jj workspace, or not at all (works outside a repository)
    #[arg(long, value_enum)]
    pub(crate) vcs: Option<Vcs>,
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
STATUS is what was said about the task, STATE is what its agent does now.

Examples:
  agency ls
  agency ls --all
  agency ls --json | jq -r '.tasks[] | select(.workspace_status == \"needs_input\") | .slug'")]
pub(crate) struct Ls {
    /// The tasks of every project, not only of this one
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Ctrl-q leaves; the agent goes on. Another key: detach_keys in config.toml, or
AGENCY_DETACH_KEYS (`ctrl-p,ctrl-q` is a sequence, `none` turns it off). With one
Agency inside another the outer one sees the key first. If the daemon is
restarted, you stay attached.

Who types decides the size. A terminal of another size that looks on is shown
the part around the cursor, or where the screen ends. With --frames Agency draws
every picture itself and places each odd character, for terminals (over ssh, say)
that draw emoji or symbols with other widths; images and new scrollback are left
out then.

Examples:
  agency attach fix-login
  agency attach 3 --read-only
  agency attach fix --take             # someone else types; now you do")]
pub(crate) struct Attach {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Take over from the viewer who types now
    #[arg(long, conflicts_with = "read_only")]
    pub(crate) take: bool,
    /// Look, but send no keys and change no size
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Draw pictures instead of passing on what the agent prints
    #[arg(long)]
    pub(crate) frames: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Words are joined by spaces. `-` alone reads the text from standard input. The text
is pasted where the agent understands pastes, else typed; Enter follows when it
stands at the prompt. The receipt says what is known:

  delivered   there is evidence that the agent has taken it
  typed       its terminal has taken it; the agent has not shown that it did
  refused     it was not sent off (exit code 1): a dialog is open, say
  queued      it waits for the agent's prompt: see `agency queue`

Examples:
  agency send fix-login \"cargo test\"
  agency send fix-login --queue \"then write the tests\"
  agency send fix-login --keys down,enter      # answers a dialog
  agency send fix-login \"\"                    # only Enter
  git diff | agency send fix-login -")]
pub(crate) struct Send {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// What to type
    #[arg(required_unless_present = "keys", value_name = "TEXT")]
    pub(crate) text: Vec<OsString>,
    /// Do not press Enter after it
    #[arg(long)]
    pub(crate) no_enter: bool,
    /// Hold it until the agent is at its prompt
    #[arg(long, conflicts_with_all = ["no_enter", "anyway"])]
    pub(crate) queue: bool,
    /// Type it whatever is on the screen
    #[arg(long)]
    pub(crate) anyway: bool,
    /// Press these keys instead: `enter`, `down`, `esc`, `ctrl-c`, `1`; a comma list is a sequence
    #[arg(long, value_name = "KEYS", value_delimiter = ',', conflicts_with_all = ["text", "no_enter", "queue", "anyway"])]
    pub(crate) keys: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Texts given with `agency send --queue` wait here until their agent is at its
prompt, and outlive the daemon. One that may have been typed already, because its
daemon was killed or the agent did not take it, is marked uncertain and stays, with
those behind it: look, then drop it.

Examples:
  agency queue
  agency queue fix-login
  agency queue drop fix-login 3
  agency queue drop fix-login          # all of them"
)]
pub(crate) struct Queue {
    #[command(subcommand)]
    pub(crate) command: Option<QueueCommand>,
    /// Id, slug, or a unique beginning of the slug; all tasks if left out
    #[arg(value_name = "TASK", add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) task: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Take texts back before they are sent
    Drop(QueueDrop),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agency queue drop fix-login 3
  agency queue drop fix-login          # all of them")]
pub(crate) struct QueueDrop {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Its number; all of the task's if left out
    #[arg(value_name = "NUMBER")]
    pub(crate) number: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agency logs fix-login | tail -20
  agency logs fix-login -f
  agency logs fix-login --raw > session.bytes    # every byte, escape sequences included
  agency logs fix-login --setup                  # what the setup of its workspace printed
  agency logs --daemon -f                        # what the daemon does and finds")]
pub(crate) struct Logs {
    /// Id, slug, or a unique beginning of the slug
    #[arg(required_unless_present = "daemon", add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) task: Option<String>,
    /// The daemon's own log instead of a task's
    #[arg(long, conflicts_with_all = ["task", "raw"])]
    pub(crate) daemon: bool,
    /// What the last setup of its workspace printed
    #[arg(long, conflicts_with_all = ["daemon", "raw"])]
    pub(crate) setup: bool,
    /// Go on printing until the agent ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The bytes as they came, not as text
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agency screen fix-login | tail -5
  agency screen fix-login --json | jq .cursor
  agency screen fix-login --ansi > screen.ans     # with colours, for a terminal of the same size")]
pub(crate) struct Screen {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Size, cursor, title, modes and text as JSON
    #[arg(long, conflicts_with = "ansi")]
    pub(crate) json: bool,
    /// With colours and all, as a terminal draws it
    #[arg(long)]
    pub(crate) ansi: bool,
    /// As plain text, which is the default
    #[arg(long, conflicts_with_all = ["json", "ansi"])]
    pub(crate) text: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
What you typed is left out unless you ask for it. asciinema and `agency replay`
play the file.

Examples:
  agency export fix-login -o demo.cast
  agency export fix-login --input > with-keys.cast")]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Where to write it; standard output when absent
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Include what was typed (never what was typed without echo)
    #[arg(long)]
    pub(crate) input: bool,
    /// Write over a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agency replay demo.cast
  agency replay demo.cast --speed 4 --idle 1     # four times as fast, no pause over a second
  agency replay demo.cast --states               # when it worked, when it waited, and why")]
pub(crate) struct Replay {
    /// An asciicast v2 file
    pub(crate) file: PathBuf,
    /// How many times faster than it happened
    #[arg(long, default_value_t = 1.0, value_parser = positive)]
    pub(crate) speed: f64,
    /// No pause longer than this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub(crate) idle: Option<f64>,
    /// Print what the agent's state was when, and why, instead of playing it
    #[arg(long, conflicts_with_all = ["speed", "idle"])]
    pub(crate) states: bool,
    /// With --states: one JSON object a line
    #[arg(long, requires = "states")]
    pub(crate) json: bool,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("a number above 0 is needed".to_owned()),
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
A task has one process: starting it twice does not make two. Scrollback is kept
across runs. A fresh workspace is set up first (`agency help setup`); ctrl-c ends
that, and the workspace stays.
With another --driver it goes on with the same session of the agent,
or is refused with the reason.

Examples:
  agency start fix-login
  agency start -a fix-login
  agency restart fix-login
  agency restart fix-login --driver terminal     # was stream-json, say")]
pub(crate) struct Start {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Drive it otherwise from now on: terminal, stream-json or acp
    #[arg(long, value_name = "DRIVER")]
    pub(crate) driver: Option<String>,
    /// Begin a new session of the agent, with the task's text
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Show its terminal afterwards
    #[arg(short, long)]
    pub(crate) attach: bool,
    /// Go on without the setup commands that are still to be run
    #[arg(long)]
    pub(crate) skip_setup: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A workspace with uncommitted or unmerged work is refused, and nothing changes.
With --discard it goes all the same. Either way `agency undo` brings all of it
back: the files, the branch, the task and what was said. Ignored files come back
only with workspace.keep_ignored. workspace.teardown runs first; if it fails,
nothing is removed unless --discard is given.

Examples:
  agency rm fix-login
  agency rm --discard fix-login
  agency undo                    # brings it back")]
pub(crate) struct Rm {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Remove it even with uncommitted or unmerged work
    #[arg(long)]
    pub(crate) discard: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Output and exit code are the command's own.

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
Runs the agent's `run` action in the task's workspace, beside the agent in its
terminal. Output and exit code are its own.

Examples:
  agency run fix-login \"which tests cover the login?\"")]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// What to ask
    #[arg(required = true, value_name = "TEXT")]
    pub(crate) text: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agency events
  agency events --since 1h
  agency events --json | jq -c 'select(.type == \"StateChange\")'")]
pub(crate) struct Events {
    /// One JSON document a line
    #[arg(long)]
    pub(crate) json: bool,
    /// First what happened since then: `5m` ago, a time of day, or a date and time
    #[arg(long, value_name = "TIME", value_parser = crate::moment::parse)]
    pub(crate) since: Option<jiff::Timestamp>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Shows which evidence decides and since when, what other witnesses say, what would
change it, and the changes before.

Examples:
  agency explain fix-login
  agency explain fix-login --at 14:05        # why it was said to wait then
  agency explain fix-login --at 10m --json")]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// At a time in the past: `10m` ago, a time of day, or a date and time
    #[arg(long, value_name = "TIME", value_parser = crate::moment::parse)]
    pub(crate) at: Option<jiff::Timestamp>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 it got there, 3 its agent exited instead, 4 the time is over.
An agent that is stale needs input too.

Examples:
  agency wait fix-login && agency send fix-login \"go on\"
  agency wait fix-login --until exited --timeout 10m")]
pub(crate) struct Wait {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Which state; several, with commas between them, for whichever comes first
    #[arg(long, value_enum, value_delimiter = ',', default_value = "needs-input")]
    pub(crate) until: Vec<Until>,
    /// Give up after so long: `90s`, `10m`
    #[arg(long, value_name = "TIME", value_parser = crate::moment::parse_span)]
    pub(crate) timeout: Option<std::time::Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Until {
    NeedsInput,
    Running,
    Exited,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
An orphan is a live agent that no task owns: what stays, for example, when the
directory of its project is gone.

Examples:
  agency orphans
  agency orphans attach k3v9x0a2bc     # back into its task, remade if need be
  agency orphans kill k3v9x0a2bc"
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
    /// End an orphan and everything it started
    #[command(after_help = "Examples:\n  agency orphans kill k3v9x0a2bc")]
    Kill(RunName),
    /// Take an orphan back into its task and attach to it
    #[command(after_help = "Examples:\n  agency orphans attach k3v9x0a2bc")]
    Attach(RunName),
}

#[derive(Debug, Args)]
pub(crate) struct RunName {
    /// The run, as `agency orphans` lists it
    pub(crate) run: String,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Later ones win, key by key: defaults, your file, the project's .agency/config.toml,
AGENCY_… variables (AGENCY_MAX_AGENTS is max_agents), --config KEY=VALUE.

Examples:
  agency config                          # every key in force, as TOML
  agency config --show-origin            # and where each value comes from
  agency config set max_agents 20
  agency config set agents.mine.start my-agent '$AGENCY_PROMPT'
  agency config edit                     # your file in $VISUAL or $EDITOR, checked"
)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: Option<ConfigCommand>,
    /// Say where each value comes from
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
Exit code 1 when it is not set.

Examples:
  agency config get max_agents
  agency config get agents.codex.start --json")]
    Get {
        /// As `agency config` lists it
        key: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Set a key; comments and the rest of the file stay as they are
    #[command(after_help = "\
It is checked before anything is written, and the answer says when it counts.

Examples:
  agency config set needs_input_timeout 10s
  agency config set --project default_agent codex
  agency config set agents.mine.start '[\"my-agent\", \"--prompt\", \"$AGENCY_PROMPT\"]'
  agency config set agents.mine.start -- my-agent --prompt '$AGENCY_PROMPT'
  agency config set agents.mine.env.RUST_LOG info")]
    Set {
        /// As `agency config` lists it
        key: String,
        /// The value; for a command also its words, one by one
        #[arg(required = true, value_name = "VALUE")]
        words: Vec<String>,
        /// In the project's file instead of your own
        #[arg(long)]
        project: bool,
    },
    /// Take a key out of the file
    #[command(after_help = "Examples:\n  agency config unset max_agents")]
    Unset {
        /// As `agency config` lists it
        key: String,
        /// From the project's file instead of your own
        #[arg(long)]
        project: bool,
    },
    /// Edit the file; it is checked before it is used
    #[command(after_help = "Examples:\n  agency config edit\n  agency config edit --project")]
    Edit {
        /// The project's file instead of your own
        #[arg(long)]
        project: bool,
    },
    /// Print where the file is
    #[command(after_help = "Examples:\n  cat \"$(agency config path)\"")]
    Path {
        /// The project's file instead of your own
        #[arg(long)]
        project: bool,
    },
    /// Print the JSON Schema of config.toml, for editors
    #[command(after_help = "\
Examples:
  agency config schema > ~/.config/agency/schema.json
  # and as the first line of config.toml: #:schema ./schema.json")]
    Schema,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A repository can bring a .agency/config.toml or task files that run commands.
They are not run before you have agreed to exactly that content; when it
changes, you are asked again.

Examples:
  agency trust                   # shows it and asks
  agency trust --yes             # in a script
  agency trust --list            # everything you agreed to, everywhere
  agency trust --revoke")]
pub(crate) struct Trust {
    /// Take the agreement back
    #[arg(long, conflicts_with = "yes")]
    pub(crate) revoke: bool,
    /// List the projects you agreed to, and what
    #[arg(long, conflicts_with_all = ["yes", "revoke"])]
    pub(crate) list: bool,
    /// Print JSON
    #[arg(long, conflicts_with_all = ["yes", "revoke"])]
    pub(crate) json: bool,
    /// Agree without being asked
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Daemon {
    /// Say whether it runs, since when, and where its files are
    #[command(after_help = "Exit code 1 when none runs.\n\nExamples:\n  agency daemon status --json")]
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Start it, if it does not run
    #[command(after_help = "Examples:\n  agency daemon start")]
    Start,
    /// End it; agents go on unless --agents is given
    #[command(after_help = "Examples:\n  agency daemon stop\n  agency daemon stop --agents")]
    Stop {
        /// End every agent first
        #[arg(long)]
        agents: bool,
    },
    /// End it and start it anew; agents go on
    #[command(after_help = "Examples:\n  agency daemon restart")]
    Restart,
    /// Write a service that starts it when you log in
    #[command(after_help = "\
A systemd user unit, or a launchd agent on macOS. Stopping or restarting it leaves
the agents running, as `agency daemon stop` does. It is written and not enabled:
what to type for that is printed.

Examples:
  agency daemon install
  agency daemon install --print")]
    Install {
        /// Print the file and write nothing
        #[arg(long)]
        print: bool,
    },
    /// Remove that service; agents go on
    #[command(after_help = "Examples:\n  agency daemon uninstall")]
    Uninstall,
    /// Be the daemon
    #[command(hide = true)]
    Run,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_hold_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_explains_itself_with_an_example() {
        fn check(command: &clap::Command) {
            let name = command.get_name();
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(command.is_hide_set() || help.contains("Examples:"), "{name} has no example");
            assert!(command.get_about().is_some(), "{name} has no description");
            command.get_subcommands().for_each(check);
        }
        Cli::command().get_subcommands().for_each(check);
    }

    #[test]
    fn what_follows_the_dashes_is_never_ours() {
        let parsed = Cli::try_parse_from(["agency", "exec", "fix", "--", "ls", "--help", "-m"]).unwrap();
        let Some(Command::Exec(exec)) = parsed.command else { panic!("not exec") };
        assert_eq!(exec.command, ["ls", "--help", "-m"]);
        let parsed = Cli::try_parse_from(["agency", "new", "x", "--draft", "--", "sh", "--draft"]).unwrap();
        let Some(Command::New(new)) = parsed.command else { panic!("not new") };
        assert_eq!(new.command, ["sh", "--draft"]);
    }

    #[test]
    fn options_may_stand_behind_the_text() {
        let parsed = Cli::try_parse_from(["agency", "send", "fix", "a b", "c", "--no-enter"]).unwrap();
        let Some(Command::Send(send)) = parsed.command else { panic!("not send") };
        assert_eq!((send.text.len(), send.no_enter), (2, true));
        assert!(Cli::try_parse_from(["agency", "send", "fix", "-"]).is_ok());
        assert!(Cli::try_parse_from(["agency", "send", "fix"]).is_err());
    }
}
