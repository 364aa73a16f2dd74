//! Restoring removed workspaces from the trash, and emptying it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use agency_workspace::{
    Presence, RemoveOptions, TrashReason, create, expire_trash, remove, restore, snapshot, snapshots, state,
    trash_entries,
};

use crate::sandbox::{Sandbox, files_under, format_error, name, write};
use crate::scene::Scene;

fn scene() -> Scene {
    Scene::new(Sandbox::new(), |_, root| write(&root.join(".git/info/exclude"), "target\n.agency\n"))
}

impl Scene {
    fn discard(&self, keep_ignored: bool) -> String {
        let removal = RemoveOptions { discard: true, keep_ignored };
        remove(&self.project, &name("1-fix"), None, removal).unwrap().trash_ref.unwrap()
    }

    fn bring_back(&self) -> agency_workspace::Workspace {
        restore(&self.project, &trash_entries(&self.project).unwrap()[0]).unwrap()
    }

    /// Everything that a user can see of the workspace.
    fn visible_state(&self) -> String {
        let status = self.sandbox.git(&self.path, &["status", "--porcelain", "--branch"]);
        let staged = self.sandbox.git(&self.path, &["diff", "--cached"]);
        let log = self.sandbox.git(&self.path, &["log", "--oneline", "--decorate"]);
        let files = files_under(&self.path);
        let contents: Vec<String> = files.iter().map(|file| content(Path::new(file))).collect();
        format!("{status}\n{staged}\n{log}\n{files:?}\n{contents:?}")
    }
}

fn content(path: &Path) -> String {
    let mode = path.symlink_metadata().unwrap().permissions().mode();
    format!("{mode:o} {}", String::from_utf8_lossy(&fs::read(path).unwrap_or_default()))
}

/// Makes every kind of change that git distinguishes, in one workspace.
fn make_a_mess(scene: &Scene) {
    let path = &scene.path;
    scene.sandbox.commit(path, "committed", "1");
    write(&path.join("committed"), "staged");
    scene.sandbox.git(path, &["add", "committed"]);
    write(&path.join("committed"), "changed");
    write(&path.join("new dir/größe"), "untracked");
    write(&path.join("run.sh"), "#!/bin/sh\n");
    fs::set_permissions(path.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("readme", path.join("link")).unwrap();
    fs::remove_file(path.join("readme")).unwrap();
}

#[test]
fn a_discarded_workspace_comes_back_whole() {
    let scene = scene();
    make_a_mess(&scene);
    let before = scene.visible_state();
    scene.discard(false);
    let back = scene.bring_back();
    assert_eq!((back.path.as_path(), back.branch.as_deref()), (scene.path.as_path(), Some("agency/1-fix")));
    assert_eq!(scene.visible_state(), before);
    assert!(trash_entries(&scene.project).unwrap().is_empty());
}

#[test]
fn ignored_files_come_back_if_they_were_to_be_kept() {
    let scene = scene();
    make_a_mess(&scene);
    write(&scene.path.join("target/cache"), "ignored");
    let before = scene.visible_state();
    scene.discard(true);
    scene.bring_back();
    assert_eq!(scene.visible_state(), before);
    scene.discard(false);
    scene.bring_back();
    assert!(!scene.path.join("target").exists());
}

#[test]
fn a_detached_head_and_everything_staged_come_back_as_they_were() {
    let scene = scene();
    scene.sandbox.git(&scene.path, &["checkout", "--quiet", "--detach"]);
    scene.sandbox.commit(&scene.path, "loose", "1");
    write(&scene.path.join("staged"), "1");
    scene.sandbox.git(&scene.path, &["add", "staged"]);
    let before = scene.visible_state();
    scene.discard(false);
    scene.bring_back();
    assert_eq!(scene.visible_state(), before);
}

#[test]
fn a_branch_that_has_moved_leaves_the_workspace_detached_with_a_warning() {
    let scene = scene();
    scene.sandbox.git(&scene.path, &["switch", "--quiet", "--create", "other"]);
    scene.discard(false);
    scene.sandbox.git(&scene.root, &["switch", "--quiet", "other"]);
    let back = scene.bring_back();
    assert!(back.warnings[0].contains("was on other"), "{:?}", back.warnings);
    assert_eq!(scene.sandbox.git(&scene.path, &["branch", "--show-current"]), "");
}

#[test]
fn a_restore_replaces_neither_files_nor_a_branch() {
    let scene = scene();
    scene.sandbox.commit(&scene.path, "work", "1");
    scene.discard(false);
    let entry = &trash_entries(&scene.project).unwrap()[0];
    write(&scene.path.join("mine"), "x");
    let before = scene.sandbox.full_state(&scene.root);
    let err = restore(&scene.project, entry).unwrap_err();
    assert!(
        format_error(&err, err.hint()).contains("something else exists at"),
        "{}",
        format_error(&err, None)
    );
    assert_eq!(scene.sandbox.full_state(&scene.root), before);
    fs::remove_dir_all(&scene.path).unwrap();
    scene.sandbox.git(&scene.root, &["branch", "--quiet", "agency/1-fix"]);
    let before = scene.sandbox.full_state(&scene.root);
    let err = restore(&scene.project, entry).unwrap_err();
    assert!(format_error(&err, None).contains("the branch agency/1-fix exists already, with other commits"));
    assert_eq!(scene.sandbox.full_state(&scene.root), before);
}

#[test]
fn a_restore_that_fails_leaves_nothing_behind_and_the_trash_as_it_is() {
    let scene = scene();
    write(&scene.path.join(".gitattributes"), "*.bad filter=bad\n");
    write(&scene.path.join("a.bad"), "x");
    scene.discard(false);
    scene.sandbox.git(&scene.root, &["config", "filter.bad.smudge", "false"]);
    scene.sandbox.git(&scene.root, &["config", "filter.bad.required", "true"]);
    let before = scene.sandbox.full_state(&scene.root);
    restore(&scene.project, &trash_entries(&scene.project).unwrap()[0]).unwrap_err();
    assert_eq!(scene.sandbox.full_state(&scene.root), before);
    scene.sandbox.git(&scene.root, &["config", "--unset", "filter.bad.required"]);
    scene.sandbox.git(&scene.root, &["config", "--unset", "filter.bad.smudge"]);
    scene.bring_back();
    assert_eq!(fs::read_to_string(scene.path.join("a.bad")).unwrap(), "x");
}

#[test]
fn the_trash_is_listed_newest_first_with_reasons_and_emptied_only_when_asked() {
    let scene = scene();
    snapshot(&scene.project, &name("1-fix"), "turn 1").unwrap();
    write(&scene.path.join("work"), "1");
    scene.discard(false);
    create(&scene.project, &name("2-other"), None).unwrap();
    remove(&scene.project, &name("2-other"), None, RemoveOptions::default()).unwrap();
    let listed = trash_entries(&scene.project).unwrap();
    let told: Vec<_> = listed.iter().map(|entry| (entry.workspace.as_str(), entry.reason)).collect();
    assert_eq!(told, [("2-other", TrashReason::Removed), ("1-fix", TrashReason::Removed)]);
    assert!(listed[0].at.elapsed().unwrap() < Duration::from_secs(600));

    assert!(expire_trash(&scene.project, &[]).unwrap().is_empty());
    assert_eq!(trash_entries(&scene.project).unwrap(), listed);
    assert_eq!(expire_trash(&scene.project, &listed[1..]).unwrap().len(), 2);
    assert_eq!(trash_entries(&scene.project).unwrap(), listed[..1]);
    // Entries that do not exist any more are skipped.
    assert_eq!(expire_trash(&scene.project, &listed).unwrap(), [listed[0].reference.clone()]);
    assert_eq!(scene.sandbox.git(&scene.root, &["for-each-ref", "refs/agency"]), "");
}

#[test]
fn snapshots_of_an_existing_workspace_do_not_expire() {
    let scene = scene();
    snapshot(&scene.project, &name("1-fix"), "turn 1").unwrap();
    scene.discard(false);
    scene.bring_back();
    assert_eq!(state(&scene.project, &name("1-fix"), None).unwrap().presence, Presence::Ready);
    scene.discard(false);
    let gone = trash_entries(&scene.project).unwrap();
    restore(&scene.project, &gone[0]).unwrap();
    assert!(expire_trash(&scene.project, &gone).unwrap().is_empty());
    assert_eq!(snapshots(&scene.project, &name("1-fix")).unwrap().len(), 1);
}
