//! Creating workspaces, and creating nothing if that fails.

use std::fs;
use std::path::Path;
use std::thread;

use agency_workspace::{Presence, create, reattach, state, workspace_path};

use crate::sandbox::{Sandbox, format_error, name, write};

fn refused(sandbox: &Sandbox, root: &Path, base: Option<&str>) -> String {
    let before = sandbox.full_state(root);
    let err = create(&sandbox.open(root), &name("1-fix"), base).unwrap_err();
    assert_eq!(sandbox.full_state(root), before);
    format_error(&err, err.hint())
}

#[test]
fn the_base_is_the_current_branch_of_the_main_checkout() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let first = sandbox.git(&root, &["rev-parse", "HEAD"]);
    sandbox.git(&root, &["switch", "--quiet", "--create", "work/now"]);
    let second = sandbox.commit(&root, "second", "2");
    let project = sandbox.open(&root);
    let outer = create(&project, &name("1-outer"), Some("main")).unwrap();
    let inner = create(&sandbox.open(&outer.path), &name("2-inner"), None).unwrap();

    assert_eq!(outer.branch.as_deref(), Some("agency/1-outer"));
    assert_eq!(sandbox.git(&outer.path, &["branch", "--show-current"]), "agency/1-outer");
    let (outer, inner) = (outer.base.unwrap(), inner.base.unwrap());
    assert_eq!((outer.name.as_str(), outer.commit), ("main", first));
    assert_eq!((inner.name.as_str(), inner.commit), ("work/now", second.clone()));

    sandbox.git(&root, &["switch", "--quiet", "--detach"]);
    let detached = create(&project, &name("3-detached"), Some("HEAD")).unwrap().base.unwrap();
    assert_eq!((detached.name, detached.commit), (second.clone(), second));
}

#[test]
fn tags_remote_branches_and_commits_are_bases_and_nothing_is_tracked() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository("source");
    sandbox.git(&source, &["branch", "feature/login"]);
    sandbox.git(&sandbox.path(), &["clone", "--quiet", "source", "root"]);
    let root = sandbox.path().join("root");
    sandbox.git(&root, &["tag", "v1"]);
    sandbox.git(&root, &["config", "branch.autoSetupMerge", "always"]);
    let commit = sandbox.git(&root, &["rev-parse", "HEAD"]);
    let config = fs::read_to_string(root.join(".git/config")).unwrap();
    for (id, base) in
        ["v1", "origin/feature/login", &commit, &commit[..8], "main@{0}"].into_iter().enumerate()
    {
        let made = create(&sandbox.open(&root), &name(&format!("{id}-x")), Some(base)).unwrap();
        assert_eq!(made.base.unwrap().commit, commit);
    }
    assert_eq!(fs::read_to_string(root.join(".git/config")).unwrap(), config);
}

#[test]
fn a_missing_base_is_named_together_with_similar_names() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    sandbox.git(&root, &["branch", "release"]);
    let refuse = |base| refused(&sandbox, &root, Some(base));
    let expected = "Error: cannot create workspace 1-fix\n\
                    Caused by: there is no branch, tag or commit `mian`\n\
                    Hint: did you mean main?";
    assert_eq!(refuse("mian"), expected);
    let expected = "Error: cannot create workspace 1-fix\n\
                    Caused by: there is no branch, tag or commit `--force`\n\
                    Hint: pass an existing branch with --base-branch";
    assert_eq!(refuse("--force"), expected);
    for odd in ["", "main..release", "main:readme", "HEAD@{99}", "a b", "refs/heads"] {
        assert!(refuse(odd).contains(&format!("no branch, tag or commit `{odd}`")), "{}", refuse(odd));
    }
}

#[test]
fn a_repository_without_a_commit_asks_for_one() {
    let sandbox = Sandbox::new();
    let root = sandbox.path().join("root");
    fs::create_dir(&root).unwrap();
    sandbox.git(&root, &["init", "--quiet"]);
    let expected = "Error: cannot create workspace 1-fix\n\
                    Caused by: the repository has no commit yet\n\
                    Hint: commit first, or pass --vcs none to work in the directory itself";
    assert_eq!(refused(&sandbox, &root, None), expected);
    assert_eq!(refused(&sandbox, &root, Some("main")), expected);
}

#[test]
fn a_current_branch_without_a_commit_names_those_that_have_one() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    sandbox.git(&root, &["symbolic-ref", "HEAD", "refs/heads/mainn"]);
    assert!(refused(&sandbox, &root, None).ends_with("`mainn`\nHint: did you mean main?"));
}

#[test]
fn branches_in_the_way_are_named_and_kept() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    sandbox.git(&root, &["branch", "agency/1-fix"]);
    let expected = "Error: cannot create workspace 1-fix\n\
                    Caused by: the branch agency/1-fix exists already\n\
                    Hint: look at it with `git log agency/1-fix`, then rename or delete it";
    assert_eq!(refused(&sandbox, &root, None), expected);
    sandbox.git(&root, &["branch", "-D", "agency/1-fix"]);
    sandbox.git(&root, &["branch", "agency"]);
    let expected = "Error: cannot create workspace 1-fix\n\
                    Caused by: git cannot have both a branch agency/1-fix and a branch agency\n\
                    Hint: rename it: git branch -m agency another-name";
    assert_eq!(refused(&sandbox, &root, None), expected);
}

#[test]
fn an_occupied_path_is_not_touched_and_an_empty_directory_is_used() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let path = workspace_path(&sandbox.open(&root), &name("1-fix"));
    for taken in [path.clone(), path.join("notes"), path.join("deep/er")] {
        write(&taken, "mine");
        let told = refused(&sandbox, &root, None);
        assert!(told.contains("1-fix exists already\nHint: move it away"), "{told}");
        if path.is_dir() { fs::remove_dir_all(&path).unwrap() } else { fs::remove_file(&path).unwrap() }
    }
    fs::create_dir(&path).unwrap();
    assert_eq!(create(&sandbox.open(&root), &name("1-fix"), None).unwrap().path, path);
}

#[test]
fn the_record_of_a_deleted_directory_is_no_obstacle_and_records_of_others_stay() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    let unmounted = sandbox.path().join("unmounted");
    sandbox.git(&root, &["worktree", "add", "--quiet", unmounted.to_str().unwrap()]);
    fs::rename(&unmounted, sandbox.path().join("away")).unwrap();
    // Work that only the worktree record refers to.
    sandbox.git(&path, &["switch", "--quiet", "--detach"]);
    let lonely = sandbox.commit(&path, "lonely", "x");
    sandbox.git(&root, &["branch", "--quiet", "-D", "agency/1-fix"]);
    for leave_empty in [false, true] {
        fs::remove_dir_all(&path).unwrap();
        if leave_empty {
            fs::create_dir(&path).unwrap();
        }
        create(&project, &name("1-fix"), None).unwrap();
        assert_eq!(state(&project, &name("1-fix"), None).unwrap().presence, Presence::Ready);
        sandbox.git(&path, &["switch", "--quiet", "--detach"]);
        sandbox.git(&root, &["branch", "--quiet", "-D", "agency/1-fix"]);
    }
    let kept = sandbox.git(&root, &["for-each-ref", "--format=%(objectname)", "refs/agency/trash"]);
    assert_eq!(kept, lonely);
    assert!(sandbox.git(&root, &["worktree", "list"]).contains("unmounted"));
}

#[test]
fn the_locked_record_of_a_deleted_directory_is_respected() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let path = create(&sandbox.open(&root), &name("1-fix"), None).unwrap().path;
    sandbox.git(&path, &["switch", "--quiet", "--detach"]);
    sandbox.git(&root, &["branch", "-D", "agency/1-fix"]);
    sandbox.git(&root, &["worktree", "lock", "--reason", "on the other disk", path.to_str().unwrap()]);
    fs::remove_dir_all(&path).unwrap();
    let told = refused(&sandbox, &root, None);
    assert!(
        told.contains("its worktree is locked: on the other disk\nHint: restore the directory, or"),
        "{told}"
    );
}

#[test]
fn a_failing_hook_is_a_warning_and_the_workspace_exists() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    sandbox.hook(&root, "post-checkout", "echo 'git-lfs: größe not found' >&2; exit 2");
    let made = create(&sandbox.open(&root), &name("1-fix"), None).unwrap();
    let warning = format!("a hook failed in {}: git-lfs: größe not found", made.path.display());
    assert_eq!(made.warnings, [warning]);
    assert_eq!(state(&sandbox.open(&root), &name("1-fix"), None).unwrap().presence, Presence::Ready);
}

#[test]
fn a_hook_that_leaves_a_process_behind_does_not_block() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let fifo = sandbox.path().join("end");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    sandbox.hook(&root, "post-checkout", &format!("cat '{}' >&2 &", fifo.display()));
    create(&sandbox.open(&root), &name("1-fix"), None).unwrap();
    // The process waits for a writer, and ends after this write.
    fs::write(&fifo, "").unwrap();
}

#[test]
fn a_checkout_that_fails_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    write(&root.join(".git/info/attributes"), "readme filter=broken\n");
    sandbox.git(&root, &["config", "filter.broken.smudge", "false"]);
    sandbox.git(&root, &["config", "filter.broken.required", "true"]);
    let told = refused(&sandbox, &root, None);
    assert!(
        told.starts_with("Error: cannot create workspace 1-fix\nCaused by: `git worktree add` failed: "),
        "{told}"
    );
    assert!(told.contains("smudge filter broken failed"), "{told}");
    fs::create_dir(workspace_path(&sandbox.open(&root), &name("1-fix"))).unwrap();
    refused(&sandbox, &root, None);
}

#[test]
fn a_checkout_whose_git_is_killed_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    write(&root.join(".git/info/attributes"), "readme filter=deadly\n");
    // From the shell up through the `git reset` that runs it, to the `git worktree add` that our process
    // waits for.
    let parent = "$(ps -o ppid= -p $PPID 2>/dev/null || cut -d' ' -f4 /proc/$PPID/stat)";
    let kill = &format!("kill -KILL {parent} $PPID; cat");
    sandbox.git(&root, &["config", "filter.deadly.smudge", kill]);
    let told = refused(&sandbox, &root, None);
    assert!(told.contains("Caused by: `git worktree add` was ended by a signal"), "{told}");
}

#[test]
fn the_users_own_lock_on_the_index_does_not_matter() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    write(&root.join(".git/index.lock"), "");
    create(&sandbox.open(&root), &name("1-fix"), None).unwrap();
}

#[test]
fn many_workspaces_are_made_and_removed_at_once() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    let before = sandbox.full_state(&root);
    let names: Vec<_> = (1..=20).map(|id| name(&format!("{id}-at-once"))).collect();
    thread::scope(|scope| {
        for name in &names {
            scope.spawn(|| create(&project, name, None).unwrap());
        }
    });
    for name in &names {
        assert_eq!(state(&project, name, None).unwrap().presence, Presence::Ready);
    }
    thread::scope(|scope| {
        for name in &names {
            scope.spawn(|| {
                agency_workspace::remove(&project, name, None, agency_workspace::RemoveOptions::default())
                    .unwrap()
            });
        }
    });
    for kept in sandbox.git(&root, &["for-each-ref", "--format=%(refname)", "refs/agency/trash"]).lines() {
        sandbox.git(&root, &["update-ref", "-d", kept]);
    }
    assert_eq!(sandbox.full_state(&root), before);
}

#[test]
fn of_two_calls_that_create_the_same_workspace_one_wins_and_the_other_changes_nothing() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    let won = thread::scope(|scope| {
        let rivals = [0; 4].map(|_| scope.spawn(|| create(&project, &name("1-fix"), None).is_ok()));
        rivals.into_iter().map(|rival| rival.join().unwrap()).filter(|won| *won).count()
    });
    assert_eq!(won, 1);
    let state = state(&project, &name("1-fix"), None).unwrap();
    assert_eq!((state.presence, state.branch.as_deref()), (Presence::Ready, Some("agency/1-fix")));
}

#[test]
fn a_deleted_directory_comes_back_from_its_branch() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    sandbox.commit(&path, "work", "done");
    fs::remove_dir_all(&path).unwrap();
    assert_eq!(state(&project, &name("1-fix"), None).unwrap().presence, Presence::DirectoryGone);
    let back = reattach(&project, &name("1-fix")).unwrap();
    assert_eq!(fs::read_to_string(back.path.join("work")).unwrap(), "done");
    assert_eq!(state(&project, &name("1-fix"), None).unwrap().presence, Presence::Ready);

    let err = reattach(&project, &name("1-fix")).unwrap_err();
    assert!(format_error(&err, None).contains("exists already"));
    let err = reattach(&project, &name("2-never")).unwrap_err();
    assert!(format_error(&err, None).ends_with("the branch agency/2-never does not exist"));
}

#[test]
fn a_branch_that_the_user_has_checked_out_is_not_reattached() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    fs::remove_dir_all(&path).unwrap();
    sandbox.git(&root, &["worktree", "prune"]);
    sandbox.git(&root, &["switch", "--quiet", "agency/1-fix"]);
    let err = reattach(&project, &name("1-fix")).unwrap_err();
    assert!(format_error(&err, err.hint()).ends_with("Hint: switch to another branch there"));
}
