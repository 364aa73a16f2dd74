//! A start that cannot succeed fails before it makes anything, with one clear error and a hint.

use std::fs;

use agency_testkit::CommandOutput;

use crate::stage::{Stage, refused};

#[track_caller]
fn check(stage: &Stage, args: &[&str], lines: &[&str]) {
    let refusal = stage.refused(args);
    let said: Vec<&str> = refusal.lines().collect();
    assert_eq!(said.len(), lines.len(), "{refusal}");
    for (said, expected) in said.iter().zip(lines) {
        assert!(said.starts_with(expected), "{refusal}");
    }
    assert_eq!(stage.traces(), [""; 0]);
    assert_eq!(stage.keepers(), []);
}

#[test]
fn one_agent_too_many_is_refused_and_nothing_is_made() {
    let stage = Stage::with_config("max_agents = 1\n");
    stage.play("one", "ask more>");
    stage.wait_task("one", "waits", |task| task["workspace_status"] == "needs_input");
    let traces = stage.traces();
    let refusal = stage.refused(&["new", "two", "--", "fake-agent", "-c", "ask q"]);
    assert_eq!(
        refusal,
        "Error: maximum number of agents reached (1)\n\
         Hint: stop an agent that is done: agency stop 1-one; or raise max_agents in config.toml\n"
    );
    assert_eq!(stage.traces(), traces);
    stage.run(["new", "two", "--draft", "--", "fake-agent", "-c", "ask q"]).ok();
    assert!(stage.refused(&["start", "two"]).contains("maximum number of agents reached (1)"));
    assert_eq!(stage.status("two"), "draft");

    stage.run(["stop", "one"]).ok();
    assert_eq!(stage.run(["start", "two"]).ok(), "2 two running\n", "a stopped agent holds no slot");
}

#[test]
fn an_unknown_agent_is_refused_with_the_nearest_name() {
    let stage = Stage::new();
    check(
        &stage,
        &["new", "one", "-m", "x", "--agent", "cladue-code"],
        &["Error: no agent is called `cladue-code`", "Hint: did you mean `claude-code`?"],
    );
}

#[test]
fn an_agent_that_is_not_installed_is_refused() {
    let stage = Stage::with_config("[agents.ghost]\nstart = [\"no-such-program-here\"]\n");
    check(
        &stage,
        &["new", "one", "-m", "x", "--agent", "ghost"],
        &["Error: agent ghost is not installed: `no-such-program-here` was not found", "Hint: install"],
    );
}

#[test]
fn a_missing_command_is_refused() {
    let stage = Stage::new();
    check(
        &stage,
        &["new", "one", "-m", "x", "--", "no-such-program-here"],
        &["Error: cannot find the command `no-such-program-here`", "Caused by: ", "Hint: "],
    );
}

#[test]
fn an_agent_without_a_command_for_its_driver_is_refused() {
    let stage = Stage::with_config("[agents.half]\nacp = [\"true\"]\n");
    check(
        &stage,
        &["new", "one", "-m", "x", "--agent", "half", "--driver", "terminal"],
        &["Error: agent half has no command for the terminal driver", "Hint: "],
    );
    let said = stage.refused(&["new", "one", "-m", "x", "--driver", "telepathy"]);
    assert!(said.contains("telepathy") && said.contains("Hint: terminal, stream-json or acp"), "{said}");
    assert_eq!(stage.traces(), [""; 0]);
}

#[test]
fn a_base_that_does_not_exist_is_refused() {
    let stage = Stage::new();
    check(
        &stage,
        &["new", "one", "-m", "x", "--base-branch", "mian"],
        &[
            "Error: cannot create workspace 1-one",
            "Caused by: there is no branch, tag or commit `mian`",
            "Hint: did you mean main?",
        ],
    );
}

#[test]
fn a_bad_slug_is_refused() {
    let stage = Stage::new();
    for slug in ["fix login", "../up", "", "ünïcode", "a/b"] {
        check(&stage, &["new", slug, "-m", "x"], &["Error: `", "Hint: "]);
    }
    let usage = stage.run(["new", "-x"]);
    assert_eq!(usage.code, 2, "a wrong option is a question of usage: {usage}");
}

#[test]
fn an_existing_branch_is_refused_and_unchanged() {
    let stage = Stage::new();
    stage.git(&stage.repo(), &["branch", "agency/1-one"]);
    let refusal = stage.refused(&["new", "one", "-m", "x"]);
    assert!(refusal.contains("Caused by: the branch agency/1-one exists already\nHint: "), "{refusal}");
    assert_eq!(stage.traces(), ["agency/1-one"]);
    // The same task under another name works.
    assert_eq!(stage.run(["new", "two", "--", "fake-agent", "-c", "ask q"]).ok(), "1 two running\n");
}

#[test]
fn an_existing_directory_is_refused_and_unchanged() {
    let stage = Stage::new();
    let precious = stage.worktree("1-one").join("precious");
    fs::create_dir_all(stage.worktree("1-one")).and_then(|()| fs::write(&precious, "mine")).expect("room");
    let refusal = stage.refused(&["new", "one", "-m", "x"]);
    assert!(refusal.contains("exists already") && refusal.contains("Hint: "), "{refusal}");
    assert_eq!(stage.traces(), ["1-one"], "neither a branch nor a task");
    assert_eq!(fs::read_to_string(precious).expect("still there"), "mine");
}

#[test]
fn a_repository_without_a_commit_is_refused_with_two_hints() {
    let stage = Stage::new();
    let empty = stage.home().join("empty");
    fs::create_dir(&empty).expect("room");
    stage.git(&empty, &["init", "-q"]);
    let new = |more: &[&str]| {
        let mut new = stage.agency(["new", "one", "--no-attach", "-m", "x"]);
        new.current_dir(&empty).args(more).args(["--", "fake-agent", "-c", "cwd; ask q"]);
        CommandOutput::of(new, b"")
    };
    let refusal = refused(new(&[]));
    assert!(
        refusal.contains("Caused by: the repository has no commit yet\nHint: commit first, or"),
        "{refusal}"
    );
    assert!(!empty.join(".agency/tasks/1-one.md").exists() && !empty.join(".agency/worktrees").exists());
    assert_eq!(new(&["--vcs", "none"]).ok(), "1 one running\n");
    let refusal = refused(new(&["--vcs", "git"]));
    assert!(refusal.contains("no commit yet"), "{refusal}");
}

#[test]
fn a_project_has_one_kind_of_workspace() {
    let stage = Stage::new();
    stage.run(["new", "one", "--draft", "-m", "x"]).ok();
    let refusal = stage.refused(&["new", "two", "--vcs", "none", "-m", "x"]);
    assert!(refusal.contains("already have workspaces of kind `git`\nHint: "), "{refusal}");
    assert_eq!(stage.traces(), ["1-one.md", "1-one.md"]);
}

#[test]
fn outside_a_repository_a_directory_can_be_used_as_it_is() {
    let stage = Stage::new();
    let plain = stage.home().join("plain");
    fs::create_dir(&plain).expect("room");
    let agency = |args: &[&str]| {
        let mut agency = stage.agency(args);
        agency.current_dir(&plain);
        CommandOutput::of(agency, b"")
    };
    let refusal = refused(agency(&["new", "one", "-m", "x"]));
    assert!(refusal.contains("is not in a git repository\n") && refusal.contains("--vcs none"), "{refusal}");
    assert!(!plain.join(".agency").exists());

    let command = ["--", "fake-agent", "-c", "cwd; ask q"];
    let made = agency(&[&["new", "one", "--vcs", "none"], &command[..]].concat());
    assert_eq!(made.ok(), "1 one running\n");
    assert_eq!(agency(&["path", "one"]).ok(), format!("{}\n", plain.display()));
    let task = &agency(&["ls", "--json"]).json()["tasks"][0];
    assert_eq!((&task["branch"], task["worktree"].as_str()), (&serde_json::Value::Null, plain.to_str()));
    assert_eq!(agency(&["stop", "one"]).ok(), "1 one stopped\n");
    assert_eq!(agency(&["rm", "one"]).ok(), "1 one removed\n");
    assert!(plain.is_dir(), "the directory is the user's own");
}

#[test]
fn an_agent_that_cannot_be_spawned_leaves_nothing_behind() {
    let stage = Stage::new();
    let broken = stage.home().join("broken");
    fs::write(&broken, "#!/no/such/interpreter\n").expect("room");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&broken, mode).expect("our own file");
    let program = broken.display().to_string();
    let refusal = stage.refused(&["new", "one", "-m", "x", "--", &program]);
    assert!(refusal.starts_with("Error: cannot start task 1\nCaused by: "), "{refusal}");
    assert_eq!(stage.traces(), [""; 0], "worktree, branch and task of this very call are gone again");

    stage.run(["new", "later", "--draft", "-m", "x", "--", &program]).ok();
    stage.refused(&["start", "later"]);
    assert_eq!(stage.status("later"), "draft");
    assert_eq!(stage.traces(), ["1-later.md", "1-later.md"], "the draft was there before");
}

#[test]
fn a_broken_configuration_is_refused_with_its_line() {
    let stage = Stage::new();
    stage.write_config("max_agents = \"many\"\n");
    let refusal = stage.refused(&["new", "one", "-m", "x"]);
    assert!(refusal.contains("config.toml:1:"), "{refusal}");
    assert_eq!(stage.traces(), [""; 0]);
}

#[test]
fn a_misspelt_key_is_reported_and_does_not_prevent_a_start() {
    let stage = Stage::with_config("max_agent = 3\n");
    let ran = stage.run(["new", "one", "--", "fake-agent", "-c", "ask q"]);
    assert!(ran.stderr.contains("max_agent") && ran.stderr.contains("did you mean `max_agents`?"), "{ran}");
    assert_eq!(ran.ok(), "1 one running\n");
}
