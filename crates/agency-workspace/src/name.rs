//! The name of a workspace, `{id}-{slug}`, which is also its directory and the end of its branch.
//!
//! Checks only that the name is safe as a path and as a ref, not the other rules of a slug.

use std::fmt;
use std::str::FromStr;

/// The prefix of all branches that Agency creates.
pub(crate) const BRANCHES: &str = "agency/";

/// The folder of all workspaces, below the project's root.
pub(crate) const WORKTREES: &str = ".agency/worktrees";

/// A file name may have 255 bytes, and git adds `.lock` to the ref of the same name.
const LONGEST: usize = 200;

/// The name of a workspace: `{id}-{slug}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspaceName(String);

/// A text is not the name of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a workspace name: a number, a dash, then letters, digits and dashes")]
pub struct NameError(String);

impl WorkspaceName {
    /// Builds a name from the id and the slug of a task.
    pub fn new(task_id: u64, slug: &str) -> Result<Self, NameError> {
        format!("{task_id}-{slug}").parse()
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the digits before the first dash.
    pub fn task_id(&self) -> &str {
        self.0.split_once('-').map_or(self.as_str(), |(id, _)| id)
    }

    /// Returns the branch: `agency/{id}-{slug}`.
    pub fn branch(&self) -> String {
        format!("{BRANCHES}{}", self.0)
    }
}

impl FromStr for WorkspaceName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let refused = || NameError(text.to_owned());
        let (id, slug) = text.split_once('-').ok_or_else(refused)?;
        let id_fits = !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
        let slug_fits = !slug.is_empty() && slug.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if id_fits && slug_fits && text.len() <= LONGEST { Ok(Self(text.to_owned())) } else { Err(refused()) }
    }
}

impl fmt::Display for WorkspaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_letters_and_dashes_make_a_name() {
        assert_eq!(WorkspaceName::new(12, "Fix-login").unwrap().branch(), "agency/12-Fix-login");
        for bad in ["", "12", "12-", "-x", "x-1", "1-a/b", "1-a b", "1-..", "1-a.lock", "1-ü"] {
            assert!(bad.parse::<WorkspaceName>().is_err(), "{bad}");
        }
        assert!(WorkspaceName::new(1, &"x".repeat(300)).is_err());
    }
}
