//! The conflict scanner: which workspaces conflict, in which files, and how many calls of git that takes.

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

    /// Scans and formats each conflict: `1-a × main: file, file`.
    fn scan(&mut self) -> Vec<String> {
        let found = self.scanner.scan(&self.project, &self.workspaces).unwrap();
        found.iter().map(format_conflict).collect()
    }
}

fn format_conflict(conflict: &WorkspaceConflict) -> String {
    let with = match &conflict.with {
        ConflictWith::Base(base) => base.clone(),
        ConflictWith::Workspace(name) => name.to_string(),
    };
    let files: Vec<_> = conflict.files.iter().map(|file| file.display().to_string()).collect();
    format!("{} × {with}: {}", conflict.workspace, files.join(", "))
}

#[test]
fn uncommitted_work_conflicts_with_others_and_with_the_base() {
    let mut scene = scene(&["1-a", "2-b", "3-c"]);
    assert_eq!(scene.scan(), [""; 0]);
    write(&scene.path("1-a").join("shared"), "one\n2\n3\n");
    scene.sandbox.commit(&scene.path("2-b"), "shared", "two\n2\n3\n");
    write(&scene.path("3-c").join("own"), "untracked");
    assert_eq!(scene.scan(), ["1-a × 2-b: shared"]);
    write(&scene.path("1-a").join("own"), "also untracked");
    assert_eq!(scene.scan(), ["1-a × 2-b: shared", "1-a × 3-c: own"]);
    scene.sandbox.commit(&scene.root, "shared", "base\n2\n3\n");
    assert_eq!(
        scene.scan(),
        ["1-a × main: shared", "1-a × 2-b: shared", "1-a × 3-c: own", "2-b × main: shared"]
    );
    write(&scene.path("1-a").join("shared"), "1\n2\n3\n");
    assert_eq!(scene.scan(), ["1-a × 3-c: own", "2-b × main: shared"]);
}

#[test]
fn a_conflict_with_the_base_is_not_reported_for_newer_workspaces() {
    let mut scene = scene(&["1-a"]);
    std::fs::remove_file(scene.path("1-a").join("shared")).unwrap();
    scene.sandbox.commit(&scene.root, "shared", "one\n2\n3\n");
    create(&scene.project, &name("2-b"), None).unwrap();
    scene.workspaces.push((name("2-b"), Some("main".to_owned())));
    write(&scene.path("2-b").join("own"), "1\n");
    assert_eq!(scene.scan(), ["1-a × main: shared"]);
}

#[test]
fn nothing_is_merged_when_nothing_changed_and_one_change_costs_only_its_own_merges() {
    let mut scene = scene(&["1-a", "2-b", "3-c", "4-d"]);
    for workspace in ["1-a", "2-b", "3-c", "4-d"] {
        write(&scene.path(workspace).join(workspace), "x");
    }
    scene.scan();
    let first = scene.scanner.merge_count();
    assert_eq!(first, 4 + 6);
    scene.scan();
    assert_eq!(scene.scanner.merge_count(), first);
    write(&scene.path("2-b").join("2-b"), "y");
    scene.scan();
    assert_eq!(scene.scanner.merge_count(), first + 1 + 3);
}

#[test]
fn a_scan_without_changes_calls_git_once_for_each_workspace() {
    let calls = tempfile::NamedTempFile::new().unwrap();
    let sandbox = Sandbox::new();
    let config = sandbox.path().join("gitconfig");
    write(&config, &format!("[trace2]\n\tnormalTarget = {}\n", calls.path().display()));
    let mut scene = scene_on(sandbox.with("GIT_CONFIG_GLOBAL", config), &["1-a", "2-b", "3-c", "4-d"]);
    write(&scene.path("1-a").join("new"), "x");
    scene.sandbox.commit(&scene.path("2-b"), "shared", "two\n");
    scene.scan();
    calls.as_file().set_len(0).unwrap();
    scene.scan();
    let said = std::fs::read_to_string(calls.path()).unwrap();
    let called = |command: &str| {
        let is_call = |line: &&str| line.contains(" start ") && line.contains(command);
        said.lines().filter(is_call).count()
    };
    // Finding the base takes three calls, however many workspaces share it.
    assert_eq!((called(" status "), called("")), (4, 7), "{said}");
}

#[test]
fn merges_of_a_scan_leave_no_objects_behind() {
    let mut scene = scene(&["1-a", "2-b"]);
    scene.sandbox.commit(&scene.path("1-a"), "shared", "one\n");
    scene.sandbox.commit(&scene.path("2-b"), "shared", "two\n");
    let objects = |scene: &Scene| scene.sandbox.git(&scene.root, &["count-objects"]);
    let before = objects(&scene);
    assert_eq!(scene.scan(), ["1-a × 2-b: shared"]);
    assert_eq!(objects(&scene), before);
}

#[test]
fn a_scan_repeats_merges_whose_objects_git_has_deleted() {
    let mut scene = scene(&["1-a", "2-b"]);
    write(&scene.path("1-a").join("shared"), "one\n");
    assert_eq!(scene.scan(), [""; 0]);
    scene.sandbox.git(&scene.root, &["prune", "--expire=now"]);
    write(&scene.path("2-b").join("shared"), "two\n");
    assert_eq!(scene.scan(), ["1-a × 2-b: shared"]);
}

#[test]
fn a_missing_or_incomplete_workspace_does_not_stop_a_scan() {
    let mut scene = scene(&["1-a", "2-b"]);
    scene.workspaces.push((name("9-never"), Some("main".into())));
    scene.workspaces.push((name("1-a"), Some("no such base".into())));
    write(&scene.path("1-a").join("shared"), "one\n");
    write(&scene.path("2-b").join("shared"), "two\n");
    std::fs::remove_dir_all(scene.path("2-b")).unwrap();
    assert_eq!(scene.scan(), [""; 0]);
}

#[test]
fn a_scan_changes_no_workspace() {
    let mut scene = scene(&["1-a", "2-b"]);
    for workspace in ["1-a", "2-b"] {
        write(&scene.path(workspace).join("shared"), workspace);
        write(&scene.path(workspace).join("new"), workspace);
    }
    let before = scene.sandbox.full_state(&scene.root);
    let status = scene.sandbox.git(&scene.path("1-a"), &["status", "--porcelain"]);
    assert_eq!(scene.scan(), ["1-a × 2-b: new, shared"]);
    assert_eq!(scene.sandbox.full_state(&scene.root), before);
    assert_eq!(scene.sandbox.git(&scene.path("1-a"), &["status", "--porcelain"]), status);
}

/// Counts the processes that git calls start.
fn count_git_calls(scene: &Scene) -> usize {
    std::fs::read_to_string(scene.sandbox.path().join("calls")).unwrap_or_default().lines().count()
}

/// Scans until nothing has changed since the scan before. Young files count as changed.
fn scan_until_unchanged(scene: &mut Scene) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while scene.scanner.scan_changes(&scene.project, &scene.workspaces).unwrap().is_some() {
        assert!(std::time::Instant::now() < deadline, "something changes all the time");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

#[test]
fn workspaces_without_changes_cost_no_process_and_every_change_is_found() {
    let mut scene = scene(&["1-a", "2-b"]);
    let count =
        format!("echo \"$*\" >>'{}'\nexec \"$real\" \"$@\"", scene.sandbox.path().join("calls").display());
    scene.sandbox.wrap_program("git", &count);
    scene.project = scene.sandbox.open_with_bin(&scene.root);
    let a = scene.path("1-a");
    write(&a.join(".gitignore"), "*.o\nnode_modules/\n");
    write(&a.join("build/only.o"), "ignored");
    write(&a.join("node_modules/x/index.js"), "ignored");
    std::fs::create_dir(a.join("empty")).unwrap();
    let edit_in_place = |content: &str| {
        let file = a.join("shared");
        let before = file.metadata().unwrap().modified().unwrap();
        std::fs::write(&file, content).unwrap();
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(before).unwrap();
    };
    let root = scene.root.clone();
    let sandbox = Sandbox::new();
    let changes: [&dyn Fn(); 7] = [
        &|| edit_in_place("one\n2\n3\n"),
        &|| edit_in_place("own\n2\n3\n"),
        &|| write(&a.join("empty/new"), "x"),
        &|| write(&a.join("build/new.c"), "x"),
        &|| std::fs::remove_file(a.join("empty/new")).unwrap(),
        &|| drop(sandbox.commit(&root, "of-main", "x")),
        &|| write(&a.join(".gitignore"), "*.o\n"),
    ];
    for change in changes {
        scan_until_unchanged(&mut scene);
        let calls = count_git_calls(&scene);
        write(&a.join("node_modules/x/index.js"), "changed, and still ignored");
        assert_eq!(scene.scanner.scan_changes(&scene.project, &scene.workspaces).unwrap(), None);
        assert_eq!(count_git_calls(&scene), calls);
        change();
        assert!(scene.scanner.scan_changes(&scene.project, &scene.workspaces).unwrap().is_some());
    }
}

#[test]
fn a_file_against_a_directory_is_named_as_the_commits_name_it() {
    let mut scene = scene(&["1-a", "2-b"]);
    scene.sandbox.commit(&scene.path("1-a"), "thing", "a file\n");
    scene.sandbox.commit(&scene.path("2-b"), "thing/inside", "in a directory\n");
    assert_eq!(scene.scan(), ["1-a × 2-b: thing"]);
}
