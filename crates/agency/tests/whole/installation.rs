//! The installation: `doctor`, `agents`, completions, manual pages, the service, and `uninstall`.

use std::fs;
use std::path::Path;

use agency_testkit::{CommandOutput, Pty, Signal};
use serde_json::Value;

use crate::stage::{Stage, refused};

fn finding<'a>(report: &'a Value, words: &str) -> &'a Value {
    let findings = report["findings"].as_array().expect("a list of findings");
    let found =
        findings.iter().find(|finding| finding["what"].as_str().is_some_and(|what| what.contains(words)));
    found.unwrap_or_else(|| panic!("nothing about {words:?} in {report}"))
}

#[test]
fn doctor_finds_no_problem_on_a_healthy_machine() {
    let stage = Stage::new();
    let report = stage.run(["doctor", "--json"]).json();
    assert_eq!(finding(&report, "git ")["level"], "fine");
    assert_eq!(finding(&report, "Shell, the default")["level"], "fine");
    assert_eq!(finding(&report, "daemon 0.")["level"], "fine");
    let said = stage.run(["doctor"]).ok();
    assert!(said.starts_with("Programs\n  ok   git "), "{said}");
    assert!(said.contains("Nothing is "), "{said}");
}

#[test]
fn doctor_finds_problems_names_their_fix_and_fails() {
    let stage = Stage::new();
    // A file in the place of the state directory also stops the superuser.
    fs::write(stage.state(), "in the way").expect("nothing is there yet");
    let ran = stage.run(["doctor", "--json"]);
    assert_eq!(ran.code, 1, "{ran}");
    let report: Value = serde_json::from_str(&ran.stdout).expect("one document");
    let state = finding(&report, "is not a directory");
    assert_eq!((&state["level"], &state["about"]), (&"broken".into(), &"files".into()));
    assert!(state["fix"].as_str().is_some_and(|fix| fix.starts_with("move it away: mv ")), "{state}");
    assert_eq!(finding(&report, "cannot start the daemon")["level"], "broken");
}

#[test]
fn a_default_agent_that_is_not_installed_is_broken() {
    let stage = Stage::new();
    stage.write_config("default_agent = \"ghost\"\n[agents.ghost]\nstart = [\"no-such-program-here\"]\n");
    let ran = stage.run(["doctor"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stdout.contains("FAIL ghost is the default agent and is not installed\n"), "{ran}");
}

#[test]
fn agents_lists_commands_and_where_they_are_defined() {
    let stage =
        Stage::with_config("[agents.mine]\nstart = [\"fake-agent\", \"-c\", \"ask q\"]\nacp = [\"nope\"]\n");
    let program = stage.home().join("codex");
    stage.write_program(&program, b"#!/bin/sh\necho codex-cli 9.8.7\n");
    let listing = CommandOutput::of(stage.shell("PATH=$HOME:$PATH agency agents --json"), b"").json();
    let agents = listing["agents"].as_array().expect("a list");
    let agent = |name: &str| agents.iter().find(|agent| agent["name"] == name).expect("it is listed").clone();
    let mine = agent("mine");
    assert_eq!(
        (&mine["installed"], &mine["version"], &mine["well_known"]),
        (&true.into(), &Value::Null, &false.into())
    );
    assert_eq!(mine["origin"], format!("{}:3", stage.config().display()));
    let drivers: Vec<&str> =
        mine["commands"].as_array().unwrap().iter().filter_map(|it| it["driver"].as_str()).collect();
    assert_eq!(drivers, ["terminal", "acp"]);
    assert_eq!((&agent("shell")["default"], &agent("shell")["origin"]), (&true.into(), &"built in".into()));
    assert_eq!((&agent("codex")["installed"], &agent("codex")["version"]), (&true.into(), &"9.8.7".into()));
}

#[test]
fn agents_works_outside_of_projects() {
    let stage = Stage::new();
    let mut agents = stage.agency(["agents", "--no-versions"]);
    agents.current_dir(stage.home());
    let said = CommandOutput::of(agents, b"").ok();
    assert!(said.starts_with("AGENT ") && said.contains("\nshell *  "), "{said}");
    assert!(!stage.home().join(".agency").exists());
}

/// The words that bash offers for the last of these words.
fn complete(stage: &Stage, words: &[&str]) -> Vec<String> {
    let last = words.last().expect("a word to complete");
    let script = format!(
        "source <(agency completions bash); COMP_WORDS=({}); COMP_CWORD={}; COMP_TYPE=9; \
         _clap_complete_agency agency '{last}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1
    );
    let mut bash = stage.command("bash");
    bash.args(["--norc", "-c", &script]);
    let offers = CommandOutput::of(bash, b"").ok();
    offers.lines().filter(|line| !line.starts_with('-') && !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_shell_completes_tasks_and_agents_as_they_are_now() {
    let stage = Stage::with_config("[agents.mine]\nstart = [\"true\"]\n");
    assert_eq!(
        complete(&stage, &["agency", "attach", ""]),
        [""; 0],
        "nothing is there, and nothing is started"
    );
    assert!(stage.daemon().is_none());
    for slug in ["fix-login", "fix-logout", "other"] {
        stage.run(["new", slug, "--draft", "-m", "x"]).ok();
    }
    assert_eq!(complete(&stage, &["agency", "attach", "fix"]), ["fix-login", "fix-logout"]);
    assert_eq!(complete(&stage, &["agency", "logs", "o"]), ["other"]);
    assert_eq!(complete(&stage, &["agency", "new", "x", "--agent", "m"]), ["mine"]);
    assert_eq!(complete(&stage, &["agency", "daemon", "inst"]), ["install"]);
    stage.run(["rm", "other"]).ok();
    assert_eq!(complete(&stage, &["agency", "logs", "o"]), [""; 0]);
}

#[test]
fn an_exported_completion_variable_does_not_change_commands() {
    let stage = Stage::new();
    stage.run(["new", "one", "--draft", "-m", "x"]).ok();
    for value in ["bash", "zsh", "fish", "1", "no such shell", ""] {
        let mut ls = stage.agency(["ls", "--json"]);
        ls.env("AGENCY_COMPLETE", value);
        assert_eq!(CommandOutput::of(ls, b"").json()["tasks"][0]["slug"], "one", "{value:?}");
    }
}

#[test]
fn completion_offers_the_tasks_of_all_projects_outside_of_a_project() {
    let stage = Stage::new();
    stage.run(["new", "one", "--draft", "-m", "x"]).ok();
    let mut agency = stage.agency(["--", "agency", "attach", "o"]);
    agency.env("AGENCY_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "2").current_dir("/");
    let ran = CommandOutput::of(agency, b"");
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (0, "one", ""),
        "outside of any project, the tasks of all projects"
    );
}

#[test]
fn completion_prints_nothing_on_the_users_command_line() {
    let stage = Stage::new();
    stage.run(["new", "one", "--draft", "-m", "x"]).ok();
    let daemon = stage.daemon().expect("it has answered");
    // Without completion, the command would report a daemon that does not answer.
    daemon.signal(Signal::STOP);
    let line = "AGENCY_COMPLETE=bash _CLAP_COMPLETE_INDEX=2 agency -- agency attach o";
    let mut terminal = Pty::spawn(stage.shell(line), 80, 24);
    assert!(terminal.wait_exit().success());
    daemon.signal(Signal::CONT);
    assert_eq!(String::from_utf8_lossy(terminal.output()), "");
}

#[test]
fn the_manual_is_printed_and_installed() {
    let stage = Stage::new();
    let page = stage.run(["man", "daemon", "stop"]).ok();
    assert!(page.contains(".TH AGENCY-DAEMON-STOP 1"), "{page}");
    let refusal = stage.refused(&["man", "fly"]);
    assert_eq!(
        refusal,
        "Error: there is no command `agency fly`\nHint: `agency help --all` lists all commands\n"
    );
    let dir = stage.home().join("man");
    let dir_text = dir.display().to_string();
    let said = stage.run(["man", "--install", &dir_text]).ok();
    assert!(said.ends_with(&format!("pages written to {dir_text}/man1\n")), "{said}");
    assert!(dir.join("man1/agency-new.1").is_file() && dir.join("man1/agency.1").is_file());
    assert!(stage.daemon().is_none(), "no daemon is needed for that");
}

#[test]
fn the_service_is_written_and_removed_and_leaves_the_agents_alone() {
    let stage = Stage::new();
    let unit = stage
        .config()
        .parent()
        .and_then(Path::parent)
        .expect("a directory")
        .join("systemd/user/agency.service");
    let printed = stage.run(["daemon", "install", "--print"]).ok();
    assert!(!unit.exists());
    let said = stage.run(["daemon", "install"]).ok();
    assert!(
        said.starts_with(&format!(
            "{} written. To use it:\n  systemctl --user daemon-reload\n",
            unit.display()
        )),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&unit).expect("written"), printed);
    assert!(printed.contains("\nKillMode=process\nKillSignal=SIGHUP\n"), "{printed}");
    assert!(stage.run(["daemon", "uninstall"]).ok().contains("removed. Agents keep running."));
    assert!(!unit.exists());
    assert!(stage.run(["daemon", "uninstall"]).ok().starts_with("nothing to remove: "));
}

#[test]
fn the_daemons_log_can_be_read_without_a_daemon() {
    let stage = Stage::new();
    let refusal = stage.refused(&["logs", "--daemon"]);
    assert!(refusal.contains("Hint: no daemon has run here yet"), "{refusal}");
    stage.run(["ls"]).ok();
    stage.run(["daemon", "stop"]).ok();
    let log = stage.run(["logs", "--daemon"]).ok();
    assert!(log.contains("the daemon is here") && log.ends_with("the daemon leaves\n"), "{log}");
    assert!(stage.daemon().is_none());
    assert_eq!(stage.run(["logs"]).code, 2, "a task or the daemon");
    assert_eq!(stage.run(["logs", "one", "--daemon"]).code, 2);
}

#[test]
fn uninstall_dry_run_lists_everything_and_changes_nothing() {
    let stage = Stage::new();
    stage.play("one", "ask q");
    stage.run(["daemon", "install"]).ok();
    let before = stage.traces();
    let said = stage.run(["uninstall", "--dry-run"]).ok();
    let repo = stage.repo().canonicalize().expect("it is there");
    for line in [
        format!("  {}\n", stage.state().display()),
        format!("  {}\n", stage.config().parent().expect("a directory").display()),
        "systemd/user/agency.service\n".to_owned(),
        format!("\nIn {}:\n", repo.display()),
        format!("  {}/.agency with 1 task\n", repo.display()),
        format!("  {}/.agency/worktrees/1-one, branch agency/1-one\n", repo.display()),
        format!("  the lines about .agency/ in {}/.git/info/exclude\n", repo.display()),
        "\nNothing was removed.\n".to_owned(),
    ] {
        assert!(said.contains(&line), "{line} in {said}");
    }
    assert_eq!(stage.traces(), before);
    let inventory = stage.run(["uninstall", "--dry-run", "--json"]).json();
    assert_eq!(inventory["projects"][0]["live_runs"], 1, "{inventory}");
}

#[test]
fn uninstall_refuses_live_agents_and_unmerged_work_and_asks() {
    let stage = Stage::new();
    stage.play("one", "ask q");
    let refusal = stage.refused(&["uninstall", "--yes"]);
    assert!(
        refusal.starts_with("Error: nothing was removed\nCaused by: 1 agent is still running\nHint: "),
        "{refusal}"
    );
    stage.run(["stop", "one"]).ok();
    fs::write(stage.worktree("1-one").join("precious"), "mine").expect("room");
    let refusal = stage.refused(&["uninstall", "--yes"]);
    assert!(
        refusal.contains("Caused by: 1 file in .agency/worktrees/1-one is not committed\nHint: "),
        "{refusal}"
    );
    assert!(stage.worktree("1-one").join("precious").exists() && stage.task_path("1-one").exists());
    fs::remove_file(stage.worktree("1-one").join("precious")).expect("still there");
    let unasked = stage.run(["uninstall"]);
    assert_eq!(unasked.code, 1, "{unasked}");
    assert!(unasked.stderr.starts_with("Error: cannot ask without a terminal\nHint: "), "{unasked}");
    assert!(stage.task_path("1-one").exists());
}

#[test]
fn uninstall_leaves_only_files_of_others() {
    let stage = Stage::new();
    let head = stage.git(&stage.repo(), &["for-each-ref"]);
    let exclude = fs::read_to_string(stage.repo().join(".git/info/exclude")).unwrap_or_default();
    stage.run(["man", "--install", &stage.home().join("man").display().to_string()]).ok();
    stage.run(["daemon", "install"]).ok();
    stage.play("one", "ask q");
    stage.run(["new", "two", "--draft", "-m", "an idea"]).ok();
    stage.run(["daemon", "stop", "--agents"]).ok();
    let said = stage.run(["uninstall", "--yes"]).ok();
    assert!(said.ends_with("\nRemoved.\n"), "{said}");
    assert!(!stage.state().exists() && !stage.config().exists() && !stage.repo().join(".agency").exists());
    assert_eq!(stage.git(&stage.repo(), &["for-each-ref"]), head, "no branch and no hidden ref");
    assert_eq!(fs::read_to_string(stage.repo().join(".git/info/exclude")).unwrap_or_default(), exclude);
    assert!(!stage.home().join("man/man1/agency.1").exists());
    assert!(stage.daemon().is_none());
}

#[test]
fn discarded_work_stays_under_its_ref_unless_it_is_discarded_too() {
    let stage = Stage::new();
    stage.play("one", "ask q");
    stage.run(["stop", "one"]).ok();
    fs::write(stage.worktree("1-one").join("precious"), "mine").expect("room");
    stage.run(["rm", "--discard", "one"]).ok();
    let kept = stage.git(&stage.repo(), &["for-each-ref", "--format=%(refname)", "refs/agency"]);
    let said = stage.run(["uninstall", "--yes"]).ok();
    assert!(
        said.contains(&format!("  not removed: {}: it keeps work that was discarded\n", kept.trim())),
        "{said}"
    );
    assert_eq!(stage.git(&stage.repo(), &["for-each-ref", "--format=%(refname)", "refs/agency"]), kept);

    stage.run(["new", "two", "--draft", "-m", "x"]).ok();
    stage.run(["uninstall", "--yes", "--discard"]).ok();
    assert_eq!(stage.git(&stage.repo(), &["for-each-ref", "refs/agency"]), "");
}

#[test]
fn uninstall_keeps_a_configuration_that_is_part_of_the_repository() {
    let stage = Stage::new();
    let config = stage.repo().join(".agency/config.toml");
    fs::create_dir(stage.repo().join(".agency"))
        .and_then(|()| fs::write(&config, "max_agents = 3\n"))
        .expect("room");
    stage.run(["new", "one", "--draft", "-m", "x"]).ok();
    stage.git(&stage.repo(), &["add", ".agency/config.toml"]);
    stage.git(&stage.repo(), &["commit", "-qm", "settings"]);
    let said = stage.run(["uninstall", "--yes"]).ok();
    assert!(said.contains("the repository holds files of it"), "{said}");
    assert!(config.exists());
    assert_eq!(stage.git(&stage.repo(), &["status", "--porcelain"]), "");
}

#[test]
fn uninstall_leaves_the_configuration_that_the_user_wrote() {
    let stage = Stage::new();
    let config = stage.repo().join(".agency/config.toml");
    fs::create_dir(stage.repo().join(".agency"))
        .and_then(|()| fs::write(&config, "max_agents = 3\n"))
        .expect("room");
    stage.run(["new", "one", "--no-attach", "--", "fake-agent", "-c", "say done"]).ok();
    stage.wait_status("one", "stopped");
    let listed = stage.run(["uninstall", "--dry-run"]).ok();
    assert!(listed.contains(".agency/config.toml: you wrote it\n"), "{listed}");
    let said = stage.run(["uninstall", "--yes", "--discard"]).ok();
    assert!(said.contains(".agency/config.toml: your configuration of this project\n"), "{said}");
    assert_eq!(fs::read_to_string(&config).expect("it stays"), "max_agents = 3\n");
    assert!(!stage.repo().join(".agency/tasks").exists() && !stage.repo().join(".agency/worktrees").exists());
}

#[test]
fn uninstall_names_a_deleted_project_and_continues() {
    let stage = Stage::new();
    stage.run(["new", "one", "--draft", "-m", "x"]).ok();
    stage.run(["daemon", "stop"]).ok();
    fs::rename(stage.repo(), stage.home().join("moved")).expect("the same disk");
    fs::create_dir(stage.repo()).expect("room");
    let report = stage.run(["doctor", "--json"]).json();
    let gone = finding(&report, "cannot be opened");
    assert_eq!(gone["level"], "warning", "{gone}");
    let refusal = refused(stage.run(["ls"]));
    assert!(refusal.contains("is not in a git repository"), "{refusal}");
    let said = stage.run(["uninstall", "--yes"]).ok();
    assert!(said.contains("so everything there stays\n") && !stage.state().exists(), "{said}");
}
