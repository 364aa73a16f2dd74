//! Removing a new workspace whose agent could not be started.

use std::fs;

use agency_workspace::{Presence, create, reattach, state, undo_create};

use crate::sandbox::{Sandbox, format_error, name, write};

#[test]
fn an_undo_removes_only_what_the_call_created() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root with space");
    let project = sandbox.open(&root);
    create(&project, &name("1-stays"), None).unwrap();
    let before = sandbox.full_state(&root);
    let made = create(&project, &name("2-goes"), None).unwrap();
    undo_create(&project, &made).unwrap();
    assert_eq!(sandbox.full_state(&root), before);
}

#[test]
fn a_workspace_with_new_work_stays() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    let made = create(&project, &name("1-fix"), None).unwrap();
    write(&made.path.join("new"), "x");
    let kept = sandbox.full_state(&root);
    let err = undo_create(&project, &made).unwrap_err();
    let expected = "Error: cannot remove the new workspace 1-fix\n\
                    Caused by: 1 file in .agency/worktrees/1-fix is not committed";
    assert_eq!(format_error(&err, err.hint()), expected);
    assert_eq!(sandbox.full_state(&root), kept);

    sandbox.commit(&made.path, "new", "x");
    let kept = sandbox.full_state(&root);
    let err = undo_create(&project, &made).unwrap_err();
    assert_eq!(
        format_error(&err, None),
        "Error: cannot remove the new workspace 1-fix\nCaused by: 1 commit on agency/1-fix is new"
    );
    assert_eq!(sandbox.full_state(&root), kept);
}

#[test]
fn a_reattached_directory_is_removed_and_its_branch_stays() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    let tip = sandbox.commit(&path, "work", "1");
    fs::remove_dir_all(&path).unwrap();
    let back = reattach(&project, &name("1-fix")).unwrap();
    undo_create(&project, &back).unwrap();
    assert_eq!(state(&project, &name("1-fix"), None).unwrap().presence, Presence::DirectoryGone);
    assert_eq!(sandbox.git(&root, &["rev-parse", "agency/1-fix"]), tip);
}

#[test]
fn something_else_in_its_place_is_left_alone() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    let made = create(&project, &name("1-fix"), None).unwrap();
    fs::remove_dir_all(&made.path).unwrap();
    write(&made.path.join("mine"), "x");
    let err = undo_create(&project, &made).unwrap_err();
    assert!(format_error(&err, None).ends_with("is not a worktree of this repository"));
    assert!(made.path.join("mine").exists());
}
