//! The command line as clap parses it: commands, options and their help.
//!
//! Definitions only: one file for each group of `agency help --all`. The behaviour of a command is in the file
//! of its name under `command/`.

mod configuration;
mod conversation;
mod history;
mod lifecycle;
mod maintenance;
mod work;
mod workspace;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::ArgValueCompleter;

pub(crate) use configuration::{Agents, Completions, Config, ConfigCommand, Help, Man, Mcp, NotifyCommand};
pub(crate) use configuration::{Shell, Trust};
pub(crate) use conversation::{Approvals, Approve, Chat, Deny, Queue, QueueCommand, QueueDrop, Send};
pub(crate) use conversation::{OptionArgs, SettingArgs};
pub(crate) use history::{
    Cost, Events, Explain, Export, Logs, Replay, Screen, Search, Since, Timeline, WrongState,
};
pub(crate) use lifecycle::{
    Attach, Edit, Ls, New, Pin, Rename, Restart, Snooze, Start, StartOptions, Stop, Wait,
};
pub(crate) use maintenance::{
    Connections, Daemon, Doctor, OrphanCommand, Orphans, Projects, ProjectsCommand,
};
pub(crate) use maintenance::{Reconnect, Uninstall};
pub(crate) use work::{
    Compare, Conflicts, Diff, Gc, Merge, Promote, Remark, Remarks, Review, Rm, Sync, Turns, Undo,
};
pub(crate) use workspace::{Cat, Exec, Files, OpenShell, Run, Shells, WriteFile};

use crate::output::Form;
use crate::{complete, help};

#[derive(Debug, Parser)]
#[command(
    name = "agency",
    version,
    about = "Run many coding agents side by side, each in its own workspace",
    long_about = "Run many coding agents side by side, each in its own workspace.\n\n\
        A task is one piece of work for one agent. It has a git worktree, a branch and a\n\
        terminal. The agent keeps running when you close the terminal, when you upgrade\n\
        Agency, and when the daemon crashes.",
    help_template = help::TEMPLATE,
    after_help = help::first_screen(&subcommands()),
    after_long_help = help::all_commands(&subcommands(), GlobalOptions::augment_args(clap::Command::new("agency"))),
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Parses the command line, and says in which form the command prints a failure.
pub(crate) fn parse(words: &[OsString]) -> Result<(Cli, Form), clap::Error> {
    let mut matches = Cli::command().try_get_matches_from(without_tail(words))?;
    let form = form_of(&matches);
    let cli = Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut Cli::command()))?;
    Ok((cli, form))
}

/// `agency tail TASK` means `agency logs -f TASK`.
fn without_tail(words: &[OsString]) -> Vec<OsString> {
    match words {
        [agency, tail, rest @ ..] if tail == "tail" => [agency.clone(), "logs".into(), "--follow".into()]
            .into_iter()
            .chain(rest.iter().cloned())
            .collect(),
        _ => words.to_vec(),
    }
}

/// Every command that can print JSON has an option `json`.
fn form_of(matches: &ArgMatches) -> Form {
    match matches.subcommand() {
        Some((_, below)) if form_of(below) == Form::Json => Form::Json,
        _ => match matches.try_get_one::<bool>("json") {
            Ok(Some(true)) => Form::Json,
            _ => Form::Text,
        },
    }
}

/// Options that every command takes.
#[derive(Debug, Args)]
pub(crate) struct GlobalOptions {
    /// Print only results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Override one setting for this command
    #[arg(long = "config", global = true, value_name = "KEY=VALUE")]
    pub(crate) config: Vec<String>,
    /// Run as if started in this directory
    #[arg(short = 'C', global = true, value_name = "DIR")]
    pub(crate) run_in: Option<PathBuf>,
}

/// The commands without the root command, whose help lists them.
fn subcommands() -> clap::Command {
    Command::augment_subcommands(clap::Command::new("agency"))
}

/// In the order of [`help::GROUPS`].
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a task, start its agent and attach to it
    New(New),
    /// List tasks and show which of them need you
    #[command(aliases = ["list", "status", "ps"])]
    Ls(Ls),
    /// Open the terminal or the conversation of a task
    #[command(alias = "a")]
    Attach(Attach),
    /// Attach to the agent that needs you most
    #[command(after_help = "\
Looks at the tasks of all projects. Agents that ask for a permission, ask a
question or report an error come first, then finished work that you have not
looked at, then agents at their prompts; in each group those that you have not
looked at, the longest waiting first. Without a terminal, the command prints the
task instead: `{id} {slug} {status}`.

Examples:
  agency next")]
    Next,
    /// Show what happened since you last looked
    Since(Since),
    /// Change the text of a task
    Edit(Edit),
    /// Rename a draft
    Rename(Rename),
    /// Pin a task to the top of lists
    Pin(Pin),
    /// Put a task off until a time, or until it needs you again
    Snooze(Snooze),
    /// Start the agents of tasks, or wake idle tasks
    #[command(alias = "resume")]
    Start(Start),
    /// Stop the agents of tasks and everything they started
    #[command(alias = "kill")]
    Stop(Stop),
    /// Stop the agent of a task and start it again
    Restart(Restart),
    /// Mark a running task as idle; its agent keeps running
    #[command(after_help = "\
An idle task still counts towards max_agents.

Examples:
  agency idle fix-login
  agency start fix-login         # running again, in the same process")]
    Idle(TaskNames),
    /// Wait until an agent needs you, works, or has exited
    Wait(Wait),

    /// Send a message to an agent
    Send(Send),
    /// Read the conversation with an agent and write to it
    Chat(Chat),
    /// List actions that are waiting for your approval
    Approvals(Approvals),
    /// Allow an action, or answer a question of an agent
    Approve(Approve),
    /// Deny an action
    Deny(Deny),
    /// Interrupt an agent's turn; its session continues
    #[command(after_help = "\
For tasks with a conversation. For an agent in a terminal, use
`agency send TASK --keys esc`.

Examples:
  agency interrupt fix-login")]
    Interrupt(TaskName),
    /// List messages that wait for an agent's prompt, or drop them
    Queue(Queue),
    /// Show or change the model that an agent uses
    #[command(after_help = "\
For tasks with a conversation. The names come from the agent.

Examples:
  agency model fix-login            # the current model and the available ones
  agency model fix-login opus")]
    Model(SettingArgs),
    /// Show or change what an agent may do without asking
    #[command(after_help = "\
For tasks with a conversation. The names come from the agent.

Examples:
  agency mode fix-login
  agency mode fix-login plan")]
    Mode(SettingArgs),
    /// Show or change the options of an agent's session
    #[command(after_help = "\
For tasks with a conversation. Options and values come from the agent: its mode and
its model, and over ACP others, such as its effort. Agency sets a changed option again
when the session is opened again.

Examples:
  agency option fix-login                 # all options and their values
  agency option fix-login effort
  agency option fix-login effort high")]
    Option(OptionArgs),

    /// Show the changes in a task's workspace
    Diff(Diff),
    /// Read the changes of a task and send remarks, or accept them
    Review(Review),
    /// Make a remark about a line of a task's work, or send all
    Remark(Remark),
    /// List the remarks about a task's work
    Remarks(Remarks),
    /// Mark tasks as done
    #[command(
        alias = "done",
        after_help = "\
The agent keeps running; `agency stop` stops it.

Examples:
  agency complete fix-login
  agency start fix-login         # continue the work after all"
    )]
    Complete(TaskNames),
    /// Mark tasks as failed
    #[command(after_help = "\
The agent keeps running; `agency stop` stops it.

Examples:
  agency fail fix-login
  agency start fix-login         # try again in the same workspace")]
    Fail(TaskNames),
    /// Merge the work of a task into its base branch
    Merge(Merge),
    /// Update a task's workspace with new commits from its base
    Sync(Sync),
    /// List workspaces that conflict with their base or with each other
    Conflicts(Conflicts),
    /// Remove a task and its workspace
    #[command(aliases = ["delete", "remove"])]
    Rm(Rm),
    /// Restore a removed task, or undo an agent's turn
    Undo(Undo),
    /// Compare the candidates of `agency new --best-of`
    Compare(Compare),
    /// Keep one candidate and move the others to the trash
    Promote(Promote),
    /// List the turns of an agent and the files that each changed
    Turns(Turns),
    /// Remove finished tasks, or empty the trash
    Gc(Gc),

    /// Print what an agent printed or painted, as text
    Logs(Logs),
    /// Print an agent's screen, now or in the past, without attaching
    Screen(Screen),
    /// Show what happened to the agents of a task, on one time axis
    Timeline(Timeline),
    /// Search conversations, terminals and the texts of tasks
    Search(Search),
    /// Show tokens and cost of each task, as reported by the agents
    Cost(Cost),
    /// Explain why an agent is shown as working or waiting
    Explain(Explain),
    /// Print events as they happen
    Events(Events),
    /// Export the terminal session of a task as an asciicast recording
    Export(Export),
    /// Play a recording
    Replay(Replay),

    /// Print the directory of a task's workspace
    #[command(after_help = "\
Examples:
  cd \"$(agency path fix-login)\"
  git -C \"$(agency path fix-login)\" log --oneline")]
    Path(TaskName),
    /// Open a terminal in a task's workspace, beside its agent
    Shell(OpenShell),
    /// List the terminals beside agents
    Shells(Shells),
    /// Run a command in a task's workspace
    Exec(Exec),
    /// List files in a task's workspace
    Files(Files),
    /// Print a file of a task's workspace
    Cat(Cat),
    /// Write a file of a task's workspace, if it has not changed
    Write(WriteFile),
    /// Ask the agent of a task one question, outside its terminal
    Run(Run),
    /// Open a task's workspace in your editor
    #[command(after_help = "\
Runs workspace.opener if it is set, otherwise $VISUAL or $EDITOR with the
directory of the workspace. The program gets the task's $AGENCY_* variables.

Examples:
  agency open fix-login
  agency config set workspace.opener code '$AGENCY_WORKTREE'")]
    Open(TaskName),
    /// Set up a task's workspace again: copy files, run setup commands
    #[command(after_help = "\
Copies the missing files that .worktreeinclude and workspace.copy name, then runs
workspace.setup (docs/configuration.md). Agency sets up a new workspace before it
starts the agent. Use this command if the setup failed or has changed. The agent
must not be running. Ctrl-c stops the setup.

Examples:
  agency setup fix-login
  agency logs fix-login --setup      # the output of the setup
  agency start fix-login --skip-setup")]
    Setup(TaskName),

    /// Show or change the configuration
    Config(Config),
    /// Trust the commands in this project's configuration
    Trust(Trust),
    /// List agents, their commands, and whether they are installed
    Agents(Agents),
    /// Test how Agency notifies you
    #[command(after_help = "\
Agency notifies you when an agent starts to wait for you and when an agent
crashes: once for each change, never about a task that you are viewing, and in
one message when many tasks change at once. `[notify]` in config.toml chooses the
channels: desktop notifications, a command, a webhook, and the terminal in which
you are attached to another task (docs/configuration.md).

Examples:
  agency notify test
  agency notify test --config notify.command='[\"tee\", \"/tmp/notice\"]'
  agency config set notify.webhook https://example.org/hook
  agency config set notify.on permission question exited")]
    Notify {
        #[command(subcommand)]
        command: NotifyCommand,
    },
    /// Let agents start, watch and message other tasks (MCP server)
    Mcp(Mcp),
    /// Print a script for tab completion in your shell
    Completions(Completions),
    /// Show or install the manual
    Man(Man),
    /// Show help for Agency or for one command
    Help(Help),

    /// Manage the background daemon
    #[command(after_help = "\
The first command that needs the daemon starts it. Agents keep running when the
daemon stops.

Examples:
  agency daemon status
  agency daemon restart          # after an upgrade; agents keep running
  agency daemon stop --agents    # stop every agent, then the daemon")]
    Daemon {
        #[command(subcommand)]
        command: Daemon,
    },
    /// List the projects that Agency knows; add or forget one
    Projects(Projects),
    /// Check this machine and suggest fixes
    Doctor(Doctor),
    /// Show shared agent processes (ACP connections) and their status
    Connections(Connections),
    /// Restart a shared agent process (ACP connection)
    Reconnect(Reconnect),
    /// List agents that no task owns; stop or adopt them
    Orphans(Orphans),
    /// Remove everything that Agency has created
    Uninstall(Uninstall),
}

#[derive(Debug, Args)]
pub(crate) struct TaskNames {
    /// Ids, slugs, or unique prefixes of slugs
    #[arg(required = true, value_name = "TASK", add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) tasks: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TaskName {
    /// Id, slug or unique prefix of a slug; from elsewhere PROJECT/TASK
    #[arg(add = ArgValueCompleter::new(complete::tasks))]
    pub(crate) task: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_counts_where_the_command_takes_it() {
        let form = |words: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            parse(&words).expect("a command").1
        };
        for words in ["agency ls --json", "agency daemon status --json", "agency config get a --json"] {
            assert_eq!(form(words), Form::Json, "{words}");
        }
        for words in ["agency ls", "agency exec x ls --json", "agency new x -m a -- ls --json"] {
            assert_eq!(form(words), Form::Text, "{words}");
        }
    }

    #[test]
    fn usual_words_for_commands_are_understood() {
        let command = |words: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            format!("{:?}", parse(&words).expect("a command").0.command)
        };
        for (typed, meant) in [
            ("status", "ls"),
            ("ps --all", "ls --all"),
            ("list", "ls"),
            ("a fix", "attach fix"),
            ("resume fix", "start fix"),
            ("kill fix", "stop fix"),
            ("done fix", "complete fix"),
            ("delete fix", "rm fix"),
            ("tail fix", "logs fix -f"),
        ] {
            assert_eq!(command(&format!("agency {typed}")), command(&format!("agency {meant}")), "{typed}");
        }
    }

    #[test]
    fn clap_accepts_the_definitions() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_a_description_and_an_example() {
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
    fn options_after_two_dashes_belong_to_the_command_that_runs() {
        let parsed = Cli::try_parse_from(["agency", "exec", "fix", "--", "ls", "--help", "-m"]).unwrap();
        let Some(Command::Exec(exec)) = parsed.command else { panic!("not exec") };
        assert_eq!(exec.command, ["ls", "--help", "-m"]);
        let parsed = Cli::try_parse_from(["agency", "new", "x", "--draft", "--", "sh", "--draft"]).unwrap();
        let Some(Command::New(new)) = parsed.command else { panic!("not new") };
        assert_eq!(new.command, ["sh", "--draft"]);
    }

    #[test]
    fn options_may_follow_the_text() {
        let parsed = Cli::try_parse_from(["agency", "send", "fix", "a b", "c", "--no-enter"]).unwrap();
        let Some(Command::Send(send)) = parsed.command else { panic!("not send") };
        assert_eq!((send.text.len(), send.no_enter), (2, true));
        assert!(Cli::try_parse_from(["agency", "send", "fix", "-"]).is_ok());
        assert!(Cli::try_parse_from(["agency", "send", "fix"]).is_err());
    }

    #[test]
    fn the_first_screen_fits_a_terminal_of_24_rows_and_80_columns() {
        let screen = Cli::command().render_help().to_string();
        // The shell's next prompt takes a row too.
        assert!(screen.trim_end().lines().count() < 24, "{screen}");
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
        assert!(screen.contains("agency help --all"), "{screen}");
        for name in help::GROUPS.iter().flat_map(|group| group.daily) {
            assert!(screen.contains(&format!("\n  {name} ")), "{name} in {screen}");
        }
    }

    #[test]
    fn every_command_is_in_exactly_one_group() {
        let mut listed: Vec<&str> = help::GROUPS.iter().flat_map(help::Group::commands).collect();
        let root = Cli::command();
        let mut defined: Vec<&str> = root
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name)
            .collect();
        listed.sort_unstable();
        defined.sort_unstable();
        assert_eq!(listed, defined);
    }

    #[test]
    fn the_long_help_lists_every_command_with_its_description() {
        let help = Cli::command().render_long_help().to_string();
        for command in Cli::command().get_subcommands() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&format!("  {:<11}  {about}\n", command.get_name())), "{about} in {help}");
        }
        assert!(help.contains("--quiet") && help.contains("--config <KEY=VALUE>"), "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
    }
}
