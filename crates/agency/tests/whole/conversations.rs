//! Conversations over stream-json: messages, approvals, crashes, and killed daemons.

use std::fs::File;
use std::process::{Child, Stdio};

use agency_testkit::CommandOutput;
use rustix::process::Signal;
use serde_json::Value;

use crate::chat;
use crate::journal;
use crate::stage::{SOON, Stage};

/// A task whose agent speaks stream-json and plays these steps.
#[track_caller]
pub fn new_conversation(stage: &Stage, slug: &str, message: &str, script: &str) -> Value {
    let resume = ["--resume", "$AGENCY_SESSION_ID"];
    let new = ["new", slug, "--no-attach", "--driver", "stream-json", "-m", message, "--"];
    let agent = ["fake-agent", "--stream-json", script];
    stage.run(new.into_iter().chain(agent).chain(resume)).ok();
    stage.task(slug)
}

#[track_caller]
pub fn chat(stage: &Stage, slug: &str) -> String {
    stage.run(["chat", slug]).ok()
}

/// Waits until the conversation contains the text, and returns all of it.
#[track_caller]
pub fn wait_said(stage: &Stage, slug: &str, text: &str) -> String {
    let what = format!("{slug} says {text:?}");
    stage.eventually(&what, SOON, || Some(chat(stage, slug)).filter(|chat| chat.contains(text)))
}

#[track_caller]
pub fn wait_approval(stage: &Stage, slug: &str) -> Value {
    let what = format!("{slug} asks");
    stage.eventually(&what, SOON, || {
        let listed = stage.run(["approvals", slug, "--json"]).json();
        listed["approvals"].get(0).cloned()
    })
}

#[track_caller]
pub fn wait_why(stage: &Stage, slug: &str, why: &str) -> Value {
    stage.wait_task(slug, why, |task| task["state"]["why"] == why)
}

/// The session in the task's file, once there is one.
#[track_caller]
pub fn session(stage: &Stage, name: &str) -> String {
    stage.eventually("a session is kept", SOON, || {
        let file = stage.task_file(name);
        file.lines().find(|line| line.starts_with("session_id:")).map(str::to_owned)
    })
}

/// Starts to send a message that goes to the keeper in three pieces.
pub fn send_long_message(stage: &Stage, slug: &str) -> Child {
    let path = stage.home().join("long");
    std::fs::write(&path, "word ".repeat(150_000)).expect("room");
    let mut send = stage.agency(["send", slug, "-"]);
    send.stdin(File::open(&path).expect("it is there")).stdout(Stdio::null()).stderr(Stdio::null());
    send.spawn().expect("agency can be run")
}

/// Every event so far.
pub fn events(stage: &Stage) -> Vec<Value> {
    let text = std::fs::read_to_string(stage.state().join("events.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

pub fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).map(|event| &event["data"]).collect()
}

#[test]
fn a_message_a_permission_and_the_end_of_the_turn() {
    let stage = Stage::new();
    new_conversation(
        &stage,
        "fix",
        "fix the login",
        "prompt; say On it.; tool Bash make test; say Done.; end",
    );
    let asked = wait_approval(&stage, "fix");
    assert_eq!((&asked["tool"], &asked["title"]), (&"Bash".into(), &"Bash: make test".into()));
    let task = wait_why(&stage, "fix", "permission");
    assert_eq!(task["evidence"]["source"], "protocol");
    assert_eq!(task["evidence"]["detail"], "Bash: make test");

    let said = stage.run(["approve", "fix", "-m", "it is safe"]).ok();
    assert!(said.starts_with("1-fix: Bash: make test: allowed by cli (pid "), "{said}");
    assert!(said.ends_with("(it is safe)\n"), "{said}");
    wait_why(&stage, "fix", "finished");
    let read = chat(&stage, "fix");
    for line in
        ["> fix the login", "On it.", "✓ Bash: make test", "  ran make test", "Done.", "── turn ended"]
    {
        assert!(read.contains(line), "{line:?} in {read}");
    }
    let told = stage.refused(&["approve", "fix"]);
    assert!(told.contains("no request is waiting for an answer") && !told.contains("already"), "{told}");
    let receipt = stage.run(["send", "fix", "more"]).ok();
    assert!(receipt.starts_with("delivered 4 bytes"), "{receipt}");
    wait_said(&stage, "fix", "echo: more");

    let events = events(&stage);
    for (kind, key, value) in [
        ("Output", "text", "On it."),
        ("ToolUse", "name", "Bash"),
        ("ToolResult", "output", "ran make test"),
        ("Approval", "title", "Bash: make test"),
        ("TurnEnd", "text", "done"),
    ] {
        assert!(of_kind(&events, kind).iter().any(|data| data[key] == value), "{kind}: {events:#?}");
    }
    let decided = of_kind(&events, "Approval").into_iter().find(|data| data["decision"] == "allowed");
    assert_eq!(decided.map(|data| &data["why"]), Some(&"it is safe".into()));
    let costs = stage.run(["cost", "--json"]).json();
    assert_eq!(costs["tasks"][0]["cost_usd"], 0.25);
    assert_eq!(costs["tasks"][0]["output_tokens"], 40);
    let log = std::fs::read_to_string(stage.state().join("daemon.log")).expect("a log");
    assert!(!log.contains("fix the login") && !log.contains("make test"), "{log}");
}

#[test]
fn a_denial_passes_its_reason_and_a_question_gets_its_answer() {
    let stage = Stage::new();
    new_conversation(
        &stage,
        "no",
        "go",
        "prompt; tool Bash rm -rf /; ask Which colour?|Red|Blue; tool Bash ls; end",
    );
    wait_approval(&stage, "no");
    stage.run(["deny", "no", "-m", "not that directory"]).ok();
    wait_said(&stage, "no", "  not that directory");
    wait_why(&stage, "no", "question");
    assert!(
        stage
            .refused(&["approve", "no", "--answer", "1", "--answer", "2"])
            .contains("the agent asks 1 question, but you gave 2 answers")
    );
    stage.run(["approve", "no", "--answer", "2"]).ok();
    wait_said(&stage, "no", "answered: Blue");
    wait_why(&stage, "no", "permission");
    stage.run(["approve", "no", "--always"]).ok();
    wait_said(&stage, "no", "ran ls for good");
}

#[test]
fn an_interrupt_ends_the_turn_and_withdraws_open_approvals() {
    let stage = Stage::new();
    new_conversation(&stage, "stop", "go", "prompt; wait; prompt; tool Bash ls; end");
    stage.wait_task("stop", "works", |task| task["state"]["state"] == "running");
    stage.run(["interrupt", "stop"]).ok();
    wait_why(&stage, "stop", "finished");
    assert!(stage.refused(&["interrupt", "stop"]).contains("no turn to interrupt"));
    stage.run(["send", "stop", "again"]).ok();
    wait_approval(&stage, "stop");
    stage.run(["interrupt", "stop"]).ok();
    wait_said(&stage, "stop", "? Bash: ls: withdrawn");
    assert_eq!(stage.run(["approvals"]).ok(), "");
}

#[test]
fn a_crashed_agent_resumes_its_session_at_most_three_times() {
    let stage = Stage::new();
    let once = stage.home().join("crashed");
    let script = format!("prompt; say I fall.; crash-once {} 7; args; end", once.display());
    new_conversation(&stage, "fall", "go", &script);
    let first =
        stage.eventually("the first run ends", SOON, || once.exists().then(|| session(&stage, "1-fall")));
    wait_said(&stage, "fall", "─── Session restarted ───");
    let task = stage.wait_task("fall", "lives again", |task| task["state"]["why"] == "error");
    let lost = task["evidence"]["detail"].as_str().unwrap_or_default();
    assert!(lost.contains("the last message was lost"), "the list says it: {task}");
    assert_eq!(task["stream_state"], "running");
    assert_eq!(session(&stage, "1-fall"), first);
    stage.run(["send", "fall", "go on"]).ok();
    let id = first.trim_start_matches("session_id:").trim().trim_matches('"').to_owned();
    let read = wait_said(&stage, "fall", &format!("args: --resume {id}"));
    assert!(read.starts_with("> go\nI fall.\n"), "{read}");

    new_conversation(&stage, "always", "", "crash 3");
    let task = stage.wait_status("always", "stopped");
    assert_eq!((&task["last_exit"], &task["stream_state"]), (&"3".into(), &"stopped".into()));
    let given_up = |events: &[Value]| {
        of_kind(events, "Error").iter().any(|data| data["message"] == "Agency gave up restarting the agent")
    };
    stage.eventually("it is given up", SOON, || given_up(&events(&stage)).then_some(()));
    let crashes =
        |data: &&&Value| data["message"] == "the agent crashed" && data["cause"] == "it ended with 3";
    let events = events(&stage);
    assert_eq!(
        of_kind(&events, "Error").iter().filter(crashes).count(),
        4,
        "one and three more: {events:#?}"
    );
    assert!(stage.worktree("2-always").is_dir());
    let read = wait_said(&stage, "always", "Error: Agency gave up restarting the agent");
    stage.kill_daemon();
    assert_eq!(chat(&stage, "always"), read, "and it stays there to read");
}

#[test]
fn the_conversation_reports_a_message_that_a_dead_agent_did_not_take() {
    let stage = Stage::new();
    new_conversation(&stage, "gone", "take this", "exit 0");
    stage.wait_status("gone", "stopped");
    let said = [
        "the agent ended before it took the queued message",
        "it is not known whether it took the queued message",
        "the agent ended during its turn",
    ];
    stage.eventually("the notice", SOON, || {
        let read = chat(&stage, "gone");
        said.iter().any(|said| read.contains(said)).then_some(())
    });
    let receipt = stage.run(["send", "gone", "--queue", "and this"]).ok();
    assert!(receipt.contains("its agent is not running: agency start 1"), "{receipt}");
    let held = stage.run(["queue", "gone"]).ok();
    assert!(held.contains("(its agent is not running) and this"), "{held}");
}

#[test]
fn chosen_model_and_mode_are_set_again_after_a_restart() {
    let stage = Stage::new();
    new_conversation(&stage, "keep", "go", "prompt; say Hm.; end");
    wait_why(&stage, "keep", "finished");
    stage.run(["model", "keep", "large"]).ok();
    stage.run(["mode", "keep", "plan"]).ok();
    let is_kept = |word: &str, wanted: &str| {
        stage.eventually(&format!("the {word} is {wanted}"), SOON, || {
            (stage.run([word, "keep", "--json"]).json()["current"] == wanted).then_some(())
        });
    };
    for _ in 0..2 {
        stage.run(["restart", "keep"]).ok();
        is_kept("model", "large");
        is_kept("mode", "plan");
    }
    stage.run(["mode", "keep", "acceptEdits"]).ok();
    stage.kill_daemon();
    stage.run(["restart", "keep"]).ok();
    is_kept("mode", "acceptEdits");
}

#[test]
fn an_agent_that_lost_its_session_begins_another() {
    let stage = Stage::new();
    let once = stage.home().join("crashed");
    let script = format!("forget; prompt; say Hm.; crash-once {} 7; args; end", once.display());
    new_conversation(&stage, "lost", "go", &script);
    let read = wait_said(&stage, "lost", "the agent does not have this session any more");
    assert!(read.contains("the agent ended during its turn"), "{read}");
    // Its message is lost, too.
    stage.wait_task("lost", "lives again", |task| task["state"]["why"] == "error");
    stage.run(["send", "lost", "who are you"]).ok();
    wait_said(&stage, "lost", "args: \n");
}

#[test]
fn a_killed_daemon_loses_no_question_and_the_answer_reaches_the_agent() {
    let stage = Stage::new();
    new_conversation(&stage, "wait", "go", "prompt; say Hm.; tool Bash ls; say Thanks.; end");
    let asked = wait_approval(&stage, "wait");
    let agent = stage.agent("wait");
    stage.kill_daemon();
    let again = wait_approval(&stage, "wait");
    assert_eq!(asked["id"], again["id"]);
    assert_eq!(stage.agent("wait").pid, agent.pid);
    stage.run(["approve", "wait"]).ok();
    wait_said(&stage, "wait", "Thanks.");
    let said = of_kind(&events(&stage), "Output").iter().filter(|data| data["text"] == "Hm.").count();
    assert_eq!(said, 1, "told once");
    stage.kill_daemon();
    let read = chat(&stage, "wait");
    assert!(read.contains("? Bash: ls: allowed by cli (pid "), "who it was outlives daemons: {read}");
    stage.run(["stop", "wait"]).ok();
    assert_eq!(chat(&stage, "wait"), read, "an agent that is gone leaves its conversation");
}

#[test]
fn an_agent_whose_keeper_is_killed_ends_and_can_be_started_again() {
    let stage = Stage::new();
    new_conversation(&stage, "held", "go", "prompt; say Hm.; end");
    wait_why(&stage, "held", "finished");
    let (keeper, before) = (stage.keeper("held"), session(&stage, "1-held"));
    let agent = keeper.child.expect("an agent");
    keeper.process.kill();
    stage.wait_status("held", "stopped");
    assert!(!agent.is_alive(), "the daemon could no longer talk to it");
    stage.run(["start", "held"]).ok();
    stage.run(["send", "held", "still there?"]).ok();
    wait_why(&stage, "held", "finished");
    let read = chat(&stage, "held");
    assert!(read.starts_with("> go\nHm.\n") && read.contains("─── Session restarted ───"), "{read}");
    assert_eq!(session(&stage, "1-held"), before);
}

#[test]
fn on_a_terminal_the_user_reads_types_answers_and_detaches() {
    let stage = Stage::new();
    let script = "prompt; say On it.; tool Bash make; end; prompt; wait; prompt; ask Which?|Red|Blue; end";
    new_conversation(&stage, "seat", "go", script);
    let mut terminal = stage.on_terminal(["chat", "seat"]);
    terminal.wait_for("On it.");
    terminal.wait_for("y: allow");
    terminal.send("y\n");
    terminal.wait_for("ran make");
    terminal.wait_for("turn ended");
    terminal.send("second\n");
    stage.wait_task("seat", "works", |task| task["state"]["state"] == "running");
    terminal.send("\x03");
    terminal.wait_for("turn interrupted");
    terminal.send("third\n");
    terminal.wait_for("2. Blue");
    terminal.send("2\n");
    terminal.wait_for("answered: Blue");
    terminal.send("\x04");
    terminal.wait_for("[left; the agent keeps running]");
    assert!(terminal.wait_exit().success());
    assert_eq!(stage.status("seat"), "running");
}

#[test]
fn of_two_answers_at_once_the_first_counts_and_the_second_is_refused() {
    let stage = Stage::new();
    new_conversation(&stage, "race", "go", "prompt; tool Bash one; say Ready.; wait");
    let id = wait_approval(&stage, "race")["id"].as_str().expect("an id").to_owned();
    let answer = |word: &str| {
        let mut command = stage.agency([word, "race", "--id", &id]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    };
    let both = [answer("approve"), answer("deny")];
    let both = both.map(|child| child.wait_with_output().expect("it ends"));
    let won = both.iter().filter(|output| output.status.success()).count();
    assert_eq!(won, 1, "{both:?}");
    let lost = both.iter().find(|output| !output.status.success()).expect("one lost");
    let told = String::from_utf8_lossy(&lost.stderr).into_owned();
    assert!(told.contains("already") && told.contains("cli (pid "), "{told}");
    let events = events(&stage);
    let decided = of_kind(&events, "Approval").iter().filter(|data| data["decision"].is_string()).count();
    assert_eq!(decided, 1);
}

#[test]
fn long_lines_garbage_and_unknown_requests_do_no_harm() {
    let stage = Stage::new();
    let script = "prompt; line not json at all; line {\"type\":\"dance\"}; line {\"type\":\"assistant\",\"message\":5}; big 10000000; request hop; say Still here.; end";
    new_conversation(&stage, "odd", "go", script);
    let read = wait_said(&stage, "odd", "Still here.");
    assert!(read.contains("Error: not a message: not json at all"), "{read}");
    assert!(read.contains("dance"), "{read}");
    assert!(read.contains("assistant: {\"type\":\"assistant\",\"message\":5}"), "{read}");
    assert!(read.contains("told: error"), "{read}");
    let entries = stage.run(["chat", "odd", "--json"]).ok();
    assert!(entries.lines().all(|line| line.len() < 200_000), "long texts are cut");
    assert!(entries.contains("bytes left out)"));
    let raw = stage.run(["logs", "odd", "--raw"]).ok();
    assert!(raw.len() > 10_000_000, "and the journal has them whole");
    let long = "word ".repeat(150_000);
    CommandOutput::of(stage.agency(["send", "odd", "-"]), long.as_bytes()).ok();
    stage.wait_task("odd", "has answered", |task| task["state"]["why"] == "finished");
    assert!(wait_said(&stage, "odd", "echo: word word").len() > 100_000);
}

#[test]
fn a_line_that_a_killed_daemon_left_half_written_does_not_begin_the_next() {
    let stage = Stage::new();
    new_conversation(&stage, "one", "go", "prompt; say Ready.; end");
    wait_why(&stage, "one", "finished");
    let (agent, run) = (stage.agent("one"), stage.keeper("one").run);
    // The agent does not read, so the line stays in the middle: the second piece waits for the first.
    assert!(agent.signal(Signal::STOP));
    let mut interrupted = send_long_message(&stage, "one");
    stage.eventually("a part of the line is written", SOON, || {
        journal::is_half_written(&journal::dir(&stage, &run)).then_some(())
    });
    stage.kill_daemon();
    assert!(!interrupted.wait().expect("our own child").success());
    assert!(agent.signal(Signal::CONT));
    stage.run(["send", "one", "and now?"]).ok();
    wait_said(&stage, "one", "echo: and now?");
    assert!(agent.is_alive(), "the same agent");
}

#[test]
fn commands_that_need_a_terminal_are_refused_with_a_hint() {
    let stage = Stage::new();
    new_conversation(&stage, "plain", "", "prompt; end");
    for args in [&["screen", "plain"][..], &["export", "plain", "-o", "-"]] {
        let told = stage.refused(args);
        assert!(told.contains("task 1 has no terminal") && told.contains("agency chat 1"), "{told}");
    }
    assert!(stage.refused(&["send", "plain", "--keys", "enter"]).contains("needs a terminal agent"));
    stage.play("screen", "say hello; ask more?");
    for args in [&["chat", "screen"][..], &["interrupt", "screen"]] {
        let told = stage.refused(args);
        assert!(told.contains("task 2 has no conversation") && told.contains("agency attach 2"), "{told}");
    }
    let told = stage.refused(&["approve", "screen"]);
    assert!(told.contains("no request is waiting for an answer") && told.contains("agency attach"), "{told}");
}

#[test]
fn two_thousand_entries_are_read_at_once_and_in_pages() {
    let stage = Stage::new();
    new_conversation(&stage, "long", "go", "prompt; many 2100; end");
    wait_why(&stage, "long", "finished");
    let entries = stage.run(["chat", "long", "--json"]).ok();
    assert_eq!(entries.lines().count(), 2000, "the last ones");
    assert!(entries.contains("message 2100") && !entries.contains("\"message 50\""));
}

#[test]
fn model_and_mode_are_shown_and_changed_if_the_agent_agrees() {
    let stage = Stage::new();
    new_conversation(&stage, "tune", "go", "prompt; say Hm.; end; prompt; tool Bash ls; end");
    wait_why(&stage, "tune", "finished");
    let shown = stage.run(["model", "tune"]).ok();
    assert_eq!(shown, "model: not reported yet\n  small  Small\n  large  Large\n");
    assert_eq!(stage.run(["model", "tune", "large"]).ok(), "model: large\n");
    assert_eq!(stage.run(["model", "tune", "--json"]).json()["current"], "large");
    assert!(stage.run(["model", "tune"]).ok().contains("* large  Large"));
    let told = stage.refused(&["model", "tune", "no-such"]);
    assert!(told.contains("the model is not set to no-such") && told.contains("unknown: no-such"), "{told}");

    let modes = stage.run(["mode", "tune"]).ok();
    assert!(modes.starts_with("mode: default\n* default\n") && modes.contains("  plan\n"), "{modes}");
    stage.run(["send", "tune", "again"]).ok();
    wait_approval(&stage, "tune");
    assert_eq!(stage.run(["mode", "tune", "plan"]).ok(), "mode: plan\n", "also in the middle of a turn");
    assert!(stage.refused(&["mode", "tune", "no-mode"]).contains("unknown: no-mode"));
    stage.kill_daemon();
    assert!(stage.run(["mode", "tune"]).ok().contains("* plan"), "the next daemon knows it too");
    let read = chat(&stage, "tune");
    assert!(read.contains("\nmodel: large\n") && read.contains("\nmode: plan\n"), "{read}");

    let mut terminal = stage.on_terminal(["chat", "tune"]);
    terminal.wait_for("y: allow");
    terminal.send("/mode acceptEdits\n");
    terminal.wait_for("mode: acceptEdits");
    terminal.send("/model no-model\n");
    terminal.wait_for("unknown: no-model");
    terminal.send("/model\n");
    terminal.wait_for("small  Small");
    terminal.send("\x04");
    assert!(terminal.wait_exit().success());

    stage.play("screen", "say hello; ask more?");
    assert!(stage.refused(&["mode", "screen"]).contains("task 2 has no conversation"));
}

#[test]
fn new_entries_do_not_disturb_the_line_that_the_user_types() {
    let stage = Stage::new();
    new_conversation(&stage, "line", "go", "prompt; say Hm.; end");
    wait_why(&stage, "line", "finished");
    let mut terminal = stage.on_terminal(["chat", "line"]);
    terminal.wait_for("turn ended");
    assert!(!terminal.echoes(), "the line is drawn by us");
    terminal.send("hell");
    terminal.wait_for("> hell");
    stage.run(["send", "line", "from elsewhere"]).ok();
    terminal.wait_for("\r\x1b[K");
    terminal.wait_for("echo: from elsewhere");
    terminal.wait_for("turn ended");
    let rows = chat::wait_rows(&mut terminal, "what was typed so far", |rows| {
        let turn_ends = rows.iter().filter(|row| row.contains("turn ended")).count();
        turn_ends == 2 && rows.iter().rposition(|row| row == "> hell") == Some(rows.len() - 2)
    });
    let typed = rows.iter().filter(|row| row.contains("hell")).count();
    assert_eq!(typed, 1, "whole lines, then what was typed so far: {rows:?}");
    terminal.send("p\x7fo\n");
    terminal.wait_for("echo: hello");
    terminal.send("\x1b[200~two\nlines\x1b[201~\n");
    wait_said(&stage, "line", "echo: two\nlines");
    terminal.send("never sent\x15\x04");
    terminal.wait_for("[left; the agent keeps running]");
    assert!(terminal.wait_exit().success());
    assert!(terminal.echoes(), "and the terminal is as it was");
    assert!(!chat(&stage, "line").contains("never sent"));
}

#[test]
fn an_agent_that_handles_only_sigterm_has_its_whole_grace() {
    let stage = Stage::new();
    let ready = stage.home().join("ready");
    let script = format!("trap : TERM; touch {}; while :; do sleep 0.05; done", ready.display());
    stage.configure(&format!("[agents.slow]\nstream = [\"sh\", \"-c\", {script:?}]\nstop_grace = \"2s\"\n"));
    stage.run(["new", "slow", "--no-attach", "--agent", "slow", "--driver", "stream-json"]).ok();
    stage.eventually("it handles the signal", SOON, || ready.exists().then_some(()));
    stage.run(["stop", "slow"]).ok();
    let file = stage.task_file("1-slow");
    assert!(file.contains("last_exit: {code: -9, raw: -9, at: "), "no other signal ended it before: {file}");
}
