//! What was typed and cannot be understood, said like every other error: what, why, and the way out.

use std::ffi::OsString;
use std::process::ExitCode;

use agency_api::Failure;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use clap::{ArgAction, CommandFactory};

use crate::cli::Cli;
use crate::output;

/// The contract's code for a question of usage.
const USAGE: u8 = 2;

/// Prints help, version or the error, and says how to leave.
pub(crate) fn report(error: &Error, words: impl IntoIterator<Item = OsString>) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A reader who has enough (`agency help | head`) is no error.
            error.print().unwrap_or_default();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            error.print().unwrap_or_default();
            ExitCode::from(USAGE)
        }
        _ => {
            output::print_failure(&failure(error, words));
            ExitCode::from(USAGE)
        }
    }
}

fn failure(error: &Error, words: impl IntoIterator<Item = OsString>) -> Failure {
    let (command, takes_words) = command_of(words);
    let said = Said { error, command, takes_words };
    match error.kind() {
        ErrorKind::InvalidSubcommand => said.unknown_command(),
        ErrorKind::UnknownArgument => said.unknown_argument(),
        ErrorKind::MissingRequiredArgument => said.missing(),
        ErrorKind::MissingSubcommand => {
            Failure::new(format!("`{}` needs a command", said.command)).hint(said.help())
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::NoEquals => said.bad_value(),
        ErrorKind::ArgumentConflict => said.conflict(),
        ErrorKind::TooManyValues | ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            said.bad_value()
        }
        _ => said.otherwise(),
    }
}

struct Said<'a> {
    error: &'a Error,
    /// As typed: `agency daemon stop`.
    command: String,
    /// As many as somebody likes.
    takes_words: bool,
}

impl Said<'_> {
    fn unknown_command(&self) -> Failure {
        let word = self.one(ContextKind::InvalidSubcommand);
        let failure = Failure::new(format!("there is no command `{} {word}`", self.command));
        match self.nearest(ContextKind::SuggestedSubcommand) {
            Some(near) => {
                failure.hint(format!("did you mean {near}? `{} help` lists them all", self.command))
            }
            None => failure.hint(format!("`{} help` lists them all", self.command)),
        }
    }

    fn unknown_argument(&self) -> Failure {
        let word = self.one(ContextKind::InvalidArg);
        let what = if word.starts_with('-') { "takes no option" } else { "takes no more words:" };
        let failure = Failure::new(format!("`{}` {what} `{word}`", self.command));
        match self.nearest(ContextKind::SuggestedArg) {
            Some(near) => failure.hint(format!("did you mean {near}? {}", self.help())),
            None if word.starts_with('-') && self.takes_words => failure.hint(format!(
                "words that begin with a dash come after `--`: {} … -- … {word}",
                self.command
            )),
            None if word.starts_with('-') => failure.hint(self.help()),
            None => failure.hint(format!("{}; a text with spaces is one word in quotes", self.help())),
        }
    }

    fn missing(&self) -> Failure {
        let missing = self.all(ContextKind::InvalidArg).join(" and ");
        Failure::new(format!("`{}` needs {missing}", self.command)).hint(self.help())
    }

    fn bad_value(&self) -> Failure {
        let (argument, value) = (self.one(ContextKind::InvalidArg), self.one(ContextKind::InvalidValue));
        let failure = match value.is_empty() {
            true => Failure::new(format!("`{}`: {argument} needs a value", self.command)),
            false => Failure::new(format!("`{}`: `{value}` is no value for {argument}", self.command)),
        };
        let failure = self.source().into_iter().fold(failure, Failure::because);
        let possible = self.all(ContextKind::ValidValue);
        match (self.nearest(ContextKind::SuggestedValue), possible.is_empty()) {
            (Some(near), _) => {
                failure.hint(format!("did you mean {near}? possible: {}", possible.join(", ")))
            }
            (None, false) => failure.hint(format!("possible: {}", possible.join(", "))),
            (None, true) => failure.hint(self.help()),
        }
    }

    fn conflict(&self) -> Failure {
        let (one, others) = (self.one(ContextKind::InvalidArg), self.all(ContextKind::PriorArg).join(" or "));
        let failure = match one == others || others.is_empty() {
            true => Failure::new(format!("`{}`: {one} cannot be given twice", self.command)),
            false => Failure::new(format!("`{}`: {one} cannot be used with {others}", self.command)),
        };
        failure.hint(self.help())
    }

    fn otherwise(&self) -> Failure {
        let text = self.error.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Failure::new(first).hint(self.help())
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

    fn one(&self, kind: ContextKind) -> String {
        self.all(kind).into_iter().next().unwrap_or_default()
    }

    fn nearest(&self, kind: ContextKind) -> Option<String> {
        let near = self.all(kind);
        (!near.is_empty())
            .then(|| near.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or "))
    }

    /// What a check of ours said.
    fn source(&self) -> Option<String> {
        std::error::Error::source(self.error).map(ToString::to_string)
    }
}

/// The command that these words begin with, as far as there is one, and whether it takes any number of words.
fn command_of(words: impl IntoIterator<Item = OsString>) -> (String, bool) {
    let (mut name, mut command) = ("agency".to_owned(), Cli::command());
    for word in words.into_iter().skip(1).filter(|word| !word.as_encoded_bytes().starts_with(b"-")) {
        let Some(below) = command.find_subcommand(&word).cloned() else { break };
        name = format!("{name} {}", below.get_name());
        command = below;
    }
    let takes_words = command
        .get_positionals()
        .any(|arg| !arg.is_last_set() && matches!(arg.get_action(), ArgAction::Append));
    (name, takes_words)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[track_caller]
    fn check(words: &str, said: &str) {
        let error = Cli::try_parse_from(words.split(' ')).expect_err("not understood");
        assert_eq!(failure(&error, words.split(' ').map(OsString::from)).to_string(), said, "{words}");
    }

    #[test]
    fn what_is_not_understood_is_said_with_the_nearest_word() {
        check(
            "agency atttach x",
            "Error: there is no command `agency atttach`\nHint: did you mean `attach`? `agency help` lists them all",
        );
        check(
            "agency daemon stpo",
            "Error: there is no command `agency daemon stpo`\nHint: did you mean `stop`? `agency daemon help` lists them all",
        );
        check(
            "agency new x --agnet y",
            "Error: `agency new` takes no option `--agnet`\nHint: did you mean `--agent`? `agency new --help` has examples",
        );
        check(
            "agency attach one two",
            "Error: `agency attach` takes no more words: `two`\nHint: `agency attach --help` has examples; a text with spaces is one word in quotes",
        );
        check(
            "agency attach",
            "Error: `agency attach` needs <TASK>\nHint: `agency attach --help` has examples",
        );
        check(
            "agency send x",
            "Error: `agency send` needs <TEXT>...\nHint: `agency send --help` has examples",
        );
        check(
            "agency new x --vcs gti",
            "Error: `agency new`: `gti` is no value for --vcs <VCS>\nHint: possible: git, jj, none",
        );
        check(
            "agency attach x --take --read-only",
            "Error: `agency attach`: --take cannot be used with --read-only\nHint: `agency attach --help` has examples",
        );
        check(
            "agency replay f --speed no",
            "Error: `agency replay`: `no` is no value for --speed <SPEED>\nCaused by: a number above 0 is needed\nHint: `agency replay --help` has examples",
        );
        check(
            "agency new x -m",
            "Error: `agency new`: --message <TEXT> needs a value\nHint: `agency new --help` has examples",
        );
        check(
            "agency config set workspace.opener sh -c x",
            "Error: `agency config set` takes no option `-c`\nHint: words that begin with a dash come after `--`: agency config set … -- … -c",
        );
        check("agency logs", "Error: `agency logs` needs <TASK>\nHint: `agency logs --help` has examples");
    }
}
