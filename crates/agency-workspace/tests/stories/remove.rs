//! Removing workspaces without losing anything.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use agency_workspace::{Presence, RemoveOptions, Removed, check_remove, create, remove, state};

use crate::sandbox::{Sandbox, format_error, name, write};
use crate::scene::Scene;

fn scene() -> Scene {
    Scene::new(Sandbox::new(), |_, _| {})
}

impl Scene {
    fn refused_removal(&self, discard: bool) -> String {
        let before = self.sandbox.full_state(&self.root);
        let removal = RemoveOptions { discard, ..RemoveOptions::default() };
        let err = remove(&self.project, &name("1-fix"), Some("main"), removal).unwrap_err();
        let told = format_error(&err, err.hint());
        let err = check_remove(&self.project, &name("1-fix"), Some("main"), removal).unwrap_err();
        assert_eq!(crate::sandbox::format_error(&err, err.hint()), told);
        assert_eq!(self.sandbox.full_state(&self.root), before);
        told
    }

    fn remove(&self, discard: bool) -> Removed {
        let removed = remove(
            &self.project,
            &name("1-fix"),
            Some("main"),
            RemoveOptions { discard, ..RemoveOptions::default() },
        )
        .unwrap();
        let state = state(&self.project, &name("1-fix"), None).unwrap();
        assert_eq!((state.presence, state.branch), (Presence::Absent, None));
        assert!(!self.path.exists());
        assert!(!self.git(&["worktree", "list"]).contains("1-fix"));
        removed
    }
}

#[test]
fn uncommitted_files_refuse() {
    let scene = scene();
    for file in ["a", "b/c", "b/d"] {
        write(&scene.path.join(file), "x");
    }
    let expected = "Error: cannot remove workspace 1-fix\n\
                    Caused by: 3 files in .agency/worktrees/1-fix are not committed\n\
                    Hint: commit them, or pass --discard";
    assert_eq!(scene.refused_removal(false), expected);
}

#[test]
fn unmerged_commits_refuse_with_or_without_files() {
    let scene = scene();
    scene.sandbox.commit(&scene.path, "one", "1");
    let expected = "Error: cannot remove workspace 1-fix\n\
                    Caused by: 1 commit on agency/1-fix is not in main\n\
                    Hint: merge it, or pass --discard";
    assert_eq!(scene.refused_removal(false), expected);
    scene.sandbox.commit(&scene.path, "two", "2");
    write(&scene.path.join("three"), "3");
    let expected = "Error: cannot remove workspace 1-fix\n\
                    Caused by: 1 file in .agency/worktrees/1-fix is not committed, \
                    and 2 commits on agency/1-fix are not in main\n\
                    Hint: commit and merge them, or pass --discard";
    assert_eq!(scene.refused_removal(false), expected);
    fs::remove_dir_all(&scene.path).unwrap();
    assert!(scene.refused_removal(false).contains("2 commits on agency/1-fix are not in main"));
}

#[test]
fn merged_work_is_removed_and_its_branch_can_still_be_found() {
    let scene = scene();
    write(&scene.root.join(".git/info/exclude"), "target\n");
    let tip = scene.sandbox.commit(&scene.path, "one", "1");
    write(&scene.path.join("target"), "ignored");
    scene.git_inside(&["config", "branch.agency/1-fix.remote", "origin"]);
    scene.git(&["merge", "--quiet", "agency/1-fix"]);
    let removed = scene.remove(false);
    assert_eq!(removed.branch.as_deref(), Some("agency/1-fix"));
    assert_eq!(removed.directory.as_deref(), Some(scene.path.as_path()));
    assert_eq!(scene.git(&["rev-parse", &format!("{}^", removed.trash_ref.unwrap())]), tip);
    assert!(!fs::read_to_string(scene.root.join(".git/config")).unwrap().contains("1-fix"));
}

#[test]
fn discarded_work_is_saved_completely_and_the_main_checkout_does_not_change() {
    let scene = scene();
    write(&scene.root.join(".git/info/exclude"), "target\n.agency\n");
    write(&scene.root.join("mine"), "x");
    scene.git(&["add", "mine"]);
    let tip = scene.sandbox.commit(&scene.path, "committed", "1");
    write(&scene.path.join("committed"), "staged");
    scene.git_inside(&["add", "committed"]);
    write(&scene.path.join("committed"), "changed");
    write(&scene.path.join("new dir/größe"), "untracked");
    write(&scene.path.join("run.sh"), "#!/bin/sh\n");
    fs::set_permissions(scene.path.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("readme", scene.path.join("link")).unwrap();
    write(&scene.path.join("target"), "ignored");
    fs::remove_file(scene.path.join("readme")).unwrap();
    let own = || {
        (fs::read(scene.root.join(".git/index")).unwrap(), scene.git(&["status", "--branch", "--porcelain"]))
    };
    let before = own();

    let trash = scene.remove(true).trash_ref.unwrap();
    assert!(trash.starts_with("refs/agency/trash/1-fix-"), "{trash}");
    assert_eq!(own(), before);
    let tree =
        scene.git(&["-c", "core.quotePath=false", "ls-tree", "-r", "--format=%(objectmode) %(path)", &trash]);
    assert_eq!(tree, "100644 committed\n120000 link\n100644 new dir/größe\n100755 run.sh");
    assert_eq!(scene.git(&["show", &format!("{trash}:committed")]), "changed");
    assert_eq!(scene.git(&["rev-parse", &format!("{trash}^1")]), tip);
    assert_eq!(scene.git(&["show", &format!("{trash}^2:committed")]), "staged");
    let index = scene.git(&["rev-parse", &format!("{trash}^2")]);
    let details = scene.git(&["rev-parse", &format!("{trash}^3")]);
    let expected = format!(
        "agency: workspace 1-fix, as it was removed\n\nAgency-Workspace: 1-fix\n\
         Agency-Head: refs/heads/agency/1-fix\nAgency-Index: {index}\nAgency-Details: {details}\n\
         Agency-Branch: agency/1-fix {tip}"
    );
    assert_eq!(scene.git(&["log", "-1", "--format=%B", &trash]), expected);
    scene.git(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(scene.git(&["show", &format!("{trash}:new dir/größe")]), "untracked");
}

#[test]
fn each_removal_has_its_own_place_in_the_trash() {
    let scene = scene();
    write(&scene.path.join("first"), "1");
    let first = scene.remove(true).trash_ref.unwrap();
    create(&scene.project, &name("1-fix"), None).unwrap();
    write(&scene.path.join("second"), "2");
    let second = scene.remove(true).trash_ref.unwrap();
    assert_ne!(first, second);
    assert_eq!(scene.git(&["show", &format!("{first}:first")]), "1");
    assert_eq!(scene.git(&["show", &format!("{second}:second")]), "2");
}

#[test]
fn the_middle_of_a_conflict_is_kept_with_its_markers_and_both_commits() {
    let scene = scene();
    scene.sandbox.commit(&scene.root, "readme", "theirs\n");
    let tip = scene.sandbox.commit(&scene.path, "readme", "ours\n");
    let rebase = std::panic::catch_unwind(|| scene.git_inside(&["rebase", "--quiet", "main"]));
    assert!(rebase.is_err(), "it conflicts");
    let head = scene.git_inside(&["rev-parse", "HEAD"]);
    let trash = scene.remove(true).trash_ref.unwrap();
    assert!(scene.git(&["show", &format!("{trash}:readme")]).contains("<<<<<<<"));
    let parents = scene.git(&["show", "--no-patch", "--format=%P", &trash]);
    let parents: Vec<&str> = parents.split(' ').collect();
    assert_eq!(parents[0], head);
    assert!(parents.contains(&tip.as_str()), "{parents:?}");
}

#[test]
fn commits_on_a_detached_head_are_kept() {
    let scene = scene();
    scene.git_inside(&["switch", "--quiet", "--detach"]);
    let lonely = scene.sandbox.commit(&scene.path, "lonely", "1");
    assert!(scene.refused_removal(false).contains("1 commit on agency/1-fix is not in main"));
    let trash = scene.remove(true).trash_ref.unwrap();
    assert_eq!(scene.git(&["rev-parse", &format!("{trash}^1")]), lonely);
}

#[test]
fn another_branch_in_the_workspace_stays() {
    let scene = scene();
    scene.git_inside(&["switch", "--quiet", "--create", "other"]);
    let tip = scene.sandbox.commit(&scene.path, "other", "1");
    scene.remove(false);
    assert_eq!(scene.git(&["rev-parse", "other"]), tip);
}

#[test]
fn an_orphan_branch_without_a_commit_is_kept_too() {
    let scene = scene();
    scene.git_inside(&["switch", "--quiet", "--orphan", "fresh"]);
    write(&scene.path.join("start"), "again");
    let trash = scene.remove(true).trash_ref.unwrap();
    assert_eq!(scene.git(&["show", &format!("{trash}:start")]), "again");
}

#[test]
fn files_outside_a_sparse_checkout_are_kept() {
    let scene = scene();
    scene.sandbox.commit(&scene.path, "inside/a", "1");
    scene.sandbox.commit(&scene.path, "outside/b", "1");
    scene.git_inside(&["sparse-checkout", "set", "inside"]);
    write(&scene.path.join("outside/new"), "1");
    let trash = scene.remove(true).trash_ref.unwrap();
    let tree = scene.git(&["ls-tree", "-r", "--name-only", &trash]);
    assert_eq!(tree, "inside/a\noutside/b\noutside/new\nreadme");
}

#[test]
fn a_directory_that_git_does_not_know_is_never_deleted() {
    let scene = scene();
    scene.git(&["worktree", "remove", scene.path.to_str().unwrap()]);
    write(&scene.path.join("mine"), "x");
    for discard in [false, true] {
        assert!(scene.refused_removal(discard).contains("as a worktree of this repository\nHint: if the"));
    }
    // A foreign repository at the path of a record that still exists.
    fs::remove_dir_all(&scene.path).unwrap();
    scene.git(&["worktree", "add", "--quiet", scene.path.to_str().unwrap(), "agency/1-fix"]);
    fs::remove_file(scene.path.join(".git")).unwrap();
    scene.git_inside(&["init", "--quiet"]);
    for discard in [false, true] {
        assert!(scene.refused_removal(discard).contains("as a worktree of this repository"));
    }
}

#[test]
fn record_and_branch_of_a_deleted_directory_are_removed() {
    for leave_empty in [false, true] {
        let scene = scene();
        fs::remove_dir_all(&scene.path).unwrap();
        if leave_empty {
            fs::create_dir(&scene.path).unwrap();
        }
        assert_eq!(scene.remove(false).branch.as_deref(), Some("agency/1-fix"));
    }
}

#[test]
fn a_locked_worktree_and_a_branch_in_use_stay() {
    let scene = scene();
    scene.git(&["worktree", "lock", "--reason", "hands off", scene.path.to_str().unwrap()]);
    assert!(
        scene
            .refused_removal(true)
            .contains("Caused by: its worktree is locked: hands off\nHint: run: git worktree unlock")
    );
    scene.git(&["worktree", "unlock", scene.path.to_str().unwrap()]);
    scene.git(&["switch", "--quiet", "--ignore-other-worktrees", "agency/1-fix"]);
    let expected = format!(
        "Error: cannot remove workspace 1-fix\n\
         Caused by: its branch agency/1-fix is checked out in {}\n\
         Hint: switch to another branch there",
        scene.root.display()
    );
    assert_eq!(scene.refused_removal(true), expected);
}

#[test]
fn a_workspace_that_git_was_killed_in_while_making_it_can_be_discarded() {
    let scene = scene();
    scene.git(&["worktree", "lock", "--reason", "initializing", scene.path.to_str().unwrap()]);
    fs::remove_file(scene.root.join(".git/worktrees/1-fix/index")).unwrap();
    assert!(scene.refused_removal(false).contains("not committed"));
    scene.remove(true);
}

#[test]
fn a_commit_that_is_made_during_a_removal_stays_on_its_branch() {
    let scene = scene();
    let late = scene.git(&["commit-tree", "-m", "late", "-p", "main", "main^{tree}"]);
    scene.sandbox.wrap_program(
        "git",
        &format!(
            r#""$real" "$@" || exit; case " $* " in *" worktree remove "*) "$real" -C '{}' update-ref refs/heads/agency/1-fix {late}; esac"#,
            scene.root.display()
        ),
    );
    let project = scene.sandbox.open_with_bin(&scene.root);
    let err = remove(&project, &name("1-fix"), Some("main"), RemoveOptions::discarding()).unwrap_err();
    let told = format_error(&err, err.hint());
    assert!(told.contains("it could not be removed completely") && told.contains("but expected"), "{told}");
    assert_eq!(scene.git(&["rev-parse", "agency/1-fix"]), late);
    assert!(scene.refused_removal(false).contains("1 commit"));
    scene.remove(true);
}

#[test]
fn a_repository_inside_the_workspace_is_not_thrown_away() {
    let scene = scene();
    let nested = scene.path.join("vendor/clone");
    fs::create_dir_all(&nested).unwrap();
    scene.sandbox.git(&nested, &["init", "--quiet"]);
    scene.sandbox.commit(&nested, "work", "1");
    let expected = "Error: cannot remove workspace 1-fix\n\
                    Caused by: git cannot save the repositories inside it: vendor/clone\n\
                    Hint: push their commits and delete them, or move them elsewhere";
    assert_eq!(scene.refused_removal(true), expected);
}

#[test]
fn a_submodule_is_removed_only_if_it_holds_nothing_of_its_own() {
    let sandbox = Sandbox::new();
    let (source, root) = (sandbox.repository("source"), sandbox.repository("root"));
    sandbox.git(&root, &["submodule", "--quiet", "add", source.to_str().unwrap(), "part"]);
    sandbox.git(&root, &["commit", "--quiet", "--message", "part"]);
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    let scene = Scene { sandbox, root, project, path };
    scene.git_inside(&["submodule", "--quiet", "update", "--init"]);
    let part = scene.path.join("part");
    scene.sandbox.git(&part, &["switch", "--quiet", "--create", "local"]);
    scene.sandbox.commit(&part, "work", "1");
    scene.sandbox.git(&part, &["switch", "--quiet", "--detach", "origin/main"]);
    for discard in [false, true] {
        assert!(scene.refused_removal(discard).contains("repositories inside it: part"));
    }
    scene.sandbox.git(&part, &["branch", "--quiet", "-D", "local"]);
    scene.remove(false);
    assert!(scene.root.join("part/readme").exists());
}

#[test]
fn a_workspace_with_unreadable_files_is_not_removed() {
    let scene = scene();
    write(&scene.root.join(".git/info/attributes"), "secret filter=broken\n");
    scene.git(&["config", "filter.broken.clean", "false"]);
    scene.git(&["config", "filter.broken.required", "true"]);
    write(&scene.path.join("secret"), "x");
    let told = scene.refused_removal(true);
    assert!(
        told.contains("Caused by: `git add` failed: ") && told.contains("clean filter 'broken' failed"),
        "{told}"
    );
}

#[test]
fn a_removal_needs_no_identity_and_runs_no_hooks() {
    let scene = scene();
    for hook in ["pre-commit", "commit-msg", "post-commit", "post-checkout"] {
        scene.sandbox.hook(&scene.root, hook, "exit 1");
    }
    scene.git(&["config", "user.useConfigOnly", "true"]);
    scene.git(&["config", "commit.gpgSign", "true"]);
    write(&scene.path.join("work"), "x");
    let trash = scene.remove(true).trash_ref.unwrap();
    let who = scene.git(&["log", "-1", "--format=%an <%ae> %cn", &trash]);
    assert_eq!(who, "Agency <agency@localhost> Agency");
    assert!(Path::new(&scene.root).join("readme").exists());
}

#[test]
fn a_removal_that_stops_half_way_names_the_trash_ref() {
    let scene = scene();
    write(&scene.path.join("work"), "x");
    scene.sandbox.hook(
        &scene.root,
        "reference-transaction",
        "grep -q refs/heads/ && echo no >&2 && exit 1; exit 0",
    );
    let err = remove(&scene.project, &name("1-fix"), None, RemoveOptions::discarding()).unwrap_err();
    let kept = scene.git(&["for-each-ref", "--format=%(refname)", "refs/agency/trash"]);
    let told = format_error(&err, err.hint());
    assert!(
        told.contains("Caused by: it could not be removed completely\nCaused by: `git update-ref` failed: "),
        "{told}"
    );
    assert!(told.ends_with(&format!("Hint: everything in it is saved as {kept}")), "{told}");
    assert_eq!(scene.git(&["show", &format!("{kept}:work")]), "x");
}
