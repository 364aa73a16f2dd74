//! The conflict radar: who would collide, in which files, and at what cost.

use std::path::PathBuf;

use agency_workspace::{ConflictScanner, ConflictWith, Project, WorkspaceConflict, WorkspaceName, create};

use crate::sandbox::{Sandbox, name, write};

struct Scene {
    sandbox: Sandbox,
    root: PathBuf,
    project: Project,
    scanner: ConflictScanner,
    workspaces: Vec<(WorkspaceName, Option<String>)>,
}

fn scene(names: &[&str]) -> Scene {
    scene_on(Sandbox::new(), names)
}

fn scene_on(sandbox: Sandbox, names: &[&str]) -> Scene {
    let root = sandbox.repository("root");
    sandbox.commit(&root, "shared", "1\n2\n3\n");
    let project = sandbox.open(&root);
    for one in names {
        create(&project, &name(one), None).unwrap();
    }
    let workspaces = names.iter().map(|one| (name(one), Some("main".to_owned()))).collect();
    Scene { sandbox, root, project, scanner: ConflictScanner::default(), workspaces }
}

impl Scene {
    fn path(&self, workspace: &str) -> PathBuf {
        agency_workspace::workspace_path(&self.project, &name(workspace))
    }

    /// `1-a × main: file, file`
    fn seen(&mut self) -> Vec<String> {
        let found = self.scanner.scan(&self.project, &self.workspaces).unwrap();
        found.iter().map(told).collect()
    }
}

fn told(collision: &WorkspaceConflict) -> String {
    let with = match &collision.with {
        ConflictWith::Base(base) => base.clone(),
        ConflictWith::Workspace(name) => name.to_string(),
    };
    let files: Vec<_> = collision.files.iter().map(|file| file.display().to_string()).collect();
    format!("{} × {with}: {}", collision.workspace, files.join(", "))
}

#[test]
fn work_that_is_not_committed_collides_with_others_and_with_the_base() {
    let mut scene = scene(&["1-a", "2-b", "3-c"]);
    assert_eq!(scene.seen(), [""; 0]);
    write(&scene.path("1-a").join("shared"), "one\n2\n3\n");
    scene.sandbox.commit(&scene.path("2-b"), "shared", "two\n2\n3\n");
    write(&scene.path("3-c").join("own"), "untracked");
    assert_eq!(scene.seen(), ["1-a × 2-b: shared"]);
    write(&scene.path("1-a").join("own"), "also untracked");
    assert_eq!(scene.seen(), ["1-a × 2-b: shared", "1-a × 3-c: own"]);
    scene.sandbox.commit(&scene.root, "shared", "base\n2\n3\n");
    assert_eq!(
        scene.seen(),
        ["1-a × main: shared", "1-a × 2-b: shared", "1-a × 3-c: own", "2-b × main: shared"]
    );
    write(&scene.path("1-a").join("shared"), "1\n2\n3\n");
    assert_eq!(scene.seen(), ["1-a × 3-c: own", "2-b × main: shared"]);
}

#[test]
fn what_an_older_workspace_has_against_the_base_is_not_blamed_on_those_that_follow_it() {
    let mut scene = scene(&["1-a"]);
    std::fs::remove_file(scene.path("1-a").join("shared")).unwrap();
    scene.sandbox.commit(&scene.root, "shared", "one\n2\n3\n");
    create(&scene.project, &name("2-b"), None).unwrap();
    scene.workspaces.push((name("2-b"), Some("main".to_owned())));
    write(&scene.path("2-b").join("own"), "1\n");
    assert_eq!(scene.seen(), ["1-a × main: shared"]);
}

#[test]
fn nothing_is_merged_when_nothing_changed_and_one_change_costs_only_its_own_merges() {
    let mut scene = scene(&["1-a", "2-b", "3-c", "4-d"]);
    for workspace in ["1-a", "2-b", "3-c", "4-d"] {
        write(&scene.path(workspace).join(workspace), "x");
    }
    scene.seen();
    let first = scene.scanner.merge_count();
    assert_eq!(first, 4 + 6);
    scene.seen();
    assert_eq!(scene.scanner.merge_count(), first);
    write(&scene.path("2-b").join("2-b"), "y");
    scene.seen();
    assert_eq!(scene.scanner.merge_count(), first + 1 + 3);
}

#[test]
fn a_look_at_what_did_not_change_calls_git_once_for_each_workspace() {
    let calls = tempfile::NamedTempFile::new().unwrap();
    let sandbox = Sandbox::new();
    let config = sandbox.path().join("gitconfig");
    write(&config, &format!("[trace2]\n\tnormalTarget = {}\n", calls.path().display()));
    let mut scene = scene_on(sandbox.with("GIT_CONFIG_GLOBAL", config), &["1-a", "2-b", "3-c", "4-d"]);
    write(&scene.path("1-a").join("new"), "x");
    scene.sandbox.commit(&scene.path("2-b"), "shared", "two\n");
    scene.seen();
    calls.as_file().set_len(0).unwrap();
    scene.seen();
    let said = std::fs::read_to_string(calls.path()).unwrap();
    let called = |command: &str| {
        let is_call = |line: &&str| line.contains(" start ") && line.contains(command);
        said.lines().filter(is_call).count()
    };
    // Where the base is takes three, however many have it.
    assert_eq!((called(" status "), called("")), (4, 7), "{said}");
}

#[test]
fn merges_that_are_only_tried_leave_no_objects_behind() {
    let mut scene = scene(&["1-a", "2-b"]);
    scene.sandbox.commit(&scene.path("1-a"), "shared", "one\n");
    scene.sandbox.commit(&scene.path("2-b"), "shared", "two\n");
    let objects = |scene: &Scene| scene.sandbox.git(&scene.root, &["count-objects"]);
    let before = objects(&scene);
    assert_eq!(scene.seen(), ["1-a × 2-b: shared"]);
    assert_eq!(objects(&scene), before);
}

#[test]
fn what_git_has_deleted_since_is_found_out_again() {
    let mut scene = scene(&["1-a", "2-b"]);
    write(&scene.path("1-a").join("shared"), "one\n");
    assert_eq!(scene.seen(), [""; 0]);
    scene.sandbox.git(&scene.root, &["prune", "--expire=now"]);
    write(&scene.path("2-b").join("shared"), "two\n");
    assert_eq!(scene.seen(), ["1-a × 2-b: shared"]);
}

#[test]
fn a_workspace_that_is_gone_or_half_there_spoils_nothing() {
    let mut scene = scene(&["1-a", "2-b"]);
    scene.workspaces.push((name("9-never"), Some("main".into())));
    scene.workspaces.push((name("1-a"), Some("no such base".into())));
    write(&scene.path("1-a").join("shared"), "one\n");
    write(&scene.path("2-b").join("shared"), "two\n");
    std::fs::remove_dir_all(scene.path("2-b")).unwrap();
    assert_eq!(scene.seen(), [""; 0]);
}

#[test]
fn nothing_of_a_look_is_seen_in_the_workspaces() {
    let mut scene = scene(&["1-a", "2-b"]);
    for workspace in ["1-a", "2-b"] {
        write(&scene.path(workspace).join("shared"), workspace);
        write(&scene.path(workspace).join("new"), workspace);
    }
    let before = scene.sandbox.full_state(&scene.root);
    let status = scene.sandbox.git(&scene.path("1-a"), &["status", "--porcelain"]);
    assert_eq!(scene.seen(), ["1-a × 2-b: new, shared"]);
    assert_eq!(scene.sandbox.full_state(&scene.root), before);
    assert_eq!(scene.sandbox.git(&scene.path("1-a"), &["status", "--porcelain"]), status);
}
