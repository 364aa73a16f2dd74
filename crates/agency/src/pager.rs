//! A long text on a terminal: shown in the user's pager, as git shows it.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

use tokio::signal::unix::{SignalKind, signal};

use crate::stop::{Stop, failed};

/// Ours, where nobody has said otherwise: leaves at once when all of it fits, and shows colours.
const USUAL: &str = "less";
const USUAL_OPTIONS: [(&str, &str); 2] = [("LESS", "FRX"), ("LV", "-c")];

/// Through the pager on a terminal, straight on elsewhere. `of_git` is what git is configured to use there.
pub(crate) fn show(text: &[u8], of_git: Option<&str>) -> Result<(), Stop> {
    match pager(of_git).filter(|_| io::stdout().is_terminal() && !text.is_empty()) {
        Some(pager) => page(&pager, text),
        None => print(text),
    }
}

/// As bytes, so that a patch stays the patch it is.
pub(crate) fn print(text: &[u8]) -> Result<(), Stop> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text)?;
    Ok(stdout.flush()?)
}

/// None for a user who wants none.
fn pager(of_git: Option<&str>) -> Option<String> {
    let set = |name| std::env::var(name).ok();
    chosen([set("GIT_PAGER"), of_git.map(str::to_owned), set("PAGER")])
}

/// The first that is set, in git's own order.
fn chosen(set: [Option<String>; 3]) -> Option<String> {
    let pager = set.into_iter().flatten().next().unwrap_or_else(|| USUAL.to_owned());
    let pager = pager.trim();
    (!pager.is_empty() && pager != "cat").then(|| pager.to_owned())
}

fn page(pager: &str, text: &[u8]) -> Result<(), Stop> {
    // Ctrl-c is the pager's while it shows.
    let _interrupts =
        signal(SignalKind::interrupt()).map_err(|err| failed("cannot listen for signals", &err))?;
    let mut command = Command::new("sh");
    command.args(["-c", pager]).stdin(Stdio::piped());
    let unset = USUAL_OPTIONS.into_iter().filter(|(name, _)| std::env::var_os(name).is_none());
    let Ok(mut child) = command.envs(unset).spawn() else { return print(text) };
    // Whoever leaves early has seen enough.
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text));
    let status = child.wait().map_err(|err| failed("cannot wait for the pager", &err))?;
    match (status.code(), written) {
        // The shell did not find it.
        (Some(126 | 127), _) => print(text),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_pager_counts_and_none_is_none() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(chosen([None, None, None]).as_deref(), Some("less"));
        assert_eq!(chosen([None, None, some(" delta --dark ")]).as_deref(), Some("delta --dark"));
        assert_eq!(chosen([None, some("delta"), some("more")]).as_deref(), Some("delta"));
        assert_eq!(chosen([some("most"), some("delta"), None]).as_deref(), Some("most"));
        assert_eq!(chosen([None, some("cat"), some("less")]), None);
        assert_eq!(chosen([some(""), None, some("less")]), None);
    }
}
