//! Tasks in a jj repository: base, merge, removal and undo, turns, crashes.

use std::fs;
use std::path::{Path, PathBuf};

use agency_testkit::CommandOutput;

use crate::conversations::{new_conversation, wait_said, wait_why};
use crate::stage::{SOON, Stage};
use crate::work_diff::put;

/// A colocated repository whose user is on an empty change on top of `main`.
fn stage() -> Stage {
    let stage = Stage::new();
    put(&stage.home().join(".jjconfig.toml"), "user.name = 'Ada'\nuser.email = 'ada@example.org'\n");
    // This wrapper stops at the step that `hold` in the home names, until `go` exists.
    let script = format!(
        "#!/bin/sh\nheld=\"$(cat \"$HOME/hold\" 2>/dev/null)\"\n\
         hold() {{ touch \"$HOME/held\"; while ! test -e \"$HOME/go\"; do sleep 0.05; done; }}\n\
         case \"$held $*\" in \"before \"*\" op integrate \"*) hold;; esac\n\
         '{jj}' \"$@\"\ncode=$?\n\
         case \"$held $*\" in \"after \"*\" op integrate \"*) hold;; esac\n\
         exit $code\n",
        jj = real_jj().display()
    );
    stage.write_program(&stage.repo().with_file_name("bin").join("jj"), script.as_bytes());
    jj(&stage, &stage.repo(), &["git", "init", "--colocate"]);
    stage
}

/// The jj of this machine, or the one that `scripts/tools` installs.
fn real_jj() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin");
    let found = std::env::split_paths(&path).chain([tools]).map(|dir| dir.join("jj")).find(|jj| jj.exists());
    found.expect("jj is needed: scripts/tools installs it below target/tools")
}

fn jj(stage: &Stage, dir: &Path, args: &[&str]) -> String {
    let mut jj = stage.command(stage.repo().with_file_name("bin").join("jj"));
    jj.current_dir(dir).args(["--no-pager", "--color=never"]).args(args);
    CommandOutput::of(jj, b"").ok()
}

/// The user's own change, its parent, and its files.
fn own_change(stage: &Stage) -> String {
    let at = "change_id ++ ' ' ++ commit_id ++ ' ' ++ parents.map(|p| p.commit_id())";
    jj(stage, &stage.repo(), &["log", "--no-graph", "-r", "@", "-T", at])
}

/// All commits with their bookmarks.
fn all(stage: &Stage) -> String {
    let shown = "commit_id ++ ' ' ++ local_bookmarks ++ ' ' ++ working_copies ++ '\\n'";
    jj(stage, &stage.repo(), &["--ignore-working-copy", "log", "--no-graph", "-r", "all()", "-T", shown])
}

fn on_main(stage: &Stage) -> String {
    jj(stage, &stage.repo(), &["--ignore-working-copy", "file", "list", "-r", "main"])
}

/// A completed task without an agent, which has written a file.
fn completed_task(stage: &Stage, slug: &str, file: &str) -> PathBuf {
    let task = stage.play(slug, "ask ready?");
    let path = stage.worktree(&format!("{}-{slug}", task["id"]));
    put(&path.join(file), &format!("{slug}\n"));
    stage.run(["complete", slug]).ok();
    stage.run(["stop", slug]).ok();
    path
}

#[test]
fn a_task_starts_on_the_users_change_and_merges_without_it() {
    let stage = stage();
    put(&stage.repo().join("mine"), "in progress\n");
    let path = completed_task(&stage, "one", "own");
    assert_eq!(fs::read_to_string(path.join("mine")).expect("it stands on it"), "in progress\n");
    assert!(!stage.run(["diff", "one"]).ok().contains("mine"));
    let (own, before) = (own_change(&stage), all(&stage));
    let refusal = stage.refused(&["merge", "one", "--commit"]);
    for words in ["main would also get", "your own working copy @", "nothing was changed", "`jj commit`"] {
        assert!(refusal.contains(words), "{words:?} is not in {refusal}");
    }
    assert_eq!(all(&stage), before);
    let merged = stage.run(["merge", "one", "--commit", "--rebase"]);
    assert!(merged.stderr.contains("your @ did not move"), "{merged}");
    assert!(merged.stderr.contains("jj new main"), "{merged}");
    assert_eq!((own_change(&stage), on_main(&stage)), (own, "README.md\nown\n".to_owned()));
    stage.run(["rm", "one"]).ok();
}

#[test]
fn a_refused_merge_leaves_the_work_as_it_was() {
    let stage = stage();
    completed_task(&stage, "one", "README.md");
    put(&stage.repo().join("README.md"), "# theirs\n");
    jj(&stage, &stage.repo(), &["commit", "-m", "theirs"]);
    jj(&stage, &stage.repo(), &["bookmark", "set", "main", "-r", "@-"]);
    stage.run(["diff", "one"]).ok();
    let before = all(&stage);
    for (way, words) in [
        (&["--commit"][..], "README.md conflicts with main"),
        (&["--commit", "--into", "nowhere"], "there is no bookmark `nowhere` to merge into"),
    ] {
        let refusal = stage.refused(&[&["merge", "one"], way].concat());
        assert!(refusal.contains(words), "{words:?} is not in {refusal}");
        assert_eq!(all(&stage), before);
    }
    assert_eq!(stage.status("one"), "completed");

    let refusal = stage.refused(&["merge", "one", "--rebase"]);
    assert!(refusal.contains("1 file in .agency/worktrees/1-one is not committed"), "{refusal}");
    assert!(refusal.contains("README.md conflicts with main"), "{refusal}");
    jj(&stage, &stage.worktree("1-one"), &["commit", "-m", "work of one"]);
    let refusal = stage.refused(&["merge", "one", "--rebase"]);
    let way = refusal.split("commit: ").nth(1).and_then(|rest| rest.split("; or let the agent: ").next());
    let told = refusal.split("; or let the agent: ").nth(1).and_then(|rest| rest.split(" && ").next());
    let own = own_change(&stage);
    for words in [way, told] {
        let mut shell = stage.command("sh");
        shell.args(["-c", words.expect("a way")]).current_dir(stage.repo());
        assert!(shell.output().expect("a shell").status.success(), "{refusal}");
    }
    assert_eq!(own_change(&stage), own, "only the task's own commits are rebased");
}

#[test]
fn a_merge_needs_a_bookmark() {
    let stage = stage();
    jj(&stage, &stage.repo(), &["bookmark", "forget", "main"]);
    completed_task(&stage, "one", "own");
    let refusal = stage.refused(&["merge", "one", "--commit"]);
    assert!(refusal.contains("there is no bookmark below your @"), "{refusal}");
    assert!(refusal.contains("jj bookmark create main"), "{refusal}");
    jj(&stage, &stage.repo(), &["bookmark", "create", "main", "-r", "@-"]);
    stage.run(["merge", "one", "--commit"]).ok();
    assert_eq!(on_main(&stage), "README.md\nown\n");
}

#[test]
fn the_hint_about_git_worktrees_works() {
    let stage = stage();
    let said = stage.run(["new", "one", "--no-attach", "--", "fake-agent", "-c", "ask ready?"]);
    let has_git = stage.worktree("1-one").join(".git").exists();
    assert_eq!(said.stderr.contains("agency rm 1-one, then agency new with --vcs git"), !has_git, "{said}");
    let refusal = stage.refused(&["new", "two", "--vcs", "git", "--no-attach", "--", "fake-agent"]);
    assert!(refusal.contains("remove those tasks first"), "{refusal}");
    stage.run(["stop", "one"]).ok();
    stage.run(["rm", "1-one"]).ok();
    stage.run(["new", "two", "--vcs", "git", "--no-attach", "--", "fake-agent", "-c", "ask ready?"]).ok();
    assert!(stage.worktree("2-two").join(".git").is_file());
}

#[test]
fn changes_by_hand_are_found_and_known_to_the_next_daemon() {
    let stage = stage();
    let marks = |slug: &str| {
        let conflicts = stage.task(slug)["conflicts"].as_array().cloned().unwrap_or_default();
        conflicts.iter().map(|one| one["with"].as_str().unwrap_or("").to_owned()).collect::<Vec<_>>()
    };
    for slug in ["one", "two"] {
        stage.play(slug, "ask ready?");
        stage.run(["stop", slug]).ok();
    }
    // No process runs jj there, and the agent is idle.
    for (name, text) in [("1-one", "# one\n"), ("2-two", "# two\n")] {
        put(&stage.worktree(name).join("README.md"), text);
    }
    stage.eventually("the collision is seen", SOON, || (marks("one") == ["2-two"]).then_some(()));
    stage.kill_daemon();
    assert_eq!((marks("one"), marks("two")), (vec!["2-two".to_owned()], vec!["1-one".to_owned()]));
    put(&stage.worktree("2-two").join("README.md"), "# one\n");
    stage.eventually("they agree again", SOON, || marks("one").is_empty().then_some(()));
}

#[test]
fn a_removed_task_comes_back_with_its_commits_and_files() {
    let stage = stage();
    let path = completed_task(&stage, "one", "own");
    jj(&stage, &path, &["commit", "-m", "work of one"]);
    put(&path.join("more"), "not committed\n");
    let refusal = stage.refused(&["rm", "one"]);
    assert!(refusal.contains("1 file") && refusal.contains("1 commit"), "{refusal}");
    let own = own_change(&stage);
    stage.run(["rm", "one", "--discard"]).ok();
    assert!(!path.exists());
    assert!(!jj(&stage, &stage.repo(), &["workspace", "list"]).contains("1-one"));
    stage.run(["undo"]).ok();
    for (file, text) in [("own", "one\n"), ("more", "not committed\n")] {
        assert_eq!(fs::read_to_string(path.join(file)).expect("it is back"), text);
    }
    assert!(jj(&stage, &path, &["log", "--no-graph", "-r", "@-"]).contains("work of one"));
    assert_eq!(own_change(&stage), own);
}

#[test]
fn each_turn_is_kept_listed_and_can_be_taken_back() {
    let stage = stage();
    new_conversation(&stage, "fix", "go", "prompt; say On it.; end");
    wait_why(&stage, "fix", "finished");
    let path = stage.worktree("1-fix");
    let kept = || stage.run(["turns", "fix", "--json"]).json()["turns"].as_array().map_or(0, Vec::len);
    assert_eq!(kept(), 0);
    let turn = |text: &str, number: usize| {
        stage.run(["send", "fix", text]).ok();
        wait_said(&stage, "fix", &format!("echo: {text}"));
        wait_why(&stage, "fix", "finished");
        assert_eq!(kept(), number, "{text}");
    };
    put(&path.join("a"), "1\n");
    turn("one", 1);
    jj(&stage, &path, &["commit", "-m", "the first turn"]);
    put(&path.join("b"), "2\n");
    turn("two", 2);
    let shown = stage.run(["diff", "fix", "--turn", "2"]).ok();
    assert!(shown.contains("b/b") && !shown.contains("b/a"), "{shown}");
    let own = own_change(&stage);
    let said = stage.run(["undo", "--turn", "fix"]).ok();
    assert!(said.starts_with("restored the files of 1-fix to the state after turn 1\n"), "{said}");
    assert!(path.join("a").exists() && !path.join("b").exists());
    let id = said.trim_end().rsplit(' ').next().expect("an id").to_owned();
    stage.run(["undo", &id]).ok();
    assert!(path.join("a").exists() && path.join("b").exists());
    assert_eq!(own_change(&stage), own);
}

#[test]
fn a_workspace_whose_commit_was_rewritten_is_updated() {
    let stage = stage();
    put(&stage.repo().join("mine"), "1\n");
    let path = completed_task(&stage, "one", "own");
    stage.run(["diff", "one"]).ok();
    put(&stage.repo().join("mine"), "2\n");
    jj(&stage, &stage.repo(), &["describe", "-m", "mine"]);
    assert!(stage.run(["diff", "one"]).ok().contains("own"));
    assert_eq!(fs::read_to_string(path.join("mine")).expect("still there"), "2\n");
}

/// Kills the daemon during the merge, and returns once the next one has answered.
fn kill_during_merge(stage: &Stage, when: &str) {
    let (held, go) = (stage.home().join("held"), stage.home().join("go"));
    put(&stage.home().join("hold"), when);
    std::thread::scope(|scope| {
        let merging = scope.spawn(|| stage.run(["merge", "one", "--commit", "--squash"]));
        stage.eventually("jj holds the merge", SOON, || held.exists().then_some(()));
        assert!(stage.refused(&["start", "one"]).contains("task 1 is being merged"));
        stage.kill_daemon();
        assert_eq!(merging.join().expect("no panic").code, 1);
    });
    stage.listing();
    put(&go, "");
}

#[test]
fn a_daemon_killed_before_the_last_operation_merges_nothing_and_a_retry_works() {
    let stage = stage();
    completed_task(&stage, "one", "own");
    let own = own_change(&stage);
    kill_during_merge(&stage, "before");
    assert_eq!((stage.status("one").as_str(), on_main(&stage).as_str()), ("completed", "README.md\n"));
    stage.run(["merge", "one", "--squash"]).ok();
    assert_eq!((stage.status("one").as_str(), on_main(&stage).as_str()), ("merged", "README.md\nown\n"));
    assert_eq!(own_change(&stage), own);
}

#[test]
fn a_daemon_killed_after_the_last_operation_has_merged_the_task() {
    let stage = stage();
    completed_task(&stage, "one", "own");
    let own = own_change(&stage);
    kill_during_merge(&stage, "after");
    assert_eq!((stage.status("one").as_str(), on_main(&stage).as_str()), ("merged", "README.md\nown\n"));
    let branch = stage.git(&stage.repo(), &["log", "-1", "--format=%T", "main"]);
    let commit = jj(&stage, &stage.repo(), &["log", "--no-graph", "-r", "main", "-T", "commit_id"]);
    assert_eq!(branch, stage.git(&stage.repo(), &["log", "-1", "--format=%T", commit.trim()]));
    assert_eq!(own_change(&stage), own);
    stage.run(["rm", "one"]).ok();
}

#[test]
fn a_daemon_killed_after_a_merge_of_two_tips_has_merged_the_task() {
    let stage = stage();
    let path = completed_task(&stage, "one", "own");
    jj(&stage, &path, &["commit", "-m", "one"]);
    // The branch contains only one of them.
    jj(&stage, &path, &["bookmark", "set", "agency/1-one", "-r", "@-"]);
    jj(&stage, &path, &["new", "@--", "-m", "other"]);
    put(&path.join("other"), "other\n");
    jj(&stage, &path, &["new", "description(exact:\"one\\n\")", "description(exact:\"other\\n\")"]);
    kill_during_merge(&stage, "after");
    assert_eq!(
        (stage.status("one").as_str(), on_main(&stage).as_str()),
        ("merged", "README.md\nother\nown\n")
    );
}

#[test]
fn undo_takes_a_merge_back() {
    let stage = stage();
    completed_task(&stage, "one", "own");
    let (files, mine) = (on_main(&stage), own_change(&stage));
    for way in [&["--commit"][..], &["--squash"], &["--rebase"]] {
        stage.run([&["merge", "one"], way].concat()).ok();
        assert!(on_main(&stage).contains("own"));
        assert_eq!(stage.run(["undo"]).ok(), "undid the merge of 1-one (completed)\n");
        assert_eq!((on_main(&stage), own_change(&stage)), (files.clone(), mine.clone()));
        assert_eq!(stage.status("one"), "completed");
    }
    stage.run(["merge", "one"]).ok();
    jj(&stage, &stage.repo(), &["new", "main", "-m", "more"]);
    let refusal = stage.refused(&["undo", "one"]);
    assert!(refusal.contains("has the merge, too"), "{refusal}");
    assert_eq!(stage.status("one"), "merged");
}
