//! Chooses the ignored files that a new workspace needs.
//!
//! `.worktreeinclude` in the project's root names them, in the syntax of `.gitignore`, and so do the user's
//! own patterns. `copy` does the copying.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::git::Git;
use crate::project::{Kind, Project};
use crate::tool::ToolError;

/// The file that names the files to copy. Other tools use the same name.
pub const INCLUDE_FILE: &str = ".worktreeinclude";

/// Whether any file could be copied. Cheaper than listing the files.
pub fn includes_files(project: &Project, patterns: &[String]) -> bool {
    listing_git(project).is_some() && (!patterns.is_empty() || include_file(project.root()).is_some())
}

/// Lists the files that git ignores and that match, relative to the project's root. Leaves out a file that
/// git would show as untracked: its author has not decided yet whether to commit it.
pub(crate) fn list_included_files(project: &Project, patterns: &[String]) -> Result<Vec<PathBuf>, ToolError> {
    let Some(git) = listing_git(project) else { return Ok(Vec::new()) };
    let matching = list_files(&git, &matching_options(project.root(), patterns))?;
    if matching.is_empty() {
        return Ok(Vec::new());
    }
    let untracked: HashSet<PathBuf> = list_files(&git, &["--exclude-standard"])?.into_iter().collect();
    Ok(matching.into_iter().filter(|path| is_a_plain_file_name(path) && !untracked.contains(path)).collect())
}

/// Returns git over the files of the main checkout. None where every task works in the directory itself, or
/// where there is no checkout.
fn listing_git(project: &Project) -> Option<Git> {
    match &project.kind {
        Kind::Git(repository) if !repository.is_bare() => {
            Some(repository.git().with_work_tree(repository.root()))
        }
        Kind::Jj(repository) => Some(repository.store().git().with_work_tree(repository.root())),
        Kind::Git(_) | Kind::Plain(_) => None,
    }
}

/// Returns the include file. A pipe or a device of that name would block git, so it must be a regular file.
fn include_file(root: &Path) -> Option<PathBuf> {
    let path = root.join(INCLUDE_FILE);
    path.symlink_metadata().is_ok_and(|meta| meta.is_file()).then_some(path)
}

fn matching_options(root: &Path, patterns: &[String]) -> Vec<OsString> {
    let mut options = vec![OsString::from("--ignored")];
    if let Some(path) = include_file(root) {
        let mut option = OsString::from("--exclude-from=");
        option.push(path);
        options.push(option);
    }
    // Without any pattern git refuses to list ignored files.
    options.push("--exclude=/.agency/".into());
    options.extend(patterns.iter().map(|pattern| format!("--exclude={pattern}").into()));
    options
}

fn list_files<A: AsRef<OsStr>>(git: &Git, options: &[A]) -> Result<Vec<PathBuf>, ToolError> {
    let mut args: Vec<&OsStr> = ["ls-files", "--others", "-z"].iter().map(OsStr::new).collect();
    args.extend(options.iter().map(AsRef::as_ref));
    let listed = git.read(&args)?;
    let entries = listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    Ok(entries.map(|entry| PathBuf::from(OsStr::from_bytes(entry))).collect())
}

/// Whether the path is a file inside the project that belongs neither to Agency nor to a repository. Git
/// lists a nested repository with a slash at the end.
fn is_a_plain_file_name(path: &Path) -> bool {
    let own = [".git", ".jj", ".agency"].map(OsStr::new);
    let mut parts = path.components();
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(name) if name != own[0]);
    let is_ours = parts.clone().next().is_some_and(|first| own.contains(&first.as_os_str()));
    !is_ours && parts.all(is_plain) && !path.as_os_str().as_bytes().ends_with(b"/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_inside_the_project_are_files_to_copy() {
        for good in [".env", "a/.env", "a/.agency/x", ".github/x", "a b/ü"] {
            assert!(is_a_plain_file_name(Path::new(good)), "{good}");
        }
        for bad in
            ["/etc/passwd", "../x", "a/../../x", ".agency/tasks/1.md", ".jj/x", "a/.git/config", "nested/"]
        {
            assert!(!is_a_plain_file_name(Path::new(bad)), "{bad}");
        }
    }
}
