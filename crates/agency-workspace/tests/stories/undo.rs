//! Taking back a workspace whose agent could not be started.

use std::fs;

use agency_workspace::{Presence, create, reattach, state, undo_create};

use crate::ground::{Ground, name, told, write};

#[test]
fn everything_the_call_made_goes_and_nothing_else() {
    let ground = Ground::new();
    let root = ground.repository("root with space");
    let project = ground.open(&root);
    create(&project, &name("1-stays"), None).unwrap();
    let before = ground.everything(&root);
    let made = create(&project, &name("2-goes"), None).unwrap();
    undo_create(&project, &made).unwrap();
    assert_eq!(ground.everything(&root), before);
}

#[test]
fn a_workspace_somebody_worked_in_stays() {
    let ground = Ground::new();
    let root = ground.repository("root");
    let project = ground.open(&root);
    let made = create(&project, &name("1-fix"), None).unwrap();
    write(&made.path.join("new"), "x");
    let kept = ground.everything(&root);
    let err = undo_create(&project, &made).unwrap_err();
    let expected = "Error: workspace 1-fix stays\n\
                    Caused by: 1 file in .agency/worktrees/1-fix is not committed";
    assert_eq!(told(&err, err.hint()), expected);
    assert_eq!(ground.everything(&root), kept);

    ground.commit(&made.path, "new", "x");
    let kept = ground.everything(&root);
    let err = undo_create(&project, &made).unwrap_err();
    assert_eq!(told(&err, None), "Error: workspace 1-fix stays\nCaused by: 1 commit on agency/1-fix is new");
    assert_eq!(ground.everything(&root), kept);
}

#[test]
fn a_directory_that_was_brought_back_goes_and_its_branch_stays() {
    let ground = Ground::new();
    let root = ground.repository("root");
    let project = ground.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    let tip = ground.commit(&path, "work", "1");
    fs::remove_dir_all(&path).unwrap();
    let back = reattach(&project, &name("1-fix")).unwrap();
    undo_create(&project, &back).unwrap();
    assert_eq!(state(&project, &name("1-fix"), None).unwrap().presence, Presence::DirectoryGone);
    assert_eq!(ground.git(&root, &["rev-parse", "agency/1-fix"]), tip);
}

#[test]
fn something_else_in_its_place_is_left_alone() {
    let ground = Ground::new();
    let root = ground.repository("root");
    let project = ground.open(&root);
    let made = create(&project, &name("1-fix"), None).unwrap();
    fs::remove_dir_all(&made.path).unwrap();
    write(&made.path.join("mine"), "x");
    let err = undo_create(&project, &made).unwrap_err();
    assert!(told(&err, None).ends_with("is not a worktree of this repository"));
    assert!(made.path.join("mine").exists());
}
