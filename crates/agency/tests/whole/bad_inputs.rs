//! Wrong input and broken files: one clear error with its cause and a hint, word for word.
//!
//! `$ROOT` stands for the sealed directory that holds home, state, configuration and repository.

use std::fs;
use std::path::{Path, PathBuf};

use agency_testkit::CommandOutput;

use crate::stage::Stage;

/// The errors and the output of a command, with fixed paths.
fn printed(stage: &Stage, ran: &CommandOutput) -> String {
    let root = stage.repo().parent().expect("a directory around it").to_path_buf();
    let text = format!("{}{}", ran.stderr, ran.stdout);
    text.replace(&root.canonicalize().expect("it is there").display().to_string(), "$ROOT")
        .replace(&root.display().to_string(), "$ROOT")
}

#[track_caller]
fn check_in(stage: &Stage, dir: &Path, args: &[&str], code: i32, words: &str) {
    let mut agency = stage.agency(args);
    agency.current_dir(dir);
    let ran = CommandOutput::of(agency, b"");
    assert_eq!((printed(stage, &ran).as_str(), ran.code), (words, code), "agency {}", args.join(" "));
}

#[track_caller]
fn check(stage: &Stage, args: &[&str], words: &str) {
    check_in(stage, &stage.repo(), args, 1, words);
}

fn make_dir(dir: PathBuf) -> PathBuf {
    fs::create_dir(&dir).expect("room");
    dir
}

#[test]
fn unknown_names_and_arguments() {
    let stage = Stage::with_config(
        "[agents.ghost]\nstart = [\"no-such-program\"]\n[agents.half]\nacp = [\"true\"]\n",
    );
    let long = "x".repeat(300);
    for (args, words) in [
        (
            &["new", "fix login", "-m", "x"][..],
            "Error: `fix login` is not a task name: it contains ` `; only letters A to Z and a to z, digits and `-` are allowed\nHint: try `fix-login`\n",
        ),
        (
            &["new", "-", "-m", "x"],
            "Error: `-` is not a task name: it starts with `-`\nHint: use letters, digits and dashes, for example `fix-login`\n",
        ),
        (
            &["new", "日本", "-m", "x"],
            "Error: `日本` is not a task name: it contains `日`; only letters A to Z and a to z, digits and `-` are allowed\nHint: use letters, digits and dashes, for example `fix-login`\n",
        ),
        (
            &["new", "a\u{202e}b\x1b[2J", "-m", "x"],
            "Error: `a\\u{202e}b\\u{1b}[2J` is not a task name: it contains `\\u{202e}`; only letters A to Z and a to z, digits and `-` are allowed\nHint: try `a-b-2J`\n",
        ),
        (
            &["new", "one", "-m", "x", "--agent", "ghots"],
            "Error: no agent is called `ghots`\nHint: did you mean `ghost`? known agents: aider, claude-code, codex, copilot, gemini, ghost, half, opencode, qwen, shell, vibe\n",
        ),
        (
            &["new", "one", "-m", "x", "--agent", "ghost"],
            "Error: agent ghost is not installed: `no-such-program` was not found\nHint: install `no-such-program`, or choose another agent with --agent\n",
        ),
        (
            &["new", "one", "-m", "x", "--agent", "half", "--driver", "terminal"],
            "Error: agent half has no command for the terminal driver\nHint: set `start` under [agents.half] in config.toml, or pass --driver acp\n",
        ),
        (
            &["new", "one", "-m", "x", "--base-branch", "mian"],
            "Error: cannot create workspace 1-one\nCaused by: there is no branch, tag or commit `mian`\nHint: did you mean main?\n",
        ),
        (&["stop", "nope"], "Error: no task is called `nope`\nHint: `agency ls` lists all tasks\n"),
        (&["stop", "-"], "Error: no task is called `-`\nHint: `agency ls` lists all tasks\n"),
        (&["stop", "ünï"], "Error: no task is called `ünï`\nHint: `agency ls` lists all tasks\n"),
    ] {
        check(&stage, args, words);
    }
    let refusal = stage.refused(&["new", &long, "-m", "x"]);
    assert!(refusal.contains("is not a task name: ") && refusal.contains("\nHint: "), "{refusal}");
    assert_eq!(stage.traces(), [""; 0], "and nothing was made");
}

#[test]
fn directories_that_are_not_projects() {
    let stage = Stage::new();
    let plain = make_dir(stage.home().join("plain"));
    check_in(
        &stage,
        &plain,
        &["new", "one", "-m", "x"],
        1,
        "Error: $ROOT/home/plain is not in a git repository\nHint: run `git init` and commit, or work in the directory itself: agency new SLUG --vcs none\n",
    );
    let command = ["new", "one", "--vcs", "none", "--", "fake-agent", "-c", "ask q"];
    check_in(&stage, &plain, &command, 0, "1 one running\n");

    let empty = make_dir(stage.home().join("empty"));
    stage.git(&empty, &["init", "-q"]);
    check_in(
        &stage,
        &empty,
        &["new", "one", "-m", "x"],
        1,
        "Error: cannot create workspace 1-one\nCaused by: the repository has no commit yet\nHint: commit first, or pass --vcs none to work in the directory itself\n",
    );
}

#[test]
fn a_branch_that_exists_and_a_checkout_with_changes() {
    let stage = Stage::new();
    stage.git(&stage.repo(), &["branch", "agency/1-one"]);
    check(
        &stage,
        &["new", "one", "-m", "x"],
        "Error: cannot create workspace 1-one\nCaused by: the branch agency/1-one exists already\nHint: look at it with `git log agency/1-one`, then rename or delete it\n",
    );
    fs::write(stage.repo().join("new-file"), "x").expect("room");
    check_in(
        &stage,
        &stage.repo(),
        &["new", "two", "--", "fake-agent", "-c", "ask q"],
        0,
        "1 file with uncommitted changes in your checkout is not in the workspace\n1 two running\n",
    );
}

#[test]
fn directories_that_cannot_be_written() {
    let stage = Stage::new();
    // A file in the place of a directory also stops the superuser.
    fs::write(stage.state(), "in the way").expect("room");
    check(
        &stage,
        &["ls"],
        "Error: cannot start the daemon\nCaused by: its directory $ROOT/state/agency cannot be used: File exists (os error 17)\nHint: agency doctor\n",
    );
    fs::remove_file(stage.state()).expect("still there");

    let agency = stage.repo().join(".agency");
    fs::write(&agency, "in the way").expect("room");
    for args in [&["ls"][..], &["new", "one", "--draft", "-m", "x"]] {
        let refusal = stage.refused(args);
        let refusal = refusal.replace("\n      agency ls --all shows the tasks of every project", "");
        let place = agency.canonicalize().expect("it is there");
        let wanted = format!(
            "Error: cannot read {0}/tasks\nCaused by: Not a directory (os error 20)\nHint: a directory is needed there: move {0} away\n",
            place.display()
        );
        assert_eq!(refusal, wanted);
    }
    fs::remove_file(&agency).expect("still there");
    assert_eq!(stage.run(["new", "one", "--draft", "-m", "x"]).ok(), "1 one draft\n");
}

#[test]
fn a_full_disk_behind_standard_output() {
    let stage = Stage::new();
    let ran = CommandOutput::of(stage.shell("agency ls >/dev/full"), b"");
    let words = "Error: cannot write to standard output\nCaused by: No space left on device (os error 28)\n";
    assert_eq!((printed(&stage, &ran).as_str(), ran.code), (words, 1));
}

#[test]
fn front_matter_that_is_broken_stops_only_its_own_task() {
    let stage = Stage::new();
    stage.run(["new", "good", "--draft", "-m", "x"]).ok();
    stage.run(["new", "bad", "--draft", "-m", "x"]).ok();
    fs::write(stage.task_path("2-bad"), "---\nstatus: [oops\n---\ntext\n").expect("room");
    let listed = stage.run(["ls"]);
    assert!(listed.stderr.starts_with("Warning: task 2-bad cannot be read: line "), "{listed}");
    let refusal = stage.refused(&["start", "bad"]);
    let file = stage.task_path("2-bad").canonicalize().expect("it is there");
    let wanted = format!("Error: the task file {} cannot be read: line ", file.display());
    assert!(refusal.starts_with(&wanted), "{refusal}");
    assert!(refusal.ends_with("\nHint: mend the front matter of that file\n"), "{refusal}");
    assert_eq!(stage.run(["start", "good"]).ok(), "1 good running\n");
}

#[test]
fn configuration_that_does_not_parse() {
    let stage = Stage::new();
    for (toml, words) in [
        (
            "max_agents = 3\nstale_timeout = \"soon\"\n",
            "Error: the configuration cannot be used\nCaused by: $ROOT/config/agency/config.toml:2:17: `stale_timeout`: `soon` is not a time\n  2 | stale_timeout = \"soon\"\n    |                 ^^^^^^\nHint: write a whole number and one of ms, s, m, h: for example 5s\n",
        ),
        (
            "default_agent = \"fake\"\n[agents\n",
            "Error: the configuration cannot be used\nCaused by: $ROOT/config/agency/config.toml:2:8: unclosed table, expected `]`\n  2 | [agents\n    |        ^\nHint: correct line 2 of $ROOT/config/agency/config.toml\n",
        ),
    ] {
        stage.write_config(toml);
        check(&stage, &["new", "one", "-m", "x"], words);
        check(&stage, &["agents"], words);
        assert!(stage.run(["ls"]).stderr.starts_with("Warning: "), "the list still works");
    }
    assert_eq!(stage.traces(), [""; 0]);
}

#[test]
fn a_workspace_that_was_deleted_by_hand_comes_back_with_its_branch() {
    let stage = Stage::new();
    stage.play("one", "ask q");
    stage.run(["stop", "one"]).ok();
    fs::remove_dir_all(stage.worktree("1-one")).expect("it was there");
    let gone = "Error: task 1-one has no workspace yet\nCaused by: $ROOT/repo/.agency/worktrees/1-one is not there\nHint: agency start 1 makes it\n";
    check(&stage, &["path", "one"], gone);
    check(&stage, &["exec", "one", "--", "ls"], gone);
    assert_eq!(stage.run(["start", "one"]).ok(), "1 one running\n");
    assert!(stage.worktree("1-one").is_dir());
}

#[test]
fn a_repository_that_was_moved_or_deleted_by_hand() {
    let stage = Stage::new();
    stage.play("one", "ask q");
    stage.run(["stop", "one"]).ok();
    let moved = stage.home().join("moved");
    fs::rename(stage.repo(), &moved).expect("the same disk");
    fs::create_dir(stage.repo()).expect("room");
    check(
        &stage,
        &["ls"],
        "Error: $ROOT/repo is not in a git repository\nHint: run `git init` and commit, or work in the directory itself: agency new SLUG --vcs none\n      agency ls --all shows the tasks of every project\n",
    );
    // The first call at the new place repairs git's records.
    let mut diff = stage.agency(["diff", "one"]);
    diff.current_dir(&moved);
    CommandOutput::of(diff, b"").ok();
    // In a copy that would take the worktrees away from the original, so there the user decides.
    let copy = stage.home().join("copy");
    let mut copied = stage.shell("cp -a moved copy");
    copied.current_dir(stage.home());
    CommandOutput::of(copied, b"").ok();
    check_in(
        &stage,
        &copy,
        &["rm", "one"],
        1,
        "Error: cannot remove workspace 1-one\nCaused by: git does not know $ROOT/home/copy/.agency/worktrees/1-one as a worktree of this repository\nHint: if the repository was moved, run: git worktree repair '$ROOT/home/copy/.agency/worktrees/1-one'; otherwise delete $ROOT/home/copy/.agency/worktrees/1-one yourself\n",
    );
    let mut rm = stage.agency(["rm", "one"]);
    rm.current_dir(&moved);
    assert!(CommandOutput::of(rm, b"").ok().starts_with("1 one removed\n"));
    let mut ls = stage.shell("mkdir gone && cd gone && rmdir ../gone && exec agency ls");
    ls.current_dir(stage.home());
    let ran = CommandOutput::of(ls, b"");
    let words = "Error: cannot find the current directory\nCaused by: No such file or directory (os error 2)\nHint: it may have been deleted: cd somewhere else\n";
    assert_eq!((printed(&stage, &ran).as_str(), ran.code), (words, 1));
}

#[test]
fn a_binary_that_is_replaced_under_its_daemon() {
    let stage = Stage::new();
    let (mine, next) = (stage.home().join("agency"), stage.home().join("agency.next"));
    let program = fs::read(agency_testkit::Binaries::agency()).expect("it was built");
    stage.write_program(&mine, &program);
    let run = |args: &[&str]| {
        let mut agency = stage.command(&mine);
        agency.args(args);
        CommandOutput::of(agency, b"")
    };
    run(&["new", "one", "--", "fake-agent", "-c", "ask q"]).ok();
    let before = stage.agent("one");
    stage.write_program(&next, &program);
    fs::rename(&next, &mine).expect("the same disk");
    assert!(run(&["ls"]).ok().contains("one"), "the old daemon goes on");
    assert!(run(&["daemon", "restart"]).ok().starts_with("daemon running, pid "));
    assert_eq!(stage.agent("one"), before, "and so does the agent, under the new one");
}

#[test]
fn clocks_that_jump() {
    let stage = Stage::new();
    stage.run(["new", "one", "--draft", "-m", "x"]).ok();
    for (time, age) in [("2099-01-01T00:00:00Z", "-"), ("1970-01-01T00:00:00Z", "d"), ("yesterday", "-")] {
        let file = stage.task_file("1-one");
        let line = file.lines().find(|line| line.starts_with("created_at: ")).expect("a time").to_owned();
        fs::write(stage.task_path("1-one"), file.replace(&line, &format!("created_at: \"{time}\"")))
            .expect("room");
        let listed = stage.run(["ls"]).ok();
        let row = listed.lines().nth(1).expect("a row");
        assert!(row.ends_with(age), "{time}: {listed}");
    }
}

#[test]
fn an_endless_text_is_refused_within_bounds() {
    let stage = Stage::new();
    stage.play("one", "ask q");
    for (line, limit) in [("agency new big --no-attach", 16), ("agency send one -", 1)] {
        let ran = CommandOutput::of(stage.shell(&format!("ulimit -v 1500000; yes | {line}")), b"");
        let words = format!(
            "Error: the message on standard input is longer than {limit} MiB\nHint: put it in a file in the repository and name that file in a short message\n"
        );
        assert_eq!((printed(&stage, &ran), ran.code), (words, 1), "{line}");
    }
    assert_eq!(stage.listing()["tasks"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_usage_error_looks_like_every_other_error() {
    let stage = Stage::new();
    for (args, words) in [
        (
            &["atttach", "x"][..],
            "Error: there is no command `agency atttach`\nHint: did you mean `attach`? `agency help --all` lists all commands\n",
        ),
        (
            &["new", "x", "--agnet", "y"],
            "Error: `agency new` has no option `--agnet`\nHint: did you mean `--agent`? `agency new --help` has examples\n",
        ),
        (&["diff"], "Error: `agency diff` needs <TASK>\nHint: `agency diff --help` has examples\n"),
    ] {
        check_in(&stage, &stage.repo(), args, 2, words);
    }
    assert!(stage.daemon().is_none(), "nothing is started for what is not understood");
}
