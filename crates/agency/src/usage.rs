//! Reports a wrong command line like every other failure: message, cause and hint.

use std::ffi::OsString;
use std::process::ExitCode;

use agency_api::{Failure, FailureCode};
use agency_core::spelling::is_near;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{ArgAction, CommandFactory};

use crate::cli::Cli;
use crate::output::{self, Form};

/// The exit code for wrong usage.
const USAGE: u8 = 2;

/// Prints help, the version or the error, and returns the exit code.
pub(crate) fn report(error: &Error, words: &[OsString]) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed pipe (`agency help | head`) is not an error.
            error.print().unwrap_or_default();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            error.print().unwrap_or_default();
            ExitCode::from(USAGE)
        }
        _ => {
            output::report_failure(&failure(error, words), typed_form(words));
            ExitCode::from(USAGE)
        }
    }
}

/// A caller that typed `--json` reads JSON, even if this command has no such option. The words after `--` are
/// no options.
fn typed_form(words: &[OsString]) -> Form {
    match words.iter().take_while(|word| *word != "--").any(|word| word == "--json") {
        true => Form::Json,
        false => Form::Text,
    }
}

fn failure(error: &Error, words: &[OsString]) -> Failure {
    let (command, positionals) = typed_command(words);
    let usage = UsageError { error, command, positionals };
    match error.kind() {
        ErrorKind::InvalidSubcommand => usage.unknown_command(),
        ErrorKind::UnknownArgument => usage.unknown_argument(),
        ErrorKind::MissingRequiredArgument => usage.missing_argument(),
        ErrorKind::MissingSubcommand => {
            refused(format!("`{}` needs a command", usage.command)).hint(usage.help())
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::NoEquals => usage.bad_value(),
        ErrorKind::ArgumentConflict => usage.conflict(),
        ErrorKind::TooManyValues | ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            usage.bad_value()
        }
        _ => usage.other_error(),
    }
}

fn refused(message: impl Into<String>) -> Failure {
    Failure::new(message).code(FailureCode::InvalidArgument)
}

struct UsageError<'a> {
    error: &'a Error,
    /// `agency daemon stop`
    command: String,
    positionals: Positionals,
}

impl UsageError<'_> {
    fn unknown_command(&self) -> Failure {
        let word = self.first(ContextKind::InvalidSubcommand);
        let failure = refused(format!("there is no command `{} {word}`", self.command));
        let list = match self.command.as_str() {
            "agency" => "`agency help --all` lists all commands".to_owned(),
            command => format!("`{command} --help` lists its commands"),
        };
        if self.command == "agency" && word == "show" {
            return failure.hint(
                "`agency screen` shows its screen, `agency diff` its changes, `agency chat` its conversation",
            );
        }
        match self.suggestions(ContextKind::SuggestedSubcommand, &word) {
            Some(near) => failure.hint(format!("did you mean {near}? {list}")),
            None => failure.hint(list),
        }
    }

    fn unknown_argument(&self) -> Failure {
        let word = self.first(ContextKind::InvalidArg);
        let is_option = word.starts_with('-');
        let failure = refused(match (is_option, self.positionals) {
            (true, _) => format!("`{}` has no option `{word}`", self.command),
            (false, Positionals::OneTask) => {
                format!("`{}` takes one task, but got also `{word}`", self.command)
            }
            (false, _) => format!("`{}` does not take another argument: `{word}`", self.command),
        });
        match self.suggestions(ContextKind::SuggestedArg, &word) {
            Some(near) => failure.hint(format!("did you mean {near}? {}", self.help())),
            None if is_option && self.positionals == Positionals::AnyNumber => failure
                .hint(format!("put words that begin with a dash after `--`: {} … -- … {word}", self.command)),
            None if is_option || self.positionals == Positionals::OneTask => failure.hint(self.help()),
            None => failure.hint(format!("{}; put a text with spaces in quotes", self.help())),
        }
    }

    fn missing_argument(&self) -> Failure {
        let missing = self.all(ContextKind::InvalidArg).join(" and ");
        refused(format!("`{}` needs {missing}", self.command)).hint(self.help())
    }

    fn bad_value(&self) -> Failure {
        let (argument, value) = (self.first(ContextKind::InvalidArg), self.first(ContextKind::InvalidValue));
        let failure = match value.is_empty() {
            true => refused(format!("`{}`: {argument} needs a value", self.command)),
            false => refused(format!("`{}`: `{value}` is not a valid value for {argument}", self.command)),
        };
        let failure = self.parser_message().into_iter().fold(failure, Failure::because);
        let possible = self.all(ContextKind::ValidValue);
        match (self.suggestions(ContextKind::SuggestedValue, &value), possible.is_empty()) {
            (Some(near), _) => {
                failure.hint(format!("did you mean {near}? possible values: {}", possible.join(", ")))
            }
            (None, false) => failure.hint(format!("possible values: {}", possible.join(", "))),
            (None, true) => failure.hint(self.help()),
        }
    }

    fn conflict(&self) -> Failure {
        let (one, others) =
            (self.first(ContextKind::InvalidArg), self.all(ContextKind::PriorArg).join(" or "));
        let failure = match one == others || others.is_empty() {
            true => refused(format!("`{}`: {one} cannot be given twice", self.command)),
            false => refused(format!("`{}`: {one} cannot be used with {others}", self.command)),
        };
        failure.hint(self.help())
    }

    fn other_error(&self) -> Failure {
        let text = self.error.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        refused(first).hint(self.help())
    }

    fn help(&self) -> String {
        format!("`{} --help` has examples", self.command)
    }

    fn all(&self, kind: ContextKind) -> Vec<String> {
        match self.error.get(kind) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            _ => Vec::new(),
        }
    }

    fn first(&self, kind: ContextKind) -> String {
        self.all(kind).into_iter().next().unwrap_or_default()
    }

    /// clap also suggests names that only share some letters with `word`; they are left out.
    fn suggestions(&self, kind: ContextKind, word: &str) -> Option<String> {
        let letters = |text: &str| text.trim_start_matches('-').to_owned();
        let mut near = self.all(kind);
        near.retain(|name| is_near(&letters(word), &letters(name)));
        (!near.is_empty())
            .then(|| near.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or "))
    }

    /// The message of the value parser that refused the value.
    fn parser_message(&self) -> Option<String> {
        std::error::Error::source(self.error).map(ToString::to_string)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Positionals {
    OneTask,
    AnyNumber,
    Other,
}

/// The command at the beginning of these words, and the kind of its positional arguments.
fn typed_command(words: &[OsString]) -> (String, Positionals) {
    let (mut name, mut command) = ("agency".to_owned(), Cli::command());
    for word in words.iter().skip(1).filter(|word| !word.as_encoded_bytes().starts_with(b"-")) {
        let Some(below) = command.find_subcommand(word).cloned() else { break };
        name = format!("{name} {}", below.get_name());
        command = below;
    }
    let positionals: Vec<_> = command.get_positionals().collect();
    let is_open_ended =
        |arg: &&clap::Arg| !arg.is_last_set() && matches!(arg.get_action(), ArgAction::Append);
    let positionals = match positionals.as_slice() {
        all if all.iter().any(is_open_ended) => Positionals::AnyNumber,
        [task] if task.get_id() == "task" => Positionals::OneTask,
        _ => Positionals::Other,
    };
    (name, positionals)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[track_caller]
    fn check(words: &str, wanted: &str) {
        let error = Cli::try_parse_from(words.split(' ')).expect_err("wrong usage");
        let typed: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        let failure = failure(&error, &typed);
        assert_eq!(failure.to_string(), wanted, "{words}");
        assert_eq!(failure.code, FailureCode::InvalidArgument, "{words}");
    }

    #[test]
    fn wrong_usage_is_reported_with_the_nearest_word_or_the_way_to_the_help() {
        check(
            "agency atttach x",
            "Error: there is no command `agency atttach`\nHint: did you mean `attach`? `agency help --all` lists all commands",
        );
        check(
            "agency show x",
            "Error: there is no command `agency show`\nHint: `agency screen` shows its screen, `agency diff` its changes, `agency chat` its conversation",
        );
        check(
            "agency daemon stpo",
            "Error: there is no command `agency daemon stpo`\nHint: did you mean `stop`? `agency daemon --help` lists its commands",
        );
        check(
            "agency new x --agnet y",
            "Error: `agency new` has no option `--agnet`\nHint: did you mean `--agent`? `agency new --help` has examples",
        );
        check(
            "agency attach one two",
            "Error: `agency attach` takes one task, but got also `two`\nHint: `agency attach --help` has examples",
        );
        check("agency diff", "Error: `agency diff` needs <TASK>\nHint: `agency diff --help` has examples");
        check(
            "agency send x",
            "Error: `agency send` needs <MESSAGE>...\nHint: `agency send --help` has examples",
        );
        check(
            "agency new x --vcs gti",
            "Error: `agency new`: `gti` is not a valid value for --vcs <VCS>\nHint: possible values: git, jj, none",
        );
        check(
            "agency attach x --take --read-only",
            "Error: `agency attach`: --take cannot be used with --read-only\nHint: `agency attach --help` has examples",
        );
        check(
            "agency replay f --speed no",
            "Error: `agency replay`: `no` is not a valid value for --speed <SPEED>\nCaused by: it must be a number above 0\nHint: `agency replay --help` has examples",
        );
        check(
            "agency new x -m",
            "Error: `agency new`: --message <MESSAGE> needs a value\nHint: `agency new --help` has examples",
        );
        check(
            "agency config set workspace.opener sh -c x",
            "Error: `agency config set` has no option `-c`\nHint: put words that begin with a dash after `--`: agency config set … -- … -c",
        );
        check(
            "agency wait x --timeout soon",
            "Error: `agency wait`: `soon` is not a valid value for --timeout <TIME>\nCaused by: it is not a duration: try `90s`, `10m`, `2h` or `1d`\nHint: `agency wait --help` has examples",
        );
        check("agency logs", "Error: `agency logs` needs <TASK>\nHint: `agency logs --help` has examples");
    }
}
