//! `agency completions`: prints the completion script for a shell, and answers the calls of that script.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use agency_api::{Failure, FailureCode};
use clap::{CommandFactory, ValueEnum};
use clap_complete::env::{Bash, Fish, Shells, Zsh};

use crate::cli::{Cli, Completions, Shell};
use crate::outcome::CommandResult;
use crate::output;

const NAME: &str = "agency";

/// The scripts set it for the one call that asks for candidates.
const VARIABLE: &str = "AGENCY_COMPLETE";

const SHELLS: Shells<'static> = Shells(&[&Bash, &Zsh, &Fish]);

/// Answers a shell that asks for candidates; `None` if the command line is a command to run. A user may have
/// exported the variable by mistake, so its value alone does not make every command a question.
pub(crate) fn answer_shell() -> Option<ExitCode> {
    let shell = std::env::var(VARIABLE).ok()?;
    let mut words = std::env::args_os().skip(1);
    words.next().filter(|first| first == "--")?;
    let words: Vec<OsString> = words.collect();
    let completer = SHELLS.completer(&shell).filter(|_| !words.is_empty())?;
    // Progress messages would be drawn over the line that the user is typing.
    output::be_quiet(true);
    let mut answer = Vec::new();
    let here = std::env::current_dir().ok();
    let completed = completer.write_complete(&mut Cli::command(), words, here.as_deref(), &mut answer);
    let written = completed.and_then(|()| std::io::stdout().lock().write_all(&answer));
    Some(if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(super) fn completions(args: &Completions) -> CommandResult {
    output::line(script(args.shell)?.trim())?;
    Ok(ExitCode::SUCCESS)
}

/// Calls `agency` by name, so that it still works when the program moves.
fn script(shell: Shell) -> Result<String, Failure> {
    let name = shell.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let cannot = || Failure::new(format!("cannot write completions for {name}")).code(FailureCode::Internal);
    let completer = SHELLS.completer(&name).ok_or_else(cannot)?;
    let mut script = Vec::new();
    completer
        .write_registration(VARIABLE, NAME, NAME, NAME, &mut script)
        .map_err(|err| cannot().caused_by(&err))?;
    String::from_utf8(script).map_err(|err| cannot().caused_by(&err))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_sets_the_variable_for_one_call_only() {
        for shell in Shell::value_variants() {
            let script = script(*shell).expect("a script");
            assert!(script.contains(VARIABLE), "{shell:?}");
            assert!(!script.contains(&format!("export {VARIABLE}")), "{shell:?}");
        }
    }
}
