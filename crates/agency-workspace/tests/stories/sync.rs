//! Bringing new commits of the base into a workspace.

use std::fs;

use agency_workspace::{SyncMethod, TrashReason, recover_integrations, restore, sync, trash_entries};

use crate::sandbox::{Sandbox, format_error, name, project_to_be_killed_in, write};
use crate::scene::Scene;

fn scene() -> Scene {
    Scene::new(Sandbox::new().with_identity(), |sandbox, root| {
        sandbox.commit(root, "shared", "1\n2\n3\n");
    })
}

impl Scene {
    fn sync(&self, how: SyncMethod) -> agency_workspace::Synced {
        sync(&self.project, &name("1-fix"), Some("main"), how).unwrap()
    }

    fn refused_sync(&self, how: SyncMethod) -> String {
        let before = self.sandbox.full_state(&self.root);
        let status = self.sandbox.git(&self.path, &["status", "--porcelain", "--branch"]);
        let err = sync(&self.project, &name("1-fix"), Some("main"), how).unwrap_err();
        assert_eq!(self.sandbox.full_state(&self.root), before);
        assert_eq!(self.sandbox.git(&self.path, &["status", "--porcelain", "--branch"]), status);
        format_error(&err, err.hint())
    }

    fn log(&self) -> String {
        self.sandbox.git(&self.path, &["log", "--format=%s", "--first-parent"])
    }
}

#[test]
fn a_rebase_puts_the_work_on_top_and_leaves_uncommitted_files_alone() {
    let scene = scene();
    let before = scene.sandbox.commit(&scene.path, "own", "1");
    write(&scene.path.join("untracked"), "x");
    write(&scene.path.join("readme"), "staged\n");
    scene.sandbox.git(&scene.path, &["add", "readme"]);
    scene.sandbox.commit(&scene.root, "shared", "new\n2\n3\n");
    let status = scene.sandbox.git(&scene.path, &["status", "--porcelain"]);
    let synced = scene.sync(SyncMethod::Rebase);
    assert_eq!((synced.commits, &synced.before), (1, &before));
    assert_eq!(scene.log(), "own\nshared\nshared\nreadme");
    assert_eq!(fs::read_to_string(scene.path.join("shared")).unwrap(), "new\n2\n3\n");
    assert_eq!(scene.sandbox.git(&scene.path, &["status", "--porcelain"]), status);
    assert_eq!(scene.sandbox.git(&scene.root, &["rev-parse", "agency/1-fix"]), synced.after);

    let entry = &trash_entries(&scene.project).unwrap()[0];
    assert_eq!((entry.reason, Some(&entry.reference)), (TrashReason::Rebased, synced.trash_ref.as_ref()));
    restore(&scene.project, entry).unwrap();
    assert_eq!(scene.sandbox.git(&scene.root, &["rev-parse", "agency/1-fix"]), before);
    assert_eq!(scene.sandbox.git(&scene.path, &["status", "--porcelain"]), status);
}

#[test]
fn a_merge_keeps_the_commits_as_they_are() {
    let scene = scene();
    let before = scene.sandbox.commit(&scene.path, "own", "1");
    scene.sandbox.commit(&scene.root, "theirs", "1");
    let synced = scene.sync(SyncMethod::Merge);
    assert_eq!(scene.sandbox.git(&scene.path, &["rev-parse", "HEAD^1"]), before);
    assert_eq!(scene.log(), "Merge main into agency/1-fix\nown\nshared\nreadme");
    assert_eq!(scene.sandbox.git(&scene.path, &["status", "--porcelain"]), "");
    let again = scene.sync(SyncMethod::Merge);
    assert_eq!((again.commits, &again.after), (0, &synced.after));
}

#[test]
fn a_conflict_is_reported_and_changes_nothing() {
    let scene = scene();
    scene.sandbox.commit(&scene.path, "shared", "own\n2\n3\n");
    scene.sandbox.commit(&scene.root, "shared", "theirs\n2\n3\n");
    for how in [SyncMethod::Rebase, SyncMethod::Merge] {
        let expected = "Error: cannot sync workspace 1-fix\n\
                        Caused by: shared conflicts with main\n\
                        Hint: nothing was changed; merge main by hand in the workspace, or tell the agent to";
        assert_eq!(scene.refused_sync(how), expected);
    }
}

#[test]
fn uncommitted_and_ignored_files_in_the_way_refuse() {
    let scene = scene();
    write(&scene.root.join(".git/info/exclude"), "ignored\n.agency\n");
    write(&scene.path.join("shared"), "mine");
    write(&scene.path.join("new"), "mine");
    write(&scene.path.join("ignored"), "mine");
    scene.sandbox.commit(&scene.root, "shared", "theirs\n");
    scene.sandbox.commit(&scene.root, "new", "theirs\n");
    write(&scene.root.join("ignored"), "theirs");
    scene.sandbox.git(&scene.root, &["add", "--force", "ignored"]);
    scene.sandbox.git(&scene.root, &["commit", "--quiet", "--message", "ignored"]);
    let refused = scene.refused_sync(SyncMethod::Rebase);
    assert!(refused.contains("uncommitted files are in the way: ignored, new, shared"), "{refused}");
    assert_eq!(fs::read_to_string(scene.path.join("ignored")).unwrap(), "mine");
}

#[test]
fn a_busy_workspace_or_one_on_another_branch_is_not_synced() {
    let scene = scene();
    scene.sandbox.commit(&scene.root, "theirs", "1");
    scene.sandbox.git(&scene.path, &["checkout", "--quiet", "--detach"]);
    assert!(
        scene
            .refused_sync(SyncMethod::Rebase)
            .contains("is on no branch and not on its own branch agency/1-fix")
    );
    scene.sandbox.git(&scene.path, &["checkout", "--quiet", "agency/1-fix"]);
    scene.sandbox.git(&scene.path, &["merge", "--quiet", "--no-commit", "--no-ff", "main"]);
    assert!(scene.refused_sync(SyncMethod::Rebase).contains("a merge is in progress in"));
}

/// Work on both sides, uncommitted files, and a staged file.
fn busy() -> Scene {
    let scene = scene();
    write(&scene.root.join(".git/info/exclude"), ".agency\n");
    scene.sandbox.commit(&scene.path, "own", "1");
    write(&scene.path.join("untracked"), "x");
    write(&scene.path.join("readme"), "staged\n");
    scene.sandbox.git(&scene.path, &["add", "readme"]);
    scene.sandbox.commit(&scene.root, "shared", "new\n2\n3\n");
    scene.sandbox.commit(&scene.root, "theirs", "1");
    scene
}

#[test]
fn a_sync_that_is_killed_anywhere_leaves_all_as_before_or_synced() {
    if let Some(project) = project_to_be_killed_in() {
        sync(&project, &name("1-fix"), Some("main"), SyncMethod::Rebase).unwrap();
        return;
    }
    let (mut scene, mut outcomes) = (busy(), Vec::new());
    for call in 1.. {
        let (is_through, is_synced) = killed_after(&scene, call);
        outcomes.push(is_synced);
        if is_through {
            break;
        }
        if is_synced {
            scene = busy();
        }
    }
    assert!(outcomes.iter().filter(|is_synced| !**is_synced).count() > 10, "{outcomes:?}");
    // Killed after the files, after the branch, and not at all.
    assert!(outcomes.iter().filter(|is_synced| **is_synced).count() > 2, "{outcomes:?}");
}

/// Returns whether the sync ended before that call of git, and whether the workspace has the base.
fn killed_after(scene: &Scene, call: u32) -> (bool, bool) {
    let status = || scene.sandbox.git(&scene.path, &["status", "--porcelain"]);
    let (before, log) = (status(), scene.log());
    scene.sandbox.kill_caller_after("git", call);
    let story = "sync::a_sync_that_is_killed_anywhere_leaves_all_as_before_or_synced";
    let is_through = scene.sandbox.run_in_child(story, &scene.root);
    recover_integrations(&scene.project).unwrap();
    assert_eq!(status(), before, "killed after call {call}");
    assert_eq!(scene.sandbox.git(&scene.root, &["for-each-ref", "refs/agency/syncing"]), "");
    let is_synced = scene.log() == "own\ntheirs\nshared\nshared\nreadme";
    let content = if is_synced { "new\n2\n3\n" } else { "1\n2\n3\n" };
    assert!(is_synced || scene.log() == log, "killed after call {call}");
    assert_eq!(fs::read_to_string(scene.path.join("shared")).unwrap(), content);
    assert_eq!(scene.path.join("theirs").exists(), is_synced);
    (is_through, is_synced)
}

#[test]
fn a_workspace_that_git_fails_in_half_way_is_restored() {
    let scene = busy();
    write(&scene.root.join(".git/info/attributes"), "theirs filter=failing\n");
    for (key, value) in [("smudge", "false"), ("clean", "cat"), ("required", "true")] {
        scene.sandbox.git(&scene.root, &["config", &format!("filter.failing.{key}"), value]);
    }
    let status = || scene.sandbox.git(&scene.path, &["status", "--porcelain"]);
    let (before, log) = (status(), scene.log());
    sync(&scene.project, &name("1-fix"), Some("main"), SyncMethod::Merge).unwrap_err();
    assert_eq!((status(), scene.log()), (before, log));
    assert_eq!(fs::read_to_string(scene.path.join("shared")).unwrap(), "1\n2\n3\n");
    assert_eq!(scene.sandbox.git(&scene.root, &["for-each-ref", "refs/agency/syncing"]), "");
}

#[test]
fn a_commit_that_is_made_during_a_sync_is_not_lost() {
    let scene = busy();
    let script = format!(
        r#""$real" "$@" || exit
case " $* " in *" read-tree -m -u "*) [ -e '{0}/once' ] || {{ touch '{0}/once'
"$real" -C '{1}' -c user.name=A -c user.email=a commit --quiet --message late --only own; }}; esac"#,
        scene.sandbox.path().display(),
        scene.path.display()
    );
    scene.sandbox.wrap_program("git", &script);
    write(&scene.path.join("own"), "2");
    let project = scene.sandbox.open_with_bin(&scene.root);
    let err = sync(&project, &name("1-fix"), Some("main"), SyncMethod::Rebase).unwrap_err();
    assert_eq!(scene.log(), "late\nown\nshared\nreadme", "{}", format_error(&err, err.hint()));
    let told = format_error(&err, err.hint());
    assert!(told.contains("another process moved agency/1-fix meanwhile"), "{told}");
    assert_eq!(fs::read_to_string(scene.path.join("shared")).unwrap(), "1\n2\n3\n");
    assert_eq!(scene.sandbox.git(&scene.path, &["status", "--porcelain"]), "M  readme\n?? untracked");
}

#[test]
fn a_lock_on_the_index_is_named_with_a_way_out_and_nothing_changes() {
    let scene = busy();
    let git_dir = scene.sandbox.git(&scene.path, &["rev-parse", "--absolute-git-dir"]);
    let lock = std::path::Path::new(&git_dir).join("index.lock");
    write(&lock, "");
    let refused = scene.refused_sync(SyncMethod::Rebase);
    assert!(refused.contains(&format!("Unable to create '{}'", lock.display())), "{refused}");
    assert!(
        refused.contains("Hint: another git command is running, or a dead one left its lock"),
        "{refused}"
    );
    std::fs::remove_file(&lock).unwrap();
    assert!(sync(&scene.project, &name("1-fix"), Some("main"), SyncMethod::Rebase).unwrap().commits > 0);
}
