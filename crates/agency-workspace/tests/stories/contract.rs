//! What holds for every kind of workspace.

use std::fs;
use std::path::PathBuf;

use agency_workspace::{
    Presence, Project, Removal, check, create, dirty_checkout, exclude, remove, state, undo, workspace_path,
};

use crate::ground::{Ground, files_under, name};

struct Scene {
    ground: Ground,
    root: PathBuf,
    project: Project,
}

fn every_kind(story: impl Fn(&Scene)) {
    let ground = Ground::new();
    let root = ground.repository("git");
    let project = ground.open(&root);
    story(&Scene { ground, root, project });

    let ground = Ground::new();
    let root = ground.path().join("plain");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("readme"), "hello\n").unwrap();
    let project = ground.open_plain(&root);
    story(&Scene { ground, root, project });
}

#[test]
fn a_workspace_is_made_ready_and_clean_where_it_was_announced() {
    every_kind(|scene| {
        let made = create(&scene.project, &name("1-fix"), None).unwrap();
        assert_eq!(made.path, workspace_path(&scene.project, &name("1-fix")));
        assert_eq!(fs::read_to_string(made.path.join("readme")).unwrap(), "hello\n");
        assert_eq!(made.warnings, [""; 0]);
        let state = state(&scene.project, &name("1-fix"), None).unwrap();
        assert_eq!((state.presence, &state.path), (Presence::Ready, &made.path));
        assert_eq!((state.uncommitted.len(), state.unmerged_commits), (0, 0));
        assert_eq!(state.branch, made.branch);
    });
}

#[test]
fn a_check_makes_nothing() {
    every_kind(|scene| {
        let before = files_under(&scene.root);
        check(&scene.project, &name("1-fix"), None).unwrap();
        assert_eq!(files_under(&scene.root), before);
    });
}

#[test]
fn an_undone_workspace_leaves_no_trace_and_can_be_undone_twice() {
    every_kind(|scene| {
        let before = files_under(&scene.root);
        let made = create(&scene.project, &name("1-fix"), None).unwrap();
        undo(&scene.project, &made).unwrap();
        undo(&scene.project, &made).unwrap();
        assert_eq!(files_under(&scene.root), before);
    });
}

#[test]
fn removing_a_workspace_leaves_the_users_own_files_alone() {
    every_kind(|scene| {
        fs::write(scene.root.join("notes"), "mine").unwrap();
        let before = files_under(&scene.root);
        for discard in [false, true] {
            create(&scene.project, &name("1-fix"), None).unwrap();
            remove(&scene.project, &name("1-fix"), None, Removal { discard, ..Removal::default() }).unwrap();
            assert_eq!(files_under(&scene.root), before);
        }
    });
}

#[test]
fn removing_what_was_never_made_is_no_error_and_removes_nothing() {
    every_kind(|scene| {
        let before = files_under(&scene.root);
        let removed = remove(&scene.project, &name("7-never"), None, Removal::discarding()).unwrap();
        assert_eq!((removed.trash, removed.branch, removed.directory), (None, None, None));
        assert_eq!(files_under(&scene.root), before);
    });
}

#[test]
fn the_project_is_found_again_from_inside_its_workspace() {
    every_kind(|scene| {
        fs::create_dir_all(scene.root.join(".agency/tasks")).unwrap();
        let made = create(&scene.project, &name("1-fix"), None).unwrap();
        fs::create_dir(made.path.join("src")).unwrap();
        let again = scene.ground.open(&made.path.join("src"));
        assert_eq!((again.root(), again.vcs()), (scene.project.root(), scene.project.vcs()));
    });
}

#[test]
fn agencys_own_files_are_neither_dirt_nor_untracked() {
    every_kind(|scene| {
        exclude(&scene.project).unwrap();
        create(&scene.project, &name("1-fix"), None).unwrap();
        assert!(dirty_checkout(&scene.project).unwrap().is_empty());
    });
}

#[test]
fn a_project_whose_directory_went_away_makes_no_workspace() {
    every_kind(|scene| {
        fs::remove_dir_all(&scene.root).unwrap();
        create(&scene.project, &name("1-fix"), None).unwrap_err();
        assert!(!scene.root.exists());
    });
}
