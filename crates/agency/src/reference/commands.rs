//! `docs/cli.md`: every command with its options and examples.

use clap::{Command, CommandFactory};

use super::check;
use crate::cli::Cli;

const HEAD: &str = "\
# The command line

Written from the definitions; `agency help COMMAND` and `agency man COMMAND` say the same.

Exit codes: 0 done, 1 refused or failed, 2 not understood. Errors go to standard error as `Error:`, `Caused by:` and
`Hint:`. Colours are used on terminals only, and not with `NO_COLOR`. `--quiet` leaves out notes, warnings and
progress. What `--json` prints is described in [json.md](json.md).
";

#[test]
fn the_page_of_commands_is_true() {
    // Wide enough that no terminal's width has a say.
    let mut root = Cli::command().term_width(100).disable_help_subcommand(true);
    root.build();
    let mut page = HEAD.to_owned();
    page.push_str(&section("agency", &mut root));
    for command in root.clone().get_subcommands().filter(|command| !command.is_hide_set()) {
        append(&mut page, command, "agency");
    }
    check("cli.md", &page);
}

fn append(page: &mut String, command: &Command, above: &str) {
    let name = format!("{above} {}", command.get_name());
    page.push_str(&section(&name, &mut command.clone()));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        append(page, below, &name);
    }
}

fn section(name: &str, command: &mut Command) -> String {
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    format!("\n## {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end())
}
