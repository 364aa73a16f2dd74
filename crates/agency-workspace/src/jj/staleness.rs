//! Updates workspaces whose commit was rewritten, so that their files are stale.
//!
//! `jj workspace update-stale` moves unsnapshotted files into a separate commit and deletes them from disk.
//! The agent would lose sight of its work, so we merge that commit back.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::git::Git;
use crate::jj::Jj;
use crate::temp_index::TempIndex;
use crate::tool::{ToolError, text};

/// Field 2 of jj's record of a checkout: the operation that wrote the files.
const OPERATION_TAG: u8 = 0x12;

/// Returns the operation that wrote the files. None if jj records it in an unknown format.
pub(super) fn files_operation(dir: &Path) -> Option<String> {
    let noted = std::fs::read(dir.join(".jj/working_copy/checkout")).ok()?;
    let [OPERATION_TAG, len, rest @ ..] = &noted[..] else { return None };
    let id = rest.get(..usize::from(*len)).filter(|_| *len < 0x80)?;
    Some(id.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").ok();
        hex
    }))
}

/// Returns the commit of the files, if it is not the commit of the workspace.
pub(super) fn stale_commit(jj: &Jj, dir: &Path) -> Result<Option<String>, ToolError> {
    let Some(operation) = files_operation(dir) else { return Ok(None) };
    let resting = jj.without_snapshot();
    let of_files = list_commits(&resting.at_operation(&operation), "@")?.into_iter().next();
    Ok(of_files.filter(|of_files| list_commits(&resting, "@").is_ok_and(|now| !now.contains(of_files))))
}

/// Updates the files, and keeps all changes in them.
pub(super) fn update_stale(jj: &Jj, dir: &Path) -> Result<(), ToolError> {
    let resting = jj.without_snapshot();
    let versions = format!("change_id({})", read_value(&resting, "@", "change_id")?);
    let known = list_commits(&resting, &versions)?;
    let of_files = stale_commit(jj, dir)?;
    let taken_back = of_files.as_deref().filter(|of_files| is_undone(jj, dir, of_files));
    jj.run_without_update(&["workspace", "update-stale"])?;
    let mut stray = list_commits(&resting, &format!("({versions}) ~ @"))?;
    stray.retain(|version| !known.contains(version));
    let now = read_value(&resting, "@", "commit_id")?;
    let files = WorkspaceFiles { jj, dir, now: &now };
    let all = [&stray[..], of_files.as_slice(), std::slice::from_ref(&now)].concat();
    if !list_commits(&resting, &format!("({}) & conflicts()", all.join("|")))?.is_empty() {
        // Only jj can write files with conflicts.
        return squash_into_working_copy(jj, &stray);
    }
    match (&stray[..], of_files.as_deref(), taken_back) {
        ([half], Some(of_files), _) if files.check_out_merge(of_files, &now, half)? => {
            resting.run_without_update(&["abandon", half]).map(drop)
        }
        ([], _, Some(of_files)) => {
            let is_put = files.check_out_merge(&format!("{of_files}^"), of_files, &format!("{now}^"))?;
            if is_put { Ok(()) } else { files.check_out(of_files) }
        }
        (stray, ..) => squash_into_working_copy(jj, stray),
    }
}

/// Squashes these commits into the working copy, with conflicts as jj writes them.
fn squash_into_working_copy(jj: &Jj, stray: &[String]) -> Result<(), ToolError> {
    if stray.is_empty() {
        return Ok(());
    }
    let from: Vec<&str> = stray.iter().flat_map(|version| ["--from", version]).collect();
    jj.run_without_update(&[&["squash", "--into", "@", "--use-destination-message"], &from[..]].concat())
        .map(drop)
}

/// Whether the workspace's commit is an earlier version of the commit of its files: the user has undone an
/// operation of theirs.
fn is_undone(jj: &Jj, dir: &Path, of_files: &str) -> bool {
    let resting = jj.without_snapshot();
    let history = files_operation(dir).and_then(|operation| {
        let of_version = r#"commit.commit_id() ++ "\n""#;
        let args = ["evolog", "--no-graph", "-r", of_files, "-T", of_version];
        resting.at_operation(&operation).run_without_update(&args).ok()
    });
    let now = read_value(&resting, "@", "commit_id");
    history.zip(now.ok()).is_some_and(|(history, now)| history.stdout.lines().skip(1).any(|line| line == now))
}

/// The files of a workspace, which are those of `now`.
struct WorkspaceFiles<'a> {
    jj: &'a Jj,
    dir: &'a Path,
    now: &'a str,
}

impl WorkspaceFiles<'_> {
    /// Checks out the merge of two commits, if it has no conflict, and lets jj take a snapshot.
    fn check_out_merge(&self, base: &str, one: &str, other: &str) -> Result<bool, ToolError> {
        let base = format!("--merge-base={base}");
        let args = ["merge-tree", "--write-tree", "--no-messages", &base, one, other];
        match self.git()?.0.read_yes_or_no(&args) {
            Ok((true, tree)) => self.check_out(String::from_utf8_lossy(&tree).trim()).map(|()| true),
            // Also if there is no merge base.
            Ok((false, _)) | Err(ToolError::Failed { .. }) => Ok(false),
            Err(err) => Err(err),
        }
    }

    fn check_out(&self, wanted: &str) -> Result<(), ToolError> {
        let (git, git_dir) = self.git()?;
        let tree = |of: &str| git.read_line(&["rev-parse", &format!("{of}^{{tree}}")]).map(text);
        let (now, wanted) = (tree(self.now)?, tree(wanted)?);
        let not_made = |source| ToolError::Start { command: "git read-tree".into(), source };
        TempIndex::empty(git, &git_dir).map_err(not_made)?.check_out(&now, &wanted)?;
        self.jj.run_without_update(&["util", "snapshot"]).map(drop)
    }

    fn git(&self) -> Result<(Git, PathBuf), ToolError> {
        let shown = self.jj.without_snapshot().run_without_update(&["git", "root"])?.stdout;
        let git_dir = PathBuf::from(shown.trim_end_matches('\n'));
        Ok((Git::on(&self.jj.environment, &git_dir, self.dir).with_work_tree(self.dir), git_dir))
    }
}

fn list_commits(jj: &Jj, revset: &str) -> Result<Vec<String>, ToolError> {
    let found = jj.run_without_update(&["log", "--no-graph", "-r", revset, "-T", r#"commit_id ++ "\n""#])?;
    Ok(found.stdout.lines().map(str::to_owned).collect())
}

fn read_value(jj: &Jj, revset: &str, what: &str) -> Result<String, ToolError> {
    Ok(jj.run_without_update(&["log", "--no-graph", "-r", revset, "-T", what])?.stdout.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operation_of_the_files_is_parsed() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(files_operation(dir.path()), None);
        std::fs::create_dir_all(dir.path().join(".jj/working_copy")).unwrap();
        let read_back = |bytes: &[u8]| {
            std::fs::write(dir.path().join(".jj/working_copy/checkout"), bytes).unwrap();
            files_operation(dir.path())
        };
        assert_eq!(read_back(b"\x12\x03\x01\xab\xff\x1a\x031-a").as_deref(), Some("01abff"));
        for other in [&b""[..], b"\x12", b"\x12\x09ab", b"\x0a\x02ab"] {
            assert_eq!(read_back(other), None);
        }
    }
}
