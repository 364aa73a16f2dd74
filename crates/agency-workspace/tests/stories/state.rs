//! The state of a workspace.

use std::fs;
use std::path::{Path, PathBuf};

use agency_workspace::{Presence, Project, create, dirty_checkout, presence, state};

use crate::sandbox::{Sandbox, name, write};

fn unmerged(project: &Project, base: Option<&str>) -> u64 {
    state(project, &name("1-fix"), base).unwrap().unmerged_commits
}

#[test]
fn the_state_lists_changed_staged_deleted_and_untracked_files_but_not_ignored_ones() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    for (file, content) in [("changed", "1"), ("staged", "1"), ("deleted", "1"), (".gitignore", "target\n")] {
        sandbox.commit(&root, file, content);
    }
    sandbox.git(&root, &["config", "status.showUntrackedFiles", "no"]);
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    for file in ["changed", "staged", "new dir/größe", "new dir/two\nlines", "target"] {
        write(&path.join(file), "2");
    }
    sandbox.git(&path, &["add", "staged"]);
    fs::remove_file(path.join("deleted")).unwrap();
    let index = fs::read(root.join(".git/worktrees/1-fix/index")).unwrap();

    let mut seen = state(&project, &name("1-fix"), None).unwrap().uncommitted;
    seen.sort();
    let expected = ["changed", "deleted", "new dir/größe", "new dir/two\nlines", "staged"];
    assert_eq!(seen, expected.map(PathBuf::from));
    assert_eq!(fs::read(root.join(".git/worktrees/1-fix/index")).unwrap(), index, "looking changes nothing");
}

#[test]
fn commits_count_until_they_are_in_the_base_or_on_its_server() {
    let sandbox = Sandbox::new();
    sandbox.repository("source");
    sandbox.git(&sandbox.path(), &["clone", "--quiet", "--bare", "source", "server"]);
    sandbox.git(&sandbox.path(), &["clone", "--quiet", "server", "root"]);
    let root = sandbox.path().join("root");
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), Some("main")).unwrap().path;
    let base = Some("main");
    sandbox.commit(&path, "one", "1");
    sandbox.commit(&path, "two", "2");
    assert_eq!(unmerged(&project, base), 2);
    sandbox.git(&path, &["push", "--quiet", "origin", "HEAD:refs/heads/pull"]);
    assert_eq!(unmerged(&project, base), 2, "pushed is not merged");
    sandbox.git(&path, &["push", "--quiet", "origin", "HEAD~:refs/heads/main"]);
    assert_eq!(unmerged(&project, base), 1, "merged on the server");
    sandbox.git(&root, &["merge", "--quiet", "agency/1-fix"]);
    assert_eq!(unmerged(&project, base), 0);
    assert_eq!(unmerged(&project, None), 0);
}

#[test]
fn without_a_base_branch_any_other_branch_counts_as_merged() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    sandbox.git(&root, &["switch", "--quiet", "--detach"]);
    let made = create(&project, &name("1-fix"), None).unwrap();
    sandbox.commit(&made.path, "one", "1");
    let commit = made.base.unwrap().name;
    for base in [None, Some(commit.as_str()), Some("a-branch-that-was-deleted")] {
        assert_eq!(unmerged(&project, base), 1, "{base:?}");
    }
    sandbox.git(&root, &["branch", "keeps-it", "agency/1-fix"]);
    for base in [None, Some(commit.as_str()), Some("a-branch-that-was-deleted")] {
        assert_eq!(unmerged(&project, base), 0, "{base:?}");
    }
}

#[test]
fn commits_on_a_detached_head_count_and_those_on_another_branch_stay_where_they_are() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    sandbox.git(&path, &["switch", "--quiet", "--create", "other"]);
    sandbox.commit(&path, "other", "1");
    assert_eq!(unmerged(&project, None), 0);
    sandbox.git(&path, &["switch", "--quiet", "--detach"]);
    sandbox.commit(&path, "detached", "1");
    assert_eq!(unmerged(&project, None), 2);
}

#[test]
fn a_missing_workspace_is_reported() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    let presence = || presence(&project, &name("1-fix")).unwrap();
    assert_eq!(presence(), Presence::Absent);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    sandbox.commit(&path, "work", "1");
    sandbox.git(&root, &["worktree", "lock", "--reason", "initializing", path.to_str().unwrap()]);
    assert_eq!(presence(), Presence::HalfMade);
    sandbox.git(&root, &["worktree", "unlock", path.to_str().unwrap()]);
    assert_eq!(presence(), Presence::Ready);
    fs::remove_dir_all(&path).unwrap();
    let gone = state(&project, &name("1-fix"), None).unwrap();
    assert_eq!((gone.presence, gone.unmerged_commits), (Presence::DirectoryGone, 1));
    assert_eq!(gone.branch.as_deref(), Some("agency/1-fix"));
    write(&path.join("users-own"), "file");
    assert_eq!(presence(), Presence::NotOurs);
}

#[test]
fn a_workspace_that_lost_its_git_is_never_confused_with_the_main_checkout() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    write(&root.join("mine"), "x");
    fs::remove_file(path.join(".git")).unwrap();
    let lost = state(&project, &name("1-fix"), None).unwrap();
    assert_eq!((lost.presence, lost.uncommitted.len()), (Presence::NotOurs, 0));
    sandbox.git(&path, &["init", "--quiet"]);
    assert_eq!(state(&project, &name("1-fix"), None).unwrap().presence, Presence::NotOurs);
}

#[test]
fn worktrees_behind_a_link_are_recognised() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let disk = sandbox.path().join("big disk");
    fs::create_dir(&disk).unwrap();
    std::os::unix::fs::symlink(&disk, root.join(".agency")).unwrap();
    let project = sandbox.open(&root);
    let made = create(&project, &name("1-fix"), None).unwrap();
    assert_eq!(state(&project, &name("1-fix"), None).unwrap().presence, Presence::Ready);
    assert_eq!(sandbox.open(&made.path).root(), root);
    agency_workspace::remove(&project, &name("1-fix"), None, agency_workspace::RemoveOptions::default())
        .unwrap();
    assert_eq!(state(&project, &name("1-fix"), None).unwrap().presence, Presence::Absent);
}

#[test]
fn a_dirty_main_checkout_is_noticed() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    write(&root.join(".agency/tasks/1-fix.md"), "");
    let project = sandbox.open(&root.join(".agency"));
    assert!(dirty_checkout(&project).unwrap().is_empty());
    write(&root.join("readme"), "changed");
    write(&root.join("src/new"), "x");
    assert_eq!(dirty_checkout(&project).unwrap(), [Path::new("readme"), Path::new("src/new")]);
}
