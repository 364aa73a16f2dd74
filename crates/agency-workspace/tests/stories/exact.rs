//! Restored workspaces equal the removed ones, byte for byte: files that git hides, converts or does not store.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use agency_workspace::{
    ConflictScanner, Lost, RemoveOptions, SyncMethod, check_remove, create, diff, patch,
    recover_integrations, remove, restore, restore_snapshot, snapshot, snapshot_if_changed, snapshots, sync,
    trash_entries,
};

use crate::sandbox::{Sandbox, format_error, name, project_to_be_killed_in, write};
use crate::scene::Scene;

fn scene() -> Scene {
    Scene::new(Sandbox::new(), |_, root| write(&root.join(".git/info/exclude"), "target\nvendor\n.agency\n"))
}

/// Every file and directory with its mode and its bytes.
type Disk = BTreeMap<String, (u32, Vec<u8>)>;

fn disk(root: &Path) -> Disk {
    let (mut found, mut open) = (Disk::new(), vec![root.to_owned()]);
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap().map(Result::unwrap) {
            let (path, meta) = (entry.path(), entry.path().symlink_metadata().unwrap());
            if path == root.join(".git") {
                continue;
            }
            let content = match meta.file_type() {
                kind if kind.is_dir() => Vec::new(),
                kind if kind.is_symlink() => {
                    fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
                }
                kind if kind.is_fifo() => b"fifo".to_vec(),
                _ => fs::read(&path).unwrap(),
            };
            if meta.is_dir() {
                open.push(path.clone());
            }
            let shown = path.strip_prefix(root).unwrap().display().to_string();
            found.insert(shown, (meta.permissions().mode() & 0o7777, content));
        }
    }
    found
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

impl Scene {
    /// The files, the index with its flags and stages, the status and the operation in progress.
    fn everything(&self) -> (Disk, String, String) {
        let status = self.git_inside(&["status", "--porcelain", "--branch"]);
        let operation = self.git_inside(&["status"]);
        (disk(&self.path), self.git_inside(&["ls-files", "-v", "--stage"]), format!("{status}\n{operation}"))
    }

    fn remove_with(&self, keep_ignored: bool) {
        let removal = RemoveOptions { discard: true, keep_ignored };
        remove(&self.project, &name("1-fix"), None, removal).unwrap();
        assert!(!self.path.exists());
    }

    fn undo(&self) {
        let entries = trash_entries(&self.project).unwrap();
        let back = restore(&self.project, &entries[0]).unwrap();
        assert_eq!(back.warnings, [""; 0]);
        assert!(!trash_entries(&self.project).unwrap().contains(&entries[0]));
    }

    /// Removes the workspace and brings it back. Both states must be equal.
    fn assert_comes_back(&self, keep_ignored: bool) {
        let before = self.everything();
        self.remove_with(keep_ignored);
        self.undo();
        assert_eq!(self.everything(), before);
    }

    /// Takes a snapshot, changes the workspace, and takes the turn back. The states before and after must be
    /// equal.
    fn assert_turn_comes_back(&self, change: impl FnOnce(&Self)) {
        let before = self.everything();
        let taken = snapshot(&self.project, &name("1-fix"), "turn 1").unwrap();
        change(self);
        let changed = self.everything();
        assert_ne!(changed, before);
        restore_snapshot(&self.project, &name("1-fix"), &taken).unwrap();
        assert_eq!(self.everything(), before);
        self.undo();
        assert_eq!(self.everything(), changed);
    }
}

#[test]
fn edits_that_skip_worktree_and_assume_unchanged_hide_come_back_with_the_flags() {
    for flag in ["--skip-worktree", "--assume-unchanged"] {
        let scene = Scene::new(Sandbox::new(), |sandbox, root| {
            sandbox.commit(root, "cfg", "committed\n");
            sandbox.commit(root, "other", "committed\n");
        });
        scene.git_inside(&["update-index", flag, "cfg", "other"]);
        write(&scene.path.join("cfg"), "committed\nLOCAL\n");
        let shown = diff(&scene.project, &name("1-fix"), Some("main")).unwrap();
        assert_eq!(shown.files.len(), 1, "{flag}");
        scene.assert_comes_back(false);
        scene.assert_turn_comes_back(|scene| write(&scene.path.join("cfg"), "other\n"));
    }
}

#[test]
fn hidden_edits_are_work_that_a_removal_without_discard_refuses() {
    for flag in ["--skip-worktree", "--assume-unchanged"] {
        let scene = scene();
        scene.git_inside(&["update-index", flag, "readme"]);
        let removal = RemoveOptions::default();
        check_remove(&scene.project, &name("1-fix"), Some("main"), removal).unwrap();
        write(&scene.path.join("readme"), "LOCAL\n");
        let err = remove(&scene.project, &name("1-fix"), Some("main"), removal).unwrap_err();
        assert_eq!(err.cause.to_string(), "1 file in .agency/worktrees/1-fix is not committed", "{flag}");
        assert_eq!(fs::read_to_string(scene.path.join("readme")).unwrap(), "LOCAL\n");
    }
}

#[test]
fn a_file_that_is_absent_under_skip_worktree_stays_absent() {
    let scene = scene();
    scene.git_inside(&["update-index", "--skip-worktree", "readme"]);
    fs::remove_file(scene.path.join("readme")).unwrap();
    scene.assert_comes_back(false);
    scene.assert_turn_comes_back(|scene| write(&scene.path.join("new"), "1"));
}

#[test]
fn files_outside_a_sparse_checkout_come_back() {
    let scene = Scene::new(Sandbox::new(), |sandbox, root| {
        for file in ["crates/core/a", "crates/other/b", "tests/c"] {
            sandbox.commit(root, file, "1\n");
        }
    });
    scene.git_inside(&["sparse-checkout", "set", "crates/core"]);
    assert!(!scene.path.join("tests").exists());
    write(&scene.path.join("crates/core/in"), "in\n");
    write(&scene.path.join("tests/outside"), "outside\n");
    write(&scene.path.join("crates/other/b"), "changed outside\n");
    scene.assert_comes_back(false);
    assert_eq!(scene.git_inside(&["sparse-checkout", "list"]), "crates/core");
    scene.assert_turn_comes_back(|scene| {
        write(&scene.path.join("tests/outside"), "spoilt\n");
        write(&scene.path.join("tests/more"), "spoilt\n");
    });
}

/// A workspace with rules that convert files: a filter that loses lines, line endings, `ident`, an encoding.
fn converting_scene() -> Scene {
    let scene = Scene::new(Sandbox::new(), |sandbox, root| {
        let attributes = "*.ipynb filter=strip\n*.txt text=auto\n*.c ident\n*.crlf text eol=crlf\n\
                          *.rot filter=turn\n*.enc working-tree-encoding=UTF-16LE\n";
        sandbox.commit(root, ".gitattributes", attributes);
        sandbox.git(root, &["config", "filter.strip.clean", "grep -v output"]);
        sandbox.git(root, &["config", "filter.turn.clean", "tr a-z b-za"]);
        sandbox.git(root, &["config", "filter.turn.smudge", "tr b-za a-z"]);
        sandbox.commit(root, "tracked.ipynb", "code\n");
        sandbox.commit(root, "tracked.txt", "one\ntwo\n");
        sandbox.commit(root, "tracked.rot", "hello\n");
    });
    for (file, content) in [
        ("a.ipynb", "code\noutput 1\n"),
        ("mixed.txt", "one\r\ntwo\n"),
        ("id.c", "$Id: hand$\n"),
        ("lf.crlf", "one\ntwo\n"),
        ("mixed.crlf", "one\r\ntwo\n"),
        ("all.crlf", "one\r\ntwo\r\n"),
        ("new.rot", "secret\n"),
        ("new.enc", "a\0b\0\n\0"),
        ("tracked.ipynb", "code\noutput 2\n"),
        ("tracked.txt", "one\r\ntwo\n"),
        ("line\nbreak \"quoted\".txt", "one\r\ntwo\n"),
    ] {
        write(&scene.path.join(file), content);
    }
    // Git now takes these files for unchanged, although their bytes differ from what it would check out.
    scene.git_inside(&["add", "tracked.ipynb", "tracked.txt"]);
    scene
}

#[test]
fn files_that_git_converts_come_back_byte_for_byte() {
    let scene = converting_scene();
    scene.assert_comes_back(false);
    // Filters that give the same bytes back need no copy: the plain text of an encrypted file is not stored.
    scene.remove_with(false);
    let stored = scene.git(&["cat-file", "--batch-check", "--batch-all-objects"]);
    let ids = stored.lines().filter(|line| line.contains(" blob ")).map(|line| &line[..40]);
    let plain = scene.sandbox.path().join("plain");
    write(&plain, "secret\n");
    let plain = scene.git(&["hash-object", "--no-filters", plain.to_str().unwrap()]);
    assert!(!ids.collect::<Vec<_>>().contains(&plain.as_str()));
    scene.undo();
}

#[test]
fn a_turn_with_files_that_git_converts_is_taken_back_byte_for_byte() {
    let scene = converting_scene();
    scene.assert_turn_comes_back(|scene| {
        write(&scene.path.join("a.ipynb"), "code\noutput 3\n");
        write(&scene.path.join("mixed.txt"), "one\ntwo\r\n");
        write(&scene.path.join("id.c"), "$Id: foot$\n");
        fs::remove_file(scene.path.join("tracked.txt")).unwrap();
        scene.git_inside(&["rm", "--quiet", "--cached", "-f", "tracked.ipynb"]);
    });
}

#[test]
fn a_turn_that_changes_only_what_git_does_not_see_is_a_turn() {
    let scene = converting_scene();
    snapshot(&scene.project, &name("1-fix"), "turn 1").unwrap();
    let take = || snapshot_if_changed(&scene.project, &name("1-fix"), "turn").unwrap().is_some();
    assert!(!take());
    write(&scene.path.join("a.ipynb"), "code\noutput 4\n");
    assert!(take());
    set_mode(&scene.path.join("a.ipynb"), 0o600);
    assert!(take());
    fs::create_dir(scene.path.join("empty")).unwrap();
    assert!(take());
    assert!(!take());
}

#[test]
fn modes_and_empty_directories_come_back() {
    let scene = scene();
    let path = |file: &str| scene.path.join(file);
    for (file, mode) in
        [("id_rsa", 0o600), ("fixed", 0o444), ("tool", 0o4755), ("run", 0o700), ("readme", 0o640)]
    {
        write(&path(file), "1");
        set_mode(&path(file), mode);
    }
    fs::create_dir_all(path("empty/in/empty")).unwrap();
    fs::create_dir_all(path("private/empty")).unwrap();
    write(&path("private/key"), "1");
    set_mode(&path("private/empty"), 0o750);
    set_mode(&path("private"), 0o700);
    write(&path("objects/target/a.o"), "ignored, in a directory that is not");
    let before = scene.everything();
    scene.remove_with(false);
    scene.undo();
    let mut expected = before.clone();
    expected.0.retain(|path, _| !path.starts_with("objects/target"));
    assert_eq!(scene.everything(), expected);
    scene.assert_turn_comes_back(|scene| {
        set_mode(&scene.path.join("id_rsa"), 0o644);
        fs::remove_dir_all(scene.path.join("empty")).unwrap();
        fs::create_dir(scene.path.join("later")).unwrap();
        write(&scene.path.join("readme"), "more");
        set_mode(&scene.path.join("private"), 0o755);
    });
}

#[test]
fn a_directory_that_nobody_may_write_comes_back() {
    let scene = scene();
    write(&scene.path.join("closed/in/file"), "1");
    set_mode(&scene.path.join("closed/in"), 0o555);
    set_mode(&scene.path.join("closed"), 0o555);
    scene.assert_comes_back(false);
    for dir in ["closed", "closed/in"] {
        set_mode(&scene.path.join(dir), 0o755);
    }
}

fn try_git_inside(scene: &Scene, args: &[&str]) -> bool {
    std::panic::catch_unwind(|| scene.git_inside(args)).is_ok()
}

#[test]
fn a_merge_in_progress_comes_back_and_can_be_finished() {
    let scene = scene();
    scene.sandbox.commit(&scene.root, "theirs", "1");
    scene.sandbox.commit(&scene.root, "readme", "theirs\n");
    scene.sandbox.commit(&scene.path, "readme", "ours\n");
    assert!(!try_git_inside(&scene, &["merge", "main"]), "it conflicts");
    write(&scene.path.join("later"), "1");
    scene.git_inside(&["add", "--intent-to-add", "later"]);
    scene.assert_comes_back(false);
    scene.assert_turn_comes_back(|scene| {
        scene.git_inside(&["reset", "--quiet", "--hard"]);
        write(&scene.path.join("more"), "1");
    });
    let taken = snapshots(&scene.project, &name("1-fix")).unwrap().remove(0);
    restore_snapshot(&scene.project, &name("1-fix"), &taken).unwrap();
    write(&scene.path.join("readme"), "both\n");
    scene.git_inside(&["add", "readme"]);
    scene.git_inside(&["commit", "--quiet", "--no-edit"]);
    assert_eq!(scene.git_inside(&["log", "-1", "--format=%s"]), "Merge branch 'main' into agency/1-fix");
    assert_eq!(scene.git_inside(&["rev-list", "--count", "--merges", "HEAD"]), "1");
}

#[test]
fn a_rebase_in_progress_comes_back_after_a_collection_of_garbage_and_can_be_finished() {
    let scene = scene();
    scene.sandbox.commit(&scene.root, "readme", "theirs\n");
    scene.sandbox.commit(&scene.path, "readme", "ours\n");
    scene.sandbox.commit(&scene.path, "second", "2\n");
    assert!(!try_git_inside(&scene, &["rebase", "--quiet", "main"]), "it conflicts");
    let before = scene.everything();
    scene.remove_with(false);
    scene.git(&["gc", "--quiet", "--prune=now"]);
    scene.undo();
    assert_eq!(scene.everything(), before);
    write(&scene.path.join("readme"), "both\n");
    scene.git_inside(&["add", "readme"]);
    scene.git_inside(&["-c", "core.editor=true", "rebase", "--continue"]);
    assert_eq!(scene.git_inside(&["branch", "--show-current"]), "agency/1-fix");
    assert_eq!(scene.git_inside(&["log", "--format=%s", "main.."]), "second\nreadme");
}

/// Makes a repository with one commit and one changed file.
fn nested_repository(scene: &Scene, at: &str) {
    let nested = scene.path.join(at);
    fs::create_dir_all(&nested).unwrap();
    scene.sandbox.git(&nested, &["init", "--quiet"]);
    scene.sandbox.commit(&nested, "work", "1\n");
    write(&nested.join("work"), "changed\n");
}

#[test]
fn a_repository_in_an_ignored_folder_comes_back_whole_with_keep_ignored() {
    let scene = scene();
    nested_repository(&scene, "vendor/clone");
    nested_repository(&scene, "target");
    write(&scene.path.join("vendor/other"), "1");
    let fresh = scene.path.join("vendor/fresh");
    fs::create_dir_all(&fresh).unwrap();
    scene.sandbox.git(&fresh, &["init", "--quiet"]);
    write(&fresh.join("first"), "without a commit");
    std::os::unix::fs::symlink("work", scene.path.join("target/link")).unwrap();
    scene.assert_comes_back(true);
    for nested in ["vendor/clone", "target"] {
        let nested = scene.path.join(nested);
        assert_eq!(scene.sandbox.git(&nested, &["log", "--format=%s"]), "work");
        assert!(scene.sandbox.git(&nested, &["status", "--porcelain"]).starts_with(" M work"));
    }
}

#[test]
fn a_repository_in_an_ignored_folder_with_own_commits_is_not_thrown_away() {
    let scene = scene();
    nested_repository(&scene, "vendor/clone");
    let task = name("1-fix");
    let refuse = |removal| {
        let err = remove(&scene.project, &task, Some("main"), removal).unwrap_err();
        let checked = check_remove(&scene.project, &task, Some("main"), removal).unwrap_err();
        assert_eq!(err.to_string(), checked.to_string());
        format_error(&err, err.hint())
    };
    let expected = "Error: cannot remove workspace 1-fix\n\
                    Caused by: repositories in ignored folders have commits of their own: vendor/clone\n\
                    Hint: push their commits, set workspace.keep_ignored to save them too, or pass --discard";
    assert_eq!(refuse(RemoveOptions::default()), expected);
    // A clone whose commits are all on a server goes with the ignored files.
    let origin = scene.sandbox.path().join("origin");
    let nested = scene.path.join("vendor/clone");
    scene.sandbox.git(&nested, &["clone", "--quiet", "--bare", ".", origin.to_str().unwrap()]);
    scene.sandbox.git(&nested, &["remote", "add", "origin", origin.to_str().unwrap()]);
    scene.sandbox.git(&nested, &["fetch", "--quiet", "origin"]);
    check_remove(&scene.project, &task, Some("main"), RemoveOptions::default()).unwrap();
    let lost = remove(&scene.project, &task, Some("main"), RemoveOptions::discarding()).unwrap().lost;
    assert!(lost.ignored_files > 2, "{lost:?}");
}

#[test]
fn a_removal_names_what_cannot_be_restored_before_it_acts() {
    let scene = scene();
    let task = name("1-fix");
    assert!(
        check_remove(&scene.project, &task, None, RemoveOptions::default()).unwrap().sentences().is_empty()
    );
    write(&scene.path.join("target/a"), "12345");
    write(&scene.path.join("target/b/c"), "12345");
    make_fifo(&scene.path.join("pipe"));
    let lost = check_remove(&scene.project, &task, None, RemoveOptions::default()).unwrap();
    let expected =
        ["2 ignored files (10 bytes) cannot be restored later", "these cannot be saved or restored: pipe"];
    assert_eq!(lost.sentences(), expected);
    let keeping = RemoveOptions { keep_ignored: true, ..RemoveOptions::default() };
    assert_eq!(check_remove(&scene.project, &task, None, keeping).unwrap().sentences(), &expected[1..]);
    assert_eq!(remove(&scene.project, &task, None, RemoveOptions::default()).unwrap().lost, lost);
}

fn make_fifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_restore_that_gives_other_bytes_keeps_the_trash_entry_and_says_so() {
    let scene = converting_scene();
    scene.remove_with(false);
    // Without this filter, git writes the stored bytes as they are.
    scene.git(&["config", "--unset", "filter.turn.smudge"]);
    scene.git(&["config", "--unset", "filter.turn.clean"]);
    let entry = trash_entries(&scene.project).unwrap().remove(0);
    let back = restore(&scene.project, &entry).unwrap();
    let expected = format!(
        "these files are not as they were saved: new.rot, tracked.rot; {} still has them",
        entry.reference
    );
    assert_eq!(back.warnings, [expected]);
    assert!(trash_entries(&scene.project).unwrap().contains(&entry));
}

#[test]
fn a_trash_entry_of_an_earlier_version_comes_back() {
    let scene = scene();
    write(&scene.path.join("new"), "1");
    let before = scene.everything();
    let head = scene.git_inside(&["rev-parse", "HEAD"]);
    scene.git_inside(&["add", "new"]);
    let tree = scene.git_inside(&["write-tree"]);
    scene.git_inside(&["reset", "--quiet"]);
    scene.git(&["worktree", "remove", "--force", scene.path.to_str().unwrap()]);
    scene.git(&["update-ref", "-d", "refs/heads/agency/1-fix"]);
    let message = format!(
        "agency: workspace 1-fix, as it was removed\n\nAgency-Workspace: 1-fix\n\
         Agency-Head: refs/heads/agency/1-fix\nAgency-Branch: agency/1-fix {head}\n"
    );
    let commit = scene.git(&["commit-tree", &tree, "-p", &head, "-m", &message]);
    scene.git(&["update-ref", "refs/agency/trash/1-fix-1700000000000", &commit]);
    scene.undo();
    assert_eq!(scene.everything(), before);
}

/// A workspace after two turns: the second has changed files and made a commit.
fn scene_after_two_turns() -> Scene {
    let scene = scene();
    write(&scene.path.join("one"), "1\n");
    write(&scene.path.join("both"), "1\n");
    snapshot(&scene.project, &name("1-fix"), "turn 1").unwrap();
    write(&scene.path.join("both"), "2\n");
    scene.sandbox.commit(&scene.path, "readme", "2\n");
    fs::remove_file(scene.path.join("one")).unwrap();
    scene
}

#[test]
fn a_turn_that_is_taken_back_and_killed_anywhere_is_as_before_or_taken_back() {
    let task = name("1-fix");
    if let Some(project) = project_to_be_killed_in() {
        let taken = snapshots(&project, &task).unwrap().remove(0);
        restore_snapshot(&project, &task, &taken).unwrap();
        return;
    }
    let story = "exact::a_turn_that_is_taken_back_and_killed_anywhere_is_as_before_or_taken_back";
    let mut outcomes = Vec::new();
    // Every call would take minutes. The first call of each story reads.
    for call in (3..).step_by(6) {
        let scene = scene_after_two_turns();
        let before = scene.everything();
        scene.sandbox.kill_caller_after("git", call);
        let is_through = scene.sandbox.run_in_child(story, &scene.root);
        recover_integrations(&scene.project).unwrap();
        let (files, index, _) = scene.everything();
        let is_back = files.contains_key("one");
        outcomes.push(is_back);
        if is_back {
            assert_eq!(files["both"].1, b"1\n", "killed after call {call}");
            assert_eq!(files["readme"].1, b"hello\n", "killed after call {call}");
            assert!(index.contains("ce013625030ba8dba906f756967f9e9ca394464a"), "{index}");
            assert_eq!(scene.git_inside(&["log", "--format=%s"]), "readme", "killed after call {call}");
        } else {
            assert_eq!(scene.everything(), before, "killed after call {call}");
        }
        assert_eq!(scene.git(&["for-each-ref", "refs/agency/restoring"]), "");
        if is_through {
            break;
        }
    }
    assert!(outcomes.contains(&true) && outcomes.contains(&false), "{outcomes:?}");
}

impl Scene {
    fn count_objects(&self) -> String {
        self.git(&["count-objects", "-v"])
    }
}

#[test]
fn looking_writes_no_objects_into_the_repository() {
    let scene = scene();
    let task = name("1-fix");
    write(&scene.path.join("big"), &"many words\n".repeat(10_000));
    write(&scene.path.join("readme"), "changed\n");
    let before = scene.count_objects();
    let shown = diff(&scene.project, &task, Some("main")).unwrap();
    assert_eq!(shown.files.len(), 2);
    let text = patch(&scene.project, &task, &shown).unwrap();
    assert!(String::from_utf8(text).unwrap().contains("+changed"));
    let mut scanner = ConflictScanner::default();
    scene.sandbox.commit(&scene.root, "readme", "other\n");
    let before_scan = scene.count_objects();
    let workspaces = [(task.clone(), Some("main".to_owned()))];
    for text in ["changed\n", "changed again\n"] {
        write(&scene.path.join("readme"), text);
        let found = scanner.scan(&scene.project, &workspaces).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(scanner.scan(&scene.project, &workspaces).unwrap(), found);
    }
    assert_eq!(scene.count_objects(), before_scan);
    assert_ne!(before_scan, before);
    drop((scanner, shown));
    let left = fs::read_dir(scene.root.join(".git")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.map(|name| name.into_string().unwrap()).any(|name| name.starts_with("agency-")));
}

#[test]
fn a_removal_after_its_check_reads_untracked_files_only_once() {
    let scene = scene();
    for number in 0..50 {
        let file = scene.path.join(format!("new/{number}"));
        write(&file, &number.to_string());
        // Git reads a file again that is as young as the index.
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        fs::File::options().write(true).open(&file).unwrap().set_modified(then).unwrap();
    }
    let options = RemoveOptions::discarding();
    // Counts how often the file is read: a filter reads each file that git adds.
    let reads = scene.sandbox.path().join("reads");
    write(&reads, "");
    write(&scene.root.join(".git/info/attributes"), "new/* filter=count\n");
    scene.git(&["config", "filter.count.clean", &format!("sh -c 'echo >> {}; cat'", reads.display())]);
    check_remove(&scene.project, &name("1-fix"), None, options).unwrap();
    let at_check = fs::read_to_string(&reads).unwrap().len();
    assert_eq!(at_check, 50);
    remove(&scene.project, &name("1-fix"), None, options).unwrap();
    let at_removal = fs::read_to_string(&reads).unwrap().len() - at_check;
    assert_eq!(at_removal, 0);
    scene.undo();
    assert_eq!(fs::read_dir(scene.path.join("new")).unwrap().count(), 50);
}

#[test]
fn a_sync_that_fails_half_way_gives_bytes_and_modes_back() {
    let scene = converting_scene();
    set_mode(&scene.path.join("tracked.txt"), 0o600);
    for (file, text) in
        [("tracked.ipynb", "theirs\ncode\n"), ("tracked.txt", "theirs\none\ntwo\n"), ("zzz", "1\n")]
    {
        scene.sandbox.commit(&scene.root, file, text);
    }
    // The last file that git writes fails.
    write(&scene.root.join(".git/info/attributes"), "zzz filter=failing\n");
    for (key, value) in [("smudge", "false"), ("clean", "cat"), ("required", "true")] {
        scene.git(&["config", &format!("filter.failing.{key}"), value]);
    }
    let before = scene.everything();
    sync(&scene.project, &name("1-fix"), Some("main"), SyncMethod::Merge).unwrap_err();
    assert_eq!(scene.everything(), before);
}

#[test]
fn a_jj_workspace_comes_back_byte_for_byte() {
    let sandbox = Sandbox::new();
    let root = sandbox.jj_repository("root", true);
    sandbox.jj_commit(&root, ".gitignore", "target\n");
    sandbox.jj_commit(&root, ".gitattributes", "*.txt text=auto\n*.crlf text eol=crlf\n");
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    write(&path.join("mixed.txt"), "one\r\ntwo\n");
    write(&path.join("lf.crlf"), "one\ntwo\n");
    write(&path.join("target/mixed.txt"), "one\r\ntwo\n");
    write(&path.join("id_rsa"), "1");
    set_mode(&path.join("id_rsa"), 0o600);
    fs::create_dir(path.join("empty")).unwrap();
    let files = || {
        let mut files = disk(&path);
        files.retain(|path, _| !path.starts_with(".jj"));
        files
    };
    let before = files();
    let lost = check_remove(&project, &name("1-fix"), None, RemoveOptions::discarding()).unwrap();
    assert_eq!(lost.sentences(), ["1 ignored file (9 bytes) cannot be restored later"]);
    let removal = RemoveOptions { discard: true, keep_ignored: true };
    assert_eq!(remove(&project, &name("1-fix"), None, removal).unwrap().lost, Lost::default());
    let entries = trash_entries(&project).unwrap();
    assert_eq!(restore(&project, &entries[0]).unwrap().warnings, [""; 0]);
    assert_eq!(files(), before);
    assert!(trash_entries(&project).unwrap().is_empty());
}

#[test]
fn a_turn_of_a_jj_workspace_is_taken_back_with_modes_and_empty_directories() {
    let sandbox = Sandbox::new();
    let root = sandbox.jj_repository("root", true);
    sandbox.jj_commit(&root, ".gitignore", "target\n");
    sandbox.jj_commit(&root, ".gitattributes", "*.txt text=auto\n*.crlf text eol=crlf\n");
    let project = sandbox.open(&root);
    let task = name("1-fix");
    let path = create(&project, &task, None).unwrap().path;
    write(&path.join("mixed.txt"), "one\r\ntwo\n");
    write(&path.join("lf.crlf"), "one\ntwo\n");
    write(&path.join("id_rsa"), "1");
    set_mode(&path.join("id_rsa"), 0o600);
    fs::create_dir_all(path.join("empty/below")).unwrap();
    // jj does not track a file of this size, and ignores the other. No turn has them.
    let large = "x".repeat(3 << 20);
    write(&path.join("large"), &large);
    set_mode(&path.join("large"), 0o600);
    write(&path.join("target/built"), "1");
    set_mode(&path.join("target/built"), 0o600);
    let files = || {
        let mut files = disk(&path);
        files.retain(|path, _| !path.starts_with(".jj"));
        files
    };
    let before = files();
    let taken = snapshot(&project, &task, "turn").unwrap();
    assert_eq!(snapshot_if_changed(&project, &task, "turn").unwrap(), None);
    set_mode(&path.join("id_rsa"), 0o644);
    let only_a_mode = snapshot_if_changed(&project, &task, "turn").unwrap();
    assert!(only_a_mode.is_some());
    write(&path.join("mixed.txt"), "other\n");
    write(&path.join("lf.crlf"), "other\n");
    write(&path.join("later/new"), "1");
    fs::remove_dir_all(path.join("empty")).unwrap();
    fs::create_dir(path.join("empty later")).unwrap();
    restore_snapshot(&project, &task, &taken).unwrap();
    assert_eq!(files(), before);
    // The files of before come back from the trash.
    let entries = trash_entries(&project).unwrap();
    assert_eq!(restore(&project, &entries[0]).unwrap().warnings, [""; 0]);
    assert!(path.join("later/new").exists() && path.join("empty later").is_dir());
    assert!(!path.join("empty").exists());
}
