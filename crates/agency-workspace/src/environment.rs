//! The environment in which git, its hooks and its filters run.
//!
//! Not the agent's environment: that one belongs to the keeper.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// The `GIT_*` variables of the caller that stay: where git and its configuration are, and who the user is.
/// All others (GIT_DIR, GIT_INDEX_FILE, GIT_CONFIG_COUNT…) would point our calls at another repository or
/// index, and a date would apply to every later commit.
const KEPT: [&str; 11] = [
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
];

/// The environment variables for git, jj and their hooks.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
    has_lfs: bool,
}

impl Environment {
    /// Returns the environment of this process.
    pub fn inherited() -> Self {
        Self::of(std::env::vars_os())
    }

    /// Takes the environment of a caller: the PATH of the CLI that called finds the user's hooks and filters.
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let mut kept: Vec<_> = variables.into_iter().filter(|(name, _)| !steers_git(name)).collect();
        set_message_language(&mut kept);
        let has_lfs = find_in_path(&kept, "git-lfs").is_some();
        Self { variables: kept, has_lfs }
    }

    /// Whether the PATH leads to a program of that name.
    pub(crate) fn has_program(&self, program: &str) -> bool {
        find_in_path(&self.variables, program).is_some()
    }

    /// A command that runs the program with these variables alone. It names the program by its path: for a bare name, the
    /// standard library would search the PATH in a forked copy of the daemon, which costs more the more memory it has.
    pub(crate) fn command(&self, program: &str) -> Command {
        let found = find_in_path(&self.variables, program);
        let mut command = Command::new(found.unwrap_or_else(|| program.into()));
        command.env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Computed once, because every call of git needs it.
    pub(crate) fn has_lfs(&self) -> bool {
        self.has_lfs
    }

    /// Adds variables that steer git.
    pub(crate) fn with_variables(&self, more: impl IntoIterator<Item = (&'static str, OsString)>) -> Self {
        let more = more.into_iter().map(|(name, value)| (name.into(), value));
        Self { variables: self.variables.iter().cloned().chain(more).collect(), ..self.clone() }
    }
}

/// Prints no values: they are secrets, and printed values end up in logs.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.variables.len())
    }
}

/// The first program of that name in the PATH. Relative directories do not count: the daemon has no directory of its own.
fn find_in_path(variables: &[(OsString, OsString)], program: &str) -> Option<PathBuf> {
    let (_, path) = variables.iter().find(|(name, _)| name == "PATH")?;
    let runs = |file: &PathBuf| {
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(program)).find(runs)
}

fn steers_git(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b"GIT_") && !KEPT.iter().any(|kept| kept.as_bytes() == name)
}

/// Makes git print English, because this crate parses its messages. `LC_ALL=C` would do that too, but hooks
/// that print or read UTF-8 fail under it, so only the language of messages changes.
fn set_message_language(variables: &mut Vec<(OsString, OsString)>) {
    let all = variables.iter().find(|(name, value)| name == "LC_ALL" && !value.is_empty());
    let all = all.map(|(_, value)| value.clone());
    let dropped = |name: &OsStr| {
        let overridden = all.is_some() && (name == "LANG" || name.as_encoded_bytes().starts_with(b"LC_"));
        overridden || name == "LC_ALL" || name == "LC_MESSAGES" || name == "LANGUAGE"
    };
    variables.retain(|(name, _)| !dropped(name));
    if let Some(all) = all {
        variables.push(("LANG".into(), all));
    }
    variables.push(("LC_MESSAGES".into(), "C".into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_variables(given: &[(&str, &str)]) -> Vec<String> {
        let given = given.iter().map(|(name, value)| (name.into(), value.into()));
        let environment = Environment::of(given);
        environment.variables.iter().map(|(n, v)| format!("{}={}", n.display(), v.display())).collect()
    }

    #[test]
    fn variables_that_point_git_elsewhere_are_dropped_and_configuration_stays() {
        let given =
            [("GIT_DIR", "/x"), ("GIT_INDEX_FILE", "/y"), ("GIT_CONFIG_GLOBAL", "/z"), ("PATH", "/bin")];
        assert_eq!(list_variables(&given), ["GIT_CONFIG_GLOBAL=/z", "PATH=/bin", "LC_MESSAGES=C"]);
    }

    #[test]
    fn the_identity_of_commits_stays_and_their_date_does_not() {
        let given = [("GIT_AUTHOR_NAME", "Ada"), ("GIT_COMMITTER_EMAIL", "a@b"), ("GIT_AUTHOR_DATE", "@0")];
        assert_eq!(
            list_variables(&given),
            ["GIT_AUTHOR_NAME=Ada", "GIT_COMMITTER_EMAIL=a@b", "LC_MESSAGES=C"]
        );
    }

    #[test]
    fn messages_are_english_and_the_encoding_stays_the_users() {
        let german = [("LC_ALL", "de_DE.UTF-8"), ("LANG", "fr_FR"), ("LANGUAGE", "de"), ("LC_CTYPE", "C")];
        assert_eq!(list_variables(&german), ["LANG=de_DE.UTF-8", "LC_MESSAGES=C"]);
        assert_eq!(list_variables(&[("LANG", "de_DE.UTF-8")]), ["LANG=de_DE.UTF-8", "LC_MESSAGES=C"]);
    }

    #[test]
    fn values_are_not_printed_by_accident() {
        let environment = Environment::of([("TOKEN".into(), "secret".into())]);
        assert_eq!(format!("{environment:?}"), "Environment(2 variables)");
    }
}
