//! What git is configured to show a diff with.
//!
//! Only its configuration: `$GIT_PAGER` and `$PAGER` are those of whoever looks.

use crate::project::Project;
use crate::repository::{Repository, text};

/// None where nothing is configured; `cat` where git is told to use none.
pub fn diff_pager(project: &Project) -> Option<String> {
    let repository = project.git_repository()?;
    let of_diffs = configured(repository, "pager.diff");
    match of_diffs.as_deref().map(str::to_ascii_lowercase).as_deref() {
        Some("false" | "no" | "off" | "0") => Some("cat".to_owned()),
        None | Some("true" | "yes" | "on" | "1" | "") => configured(repository, "core.pager"),
        Some(_) => of_diffs,
    }
}

fn configured(repository: &Repository, key: &str) -> Option<String> {
    // A configuration that cannot be read is no reason to show nothing.
    repository.git().read_optional(&["config", "--get", key]).ok().flatten().map(text)
}
