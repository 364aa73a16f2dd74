//! `docs/cli.md`: every command with its options and examples.

use clap::{Command, CommandFactory};

use super::check;
use crate::cli::Cli;
use crate::help::GROUPS;

const HEAD: &str = "\
# The command line

This page is generated from the definitions. `agency help COMMAND` and `agency man COMMAND` show the same texts.

Exit codes: 0 success, 1 refused or failed, 2 wrong usage. Errors go to standard error as `Error:`, `Caused by:` and
`Hint:`. Agency uses colours only on terminals, and none if `NO_COLOR` is set. `--quiet` suppresses notes, warnings and
progress. [json.md](json.md) describes the output of `--json`.
";

#[test]
fn docs_cli_md_matches_the_definitions() {
    // A fixed width, so that the width of a terminal does not change the page.
    let mut root = Cli::command().term_width(100);
    root.build();
    let mut page = HEAD.to_owned();
    page.push_str(&section(2, "agency", &mut root));
    for group in &GROUPS {
        page.push_str(&format!("\n## {}\n", group.heading));
        for command in group.commands().filter_map(|name| root.find_subcommand(name)) {
            append(&mut page, command, "agency");
        }
    }
    check("cli.md", &page);
}

fn append(page: &mut String, command: &Command, above: &str) {
    let name = format!("{above} {}", command.get_name());
    page.push_str(&section(3, &name, &mut command.clone()));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        append(page, below, &name);
    }
}

fn section(level: usize, name: &str, command: &mut Command) -> String {
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    format!("\n{} {name}\n\n```text\n{}\n```\n", "#".repeat(level), help.join("\n").trim_end())
}
