//! Rules that hold for every kind of workspace.

use std::fs;
use std::path::{Path, PathBuf};

use agency_workspace::{
    ConflictScanner, ConflictWith, MergeMethod, MergeRequest, OperationError, Presence, Project,
    RemoveOptions, SyncMethod, Vcs, check_create, commit_all, create, diff, diff_between, dirty_checkout,
    exclude_agency_dir, expire_trash, is_gone, merge, patch, reattach, recover_integrations, remove, restore,
    restore_snapshot, snapshot, snapshot_before_first_turn, snapshots, state, sync, trash_entries,
    undo_create, workspace_path,
};

use crate::sandbox::{Sandbox, files_under, format_error, name, write};

struct Scene {
    sandbox: Sandbox,
    root: PathBuf,
    project: Project,
}

fn every_kind(story: impl Fn(&Scene)) {
    every_versioned_kind(&story);
    story(&plain());
}

/// Git, and jj next to git.
fn every_versioned_kind(story: impl Fn(&Scene)) {
    let sandbox = Sandbox::new().with_identity();
    let root = sandbox.repository("git");
    let project = sandbox.open(&root);
    assert_eq!(project.vcs(), Vcs::Git);
    story(&Scene { sandbox, root, project });
    story(&jj(true));
}

fn jj(colocated: bool) -> Scene {
    let sandbox = Sandbox::new().with_identity();
    let root = sandbox.jj_repository("jj", colocated);
    let project = sandbox.open(&root);
    assert_eq!(project.vcs(), Vcs::Jj);
    Scene { sandbox, root, project }
}

fn plain() -> Scene {
    let sandbox = Sandbox::new();
    let root = sandbox.path().join("plain");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("readme"), "hello\n").unwrap();
    let project = sandbox.open_plain(&root);
    Scene { sandbox, root, project }
}

impl Scene {
    /// Creates a workspace after excluding `.agency/` from the repository.
    fn make(&self, workspace: &str) -> PathBuf {
        exclude_agency_dir(&self.project).unwrap();
        create(&self.project, &name(workspace), Some("main")).unwrap().path
    }

    /// Commits as the user, in the main checkout.
    fn commit(&self, file: &str, content: &str) {
        match self.project.vcs() {
            Vcs::Jj => self.sandbox.jj_commit(&self.root, file, content),
            Vcs::Git => drop(self.sandbox.commit(&self.root, file, content)),
            Vcs::Plain => write(&self.root.join(file), content),
        }
    }

    fn commit_in(&self, workspace: &str, file: &str, content: &str) {
        write(&workspace_path(&self.project, &name(workspace)).join(file), content);
        commit_all(&self.project, &name(workspace), file).unwrap().unwrap();
    }

    /// Returns a file as `main` has it.
    fn on_main(&self, file: &str) -> String {
        match self.project.vcs() {
            Vcs::Jj => {
                self.sandbox.jj(&self.root, &["--ignore-working-copy", "file", "show", "-r", "main", file])
            }
            Vcs::Git | Vcs::Plain => self.sandbox.git(&self.root, &["show", &format!("main:{file}")]),
        }
    }

    /// Returns everything that a refused call must leave unchanged: commits, names, and the user's working
    /// copy.
    fn history(&self) -> String {
        match self.project.vcs() {
            Vcs::Jj => {
                let names = self.sandbox.jj(&self.root, &["--ignore-working-copy", "bookmark", "list"]);
                let template = "commit_id ++ bookmarks ++ working_copies ++ \"\\n\"";
                let log = ["--ignore-working-copy", "log", "-r", "all()", "--no-graph", "-T", template];
                format!("{names}\n{}", self.sandbox.jj(&self.root, &log))
            }
            Vcs::Git => self.sandbox.full_state(&self.root),
            Vcs::Plain => String::new(),
        }
    }

    fn changed(&self, workspace: &str) -> Vec<String> {
        let diff = diff(&self.project, &name(workspace), Some("main")).unwrap();
        diff.files.iter().map(|file| file.path.display().to_string()).collect()
    }

    fn uncommitted(&self, workspace: &str) -> Vec<String> {
        let state = state(&self.project, &name(workspace), Some("main")).unwrap();
        let mut files: Vec<_> = state.uncommitted.iter().map(|file| file.display().to_string()).collect();
        files.sort();
        files
    }

    fn unmerged(&self, workspace: &str) -> u64 {
        state(&self.project, &name(workspace), Some("main")).unwrap().unmerged_commits
    }
}

fn content(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_workspace_is_created_ready_and_clean_at_its_path() {
    every_kind(|scene| {
        let made = create(&scene.project, &name("1-fix"), None).unwrap();
        assert_eq!(made.path, workspace_path(&scene.project, &name("1-fix")));
        assert_eq!(content(&made.path.join("readme")), "hello\n");
        let state = state(&scene.project, &name("1-fix"), None).unwrap();
        assert_eq!((state.presence, &state.path), (Presence::Ready, &made.path));
        assert_eq!((state.uncommitted.len(), state.unmerged_commits), (0, 0));
        assert_eq!(state.branch, made.branch);
        assert!(!is_gone(&scene.project, &name("1-fix")));
    });
}

#[test]
fn a_jj_repository_without_a_git_beside_it_does_all_of_it_too() {
    let scene = jj(false);
    let path = scene.make("1-fix");
    assert!(!scene.root.join(".git").exists() && !path.join(".git").exists());
    write(&path.join("own"), "1\n");
    assert_eq!(
        (scene.uncommitted("1-fix"), scene.changed("1-fix")),
        (vec!["own".into()], vec!["own".into()])
    );
    remove(&scene.project, &name("1-fix"), Some("main"), RemoveOptions::discarding()).unwrap();
    restore(&scene.project, &trash_entries(&scene.project).unwrap()[0]).unwrap();
    commit_all(&scene.project, &name("1-fix"), "work").unwrap().unwrap();
    scene.commit("theirs", "2\n");
    sync(&scene.project, &name("1-fix"), Some("main"), SyncMethod::Rebase).unwrap();
    let request = MergeRequest { into: Some("main".into()), ..MergeRequest::default() };
    merge(&scene.project, &name("1-fix"), &request).unwrap();
    assert_eq!([scene.on_main("own"), scene.on_main("theirs")], ["1", "2"]);
    remove(&scene.project, &name("1-fix"), Some("main"), RemoveOptions::default()).unwrap();
    assert_eq!(scene.sandbox.jj(&scene.root, &["diff", "--summary"]), "");
    let err = create(&scene.project, &name("2-near"), Some("mian")).unwrap_err();
    assert!(format_error(&err, err.hint()).ends_with("did you mean main?"));
}

#[test]
fn a_check_creates_nothing() {
    every_kind(|scene| {
        let before = (files_under(&scene.root), scene.history());
        check_create(&scene.project, &name("1-fix"), None).unwrap();
        assert_eq!((files_under(&scene.root), scene.history()), before);
    });
}

#[test]
fn an_undone_workspace_leaves_no_trace_and_can_be_undone_twice() {
    every_kind(|scene| {
        let before = (files_under(&scene.root), scene.history());
        let made = create(&scene.project, &name("1-fix"), None).unwrap();
        undo_create(&scene.project, &made).unwrap();
        undo_create(&scene.project, &made).unwrap();
        assert_eq!((files_under(&scene.root), scene.history()), before);
    });
}

#[test]
fn a_workspace_with_new_work_is_not_undone() {
    every_versioned_kind(|scene| {
        exclude_agency_dir(&scene.project).unwrap();
        let made = create(&scene.project, &name("1-fix"), None).unwrap();
        write(&made.path.join("new"), "x");
        let err = undo_create(&scene.project, &made).unwrap_err();
        let expected = "Error: cannot remove the new workspace 1-fix\n\
                        Caused by: 1 file in .agency/worktrees/1-fix is not committed";
        assert_eq!(format_error(&err, err.hint()), expected);
        assert_eq!(content(&made.path.join("new")), "x");
        commit_all(&scene.project, &name("1-fix"), "work").unwrap().unwrap();
        undo_create(&scene.project, &made).unwrap_err();
        assert_eq!(content(&made.path.join("new")), "x");
    });
}

#[test]
fn removing_a_workspace_leaves_the_users_own_files_alone() {
    every_kind(|scene| {
        exclude_agency_dir(&scene.project).unwrap();
        fs::write(scene.root.join("notes"), "mine").unwrap();
        let before = files_under(&scene.root);
        for discard in [false, true] {
            create(&scene.project, &name("1-fix"), None).unwrap();
            remove(
                &scene.project,
                &name("1-fix"),
                None,
                RemoveOptions { discard, ..RemoveOptions::default() },
            )
            .unwrap();
            assert_eq!(files_under(&scene.root), before);
        }
    });
}

#[test]
fn removing_a_workspace_that_never_existed_is_no_error() {
    every_kind(|scene| {
        let before = files_under(&scene.root);
        let removed = remove(&scene.project, &name("7-never"), None, RemoveOptions::discarding()).unwrap();
        assert_eq!((removed.trash_ref, removed.branch, removed.directory), (None, None, None));
        assert_eq!(files_under(&scene.root), before);
    });
}

#[test]
fn a_directory_that_is_not_ours_is_never_touched() {
    every_versioned_kind(|scene| {
        let path = workspace_path(&scene.project, &name("1-fix"));
        write(&path.join("mine"), "x");
        create(&scene.project, &name("1-fix"), None).unwrap_err();
        remove(&scene.project, &name("1-fix"), None, RemoveOptions::discarding()).unwrap_err();
        assert_eq!(state(&scene.project, &name("1-fix"), None).unwrap().presence, Presence::NotOurs);
        assert_eq!(content(&path.join("mine")), "x");
    });
}

#[test]
fn the_project_is_found_again_from_inside_its_workspace() {
    every_kind(|scene| {
        fs::create_dir_all(scene.root.join(".agency/tasks")).unwrap();
        let made = create(&scene.project, &name("1-fix"), None).unwrap();
        fs::create_dir(made.path.join("src")).unwrap();
        let again = scene.sandbox.open(&made.path.join("src"));
        assert_eq!((again.root(), again.vcs()), (scene.project.root(), scene.project.vcs()));
    });
}

#[test]
fn agencys_own_files_are_neither_uncommitted_nor_untracked() {
    every_kind(|scene| {
        exclude_agency_dir(&scene.project).unwrap();
        create(&scene.project, &name("1-fix"), None).unwrap();
        assert!(dirty_checkout(&scene.project).unwrap().is_empty());
        if scene.project.vcs() == Vcs::Jj {
            assert_eq!(scene.sandbox.jj(&scene.root, &["diff", "--summary"]), "");
        }
    });
}

#[test]
fn a_project_without_its_directory_creates_no_workspace() {
    every_kind(|scene| {
        fs::remove_dir_all(&scene.root).unwrap();
        create(&scene.project, &name("1-fix"), None).unwrap_err();
        assert!(!scene.root.exists());
    });
}

#[test]
fn a_missing_base_is_named_with_similar_names() {
    every_versioned_kind(|scene| {
        let before = files_under(&scene.root);
        let err = create(&scene.project, &name("1-fix"), Some("mian")).unwrap_err();
        let named = if scene.project.vcs() == Vcs::Jj { "bookmark" } else { "branch" };
        let expected = format!(
            "Error: cannot create workspace 1-fix\n\
             Caused by: there is no {named}, tag or commit `mian`\n\
             Hint: did you mean main?"
        );
        assert_eq!(format_error(&err, err.hint()), expected);
        assert_eq!(files_under(&scene.root), before);
    });
}

#[test]
fn state_and_diff_show_work_before_and_after_it_is_committed() {
    every_versioned_kind(|scene| {
        let path = scene.make("1-fix");
        write(&path.join("readme"), "hello\nworld\n");
        write(&path.join("new dir/größe"), "x\n");
        assert_eq!(scene.uncommitted("1-fix"), ["new dir/größe", "readme"]);
        assert_eq!(scene.changed("1-fix"), ["new dir/größe", "readme"]);
        assert_eq!(scene.unmerged("1-fix"), 0);
        let seen = diff(&scene.project, &name("1-fix"), Some("main")).unwrap();
        assert_eq!((seen.additions(), seen.deletions()), (2, 0));
        let text = String::from_utf8(patch(&scene.project, &name("1-fix"), &seen).unwrap()).unwrap();
        assert!(text.contains("+world"), "{text}");
        commit_all(&scene.project, &name("1-fix"), "the work").unwrap().unwrap();
        assert_eq!(commit_all(&scene.project, &name("1-fix"), "again").unwrap(), None);
        assert_eq!((scene.uncommitted("1-fix"), scene.unmerged("1-fix")), (Vec::new(), 1));
        scene.commit("elsewhere", "in main");
        assert_eq!(scene.changed("1-fix"), ["new dir/größe", "readme"]);
        let state = state(&scene.project, &name("1-fix"), Some("main")).unwrap();
        assert_eq!(state.branch.as_deref(), Some("agency/1-fix"));
    });
}

#[test]
fn turns_are_distinguished_and_undone_with_their_commits() {
    every_versioned_kind(|scene| {
        let path = scene.make("1-fix");
        let take = |label: &str| snapshot(&scene.project, &name("1-fix"), label).unwrap();
        let start = take("start");
        write(&path.join("one"), "1");
        let first = take("turn 1");
        scene.commit_in("1-fix", "two", "2");
        fs::remove_file(path.join("one")).unwrap();
        write(&path.join("readme"), "spoilt\n");
        let second = take("turn 2");
        let changed = |from, to| {
            let diff = diff_between(&scene.project, &name("1-fix"), from, to).unwrap();
            diff.files.iter().map(|file| file.path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(changed(&start, &first), ["one"]);
        assert_eq!(changed(&first, &second), ["one", "readme", "two"]);
        let numbers: Vec<_> =
            snapshots(&scene.project, &name("1-fix")).unwrap().iter().map(|taken| taken.number).collect();
        assert_eq!(numbers, [1, 2, 3]);

        restore_snapshot(&scene.project, &name("1-fix"), &first).unwrap();
        assert_eq!(
            (content(&path.join("one")), content(&path.join("readme"))),
            ("1".into(), "hello\n".into())
        );
        assert_eq!(scene.changed("1-fix"), ["one"]);
        assert_eq!((scene.uncommitted("1-fix"), scene.unmerged("1-fix")), (vec!["one".into()], 0));

        restore(&scene.project, &trash_entries(&scene.project).unwrap()[0]).unwrap();
        assert_eq!(content(&path.join("readme")), "spoilt\n");
        assert_eq!(scene.changed("1-fix"), ["readme", "two"]);
    });
}

#[test]
fn a_workspace_with_work_is_not_removed_and_discarded_work_can_be_restored() {
    every_versioned_kind(|scene| {
        let path = scene.make("1-fix");
        write(&path.join(".gitignore"), "target\n");
        scene.commit_in("1-fix", "committed", "1");
        write(&path.join("readme"), "changed\n");
        write(&path.join("new dir/größe"), "x");
        write(&path.join("target/cache"), "ignored");
        // Larger than the files that jj tracks by default.
        fs::write(path.join("big"), vec![b'x'; 2_000_000]).unwrap();
        let err = remove(&scene.project, &name("1-fix"), Some("main"), RemoveOptions::default()).unwrap_err();
        let expected = "Error: cannot remove workspace 1-fix\n\
                        Caused by: 3 files in .agency/worktrees/1-fix are not committed, \
                        and 1 commit on agency/1-fix is not in main\n\
                        Hint: commit and merge them, or pass --discard";
        assert_eq!(format_error(&err, err.hint()), expected);
        let before = files_under(&path);
        let removal = RemoveOptions { discard: true, keep_ignored: true };
        let removed = remove(&scene.project, &name("1-fix"), Some("main"), removal).unwrap();
        assert!(!path.exists() && removed.trash_ref.is_some());
        assert_eq!(state(&scene.project, &name("1-fix"), None).unwrap().presence, Presence::Absent);

        restore(&scene.project, &trash_entries(&scene.project).unwrap()[0]).unwrap();
        assert_eq!(files_under(&path), before);
        assert_eq!(content(&path.join("readme")), "changed\n");
        assert_eq!(content(&path.join("target/cache")), "ignored");
        assert_eq!(content(&path.join("big")).len(), 2_000_000);
        assert_eq!(scene.uncommitted("1-fix"), ["big", "new dir/größe", "readme"]);
        assert_eq!(scene.unmerged("1-fix"), 1);
        assert!(trash_entries(&scene.project).unwrap().is_empty());
    });
}

#[test]
fn the_trash_is_emptied_only_when_asked() {
    every_versioned_kind(|scene| {
        let path = scene.make("1-fix");
        write(&path.join("work"), "1");
        snapshot(&scene.project, &name("1-fix"), "turn 1").unwrap();
        remove(&scene.project, &name("1-fix"), None, RemoveOptions::discarding()).unwrap();
        assert!(expire_trash(&scene.project, &[]).unwrap().is_empty());
        let kept = trash_entries(&scene.project).unwrap();
        assert_eq!(kept.len(), 1);
        assert_eq!(expire_trash(&scene.project, &kept).unwrap().len(), 2);
        assert!(trash_entries(&scene.project).unwrap().is_empty());
    });
}

#[test]
fn a_deleted_directory_is_noticed_and_restored_with_its_commits() {
    every_versioned_kind(|scene| {
        let path = scene.make("1-fix");
        scene.commit_in("1-fix", "work", "1");
        fs::remove_dir_all(&path).unwrap();
        assert!(is_gone(&scene.project, &name("1-fix")));
        assert_eq!(state(&scene.project, &name("1-fix"), None).unwrap().presence, Presence::DirectoryGone);
        assert_eq!(scene.changed("1-fix"), ["work"]);
        reattach(&scene.project, &name("1-fix")).unwrap();
        assert_eq!(content(&path.join("work")), "1");
        assert_eq!((scene.uncommitted("1-fix"), scene.unmerged("1-fix")), (Vec::new(), 1));
        assert!(!is_gone(&scene.project, &name("1-fix")));
    });
}

#[test]
fn a_sync_rebases_the_work_or_merges_the_base_into_it() {
    for how in [SyncMethod::Rebase, SyncMethod::Merge] {
        every_versioned_kind(|scene| {
            let path = scene.make("1-fix");
            scene.commit_in("1-fix", "own", "1");
            scene.commit("theirs", "1");
            let synced = sync(&scene.project, &name("1-fix"), Some("main"), how).unwrap();
            assert_eq!(synced.commits, 1);
            assert_eq!((content(&path.join("own")), content(&path.join("theirs"))), ("1".into(), "1".into()));
            assert_eq!(scene.changed("1-fix"), ["own"]);
            assert_eq!(scene.uncommitted("1-fix"), [""; 0]);
            assert_eq!(sync(&scene.project, &name("1-fix"), Some("main"), how).unwrap().commits, 0);
        });
    }
}

#[test]
fn a_sync_that_conflicts_changes_nothing() {
    for how in [SyncMethod::Rebase, SyncMethod::Merge] {
        every_versioned_kind(|scene| {
            let path = scene.make("1-fix");
            scene.commit_in("1-fix", "readme", "own\n");
            scene.commit("readme", "theirs\n");
            let before = scene.history();
            let err = sync(&scene.project, &name("1-fix"), Some("main"), how).unwrap_err();
            assert!(
                format_error(&err, None).ends_with("readme conflicts with main"),
                "{}",
                format_error(&err, None)
            );
            assert_eq!((scene.history(), content(&path.join("readme"))), (before, "own\n".into()));
        });
    }
}

#[test]
fn every_merge_method_brings_the_work_to_the_target_and_the_workspace_can_be_removed() {
    for how in [MergeMethod::Merge, MergeMethod::Squash, MergeMethod::Rebase, MergeMethod::FastForward] {
        every_versioned_kind(|scene| {
            scene.make("1-fix");
            scene.commit_in("1-fix", "own", "1");
            scene.commit_in("1-fix", "more", "2");
            if how != MergeMethod::FastForward {
                scene.commit("theirs", "3");
            }
            let request = MergeRequest {
                how,
                into: Some("main".into()),
                message: Some("the fix".into()),
                ..MergeRequest::default()
            };
            let merged = merge(&scene.project, &name("1-fix"), &request).unwrap();
            assert_ne!(merged.before, merged.after);
            assert_eq!([scene.on_main("own"), scene.on_main("more")], ["1", "2"]);
            if how != MergeMethod::FastForward {
                assert_eq!(scene.on_main("theirs"), "3");
            }
            assert_eq!(scene.unmerged("1-fix"), 0, "{how:?}");
            assert!(recover_integrations(&scene.project).unwrap().is_empty());
            let err = merge(&scene.project, &name("1-fix"), &request).unwrap_err();
            assert!(
                format_error(&err, None).ends_with("nothing to merge: it has no changes against main"),
                "{how:?} {}",
                format_error(&err, None)
            );
            remove(&scene.project, &name("1-fix"), Some("main"), RemoveOptions::default()).unwrap();
        });
    }
}

#[test]
fn a_merge_that_conflicts_or_is_not_finished_changes_nothing() {
    every_versioned_kind(|scene| {
        let path = scene.make("1-fix");
        let refused = |how| {
            let before = scene.history();
            let request = MergeRequest { how, into: Some("main".into()), ..MergeRequest::default() };
            let err = merge(&scene.project, &name("1-fix"), &request).unwrap_err();
            assert_eq!(scene.history(), before);
            format_error(&err, None)
        };
        write(&path.join("readme"), "own\n");
        state(&scene.project, &name("1-fix"), None).unwrap();
        assert!(refused(MergeMethod::Merge).ends_with("1 file in .agency/worktrees/1-fix is not committed"));
        commit_all(&scene.project, &name("1-fix"), "work").unwrap().unwrap();
        scene.commit("readme", "theirs\n");
        for how in [MergeMethod::Merge, MergeMethod::Squash, MergeMethod::Rebase] {
            assert!(refused(how).ends_with("readme conflicts with main"), "{how:?}");
        }
        assert!(
            refused(MergeMethod::FastForward)
                .ends_with("main has 1 commits that the workspace does not have")
        );
        let nowhere = MergeRequest { into: Some("nowhere".into()), ..MergeRequest::default() };
        let err = merge(&scene.project, &name("1-fix"), &nowhere).unwrap_err();
        let named = if scene.project.vcs() == Vcs::Jj { "bookmark" } else { "local branch" };
        assert!(format_error(&err, None).contains(&format!("there is no {named} `nowhere`")));
    });
}

#[test]
fn conflicts_between_workspaces_are_found() {
    every_versioned_kind(|scene| {
        let (one, two) = (scene.make("1-a"), scene.make("2-b"));
        write(&one.join("readme"), "one\n");
        scene.commit_in("2-b", "readme", "two\n");
        write(&two.join("other"), "x");
        let mut scanner = ConflictScanner::default();
        let both = [(name("1-a"), Some("main".to_owned())), (name("2-b"), Some("main".to_owned()))];
        let found = scanner.scan(&scene.project, &both).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (&found[0].workspace, &found[0].with),
            (&name("1-a"), &ConflictWith::Workspace(name("2-b")))
        );
        assert_eq!(found[0].files, [Path::new("readme")]);
        let merges = scanner.merge_count();
        scanner.scan(&scene.project, &both).unwrap();
        assert_eq!(scanner.merge_count(), merges);
        scene.commit("readme", "theirs\n");
        assert_eq!(scanner.scan(&scene.project, &both).unwrap().len(), 3);
    });
}

#[test]
fn a_plain_directory_explains_that_it_has_no_version_control() {
    let scene = plain();
    let (project, fix) = (&scene.project, name("1-fix"));
    let err = |err: OperationError| format_error(&err, err.hint());
    let all = [
        err(diff(project, &fix, None).unwrap_err()),
        err(snapshot(project, &fix, "turn").unwrap_err()),
        err(commit_all(project, &fix, "work").unwrap_err()),
        err(sync(project, &fix, None, SyncMethod::Rebase).unwrap_err()),
        err(merge(project, &fix, &MergeRequest::default()).unwrap_err()),
    ];
    for said in all {
        assert!(said.contains("is a plain directory without version control"), "{said}");
    }
    assert!(trash_entries(project).unwrap().is_empty() && snapshots(project, &fix).unwrap().is_empty());
    assert!(
        expire_trash(project, &[]).unwrap().is_empty() && recover_integrations(project).unwrap().is_empty()
    );
    assert!(ConflictScanner::default().scan(project, &[(fix, None)]).unwrap().is_empty());
}

#[test]
fn an_undone_workspace_leaves_no_snapshot_to_the_next_task_of_its_number() {
    every_versioned_kind(|scene| {
        let made = create(&scene.project, &name("1-fix"), None).unwrap();
        snapshot_before_first_turn(&scene.project, &name("1-fix"), "before the first turn").unwrap();
        undo_create(&scene.project, &made).unwrap();
        assert_eq!(snapshots(&scene.project, &name("1-other")).unwrap(), Vec::new());
    });
}
