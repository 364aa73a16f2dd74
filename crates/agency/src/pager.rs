//! Shows a long text in the user's pager, as git does.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

use tokio::signal::unix::{SignalKind, signal};

use crate::outcome::{CommandError, failed};

/// The default pager. With these options it exits at once if the text fits the screen, and shows colours.
const DEFAULT_PAGER: &str = "less";
const DEFAULT_OPTIONS: [(&str, &str); 2] = [("LESS", "FRX"), ("LV", "-c")];

/// Opens the pager on a terminal; otherwise prints the text. `git_pager` is git's `core.pager` of the repository.
pub(crate) fn show(text: &[u8], git_pager: Option<&str>) -> Result<(), CommandError> {
    match pager(git_pager).filter(|_| io::stdout().is_terminal() && !text.is_empty()) {
        Some(pager) => page(&pager, text),
        None => print(text),
    }
}

/// Prints bytes, because a patch must not change.
pub(crate) fn print(text: &[u8]) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text)?;
    Ok(stdout.flush()?)
}

/// `None` if the user wants no pager.
fn pager(git_pager: Option<&str>) -> Option<String> {
    let set = |name| std::env::var(name).ok();
    choose([set("GIT_PAGER"), git_pager.map(str::to_owned), set("PAGER")])
}

/// The first value that is set. The order is git's.
fn choose(set: [Option<String>; 3]) -> Option<String> {
    let pager = set.into_iter().flatten().next().unwrap_or_else(|| DEFAULT_PAGER.to_owned());
    let pager = pager.trim();
    (!pager.is_empty() && pager != "cat").then(|| pager.to_owned())
}

fn page(pager: &str, text: &[u8]) -> Result<(), CommandError> {
    // Ctrl-c belongs to the pager while it runs, so it must not end us.
    let _interrupts =
        signal(SignalKind::interrupt()).map_err(|err| failed("cannot listen for signals", &err))?;
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    let unset = DEFAULT_OPTIONS.into_iter().filter(|(name, _)| std::env::var_os(name).is_none());
    let Ok(mut child) = command.envs(unset).spawn() else { return print(text) };
    // The write fails if the user quits the pager early, which is no error.
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text));
    let status = child.wait().map_err(|err| failed("cannot wait for the pager", &err))?;
    match (status.code(), written) {
        // The shell did not find the pager.
        (Some(126 | 127), _) => print(text),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_pager_is_used_and_cat_means_none() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(choose([None, None, None]).as_deref(), Some("less"));
        assert_eq!(choose([None, None, some(" delta --dark ")]).as_deref(), Some("delta --dark"));
        assert_eq!(choose([None, some("delta"), some("more")]).as_deref(), Some("delta"));
        assert_eq!(choose([some("most"), some("delta"), None]).as_deref(), Some("most"));
        assert_eq!(choose([None, some("cat"), some("less")]), None);
        assert_eq!(choose([some(""), None, some("less")]), None);
    }
}
