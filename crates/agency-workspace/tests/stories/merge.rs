//! Merging workspaces: every method, every refusal, and a kill at every moment.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use agency_workspace::{
    MergeMethod, MergeOutcome, MergeRequest, Merged, Presence, RemoveOptions, check_merge, commit_all,
    create, is_merged, merge, recover_integrations, remove, remove_trial_worktrees, repair_moved, state,
    trash_entries,
};

use crate::sandbox::{Sandbox, format_error, name, project_to_be_killed_in, taken_back, write};
use crate::scene::Scene;

fn scene() -> Scene {
    Scene::new(Sandbox::new().with_identity(), |sandbox, root| {
        write(&root.join(".git/info/exclude"), ".agency\n");
        sandbox.commit(root, "shared", "1\n2\n3\n");
    })
}

fn request(how: MergeMethod) -> MergeRequest {
    MergeRequest {
        how,
        into: Some("main".into()),
        message: Some("the fix".into()),
        ..MergeRequest::default()
    }
}

impl Scene {
    fn merge(&self, how: MergeMethod) -> Merged {
        merge(&self.project, &name("1-fix"), &request(how)).unwrap()
    }

    fn refused_merge(&self, how: MergeMethod) -> String {
        let before = self.git_state();
        let err = merge(&self.project, &name("1-fix"), &request(how)).unwrap_err();
        assert_eq!(self.git_state(), before);
        format_error(&err, err.hint())
    }

    fn git_state(&self) -> String {
        format!(
            "{}\n{}",
            self.sandbox.full_state(&self.root),
            self.git(&["status", "--porcelain", "--branch"])
        )
    }

    /// Two commits in the workspace, one in the main checkout.
    fn diverge(&self) {
        self.sandbox.commit(&self.path, "own", "1");
        self.sandbox.commit(&self.path, "shared", "own\n2\n3\n");
        self.sandbox.commit(&self.root, "theirs", "1");
    }

    fn has_all(&self) {
        assert_eq!(self.git(&["status", "--porcelain", "--untracked-files=no"]), "");
        for (file, content) in [("own", "1"), ("shared", "own\n2\n3\n"), ("theirs", "1")] {
            assert_eq!(fs::read_to_string(self.root.join(file)).unwrap(), content);
        }
        let state = state(&self.project, &name("1-fix"), Some("main")).unwrap();
        assert_eq!(state.unmerged_commits, 0);
        assert!(!self.git(&["worktree", "list"]).contains("aside"));
    }
}

#[test]
fn every_method_updates_a_clean_checkout_and_the_workspace_can_be_removed() {
    let logs = [
        (MergeMethod::Merge, "the fix\ntheirs\nshared\nreadme"),
        (MergeMethod::Squash, "the fix\ntheirs\nshared\nreadme"),
        (MergeMethod::Rebase, "shared\nown\ntheirs\nshared\nreadme"),
    ];
    for (how, log) in logs {
        let scene = scene();
        scene.diverge();
        write(&scene.root.join("untracked"), "mine");
        let merged = scene.merge(how);
        assert_eq!(merged.checkout.as_deref(), Some(scene.root.as_path()));
        assert_eq!(scene.git(&["log", "--format=%s", "--first-parent"]), log, "{how:?}");
        assert_eq!(scene.git(&["rev-parse", "main"]), merged.after);
        scene.has_all();
        remove(&scene.project, &name("1-fix"), Some("main"), RemoveOptions::default()).unwrap();
    }
}

#[test]
fn a_fast_forward_takes_the_commits_as_they_are_or_refuses() {
    let scene = scene();
    let tip = scene.sandbox.commit(&scene.path, "own", "1");
    assert_eq!(scene.merge(MergeMethod::FastForward).after, tip);
    scene.sandbox.commit(&scene.path, "more", "1");
    scene.sandbox.commit(&scene.root, "theirs", "1");
    let expected = "Error: cannot merge workspace 1-fix\n\
                    Caused by: main has 1 commits that the workspace does not have\n\
                    Hint: `agency sync 1-fix` brings them in, or merge without --ff";
    assert_eq!(scene.refused_merge(MergeMethod::FastForward), expected);
}

#[test]
fn a_branch_that_is_not_checked_out_moves_alone() {
    let scene = scene();
    scene.diverge();
    scene.git(&["switch", "--quiet", "--create", "elsewhere"]);
    write(&scene.root.join("readme"), "changed here\n");
    let before = scene.git(&["status", "--porcelain", "--branch"]);
    let merged = scene.merge(MergeMethod::Merge);
    assert_eq!((merged.checkout, scene.git(&["rev-parse", "main"])), (None, merged.after));
    assert_eq!(scene.git(&["status", "--porcelain", "--branch"]), before);
    assert_eq!(scene.git(&["show", "main:own"]), "1");
}

#[test]
fn a_bare_repository_is_merged_in_too() {
    let sandbox = Sandbox::new().with_identity();
    let root = sandbox.repository("root");
    let bare = sandbox.path().join("bare.git");
    sandbox.git(&root, &["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    let project = sandbox.open(&bare);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    sandbox.commit(&path, "own", "1");
    let merged = merge(&project, &name("1-fix"), &request(MergeMethod::Squash)).unwrap();
    assert_eq!(sandbox.git(&bare, &["rev-parse", "main"]), merged.after);
    assert_eq!(sandbox.git(&bare, &["show", "main:own"]), "1");
}

#[test]
fn conflicts_are_listed_and_nothing_is_half_merged() {
    let scene = scene();
    scene.diverge();
    scene.sandbox.commit(&scene.root, "shared", "theirs\n2\n3\n");
    for how in [MergeMethod::Merge, MergeMethod::Squash, MergeMethod::Rebase] {
        let expected = "Error: cannot merge workspace 1-fix\n\
                        Caused by: shared conflicts with main\n\
                        Hint: nothing was changed; merge main by hand in the workspace, or tell the agent to";
        assert_eq!(scene.refused_merge(how), expected);
    }
}

#[test]
fn a_dirty_checkout_and_files_in_the_way_refuse_with_a_hint() {
    let scene = scene();
    scene.diverge();
    write(&scene.root.join("readme"), "changed\n");
    let refused = scene.refused_merge(MergeMethod::Merge);
    assert!(refused.contains(&format!("main is checked out in {}", scene.root.display())), "{refused}");
    assert!(refused.contains("with uncommitted changes: readme"), "{refused}");
    assert!(refused.ends_with("stash"), "{refused}");
    scene.git(&["checkout", "--quiet", "readme"]);
    write(&scene.root.join(".git/info/exclude"), "own\n.agency\n");
    write(&scene.root.join("own"), "an ignored file of the user");
    assert!(scene.refused_merge(MergeMethod::Merge).contains("untracked files are in the way"));
}

#[test]
fn uncommitted_work_refuses_until_it_is_committed() {
    let scene = scene();
    write(&scene.path.join("own"), "1");
    let refused = scene.refused_merge(MergeMethod::Merge);
    assert!(refused.contains("1 file in .agency/worktrees/1-fix is not committed"), "{refused}");
    let commit = commit_all(&scene.project, &name("1-fix"), "the work").unwrap().unwrap();
    assert_eq!(commit_all(&scene.project, &name("1-fix"), "again").unwrap(), None);
    assert_eq!(scene.merge(MergeMethod::FastForward).after, commit);
    assert!(
        scene.refused_merge(MergeMethod::Merge).contains("nothing to merge: it has no changes against main")
    );
}

#[test]
fn a_commit_that_a_hook_refuses_leaves_the_index_as_it_was() {
    let scene = scene();
    for file in ["staged", "untracked"] {
        write(&scene.path.join(file), "1");
    }
    scene.sandbox.git(&scene.path, &["add", "staged"]);
    scene.sandbox.hook(&scene.root, "pre-commit", "echo not today >&2; exit 1");
    let before = scene.sandbox.git(&scene.path, &["status", "--porcelain"]);
    let err = commit_all(&scene.project, &name("1-fix"), "work").unwrap_err();
    assert!(format_error(&err, err.hint()).contains("not today"));
    assert_eq!(scene.sandbox.git(&scene.path, &["status", "--porcelain"]), before);
}

#[test]
fn an_impossible_target_is_named() {
    let scene = scene();
    scene.sandbox.commit(&scene.path, "own", "1");
    let nowhere = MergeRequest { into: Some("origin/main".into()), ..MergeRequest::default() };
    let err = merge(&scene.project, &name("1-fix"), &nowhere).unwrap_err();
    assert!(format_error(&err, err.hint()).contains("there is no local branch `origin/main` to merge into"));
    let err = merge(&scene.project, &name("7-never"), &request(MergeMethod::Merge)).unwrap_err();
    assert!(format_error(&err, None).contains("does not exist"));
    scene.sandbox.git(&scene.path, &["checkout", "--quiet", "--detach"]);
    assert!(scene.refused_merge(MergeMethod::Merge).contains("not on its own branch"));
}

#[test]
fn hooks_of_the_user_see_the_files_and_may_refuse() {
    for (hook, how) in [
        ("pre-merge-commit", MergeMethod::Merge),
        ("pre-commit", MergeMethod::Squash),
        ("commit-msg", MergeMethod::Squash),
    ] {
        let scene = scene();
        scene.diverge();
        scene.sandbox.hook(
            &scene.root,
            hook,
            "test -e own && test -e theirs && test -e shared || exit 0\necho no; exit 1",
        );
        assert!(scene.refused_merge(how).contains("no"), "{hook}");
        scene.sandbox.hook(&scene.root, hook, "exit 0");
        scene.merge(how);
        scene.has_all();
    }
}

#[test]
fn a_target_that_a_hook_protects_does_not_move() {
    let scene = scene();
    scene.diverge();
    scene.git(&["switch", "--quiet", "--create", "elsewhere"]);
    let protect = "while read old new name; do\n\
                   test \"$1 $name\" = \"prepared refs/heads/main\" && { echo protected >&2; exit 1; }\ndone\nexit 0";
    scene.sandbox.hook(&scene.root, "reference-transaction", protect);
    let tip = scene.git(&["rev-parse", "main"]);
    merge(&scene.project, &name("1-fix"), &request(MergeMethod::Merge)).unwrap_err();
    scene.git(&["switch", "--quiet", "main"]);
    merge(&scene.project, &name("1-fix"), &request(MergeMethod::Merge)).unwrap_err();
    assert_eq!(scene.git(&["rev-parse", "main"]), tip);
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
    assert_eq!(scene.git(&["for-each-ref", "refs/agency"]), "", "only the merge had refs there");
}

#[test]
fn signing_is_asked_of_the_users_own_program() {
    let scene = scene();
    scene.diverge();
    let signer = scene.sandbox.path().join("signer");
    write(
        &signer,
        "#!/bin/sh\ncat >/dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\necho -----BEGIN PGP SIGNATURE-----\n",
    );
    fs::set_permissions(&signer, fs::Permissions::from_mode(0o755)).unwrap();
    scene.git(&["config", "commit.gpgSign", "true"]);
    scene.git(&["config", "gpg.program", signer.to_str().unwrap()]);
    let merged = scene.merge(MergeMethod::Merge);
    assert!(scene.git(&["cat-file", "-p", &merged.after]).contains("BEGIN PGP SIGNATURE"));
}

#[test]
fn a_signature_that_cannot_be_made_leaves_all_as_it_was() {
    let scene = scene();
    scene.diverge();
    scene.git(&["config", "commit.gpgSign", "true"]);
    scene.git(&["config", "gpg.program", "false"]);
    for how in [MergeMethod::Merge, MergeMethod::Squash, MergeMethod::Rebase] {
        let refusal = scene.refused_merge(how);
        assert!(refusal.contains("sign"), "{how:?}: {refusal}");
    }
    assert_eq!(scene.git(&["for-each-ref", "refs/agency"]), "");
}

#[test]
fn the_environment_alone_may_name_the_committer() {
    let mut sandbox = Sandbox::new();
    for (name, value) in [("AUTHOR_NAME", "Grace"), ("AUTHOR_EMAIL", "g@example.org")] {
        sandbox = sandbox.with(&format!("GIT_{name}"), value);
    }
    for (name, value) in [("COMMITTER_NAME", "Hopper"), ("COMMITTER_EMAIL", "h@example.org")] {
        sandbox = sandbox.with(&format!("GIT_{name}"), value);
    }
    let root = sandbox.repository("root");
    write(&root.join(".git/info/exclude"), ".agency\n");
    sandbox.git(&root, &["config", "user.useConfigOnly", "true"]);
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    write(&path.join("own"), "1");
    commit_all(&project, &name("1-fix"), "work").unwrap();
    merge(&project, &name("1-fix"), &request(MergeMethod::Merge)).unwrap();
    for commit in ["main", "main^2"] {
        let who = sandbox.git(&root, &["log", "-1", "--format=%an %ae, %cn %ce", commit]);
        assert_eq!(who, "Grace g@example.org, Hopper h@example.org", "{commit}");
    }
}

#[test]
fn a_squashed_commit_lists_its_commits() {
    let scene = scene();
    scene.diverge();
    let title = Some("Make the login work".to_owned());
    let into_main =
        MergeRequest { how: MergeMethod::Squash, into: Some("main".into()), ..MergeRequest::default() };
    merge(&scene.project, &name("1-fix"), &MergeRequest { title, ..into_main }).unwrap();
    let expected = "Make the login work\n\nSquashed from agency/1-fix:\n\n* own\n* shared";
    assert_eq!(scene.git(&["log", "-1", "--format=%B", "main"]).trim_end(), expected);
}

#[test]
fn work_goes_to_its_base_whatever_is_checked_out() {
    let scene = scene();
    scene.diverge();
    scene.git(&["switch", "--quiet", "--create", "elsewhere"]);
    let of = |base: &str| MergeRequest { base: Some(base.into()), ..MergeRequest::default() };
    let merged = merge(&scene.project, &name("1-fix"), &of("main")).unwrap();
    assert_eq!((merged.into.as_str(), merged.checkout), ("main", None));
    // A merge cannot go into a tag or a commit.
    scene.git(&["tag", "v1"]);
    assert_eq!(merge(&scene.project, &name("1-fix"), &of("v1")).unwrap().into, "elsewhere");
    let gone = merge(&scene.project, &name("1-fix"), &of("gone")).unwrap_err().cause.to_string();
    assert_eq!(gone, "there is no local branch `gone` to merge into");
    scene.git(&["update-ref", "refs/remotes/origin/theirs", "main~1"]);
    let err = merge(&scene.project, &name("1-fix"), &of("origin/theirs")).unwrap_err();
    assert_eq!(
        format_error(&err, err.hint()),
        "Error: cannot merge workspace 1-fix\n\
         Caused by: its base origin/theirs is a remote branch, and no local branch tracks it\n\
         Hint: name a local branch with --into"
    );
    scene.git(&["config", "remote.origin.url", "nowhere"]);
    scene.git(&["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"]);
    scene.git(&["branch", "--quiet", "--track", "ours", "origin/theirs"]);
    assert_eq!(merge(&scene.project, &name("1-fix"), &of("origin/theirs")).unwrap().into, "ours");
}

#[test]
fn many_workspaces_are_merged_at_once_and_none_is_lost() {
    let scene = scene();
    let names: Vec<_> = (2..6).map(|id| name(&format!("{id}-more"))).collect();
    for one in &names {
        let path = create(&scene.project, one, None).unwrap().path;
        scene.sandbox.commit(&path, one.as_str(), "1");
    }
    std::thread::scope(|scope| {
        for one in &names {
            scope.spawn(|| merge(&scene.project, one, &request(MergeMethod::Merge)).unwrap());
        }
    });
    for one in &names {
        assert!(scene.root.join(one.as_str()).exists());
    }
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_merge_that_is_killed_anywhere_leaves_all_as_before_or_merged() {
    if let Some(project) = project_to_be_killed_in() {
        merge(&project, &name("1-fix"), &request(MergeMethod::Merge)).unwrap();
        return;
    }
    let diverged = || {
        let scene = scene();
        scene.diverge();
        scene
    };
    let (mut scene, mut call, mut outcomes) = (diverged(), 0, Vec::new());
    loop {
        call += 1;
        let (is_through, is_merged) = killed_after(&scene, call);
        outcomes.push(is_merged);
        if is_merged {
            scene.has_all();
            scene = diverged();
        }
        if is_through {
            break;
        }
    }
    assert!(outcomes.iter().filter(|is_merged| !**is_merged).count() > 10, "{outcomes:?}");
    // The last kills come after the target has moved.
    assert!(outcomes.iter().filter(|is_merged| **is_merged).count() > 2, "{outcomes:?}");
}

/// Returns whether the merge ended before that call of git, and whether the target has it.
fn killed_after(scene: &Scene, call: u32) -> (bool, bool) {
    let old = scene.git(&["rev-parse", "main"]);
    scene.sandbox.kill_caller_after("git", call);
    let story = "merge::a_merge_that_is_killed_anywhere_leaves_all_as_before_or_merged";
    let is_through = scene.sandbox.run_in_child(story, &scene.root);
    recover_integrations(&scene.project).unwrap();
    assert_eq!(scene.git(&["status", "--porcelain"]), "", "killed after call {call}");
    assert_eq!(scene.git(&["for-each-ref", "refs/agency/merging"]), "", "killed after call {call}");
    let is_merged = scene.git(&["log", "-1", "--format=%s", "main"]) == "the fix";
    assert!(is_merged || scene.git(&["rev-parse", "main"]) == old, "killed after call {call}");
    (is_through, is_merged)
}

#[test]
fn a_checkout_that_git_was_killed_in_is_restored_and_its_files_are_saved() {
    let scene = scene();
    for n in 1..=5 {
        scene.sandbox.commit(&scene.path, &format!("file{n}"), "new\n");
    }
    scene.sandbox.commit(&scene.path, "shared", "own\n2\n3\n");
    // Git waits for the filter, which kills it while some files are written and others are not.
    let filter = "test %f = file3 && kill -9 $PPID; cat";
    write(&scene.root.join(".git/info/attributes"), "file3 filter=deadly\n");
    scene.git(&["config", "filter.deadly.smudge", filter]);
    let old = scene.git(&["rev-parse", "main"]);
    merge(&scene.project, &name("1-fix"), &request(MergeMethod::FastForward)).unwrap_err();
    scene.git(&["config", "--unset", "filter.deadly.smudge"]);
    let lock = scene.root.join(".git/index.lock");
    if lock.exists() {
        // The user must remove the lock that a killed git leaves.
        fs::remove_file(lock).unwrap();
    }
    let recovered = recover_integrations(&scene.project).unwrap();
    assert_eq!(scene.git(&["rev-parse", "main"]), old);
    assert_eq!(scene.git(&["status", "--porcelain"]), "", "{recovered:?}");
    assert!(
        matches!(&recovered[..], [one] if matches!(one.outcome, MergeOutcome::RolledBack { .. })),
        "{recovered:?}"
    );
    let kept = &trash_entries(&scene.project).unwrap()[0].reference;
    assert_eq!(scene.git(&["show", &format!("{kept}:file1")]), "new");
    scene.merge(MergeMethod::FastForward);
    assert_eq!(fs::read_to_string(scene.root.join("file3")).unwrap(), "new\n");
}

#[test]
fn a_merge_that_fails_after_the_branch_has_moved_is_merged() {
    let scene = scene();
    scene.diverge();
    scene
        .sandbox
        .wrap_program("git", r#""$real" "$@" || exit; case " $* " in *" --ff-only "*) exit 1; esac"#);
    let project = scene.sandbox.open_with_bin(&scene.root);
    assert_eq!(merge(&project, &name("1-fix"), &request(MergeMethod::Merge)).unwrap().into, "main");
    scene.has_all();
    assert!(is_merged(&project, &name("1-fix")).unwrap());
    assert_eq!(scene.git(&["for-each-ref", "refs/agency/merging"]), "");
}

#[test]
fn files_of_a_failed_merge_are_saved_and_reported() {
    let scene = scene();
    for n in 1..=5 {
        scene.sandbox.commit(&scene.path, &format!("file{n}"), "new\n");
    }
    write(&scene.root.join(".git/info/attributes"), "file3 filter=failing\n");
    scene.git(&["config", "filter.failing.smudge", "false"]);
    scene.git(&["config", "filter.failing.clean", "cat"]);
    scene.git(&["config", "filter.failing.required", "true"]);
    let err = merge(&scene.project, &name("1-fix"), &request(MergeMethod::FastForward)).unwrap_err();
    let told = format_error(&err, err.hint());
    let kept = trash_entries(&scene.project).unwrap().pop().expect(&told).reference;
    assert!(
        told.contains(&format!("is as before; its files at the time of the failure are saved as {kept}"))
    );
    assert!(told.contains("smudge filter failing failed"), "{told}");
    assert_eq!(scene.git(&["show", &format!("{kept}:file1")]), "new");
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_merge_that_cannot_be_marked_does_not_claim_that_nothing_changed() {
    let scene = scene();
    scene.diverge();
    let fails = r#"case " $* " in *" --stdin "*) echo no >&2; exit 1; esac; exec "$real" "$@""#;
    scene.sandbox.wrap_program("git", fails);
    let project = scene.sandbox.open_with_bin(&scene.root);
    let err = merge(&project, &name("1-fix"), &request(MergeMethod::Merge)).unwrap_err();
    let told = format_error(&err, err.hint());
    assert!(told.contains("cannot tell whether main has the merge"), "{told}");
    scene.has_all();
    assert!(
        matches!(&recover_integrations(&scene.project).unwrap()[..], [one] if one.outcome == MergeOutcome::Merged)
    );
    assert!(is_merged(&scene.project, &name("1-fix")).unwrap());
}

#[test]
fn options_that_the_user_has_set_for_merges_do_not_keep_the_branch_from_moving() {
    for options in ["--squash", "--no-commit", "--no-ff", "--strategy=ours", "--squash --no-edit"] {
        for how in [MergeMethod::Merge, MergeMethod::Squash, MergeMethod::Rebase] {
            let scene = scene();
            scene.git(&["config", "branch.main.mergeOptions", options]);
            scene.git(&["config", "merge.ff", "false"]);
            scene.diverge();
            let merged = scene.merge(how);
            assert_eq!(scene.git(&["rev-parse", "main"]), merged.after, "{options} {how:?}");
            scene.has_all();
        }
    }
}

#[test]
fn a_merge_that_git_only_claims_to_have_made_is_not_called_merged() {
    let scene = scene();
    scene.diverge();
    let pretends = r#"case " $* " in *" --ff-only "*) exit 0; esac; exec "$real" "$@""#;
    scene.sandbox.wrap_program("git", pretends);
    let project = scene.sandbox.open_with_bin(&scene.root);
    let before = scene.git_state();
    let err = merge(&project, &name("1-fix"), &request(MergeMethod::Merge)).unwrap_err();
    let told = format_error(&err, err.hint());
    assert!(told.contains("git reported success, but main did not get the merge"), "{told}");
    assert_eq!(scene.git_state(), before);
    assert!(!is_merged(&project, &name("1-fix")).unwrap());
}

/// A checkout of `main` in the middle of an operation of the user's: the words of the refusal, the command
/// that aborts it, and the commands that begin it.
type Unfinished<'a> = (&'a str, &'a str, &'a [&'a [&'a str]]);

const UNFINISHED: [Unfinished; 5] = [
    (
        "a rebase is in progress in",
        "rebase --abort",
        &[&["-c", "sequence.editor=sed -i 1ibreak", "rebase", "--quiet", "--interactive", "other"]],
    ),
    ("a bisect is in progress in", "bisect reset", &[&["bisect", "start"]]),
    (
        "a bisect is in progress in",
        "bisect reset",
        &[&["bisect", "start"], &["bisect", "bad"], &["bisect", "good", "HEAD~2"]],
    ),
    ("a merge is in progress in", "merge --abort", &[&["merge", "--quiet", "--no-commit", "other"]]),
    ("a revert is in progress in", "revert --abort", &[&["revert", "--no-commit", "HEAD"]]),
];

#[test]
fn a_merge_refuses_while_the_user_has_an_operation_in_progress_on_the_target() {
    for (words, way_out, commands) in UNFINISHED {
        for in_another_worktree in [false, true] {
            let scene = scene();
            scene.git(&["branch", "other"]);
            scene.diverge();
            scene.git(&["switch", "--quiet", "other"]);
            scene.sandbox.commit(&scene.root, "of-other", "1");
            let checkout = if in_another_worktree {
                scene.git(&["worktree", "add", "--quiet", "../elsewhere", "main"]);
                scene.sandbox.path().join("elsewhere")
            } else {
                scene.git(&["switch", "--quiet", "main"]);
                scene.root.clone()
            };
            for command in commands {
                scene.sandbox.git(&checkout, command);
            }
            let refused = scene.refused_merge(MergeMethod::Merge);
            let checkout = checkout.display();
            assert!(refused.contains(&format!("{words} {checkout}")), "{refused}");
            let hint = format!("Hint: finish it there, or abort it: git -C '{checkout}' {way_out}");
            assert!(refused.ends_with(&hint), "{refused}");
            let check = check_merge(&scene.project, &name("1-fix"), &request(MergeMethod::Merge));
            assert!(check.is_err(), "{words}");
            let arguments: Vec<&str> = way_out.split(' ').collect();
            scene.sandbox.git(std::path::Path::new(&checkout.to_string()), &arguments);
            scene.merge(MergeMethod::Merge);
        }
    }
}

#[test]
fn an_operation_on_another_branch_does_not_block_a_merge() {
    let scene = scene();
    scene.git(&["branch", "other"]);
    scene.diverge();
    scene.git(&["switch", "--quiet", "other"]);
    scene.sandbox.commit(&scene.root, "of-other", "1");
    scene.sandbox.git(
        &scene.root,
        &["-c", "sequence.editor=sed -i 1ibreak", "rebase", "--quiet", "--interactive", "main"],
    );
    assert_eq!(scene.merge(MergeMethod::Merge).checkout, None);
    scene.git(&["rebase", "--continue"]);
    assert_eq!(scene.git(&["show", "main:own"]), "1");
}

#[test]
fn a_project_whose_git_directory_is_elsewhere_is_merged_in_too() {
    let sandbox = Sandbox::new().with_identity();
    let library = sandbox.repository("library");
    let outer = sandbox.repository("outer");
    let into = format!("--separate-git-dir={}", sandbox.path().join("separate.git").display());
    sandbox.git(&library, &["init", "--quiet", &into]);
    sandbox.git(&outer, &["submodule", "--quiet", "add", library.to_str().unwrap(), "sub"]);
    for root in [library, outer.join("sub")] {
        let project = sandbox.open(&root);
        assert_eq!(project.root(), root);
        agency_workspace::exclude_agency_dir(&project).unwrap();
        let path = create(&project, &name("1-fix"), None).unwrap().path;
        sandbox.commit(&path, "own", "1");
        let merged = merge(&project, &name("1-fix"), &request(MergeMethod::Merge)).unwrap();
        assert_eq!(merged.checkout.as_deref(), Some(root.as_path()));
        assert_eq!(fs::read_to_string(root.join("own")).unwrap(), "1");
        assert_eq!(sandbox.git(&root, &["status", "--porcelain"]), "");
        write(&root.join("own"), "changed");
        sandbox.commit(&path, "more", "1");
        let err = merge(&project, &name("1-fix"), &request(MergeMethod::Merge)).unwrap_err();
        let told = format_error(&err, err.hint());
        assert!(told.contains(&format!("main is checked out in {} with", root.display())), "{told}");
    }
}

#[test]
fn a_project_path_with_a_line_break_is_no_obstacle() {
    let sandbox = Sandbox::new().with_identity();
    let root = sandbox.repository("two\nlines");
    let project = sandbox.open(&root);
    agency_workspace::exclude_agency_dir(&project).unwrap();
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    sandbox.commit(&path, "own", "1");
    merge(&project, &name("1-fix"), &request(MergeMethod::Merge)).unwrap();
    assert_eq!(fs::read_to_string(root.join("own")).unwrap(), "1");
    remove(&project, &name("1-fix"), None, RemoveOptions::default()).unwrap();
}

#[test]
fn a_merge_that_the_user_takes_back_counts_no_longer_and_can_be_made_again() {
    for how in [MergeMethod::Merge, MergeMethod::Squash, MergeMethod::Rebase] {
        for is_checked_out in [true, false] {
            let scene = scene();
            scene.diverge();
            let task = name("1-fix");
            let before = scene.git(&["rev-parse", "main"]);
            if !is_checked_out {
                scene.git(&["switch", "--quiet", "--create", "elsewhere"]);
            }
            scene.merge(how);
            assert!(is_merged(&scene.project, &task).unwrap());
            assert_eq!(taken_back(&scene.project), []);
            match is_checked_out {
                true => scene.git(&["reset", "--quiet", "--hard", &before]),
                false => scene.git(&["branch", "--force", "main", &before]),
            };
            assert!(!is_merged(&scene.project, &task).unwrap(), "{how:?}");
            assert_eq!(taken_back(&scene.project), [name("1-fix")], "{how:?}");
            assert_eq!(state(&scene.project, &task, Some("main")).unwrap().unmerged_commits, 2, "{how:?}");
            let refused = remove(&scene.project, &task, Some("main"), RemoveOptions::default()).unwrap_err();
            assert!(format_error(&refused, None).contains("2 commits on agency/1-fix are not in main"));
            scene.merge(how);
            assert_eq!(taken_back(&scene.project), []);
            remove(&scene.project, &task, Some("main"), RemoveOptions::default()).unwrap();
        }
    }
}

#[test]
fn a_merge_into_another_branch_counts_while_that_branch_has_it() {
    let scene = scene();
    scene.git(&["branch", "release"]);
    scene.diverge();
    let into_release = MergeRequest { into: Some("release".into()), ..request(MergeMethod::Squash) };
    merge(&scene.project, &name("1-fix"), &into_release).unwrap();
    let is_merged = || taken_back(&scene.project).is_empty();
    assert!(is_merged());
    scene.git(&["branch", "--move", "release", "renamed"]);
    assert!(is_merged(), "another branch has it");
    scene.git(&["branch", "-D", "renamed"]);
    assert!(!is_merged());
}

#[test]
fn a_merge_that_the_user_rewrites_is_still_merged() {
    let scene = scene();
    scene.diverge();
    scene.merge(MergeMethod::Squash);
    scene.git(&["commit", "--quiet", "--amend", "--message", "better words"]);
    assert_eq!(taken_back(&scene.project), []);
    remove(&scene.project, &name("1-fix"), Some("main"), RemoveOptions::default()).unwrap();
}

/// Earlier versions marked a merge by the commit of the workspace alone.
#[test]
fn the_mark_of_an_earlier_version_counts_while_the_base_has_the_changes() {
    for how in [MergeMethod::Merge, MergeMethod::Squash, MergeMethod::Rebase] {
        let scene = scene();
        scene.diverge();
        let before = scene.git(&["rev-parse", "main"]);
        scene.merge(how);
        scene.git(&["update-ref", "refs/agency/merged/1-fix", "agency/1-fix"]);
        let unmerged = || state(&scene.project, &name("1-fix"), Some("main")).unwrap().unmerged_commits;
        assert!(is_merged(&scene.project, &name("1-fix")).unwrap());
        assert_eq!(unmerged(), 0);
        scene.git(&["reset", "--quiet", "--hard", &before]);
        assert!(!is_merged(&scene.project, &name("1-fix")).unwrap());
        assert_eq!(taken_back(&scene.project), [name("1-fix")]);
        assert_eq!(unmerged(), 2);
    }
}

#[test]
fn trial_worktrees_of_a_killed_process_are_removed_with_and_without_a_record_of_git() {
    let scene = scene();
    let folder = scene.root.join(".agency/worktrees");
    let known = folder.join(".aside-known");
    scene.git(&["worktree", "add", "--quiet", "--detach", known.to_str().unwrap()]);
    write(&folder.join(".aside-unknown/file"), "x");
    fs::create_dir(folder.join(".aside-empty")).unwrap();
    remove_trial_worktrees(&scene.project);
    let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["1-fix"]);
    assert!(!scene.git(&["worktree", "list"]).contains("aside"));
}

#[test]
fn the_worktrees_of_a_moved_project_are_connected_again() {
    let scene = scene();
    create(&scene.project, &name("2-more"), None).unwrap();
    scene.diverge();
    let moved = scene.sandbox.path().join("moved");
    fs::rename(&scene.root, &moved).unwrap();
    let project = scene.sandbox.open(&moved);
    let err = merge(&project, &name("1-fix"), &request(MergeMethod::Merge)).unwrap_err();
    let told = format_error(&err, err.hint());
    assert!(told.contains("if the repository was moved, run: git worktree repair"), "{told}");
    repair_moved(&project);
    for task in ["1-fix", "2-more"] {
        assert_eq!(state(&project, &name(task), None).unwrap().presence, Presence::Ready);
    }
    merge(&project, &name("1-fix"), &request(MergeMethod::Merge)).unwrap();
    assert_eq!(fs::read_to_string(moved.join("own")).unwrap(), "1");
}

#[test]
fn a_copy_of_a_project_does_not_take_the_worktrees_of_the_original() {
    let scene = scene();
    let copy = scene.sandbox.path().join("copy");
    let copied = std::process::Command::new("cp").arg("-a").arg(&scene.root).arg(&copy).status().unwrap();
    assert!(copied.success());
    repair_moved(&scene.sandbox.open(&copy));
    assert_eq!(state(&scene.project, &name("1-fix"), None).unwrap().presence, Presence::Ready);
    scene.git_inside(&["status"]);
}
