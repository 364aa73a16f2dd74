//! Stories that exist only with jj: the user's own change, stale workspaces, operations, and machines without
//! jj.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use agency_workspace::{
    ConflictScanner, MergeMethod, MergeOutcome, MergeRequest, Presence, Project, RemoveOptions, SyncMethod,
    TrashReason, Vcs, base_where_user_is, check_create, check_merge, check_remove, commit_all, create, diff,
    exclude_agency_dir, is_merged, merge, reattach, recover_integrations, remove, restore, state, sync,
    trash_entries, workspace_path,
};

use crate::sandbox::{Sandbox, format_error, name, project_to_be_killed_in, taken_back, write};

struct Scene {
    sandbox: Sandbox,
    root: PathBuf,
    project: Project,
}

fn scene() -> Scene {
    let sandbox = Sandbox::new();
    let root = sandbox.jj_repository("mit Größe", true);
    let project = sandbox.open(&root);
    exclude_agency_dir(&project).unwrap();
    Scene { sandbox, root, project }
}

impl Scene {
    fn jj(&self, args: &[&str]) -> String {
        self.sandbox.jj(&self.root, args)
    }

    /// Returns the user's working-copy change, its parents and its files.
    fn own_change(&self) -> String {
        let at = [
            "log",
            "--no-graph",
            "-r",
            "@",
            "-T",
            "change_id ++ ' ' ++ commit_id ++ ' ' ++ parents.map(|p| p.commit_id())",
        ];
        format!("{}\n{}", self.jj(&at), self.jj(&["diff", "--git"]))
    }
}

fn into_main(how: MergeMethod) -> MergeRequest {
    MergeRequest {
        how,
        into: Some("main".into()),
        message: Some("the fix".into()),
        ..MergeRequest::default()
    }
}

#[test]
fn the_users_own_change_is_never_moved() {
    let scene = scene();
    write(&scene.root.join("mine"), "work of the user\n");
    let before = scene.own_change();
    for how in [MergeMethod::Merge, MergeMethod::Squash, MergeMethod::Rebase] {
        let made = create(&scene.project, &name("1-fix"), Some("main")).unwrap();
        write(&made.path.join(format!("{how:?}")), "1\n");
        commit_all(&scene.project, &name("1-fix"), "work").unwrap().unwrap();
        diff(&scene.project, &name("1-fix"), Some("main")).unwrap();
        merge(&scene.project, &name("1-fix"), &into_main(how)).unwrap();
        sync(&scene.project, &name("1-fix"), Some("main"), SyncMethod::Rebase).unwrap();
        remove(&scene.project, &name("1-fix"), Some("main"), RemoveOptions::discarding()).unwrap();
        assert_eq!(scene.own_change(), before, "{how:?}");
    }
    assert_eq!(fs::read_to_string(scene.root.join("mine")).unwrap(), "work of the user\n");
}

#[test]
fn a_workspace_starts_on_the_users_change_or_on_its_parent_while_that_is_empty() {
    let scene = scene();
    let below = create(&scene.project, &name("1-below"), None).unwrap();
    let base = below.base.unwrap();
    assert_eq!(base.name, "main");
    assert_eq!(base.commit, scene.jj(&["log", "--no-graph", "-r", "main", "-T", "commit_id"]));
    // Written just now: no jj command has seen it yet.
    write(&scene.root.join("mine"), "in progress\n");
    let on = create(&scene.project, &name("2-on"), None).unwrap();
    assert_eq!(fs::read_to_string(on.path.join("mine")).unwrap(), "in progress\n");
    assert_eq!(
        on.base.as_ref().unwrap().commit,
        scene.jj(&["log", "--no-graph", "-r", "@", "-T", "commit_id"])
    );
    // A caller that finds the base first and creates the workspace by that name gets the same base.
    let base = check_create(&scene.project, &name("3-found"), None).unwrap().unwrap().name;
    assert_eq!(on.base.unwrap().name, base);
    let found = create(&scene.project, &name("3-found"), Some(&base)).unwrap();
    assert_eq!(fs::read_to_string(found.path.join("mine")).unwrap(), "in progress\n");
    for base in ["main", &base] {
        let state = state(&scene.project, &name("2-on"), Some(base)).unwrap();
        assert_eq!((state.uncommitted.len(), state.unmerged_commits), (0, 0));
    }
}

#[test]
fn further_work_of_the_user_is_not_work_of_the_task_on_top_of_it() {
    let scene = scene();
    let path = on_the_users_change(&scene);
    let base = check_create(&scene.project, &name("2-next"), None).unwrap().unwrap().name;
    let seen = || {
        let seen = diff(&scene.project, &name("1-fix"), Some(&base)).unwrap();
        seen.files.into_iter().map(|file| file.path).collect::<Vec<_>>()
    };
    assert_eq!(seen(), [PathBuf::from("own")]);
    write(&scene.root.join("mine"), "further\n");
    scene.jj(&["describe", "-m", "mine"]);
    assert_eq!(seen(), [PathBuf::from("own")]);
    // Squash moves the change into its parent, and the change disappears.
    scene.jj(&["squash", "-m", "first, and mine"]);
    assert_eq!(seen(), [PathBuf::from("own")]);
    assert_eq!(fs::read_to_string(path.join("mine")).unwrap(), "further\n");
    commit_all(&scene.project, &name("1-fix"), "the work").unwrap().unwrap();
    let err = remove(&scene.project, &name("1-fix"), Some(&base), RemoveOptions::default()).unwrap_err();
    assert!(format_error(&err, None).contains("1 commit on agency/1-fix is in no other bookmark"));
    merge(&scene.project, &name("1-fix"), &into_main(MergeMethod::Merge)).unwrap();
    remove(&scene.project, &name("1-fix"), Some(&base), RemoveOptions::default()).unwrap();
}

/// A task on top of the user's working copy.
fn on_the_users_change(scene: &Scene) -> PathBuf {
    write(&scene.root.join("mine"), "in progress\n");
    let path = create(&scene.project, &name("1-fix"), None).unwrap().path;
    write(&path.join("own"), "1\n");
    path
}

#[test]
fn files_that_jj_has_not_seen_stay_when_their_base_is_rewritten() {
    let scene = scene();
    let path = on_the_users_change(&scene);
    let files =
        || fs::read_to_string(path.join("own")).unwrap() + &fs::read_to_string(path.join("mine")).unwrap();
    for further in ["further\n", "and further\n"] {
        write(&path.join("own"), further);
        write(&scene.root.join("mine"), further);
        scene.jj(&["status"]);
        let log = scene.jj(&["op", "log", "--no-graph", "--ignore-working-copy", "-T", "id"]);
        let workspaces = [(name("1-fix"), Some("main".to_owned()))];
        ConflictScanner::default().scan(&scene.project, &workspaces).unwrap();
        assert_eq!(fs::read_to_string(path.join("own")).unwrap(), further, "a look changes no file");
        assert_eq!(scene.jj(&["op", "log", "--no-graph", "--ignore-working-copy", "-T", "id"]), log);
        diff(&scene.project, &name("1-fix"), None).unwrap();
        assert_eq!(files(), further.repeat(2), "up to date, with all that was there");
        assert_eq!(scene.jj(&["log", "--no-graph", "-r", "all()", "-T", "if(divergent, 'x')"]), "");
    }
    assert!(remove(&scene.project, &name("1-fix"), Some("main"), RemoveOptions::default()).is_err());
}

#[test]
fn files_stay_when_the_operation_that_snapshotted_them_is_undone() {
    let scene = scene();
    let path = on_the_users_change(&scene);
    diff(&scene.project, &name("1-fix"), None).unwrap();
    let before = scene.jj(&["op", "log", "--no-graph", "-n1", "-T", "id"]);
    write(&path.join("own"), "1\n2\n");
    diff(&scene.project, &name("1-fix"), None).unwrap();
    scene.jj(&["op", "restore", &before]);
    let seen = diff(&scene.project, &name("1-fix"), None).unwrap();
    assert!(seen.files.iter().any(|file| file.path == Path::new("own")), "{seen:?}");
    assert_eq!(fs::read_to_string(path.join("own")).unwrap(), "1\n2\n");
}

#[test]
fn conflicts_of_the_work_itself_are_shown_as_they_are_and_not_merged() {
    let scene = scene();
    let path = create(&scene.project, &name("1-fix"), Some("main")).unwrap().path;
    write(&path.join("readme"), "mine\n");
    commit_all(&scene.project, &name("1-fix"), "the work").unwrap().unwrap();
    write(&scene.root.join("readme"), "theirs\n");
    scene.jj(&["commit", "-m", "theirs"]);
    scene.jj(&["bookmark", "set", "main", "-r", "@-"]);
    scene.sandbox.jj(&path, &["rebase", "-s", "roots(main..@ ~ ::default@)", "-d", "main"]);
    let own = scene.own_change();
    let seen = diff(&scene.project, &name("1-fix"), Some("main")).unwrap();
    assert_eq!(seen.files.iter().map(|file| &file.path).collect::<Vec<_>>(), [&PathBuf::from("readme")]);
    let err = merge(&scene.project, &name("1-fix"), &into_main(MergeMethod::Merge)).unwrap_err();
    let said = format_error(&err, err.hint());
    assert!(said.contains("unresolved conflicts: readme") && said.contains("`jj resolve`"), "{said}");
    assert_eq!(scene.own_change(), own);
}

#[test]
fn the_only_bookmark_is_the_target_even_if_it_is_not_below_the_users_change() {
    let scene = scene();
    scene.jj(&["bookmark", "rename", "main", "trunk"]);
    for (task, file) in [("1-fix", "one"), ("2-next", "two")] {
        let path = create(&scene.project, &name(task), None).unwrap().path;
        write(&path.join(file), "1\n");
        commit_all(&scene.project, &name(task), "the work").unwrap().unwrap();
    }
    for task in ["1-fix", "2-next"] {
        let merged = merge(&scene.project, &name(task), &MergeRequest::default()).unwrap();
        assert_eq!(merged.into, "trunk");
        assert!(merged.notes.iter().any(|note| note.contains("jj op restore")), "{:?}", merged.notes);
    }
    assert_eq!(scene.jj(&["file", "list", "-r", "trunk"]), "one\nreadme\ntwo");
}

/// Everything that a merge could change.
fn all_of_it(scene: &Scene) -> String {
    let all = scene.jj(&["log", "--no-graph", "-r", "all()", "-T", "commit_id ++ bookmarks ++ '\\n'"]);
    format!("{all}\n{}", scene.own_change())
}

#[test]
fn the_users_own_change_is_not_merged_with_a_task_on_top_of_it() {
    let scene = scene();
    on_the_users_change(&scene);
    commit_all(&scene.project, &name("1-fix"), "the work").unwrap().unwrap();
    let before = all_of_it(&scene);
    for how in [MergeMethod::Merge, MergeMethod::Squash, MergeMethod::FastForward] {
        let err = merge(&scene.project, &name("1-fix"), &into_main(how)).unwrap_err();
        let said = format_error(&err, err.hint());
        assert!(said.contains("main would also get") && said.contains("your own working copy @"), "{said}");
        assert!(said.contains("`jj commit`") && said.contains("agency merge 1-fix --rebase"), "{said}");
        assert_eq!(all_of_it(&scene), before, "{how:?}");
    }
    let own = scene.own_change();
    merge(&scene.project, &name("1-fix"), &into_main(MergeMethod::Rebase)).unwrap();
    assert_eq!(scene.own_change(), own);
    assert_eq!(scene.jj(&["file", "list", "-r", "main"]), "own\nreadme");
    assert_eq!(state(&scene.project, &name("1-fix"), Some("main")).unwrap().unmerged_commits, 0);
}

#[test]
fn finished_commits_of_the_user_below_a_task_are_merged_with_it() {
    let scene = scene();
    on_the_users_change(&scene);
    commit_all(&scene.project, &name("1-fix"), "the work").unwrap().unwrap();
    scene.jj(&["commit", "-m", "mine is done"]);
    let own = scene.own_change();
    merge(&scene.project, &name("1-fix"), &into_main(MergeMethod::Merge)).unwrap();
    assert_eq!(scene.own_change(), own);
    assert_eq!(scene.jj(&["file", "list", "-r", "main"]), "mine\nown\nreadme");
}

#[test]
fn commits_without_a_description_are_named_and_a_squash_takes_them() {
    let scene = scene();
    let path = create(&scene.project, &name("1-fix"), Some("main")).unwrap().path;
    write(&path.join("own"), "1\n");
    scene.sandbox.jj(&path, &["new"]);
    write(&path.join("more"), "2\n");
    commit_all(&scene.project, &name("1-fix"), "the work").unwrap().unwrap();
    let err = merge(&scene.project, &name("1-fix"), &into_main(MergeMethod::Merge)).unwrap_err();
    let said = format_error(&err, err.hint());
    assert!(said.contains("which has no description") && said.contains("`jj describe -r "), "{said}");
    merge(&scene.project, &name("1-fix"), &into_main(MergeMethod::Squash)).unwrap();
    assert_eq!(scene.jj(&["file", "list", "-r", "main"]), "more\nown\nreadme");
}

#[test]
fn a_change_of_the_user_on_top_of_the_work_does_not_block_a_merge() {
    let scene = scene();
    let path = create(&scene.project, &name("1-fix"), Some("main")).unwrap().path;
    write(&path.join("own"), "1\n");
    commit_all(&scene.project, &name("1-fix"), "the work").unwrap().unwrap();
    scene.jj(&["new", "agency/1-fix"]);
    write(&scene.root.join("tried"), "out\n");
    let own = scene.own_change();
    merge(&scene.project, &name("1-fix"), &into_main(MergeMethod::Rebase)).unwrap();
    assert_eq!(scene.own_change(), own);
    assert_eq!(scene.jj(&["file", "list", "-r", "main"]), "own\nreadme");
}

#[test]
fn a_refusal_is_known_before_anything_is_committed() {
    let scene = scene();
    let path = on_the_users_change(&scene);
    state(&scene.project, &name("1-fix"), None).unwrap();
    let before = all_of_it(&scene);
    let err = check_merge(&scene.project, &name("1-fix"), &into_main(MergeMethod::Merge)).unwrap_err();
    assert!(format_error(&err, err.hint()).contains("your own working copy @"));
    let elsewhere = MergeRequest { into: Some("nowhere".into()), ..into_main(MergeMethod::Rebase) };
    let err = check_merge(&scene.project, &name("1-fix"), &elsewhere).unwrap_err();
    assert!(format_error(&err, err.hint()).contains("`nowhere`"));
    check_merge(&scene.project, &name("1-fix"), &into_main(MergeMethod::Rebase)).unwrap();
    assert_eq!(all_of_it(&scene), before);
    write(&path.join("readme"), "theirs\n");
    let theirs = scene.sandbox.path().join("theirs");
    scene.jj(&["workspace", "add", "-r", "main", theirs.to_str().unwrap()]);
    scene.sandbox.jj_commit(&theirs, "readme", "ours\n");
    state(&scene.project, &name("1-fix"), None).unwrap();
    let before = all_of_it(&scene);
    let err = check_merge(&scene.project, &name("1-fix"), &into_main(MergeMethod::Rebase)).unwrap_err();
    assert!(format_error(&err, err.hint()).contains("readme conflicts with main"));
    assert_eq!(all_of_it(&scene), before);
}

#[test]
fn a_repository_without_a_commit_asks_for_one() {
    let sandbox = Sandbox::new();
    let root = sandbox.path().join("new");
    fs::create_dir(&root).unwrap();
    sandbox.jj(&root, &["git", "init", "--colocate"]);
    let err = check_create(&sandbox.open(&root), &name("1-fix"), None).unwrap_err();
    assert!(format_error(&err, err.hint()).contains("the repository has no commit yet"));
}

#[test]
fn a_workspace_whose_commit_was_rewritten_elsewhere_is_brought_up_to_date() {
    let scene = scene();
    write(&scene.root.join("mine"), "1\n");
    let path = create(&scene.project, &name("1-fix"), None).unwrap().path;
    write(&path.join("own"), "1\n");
    state(&scene.project, &name("1-fix"), None).unwrap();
    // The workspace is on top of the user's change, which continues.
    write(&scene.root.join("mine"), "2\n");
    scene.jj(&["describe", "-m", "mine"]);
    let seen = state(&scene.project, &name("1-fix"), None).unwrap();
    assert_eq!((seen.presence, seen.uncommitted), (Presence::Ready, vec![PathBuf::from("own")]));
    assert_eq!(fs::read_to_string(path.join("mine")).unwrap(), "2\n");
}

#[test]
fn a_workspace_without_git_is_a_warning_and_a_git_worktree_is_possible() {
    let scene = scene();
    let made = create(&scene.project, &name("1-fix"), None).unwrap();
    let told = made.warnings.join("\n");
    assert_eq!(made.path.join(".git").exists(), !told.contains("without `.git`"), "{told}");
    // The warning appears only once.
    assert_eq!(create(&scene.project, &name("3-next"), None).unwrap().warnings, [""; 0]);
    let environment = scene.sandbox.environment();
    let project = Project::open_with(&scene.root, Some(Vcs::Git), environment.clone()).unwrap();
    let made = create(&project, &name("2-git"), Some("main")).unwrap();
    assert!(made.path.join(".git").exists());
    // From inside the workspace, the project is still the same one.
    let again = Project::open_with(&made.path, None, environment.clone()).unwrap();
    assert_eq!((again.root(), again.vcs()), (scene.root.as_path(), Vcs::Jj));
    let again = Project::open_with(&made.path, Some(Vcs::Jj), environment).unwrap();
    assert_eq!(again.root(), scene.root);
}

#[test]
fn without_jj_a_colocated_repository_has_git_worktrees_and_a_pure_one_gives_a_hint() {
    let sandbox = Sandbox::new();
    let both = sandbox.jj_repository("both", true);
    let alone = sandbox.jj_repository("alone", false);
    let bin = sandbox.path().join("bin");
    fs::create_dir(&bin).unwrap();
    for program in ["git", "sh"] {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
        symlink(String::from_utf8(found.stdout).unwrap().trim(), bin.join(program)).unwrap();
    }
    let sandbox = sandbox.with("PATH", bin);
    let project = sandbox.open(&both);
    assert_eq!(project.vcs(), Vcs::Git);
    let made = create(&project, &name("1-fix"), Some("main")).unwrap();
    assert!(made.path.join(".git").exists());
    assert_eq!(made.warnings, ["jj is not installed, or not in the PATH: this workspace is a git worktree"]);
    let err = sandbox.try_open(&alone).unwrap_err();
    let said = format_error(&err, err.hint());
    assert!(
        said.contains("is a jj repository, and jj is not installed") && said.contains("--vcs none"),
        "{said}"
    );
}

#[test]
fn a_requested_kind_must_exist() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("git");
    let err = Project::open_with(&root, Some(Vcs::Jj), sandbox.environment()).unwrap_err();
    assert!(format_error(&err, err.hint()).contains("is not in a jj repository"));
    let nested = sandbox.jj_repository("git/inner", true);
    assert_eq!(sandbox.open(&nested).root(), nested);
    let inner_git = nested.join("vendor");
    fs::create_dir(&inner_git).unwrap();
    sandbox.git(&inner_git, &["init", "--quiet"]);
    assert_eq!(
        (sandbox.open(&inner_git).root(), sandbox.open(&inner_git).vcs()),
        (inner_git.as_path(), Vcs::Git)
    );
}

#[test]
fn merged_commits_stay_when_their_workspace_is_removed() {
    let scene = scene();
    let path = create(&scene.project, &name("1-fix"), Some("main")).unwrap().path;
    write(&path.join("own"), "1\n");
    commit_all(&scene.project, &name("1-fix"), "the work").unwrap().unwrap();
    let merged = merge(&scene.project, &name("1-fix"), &into_main(MergeMethod::FastForward)).unwrap();
    let others = || scene.jj(&["bookmark", "list", "main", "-T", "name ++ ' ' ++ normal_target.commit_id()"]);
    let before = others();
    assert_eq!(before, format!("main {}", merged.after));
    remove(&scene.project, &name("1-fix"), Some("main"), RemoveOptions::default()).unwrap();
    assert_eq!(others(), before);
    assert_eq!(scene.jj(&["file", "show", "-r", "main", "own"]), "1");
    restore(&scene.project, &trash_entries(&scene.project).unwrap().remove(0)).unwrap();
    assert_eq!(others(), before);
    assert!(scene.jj(&["bookmark", "list", "-T", "name ++ '\\n'"]).contains("agency/1-fix"));
}

#[test]
fn a_removal_leaves_commits_that_other_names_refer_to() {
    let scene = scene();
    let path = create(&scene.project, &name("1-fix"), Some("main")).unwrap().path;
    write(&path.join("own"), "1\n");
    let work = commit_all(&scene.project, &name("1-fix"), "the work").unwrap().unwrap();
    // A bookmark on the same commit, another task on top of it, and a commit of the user without a name.
    scene.jj(&["bookmark", "create", "kept", "-r", &work]);
    let second = create(&scene.project, &name("2-next"), Some("kept")).unwrap().path;
    write(&second.join("more"), "2\n");
    commit_all(&scene.project, &name("2-next"), "more").unwrap().unwrap();
    scene.jj(&["new", "--no-edit", "-m", "a note", "agency/2-next"]);
    let log = || {
        let named = "description(regex:'the work|more|a note')";
        scene.jj(&["log", "--no-graph", "-r", named, "-T", "commit_id ++ '\\n'"])
    };
    let before = log();
    assert_eq!(before.matches(r"\n").count(), 3);
    remove(&scene.project, &name("1-fix"), Some("main"), RemoveOptions::discarding()).unwrap();
    remove(&scene.project, &name("2-next"), Some("main"), RemoveOptions::discarding()).unwrap();
    assert_eq!(log(), before);
    assert!(scene.jj(&["bookmark", "list", "-T", "name ++ '\\n'"]).contains("kept"));
}

#[test]
fn a_squash_leaves_no_other_commit_behind() {
    let scene = scene();
    let path = create(&scene.project, &name("1-fix"), Some("main")).unwrap().path;
    write(&path.join("own"), "1\n");
    commit_all(&scene.project, &name("1-fix"), "the work").unwrap().unwrap();
    let base = Some("main".into());
    let title = Some("fix the login".into());
    let request = MergeRequest { how: MergeMethod::Squash, base, title, ..MergeRequest::default() };
    assert_eq!(merge(&scene.project, &name("1-fix"), &request).unwrap().into, "main");
    assert_eq!(scene.jj(&["log", "--no-graph", "-r", "merges()", "-T", "commit_id"]), "");
    let said = scene.jj(&["log", "--no-graph", "-r", "main", "-T", "description"]);
    assert_eq!(said, "fix the login\n\nSquashed from agency/1-fix:\n\n* the work");
    assert_eq!(scene.jj(&["file", "show", "-r", "main", "own"]), "1");
}

#[test]
fn a_removal_can_also_be_undone_by_an_operation_of_jj() {
    let scene = scene();
    let path = create(&scene.project, &name("1-fix"), Some("main")).unwrap().path;
    write(&path.join("own"), "1\n");
    commit_all(&scene.project, &name("1-fix"), "the work").unwrap().unwrap();
    remove(&scene.project, &name("1-fix"), Some("main"), RemoveOptions::discarding()).unwrap();
    assert!(!scene.jj(&["log", "--no-graph", "-r", "all()", "-T", "description"]).contains("the work"));
    let entry = trash_entries(&scene.project).unwrap().remove(0);
    let said = scene.sandbox.git(&scene.root, &["log", "-1", "--format=%B", &entry.reference]);
    let operation = said.lines().find_map(|line| line.strip_prefix("Agency-Operation: ")).unwrap();
    scene.jj(&["op", "restore", operation]);
    assert!(scene.jj(&["log", "--no-graph", "-r", "all()", "-T", "description"]).contains("the work"));
    // jj knows the name again, and its directory is gone: the trash restores that too.
    restore(&scene.project, &entry).unwrap();
    assert_eq!(fs::read_to_string(path.join("own")).unwrap(), "1\n");
}

#[test]
fn many_workspaces_are_made_at_once() {
    let scene = scene();
    let names: Vec<_> = (1..=4).map(|id| name(&format!("{id}-many"))).collect();
    std::thread::scope(|scope| {
        for one in &names {
            scope.spawn(|| create(&scene.project, one, Some("main")).unwrap());
        }
    });
    for one in &names {
        let state = state(&scene.project, one, Some("main")).unwrap();
        assert_eq!((state.presence, state.uncommitted.len()), (Presence::Ready, 0));
        assert_eq!(fs::read_to_string(state.path.join("readme")).unwrap(), "hello\n");
    }
}

#[test]
fn a_merge_that_is_killed_anywhere_leaves_the_bookmark_as_before_or_merged() {
    if let Some(project) = project_to_be_killed_in() {
        merge(&project, &name("1-fix"), &into_main(MergeMethod::Squash)).unwrap();
        return;
    }
    let (mut scene, mut outcomes) = (diverged(), Vec::new());
    for call in 1.. {
        let (is_through, is_merged) = killed_after(&scene, call);
        outcomes.push(is_merged);
        if is_through {
            break;
        }
        if is_merged {
            scene = diverged();
        }
    }
    assert!(outcomes.iter().filter(|is_merged| !**is_merged).count() > 8, "{outcomes:?}");
    // Killed after the operation is in the log, after git has it, and not at all.
    assert!(outcomes.iter().filter(|is_merged| **is_merged).count() > 2, "{outcomes:?}");
}

/// A workspace with work to merge, and a base with new commits.
fn diverged() -> Scene {
    let scene = scene();
    let path = create(&scene.project, &name("1-fix"), Some("main")).unwrap().path;
    write(&path.join("own"), "1\n");
    commit_all(&scene.project, &name("1-fix"), "the work").unwrap().unwrap();
    scene.sandbox.jj_commit(&scene.root, "theirs", "2\n");
    scene
}

/// Returns whether the merge ended before that call of jj, and whether the bookmark has it.
fn killed_after(scene: &Scene, call: u32) -> (bool, bool) {
    let log = || scene.jj(&["log", "--no-graph", "-r", "all()", "-T", "commit_id ++ bookmarks ++ '\\n'"]);
    let before = log();
    scene.sandbox.kill_caller_after("jj", call);
    let story = "jj::a_merge_that_is_killed_anywhere_leaves_the_bookmark_as_before_or_merged";
    let is_through = scene.sandbox.run_in_child(story, &scene.root);
    let recovered = recover_integrations(&scene.project).unwrap();
    let has_it = scene.jj(&["log", "--no-graph", "-r", "main", "-T", "description"]) == "the fix";
    assert_eq!(is_merged(&scene.project, &name("1-fix")).unwrap(), has_it, "killed after call {call}");
    assert_eq!(scene.sandbox.git(&scene.root, &["for-each-ref", "refs/agency/merging"]), "");
    if has_it {
        assert_eq!(scene.jj(&["file", "show", "-r", "main", "own", "theirs"]), "1\n2");
        assert_eq!(scene.sandbox.git(&scene.root, &["show", "main:own"]), "1", "killed after call {call}");
        assert!(is_through || recovered[0].outcome == MergeOutcome::Merged, "killed after call {call}");
    } else {
        assert!(!is_through && log() == before, "killed after call {call}: {}", log());
    }
    (is_through, has_it)
}

#[test]
fn a_merge_whose_last_step_fails_is_merged() {
    let scene = diverged();
    let once = scene.sandbox.path().join("once");
    let fails_once = format!(
        r#"case " $* " in *" git export "*) [ -e '{0}' ] || {{ touch '{0}'; echo no >&2; exit 1; }}; esac
exec "$real" "$@""#,
        once.display()
    );
    scene.sandbox.wrap_program("jj", &fails_once);
    let project = scene.sandbox.open_with_bin(&scene.root);
    assert_eq!(merge(&project, &name("1-fix"), &into_main(MergeMethod::Merge)).unwrap().into, "main");
    assert!(once.exists() && is_merged(&project, &name("1-fix")).unwrap());
    assert_eq!(scene.sandbox.git(&scene.root, &["show", "main:own"]), "1");
}

#[test]
fn a_merge_recovers_an_earlier_one_that_was_interrupted() {
    let scene = diverged();
    let second = create(&scene.project, &name("2-next"), Some("main")).unwrap().path;
    let fails = r#"case " $* " in *" git export "*) echo no >&2; exit 1; esac; exec "$real" "$@""#;
    scene.sandbox.wrap_program("jj", fails);
    let project = scene.sandbox.open_with_bin(&scene.root);
    let err = merge(&project, &name("1-fix"), &into_main(MergeMethod::Merge)).unwrap_err();
    assert!(format_error(&err, err.hint()).contains("cannot tell whether main has the merge"));
    write(&second.join("more"), "2\n");
    commit_all(&scene.project, &name("2-next"), "more").unwrap().unwrap();
    merge(&scene.project, &name("2-next"), &into_main(MergeMethod::Merge)).unwrap();
    assert!(is_merged(&scene.project, &name("1-fix")).unwrap());
    assert_eq!(recover_integrations(&scene.project).unwrap(), Vec::new());
}

/// Makes `jj workspace add` fail from now on, after running `first` with the path in `$path`.
fn without_workspaces(scene: &Scene, first: &str) -> Project {
    let script = format!(
        r#"case " $* " in *" workspace add "*) for path in "$@"; do :; done; {first}; echo no >&2; exit 1; esac
exec "$real" "$@""#
    );
    scene.sandbox.wrap_program("jj", &script);
    scene.sandbox.open_with_bin(&scene.root)
}

#[test]
fn work_without_its_directory_is_saved_until_it_is_restored() {
    let scene = scene();
    let path = create(&scene.project, &name("1-fix"), Some("main")).unwrap().path;
    write(&path.join("own"), "1\n");
    scene.sandbox.jj(&path, &["describe", "-m", "half of it"]);
    fs::remove_dir_all(&path).unwrap();
    reattach(&without_workspaces(&scene, "true"), &name("1-fix")).unwrap_err();
    let entry = trash_entries(&scene.project).unwrap().remove(0);
    assert_eq!(entry.reason, TrashReason::Loose);
    restore(&scene.project, &entry).unwrap();
    assert_eq!(fs::read_to_string(path.join("own")).unwrap(), "1\n");

    fs::remove_dir_all(&path).unwrap();
    reattach(&scene.project, &name("1-fix")).unwrap();
    assert_eq!(fs::read_to_string(path.join("own")).unwrap(), "1\n");
    assert_eq!(trash_entries(&scene.project).unwrap(), Vec::new());
}

#[test]
fn files_that_appear_where_a_workspace_is_being_created_stay() {
    let scene = scene();
    let project = without_workspaces(&scene, r#"mkdir "$path"; echo mine >"$path/file""#);
    create(&project, &name("1-fix"), Some("main")).unwrap_err();
    let file = scene.root.join(".agency/worktrees/1-fix/file");
    assert_eq!(fs::read_to_string(file).unwrap(), "mine\n");
    let project = without_workspaces(&scene, r#"mkdir "$path""#);
    create(&project, &name("2-next"), Some("main")).unwrap_err();
    assert!(!scene.root.join(".agency/worktrees/2-next").exists());
}

#[test]
fn a_bookmark_that_the_user_made_meanwhile_is_not_moved_by_a_restore() {
    let scene = diverged();
    remove(&scene.project, &name("1-fix"), Some("main"), RemoveOptions::discarding()).unwrap();
    scene.jj(&["bookmark", "create", "agency/1-fix", "-r", "main"]);
    let entry = trash_entries(&scene.project).unwrap().remove(0);
    let seen = || scene.jj(&["log", "--no-graph", "-r", "all()", "-T", "commit_id ++ bookmarks ++ '\\n'"]);
    let before = seen();
    let err = restore(&scene.project, &entry).unwrap_err();
    let told = format_error(&err, err.hint());
    assert!(told.contains("the branch agency/1-fix exists already, with other commits"), "{told}");
    assert_eq!(seen(), before);
    assert!(!scene.root.join(".agency/worktrees/1-fix").exists());
    scene.jj(&["bookmark", "delete", "agency/1-fix"]);
    let path = restore(&scene.project, &entry).unwrap().path;
    assert_eq!(fs::read_to_string(path.join("own")).unwrap(), "1\n");
}

#[test]
fn a_refused_removal_is_known_beforehand() {
    let scene = scene();
    let refused = |task: &str| {
        let removal = RemoveOptions::discarding();
        let err = check_remove(&scene.project, &name(task), Some("main"), removal).unwrap_err();
        let removed = remove(&scene.project, &name(task), Some("main"), removal).unwrap_err();
        assert_eq!(format_error(&err, err.hint()), format_error(&removed, removed.hint()));
        format_error(&err, err.hint())
    };
    write(&scene.root.join(".agency/worktrees/1-fix/file"), "mine\n");
    assert!(refused("1-fix").contains("as a workspace of this repository"));
    let path = create(&scene.project, &name("2-next"), Some("main")).unwrap().path;
    let inner = path.join("inner");
    fs::create_dir(&inner).unwrap();
    scene.sandbox.git(&inner, &["init", "--quiet"]);
    scene.sandbox.commit(&inner, "work", "1");
    assert!(refused("2-next").contains("git cannot save the repositories inside it: inner"));
}

#[test]
fn a_base_that_only_looks_like_a_remote_one_is_no_bookmark() {
    let scene = diverged();
    let removed =
        check_remove(&scene.project, &name("1-fix"), Some("feature/gone"), RemoveOptions::default());
    let told = format_error(&removed.unwrap_err(), None);
    assert!(told.contains("1 commit on agency/1-fix is in no other bookmark"), "{told}");
}

#[test]
fn a_merge_that_jj_takes_back_counts_no_longer_and_can_be_made_again() {
    for how in [MergeMethod::Merge, MergeMethod::Squash] {
        let (scene, task) = (diverged(), name("1-fix"));
        let merged = merge(&scene.project, &task, &into_main(how)).unwrap();
        assert!(is_merged(&scene.project, &task).unwrap());
        assert_eq!(taken_back(&scene.project), []);
        let undo = merged.notes.iter().find_map(|note| note.strip_prefix("undo: jj op restore ")).unwrap();
        scene.jj(&["op", "restore", undo]);
        assert!(!is_merged(&scene.project, &task).unwrap(), "{how:?}");
        assert_eq!(taken_back(&scene.project), [name("1-fix")], "{how:?}");
        assert!(state(&scene.project, &task, Some("main")).unwrap().unmerged_commits > 0, "{how:?}");
        let refused = remove(&scene.project, &task, Some("main"), RemoveOptions::default()).unwrap_err();
        assert!(format_error(&refused, None).contains("not in main"), "{refused}");
        merge(&scene.project, &task, &into_main(how)).unwrap();
        assert_eq!(taken_back(&scene.project), []);
        remove(&scene.project, &task, Some("main"), RemoveOptions::default()).unwrap();
    }
}

#[test]
fn a_workspace_that_jj_has_forgotten_is_removed_and_comes_back_with_all_files() {
    let (scene, task) = (scene(), name("1-fix"));
    let path = create(&scene.project, &task, Some("main")).unwrap().path;
    write(&path.join("own"), "1\n");
    commit_all(&scene.project, &task, "the work").unwrap().unwrap();
    write(&path.join("readme"), "snapshotted\n");
    scene.sandbox.jj(&path, &["status"]);
    write(&path.join("readme"), "not snapshotted\n");
    write(&path.join("new"), "untracked\n");
    scene.jj(&["workspace", "forget", "1-fix"]);
    let err = diff(&scene.project, &task, Some("main")).unwrap_err();
    let told = format_error(&err, err.hint());
    assert!(told.contains(&format!("jj has forgotten the workspace {}", path.display())), "{told}");
    assert!(told.contains("`agency rm 1-fix --discard`, then `agency undo`"), "{told}");
    let err = remove(&scene.project, &task, Some("main"), RemoveOptions::default()).unwrap_err();
    let told = format_error(&err, err.hint());
    assert!(told.contains("2 files in .agency/worktrees/1-fix are not committed"), "{told}");
    assert!(told.contains("1 commit on agency/1-fix is not in main"), "{told}");
    remove(&scene.project, &task, Some("main"), RemoveOptions::discarding()).unwrap();
    assert!(!path.exists());
    restore(&scene.project, &trash_entries(&scene.project).unwrap().remove(0)).unwrap();
    for (file, content) in [("own", "1\n"), ("readme", "not snapshotted\n"), ("new", "untracked\n")] {
        assert_eq!(fs::read_to_string(path.join(file)).unwrap(), content);
    }
    let state = state(&scene.project, &task, Some("main")).unwrap();
    assert_eq!((state.presence, state.unmerged_commits), (Presence::Ready, 1));
}

#[test]
fn a_directory_that_jj_does_not_know_gets_a_hint_for_jj() {
    let (scene, task) = (scene(), name("1-fix"));
    let path = create(&scene.project, &task, Some("main")).unwrap().path;
    fs::remove_dir_all(path.join(".jj")).unwrap();
    let err = remove(&scene.project, &task, Some("main"), RemoveOptions::discarding()).unwrap_err();
    let told = format_error(&err, err.hint());
    assert!(told.contains("jj does not know") && told.contains("jj workspace list"), "{told}");
    assert!(!told.contains("git"), "{told}");
}

#[test]
fn a_base_that_points_to_several_commits_is_not_synced_with() {
    let scene = diverged();
    let operation = scene.jj(&["op", "log", "--no-graph", "--limit", "1", "-T", "id"]);
    scene.jj(&["bookmark", "set", "--allow-backwards", "main", "-r", "root()+"]);
    let elsewhere = format!("--at-operation={operation}");
    scene.jj(&[&elsewhere, "bookmark", "set", "--allow-backwards", "main", "-r", "agency/1-fix"]);
    for how in [SyncMethod::Rebase, SyncMethod::Merge] {
        let err = sync(&scene.project, &name("1-fix"), Some("main"), how).unwrap_err();
        let told = format_error(&err, err.hint());
        assert!(told.contains("the bookmark main is in conflict: it points to several commits"), "{told}");
        assert!(told.contains("jj bookmark set main -r COMMIT"), "{told}");
    }
}

#[test]
fn a_task_that_is_made_in_another_workspace_of_the_user_starts_there_and_is_merged_there() {
    let scene = scene();
    let side = scene.sandbox.path().join("side");
    scene.jj(&["workspace", "add", "-r", "main", side.to_str().unwrap()]);
    write(&side.join("side"), "1\n");
    scene.sandbox.jj(&side, &["commit", "-m", "side"]);
    scene.sandbox.jj(&side, &["bookmark", "create", "side", "-r", "@-"]);
    let base = base_where_user_is(&scene.project, &side, None);
    assert_eq!(base.as_deref(), Some("side"));
    assert_eq!(base_where_user_is(&scene.project, &side, Some("main")), None);
    assert_eq!(base_where_user_is(&scene.project, &scene.root, None), None);
    // The latest edits of the user belong to the base, which has no bookmark.
    write(&side.join("edit"), "1\n");
    fs::create_dir(side.join("below")).unwrap();
    let base = base_where_user_is(&scene.project, &side.join("below"), None);
    let made = create(&scene.project, &name("1-fix"), base.as_deref()).unwrap();
    assert!(made.path.join("side").exists() && made.path.join("edit").exists());
    assert_eq!(base_where_user_is(&scene.project, &made.path, None), None);
    write(&made.path.join("own"), "1\n");
    commit_all(&scene.project, &name("1-fix"), "the work").unwrap().unwrap();
    scene.sandbox.jj(&side, &["commit", "-m", "edited"]);
    let request = MergeRequest { base, ..MergeRequest::default() };
    assert_eq!(merge(&scene.project, &name("1-fix"), &request).unwrap().into, "side");
    assert_eq!(scene.jj(&["file", "list", "-r", "main"]), "readme");
}

#[test]
fn a_rebase_of_git_in_a_colocated_repository_keeps_the_bookmark_where_it_is() {
    let scene = scene();
    let path = create(&scene.project, &name("1-fix"), Some("main")).unwrap().path;
    write(&path.join("own"), "1\n");
    commit_all(&scene.project, &name("1-fix"), "the work").unwrap().unwrap();
    let git = |args: &[&str]| scene.sandbox.git(&scene.root, args);
    git(&["checkout", "--quiet", "main"]);
    git(&["-c", "sequence.editor=sed -i 1ibreak", "rebase", "--quiet", "--interactive", "--root"]);
    let before = git(&["rev-parse", "main"]);
    for how in [MergeMethod::Merge, MergeMethod::Rebase] {
        let err = merge(&scene.project, &name("1-fix"), &into_main(how)).unwrap_err();
        let said = format_error(&err, err.hint());
        assert!(said.contains("a rebase is in progress in") && said.contains("rebase --abort"), "{said}");
        check_merge(&scene.project, &name("1-fix"), &into_main(how)).unwrap_err();
    }
    assert_eq!(git(&["rev-parse", "main"]), before);
    git(&["rebase", "--abort"]);
    merge(&scene.project, &name("1-fix"), &into_main(MergeMethod::Merge)).unwrap();
    assert_ne!(git(&["rev-parse", "main"]), before);
}

/// Everything that a look could write: operations of jj, and objects of git.
fn written(scene: &Scene) -> (usize, String) {
    let operations = fs::read_dir(scene.root.join(".jj/repo/op_store/operations")).unwrap().count();
    (operations, scene.sandbox.git(&scene.root, &["count-objects", "-v"]))
}

#[test]
fn looking_at_a_workspace_without_changes_writes_neither_operations_nor_objects() {
    let scene = scene();
    let path = create(&scene.project, &name("1-fix"), Some("main")).unwrap().path;
    write(&path.join("own"), "1\n");
    let shown = diff(&scene.project, &name("1-fix"), Some("main")).unwrap();
    assert_eq!(shown.files.len(), 1);
    let before = written(&scene);
    assert_eq!(diff(&scene.project, &name("1-fix"), Some("main")).unwrap(), shown);
    // The same content with another time.
    write(&path.join("own"), "1\n");
    assert_eq!(diff(&scene.project, &name("1-fix"), Some("main")).unwrap(), shown);
    assert_eq!(written(&scene), before);
}

#[test]
fn a_scan_for_conflicts_writes_neither_operations_nor_objects_whatever_has_changed() {
    let scene = scene();
    let workspaces: Vec<_> = ["1-fix", "2-next"].map(|task| (name(task), Some("main".to_owned()))).into();
    for (task, _) in &workspaces {
        let path = create(&scene.project, task, Some("main")).unwrap().path;
        write(&path.join("readme"), &format!("{task}\n"));
        // jj does not track a file of this size. No commit has it.
        write(&path.join(format!("large {task}")), &task.as_str().repeat(400_000));
    }
    let before = written(&scene);
    let mut scanner = ConflictScanner::default();
    let found = scanner.scan(&scene.project, &workspaces).unwrap();
    assert!(found.iter().any(|conflict| conflict.files == [PathBuf::from("readme")]), "{found:?}");
    // The objects of the last look are gone, and the workspaces can still be read.
    let found_again = ConflictScanner::default().scan(&scene.project, &workspaces).unwrap();
    assert_eq!(found_again, found);
    write(&workspace_path(&scene.project, &name("1-fix")).join("readme"), "hello\n");
    let found = scanner.scan(&scene.project, &workspaces).unwrap();
    assert!(!found.iter().any(|conflict| conflict.files == [PathBuf::from("readme")]), "{found:?}");
    drop(scanner);
    assert_eq!(written(&scene), before);
}
