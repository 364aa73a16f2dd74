//! Whether anything has changed in workspaces since the last look.
//!
//! Reads only metadata, of every file that is not ignored, and starts no process while nothing changes. Not what
//! has changed: `conflicts` finds that.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tracing::debug;

use crate::name::WorkspaceName;
use crate::project::{Kind, Project, workspace_path};
use crate::repository::Repository;
use crate::stamp::{Stamper, stamp_refs};
use crate::tool::ToolError;
use crate::worktree::Worktree;

/// Settings that decide which files count.
const SETTINGS: [&str; 2] = ["info/exclude", "info/attributes"];

/// The stamps of the last look at the workspaces of a project.
#[derive(Debug, Default)]
pub(crate) struct ChangeCheck {
    /// The workspaces, each with its base, as the last caller named them.
    names: Vec<(WorkspaceName, Option<String>)>,
    refs: Option<u64>,
    workspaces: HashMap<WorkspaceName, Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Directories that git ignores as a whole. A walk skips them: they may hold a million files.
    ignored: HashSet<PathBuf>,
    /// None if the files were too young, or a look failed.
    stamp: Option<u64>,
}

impl ChangeCheck {
    /// Whether something has changed since the last call, or may have changed. Remembers the present stamps, so
    /// read the content after this call: a change in between is found by the next one.
    pub(crate) fn take_change(
        &mut self,
        project: &Project,
        names: &[(WorkspaceName, Option<String>)],
    ) -> bool {
        let Some(repository) = project.git_repository() else { return true };
        let refs = stamp_refs(project, repository, &SETTINGS, &|_| false);
        let mut has_changed = refs.is_none() || refs != self.refs || names != self.names;
        self.refs = refs;
        self.names = names.to_vec();
        self.workspaces.retain(|name, _| names.iter().any(|(known, _)| known == name));
        for (name, _) in names {
            let known = self.workspaces.entry(name.clone()).or_default();
            has_changed |= known.take_change(project, name);
        }
        has_changed
    }

    /// The content could not be read, so the next call must not call it unchanged.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

impl Known {
    fn take_change(&mut self, project: &Project, name: &WorkspaceName) -> bool {
        let path = workspace_path(project, name);
        let worktree = match &project.kind {
            Kind::Git(repository) => Worktree::open(repository, &path),
            Kind::Jj(_) | Kind::Plain(_) => None,
        };
        let now = self.stamp_files(&path, worktree.as_ref());
        if now.is_some() && now == self.stamp {
            return false;
        }
        self.stamp = now.and_then(|_| {
            self.ignored = match (&project.kind, &worktree) {
                (Kind::Git(repository), Some(worktree)) => list_ignored(repository, worktree)
                    .inspect_err(|err| debug!(%name, %err, "the ignored directories cannot be listed"))
                    .ok()?,
                _ => HashSet::new(),
            };
            self.stamp_files(&path, worktree.as_ref())
        });
        true
    }

    fn stamp_files(&self, path: &Path, worktree: Option<&Worktree>) -> Option<u64> {
        let mut stamper = Stamper::begin();
        let own = [path.join(".git"), path.join(".jj")];
        stamper.add_tree(path, &|entry| self.ignored.contains(entry) || own.iter().any(|own| own == entry));
        if let Some(worktree) = worktree {
            // The index names files that are tracked although they are ignored.
            for file in ["HEAD", "index", "config.worktree", "info/sparse-checkout"] {
                stamper.add(&worktree.git_dir.join(file));
            }
        }
        stamper.finish()
    }
}

/// Lists the directories that match an ignore pattern and hold no tracked file. A directory that only happens to
/// hold nothing but ignored files is not among them: the next file in it may count.
fn list_ignored(repository: &Repository, worktree: &Worktree) -> Result<HashSet<PathBuf>, ToolError> {
    let args = ["status", "--porcelain", "-z", "--ignored=matching", "--untracked-files=all", "--no-renames"];
    let status = worktree.git(repository).read(&args)?;
    let entries = status.split(|byte| *byte == 0);
    let directories = entries.filter_map(|entry| entry.strip_prefix(b"!! ")?.strip_suffix(b"/"));
    Ok(directories.map(|directory| worktree.path.join(OsStr::from_bytes(directory))).collect())
}
