//! Checks the programs that workspaces need.

use std::path::Path;

use agency_api::Bytes;

use super::finding::{About, Finding};
use crate::program_version;

/// The first version with `git worktree list --porcelain -z`, which names with line ends need.
const OLDEST_GIT: (u32, u32) = (2, 36);

pub(super) async fn check() -> Vec<Finding> {
    let (git, jj) = tokio::join!(ask_program("git"), ask_program("jj"));
    vec![git_finding(git), jj_finding(jj)]
}

enum Answer {
    Missing,
    Silent,
    Version(String),
}

async fn ask_program(program: &str) -> Answer {
    let Some(path) = on_path(program) else { return Answer::Missing };
    match program_version::ask_version(Some(path)).await {
        Some(version) => Answer::Version(version),
        None => Answer::Silent,
    }
}

fn on_path(program: &str) -> Option<Bytes> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|dir| dir.join(program)).find(|path| is_executable(path));
    found.map(Bytes::from)
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn git_finding(git: Answer) -> Finding {
    let programs = About::Programs;
    match git {
        Answer::Missing => programs.broken(
            "git is not installed: tasks cannot have worktrees",
            "install git, or use `agency new --vcs none`",
        ),
        Answer::Silent => {
            programs.broken("git does not print its version", "check the output of `git --version`")
        }
        Answer::Version(version) if is_older(&version, OLDEST_GIT) => programs
            .warning(format!("git {version} is older than {}.{}", OLDEST_GIT.0, OLDEST_GIT.1), "upgrade git"),
        Answer::Version(version) => programs.fine(format!("git {version}")),
    }
}

fn jj_finding(jj: Answer) -> Finding {
    match jj {
        Answer::Version(version) => About::Programs.fine(format!("jj {version}")),
        Answer::Missing | Answer::Silent => {
            About::Programs.note("jj is not installed; only jj repositories need it")
        }
    }
}

fn is_older(version: &str, oldest: (u32, u32)) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < oldest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(is_older("2.9.1", (2, 36)) && is_older("1.99", (2, 36)));
        assert!(!is_older("2.36.0", (2, 36)) && !is_older("2.100.rc1", (2, 36)) && !is_older("3.0", (2, 36)));
    }
}
