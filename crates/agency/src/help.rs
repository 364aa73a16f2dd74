//! The lists of commands that `agency help` and `agency help --all` show, in groups.
//!
//! Decides only the grouping and the order. The texts come from the definitions in `cli`.

use clap::Command;
use clap::builder::StyledStr;

/// Both lists are given to clap as the text after the help, because clap cannot group commands.
pub(crate) const TEMPLATE: &str = "{about}{after-help}";

const HEADING: &str = "\x1b[1;4m";
const NAME: &str = "\x1b[1m";
const END: &str = "\x1b[0m";

pub(crate) struct Group {
    pub(crate) heading: &'static str,
    /// Commands of a normal day, which the first screen shows.
    daily: &'static [&'static str],
    more: &'static [&'static str],
}

pub(crate) const GROUPS: [Group; 7] = [
    Group {
        heading: "Start and follow agents",
        daily: &["new", "ls", "attach", "next", "stop"],
        more: &["start", "restart", "idle", "wait"],
    },
    Group {
        heading: "Answer agents",
        daily: &["send", "approvals", "approve", "deny"],
        more: &["chat", "interrupt", "queue", "model", "mode"],
    },
    Group {
        heading: "Review and merge their work",
        daily: &["diff", "complete", "merge", "rm", "undo"],
        more: &["review", "fail", "sync", "conflicts", "turns", "gc"],
    },
    Group {
        heading: "Read what agents did",
        daily: &[],
        more: &["logs", "screen", "search", "cost", "explain", "events", "export", "replay"],
    },
    Group {
        heading: "Work in a task's workspace",
        daily: &[],
        more: &["path", "shell", "exec", "run", "open", "setup"],
    },
    Group {
        heading: "Configure Agency and get help",
        daily: &[],
        more: &["config", "trust", "agents", "notify", "mcp", "completions", "man", "help"],
    },
    Group {
        heading: "Maintain Agency",
        daily: &[],
        more: &["daemon", "doctor", "connections", "reconnect", "orphans", "uninstall"],
    },
];

impl Group {
    pub(crate) fn commands(&self) -> impl Iterator<Item = &'static str> {
        self.daily.iter().chain(self.more).copied()
    }
}

/// The commands of a normal day, short enough for 24 rows with the shell's next prompt below.
pub(crate) fn first_screen(commands: &Command) -> StyledStr {
    let daily = GROUPS.iter().filter(|group| !group.daily.is_empty());
    let groups: String =
        daily.map(|group| section(commands, group.heading, group.daily.iter().copied())).collect();
    format!(
        "{groups}All commands: {NAME}agency help --all{END}   One command: {NAME}agency help COMMAND{END}"
    )
    .into()
}

/// Every command, then the options that all of them take.
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn the_first_screen_fits_a_terminal_of_24_rows_and_80_columns() {
        let screen = Cli::command().render_help().to_string();
        // The shell's next prompt takes a row too.
        assert!(screen.trim_end().lines().count() < 24, "{screen}");
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
        assert!(screen.contains("agency help --all"), "{screen}");
        for name in GROUPS.iter().flat_map(|group| group.daily) {
            assert!(screen.contains(&format!("\n  {name} ")), "{name} in {screen}");
        }
    }

    #[test]
    fn every_command_is_in_exactly_one_group() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(Group::commands).collect();
        let root = Cli::command();
        let mut defined: Vec<&str> =
            root.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name).collect();
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
