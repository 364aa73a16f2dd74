//! A merge in one step: it names everything that stands in its way, asks once, and survives a kill at every step.

use std::fs;

use agency_testkit::{Pause, Pty};

use crate::json::Schema;
use crate::merging::{install_hook, log, repository};
use crate::stage::{SOON, Stage};
use crate::state_log::NO_SILENCE;
use crate::work_diff::{commit, put, stage};

/// A task whose agent is at its prompt and has left a file uncommitted.
fn task_at_its_prompt(stage: &Stage, slug: &str) {
    let task = stage.play(slug, "ask ready>");
    stage.wait_task(slug, "waits", |task| task["workspace_status"] == "needs_input");
    put(&stage.worktree(&format!("{}-{slug}", task["id"])).join(slug), "work\n");
}

/// A task whose agent is in the middle of its turn until the pause ends.
fn task_at_work(stage: &Stage, slug: &str) -> Pause {
    stage.configure(NO_SILENCE);
    let pause = Pause::at(stage.home().join("pause"));
    let task = stage.play(slug, &format!("say busy; await {}; ask more>", pause.path().display()));
    put(&stage.worktree(&format!("{}-{slug}", task["id"])).join(slug), "half\n");
    stage.wait_state(slug, "running (kernel)");
    pause
}

#[test]
fn a_refusal_names_every_obstacle_and_finish_removes_them() {
    let stage = stage();
    task_at_its_prompt(&stage, "one");
    let refusal = stage.refused(&["merge", "one"]);
    let words = [
        "cannot merge task 1-one",
        "its agent is at its prompt",
        "1 file in .agency/worktrees/1-one is not committed",
        "`agency merge 1-one --finish` stops its agent, commits its files, then merges",
    ];
    for words in words {
        assert!(refusal.contains(words), "{words:?} is not in {refusal}");
    }
    assert_eq!(stage.status("one"), "running");

    put(&stage.repo().join("README.md"), "# mine\n");
    let before = repository(&stage);
    for way in [&[][..], &["--finish"]] {
        let refusal = stage.refused(&[&["merge", "one"], way].concat());
        assert!(refusal.contains("with uncommitted changes: README.md"), "{refusal}");
        assert_eq!(refusal.contains("its agent is at its prompt"), way.is_empty(), "{refusal}");
    }
    let refusal = stage.refused(&["merge", "one", "--finish", "--into", "nowhere"]);
    assert!(refusal.contains("there is no local branch `nowhere`"), "{refusal}");
    assert_eq!((repository(&stage), stage.status("one")), (before, "running".to_owned()), "not even stopped");
    stage.git(&stage.repo(), &["checkout", "-q", "README.md"]);

    let merged = stage.run(["merge", "one", "--finish", "--json"]).json();
    Schema::of("merge").check(&merged);
    assert_eq!(
        (merged["stopped"].as_bool(), merged["task"]["status"].as_str()),
        (Some(true), Some("merged"))
    );
    assert!(stage.repo().join("one").exists() && stage.keepers().is_empty());
    let events = fs::read_to_string(stage.state().join("events.jsonl")).expect("events are kept");
    let steps = |status: &str| events.find(&format!("\"status\":\"{status}\"")).expect("a step");
    assert!(steps("completed") < steps("merged"), "{events}");
}

#[test]
fn a_task_that_is_not_in_the_way_of_anything_needs_no_label() {
    let stage = stage();
    task_at_its_prompt(&stage, "one");
    commit(&stage, &stage.worktree("1-one"), "work of one");
    stage.run(["stop", "one"]).ok();
    let merged = stage.run(["merge", "one"]);
    assert_eq!((merged.code, merged.stdout.as_str()), (0, "1 one merged\n"), "{merged}");
    assert!(merged.stderr.ends_with("next: agency rm one\n"), "{merged}");

    stage.play("two", "ask ready>");
    stage.run(["fail", "two"]).ok();
    assert!(stage.refused(&["merge", "two"]).contains("it is marked as failed"));
    stage.run(["new", "idea", "--draft", "-m", "x"]).ok();
    assert!(stage.refused(&["merge", "idea"]).contains("it was never started"));
}

#[test]
fn on_a_terminal_one_question_merges() {
    let stage = stage();
    task_at_its_prompt(&stage, "one");
    let mut merging = stage.agency(["merge", "one"]);
    merging.env("PAGER", "cat");
    let mut terminal = Pty::spawn(merging, 100, 24);
    let question = "Stop the agent, commit the files, mark the task as done and merge into main? [Y/n/diff]";
    terminal.wait_for("1-one:");
    terminal.wait_for("its agent is at its prompt");
    terminal.wait_for("1 file in .agency/worktrees/1-one is not committed");
    terminal.wait_for(question);
    terminal.send("n\n");
    assert_eq!(terminal.wait_exit().code(), Some(1), "{terminal}");
    assert_eq!(stage.status("one"), "running");

    let mut merging = stage.agency(["merge", "one"]);
    merging.env("PAGER", "cat").env("GIT_PAGER", "cat");
    let mut terminal = Pty::spawn(merging, 100, 24);
    terminal.wait_for(question);
    terminal.send("diff\n");
    terminal.wait_for("+work");
    terminal.send("\n");
    terminal.wait_for("1 one merged");
    assert_eq!(terminal.wait_exit().code(), Some(0), "{terminal}");
    assert_eq!(log(&stage, "main").len(), 3);
}

#[test]
fn an_agent_at_work_is_stopped_only_with_a_word_of_its_own() {
    let stage = stage();
    let _pause = task_at_work(&stage, "one");
    for way in [&[][..], &["--finish"]] {
        let refusal = stage.refused(&[&["merge", "one"], way].concat());
        assert!(refusal.contains("its agent is at work"), "{refusal}");
        assert!(refusal.contains("`agency merge 1-one --finish --interrupt` stops its agent"), "{refusal}");
    }
    let mut terminal = Pty::spawn(stage.agency(["merge", "one"]), 120, 24);
    terminal.wait_for("its agent is at work");
    terminal.wait_for("Stop the agent in the middle of its turn, commit the files");
    terminal.send("\n");
    assert_eq!(terminal.wait_exit().code(), Some(1), "an empty line is no: {terminal}");
    assert_eq!(stage.status("one"), "running");
    stage.run(["merge", "one", "--finish", "--interrupt"]).ok();
    assert_eq!(stage.status("one"), "merged");
}

#[test]
fn a_conflict_that_is_known_stops_no_agent() {
    let stage = stage();
    task_at_its_prompt(&stage, "readme");
    put(&stage.worktree("1-readme").join("README.md"), "# the task\n");
    put(&stage.repo().join("README.md"), "# the base\n");
    commit(&stage, &stage.repo(), "base");
    let refusal = stage.refused(&["merge", "readme", "--finish"]);
    assert!(refusal.contains("README.md conflicts with main"), "{refusal}");
    assert!(refusal.contains("nothing was changed") && refusal.contains("agency send 1-readme"), "{refusal}");
    assert_eq!(stage.status("readme"), "running");
}

#[test]
fn a_merge_that_fails_after_its_first_steps_names_them() {
    let stage = stage();
    task_at_its_prompt(&stage, "one");
    install_hook(&stage, "pre-commit", "echo no commits today >&2; exit 1");
    let refusal = stage.refused(&["merge", "one", "--finish"]);
    assert!(refusal.contains("no commits today"), "{refusal}");
    assert!(refusal.contains("its agent was stopped before the merge"), "{refusal}");
    assert!(refusal.contains("only its agent was stopped; "), "{refusal}");
    assert_eq!(stage.status("one"), "stopped");
    fs::remove_file(stage.repo().join(".git/hooks/pre-commit")).expect("it is there");

    stage.run(["start", "one"]).ok();
    stage.wait_task("one", "waits", |task| task["workspace_status"] == "needs_input");
    install_hook(&stage, "pre-merge-commit", "echo not on fridays >&2; exit 1");
    let refusal = stage.refused(&["merge", "one", "--finish"]);
    assert!(refusal.contains("only its agent was stopped and the commit was made; "), "{refusal}");
    assert!(refusal.contains("its files are committed in the workspace"), "{refusal}");
    assert_eq!(log(&stage, "main"), ["first"]);
}

/// Kills the daemon while this hook holds the merge, after the agent was stopped.
fn kill_while_a_hook_holds(hook: &str) {
    let stage = stage();
    task_at_its_prompt(&stage, "one");
    let (held, go) = (stage.home().join("held"), stage.home().join("go"));
    let script = format!(
        "test -e '{go}' && exit 0\ntouch '{held}'\nwhile ! test -e '{go}'; do sleep 0.05; done",
        go = go.display(),
        held = held.display()
    );
    install_hook(&stage, hook, &script);
    std::thread::scope(|scope| {
        let merging = scope.spawn(|| stage.run(["merge", "one", "--finish"]));
        stage.eventually("the hook holds the merge", SOON, || held.exists().then_some(()));
        assert!(stage.refused(&["start", "one"]).contains("task 1 is being merged"));
        stage.kill_daemon();
        assert_eq!(merging.join().expect("no panic").code, 1);
    });
    check_undone_and_merge_again(&stage, || put(&go, ""));
}

fn check_undone_and_merge_again(stage: &Stage, go_on: impl FnOnce()) {
    assert_eq!(stage.wait_status("one", "stopped")["status"], "stopped");
    assert_eq!(log(stage, "main"), ["first"]);
    assert!(stage.run(["ls"]).ok().contains("merge interrupted"));
    go_on();
    let merged = stage.run(["merge", "one", "--finish"]);
    assert!(merged.code == 0 && merged.stderr.contains("an earlier merge was interrupted"), "{merged}");
    assert_eq!(stage.status("one"), "merged");
    assert!(stage.repo().join("one").exists());
}

#[test]
fn a_daemon_killed_while_it_commits_has_merged_nothing() {
    kill_while_a_hook_holds("pre-commit");
}

#[test]
fn a_daemon_killed_while_it_merges_has_merged_nothing() {
    kill_while_a_hook_holds("pre-merge-commit");
}

#[test]
fn a_daemon_killed_while_it_stops_the_agent_has_merged_nothing() {
    let stage = stage();
    stage.configure("stop_grace = \"60s\"\n");
    stage.play("one", "ignore-term; ask ready>");
    stage.wait_task("one", "waits", |task| task["workspace_status"] == "needs_input");
    put(&stage.worktree("1-one").join("one"), "work\n");
    std::thread::scope(|scope| {
        let merging = scope.spawn(|| stage.run(["merge", "one", "--finish"]));
        stage.eventually("the daemon stops the agent", SOON, || {
            let refusal = stage.run(["start", "one"]).stderr;
            refusal.contains("task 1 is being merged").then_some(())
        });
        stage.kill_daemon();
        assert_eq!(merging.join().expect("no panic").code, 1);
    });
    stage.agent("one").kill();
    check_undone_and_merge_again(&stage, || ());
}

#[test]
fn a_conflict_of_a_sync_is_handed_to_the_agent() {
    let stage = stage();
    stage.play("one", "loop; ask more>; end");
    put(&stage.worktree("1-one").join("README.md"), "# the task\n");
    commit(&stage, &stage.worktree("1-one"), "work of one");
    put(&stage.repo().join("README.md"), "# the base\n");
    commit(&stage, &stage.repo(), "base");
    stage.wait_task("one", "waits", |task| task["workspace_status"] == "needs_input");
    assert!(stage.refused(&["sync", "one"]).contains("README.md conflicts with main"));
    let asked = "1 one: asked the agent to resolve: README.md conflicts with main\n";
    assert_eq!(stage.run(["sync", "one", "--agent"]).ok(), asked);
    stage.wait_printed("one", "Rebase your branch onto main");
    stage.run(["stop", "one"]).ok();
    assert_eq!(stage.run(["sync", "one", "--agent", "--merge"]).ok(), asked);
    assert_eq!(stage.status("one"), "running");
    stage.wait_printed("one", "Merge main into your branch");
}
