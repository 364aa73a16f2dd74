//! Unusual uses of git. Every real repository has one of them.

use std::fs;
use std::path::{Path, PathBuf};

use agency_workspace::{
    FileStatus, MergeMethod, MergeRequest, Presence, Project, RemoveOptions, SyncMethod, commit_all, create,
    diff, exclude_agency_dir, merge, remove, restore, restore_snapshot, snapshot, state, sync, trash_entries,
};

use crate::sandbox::{Sandbox, format_error, name, write};

/// Runs every operation on a task, from its creation to its removal. Returns its directory.
fn whole_life(sandbox: &Sandbox, project: &Project, base: &str, into: &str) -> PathBuf {
    exclude_agency_dir(project).unwrap();
    let made = create(project, &name("1-life"), Some(base)).unwrap();
    assert_eq!(state(project, &name("1-life"), Some(base)).unwrap().presence, Presence::Ready);
    let taken = snapshot(project, &name("1-life"), "start").unwrap();
    write(&made.path.join("größe neu/life"), "1\n");
    let seen = diff(project, &name("1-life"), Some(base)).unwrap();
    let files: Vec<_> = seen.files.iter().map(|file| (file.status, file.path.to_str().unwrap())).collect();
    assert_eq!(files, [(FileStatus::Added, "größe neu/life")]);
    restore_snapshot(project, &name("1-life"), &taken).unwrap();
    assert!(!made.path.join("größe neu").exists());
    restore(project, &trash_entries(project).unwrap()[0]).unwrap();
    commit_all(project, &name("1-life"), "life").unwrap().unwrap();
    remove(project, &name("1-life"), Some(base), RemoveOptions::discarding()).unwrap();
    restore(project, &trash_entries(project).unwrap()[0]).unwrap();
    sync(project, &name("1-life"), Some(base), SyncMethod::Rebase).unwrap();
    let request =
        MergeRequest { how: MergeMethod::Merge, into: Some(into.into()), ..MergeRequest::default() };
    let merged = merge(project, &name("1-life"), &request).unwrap();
    assert_eq!(sandbox.git(project.root(), &["show", &format!("{}:größe neu/life", merged.after)]), "1");
    remove(project, &name("1-life"), Some(into), RemoveOptions::default()).unwrap();
    made.path
}

/// Asserts that a removed task leaves nothing but its merge.
fn nothing_left(sandbox: &Sandbox, root: &Path) {
    assert_eq!(sandbox.git(root, &["branch", "--list", "agency/*"]), "");
    assert!(!sandbox.git(root, &["worktree", "list"]).contains(".agency"));
}

#[test]
fn a_path_with_spaces_and_letters_of_the_world() {
    let sandbox = Sandbox::new().with_identity();
    let root = sandbox.repository("mit Leerzeichen/größe 木 'x\"");
    whole_life(&sandbox, &sandbox.open(&root), "main", "main");
    nothing_left(&sandbox, &root);
    assert_eq!(sandbox.git(&root, &["status", "--porcelain"]), "");
}

#[test]
fn a_branch_that_exists_and_is_checked_out_somewhere() {
    let sandbox = Sandbox::new().with_identity();
    let root = sandbox.repository("root");
    sandbox.git(&root, &["switch", "--quiet", "--create", "feature/x"]);
    sandbox.commit(&root, "feature", "1");
    whole_life(&sandbox, &sandbox.open(&root), "feature/x", "feature/x");
    sandbox.git(&root, &["branch", "--quiet", "team/here", "main"]);
    whole_life(&sandbox, &sandbox.open(&root), "team/here", "team/here");
    nothing_left(&sandbox, &root);
}

#[test]
fn a_branch_of_a_server() {
    let sandbox = Sandbox::new().with_identity();
    let server = sandbox.repository("server");
    sandbox.git(&server, &["switch", "--quiet", "--create", "x"]);
    sandbox.commit(&server, "theirs", "1");
    let root = sandbox.path().join("root");
    sandbox.git(&sandbox.path(), &["clone", "--quiet", "--branch", "main", "server", "root"]);
    whole_life(&sandbox, &sandbox.open(&root), "origin/x", "main");
    nothing_left(&sandbox, &root);
}

#[test]
fn a_head_that_is_on_no_branch() {
    let sandbox = Sandbox::new().with_identity();
    let root = sandbox.repository("root");
    let commit = sandbox.commit(&root, "second", "1");
    sandbox.git(&root, &["checkout", "--quiet", "--detach"]);
    let project = sandbox.open(&root);
    let made = create(&project, &name("2-detached"), None).unwrap();
    assert_eq!(made.base.unwrap().name, commit);
    write(&made.path.join("work"), "1\n");
    let seen = diff(&project, &name("2-detached"), Some(&commit)).unwrap();
    assert_eq!(seen.files.len(), 1);
    commit_all(&project, &name("2-detached"), "work").unwrap();
    let err = merge(&project, &name("2-detached"), &MergeRequest::default()).unwrap_err();
    let refusal = format_error(&err, err.hint());
    assert!(refusal.contains("the main checkout is not on a branch"), "{refusal}");
    assert!(refusal.ends_with("Hint: name a local branch with --into"), "{refusal}");
    whole_life(&sandbox, &project, &commit, "main");
}

#[test]
fn empty_submodules_are_a_warning_and_filled_ones_are_no_problem() {
    let sandbox = Sandbox::new().with_identity();
    let library = sandbox.repository("library");
    let root = sandbox.repository("root");
    sandbox.git(&root, &["submodule", "--quiet", "add", library.to_str().unwrap(), "lib"]);
    sandbox.git(&root, &["commit", "--quiet", "--message", "lib"]);
    let project = sandbox.open(&root);
    let made = create(&project, &name("2-sub"), None).unwrap();
    assert_eq!(made.warnings, ["the submodules of 2-sub are empty: git submodule update --init fills them"]);
    sandbox.git(&made.path, &["submodule", "--quiet", "update", "--init"]);
    assert!(state(&project, &name("2-sub"), None).unwrap().uncommitted.is_empty());
    assert!(diff(&project, &name("2-sub"), None).unwrap().files.is_empty());
    let taken = snapshot(&project, &name("2-sub"), "turn").unwrap();
    write(&made.path.join("work"), "1");
    restore_snapshot(&project, &name("2-sub"), &taken).unwrap();
    assert!(made.path.join("lib/readme").exists() && !made.path.join("work").exists());
    whole_life(&sandbox, &project, "main", "main");
    assert!(root.join("lib/readme").exists());
}

#[test]
fn a_sparse_checkout_stays_sparse_and_its_missing_files_are_not_deleted() {
    let sandbox = Sandbox::new().with_identity();
    let root = sandbox.repository("root");
    sandbox.commit(&root, "in/file", "1");
    sandbox.commit(&root, "out/file", "1");
    sandbox.git(&root, &["sparse-checkout", "set", "--cone", "in", "größe neu"]);
    assert!(!root.join("out").exists());
    let project = sandbox.open(&root);
    let path = create(&project, &name("2-sparse"), None).unwrap().path;
    assert!(path.join("in/file").exists() && !path.join("out").exists());
    assert!(diff(&project, &name("2-sparse"), None).unwrap().files.is_empty());
    whole_life(&sandbox, &project, "main", "main");
    assert!(!root.join("out").exists());
    assert_eq!(sandbox.git(&root, &["show", "main:out/file"]), "1");
    assert_eq!(sandbox.git(&root, &["status", "--porcelain"]), "");
}

#[test]
fn a_bare_repository() {
    let sandbox = Sandbox::new().with_identity();
    let root = sandbox.repository("root");
    sandbox.git(&root, &["clone", "--quiet", "--bare", ".", "../bare.git"]);
    let bare = sandbox.path().join("bare.git");
    whole_life(&sandbox, &sandbox.open(&bare), "main", "main");
    nothing_left(&sandbox, &bare);
}

#[test]
fn a_project_that_is_opened_from_inside_another_worktree() {
    let sandbox = Sandbox::new().with_identity();
    let root = sandbox.repository("root");
    sandbox.git(&root, &["worktree", "add", "--quiet", "-b", "mine", "../other"]);
    let other = sandbox.path().join("other");
    let project = sandbox.open(&other);
    assert_eq!(project.root(), root);
    let path = whole_life(&sandbox, &project, "mine", "mine");
    assert!(path.starts_with(&root));
    assert_eq!(fs::read_to_string(other.join("größe neu/life")).unwrap(), "1\n");
    assert_eq!(sandbox.git(&other, &["status", "--porcelain"]), "");
}

#[test]
fn large_files_without_git_lfs_are_pointers_with_a_warning() {
    let sandbox = Sandbox::new().with_identity();
    let root = sandbox.repository("root");
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    write(&root.join("big.bin"), pointer);
    write(&root.join(".gitattributes"), "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    sandbox.git(&root, &["add", "--all"]);
    sandbox.git(&root, &["commit", "--quiet", "--message", "big"]);
    for (setting, value) in [("process", "git-lfs filter-process"), ("smudge", "git-lfs smudge -- %f")] {
        sandbox.git(&root, &["config", &format!("filter.lfs.{setting}"), value]);
    }
    sandbox.git(&root, &["config", "filter.lfs.clean", "git-lfs clean -- %f"]);
    sandbox.git(&root, &["config", "filter.lfs.required", "true"]);
    let project = sandbox.open(&root);
    let made = create(&project, &name("2-lfs"), None).unwrap();
    let told = "git-lfs is not installed: 2-lfs has pointers instead of large files";
    assert_eq!(made.warnings, [told]);
    assert_eq!(fs::read_to_string(made.path.join("big.bin")).unwrap(), pointer);
    write(&made.path.join("other.bin"), pointer);
    remove(&project, &name("2-lfs"), None, RemoveOptions::discarding()).unwrap();
    restore(&project, &trash_entries(&project).unwrap()[0]).unwrap();
    assert_eq!(fs::read_to_string(made.path.join("other.bin")).unwrap(), pointer);
    whole_life(&sandbox, &project, "main", "main");
}

#[test]
fn failing_hooks_are_reported_and_lose_nothing() {
    let sandbox = Sandbox::new().with_identity();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    let path = create(&project, &name("2-hooks"), None).unwrap().path;
    write(&path.join("work"), "1");
    sandbox.hook(&root, "pre-commit", "echo 'not like this' >&2; exit 1");
    let err = commit_all(&project, &name("2-hooks"), "work").unwrap_err();
    assert!(
        format_error(&err, None).contains("`git commit` failed: not like this"),
        "{}",
        format_error(&err, None)
    );
    assert_eq!(state(&project, &name("2-hooks"), None).unwrap().uncommitted, [Path::new("work")]);
    fs::remove_file(root.join(".git/hooks/pre-commit")).unwrap();
    commit_all(&project, &name("2-hooks"), "work").unwrap().unwrap();

    sandbox.hook(&root, "reference-transaction", "[ \"$1\" != prepared ] || { echo locked >&2; exit 1; }");
    let before = sandbox.full_state(&root);
    create(&project, &name("3-none"), None).unwrap_err();
    remove(&project, &name("2-hooks"), None, RemoveOptions::discarding()).unwrap_err();
    assert_eq!(sandbox.full_state(&root), before);
    fs::remove_file(root.join(".git/hooks/reference-transaction")).unwrap();
    for hook in ["post-checkout", "post-merge", "post-commit", "post-rewrite"] {
        sandbox.hook(&root, hook, "exit 1");
    }
    whole_life(&sandbox, &project, "main", "main");
}
