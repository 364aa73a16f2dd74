//! Commands in a task's workspace, and the names of tasks.

use std::time::{Duration, Instant};

use agency_testkit::CommandOutput;

use crate::stage::{SOON, Stage, refused};

#[test]
fn a_task_is_named_by_id_slug_both_or_the_beginning_of_its_slug() {
    let stage = Stage::new();
    for slug in ["fix-login", "fix-logout", "write-docs"] {
        stage.play(slug, "ask ready?");
    }
    for name in ["1", "fix-login", "1-fix-login"] {
        assert_eq!(stage.run(["path", name]).ok(), format!("{}\n", stage.worktree("1-fix-login").display()));
    }
    assert_eq!(stage.run(["path", "w"]).ok(), format!("{}\n", stage.worktree("3-write-docs").display()));
    let refusal = stage.refused(&["stop", "fix"]);
    assert!(refusal.starts_with("Error: `fix` could be one of 2 tasks\n"), "{refusal}");
    assert!(refusal.contains("Hint: "), "{refusal}");
    let refusal = stage.refused(&["stop", "nothing-like-it"]);
    assert!(refusal.starts_with("Error: no task is called `nothing-like-it`\n"), "{refusal}");
    assert_eq!(stage.keepers().len(), 3, "no agent was stopped");
}

#[test]
fn exec_runs_in_the_workspace_with_the_tasks_variables_and_passes_everything_on() {
    let stage = Stage::new();
    stage.run(["new", "one", "-m", "the text", "--", "fake-agent", "-c", "ask ready?"]).ok();
    let line = r#"pwd; echo "$AGENCY_TASK_ID $AGENCY_SLUG $AGENCY_BODY"; cat; echo oops >&2; exit 7"#;
    let ran = CommandOutput::of(stage.agency(["exec", "one", "--", "sh", "-c", line]), b"input");
    let expected = format!("{}\n1 one the text\ninput", stage.worktree("1-one").display());
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (7, expected.as_str(), "oops\n"),
        "{ran}"
    );
    let refusal = stage.refused(&["exec", "one", "--", "no-such-program-here"]);
    assert!(refusal.starts_with("Error: cannot run no-such-program-here\nCaused by: "), "{refusal}");
}

#[test]
fn run_calls_the_agents_own_command_and_passes_its_answer_on() {
    let stage = Stage::with_config(
        r#"
        [agents.oracle]
        start = ["fake-agent", "-c", "ask ready?"]
        run = ["fake-agent", "-c", "args; cwd; env AGENCY_MESSAGE; exit 4", "--ask", "$AGENCY_MESSAGE"]
        "#,
    );
    stage.run(["new", "one", "--agent", "oracle"]).ok();
    let ran = stage.run(["run", "one", "what", "now?"]);
    let expected =
        format!("arg 1: --ask\narg 2: what now?\n{}\nwhat now?\n", stage.worktree("1-one").display());
    assert_eq!((ran.code, &ran.stdout), (4, &expected), "{ran}");
    assert_eq!(stage.logs("one").trim(), "ready?", "the agent in the terminal was not disturbed");
    stage.play("two", "ask ready?");
    assert_eq!(stage.run(["run", "two", "echo a shell; exit 3"]).code, 3);
}

#[test]
fn run_refuses_an_agent_without_such_a_command() {
    let stage = Stage::with_config("[agents.mute]\nstart = [\"fake-agent\", \"-c\", \"ask ready?\"]\n");
    stage.run(["new", "one", "--agent", "mute"]).ok();
    let refusal = stage.refused(&["run", "one", "hello"]);
    assert!(refusal.contains("has no `run` command\nHint: set `run` under [agents.mute]"), "{refusal}");
}

#[test]
fn shell_starts_the_users_shell_in_the_workspace() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    let mut terminal = stage.on_terminal(["shell", "one"]);
    terminal.send("pwd; echo slug=$AGENCY_SLUG; exit 5\n");
    terminal.wait_for(&format!("{}\r\nslug=one", stage.worktree("1-one").display()));
    assert_eq!(terminal.wait_exit().code(), Some(5), "{terminal}");
    assert!(stage.agent("one").is_alive());
}

#[test]
fn a_draft_has_no_workspace() {
    let stage = Stage::new();
    stage.run(["new", "draft", "--draft", "-m", "x"]).ok();
    for args in [
        &["path", "draft"][..],
        &["shell", "draft"],
        &["exec", "draft", "--", "true"],
        &["run", "draft", "hi"],
    ] {
        let refusal = stage.refused(args);
        assert!(
            refusal.contains("has no workspace yet") && refusal.contains("Hint: agency start 1"),
            "{refusal}"
        );
    }
}

#[test]
fn a_command_inside_a_worktree_uses_its_project() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    let inside = |args: &[&str]| {
        let mut agency = stage.agency(args);
        agency.current_dir(stage.worktree("1-one"));
        CommandOutput::of(agency, b"")
    };
    assert_eq!(inside(&["ls", "--json"]).json()["tasks"][0]["slug"], "one");
    assert_eq!(inside(&["new", "two", "--", "fake-agent", "-c", "ask q"]).ok(), "2 two running\n");
    assert!(stage.worktree("2-two").is_dir());
    assert!(!stage.worktree("1-one").join(".agency").exists());
}

#[test]
fn projects_are_separate_and_can_be_listed_together() {
    let stage = Stage::new();
    let other = stage.home().join("other");
    std::fs::create_dir(&other).expect("room");
    stage.make_repository(&other);
    stage.play("here", "ask ready?");
    let there = |args: &[&str]| {
        let mut agency = stage.agency(args);
        agency.current_dir(&other);
        CommandOutput::of(agency, b"")
    };
    assert_eq!(there(&["new", "there", "--", "fake-agent", "-c", "ask q"]).ok(), "1 there running\n");
    assert!(refused(there(&["stop", "2"])).contains("no task is called `2`"));
    let slugs = |listing: serde_json::Value| -> Vec<String> {
        let tasks = listing["tasks"].as_array().expect("a list").clone();
        let mut slugs: Vec<String> =
            tasks.iter().map(|task| task["slug"].as_str().expect("a slug").to_owned()).collect();
        slugs.sort();
        slugs
    };
    assert_eq!(slugs(there(&["ls", "--json"]).json()), ["there"]);
    assert_eq!(slugs(stage.run(["ls", "--all", "--json"]).json()), ["here", "there"]);
    stage.kill_daemon();
    assert_eq!(
        slugs(stage.run(["ls", "--all", "--json"]).json()),
        ["here", "there"],
        "one daemon knows them all"
    );
}

#[test]
fn a_workspace_that_was_deleted_by_hand_comes_back_with_its_branch() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    let commit = "echo done > work && git add work && git commit -qm work";
    stage.run(["exec", "one", "--", "sh", "-c", commit]).ok();
    stage.run(["stop", "one"]).ok();
    std::fs::remove_dir_all(stage.worktree("1-one")).expect("ours");
    assert!(stage.refused(&["exec", "one", "--", "true"]).contains("agency start 1"));
    assert_eq!(stage.run(["start", "one"]).ok(), "1 one running\n");
    assert_eq!(stage.run(["exec", "one", "--", "cat", "work"]).ok(), "done\n");
}

#[test]
fn a_list_of_tasks_starts_no_git_process_for_workspaces_that_have_not_changed() {
    let stage = Stage::new();
    let calls = stage.home().join("calls");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let real = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.exists());
    let script = format!(
        "#!/bin/sh\necho \"$*\" >>'{}'\nexec '{}' \"$@\"\n",
        calls.display(),
        real.expect("git is needed").display()
    );
    stage.write_program(&stage.repo().with_file_name("bin").join("git"), script.as_bytes());
    for slug in ["one", "two", "three", "four"] {
        stage.play(slug, "ask ready?");
        stage.run(["stop", slug]).ok();
    }
    let count = || std::fs::read_to_string(&calls).unwrap_or_default().lines().count();
    // Each list opens the project, which is one process. A scan may start others when the list has been printed.
    let list = || stage.run(["ls"]).ok();
    // Longer than the pause between two scans. Files that were just written count as changed.
    let quiet = Duration::from_secs(5);
    stage.eventually("lists that start nothing else", Duration::from_secs(120), || {
        let (begun, before, mut lists) = (Instant::now(), count(), 0);
        while begun.elapsed() < quiet {
            list();
            lists += 1;
            if count() != before + lists {
                return None;
            }
        }
        Some(())
    });
    std::fs::write(stage.worktree("1-one").join("README.md"), "changed in place\n").expect("room");
    let (before, mut lists) = (count(), 0);
    stage.eventually("a look at the changed workspace", SOON, || {
        list();
        lists += 1;
        (count() > before + lists).then_some(())
    });
}
