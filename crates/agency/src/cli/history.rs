//! Commands that read what agents did.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;

use super::TaskName;
use crate::{complete, moment};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agency logs fix-login | tail -20               # also of agents that paint the whole screen
  agency logs fix-login -f
  agency logs fix-login --raw > session.bytes    # every byte, with escape sequences
  agency logs fix-login --setup                  # the output of the workspace setup
  agency logs --daemon -f                        # the log of the daemon")]
pub(crate) struct Logs {
    /// Id, slug, or a unique prefix of the slug
    #[arg(required_unless_present = "daemon", add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) task: Option<String>,
    /// Print the log of the daemon
    #[arg(long, conflicts_with_all = ["task", "raw"])]
    pub(crate) daemon: bool,
    /// Print the output of the last workspace setup
    #[arg(long, conflicts_with_all = ["daemon", "raw"])]
    pub(crate) setup: bool,
    /// Keep printing until the agent ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print the original bytes instead of text
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
After the end of an agent, prints its last screen. If the agent painted the whole
screen and left it at its end, that is the screen before it left.

Examples:
  agency screen fix-login | tail -5
  agency screen fix-login --at 14:05              # what it showed then; also `-5m`
  agency screen fix-login --json | jq .cursor
  agency screen fix-login --ansi > screen.ans     # with colours, for a terminal of the same size")]
pub(crate) struct Screen {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Print the screen at a past time: `10m` ago, a time of day, or a date and time
    #[arg(long, value_name = "TIME", value_parser = moment::parse, allow_hyphen_values = true)]
    pub(crate) at: Option<jiff::Timestamp>,
    /// Print size, cursor, title, modes and text as JSON
    #[arg(long, conflicts_with = "ansi")]
    pub(crate) json: bool,
    /// Print colours and attributes as escape sequences
    #[arg(long)]
    pub(crate) ansi: bool,
    /// Print plain text (the default)
    #[arg(long, conflicts_with_all = ["json", "ansi"])]
    pub(crate) text: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Shows starts, changes of state, messages that were sent, approvals and their answers,
the ends of turns, and exits. Keys that you typed while attached are not shown.
`agency screen TASK --at TIME` shows the terminal at one of these times, and
`agency explain TASK --at TIME` the evidence behind the state.

Examples:
  agency timeline fix-login
  agency timeline fix-login --since 2h
  agency timeline fix-login --json | jq -r '.entries[] | \"\\(.time) \\(.what)\"'")]
pub(crate) struct Timeline {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Show only what happened since this time: `10m` ago, a time of day, or a date and time
    #[arg(long, value_name = "TIME", value_parser = moment::parse, allow_hyphen_values = true)]
    pub(crate) since: Option<jiff::Timestamp>,
    /// Show at most this many entries, the newest ones [default: 200]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Searches messages to and from agents, thinking, tool calls and their output, plans,
approvals, notices and errors; what agents print and paint in terminals; and the
names, labels and texts of tasks. A result contains every word; the last word may be a prefix. Words in double quotes
must appear in that order. Case and accents are ignored. The newest results come
first.

Of each task's terminals, Agency searches the newest 40,000 lines, without what was
typed and with masks over what looks like a secret. `agency logs TASK` has all of it.

Examples:
  agency search login
  agency search '\"connection refused\" redis' --project
  agency search timeout --task fix-login --limit 100
  agency search login --json | jq -r '.hits[] | \"\\(.task) \\(.number)\"'")]
pub(crate) struct Search {
    /// The words to search for
    #[arg(required = true, value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// Search only this task
    #[arg(long, value_name = "TASK", add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) task: Option<String>,
    /// Search only the project of the current directory
    #[arg(long, conflicts_with = "task")]
    pub(crate) project: bool,
    /// Search every project (the default)
    #[arg(short, long, conflicts_with_all = ["task", "project"])]
    pub(crate) all: bool,
    /// The maximum number of results
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) limit: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The numbers come from the agents. Agents in terminals report none; the list names them.

Examples:
  agency cost
  agency cost --json | jq '[.tasks[].cost_usd] | add'")]
pub(crate) struct Cost {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Shows which evidence decides and since when, what other evidence there is, what
would change the state, and the previous changes.

Examples:
  agency explain fix-login
  agency explain fix-login --at 14:05        # why it was shown as waiting then
  agency explain fix-login --at 10m --json
  agency explain fix-login --wrong waiting   # it says that the agent waits, but it works
  agency explain fix-login --forget          # believe all evidence again

--wrong corrects the state now, and the same evidence no longer decides that way in the
same program. It also writes a report file with the screen and the evidence, in which
whatever looks like a secret is masked. Agency sends it nowhere. A permission or a
question that the agent itself reports cannot be contradicted.")]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// Explain the state at a past time: `10m` ago, a time of day, or a date and time
    #[arg(long, value_name = "TIME", value_parser = moment::parse)]
    pub(crate) at: Option<jiff::Timestamp>,
    /// Say that the state is wrong: Agency shows the agent as waiting, or as working
    #[arg(long, value_name = "STATE", conflicts_with = "at")]
    pub(crate) wrong: Option<WrongState>,
    /// Forget your corrections for the program of this agent
    #[arg(long, conflicts_with_all = ["at", "wrong"])]
    pub(crate) forget: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum WrongState {
    /// Agency shows the agent as waiting, but it works
    Waiting,
    /// Agency shows the agent as working, but it waits
    Working,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without a time, the command begins when you last looked at a task of any project:
attached to it, or read its conversation, its output or its changes.

Examples:
  agency since
  agency since 2h
  agency since 09:00 --json")]
pub(crate) struct Since {
    /// A time: `2h` ago, a time of day, or a date and time
    #[arg(value_name = "TIME", value_parser = moment::parse)]
    pub(crate) time: Option<jiff::Timestamp>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agency events
  agency events --since 1h
  agency events --json | jq -c 'select(.type == \"StateChange\")'")]
pub(crate) struct Events {
    /// Print JSON, one document per line
    #[arg(long)]
    pub(crate) json: bool,
    /// First print events since a time: `5m` ago, a time of day, or a date and time
    #[arg(long, value_name = "TIME", value_parser = moment::parse)]
    pub(crate) since: Option<jiff::Timestamp>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The recording does not contain your keystrokes unless you pass --input. asciinema
and `agency replay` play the file.

Examples:
  agency export fix-login -o demo.cast
  agency export fix-login --input > with-keys.cast")]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The file to write; standard output by default
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Include keystrokes, except those typed without echo
    #[arg(long)]
    pub(crate) input: bool,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  agency replay demo.cast
  agency replay demo.cast --speed 4 --idle 1     # four times faster, pauses of at most 1 s
  agency replay demo.cast --states               # when the agent worked and waited, and why")]
pub(crate) struct Replay {
    /// An asciicast v2 file
    pub(crate) file: PathBuf,
    /// Play this many times faster
    #[arg(long, default_value_t = 1.0, value_parser = positive)]
    pub(crate) speed: f64,
    /// Shorten pauses to this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub(crate) idle: Option<f64>,
    /// Print the agent's states over time, with evidence, instead of playing
    #[arg(long, conflicts_with_all = ["speed", "idle"])]
    pub(crate) states: bool,
    /// With --states: print one JSON object per line
    #[arg(long, requires = "states")]
    pub(crate) json: bool,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("it must be a number above 0".to_owned()),
    }
}
