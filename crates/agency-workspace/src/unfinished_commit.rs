//! A commit of a jj repository that is not ready to be merged, in the words that a user reads.
//!
//! Not how it is found: see `jj`.

use std::fmt;

/// A commit that is not ready to be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedCommit {
    /// The change id, as jj shows it.
    pub change: String,
    /// The workspaces that have it as their working copy, each with an `@`.
    pub working_copy: Option<String>,
    /// The first line of its description.
    pub subject: String,
}

impl UnfinishedCommit {
    /// Says how the user can finish the commit.
    pub(crate) fn hint(&self) -> String {
        let change = &self.change;
        match self.working_copy.as_deref() {
            Some("default@") => "`jj commit` finishes it".into(),
            Some(other) => format!("`jj commit` in workspace {} finishes it", other.trim_end_matches('@')),
            None => format!("`jj describe -r {change}` gives it one"),
        }
    }
}

impl fmt::Display for UnfinishedCommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { change, working_copy, subject } = self;
        match (working_copy.as_deref(), subject.as_str()) {
            (Some("default@"), "") => write!(f, "{change}, which is your own working copy @"),
            (Some("default@"), subject) => {
                write!(f, "{change} ({subject}), which is your own working copy @")
            }
            (Some(other), _) => write!(f, "{change}, which is the working copy {other}"),
            (None, _) => write!(f, "{change}, which has no description"),
        }
    }
}
