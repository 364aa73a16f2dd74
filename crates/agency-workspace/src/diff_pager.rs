//! The pager that the user has configured for diffs in git.
//!
//! Reads git's configuration only: the caller has its own `$GIT_PAGER` and `$PAGER`.

use crate::project::Project;
use crate::repository::Repository;
use crate::tool::text;

/// Returns the configured pager, None without a configuration, and `cat` if git is configured to use no
/// pager.
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
    // An unreadable configuration is no reason to show nothing.
    repository.git().read_optional(&["config", "--get", key]).ok().flatten().map(text)
}
