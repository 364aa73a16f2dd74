//! Commands that answer agents: texts, conversations, approvals, settings of a session.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use super::TaskName;
use crate::complete;
use crate::task_filter::FilterTerms;

#[derive(Debug, Args)]
#[command(after_help = "\
Agency joins the words with spaces. `-` alone reads the message from standard
input. In a terminal, Agency types only where a prompt takes text, not into a menu,
a confirmation or an unknown screen. It pastes the message if the agent supports
pasting, and presses Enter once the message is at the prompt. The receipt says what
is known:

  delivered   the agent has confirmed the message, or it left the prompt and work began
  typed       the terminal has the message; nothing shows that the agent took it
  refused     no prompt takes the message now; the screen is shown (exit code 1)
  queued      the message waits for the agent's prompt: see `agency queue`

Examples:
  agency send fix-login \"cargo test\"
  agency send fix-login --queue \"then write the tests\"
  agency send fix-login --keys down,enter      # answers a dialog
  agency send fix-login \"\"                    # only Enter
  agency send fix-login --image shot.png \"what is wrong here?\"
  agency send --to label:api \"rebase on main\"    # every running agent with that label
  agency send --to agent:codex,state:needs_input \"go on\"
  git diff | agency send fix-login -

--to takes label:NAME, agent:NAME, status:NAME and state:NAME, in the words of
`agency ls --json`; terms with commas between them must all fit. It prints a receipt
for each agent, and the exit code is 1 if one did not take the message.")]
pub(crate) struct Send {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The message to send
    #[arg(required_unless_present_any = ["keys", "images", "to"], value_name = "MESSAGE")]
    pub(crate) text: Vec<OsString>,
    /// Send to every running agent of this project that fits, instead of one task
    #[arg(long, value_name = "FILTER", conflicts_with = "keys")]
    pub(crate) to: Option<FilterTerms>,
    /// Add an image (PNG, JPEG, GIF or WebP) to a message of a conversation; may be given more than once
    #[arg(long = "image", value_name = "FILE", conflicts_with_all = ["keys", "no_enter", "queue"])]
    pub(crate) images: Vec<PathBuf>,
    /// Do not press Enter after the message
    #[arg(long)]
    pub(crate) no_enter: bool,
    /// Hold the message until the agent is at its prompt
    #[arg(long, conflicts_with_all = ["no_enter", "anyway"])]
    pub(crate) queue: bool,
    /// Type the message whatever the screen shows
    #[arg(long)]
    pub(crate) anyway: bool,
    /// Press these keys instead of sending a message: `enter`, `down`, `esc`, `ctrl-c`, `1`; separate several with commas
    #[arg(long, value_name = "KEYS", value_delimiter = ',', conflicts_with_all = ["text", "no_enter", "queue", "anyway"])]
    pub(crate) keys: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
For tasks created with `--driver stream-json` or `--driver acp`. On a terminal, the
command prints the conversation and follows it. Below it are your message and a
status line. Type and press Enter:

  any text         a message to the agent, or the answer to its question
  y, /always       allow the action; /always allows it for the rest of the session
  n, /deny WHY     deny the action
  1, 2, …          choose that option of the agent
  /help            list all commands, also those of the agent
  /show NUMBER     print an entry in full: a thought, a tool's output
  /option          show the options of the session; with a NAME and a VALUE, change one
  /model, /mode    show a setting of the agent; with a NAME, change it
  alt-enter        begin a new line; so does a backslash before Enter
  up, down         earlier messages of this project
  tab              complete a command, or a file after @; @shot.png sends the image
  ctrl-c           interrupt the agent's turn; its session continues
  ctrl-q, ctrl-d   leave; the agent keeps running (ctrl-q twice: next task)

If the agent has a command of the same name, the agent gets it: write //model for
Agency's. A pasted text is one message, even if it has many lines.

Examples:
  agency chat fix-login
  agency chat fix-login | tail -20          # the latest messages
  agency chat fix-login --at 17             # from an entry that `agency search` found
  agency chat fix-login --json --follow     # an entry per line, repeated when it changes")]
pub(crate) struct Chat {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Start with this entry of the conversation
    #[arg(long, value_name = "NUMBER")]
    pub(crate) at: Option<u64>,
    /// Keep printing new entries until the agent ends; do not read the keyboard
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print JSON, one entry per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Rules in the configuration (`[[approve]]`) answer what they match; the list shows
what is left for you. Dialogs on terminals are listed too, with their choices where
Agency recognizes them. --log shows past decisions of conversations.

Examples:
  agency approvals
  agency approvals fix-login --json
  agency approvals --log fix-login
  agency approvals --suggest                   # rules for what you always allow

--suggest prints rules as TOML and changes nothing: read them, then copy what you want
into your configuration. A rule covers commands that you allowed at least three times
and nothing that was ever denied, in any task.")]
pub(crate) struct Approvals {
    /// Id, slug, or a unique prefix of the slug; all tasks by default
    #[arg(value_name = "TASK", add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) task: Option<String>,
    /// Show past decisions instead, oldest first
    #[arg(long)]
    pub(crate) log: bool,
    /// Suggest rules from past decisions instead
    #[arg(long, conflicts_with = "log")]
    pub(crate) suggest: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Answers the request that is waiting; --id chooses among several. If it has already
been answered, the command says by whom. `agency approvals` shows what is asked and
which options the agent offers. On a terminal, Agency presses the keys of the choice
and checks that the dialog is gone. If the dialog has changed, or if its choices are
not known, it presses no key and shows the screen.

Examples:
  agency approve fix-login
  agency approve fix-login --always            # and do not ask again in this session
  agency approve fix-login --option \"Switch to default mode\"
  agency approve fix-login --answer Blue       # answer a question")]
pub(crate) struct Approve {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Allow the action for the rest of the agent's session
    #[arg(long)]
    pub(crate) always: bool,
    /// Choose this option of the agent, by its label or id
    #[arg(long, value_name = "LABEL", conflicts_with = "always")]
    pub(crate) option: Option<String>,
    /// The answer to a question; repeat it to answer several questions in order
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["always", "option"])]
    pub(crate) answer: Vec<String>,
    /// The reason, for the log of decisions
    #[arg(short, long, value_name = "WHY")]
    pub(crate) message: Option<String>,
    /// The id of the request, from `agency approvals`
    #[arg(long)]
    pub(crate) id: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Denies the request that is waiting; --id chooses among several. Claude reads the
reason with the denial. Agents over ACP cannot, so they get it as the next message.
Agents on terminals do not get it.

Examples:
  agency deny fix-login
  agency deny fix-login -m \"use the staging database\"     # the agent sees the reason")]
pub(crate) struct Deny {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The reason, which the agent sees
    #[arg(short, long, value_name = "WHY")]
    pub(crate) message: Option<String>,
    /// The id of the request, from `agency approvals`
    #[arg(long)]
    pub(crate) id: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Texts from `agency send --queue` wait here until the agent is at its prompt. They
survive a restart of the daemon. A text is marked uncertain if it may have been
typed already, because the daemon was killed or the agent did not take it. It then
holds back the texts behind it: check the agent, then drop the text.

Examples:
  agency queue
  agency queue fix-login
  agency queue drop fix-login 3
  agency queue drop fix-login          # drops all of them"
)]
pub(crate) struct Queue {
    #[command(subcommand)]
    pub(crate) command: Option<QueueCommand>,
    /// Id, slug, or a unique prefix of the slug; all tasks by default
    #[arg(value_name = "TASK", add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) task: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Drop messages before they are sent
    Drop(QueueDrop),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agency queue drop fix-login 3
  agency queue drop fix-login          # drops all of them")]
pub(crate) struct QueueDrop {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The number of the message; all messages of the task by default
    #[arg(value_name = "NUMBER")]
    pub(crate) number: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct SettingArgs {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The new value; without it, the command shows the current one
    #[arg(value_name = "NAME")]
    pub(crate) to: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OptionArgs {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The option; without it, the command shows all options
    #[arg(value_name = "OPTION")]
    pub(crate) option: Option<String>,
    /// The new value; without it, the command shows the current one
    #[arg(value_name = "VALUE")]
    pub(crate) value: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
