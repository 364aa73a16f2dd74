//! Merges and syncs: every strategy, every refusal, conflicts, and killed daemons.

use std::fs;
use std::path::Path;

use agency_testkit::CommandOutput;

use crate::json::Schema;
use crate::stage::{SOON, Stage};
use crate::state_log::NO_SILENCE;
use crate::work_diff::{commit, put, stage};

/// A completed task without an agent, which has committed a file.
pub(crate) fn completed_task(stage: &Stage, slug: &str, file: &str) {
    let task = stage.play(slug, "ask ready?");
    let worktree = stage.worktree(&format!("{}-{slug}", task["id"]));
    put(&worktree.join(file), &format!("{slug}\n"));
    commit(stage, &worktree, &format!("work of {slug}"));
    stage.run(["complete", slug]).ok();
    stage.run(["stop", slug]).ok();
}

/// The subjects of the commits of a branch, newest first.
pub(crate) fn log(stage: &Stage, branch: &str) -> Vec<String> {
    let log = stage.git(&stage.repo(), &["log", "--topo-order", "--format=%s", branch]);
    log.lines().map(str::to_owned).collect()
}

/// Everything in the user's repository that a merge could change.
pub(crate) fn repository(stage: &Stage) -> [String; 4] {
    let repo = stage.repo();
    let worktrees = stage.git(&repo, &["worktree", "list", "--porcelain"]);
    let worktrees = worktrees.lines().filter(|line| line.starts_with("worktree ")).collect();
    [
        stage.git(
            &repo,
            &["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/agency/merging"],
        ),
        stage.git(&repo, &["status", "--porcelain"]),
        worktrees,
        fs::read_to_string(repo.join("README.md")).expect("a file"),
    ]
}

pub(crate) fn install_hook(stage: &Stage, name: &str, script: &str) {
    let hook = stage.repo().join(".git/hooks").join(name);
    fs::create_dir_all(hook.parent().expect("a directory")).expect("room");
    stage.write_program(&hook, format!("#!/bin/sh\n{script}\n").as_bytes());
}

#[test]
fn every_strategy_merges() {
    let stage = stage();
    for (slug, file) in [("plain", "a"), ("squash", "b"), ("rebase", "c"), ("ff", "d"), ("into", "e")] {
        completed_task(&stage, slug, file);
    }
    let merged = stage.run(["merge", "plain", "--json"]).json();
    Schema::of("merge").check(&merged);
    assert_eq!((merged["into"].as_str(), merged["task"]["status"].as_str()), (Some("main"), Some("merged")));
    assert_eq!(log(&stage, "main"), ["Merge agency/1-plain into main", "work of plain", "first"]);
    assert!(stage.repo().join("a").exists());

    let said = stage.run(["merge", "squash", "--squash", "-m", "all at once"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "2 squash merged\n"), "{said}");
    assert!(said.stderr.contains("main: ") && said.stderr.contains("updated your checkout: "), "{said}");
    stage.run(["merge", "rebase", "--rebase"]).ok();
    assert_eq!(log(&stage, "main")[..2], ["work of rebase", "all at once"]);

    let refusal = stage.refused(&["merge", "ff", "--ff"]);
    assert!(refusal.contains("commits that the workspace does not have"), "{refusal}");
    assert_eq!(stage.run(["sync", "ff"]).ok(), "added 4 commits from main\n");
    stage.run(["merge", "ff", "--ff"]).ok();
    assert_eq!(log(&stage, "main")[..2], ["work of ff", "work of rebase"]);

    stage.git(&stage.repo(), &["branch", "develop", "HEAD~2"]);
    stage.run(["merge", "into", "--into", "develop"]).ok();
    assert_eq!(log(&stage, "develop")[0], "Merge agency/5-into into develop");
    assert!(!stage.repo().join("e").exists());
    for slug in ["plain", "squash", "rebase", "ff", "into"] {
        assert_eq!(stage.status(slug), "merged");
    }
    // All work is merged, so removing the workspace loses nothing.
    assert!(stage.refused(&["merge", "plain"]).contains("it is already merged"));
    assert!(stage.refused(&["start", "plain"]).contains("merged"));
    assert!(stage.refused(&["sync", "plain"]).contains("it is already merged"));
    let plan = stage.run(["gc", "--dry-run"]).ok();
    assert!(plan.contains("merged into main") && plan.contains("merged into develop"), "{plan}");
    for slug in ["plain", "squash", "rebase", "ff", "into"] {
        stage.run(["rm", slug]).ok();
    }
    let events = fs::read_to_string(stage.state().join("events.jsonl")).expect("events are kept");
    assert_eq!(events.lines().filter(|line| line.contains("\"Merged\"")).count(), 5);
}

#[test]
fn a_merge_that_the_user_takes_back_is_not_merged_any_more() {
    let stage = stage();
    for (slug, file, how) in [("plain", "a", None), ("squash", "b", Some("--squash"))] {
        completed_task(&stage, slug, file);
        let merge: Vec<&str> = ["merge", slug].into_iter().chain(how).collect();
        stage.run(&merge).ok();
        assert_eq!(stage.status(slug), "merged");
        stage.git(&stage.repo(), &["reset", "--quiet", "--hard", "HEAD~1"]);
        assert_eq!(stage.status(slug), "completed");
        let plan = stage.run(["gc", "--dry-run"]).ok();
        assert!(plan.contains("1 commit is not in main") && !plan.contains("would go"), "{plan}");
        let refusal = stage.refused(&["rm", slug]);
        assert!(refusal.contains(&format!("-{slug} is not in main")), "{refusal}");
        assert_eq!(stage.run(&merge).ok(), format!("{} {slug} merged\n", stage.task(slug)["id"]));
        assert!(stage.repo().join(file).exists());
        stage.run(["rm", slug]).ok();
    }
    let events = fs::read_to_string(stage.state().join("events.jsonl")).expect("events are kept");
    assert_eq!(events.lines().filter(|line| line.contains("\"MergeTakenBack\"")).count(), 2);
}

#[test]
fn a_conflict_is_named_and_nothing_is_merged() {
    let stage = stage();
    completed_task(&stage, "one", "README.md");
    put(&stage.repo().join("README.md"), "# the base\n");
    commit(&stage, &stage.repo(), "base");
    let before = repository(&stage);
    let worktree = stage.worktree("1-one");
    for (way, command) in [("--squash", "git merge main"), ("--rebase", "git rebase main")] {
        let refusal = stage.refused(&["merge", "one", way]);
        assert!(refusal.contains("README.md conflicts with main"), "{refusal}");
        let ways =
            [format!("cd {} && {command}", worktree.display()), format!("`agency merge 1-one {way}` again")];
        for words in ["nothing was changed", "agency send --queue 1-one", &ways[0], &ways[1]] {
            assert!(refusal.contains(words), "{words:?} is not in {refusal}");
        }
    }
    let refusal = stage.refused(&["sync", "one"]);
    assert!(refusal.contains("README.md conflicts with main"), "{refusal}");
    assert!(refusal.contains("git rebase main") && !refusal.contains("agency merge"), "{refusal}");
    assert_eq!(repository(&stage), before);
    assert_eq!(stage.git(&stage.worktree("1-one"), &["status", "--porcelain"]), "");
    assert_eq!(stage.status("one"), "completed");
    put(&stage.worktree("1-one").join("more"), "x\n");
    let refusal = stage.refused(&["merge", "one", "--commit"]);
    assert!(refusal.contains("nothing was changed; resolve it in the workspace"), "{refusal}");
    assert_eq!(stage.git(&worktree, &["status", "--porcelain"]), "?? more\n", "not even committed");
    let refusal = stage.refused(&["merge", "one", "--into", "agency/1-one"]);
    assert!(refusal.contains("agency/1-one is the workspace's own branch"), "{refusal}");
    assert!(stage.run(["start", "one"]).ok().contains("running"), "there is more to do");
}

#[test]
fn a_conflict_is_resolved_as_the_hint_says() {
    let stage = stage();
    completed_task(&stage, "one", "README.md");
    put(&stage.repo().join("README.md"), "# the base\n");
    commit(&stage, &stage.repo(), "base");
    let refusal = stage.refused(&["merge", "one"]);
    let way = refusal.split("commit: ").nth(1).and_then(|rest| rest.split("; or ").next()).expect("a way");
    let mut shell = stage.command("sh");
    let resolved = "echo both > README.md && git commit -qam resolved";
    shell.args(["-c", &format!("{way} >/dev/null; {resolved}")]).current_dir(stage.repo());
    assert!(shell.status().expect("a shell").success(), "{way}");
    stage.run(["merge", "one"]).ok();
    assert_eq!(fs::read_to_string(stage.repo().join("README.md")).expect("a file"), "both\n");
}

#[test]
fn the_committer_is_the_user_who_typed_the_command() {
    let stage = Stage::new();
    completed_task(&stage, "one", "a");
    put(&stage.worktree("1-one").join("b"), "b\n");
    let mut merging = stage.agency(["merge", "one", "--commit"]);
    for (name, value) in [("AUTHOR_NAME", "Ada"), ("AUTHOR_EMAIL", "ada@example.org")] {
        merging.env(format!("GIT_{name}"), value);
    }
    CommandOutput::of(merging, b"").ok();
    let who = stage.git(&stage.repo(), &["log", "--topo-order", "--format=%an, %cn", "-2", "main"]);
    assert_eq!(who, "Ada, Tester\nAda, Tester\n");
}

#[test]
fn a_protected_branch_and_a_missing_key_change_nothing() {
    let stage = stage();
    completed_task(&stage, "one", "a");
    let before = repository(&stage);
    let protect = "test \"$1\" = prepared || exit 0\n\
                   grep -q ' refs/heads/main$' && { echo main is protected >&2; exit 1; }\nexit 0";
    install_hook(&stage, "reference-transaction", protect);
    for way in [&["merge", "one"][..], &["merge", "one", "--squash"], &["merge", "one", "--ff"]] {
        let refusal = stage.refused(way);
        assert!(
            refusal.contains("main is protected") && refusal.contains("nothing was changed"),
            "{refusal}"
        );
        assert_eq!((repository(&stage), stage.status("one")), (before.clone(), "completed".to_owned()));
    }
    fs::remove_file(stage.repo().join(".git/hooks/reference-transaction")).expect("it is there");
    // Git calls it like `ssh-keygen -Y sign`.
    let signer = stage.home().join("signer");
    let sign = "#!/bin/sh\nfor file; do :; done\ntest -e \"$KEY\" || { echo no key >&2; exit 1; }\n\
                printf -- '-----BEGIN SSH SIGNATURE-----\\nx\\n-----END SSH SIGNATURE-----\\n' > \"$file.sig\"\n";
    let key = stage.home().join("key");
    stage.write_program(&signer, sign.replace("$KEY", &key.display().to_string()).as_bytes());
    let settings = [
        ("gpg.format", "ssh".to_owned()),
        ("gpg.ssh.program", signer.display().to_string()),
        ("user.signingKey", key.display().to_string()),
        ("commit.gpgSign", "true".to_owned()),
    ];
    for (name, value) in settings {
        stage.git(&stage.repo(), &["config", name, &value]);
    }
    let refusal = stage.refused(&["merge", "one"]);
    assert!(refusal.contains("no key") && refusal.contains("nothing was changed"), "{refusal}");
    assert_eq!((repository(&stage), stage.status("one")), (before, "completed".to_owned()));
    fs::write(&key, "").expect("room");
    stage.run(["merge", "one"]).ok();
    let commit = stage.git(&stage.repo(), &["cat-file", "-p", "main"]);
    assert!(commit.contains("BEGIN SSH SIGNATURE"), "{commit}");
}

#[test]
fn accepting_twice_is_no_error() {
    let stage = stage();
    completed_task(&stage, "one", "a");
    assert_eq!(stage.run(["review", "one", "--accept"]).ok(), "1 one reviewed\n");
    let again = stage.run(["review", "one", "--accept"]);
    assert_eq!((again.code, again.stdout.as_str()), (0, "1 one reviewed\n"), "{again}");
    assert!(again.stderr.contains("it was already accepted"), "{again}");
}

#[test]
fn a_hook_that_fails_stops_a_merge() {
    let stage = stage();
    completed_task(&stage, "one", "a");
    install_hook(&stage, "pre-merge-commit", "echo not on fridays >&2; exit 1");
    let before = repository(&stage);
    let refusal = stage.refused(&["merge", "one"]);
    assert!(refusal.contains("not on fridays"), "{refusal}");
    assert_eq!((repository(&stage), stage.status("one")), (before, "completed".to_owned()));
}

/// Kills the daemon while a hook blocks the merge, and returns once the next one has answered.
fn kill_during_merge(stage: &Stage, hook: &str, condition: &str) {
    let (held, go) = (stage.home().join("held"), stage.home().join("go"));
    install_hook(
        stage,
        hook,
        &format!(
            "{condition} || exit 0\ntest -e '{go}' && exit 0\ntouch '{held}'\n\
             while ! test -e '{go}'; do sleep 0.05; done",
            go = go.display(),
            held = held.display()
        ),
    );
    std::thread::scope(|scope| {
        let merging = scope.spawn(|| stage.run(["merge", "one"]));
        stage.eventually("the hook holds the merge", SOON, || held.exists().then_some(()));
        let busy = stage.refused(&["start", "one"]);
        assert!(busy.contains("task 1 is being merged"), "{busy}");
        assert!(stage.refused(&["rm", "one", "--discard"]).contains("task 1 is being merged"));
        stage.kill_daemon();
        assert_eq!(merging.join().expect("no panic").code, 1);
    });
    stage.listing();
    fs::write(&go, "").expect("room");
}

fn check_unchanged_and_mergeable(hook: &str, condition: &str) {
    let stage = stage();
    completed_task(&stage, "one", "a");
    let before = repository(&stage);
    kill_during_merge(&stage, hook, condition);
    assert_eq!(repository(&stage), before);
    assert_eq!(stage.status("one"), "completed");
    assert!(stage.run(["ls"]).ok().contains("merge interrupted: undone"));
    let events = fs::read_to_string(stage.state().join("events.jsonl")).expect("events are kept");
    assert_eq!(events.lines().filter(|line| line.contains("\"MergeTakenBack\"")).count(), 1);
    let merged = stage.run(["merge", "one"]);
    assert!(merged.code == 0 && merged.stderr.contains("an earlier merge was interrupted"), "{merged}");
    assert_eq!(stage.status("one"), "merged");
    assert!(!stage.run(["ls"]).ok().contains("merge interrupted"));
    assert!(stage.repo().join("a").exists());
}

#[test]
fn a_daemon_killed_during_the_trial_merge_changes_nothing() {
    check_unchanged_and_mergeable("pre-merge-commit", "true");
}

#[test]
fn a_daemon_killed_while_it_updates_the_checkout_restores_it() {
    let moves_main = "test \"$1\" = prepared && grep -q ' refs/heads/main$'";
    check_unchanged_and_mergeable("reference-transaction", moves_main);
}

#[test]
fn a_daemon_killed_after_the_branch_moved_has_merged_the_task() {
    let stage = stage();
    completed_task(&stage, "one", "a");
    // Git also calls it for the trial merge in the separate worktree, which is on no branch.
    kill_during_merge(&stage, "post-merge", "test \"$(git rev-parse --abbrev-ref HEAD)\" = main");
    assert_eq!(stage.status("one"), "merged");
    assert_eq!(log(&stage, "main")[0], "Merge agency/1-one into main");
    assert_eq!(stage.git(&stage.repo(), &["status", "--porcelain"]), "");
    assert!(stage.task_file("1-one").contains("status: merged"));
    let spent = stage.run(["gc", "--dry-run", "--json"]).json();
    assert_eq!(spent["tasks"][0]["reason"], "merged into main");
    let events = fs::read_to_string(stage.state().join("events.jsonl")).expect("events are kept");
    assert!(events.contains("\"Merged\"") && !events.contains("MergeTakenBack"), "{events}");
}

#[test]
fn a_sync_that_begins_during_a_removal_keeps_its_workspace() {
    let stage = stage();
    put(&stage.repo().join(".gitattributes"), "slow filter=slow\n");
    put(&stage.repo().join("slow"), "slow\n");
    commit(&stage, &stage.repo(), "slow");
    stage.play("one", "ask ready?");
    stage.run(["stop", "one"]).ok();
    put(&stage.repo().join("base"), "base\n");
    commit(&stage, &stage.repo(), "base");
    let file = |name: &str| stage.home().join(name);
    let hold = |at: &str| {
        let (held, go) = (file(&format!("{at}-held")), file(&format!("{at}-go")));
        format!("touch '{}'; while ! test -e '{}'; do sleep 0.05; done", held.display(), go.display())
    };
    stage.git(&stage.repo(), &["config", "filter.slow.clean", &format!("{}; cat", hold("look"))]);
    let moves = "test \"$1\" = prepared && grep -q refs/heads/agency/1-one || exit 0";
    install_hook(&stage, "reference-transaction", &format!("{moves}\n{}", hold("sync")));
    // A new file with the same content, so that git must read it.
    put(&stage.worktree("1-one").join("slow"), "slow\n");
    std::thread::scope(|scope| {
        let removing = scope.spawn(|| stage.run(["rm", "one"]));
        stage.eventually("the removal looks", SOON, || file("look-held").exists().then_some(()));
        // When the daemon refuses one of them, the other one has begun.
        let syncs = [(); 2].map(|()| scope.spawn(|| stage.run(["sync", "one"])));
        let is_begun = || syncs.iter().any(|sync| sync.is_finished()).then_some(());
        stage.eventually("a sync has begun", SOON, is_begun);
        put(&file("look-go"), "");
        let refusal = crate::stage::refused(removing.join().expect("no panic"));
        assert!(refusal.contains("task 1 is being synced"), "{refusal}");
        put(&file("sync-go"), "");
        let codes = syncs.map(|sync| sync.join().expect("no panic").code);
        assert_eq!(codes.iter().sum::<i32>(), 1, "{codes:?}");
    });
    assert!(stage.worktree("1-one").join("base").exists());
}

#[test]
fn sync_brings_the_bases_commits_in() {
    let stage = stage();
    stage.configure(NO_SILENCE);
    completed_task(&stage, "one", "a");
    assert_eq!(stage.run(["sync", "one"]).ok(), "no new commits in main\n");
    put(&stage.repo().join("b"), "b\n");
    commit(&stage, &stage.repo(), "base");
    let worktree = stage.worktree("1-one");
    put(&worktree.join("uncommitted"), "x\n");
    let synced = stage.run(["sync", "one", "--json"]).json();
    Schema::of("sync").check(&synced);
    assert_eq!((synced["commits"].as_u64(), synced["base"].as_str()), (Some(1), Some("main")));
    for file in ["a", "b", "uncommitted"] {
        assert!(worktree.join(file).exists(), "{file} is there");
    }
    assert_eq!(log(&stage, "agency/1-one"), ["work of one", "base", "first"]);

    let pause = agency_testkit::Pause::at(stage.home().join("pause"));
    stage.play("busy", &format!("say busy; await {}; ask more>", pause.path().display()));
    stage.wait_state("busy", "running (kernel)");
    let refusal = stage.refused(&["sync", "busy"]);
    assert!(
        refusal.contains("cannot sync task 2-busy") && refusal.contains("the agent of task 2 is at work"),
        "{refusal}"
    );
    pause.release();
}

fn conflicts_of(stage: &Stage, slug: &str) -> Vec<(String, Vec<String>)> {
    let task = stage.task(slug);
    let conflicts = task["conflicts"].as_array().cloned().unwrap_or_default();
    let files = |conflict: &serde_json::Value| {
        let files = conflict["files"].as_array().expect("files");
        files.iter().map(|file| file.as_str().expect("a path").to_owned()).collect()
    };
    conflicts
        .iter()
        .map(|conflict| (conflict["with"].as_str().expect("a name").to_owned(), files(conflict)))
        .collect()
}

fn with(name: &str) -> Vec<(String, Vec<String>)> {
    vec![(name.to_owned(), vec!["README.md".to_owned()])]
}

#[test]
fn conflicts_between_workspaces_are_listed() {
    let stage = stage();
    let nothing = stage.run(["conflicts"]).ok();
    assert_eq!(nothing, "no conflicts\n");
    for slug in ["one", "two", "three"] {
        stage.play(slug, "ask ready?");
    }
    for (name, text) in [("1-one", "# one\n"), ("2-two", "# two\n")] {
        put(&stage.worktree(name).join("README.md"), text);
    }
    put(&stage.worktree("3-three").join("other"), "x\n");
    // The daemon finds them in the background, once an agent is idle.
    stage.run(["stop", "one"]).ok();
    stage.eventually("the collision is seen", SOON, || {
        (conflicts_of(&stage, "one") == with("2-two")).then_some(())
    });
    assert_eq!(conflicts_of(&stage, "two"), with("1-one"));
    assert_eq!(conflicts_of(&stage, "three"), []);
    let list = stage.run(["ls"]).ok();
    assert!(list.contains("CONFLICTS") && list.contains("⚔ 2-two: README.md"), "{list}");
    let events = fs::read_to_string(stage.state().join("events.jsonl")).expect("events are kept");
    assert_eq!(events.lines().filter(|line| line.contains("\"Conflicts\"")).count(), 1, "{events}");

    let found = stage.run(["conflicts", "--json"]).json();
    Schema::of("conflicts").check(&found);
    assert_eq!(found["conflicts"].as_array().map(Vec::len), Some(1));
    put(&stage.repo().join("README.md"), "# base\n");
    commit(&stage, &stage.repo(), "base");
    let table = stage.run(["conflicts"]).ok();
    assert!(
        table.contains("1-one  main") && table.contains("2-two  main") && table.contains("1-one  2-two"),
        "{table}"
    );

    put(&stage.worktree("2-two").join("README.md"), "# scratch\n");
    stage.run(["rm", "one", "--discard"]).ok();
    assert!(stage.run(["conflicts"]).ok().starts_with("no conflicts\n"));
    assert_eq!(conflicts_of(&stage, "two"), []);
    assert!(!stage.run(["ls"]).ok().contains("CONFLICTS"));
}

/// An editor that changes the review file with this script of `sed`.
fn editor(stage: &Stage, name: &str, script: &str) -> std::path::PathBuf {
    let path = stage.home().join(name);
    stage.write_program(&path, format!("#!/bin/sh\nexec sed -i '{script}' \"$1\"\n").as_bytes());
    path
}

fn start_review(stage: &Stage, editor: &Path) -> agency_testkit::Pty {
    let mut reviewing = stage.agency(["review", "one"]);
    reviewing.env("VISUAL", editor);
    agency_testkit::Pty::spawn(reviewing, 100, 24)
}

#[test]
fn review_remarks_go_to_the_agent_as_one_message_and_good_work_is_accepted() {
    let stage = stage();
    completed_task(&stage, "one", "README.md");
    let editing = editor(&stage, "remarks", "/^+one$/a please explain\\nin a sentence");
    let mut terminal = start_review(&stage, &editing);
    terminal.wait_for("1 remark queued as one message; the agent gets it after `agency start one`");
    assert_eq!(terminal.wait_exit().code(), Some(0), "{terminal}");
    let queue = stage.run(["queue", "one", "--json"]).json();
    let texts: Vec<&str> = queue["queued"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|entry| entry["text"].as_str())
        .collect();
    let wanted = "I have reviewed your work. Please address these remarks:\n\n\
                  README.md:1\n> one\nplease explain\nin a sentence";
    assert_eq!(texts, [wanted]);
    assert_eq!(stage.status("one"), "completed");

    let mut terminal = start_review(&stage, &editor(&stage, "nothing", ""));
    terminal.wait_for("Accept the work of 1-one? [y/N]");
    terminal.send("y\n");
    terminal.wait_for("1 one reviewed");
    assert_eq!(terminal.wait_exit().code(), Some(0), "{terminal}");
    assert!(stage.run(["review", "one"]).ok().contains("+one\n"), "without a terminal it is shown");
    let refusal = stage.refused(&["merge", "one"]);
    assert!(refusal.contains("has not reached its agent"), "{refusal}");
    stage.run(["queue", "drop", "one"]).ok();
    stage.run(["merge", "one"]).ok();
    assert!(stage.refused(&["review", "one", "--accept"]).contains("cannot go from merged to reviewed"));

    stage.run(["new", "idea", "--draft", "-m", "x"]).ok();
    assert!(stage.refused(&["review", "idea", "--accept"]).contains("cannot go from draft to reviewed"));
}
