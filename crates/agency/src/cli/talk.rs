//! The commands about conversations with agents that are driven by a protocol.

use clap::Args;
use clap_complete::ArgValueCompleter;

use super::TaskName;
use crate::complete;

#[derive(Debug, Args)]
#[command(after_help = "\
For tasks made with `--driver stream-json` or `--driver acp`. On a terminal it prints the
conversation and follows it; what you type is sent when you press Enter:

  any text         a message to the agent (or the answer to its question)
  y, /always       allow what it asks for; /always for the rest of its session
  n, /deny WHY     do not allow it
  /model, /mode    show what the agent is set to; with a NAME, change it
  a pasted text    is one message, however many lines it has
  ctrl-c           end the agent's turn; its session goes on
  ctrl-d           leave; the agent goes on

Examples:
  agency chat fix-login
  agency chat fix-login | tail -20          # what was said so far
  agency chat fix-login --at 17             # from what `agency search` found
  agency chat fix-login --json --follow     # an entry a line, again when it changes")]
pub(crate) struct Chat {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Begin with this entry of the conversation
    #[arg(long, value_name = "NUMBER")]
    pub(crate) at: Option<u64>,
    /// Without a terminal: go on until the agent ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print JSON, an entry a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Rules in the configuration (`[[approve]]`) answer what they can by themselves;
what is listed waits for a person. --log shows what was answered, by whom and why.

Examples:
  agency approvals
  agency approvals fix-login --json
  agency approvals --log fix-login")]
pub(crate) struct Approvals {
    /// Id, slug, or a unique beginning of the slug; all tasks if left out
    #[arg(value_name = "TASK", add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) task: Option<String>,
    /// Show past decisions instead, oldest first
    #[arg(long)]
    pub(crate) log: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
An agent that is driven by the Agent Client Protocol serves all its tasks with
one process, which is started for the first of them. If it ends, it is started
again after 1, 2, 4, 8 and 16 seconds, and its sessions go on.

Examples:
  agency connections
  agency connections --sessions claude-code   # the sessions that the agent knows
  agency connections --json")]
pub(crate) struct Connections {
    /// List the sessions that this agent knows, those of others included
    #[arg(long, value_name = "CONNECTION")]
    pub(crate) sessions: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Ends the agent's process if it has one and starts another, at once. Sessions go
on where they were; a message that was being answered is lost, and said to be.

Examples:
  agency reconnect claude-code")]
pub(crate) struct Reconnect {
    /// As `agency connections` names it: mostly the agent's name
    #[arg(value_name = "CONNECTION")]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Answers what has waited longest, or what --id names. Whoever answers second is
told who was first.

Examples:
  agency approve fix-login
  agency approve fix-login --always            # and do not ask again in this session
  agency approve fix-login --answer Blue       # to a question")]
pub(crate) struct Approve {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Allow it for the rest of the agent's session
    #[arg(long)]
    pub(crate) always: bool,
    /// The answer to a question; several questions are answered in their order
    #[arg(long, value_name = "TEXT", conflicts_with = "always")]
    pub(crate) answer: Vec<String>,
    /// Why, for those who ask later
    #[arg(short, long, value_name = "WHY")]
    pub(crate) message: Option<String>,
    /// Which one, as `agency approvals --json` names it
    #[arg(long)]
    pub(crate) id: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agency deny fix-login
  agency deny fix-login -m \"use the staging database\"     # the agent is told")]
pub(crate) struct Deny {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Why; the agent is told
    #[arg(short, long, value_name = "WHY")]
    pub(crate) message: Option<String>,
    /// Which one, as `agency approvals --json` names it
    #[arg(long)]
    pub(crate) id: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
As the agents report it; terminals report nothing.

Examples:
  agency cost
  agency cost --json | jq '[.tasks[].cost_usd] | add'")]
pub(crate) struct Cost {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SettingArgs {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// What to set it to; shown if left out
    #[arg(value_name = "NAME")]
    pub(crate) to: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
