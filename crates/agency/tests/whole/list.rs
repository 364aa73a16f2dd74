//! `agency ls`: the words and the order of tasks.

use agency_testkit::{CommandOutput, Pty};
use serde_json::Value;

use crate::stage::Stage;
use crate::state_log::NO_SILENCE;

/// The slugs of the rows in `agency ls`, in order.
fn slugs(stage: &Stage) -> Vec<String> {
    let shown = stage.run(["ls"]).ok();
    let words = shown.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
    words.map(str::to_owned).collect()
}

#[track_caller]
fn wait_headline(stage: &Stage, slug: &str, headline: &str) -> Value {
    stage.wait_task(slug, headline, |task| task["headline"] == headline)
}

#[test]
fn a_stop_that_the_user_asked_for_is_no_error_and_a_crash_is_unread_until_somebody_looks() {
    let stage = Stage::new();
    stage.play("asked", "ignore-term; ask ready?");
    stage.wait_printed("asked", "ready?");
    stage.run(["stop", "asked"]).ok();
    let asked = stage.task("asked");
    assert_eq!((&asked["asked_to_stop"], &asked["unread"]), (&true.into(), &false.into()), "{asked}");
    assert_eq!((&asked["headline"], &asked["workspace_status"]), (&"stopped".into(), &"idle".into()));
    assert_eq!(asked["last_exit"], "-9", "it was killed, and that was asked for, too");

    stage.play("crashed", "exit 2");
    let crashed = wait_headline(&stage, "crashed", "failed");
    assert_eq!((&crashed["workspace_status"], &crashed["urgency"]), (&"errored".into(), &"blocked".into()));
    assert_eq!((&crashed["asked_to_stop"], &crashed["unread"]), (&false.into(), &true.into()), "{crashed}");
    let shown = stage.run(["ls"]).ok();
    assert!(shown.contains("🔴 failed ") && shown.contains(", unread: exit 2"), "{shown}");
    assert!(shown.contains("⚪ stopped "), "{shown}");
    stage.kill_daemon();
    assert_eq!(stage.task("crashed")["unread"], true);
    stage.run(["logs", "crashed"]).ok();
    assert_eq!(stage.task("crashed")["unread"], false);
    stage.kill_daemon();
    let crashed = stage.task("crashed");
    assert_eq!((&crashed["unread"], &crashed["urgency"]), (&false.into(), &"resting".into()));
    let asked = stage.task("asked");
    assert_eq!((&asked["headline"], &asked["workspace_status"]), (&"stopped".into(), &"idle".into()));
}

#[test]
fn what_an_agent_waits_for_stays_the_same_when_it_is_stale() {
    let stage = Stage::with_config("needs_input_timeout = \"1h\"\nstale_timeout = \"100ms\"\n");
    stage
        .run([
            "new",
            "asks",
            "-m",
            "Read the plan.\nThen act.",
            "--no-attach",
            "--",
            "fake-agent",
            "-c",
            "ask ready?",
        ])
        .ok();
    let task = stage.wait_task("asks", "is stale", |task| task["state"]["state"] == "stale");
    assert_eq!((&task["workspace_status"], &task["waiting_for"]), (&"stale".into(), &"question".into()));
    assert_eq!((&task["headline"], &task["urgency"]), (&"asks".into(), &"blocked".into()), "{task}");
    assert_eq!((&task["title"], &task["unread"]), (&"Read the plan.".into(), &true.into()), "{task}");
    let shown = stage.run(["ls"]).ok();
    assert!(shown.contains("🟠 asks ") && shown.contains(", unread: ready?"), "{shown}");
    let said = stage.run(["wait", "asks"]).ok();
    assert!(said.starts_with("asks ") && said.ends_with(": ready?\n"), "{said}");
}

#[test]
fn every_task_in_json_has_the_same_keys() {
    let stage = Stage::new();
    stage.run(["new", "draft", "--draft", "-m", "x"]).ok();
    stage.play("asks", "ask ready?");
    stage.play("over", "exit 1");
    wait_headline(&stage, "over", "failed");
    let keys = |slug: &str| -> Vec<String> {
        stage.task(slug).as_object().expect("an object").keys().cloned().collect()
    };
    let first = keys("draft");
    for key in ["waiting_for", "unread", "asked_to_stop", "headline", "urgency", "conflicts", "title"] {
        assert!(first.iter().any(|known| known == key), "{key}: {first:?}");
    }
    assert_eq!(first, keys("asks"));
    assert_eq!(first, keys("over"));
}

#[test]
fn tasks_that_need_somebody_come_first() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.run(["new", "draft", "--draft", "-m", "x"]).ok();
    stage.play("works", "raw; say busy; no-read");
    stage.play("done", r"say all is well; print \e]7501\x3bstate=done\a; no-read");
    stage.play("asks", "ask ready?");
    wait_headline(&stage, "works", "working");
    wait_headline(&stage, "done", "done");
    wait_headline(&stage, "asks", "asks");
    assert_eq!(slugs(&stage), ["asks", "done", "works", "draft"]);
    let mut terminal = stage.on_terminal(["attach", "done"]);
    terminal.wait_for("all is well");
    terminal.send("\x11");
    assert!(terminal.wait_exit().success(), "{terminal}");
    stage.wait_task("done", "is read", |task| task["urgency"] == "read");
    assert_eq!(slugs(&stage), ["asks", "works", "done", "draft"]);
}

#[test]
fn the_list_fits_every_terminal_and_every_locale() {
    let stage = Stage::with_config(NO_SILENCE);
    let slug = "a-rather-long-name-for-a-task-that-differs-only-in-its-end-1";
    stage.play(slug, &format!("ask {}?", "Delete everything below this directory ".repeat(4)));
    wait_headline(&stage, slug, "asks");
    for width in [20, 40, 60, 80, 100, 140] {
        let mut terminal = Pty::spawn(stage.agency(["ls", "--all"]), width, 24);
        assert!(terminal.wait_exit().success(), "{terminal}");
        let shown = String::from_utf8_lossy(terminal.output()).into_owned();
        let rows: Vec<&str> = shown.lines().collect();
        assert_eq!(rows.len(), 2, "a line wraps or is missing at {width}: {shown:?}");
        for row in &rows {
            assert!(visible_width(row) <= usize::from(width), "{width}: {row:?}");
        }
        assert!(shown.contains("asks"), "{width}: {shown:?}");
    }
    let mut plain = stage.agency(["ls"]);
    plain.env("LC_ALL", "C");
    let shown = CommandOutput::of(plain, b"").ok();
    assert!(shown.is_ascii() && shown.contains("? asks "), "{shown}");
    stage.configure("[ui]\nmarks = \"ascii\"\n");
    assert!(stage.run(["ls"]).ok().is_ascii());
    assert!(stage.run(["ls", "--config", "ui.marks=emoji"]).ok().contains("🟡 asks "));
}

/// The number of cells of a row without its colours.
fn visible_width(row: &str) -> usize {
    let mut chars = row.trim_end_matches('\r').chars();
    let mut cells = 0;
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => drop(chars.by_ref().find(|c| c.is_ascii_alphabetic())),
            '🟡' | '🟠' => cells += 2,
            _ => cells += 1,
        }
    }
    cells
}

#[test]
fn filters_choose_tasks_and_merged_tasks_are_counted() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.run(["new", "idea", "--draft", "-m", "x", "--label", "api", "--label", "ui"]).ok();
    stage.run(["new", "old", "--draft", "-m", "x"]).ok();
    let merged = stage.task_file("2-old").replace("status: draft", "status: merged");
    std::fs::write(stage.task_path("2-old"), merged).expect("a task file can be edited");
    stage.play("asks", "ask ready?");
    wait_headline(&stage, "asks", "asks");
    let chosen = |filter: &[&str]| -> Vec<String> {
        let listing = stage.run([&["ls", "--json"], filter].concat()).json();
        let tasks = listing["tasks"].as_array().expect("a list").iter();
        tasks.map(|task| task["slug"].as_str().expect("a slug").to_owned()).collect()
    };
    assert_eq!(chosen(&[]), ["idea", "old", "asks"]);
    assert_eq!(chosen(&["--sort", "need"]), ["asks", "idea", "old"]);
    assert_eq!(chosen(&["--needs-me"]), ["asks"]);
    assert_eq!(chosen(&["--label", "ui"]), ["idea"]);
    assert_eq!(chosen(&["--status", "merged,draft"]), ["idea", "old"]);
    assert_eq!(chosen(&["--state", "needs-input"]), ["asks"]);
    assert_eq!(chosen(&["--agent", "codex"]), [""; 0]);
    let project = stage.repo().file_name().expect("a name").to_string_lossy().into_owned();
    assert_eq!(chosen(&["--project", &project]).len(), 3);
    let shown = stage.run(["ls"]).ok();
    assert!(shown.ends_with("\n1 merged: --all-states lists them\n") && !shown.contains("old"), "{shown}");
    assert!(stage.run(["ls", "--all-states"]).ok().contains("⚪ merged"));
    assert!(stage.run(["ls", "--status", "merged"]).ok().contains("⚪ merged"));
    assert_eq!(stage.run(["ls", "--label", "none"]).ok(), "no task fits\n");
    let refused = stage.run(["ls", "--state", "bored"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("asks-permission"), "{refused}");
}

#[test]
fn the_brief_line_counts_what_matters_and_starts_no_daemon() {
    let stage = Stage::with_config(NO_SILENCE);
    assert_eq!(stage.run(["ls", "--brief"]).ok(), "");
    assert!(stage.daemon().is_none(), "a prompt starts nothing");
    stage.play("works", "raw; say busy; no-read");
    stage.play("asks", "ask ready?");
    wait_headline(&stage, "works", "working");
    wait_headline(&stage, "asks", "asks");
    assert_eq!(stage.run(["ls", "--brief"]).ok(), "1 ask · 1 work\n");
    assert_eq!(stage.run(["ls", "--all", "--brief", "--state", "working"]).ok(), "1 work\n");
    stage.kill_daemon();
    assert_eq!(stage.run(["ls", "--brief"]).ok(), "");
    assert!(stage.daemon().is_none());
}
