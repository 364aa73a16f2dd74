//! The files of a jj workspace as git trees, also those that jj does not track.
//!
//! Changes nothing but the object store; a look not even that.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::details::DetailsSource;
use crate::disk::Disk;
use crate::error::{OperationCause, RemoveCause};
use crate::git::Git;
use crate::ignored::{IgnoredFiles, ignored_paths};
use crate::jj::repository::{JjRepository, Revision};
use crate::name::WorkspaceName;
use crate::repository::{Repository, commit_tree};
use crate::saved_commit::{Contents, Ignored};
use crate::temp_index::{TempIndex, parse_paths};

/// The cached index, in jj's directory of a workspace. It tells which files are as in the commit and need not be
/// read again.
const MEMORY: &str = "agency-index";

/// Creates a temporary index over the directory, with the content of its working-copy commit.
pub(super) fn temp_index(
    repository: &JjRepository,
    name: &WorkspaceName,
    target: &Revision,
) -> Result<TempIndex, OperationCause> {
    let git_dir = repository.store().common_dir();
    let unwritable = |source| OperationCause::Write { path: git_dir.to_owned(), source };
    let git = git_in(repository.store(), &repository.workspace_path(name));
    let temp_index = TempIndex::empty(git, git_dir).map_err(unwritable)?;
    temp_index.git().change(&["read-tree", &target.id])?;
    Ok(temp_index)
}

/// Git with the files of the workspace, which need not have a `.git`.
fn git_in(store: &Repository, path: &Path) -> Git {
    Git::on(store.environment(), store.common_dir(), path).with_work_tree(path)
}

/// Like [`temp_index`], for a workspace that stays: remembers which files are as in the commit, so that the next
/// call need not read them again.
pub(super) fn commit_index(
    store: &Repository,
    path: &Path,
    target: &Revision,
) -> Result<TempIndex, OperationCause> {
    let memory = path.join(".jj").join(MEMORY);
    let unwritable = |source| OperationCause::Write { path: memory.clone(), source };
    let cached = TempIndex::from_cache(git_in(store, path), store.common_dir(), &memory);
    let (temp_index, is_known) = cached.map_err(unwritable)?;
    match is_known {
        // Keeps the file times of entries that are the same in the commit, whatever the files are now.
        true => temp_index.git().change(&["read-tree", "-i", "-m", &target.id])?,
        false => temp_index.git().change(&["read-tree", &target.id])?,
    };
    temp_index.refresh()?;
    temp_index.write_cache(&memory).map_err(unwritable)?;
    Ok(temp_index)
}

/// Creates a temporary index of the present files. Does not call jj, so its operation log and the files stay as
/// they are. New objects go to `store`, which may throw them away.
pub(super) fn current_index(
    store: &Repository,
    path: &Path,
    target: &Revision,
) -> Result<TempIndex, OperationCause> {
    let temp_index = commit_index(store, path, target)?;
    temp_index.add_readable_except(".jj")?;
    Ok(temp_index)
}

/// Lists the files in the directory that differ from a commit.
pub(super) fn list_changed_since(
    repository: &JjRepository,
    name: &WorkspaceName,
    commit: &Revision,
) -> Result<Vec<PathBuf>, OperationCause> {
    let temp_index = temp_index(repository, name, commit)?;
    temp_index.add_readable_except(".jj")?;
    let args = ["diff-index", "--cached", "--name-only", "--no-renames", "-z", &commit.id];
    Ok(parse_paths(&temp_index.git().read(&args)?))
}

/// Lists files that jj does not track: too big, or excluded by the user's configuration.
pub(super) fn untracked(
    repository: &JjRepository,
    name: &WorkspaceName,
    target: &Revision,
) -> Result<Vec<PathBuf>, OperationCause> {
    others(&temp_index(repository, name, target)?, &["--exclude-standard"])
}

fn others(temp_index: &TempIndex, options: &[&str]) -> Result<Vec<PathBuf>, OperationCause> {
    let args = [&["ls-files", "--others", "-z", "--exclude=/.jj/"], options].concat();
    let mut files = parse_paths(&temp_index.git().read(&args)?);
    files.retain(|file| !file.starts_with(".jj"));
    Ok(files)
}

/// Reads everything in the directory, whether jj tracks it or not.
pub(super) fn read_all(
    repository: &JjRepository,
    name: &WorkspaceName,
    target: &Revision,
    ignored: Ignored,
    is_forgotten: bool,
) -> Result<Contents, OperationCause> {
    let temp_index = temp_index(repository, name, target)?;
    // jj has snapshotted these files, unless the user has made it forget the workspace. Only jj can read the tree
    // of a commit with conflicts.
    if is_forgotten && !target.has_conflict {
        let git = temp_index.git().clone().with_config("core.autocrlf=false");
        git.change(&["add", "--update", "--", ":/"])?;
    }
    let files = others(&temp_index, &["--exclude-standard"])?;
    // Git lists a nested repository as a directory.
    let (nested, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| is_directory(file));
    if !nested.is_empty() {
        return Err(RemoveCause::NestedRepositories { paths: nested }.into());
    }
    temp_index.add_paths(&files)?;
    let tree = temp_index.tree()?;
    let paths = ignored_paths(temp_index.git())?;
    let with_ignored = match ignored {
        Ignored::Left => None,
        Ignored::Saved => {
            let files = others(&temp_index, &[])?;
            temp_index
                .add_paths(&files.into_iter().filter(|file| !is_directory(file)).collect::<Vec<_>>())?;
            Some(temp_index.tree()?).filter(|with| *with != tree)
        }
    };
    let store = repository.store();
    let details = save_details(repository, name, &temp_index, ignored, paths, Vec::new())?;
    let with =
        with_ignored.map(|with| commit_tree(store, &with, &[&target.id], "agency: with ignored files"));
    let (head, ignored, details) = (Some(target.id.clone()), with.transpose()?, Some(details));
    Ok(Contents { tree, head, ignored, details, ..Contents::default() })
}

/// Saves the details of the files that the index has: those of a turn.
pub(super) fn save_turn_details(
    repository: &JjRepository,
    name: &WorkspaceName,
    temp_index: &TempIndex,
) -> Result<String, OperationCause> {
    let paths = ignored_paths(temp_index.git())?;
    let untracked = others(temp_index, &["--exclude-standard"])?;
    save_details(repository, name, temp_index, Ignored::Left, paths, untracked)
}

/// Lists everything on the disk but ignored files, and files that the index does not have.
pub(super) fn walk_indexed(temp_index: &TempIndex, root: &Path) -> Result<Disk, OperationCause> {
    let mut left_out: HashSet<PathBuf> = [".git", ".jj"].map(PathBuf::from).into();
    left_out.extend(ignored_paths(temp_index.git())?);
    left_out.extend(others(temp_index, &["--exclude-standard"])?.iter().map(|path| without_slash(path)));
    Ok(Disk::walk(root, Path::new(""), &left_out))
}

/// `untracked` are files that are not saved.
fn save_details(
    repository: &JjRepository,
    name: &WorkspaceName,
    temp_index: &TempIndex,
    ignored: Ignored,
    paths: Vec<PathBuf>,
    untracked: Vec<PathBuf>,
) -> Result<String, OperationCause> {
    let root = repository.workspace_path(name);
    let mut left_out: HashSet<PathBuf> = [".git", ".jj"].map(PathBuf::from).into();
    left_out.extend(untracked.iter().map(|path| without_slash(path)));
    let mut nested = Vec::new();
    match ignored {
        Ignored::Left => left_out.extend(paths),
        Ignored::Saved => {
            // jj ignores its own directory in every workspace.
            let paths: Vec<PathBuf> = paths.into_iter().filter(|path| !left_out.contains(path)).collect();
            nested = IgnoredFiles::find(&root, &paths).repositories();
        }
    }
    let source = DetailsSource {
        repository: repository.store(),
        temp_index,
        root: &root,
        worktree: None,
        left_out: &left_out,
        nested: &nested,
        only: None,
    };
    Ok(source.save()?)
}

fn without_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

fn is_directory(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}
