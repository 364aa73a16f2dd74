//! The lists of commands that `agency help` and `agency help --all` show, in groups.
//!
//! Decides only the grouping and the order. The texts come from the definitions in `cli`.

use clap::Command;
use clap::builder::StyledStr;

/// clap cannot group commands, so both lists are the text after the help.
pub(crate) const TEMPLATE: &str = "{about}{after-help}";

const HEADING: &str = "\x1b[1;4m";
const NAME: &str = "\x1b[1m";
const END: &str = "\x1b[0m";

pub(crate) struct Group {
    pub(crate) heading: &'static str,
    /// Commands of a normal day. The first screen shows them.
    pub(crate) daily: &'static [&'static str],
    more: &'static [&'static str],
}

pub(crate) const GROUPS: [Group; 7] = [
    Group {
        heading: "Start and follow agents",
        daily: &["new", "ls", "attach", "next", "stop"],
        more: &["start", "restart", "idle", "wait", "edit", "rename", "pin", "snooze"],
    },
    Group {
        heading: "Answer agents",
        daily: &["send", "approvals", "approve", "deny"],
        more: &["chat", "interrupt", "queue", "model", "mode", "option"],
    },
    Group {
        heading: "Review and merge their work",
        daily: &["diff", "complete", "merge", "rm", "undo"],
        more: &[
            "review",
            "remark",
            "remarks",
            "fail",
            "sync",
            "conflicts",
            "compare",
            "promote",
            "turns",
            "gc",
        ],
    },
    Group {
        heading: "Read what agents did",
        daily: &[],
        more: &[
            "since", "logs", "screen", "timeline", "search", "cost", "explain", "events", "export", "replay",
        ],
    },
    Group {
        heading: "Work in a task's workspace",
        daily: &[],
        more: &["path", "shell", "shells", "exec", "files", "cat", "write", "run", "open", "setup"],
    },
    Group {
        heading: "Configure Agency and get help",
        daily: &[],
        more: &["config", "trust", "agents", "notify", "mcp", "completions", "man", "help"],
    },
    Group {
        heading: "Maintain Agency",
        daily: &[],
        more: &["daemon", "projects", "doctor", "connections", "reconnect", "orphans", "uninstall"],
    },
];

impl Group {
    pub(crate) fn commands(&self) -> impl Iterator<Item = &'static str> {
        self.daily.iter().chain(self.more).copied()
    }
}

/// The commands of a normal day. They fit 24 rows, with the shell's next prompt below.
pub(crate) fn first_screen(commands: &Command) -> StyledStr {
    let daily = GROUPS.iter().filter(|group| !group.daily.is_empty());
    let groups: String =
        daily.map(|group| section(commands, group.heading, group.daily.iter().copied())).collect();
    format!(
        "{groups}All commands: {NAME}agency help --all{END}   One command: {NAME}agency help COMMAND{END}"
    )
    .into()
}

/// Every command, then the options that every command takes.
pub(crate) fn all_commands(commands: &Command, options: Command) -> StyledStr {
    let groups: String =
        GROUPS.iter().map(|group| section(commands, group.heading, group.commands())).collect();
    let options = options.version("").help_template("{options}").term_width(80).render_help();
    format!("{groups}{HEADING}Options{END}\n{}\n\n{EXAMPLES}", options.ansi().to_string().trim_end()).into()
}

const EXAMPLES: &str = "\
Examples:
  agency new fix-login -m \"make the login work\"  start an agent and attach
  ctrl-q                                         detach; the agent keeps running
  agency ls                                      see who works and who needs you
  agency attach fix-login                        attach again
  agency rm fix-login                            remove task and workspace

TASK is the id of a task, its slug, or a unique prefix of the slug.
`agency help COMMAND` shows examples for each command.";

fn section(commands: &Command, heading: &str, names: impl Iterator<Item = &'static str>) -> String {
    let about = |name| commands.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
    let line = |name| format!("  {NAME}{name:<11}{END}  {}\n", about(name).unwrap_or_default());
    format!("{HEADING}{heading}{END}\n{}\n", names.map(line).collect::<String>())
}
