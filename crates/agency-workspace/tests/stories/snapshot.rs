//! Snapshots: the changes of one turn, and how they are undone.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use agency_workspace::{
    diff_between, restore, restore_snapshot, snapshot, snapshot_before_first_turn, snapshot_if_changed,
    snapshots, trash_entries, trash_entry_bytes,
};

use crate::sandbox::{Sandbox, files_under, name, write};
use crate::scene::Scene;

fn scene() -> Scene {
    Scene::new(Sandbox::new(), |_, root| write(&root.join(".git/info/exclude"), "target\n.agency\n"))
}

impl Scene {
    fn take(&self, label: &str) -> agency_workspace::Snapshot {
        snapshot(&self.project, &name("1-fix"), label).unwrap()
    }

    fn changed(&self, from: &agency_workspace::Snapshot, to: &agency_workspace::Snapshot) -> Vec<String> {
        let diff = diff_between(&self.project, &name("1-fix"), from, to).unwrap();
        diff.files.iter().map(|file| file.path.display().to_string()).collect()
    }

    fn files_and_status(&self) -> (Vec<String>, String, String) {
        let files = files_under(&self.path);
        let text = fs::read_to_string(self.path.join("readme")).unwrap_or_default();
        (files, text, self.sandbox.git(&self.path, &["status", "--porcelain", "--branch"]))
    }
}

#[test]
fn a_change_within_the_second_of_the_last_commit_is_saved() {
    let scene = scene();
    let (file, then) =
        (scene.path.join("readme"), SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000));
    let put = |text: &str| {
        write(&file, text);
        File::options().write(true).open(&file).unwrap().set_modified(then).unwrap();
    };
    // A test cannot set the ctime of a file. Without this setting the story would have to run within one
    // second.
    scene.sandbox.git(&scene.path, &["config", "core.trustctime", "false"]);
    put("one");
    scene.sandbox.git(&scene.path, &["commit", "--quiet", "--all", "--message", "one"]);
    let index = scene.root.join(".git/worktrees/1-fix/index");
    File::options().write(true).open(index).unwrap().set_modified(then).unwrap();
    put("two");
    let taken = scene.take("turn 1");
    let kept = scene.sandbox.git(&scene.path, &["show", &format!("{}:readme", taken.reference)]);
    assert_eq!(kept, "two");
}

#[test]
fn a_snapshot_is_on_no_branch_and_leaves_index_and_head_alone() {
    let scene = scene();
    write(&scene.path.join("staged"), "1");
    scene.sandbox.git(&scene.path, &["add", "staged"]);
    write(&scene.path.join("untracked"), "1");
    let before = scene.files_and_status();
    let taken = scene.take("turn 1");
    assert_eq!(scene.files_and_status(), before);
    assert_eq!((taken.number, taken.reference.as_str()), (1, "refs/agency/turns/1/1"));
    assert_eq!(
        scene.sandbox.git(&scene.root, &["branch", "--list", "--format=%(refname:short)"]),
        "agency/1-fix\nmain"
    );
    let listed = snapshots(&scene.project, &name("1-fix")).unwrap();
    assert_eq!((listed.len(), &listed[0].reference), (1, &taken.reference));
    assert_eq!(listed[0].label, "turn 1");
}

#[test]
fn the_changes_of_one_turn_are_distinguished_from_the_others() {
    let scene = scene();
    let start = scene.take("start");
    write(&scene.path.join("one"), "1");
    let first = scene.take("turn 1");
    scene.sandbox.commit(&scene.path, "two", "2");
    fs::remove_file(scene.path.join("one")).unwrap();
    let second = scene.take("turn 2");
    assert_eq!(scene.changed(&start, &first), ["one"]);
    assert_eq!(scene.changed(&first, &second), ["one", "two"]);
    assert_eq!(scene.changed(&start, &second), ["two"]);
}

#[test]
fn a_turn_is_undone_with_its_commits_and_so_is_the_undo() {
    let scene = scene();
    scene.sandbox.commit(&scene.path, "earlier", "1");
    write(&scene.path.join("target/cache"), "ignored");
    write(&scene.path.join("half"), "done");
    let then = scene.files_and_status();
    let taken = scene.take("turn 1");
    scene.sandbox.commit(&scene.path, "wrong", "2");
    write(&scene.path.join("readme"), "spoilt\n");
    write(&scene.path.join("new/file"), "x");
    fs::remove_file(scene.path.join("half")).unwrap();
    let spoilt = scene.files_and_status();

    let kept = restore_snapshot(&scene.project, &name("1-fix"), &taken).unwrap();
    assert_eq!(scene.files_and_status(), then);
    let entries = trash_entries(&scene.project).unwrap();
    assert_eq!((entries.len(), &entries[0].reference), (1, &kept));

    restore(&scene.project, &entries[0]).unwrap();
    assert_eq!(scene.files_and_status(), spoilt);
}

#[test]
fn two_concurrent_snapshots_get_different_numbers() {
    let scene = scene();
    let numbers: Vec<u64> = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..4).map(|_| scope.spawn(|| scene.take("same").number)).collect();
        takers.into_iter().map(|taker| taker.join().unwrap()).collect()
    });
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [1, 2, 3, 4], "{numbers:?}");
}

#[test]
fn an_ignored_file_in_the_way_is_not_overwritten() {
    let scene = scene();
    write(&scene.path.join("out"), "tracked once");
    let taken = scene.take("turn 1");
    write(&scene.path.join("out"), "a secret of now");
    write(&scene.root.join(".git/info/exclude"), "out\n.agency\n");
    restore_snapshot(&scene.project, &name("1-fix"), &taken).unwrap_err();
    assert_eq!(fs::read_to_string(scene.path.join("out")).unwrap(), "a secret of now");
}

#[test]
fn turns_count_from_the_state_before_and_one_without_changes_is_skipped() {
    let scene = scene();
    let task = name("1-fix");
    snapshot_before_first_turn(&scene.project, &task, "before").unwrap();
    snapshot_before_first_turn(&scene.project, &task, "again").unwrap();
    assert_eq!(snapshot_if_changed(&scene.project, &task, "turn").unwrap(), None);
    write(&scene.path.join("new"), "1");
    let first = snapshot_if_changed(&scene.project, &task, "turn").unwrap().unwrap();
    assert_eq!(snapshot_if_changed(&scene.project, &task, "turn").unwrap(), None);
    // The same files, committed: a change that can be undone.
    scene.sandbox.git(&scene.path, &["add", "new"]);
    scene.sandbox.git(&scene.path, &["commit", "-qm", "new"]);
    let second = snapshot_if_changed(&scene.project, &task, "turn").unwrap().unwrap();
    assert_eq!((first.number, second.number), (1, 2));
    let listed = snapshots(&scene.project, &task).unwrap();
    let numbers: Vec<(u64, &str)> = listed.iter().map(|one| (one.number, one.label.as_str())).collect();
    assert_eq!(numbers, [(0, "before"), (1, "turn"), (2, "turn")]);
    assert_eq!(scene.changed(&listed[0], &listed[1]), ["new"]);
    assert!(listed[0].at <= listed[2].at && listed[2].at.elapsed().unwrap() < Duration::from_secs(600));
    restore_snapshot(&scene.project, &task, &listed[0]).unwrap();
    assert!(!scene.path.join("new").exists());
    let kept = trash_entries(&scene.project).unwrap();
    let size = |file: &str| fs::metadata(scene.path.join(file)).unwrap().len();
    assert_eq!(trash_entry_bytes(&scene.project, &kept[0]).unwrap(), size("readme") + 1);
}
