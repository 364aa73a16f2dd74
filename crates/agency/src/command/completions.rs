//! `agency completions`: what a shell runs so that it can complete our commands.

use std::process::ExitCode;

use agency_api::Failure;
use clap::ValueEnum;

use crate::cli::{Completions, Shell};
use crate::complete::{SHELLS, VARIABLE};
use crate::output;
use crate::stop::Done;

const NAME: &str = "agency";

pub(super) fn completions(args: &Completions) -> Done {
    output::line(script(args.shell)?.trim())?;
    Ok(ExitCode::SUCCESS)
}

/// Calls us by name, so that it stays right when the program is installed elsewhere.
fn script(shell: Shell) -> Result<String, Failure> {
    let name = shell.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let cannot = || Failure::new(format!("there are no completions for {name}"));
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
    fn every_shell_has_a_script_that_sets_our_variable_for_one_call() {
        for shell in Shell::value_variants() {
            let script = script(*shell).expect("a script");
            assert!(script.contains(VARIABLE), "{shell:?}");
            assert!(!script.contains(&format!("export {VARIABLE}")), "{shell:?}");
        }
    }
}
