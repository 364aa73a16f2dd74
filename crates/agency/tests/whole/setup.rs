//! Setup and teardown of workspaces: copied files, commands, interruptions, consent.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use agency_testkit::{CommandOutput, Process, eventually};
use serde_json::Value;

use crate::stage::{SOON, Stage};

const AGENT: [&str; 4] = ["--", "fake-agent", "-c", "say here; ask ready?"];

fn new(slug: &str) -> Vec<&str> {
    [&["new", slug, "--no-attach"][..], &AGENT].concat()
}

/// Writes a file and its directories.
fn put(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().expect("a directory"))
        .and_then(|()| fs::write(path, content))
        .expect("room");
}

/// A user's configuration with these lines under `[workspace]`.
fn stage_with(lines: &str) -> Stage {
    Stage::with_config(&format!("[workspace]\n{lines}\n"))
}

/// The process whose pid a command wrote into this file.
fn process_in(path: &Path) -> Process {
    let pid = eventually("a pid is written", SOON, || {
        let text = fs::read_to_string(path).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    });
    Process::find(pid).expect("it lives")
}

/// All output of a command that failed, the output of its setup included.
#[track_caller]
fn failed(ran: CommandOutput) -> String {
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran}");
    ran.stderr
}

fn wait_ended(process: &Process) {
    eventually("it ends", SOON, || (!process.is_alive()).then_some(()));
}

fn setup_of(task: &Value) -> &str {
    task["setup"].as_str().unwrap_or("none")
}

#[test]
fn configured_ignored_files_are_copied() {
    let stage = stage_with("copy = [\"config/*.local\"]");
    put(&stage.repo().join(".gitignore"), ".env\nnode_modules/\n*.local\n");
    stage.git(&stage.repo(), &["add", ".gitignore"]);
    stage.git(&stage.repo(), &["commit", "-qm", "ignore"]);
    for file in [".env", "node_modules/a/index.js", "config/db.local", "other.local"] {
        put(&stage.repo().join(file), file);
    }
    fs::set_permissions(stage.repo().join(".env"), fs::Permissions::from_mode(0o600)).expect("ours");
    put(&stage.repo().join(".worktreeinclude"), ".env\nnode_modules/\n");
    let made = stage.run(new("one"));
    assert!(made.stderr.contains("copied 3 ignored files\n"), "{made}");
    let there = |file: &str| fs::read_to_string(stage.worktree("1-one").join(file)).ok();
    for file in [".env", "node_modules/a/index.js", "config/db.local"] {
        assert_eq!(there(file).as_deref(), Some(file));
    }
    assert_eq!(there("other.local"), None);
    assert_eq!(stage.git(&stage.worktree("1-one"), &["status", "--porcelain"]), "");
    assert_eq!(setup_of(&stage.task("one")), "done");
    // The next start does not undo the agent's own changes.
    put(&stage.worktree("1-one").join(".env"), "changed");
    fs::remove_file(stage.worktree("1-one").join("config/db.local")).expect("there");
    stage.run(["restart", "one"]).ok();
    assert_eq!((there(".env").as_deref(), there("config/db.local")), (Some("changed"), None));
}

#[test]
fn a_setup_runs_once_before_the_agent_with_its_variables_and_its_output_is_shown_and_kept() {
    let line = "echo \"setting up $AGENCY_TASK_ID $AGENCY_SLUG in $PWD\"; echo oops >&2; echo x >> ran";
    let stage = stage_with(&format!(
        "setup = [[\"sh\", \"-c\", '{line}'], [\"sh\", \"-c\", 'echo second $0', \"$AGENCY_WORKTREE\"]]"
    ));
    let made = stage.run(new("one"));
    let worktree = stage.worktree("1-one");
    let printed = format!("setting up 1 one in {}\noops\n", worktree.display());
    assert!(made.stderr.contains(&printed), "{made}");
    assert!(made.stderr.contains(&format!("second {}\n", worktree.display())), "{made}");
    assert_eq!(made.stdout, "1 one running\n");
    let log = stage.run(["logs", "one", "--setup"]).ok();
    assert!(log.starts_with("$ sh -c ") && log.contains(&printed), "{log}");
    assert!(fs::read_to_string(worktree.join("ran")).is_ok_and(|ran| ran == "x\n"));
    stage.run(["restart", "one"]).ok();
    stage.run(["stop", "one"]).ok();
    stage.kill_daemon();
    stage.run(["start", "one"]).ok();
    assert_eq!(fs::read_to_string(worktree.join("ran")).expect("there"), "x\n", "only a fresh one is set up");
    assert!(stage.run(["--quiet", "start", "one"]).stderr.is_empty());
}

#[test]
fn a_failed_setup_keeps_the_workspace_and_says_how_to_continue() {
    let stage =
        stage_with("setup = [\"sh\", \"-c\", 'echo try >> tries; echo no luck; test -e ../../../lucky']");
    let said = failed(stage.run([&["new", "one", "--no-attach", "-m", "the text"][..], &AGENT].concat()));
    for words in [
        "Error: cannot start task 1\n",
        "Caused by: the setup of its workspace failed\n",
        "ended with exit status: 1\n",
        "its last lines:\n  no luck\n",
        "`agency logs 1 --setup`",
        "`agency start 1 --skip-setup`",
    ] {
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
    let task = stage.task("one");
    assert_eq!((task["status"].as_str(), setup_of(&task)), (Some("draft"), "failed"));
    assert_eq!(task["worktree"], stage.worktree("1-one").display().to_string().as_str());
    assert!(stage.run(["ls"]).ok().contains("setup failed"));
    assert!(stage.task_file("1-one").ends_with("the text"));
    assert!(stage.run(["logs", "one", "--setup"]).ok().contains("no luck\n[`sh -c "));
    assert_eq!(stage.keepers().len(), 0);

    // It did not finish, so the next start runs it again, also with another daemon.
    stage.kill_daemon();
    failed(stage.run(["start", "one"]));
    failed(stage.run(["setup", "one"]));
    let tries = || fs::read_to_string(stage.worktree("1-one").join("tries")).expect("tries").lines().count();
    assert_eq!(tries(), 3);
    assert_eq!(stage.run(["start", "one", "--skip-setup"]).ok(), "1 one running\n");
    assert_eq!((tries(), setup_of(&stage.task("one"))), (3, "skipped"));
    let busy = stage.refused(&["setup", "one"]);
    assert!(busy.contains("already has a run") && busy.contains("agency stop 1"), "{busy}");
    stage.run(["restart", "one"]).ok();
    stage.run(["stop", "one"]).ok();
    fs::write(stage.repo().join("lucky"), "").expect("room");
    assert_eq!(stage.run(["setup", "one"]).ok(), "1 one stopped\n");
    assert_eq!((tries(), setup_of(&stage.task("one"))), (4, "done"));
    stage.run(["start", "one"]).ok();
    assert_eq!(tries(), 4);
}

#[test]
fn a_setup_needs_a_workspace() {
    let stage = stage_with("setup = [\"true\"]");
    stage.run(["new", "one", "--draft", "-m", "x"]).ok();
    assert!(stage.refused(&["setup", "one"]).contains("has no workspace yet"));
    assert!(stage.refused(&["logs", "one", "--setup"]).contains("no setup has run"));
}

#[test]
fn a_stop_during_setup_ends_it_and_all_its_processes() {
    let stage =
        stage_with("setup = [\"sh\", \"-c\", 'setsid sleep 1000 & echo $! > other; echo $$ > pid; wait']");
    let mut starting = stage.agency(new("one"));
    let starting = std::thread::scope(|scope| {
        let started =
            scope.spawn(|| CommandOutput::of(std::mem::replace(&mut starting, stage.agency(["ls"])), b""));
        let worktree = stage.worktree("1-one");
        let (shell, other) = (process_in(&worktree.join("pid")), process_in(&worktree.join("other")));
        let task = stage.task("one");
        assert_eq!((setup_of(&task), task["status"].as_str()), ("running", Some("draft")));
        assert!(stage.run(["ls"]).ok().contains("setting up"));
        assert_eq!(stage.run(["stop", "one"]).ok(), "1 one draft\n");
        wait_ended(&shell);
        wait_ended(&other);
        started.join().expect("no panic")
    });
    assert!(failed(starting).contains("was cancelled"));
    let task = stage.task("one");
    assert_eq!((setup_of(&task), task["run"].is_null()), ("pending", true));
    assert!(stage.worktree("1-one").is_dir());
}

#[test]
fn ctrl_c_during_setup_ends_it() {
    let stage = stage_with("setup = [\"sh\", \"-c\", 'echo $$ > pid; echo working; sleep 1000']");
    let mut terminal = stage.on_terminal(["new", "one", "-m", "x"]);
    terminal.wait_for("working");
    let shell = process_in(&stage.worktree("1-one").join("pid"));
    terminal.send("\x03");
    terminal.wait_for("agency start 1 --skip-setup");
    assert_eq!(terminal.wait_exit().code(), Some(1), "{terminal}");
    wait_ended(&shell);
    assert_eq!(setup_of(&stage.task("one")), "pending");
    assert_eq!(stage.keepers().len(), 0);
}

#[test]
fn after_a_daemon_is_killed_during_setup_no_process_runs_twice() {
    let line = "echo $$ >> pids; echo begun; test -e ../../../go || sleep 1000; echo done >> done";
    let stage = stage_with(&format!("setup = [\"sh\", \"-c\", '{line}']"));
    let worktree = stage.worktree("1-one");
    std::thread::scope(|scope| {
        let starting = scope.spawn(|| stage.run(new("one")));
        let shell = process_in(&worktree.join("pids"));
        stage.kill_daemon();
        assert_eq!(starting.join().expect("no panic").code, 1);
        // The next daemon ends leftover processes before it answers.
        let task = stage.task("one");
        assert_eq!((setup_of(&task), task["status"].as_str()), ("pending", Some("draft")));
        assert!(!shell.is_alive());
    });
    assert!(!worktree.join("done").exists());
    let log = stage.run(["logs", "one", "--setup"]).ok();
    assert!(log.ends_with("[cut off here: the daemon ended before it]\n"), "{log}");
    fs::write(stage.repo().join("go"), "").expect("room");
    assert_eq!(stage.run(["start", "one"]).ok(), "1 one running\n");
    assert_eq!(fs::read_to_string(worktree.join("done")).expect("it is done"), "done\n");
    assert_eq!(fs::read_to_string(worktree.join("pids")).expect("pids").lines().count(), 2);
    assert_eq!(setup_of(&stage.task("one")), "done");
}

#[test]
fn a_daemon_that_stops_ends_setups() {
    let stage = stage_with("setup = [\"sh\", \"-c\", 'echo $$ > pid; sleep 1000']");
    std::thread::scope(|scope| {
        let starting = scope.spawn(|| stage.run(new("one")));
        let shell = process_in(&stage.worktree("1-one").join("pid"));
        stage.run(["daemon", "stop"]).ok();
        assert_eq!(starting.join().expect("no panic").code, 1);
        assert!(!shell.is_alive());
    });
    assert_eq!(setup_of(&stage.task("one")), "pending");
}

#[test]
fn a_setup_that_takes_too_long_is_ended() {
    let stage = stage_with("setup = [\"sleep\", \"1000\"]\nsetup_timeout = \"100ms\"");
    let said = failed(stage.run(new("one")));
    assert!(
        said.contains("Caused by: it took longer than 100ms, which is workspace.setup_timeout"),
        "{said}"
    );
    assert_eq!(setup_of(&stage.task("one")), "failed");
}

#[test]
fn a_projects_setup_waits_for_consent() {
    let stage = Stage::new();
    put(
        &stage.repo().join(".agency/config.toml"),
        "[workspace]\nsetup = [\"sh\", \"-c\", \"echo x > ran\"]\nopener = [\"evil\"]\n",
    );
    let made = stage.run(new("one"));
    assert!(made.stderr.contains("agency trust`, then `agency setup 1`"), "{made}");
    assert!(made.stderr.contains("workspace.opener is ignored here"), "{made}");
    assert_eq!(made.stdout, "1 one running\n");
    assert!(!stage.worktree("1-one").join("ran").exists());
    assert!(stage.run(["trust"]).stdout.contains("workspace.setup = [\"sh\", \"-c\", \"echo x > ran\"]"));
    stage.run(["trust", "--yes"]).ok();
    stage.run(["stop", "one"]).ok();
    stage.run(["setup", "one"]).ok();
    assert!(stage.worktree("1-one").join("ran").exists());
    stage.run(new("two")).ok();
    assert!(stage.worktree("2-two").join("ran").exists());
}

#[test]
fn a_teardown_runs_before_the_workspace_is_removed() {
    let line = "echo clearing $AGENCY_SLUG; echo $AGENCY_SLUG >> ../../../gone; test -e ../../../may-go";
    let stage = stage_with(&format!(
        "setup = [\"sh\", \"-c\", 'sleep 1000 & echo $! > ../../../left'] \nteardown = [\"sh\", \"-c\", '{line}']"
    ));
    for slug in ["one", "two"] {
        stage.run(new(slug)).ok();
        stage.run(["stop", slug]).ok();
    }
    // A process that the setup left running ends with its workspace.
    let left = process_in(&stage.repo().join("left"));
    let refusal = stage.run(["rm", "one"]);
    assert!(refusal.stderr.contains("\nclearing one\nError: the teardown of task 1 failed\n"), "{refusal}");
    assert!(refusal.stderr.contains("agency rm 1 --discard"), "{refusal}");
    assert_eq!((refusal.code, stage.status("one")), (1, "stopped".to_owned()));
    assert!(stage.worktree("1-one").is_dir());
    let gone = stage.run(["rm", "one", "--discard"]);
    assert!(gone.stderr.contains("the teardown of task 1 failed"), "{gone}");
    assert!(gone.ok().starts_with("1 one removed\n"));
    assert!(left.is_alive());
    fs::write(stage.repo().join("may-go"), "").expect("room");
    assert!(stage.run(["rm", "two"]).ok().starts_with("2 two removed\n"));
    wait_ended(&left);
    assert!(!stage.worktree("2-two").exists());
    assert_eq!(fs::read_to_string(stage.repo().join("gone")).expect("there"), "one\none\ntwo\n");
    assert_eq!(stage.listing()["tasks"], serde_json::json!([]));
}

#[test]
fn a_hanging_teardown_can_be_stopped_or_ends_with_its_daemon_and_nothing_is_removed() {
    let stage = stage_with("teardown = [\"sh\", \"-c\", 'echo $$ > ../../../pid; sleep 1000']");
    stage.run(new("one")).ok();
    stage.run(["stop", "one"]).ok();
    let pid = stage.repo().join("pid");
    let while_it_hangs = |then: &dyn Fn()| {
        std::thread::scope(|scope| {
            let removing = scope.spawn(|| stage.run(["rm", "one"]));
            let shell = process_in(&pid);
            then();
            wait_ended(&shell);
            fs::remove_file(&pid).expect("there");
            failed(removing.join().expect("no panic"))
        })
    };
    let said = while_it_hangs(&|| {
        assert!(stage.refused(&["start", "one"]).contains("task 1 is being removed"));
        assert_eq!(stage.run(["stop", "one"]).ok(), "1 one stopped\n");
    });
    assert!(said.contains("the teardown of task 1 failed\nCaused by: it was stopped\n"), "{said}");
    while_it_hangs(&|| {
        stage.kill_daemon();
        stage.listing();
    });
    assert_eq!(stage.status("one"), "stopped");
    assert_eq!(stage.run(["start", "one"]).ok(), "1 one running\n");
}

#[test]
fn the_daemon_answers_while_it_copies_thousands_of_files() {
    let stage = Stage::new();
    put(&stage.repo().join(".gitignore"), "node_modules/\n");
    put(&stage.repo().join(".worktreeinclude"), "node_modules/\n");
    let make =
        "mkdir -p node_modules/p && cd node_modules/p && seq 3000 | while read n; do echo $n > $n; done";
    CommandOutput::of(stage.shell(make), b"").ok();
    stage.git(&stage.repo(), &["add", ".gitignore", ".worktreeinclude"]);
    stage.git(&stage.repo(), &["commit", "-qm", "ignore"]);
    std::thread::scope(|scope| {
        let starting = scope.spawn(|| stage.run(new("one")));
        eventually("it is made", SOON, || {
            stage.listing();
            stage.worktree("1-one").join("node_modules/p").is_dir().then_some(())
        });
        assert!(starting.join().expect("no panic").stderr.contains("copied 3000 ignored files"));
    });
    let copied = fs::read_dir(stage.worktree("1-one").join("node_modules/p")).expect("there").count();
    assert_eq!(copied, 3000);
}
