//! A jj workspace: made, looked at, kept, removed and brought back.
//!
//! What is uncommitted in git is here the working-copy commit as long as nobody has described it.

use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use tracing::warn;

use crate::aside::Alone;
use crate::base::{Base, nearest};
use crate::collisions::Fingerprint;
use crate::create::{CreateCause, Made, Workspace};
use crate::jj::repository::{JjRepository, Revision, quoted};
use crate::kept::{Contents, Ignored, Kept, commit_tree, tree_of};
use crate::landing::mark_of;
use crate::name::WorkspaceName;
use crate::operation::OperationCause;
use crate::record::{Force, record_of};
use crate::remove::{Removal, RemoveCause, Removed};
use crate::repository::WORKTREES;
use crate::scratch::{Scratch, paths};
use crate::state::{Place, Presence, WorkspaceState};
use crate::tool::{ToolError, patiently};
use crate::trash::{self, Trashed, Why};
use crate::undo::UndoCause;
use crate::work::Work;

/// `name`, a space, then a commit as in `repository`.
const LIST: &str = r#"name ++ " " ++ target.commit_id() ++ " " ++ if(target.empty(), "e", "-") ++ if(target.description(), "d", "-") ++ if(target.conflict(), "c", "-") ++ "\n""#;

/// All traces of one workspace.
#[derive(Debug)]
pub(crate) struct Jujutsu {
    pub(crate) place: Place,
    /// The directory is a workspace of this repository.
    is_ours: bool,
    /// The working-copy commit, if jj knows the workspace.
    pub(crate) target: Option<Revision>,
    /// The commit of its bookmark.
    pub(crate) bookmark: Option<String>,
    /// The working-copy commits of all other workspaces.
    pub(crate) others: Vec<String>,
    /// Files that jj did not take in.
    pub(crate) warnings: Vec<String>,
}

impl Jujutsu {
    pub(crate) fn look(repository: &JjRepository, name: &WorkspaceName) -> Result<Self, ToolError> {
        let path = repository.workspace_path(name);
        let listed = repository.jj().lines(&["workspace", "list", "-T", LIST])?;
        let all: Vec<(String, Revision)> = listed.iter().filter_map(|line| parse(line)).collect();
        let target = all.iter().find(|(known, _)| known == name.as_str()).map(|(_, target)| target.clone());
        let others = all.into_iter().filter(|(known, _)| known != name.as_str());
        Ok(Self {
            place: Place::of(&path),
            is_ours: repository.is_workspace(&path),
            target,
            bookmark: repository.store().branch_tip(&name.branch())?,
            others: others.map(|(_, target)| target.id).collect(),
            warnings: Vec::new(),
        })
    }

    /// With the files as they are now.
    pub(crate) fn take_in(repository: &JjRepository, name: &WorkspaceName) -> Result<Self, ToolError> {
        let found = Self::look(repository, name)?;
        if found.presence() != Presence::Ready {
            return Ok(found);
        }
        let told = repository.jj_inside(&repository.workspace_path(name)).run(&["util", "snapshot"])?;
        Ok(Self { warnings: refused_files(&told.said), ..Self::look(repository, name)? })
    }

    pub(crate) fn presence(&self) -> Presence {
        let is_known =
            self.target.as_ref().is_some_and(|target| !target.is_blank()) || self.bookmark.is_some();
        match self.place {
            Place::Occupied if self.is_ours && self.target.is_some() => Presence::Ready,
            Place::Occupied => Presence::NotOurs,
            Place::Missing | Place::EmptyDirectory if is_known => Presence::DirectoryGone,
            Place::Missing | Place::EmptyDirectory => Presence::Absent,
        }
    }

    /// Its working-copy commit, if there is a workspace to work in.
    pub(crate) fn ready(
        &self,
        repository: &JjRepository,
        name: &WorkspaceName,
    ) -> Result<&Revision, OperationCause> {
        match (&self.target, self.presence()) {
            (Some(target), Presence::Ready) => Ok(target),
            (_, presence) => {
                Err(OperationCause::NotReady { path: repository.workspace_path(name), presence })
            }
        }
    }

    fn uncommitted(
        &self,
        repository: &JjRepository,
        name: &WorkspaceName,
    ) -> Result<Vec<PathBuf>, OperationCause> {
        let Some(target) = self.target.as_ref().filter(|_| self.presence() == Presence::Ready) else {
            return Ok(Vec::new());
        };
        let mut files = untracked(repository, name, target)?;
        if !target.is_described && !target.is_empty {
            files.extend(changed_in(repository, &target.id)?);
        }
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// Commits that only this workspace leads to, without blank ones.
    fn unmerged(
        &self,
        repository: &JjRepository,
        name: &WorkspaceName,
        base: Option<&str>,
    ) -> Result<u64, ToolError> {
        let Some(target) = &self.target else { return Ok(0) };
        let tips = repository.tips(base)?;
        let mut landed: Vec<String> =
            tips.iter().chain(&self.others).map(|id| format!("present({id})")).collect();
        if tips.is_empty() || !repository.has_bookmark(base)? {
            landed.push(other_bookmarks(name));
        }
        if let Some(mark) = repository.store().commit(&mark_of(name))? {
            landed.push(format!("present({mark})"));
        }
        // An undescribed working copy is not a commit yet: its files are counted.
        let own = format!("::{} ~ ::({}) ~ (empty() & description(exact:\"\"))", target.id, landed.join("|"));
        let commits = repository.revisions(&own)?;
        let is_commit = |revision: &&Revision| revision.is_described || revision.id != target.id;
        Ok(commits.iter().filter(is_commit).count() as u64)
    }

    fn described(&self, repository: &JjRepository, name: &WorkspaceName) -> Result<Kept, ToolError> {
        Ok(Kept {
            workspace: Some(name.clone()),
            head: self.target.as_ref().map(|target| target.id.clone()),
            branch: self.bookmark.as_ref().map(|tip| (name.branch(), tip.clone())),
            operation: Some(repository.operation()?),
            ..Kept::default()
        })
    }
}

fn parse(line: &str) -> Option<(String, Revision)> {
    let (rest, flags) = line.rsplit_once(' ')?;
    let (name, id) = rest.rsplit_once(' ')?;
    let has = |flag: char| flags.contains(flag);
    let revision =
        Revision { id: id.to_owned(), is_empty: has('e'), is_described: has('d'), has_conflict: has('c') };
    Some((name.to_owned(), revision))
}

/// Indented lines after a warning.
fn refused_files(said: &str) -> Vec<String> {
    let after = said.lines().skip_while(|line| !line.starts_with("Warning: Refused to snapshot"));
    let files = after.skip(1).take_while(|line| line.starts_with("  "));
    files.map(|line| format!("jj does not take in {}", line.trim())).collect()
}

pub(crate) fn presence(repository: &JjRepository, name: &WorkspaceName) -> Result<Presence, ToolError> {
    Ok(Jujutsu::look(repository, name)?.presence())
}

pub(crate) fn is_there(repository: &JjRepository, name: &WorkspaceName) -> bool {
    repository.is_workspace(&repository.workspace_path(name))
}

pub(crate) fn state(
    repository: &JjRepository,
    name: &WorkspaceName,
    base: Option<&str>,
) -> Result<WorkspaceState, OperationCause> {
    let found = Jujutsu::take_in(repository, name)?;
    Ok(WorkspaceState {
        path: repository.workspace_path(name),
        presence: found.presence(),
        branch: found.bookmark.as_ref().map(|_| name.branch()),
        uncommitted: found.uncommitted(repository, name)?,
        unmerged_commits: found.unmerged(repository, name, base)?,
    })
}

pub(crate) fn fingerprint(repository: &JjRepository, name: &WorkspaceName) -> Result<Fingerprint, ToolError> {
    let mut hasher = DefaultHasher::new();
    if is_there(repository, name) {
        // One command: it takes the files in and makes an operation only if they have changed.
        let inside = repository.jj_inside(&repository.workspace_path(name));
        let at = inside.lines(&["log", "--no-graph", "-r", "@", "-T", r#"commit_id ++ "\n""#])?;
        at.first().hash(&mut hasher);
    } else {
        Jujutsu::look(repository, name)?.target.map(|target| target.id).as_ref().hash(&mut hasher);
    }
    Ok(Fingerprint::of(hasher.finish()))
}

/// What is in it now, and what there is to say of it.
pub(crate) fn contents(
    repository: &JjRepository,
    name: &WorkspaceName,
) -> Result<(Contents, Kept), OperationCause> {
    let found = Jujutsu::take_in(repository, name)?;
    let target = match (&found.target, found.presence()) {
        (Some(target), Presence::Ready | Presence::DirectoryGone) => target,
        _ => found.ready(repository, name)?,
    };
    let contents = Contents::of_commit(repository.store(), &target.id)?;
    let kept = found.described(repository, name)?;
    Ok((Contents { warnings: found.warnings, ..contents }, kept))
}

/// The base of a workspace, and the commits it is to stand on.
fn find_base(repository: &JjRepository, wanted: Option<&str>) -> Result<(Base, Vec<String>), CreateCause> {
    let Some(name) = wanted.filter(|name| *name != "HEAD") else { return current_base(repository) };
    match repository.commit_of(name)? {
        Some(commit) => Ok((Base { name: name.to_owned(), commit: commit.clone() }, vec![commit])),
        None => {
            let near = nearest(name, repository.bookmarks()?);
            Err(CreateCause::RevisionMissing { base: name.to_owned(), near })
        }
    }
}

/// What the user has in front of them; or below it, while there is nothing in it.
fn current_base(repository: &JjRepository) -> Result<(Base, Vec<String>), CreateCause> {
    let at = repository.revisions("@")?;
    let is_blank = at.iter().all(Revision::is_blank);
    let on = if is_blank { repository.revisions("@-")? } else { at };
    let is_root = |revision: &Revision| revision.id.bytes().all(|byte| byte == b'0');
    let Some(first) = on.iter().find(|revision| !is_root(revision)) else {
        return Err(CreateCause::NoCommit);
    };
    let name = repository.name_of(&first.id)?;
    let parents = on.iter().map(|revision| revision.id.clone()).collect();
    Ok((Base { name, commit: first.id.clone() }, parents))
}

pub(crate) fn check(
    repository: &JjRepository,
    name: &WorkspaceName,
    base: Option<&str>,
) -> Result<Base, CreateCause> {
    let found = Jujutsu::look(repository, name)?;
    refuse_taken(repository, name, &found)?;
    take_in_of_user(repository)?;
    Ok(find_base(repository, base)?.0)
}

/// What the user typed last belongs to what they have in front of them.
fn take_in_of_user(repository: &JjRepository) -> Result<(), ToolError> {
    patiently(|| repository.jj_of_user().run(&["util", "snapshot"]).map(drop))
}

fn refuse_taken(repository: &JjRepository, name: &WorkspaceName, found: &Jujutsu) -> Result<(), CreateCause> {
    match (found.place, found.presence()) {
        (Place::Occupied, _) => Err(CreateCause::PathTaken { path: repository.workspace_path(name) }),
        (_, Presence::DirectoryGone) if found.bookmark.is_some() => {
            Err(CreateCause::BookmarkExists { bookmark: name.branch() })
        }
        (_, Presence::DirectoryGone) => Err(CreateCause::WorkspaceKnown { name: name.clone() }),
        _ => Ok(()),
    }
}

pub(crate) fn create(
    repository: &JjRepository,
    name: &WorkspaceName,
    base: Option<&str>,
) -> Result<Workspace, CreateCause> {
    let found = Jujutsu::look(repository, name)?;
    refuse_taken(repository, name, &found)?;
    take_in_of_user(repository)?;
    let (base, parents) = find_base(repository, base)?;
    if found.target.is_some() {
        forget(repository, name)?;
    }
    let is_first = !has_others(repository, name);
    add(repository, name, found.place, &parents)?;
    let commit = Jujutsu::look(repository, name)?.target.map(|target| target.id).unwrap_or_default();
    let workspace = made(repository, name, Made::Jj { commit });
    // Said once: it is so with all of them.
    let warnings = without_git(repository, name).filter(|_| is_first).into_iter().collect();
    Ok(Workspace { base: Some(base), warnings, ..workspace })
}

/// Brings back the directory of a workspace that jj knows, or whose bookmark is there.
pub(crate) fn reattach(repository: &JjRepository, name: &WorkspaceName) -> Result<Workspace, CreateCause> {
    let found = Jujutsu::look(repository, name)?;
    if found.place == Place::Occupied {
        return Err(CreateCause::PathTaken { path: repository.workspace_path(name) });
    }
    match (&found.target, &found.bookmark) {
        (Some(target), _) => {
            let parents = parents_of(repository, &target.id)?;
            forget(repository, name)?;
            add(repository, name, found.place, &parents)?;
            edit(repository, name, target)?;
        }
        (None, Some(tip)) => add(repository, name, found.place, std::slice::from_ref(tip))?,
        (None, None) => return Err(CreateCause::BookmarkMissing { bookmark: name.branch() }),
    }
    Ok(made(repository, name, Made::Nothing))
}

fn made(repository: &JjRepository, name: &WorkspaceName, made: Made) -> Workspace {
    let path = repository.workspace_path(name);
    Workspace { name: name.clone(), path, branch: None, base: None, warnings: Vec::new(), made }
}

/// Whether there are workspaces of ours besides.
fn has_others(repository: &JjRepository, name: &WorkspaceName) -> bool {
    let entries = fs::read_dir(repository.root().join(WORKTREES)).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name() != name.as_str()).any(|entry| entry.path().join(".jj").exists())
}

/// Whether there is a `.git` is asked of the directory: it depends on the version of jj.
fn without_git(repository: &JjRepository, name: &WorkspaceName) -> Option<String> {
    if repository.workspace_path(name).join(".git").exists() {
        return None;
    }
    // All tasks of a project are of one kind.
    let way_out = match repository.is_colocated() {
        true => format!("; to have git worktrees: agency rm {name}, then agency new with --vcs git"),
        false => String::new(),
    };
    Some(format!("a jj workspace without `.git`: jj works in it, git does not{way_out}"))
}

/// Makes the workspace on top of these commits, or nothing.
fn add(
    repository: &JjRepository,
    name: &WorkspaceName,
    before: Place,
    parents: &[String],
) -> Result<(), CreateCause> {
    let path = repository.workspace_path(name);
    let folder = repository.root().join(WORKTREES);
    fs::create_dir_all(&folder)
        .map_err(|source| ToolError::Start { command: "jj workspace add".into(), source })?;
    let on = if parents.is_empty() { "root()".to_owned() } else { parents.join("|") };
    let args = ["workspace", "add", "--name", name.as_str(), "-r", &on].map(AsRef::as_ref);
    let args = [&args[..], &["--".as_ref(), path.as_os_str()]].concat();
    // Where jj makes a git worktree too, two of its commands at once stumble over git's refs.
    let _alone = Alone::with(repository.store()).map_err(unwritable)?;
    let added = patiently(|| {
        repository.jj_of_user().run(&args).map(drop).inspect_err(|_| sweep(repository, name, before))
    });
    Ok(added?)
}

fn unwritable(cause: OperationCause) -> ToolError {
    let source = std::io::Error::other(cause);
    ToolError::Start { command: "jj workspace add".into(), source }
}

/// Takes away what a failed `jj workspace add` left: there was nothing before.
fn sweep(repository: &JjRepository, name: &WorkspaceName, before: Place) {
    forget(repository, name)
        .unwrap_or_else(|left| warn!(%name, %left, "a workspace that failed stays behind"));
    let path = repository.workspace_path(name);
    if repository.is_workspace(&path) || before == Place::Missing {
        delete(&path).unwrap_or_else(|left| warn!(%name, %left, "a directory that failed stays behind"));
    }
}

fn delete(path: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(()),
        deleted => deleted,
    }
}

/// Stands the workspace on a commit itself, also one that was abandoned.
fn edit(repository: &JjRepository, name: &WorkspaceName, commit: &Revision) -> Result<(), ToolError> {
    if commit.is_blank() {
        return Ok(());
    }
    let inside = repository.jj_inside(&repository.workspace_path(name));
    inside.run(&["edit", &commit.id]).map(drop)
}

/// For an unknown name jj only warns. Newer ones give a workspace a git worktree, and leave git's record of one
/// whose directory is gone.
fn forget(repository: &JjRepository, name: &WorkspaceName) -> Result<(), ToolError> {
    repository.jj().run(&["workspace", "forget", name.as_str()])?;
    if repository.workspace_path(name).exists() {
        return Ok(());
    }
    match record_of(repository.store(), name)? {
        Some(record) => record.forget(repository.store(), Force::Yes),
        None => Ok(()),
    }
}

pub(crate) fn parents_of(repository: &JjRepository, commit: &str) -> Result<Vec<String>, ToolError> {
    let parents = repository.store().git().line(&["log", "-1", "--format=%P", commit])?;
    Ok(crate::repository::text(parents).split_whitespace().map(str::to_owned).collect())
}

fn changed_in(repository: &JjRepository, commit: &str) -> Result<Vec<PathBuf>, ToolError> {
    let args = [
        "diff-tree",
        "--root",
        "-r",
        "-z",
        "--name-only",
        "--no-renames",
        "--no-commit-id",
        "--diff-merges=first-parent",
        commit,
    ];
    Ok(paths(&repository.store().git().read(&args)?))
}

/// An index of our own over the directory, as its working-copy commit has it.
fn scratch(
    repository: &JjRepository,
    name: &WorkspaceName,
    target: &Revision,
) -> Result<Scratch, OperationCause> {
    let path = repository.workspace_path(name);
    let git_dir = repository.store().common_dir();
    let git = crate::git::Git::on(repository.store().environment(), git_dir, &path).with_work_tree(&path);
    let unwritable = |source| OperationCause::Write { path: git_dir.to_owned(), source };
    let scratch = Scratch::fresh(git, git_dir).map_err(unwritable)?;
    scratch.git().change(&["read-tree", &target.id])?;
    Ok(scratch)
}

/// Files that jj would not take in: too big, or by the user's configuration.
fn untracked(
    repository: &JjRepository,
    name: &WorkspaceName,
    target: &Revision,
) -> Result<Vec<PathBuf>, OperationCause> {
    others(&scratch(repository, name, target)?, &["--exclude-standard"])
}

fn others(scratch: &Scratch, options: &[&str]) -> Result<Vec<PathBuf>, OperationCause> {
    let args = [&["ls-files", "--others", "-z", "--exclude=/.jj/"], options].concat();
    let mut files = paths(&scratch.git().read(&args)?);
    files.retain(|file| !file.starts_with(".jj"));
    Ok(files)
}

/// All there is in the directory, whether jj took it in or not.
fn all_of(
    repository: &JjRepository,
    name: &WorkspaceName,
    target: &Revision,
    ignored: Ignored,
) -> Result<Contents, OperationCause> {
    let scratch = scratch(repository, name, target)?;
    let files = others(&scratch, &["--exclude-standard"])?;
    // A repository inside is listed as a directory.
    let (nested, files): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| is_directory(file));
    if !nested.is_empty() {
        return Err(RemoveCause::NestedRepositories { paths: nested }.into());
    }
    scratch.add_paths(&files)?;
    let tree = scratch.tree()?;
    let ignored = match ignored {
        Ignored::Left => None,
        Ignored::Kept => {
            let files = others(&scratch, &[])?;
            scratch.add_paths(&files.into_iter().filter(|file| !is_directory(file)).collect::<Vec<_>>())?;
            Some(scratch.tree()?).filter(|with| *with != tree)
        }
    };
    let store = repository.store();
    let ignored = ignored.map(|with| commit_tree(store, &with, &[&target.id], "agency: with ignored files"));
    Ok(Contents { tree, head: Some(target.id.clone()), ignored: ignored.transpose()?, ..Contents::default() })
}

fn is_directory(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

pub(crate) fn work_at_risk(
    repository: &JjRepository,
    name: &WorkspaceName,
    base: Option<&str>,
) -> Result<Option<Work>, OperationCause> {
    let found = Jujutsu::take_in(repository, name)?;
    let files = found.uncommitted(repository, name)?.len();
    let commits = found.unmerged(repository, name, base)?;
    let words = match base {
        Some(bookmark) if repository.has_bookmark(base)? => format!("not in {bookmark}"),
        _ => "in no other bookmark".to_owned(),
    };
    Ok(Work::of(name, files, commits, words))
}

pub(crate) fn undo(repository: &JjRepository, name: &WorkspaceName, commit: &str) -> Result<(), UndoCause> {
    let found = Jujutsu::take_in(repository, name).map_err(UndoCause::Git)?;
    if found.presence() == Presence::NotOurs {
        return Err(UndoCause::NotOurs { path: repository.workspace_path(name) });
    }
    let unreadable = |cause: OperationCause| UndoCause::Unreadable(Box::new(cause));
    let files = found.uncommitted(repository, name).map_err(unreadable)?.len();
    let commits = match &found.target {
        Some(target) => new_commits(repository, &target.id, commit)?,
        None => 0,
    };
    if let Some(work) = Work::of(name, files, commits, "new".into()) {
        return Err(UndoCause::HasWork(work));
    }
    if found.target.is_some() {
        take_away(repository, name, &found)?;
    }
    Ok(())
}

/// Described ones that came since the workspace stood on `first`.
fn new_commits(repository: &JjRepository, target: &str, first: &str) -> Result<u64, ToolError> {
    let parents = parents_of(repository, first)?;
    let below = if parents.is_empty() { "root()".to_owned() } else { parents.join("|") };
    let new = repository.revisions(&format!("::{target} ~ ::({below})"))?;
    Ok(new.iter().filter(|revision| revision.is_described).count() as u64)
}

pub(crate) fn remove(
    repository: &JjRepository,
    name: &WorkspaceName,
    base: Option<&str>,
    removal: Removal,
) -> Result<Removed, RemoveCause> {
    let found = Jujutsu::take_in(repository, name)?;
    let path = repository.workspace_path(name);
    if found.presence() == Presence::NotOurs {
        return Err(RemoveCause::NotOurs { path });
    }
    if !removal.discard
        && let Some(work) = work_at_risk(repository, name, base).map_err(RemoveCause::from)?
    {
        return Err(RemoveCause::HasWork(work));
    }
    let ignored = if removal.keep_ignored { Ignored::Kept } else { Ignored::Left };
    let trash = keep(repository, name, &found, Why::Removed, ignored).map_err(RemoveCause::from)?;
    let unfinished = |source| RemoveCause::Unfinished { kept: trash.clone(), source };
    let directory = (found.place != Place::Missing).then_some(path);
    take_away(repository, name, &found).map_err(unfinished)?;
    Ok(Removed { branch: found.bookmark.map(|_| name.branch()), directory, trash })
}

/// Keeps all there is of it. None if there is nothing.
pub(crate) fn keep(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &Jujutsu,
    why: Why,
    ignored: Ignored,
) -> Result<Option<String>, OperationCause> {
    let store = repository.store();
    let contents = match (&found.target, &found.bookmark) {
        (Some(target), _) if found.presence() == Presence::Ready => {
            all_of(repository, name, target, ignored)?
        }
        (Some(target), _) => Contents::of_commit(store, &target.id)?,
        (None, Some(tip)) => Contents::of_commit(store, tip)?,
        (None, None) => return Ok(None),
    };
    let kept = found.described(repository, name)?;
    Ok(Some(trash::keep_contents(store, name, &contents, kept, why)?))
}

/// Forgets the workspace, abandons what only it leads to, deletes its bookmark and its directory.
fn take_away(repository: &JjRepository, name: &WorkspaceName, found: &Jujutsu) -> Result<(), ToolError> {
    let jj = repository.jj();
    if let Some(target) = &found.target {
        let own = own_commits(repository, name, found, &target.id)?;
        forget(repository, name)?;
        abandon(repository, name, &own)?;
    }
    if found.bookmark.is_some() {
        // Not `delete`, which would go on to the server with the next push.
        jj.run(&["bookmark", "forget", &format!("exact:{}", name.branch())])?;
        repository.export()?;
    }
    delete(&repository.workspace_path(name))
        .map_err(|source| ToolError::Start { command: "rm".into(), source })
}

/// Commits that nothing but this workspace leads to.
fn own_commits(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &Jujutsu,
    from: &str,
) -> Result<Vec<String>, ToolError> {
    let others = found.others.iter().map(|id| format!("present({id})"));
    let landed: Vec<String> = others.chain([elsewhere(name)]).collect();
    let own = repository.revisions(&format!("(::{from} ~ ::({})) & mutable()", landed.join("|")))?;
    Ok(own.into_iter().map(|revision| revision.id).collect())
}

/// Not `bookmarks() ~ …`, which is about commits: one that has ours and another's bookmark is another's too.
fn other_bookmarks(name: &WorkspaceName) -> String {
    format!("bookmarks(~exact:{})", quoted(&name.branch()))
}

/// What others gave a name to.
fn elsewhere(name: &WorkspaceName) -> String {
    format!("{}|remote_bookmarks()|tags()", other_bookmarks(name))
}

/// Only what still is nobody else's when it happens: jj would delete their bookmarks and move their commits.
fn abandon(repository: &JjRepository, name: &WorkspaceName, commits: &[String]) -> Result<(), ToolError> {
    if commits.is_empty() {
        return Ok(());
    }
    // Those that went with the workspace are hidden already.
    let visible: Vec<String> = commits.iter().map(|id| format!("present({id})")).collect();
    let visible = format!("({}) & ::visible_heads()", visible.join("|"));
    let others = format!("working_copies()|{}|(visible_heads() ~ ({visible}))", elsewhere(name));
    repository.jj().run(&["abandon", "-r", &format!("({visible}) ~ ::({others})")]).map(drop)
}

/// Puts the files of a kept commit over those of now, with the commits of then below them.
pub(crate) fn over(
    repository: &JjRepository,
    name: &WorkspaceName,
    commit: &str,
) -> Result<String, OperationCause> {
    let found = Jujutsu::take_in(repository, name)?;
    let now = found.ready(repository, name)?.clone();
    let present = keep(repository, name, &found, Why::PutBack, Ignored::Left)?;
    let (_, then) = Kept::read(repository.store(), commit)?;
    let then = then.unwrap_or_else(|| commit.to_owned());
    let inside = repository.jj_inside(&repository.workspace_path(name));
    let parents = parents_of(repository, &then)?;
    let goes_back =
        parents.iter().collect::<HashSet<_>>() != parents_of(repository, &now.id)?.iter().collect();
    if goes_back {
        let on = if parents.is_empty() { "root()".to_owned() } else { parents.join("|") };
        inside.run(&["new", &on])?;
    }
    inside.run(&["restore", "--from", &then])?;
    if goes_back {
        describe_as(repository, &inside, &then)?;
        let own = own_commits(repository, name, &Jujutsu::look(repository, name)?, &now.id)?;
        abandon(repository, name, &own)?;
    }
    Ok(present.unwrap_or_default())
}

fn describe_as(repository: &JjRepository, inside: &crate::jj::Jj, commit: &str) -> Result<(), ToolError> {
    let text = repository.store().git().read(&["log", "-1", "--format=%B", commit])?;
    let text = String::from_utf8_lossy(&text).trim_end().to_owned();
    if text.is_empty() { Ok(()) } else { inside.run(&["describe", "-m", &text]).map(drop) }
}

pub(crate) fn restore(repository: &JjRepository, trashed: &Trashed) -> Result<Workspace, OperationCause> {
    let name = &trashed.workspace;
    let found = Jujutsu::look(repository, name)?;
    let is_over = matches!(trashed.why, Why::PutBack | Why::Rebased) && found.presence() == Presence::Ready;
    if is_over {
        over(repository, name, &trashed.commit)?;
        return Ok(made(repository, name, Made::Nothing));
    }
    if found.place == Place::Occupied {
        return Err(OperationCause::PathTaken { path: repository.workspace_path(name) });
    }
    anew(repository, name, &found, trashed).inspect_err(|_| sweep(repository, name, found.place))?;
    Ok(made(repository, name, Made::Nothing))
}

fn anew(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &Jujutsu,
    trashed: &Trashed,
) -> Result<(), OperationCause> {
    let (kept, then) = Kept::read(repository.store(), &trashed.commit)?;
    let then = then.unwrap_or_else(|| trashed.commit.clone());
    if found.target.is_some() {
        forget(repository, name)?;
    }
    let parents = parents_of(repository, &then)?;
    add(repository, name, found.place, &parents).map_err(|cause| OperationCause::Make(Box::new(cause)))?;
    let blank = repository.store().git().read(&["log", "-1", "--format=%B", &then])?.trim_ascii().is_empty()
        && changed_in(repository, &then)?.is_empty();
    let commit = Revision { id: then.clone(), is_empty: blank, is_described: !blank, has_conflict: false };
    edit(repository, name, &commit)?;
    if let Some((branch, tip)) = &kept.branch {
        repository.jj().run(&["bookmark", "set", "--allow-backwards", "-r", tip, branch])?;
        repository.export()?;
    }
    let files = tree_of(repository.store(), kept.ignored.as_deref().unwrap_or(&trashed.commit))?;
    let now = tree_of(repository.store(), &then)?;
    Ok(scratch(repository, name, &commit)?.put(&now, &files)?)
}
