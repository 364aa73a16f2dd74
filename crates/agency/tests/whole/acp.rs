//! Agents that speak ACP: one process for all tasks of an agent, sessions that outlive it, and daemons that die in between.

use agency_testkit::Process;
use rustix::process::Signal;
use serde_json::Value;

use crate::conversations::{
    chat, events, of_kind, send_long_message, session, wait_approval, wait_said, wait_why,
};
use crate::journal;
use crate::stage::{SOON, Stage};

/// The default agent is the fake one that speaks ACP; each of its processes appends its pid to a file.
fn stage(options: &[&str]) -> Stage {
    let stage = Stage::new();
    configure(&stage, options, "");
    stage
}

pub fn configure(stage: &Stage, options: &[&str], more: &str) {
    let (pids, sessions) = (stage.home().join("pids"), stage.home().join("sessions"));
    let words: Vec<String> = ["fake-agent", "--acp", "", "--mark", &pids.display().to_string()]
        .into_iter()
        .chain(options.iter().copied())
        .map(|word| format!("{word:?}"))
        .collect();
    stage.configure(&format!(
        "[agents.fake]\nacp = [{}]\n{more}[agents.fake.env]\nFAKE_AGENT_SESSIONS = {:?}\n",
        words.join(", "),
        sessions.display().to_string(),
    ));
}

#[track_caller]
pub fn new_conversation(stage: &Stage, slug: &str, message: &str) {
    stage.run(["new", slug, "--no-attach", "--driver", "acp", "-m", message]).ok();
}

pub fn process_count(stage: &Stage) -> usize {
    std::fs::read_to_string(stage.home().join("pids")).unwrap_or_default().lines().count()
}

#[track_caller]
fn connection(stage: &Stage) -> Value {
    let listed = stage.run(["connections", "--json"]).json();
    listed["connections"].get(0).cloned().unwrap_or_default()
}

#[track_caller]
fn wait_connection(stage: &Stage, status: &str) -> Value {
    let is_so = || Some(connection(stage)).filter(|connection| connection["status"] == status);
    stage.eventually(&format!("the connection is {status}"), SOON, is_so)
}

/// Counts whole lines, so that the message with the script does not count.
#[track_caller]
fn count_said(stage: &Stage, slug: &str, text: &str) -> usize {
    chat(stage, slug).lines().filter(|line| *line == text).count()
}

fn statuses(stage: &Stage) -> Vec<String> {
    let events = events(stage);
    of_kind(&events, "agent:status")
        .iter()
        .map(|data| data["status"].as_str().unwrap_or("").to_owned())
        .collect()
}

#[test]
fn tasks_of_one_agent_share_a_process_and_nothing_else() {
    let stage = stage(&[]);
    new_conversation(&stage, "one", "!say Hello from one.; tool Bash make test; say Done.; end");
    new_conversation(&stage, "two", "!think Hm.; plan look|do|check; usage 0.5; say Hello from two.; end");
    let asked = wait_approval(&stage, "one");
    assert_eq!((&asked["tool"], &asked["title"]), (&"Bash".into(), &"Bash: make test".into()));
    wait_why(&stage, "one", "permission");
    wait_why(&stage, "two", "finished");
    stage.run(["approve", "one", "-m", "it is safe"]).ok();
    wait_why(&stage, "one", "finished");
    let (one, two) = (chat(&stage, "one"), chat(&stage, "two"));
    for line in ["Hello from one.", "make test: allowed by cli", "Done.", "── turn ended"] {
        assert!(one.contains(line), "{line:?} in {one}");
    }
    assert!(two.contains("Hello from two.") && !two.contains("one"), "{two}");
    assert_eq!(process_count(&stage), 1, "one process for both");
    let shown = connection(&stage);
    assert_eq!((&shown["status"], &shown["sessions"]), (&"connected".into(), &2.into()));
    assert_eq!(statuses(&stage), ["starting", "connected"]);
    let costs = stage.run(["cost", "--json"]).json();
    assert!(
        costs["tasks"].as_array().is_some_and(|tasks| tasks.iter().any(|task| task["cost_usd"] == 0.5)),
        "{costs}"
    );

    let first = session(&stage, "1-one");
    stage.run(["stop", "one"]).ok();
    assert_eq!(connection(&stage)["status"], "connected", "the process stays");
    stage.run(["send", "two", "more"]).ok();
    wait_said(&stage, "two", "echo: more");
    stage.run(["start", "one"]).ok();
    stage.run(["send", "one", "--queue", "again"]).ok();
    wait_said(&stage, "one", "echo: again");
    assert_eq!((process_count(&stage), session(&stage, "1-one")), (1, first));
    stage.run(["daemon", "stop", "--agents"]).ok();
    assert_eq!(stage.keepers(), [], "nothing is left");
}

#[test]
fn answers_denials_questions_and_interrupts_reach_the_right_session() {
    let stage = stage(&[]);
    new_conversation(&stage, "one", "!tool Bash rm -rf /; ask Which colour?|Red|Blue; end");
    wait_approval(&stage, "one");
    let denied = stage.run(["deny", "one", "-m", "not that"]);
    assert!(denied.stderr.contains("the agent gets the reason as its next message"), "{denied}");
    wait_why(&stage, "one", "question");
    stage.run(["approve", "one", "--answer", "Blue"]).ok();
    wait_said(&stage, "one", "Blue");
    wait_said(&stage, "one", "echo: I denied `Bash: rm -rf /`: not that");
    wait_why(&stage, "one", "finished");
    stage.run(["send", "one", "!wait"]).ok();
    stage.wait_task("one", "works", |task| task["state"]["state"] == "running");
    let receipt = stage.run(["send", "one", "later"]).ok();
    assert!(receipt.starts_with("queued"), "one message at a time: {receipt}");
    stage.run(["interrupt", "one"]).ok();
    wait_said(&stage, "one", "echo: later");
    stage
        .run([
            "send",
            "one",
            "!line this is no message; update unheard_of; request odd/thing; say Fine.; end",
        ])
        .ok();
    stage.eventually("it says so", SOON, || (count_said(&stage, "one", "Fine.") == 1).then_some(()));
    let read = chat(&stage, "one");
    for line in ["Error: not a message: this is no message", "unheard_of: {", "request odd/thing: {"] {
        assert!(read.contains(line), "{line:?} in {read}");
    }
    let log = stage.run(["approvals", "--log", "one", "--json"]).json();
    assert_eq!(log["decisions"][1]["outcome"]["answer"], "Blue", "{log}");
}

#[test]
fn people_see_what_is_asked_and_choose_among_all_options() {
    let stage = stage(&[]);
    let script =
        "!described Tidy up the project|rm -rf build; server-tool list_tasks; edit a.txt old|new; end";
    new_conversation(&stage, "one", script);
    let asked = wait_approval(&stage, "one");
    let action = &asked["action"];
    assert_eq!((&action["command"], &action["directory"]), (&"rm -rf build".into(), &"/srv".into()));
    assert_eq!(
        (&action["summary"], &action["words"]),
        (&"rm -rf build".into(), &"Tidy up the project".into())
    );
    let listed = stage.run(["approvals"]).ok();
    for part in
        ["rm -rf build", "in /srv", "the agent says: Tidy up the project", "3. Switch to default mode"]
    {
        assert!(listed.contains(part), "{part:?} in {listed}");
    }
    assert!(stage.run(["ls"]).ok().contains("rm -rf build"), "the list says it, too");
    let refusal = stage.refused(&["approve", "one", "--option", "Perhaps"]);
    assert!(
        refusal.contains("does not offer this choice") && refusal.contains("`Always allow`"),
        "{refusal}"
    );
    stage.run(["approve", "one", "--option", "switch to default mode"]).ok();
    wait_said(&stage, "one", "ran rm -rf build in the default mode");

    let server_tool = stage.eventually("the next request", SOON, || {
        Some(wait_approval(&stage, "one")).filter(|asked| asked["action"]["mcp"].is_object())
    });
    let (title, action) = (&server_tool["title"], &server_tool["action"]);
    assert_eq!(title, "list_tasks (agency MCP Server): {}", "the title of the call, not of the request");
    assert_eq!(action["mcp"], serde_json::json!({ "server": "agency", "tool": "list_tasks" }));
    assert_eq!(action["summary"], "list_tasks of agency {\"all\":true}");
    stage.run(["approve", "one"]).ok();

    let edit = stage.eventually("the last request", SOON, || {
        Some(wait_approval(&stage, "one")).filter(|asked| asked["action"]["diff"].is_string())
    });
    assert_eq!(edit["action"]["diff"], "a.txt\n-old\n+new");
    assert!(stage.run(["approvals"]).ok().contains("    +new"), "the change is shown");
    stage.run(["approve", "one"]).ok();
    wait_why(&stage, "one", "finished");
    let events = events(&stage);
    let requested = of_kind(&events, "Approval").into_iter().find(|data| data["decision"].is_null());
    let requested = requested.expect("an event of the first request");
    assert_eq!(
        (&requested["action"]["command"], &requested["action"]["words"]),
        (&"rm -rf build".into(), &"Tidy up the project".into())
    );
    assert_eq!(requested["choices"][2], "Switch to default mode", "{requested}");
}

#[test]
fn a_rule_that_denies_also_denies_a_command_that_is_not_named() {
    let stage = Stage::new();
    let rules = "[[approve]]\ntool = \"execute\"\nmatch = \"rm *\"\ndecision = \"deny\"\n\
                 [[approve]]\ntool = \"execute\"\ndecision = \"allow\"\n";
    configure(&stage, &[], "");
    let config = std::fs::read_to_string(stage.config()).expect("it was written");
    std::fs::write(stage.config(), config + rules).expect("room");
    new_conversation(&stage, "one", "!bare rm -rf zzz; described List|ls; end");
    wait_why(&stage, "one", "finished");
    let read = chat(&stage, "one");
    assert!(!read.contains("ran rm -rf zzz") && read.contains("ran ls"), "{read}");
}

#[test]
fn the_conversation_says_that_its_connection_was_given_up() {
    let stage = Stage::new();
    let works = stage.home().join("works");
    std::fs::write(&works, "").expect("room");
    configure(&stage, &["--die-once", &works.display().to_string(), "3"], "");
    new_conversation(&stage, "one", "!say Hello.; end");
    wait_why(&stage, "one", "finished");
    std::fs::remove_file(&works).expect("it is ours");
    let told = stage.refused(&["reconnect", "fake"]);
    assert!(told.contains("Could not connect to Shell"), "{told}");
    let read = wait_said(&stage, "one", "Error: the connection to Shell is given up: agency reconnect shell");
    // The daemon may see either end of the process first.
    let causes = ["Caused by: its process ended with code 3", "Caused by: it closed its output"];
    assert!(causes.iter().any(|cause| read.contains(cause)), "{read}");
    stage.run(["reconnect", "fake"]).ok();
    stage.wait_status("one", "running");
}

#[test]
fn the_daemon_sets_a_chosen_mode_again_after_a_restart_and_a_reconnect() {
    let stage = stage(&[]);
    new_conversation(&stage, "one", "!say Hello.; end");
    wait_why(&stage, "one", "finished");
    stage.run(["mode", "one", "auto"]).ok();
    let runs_unasked = || {
        stage.run(["send", "one", "--queue", "!mode; end"]).ok();
        wait_said(&stage, "one", "mode: auto\n── turn ended");
    };
    stage.run(["restart", "one"]).ok();
    runs_unasked();
    stage.run(["reconnect", "fake"]).ok();
    runs_unasked();
}

#[test]
fn a_killed_daemon_loses_nothing_and_the_next_one_answers() {
    let stage = stage(&[]);
    let gate = stage.home().join("gate");
    agency_testkit::CommandOutput::of(stage.shell(&format!("mkfifo {}", gate.display())), b"").ok();
    new_conversation(&stage, "asks", "!say First.; tool Bash ls; say Done.; end");
    new_conversation(
        &stage,
        "works",
        &format!("!say Begun.; await {}; say Went on.; tool Bash pwd; end", gate.display()),
    );
    wait_approval(&stage, "asks");
    stage.eventually("it has begun", SOON, || (count_said(&stage, "works", "Begun.") == 1).then_some(()));
    stage.kill_daemon();
    // Only the keeper reads the agent's output now.
    agency_testkit::CommandOutput::of(stage.shell(&format!(": > {}", gate.display())), b"").ok();
    wait_approval(&stage, "works");
    stage.run(["approve", "asks"]).ok();
    wait_why(&stage, "asks", "finished");
    assert_eq!(count_said(&stage, "works", "Went on."), 1);
    stage.kill_daemon();
    stage.run(["approve", "works"]).ok();
    wait_why(&stage, "works", "finished");
    for (slug, text) in [("asks", "First."), ("asks", "Done."), ("works", "Begun."), ("works", "Went on.")] {
        assert_eq!(count_said(&stage, slug, text), 1, "{text:?} in {}", chat(&stage, slug));
    }
    assert_eq!(process_count(&stage), 1);
}

#[test]
fn a_process_that_dies_comes_back_with_its_sessions_and_loses_the_open_message() {
    let stage = stage(&[]);
    new_conversation(&stage, "one", "!say Hello.; end");
    new_conversation(&stage, "two", "!say Hi.; end");
    wait_why(&stage, "one", "finished");
    wait_why(&stage, "two", "finished");
    let sessions = (session(&stage, "1-one"), session(&stage, "2-two"));
    stage.run(["send", "one", "!say Working.; wait"]).ok();
    stage.eventually("it works", SOON, || (count_said(&stage, "one", "Working.") == 1).then_some(()));
    stage.agent("one").kill();
    wait_said(&stage, "one", "was lost with the connection; Agency does not send it again");
    wait_connection(&stage, "connected");
    assert_eq!(process_count(&stage), 2);
    for slug in ["one", "two"] {
        stage.run(["send", slug, "--queue", "there?"]).ok();
        wait_said(&stage, slug, "echo: there?");
    }
    assert_eq!((session(&stage, "1-one"), session(&stage, "2-two")), sessions);
    assert_eq!(count_said(&stage, "one", "Working."), 1, "what was said before is not told twice");
    assert_eq!(statuses(&stage), ["starting", "connected", "disconnected", "reconnecting", "connected"]);
    let events = events(&stage);
    assert!(of_kind(&events, "Error").iter().any(|data| data["agent"] == "shell"), "{events:#?}");

    stage.run(["reconnect", "fake"]).ok();
    assert_eq!(process_count(&stage), 3);
    stage.run(["send", "two", "--queue", "still there?"]).ok();
    wait_said(&stage, "two", "echo: still there?");
}

#[test]
fn a_start_that_fails_says_why_is_not_repeated_and_leaves_nothing() {
    let stage = Stage::new();
    for (options, message) in [
        (&["--refuse", "no licence"][..], "Could not connect to Shell"),
        (&["--die", "3"][..], "Could not connect to Shell"),
        (&["--speaks", "9"][..], "Could not connect to Shell"),
    ] {
        configure(&stage, options, "");
        let before = process_count(&stage);
        let said = stage.refused(&["new", "x", "--no-attach", "--driver", "acp", "-m", "go"]);
        assert!(said.contains(message), "{options:?}: {said}");
        assert_eq!(process_count(&stage), before + 1, "{options:?}: once");
        assert_eq!(stage.traces(), [""; 0], "{options:?}");
        assert_eq!(connection(&stage)["status"], "disconnected");
        stage.eventually("no process is left", SOON, || stage.keepers().is_empty().then_some(()));
    }
    let events = events(&stage);
    assert!(of_kind(&events, "Error").iter().all(|data| data["message"] == "Could not connect to Shell"));
    // After that, the agent gets what it needs.
    configure(&stage, &[], "");
    new_conversation(&stage, "x", "!say Here.; end");
    wait_said(&stage, "x", "Here.");
}

#[test]
fn a_workspace_may_have_a_process_of_its_own_which_ends_with_its_task() {
    let stage = Stage::new();
    configure(&stage, &[], "per_workspace = true\n");
    new_conversation(&stage, "one", "!env AGENCY_SLUG; end");
    new_conversation(&stage, "two", "!env AGENCY_SLUG; end");
    wait_said(&stage, "one", "one");
    wait_said(&stage, "two", "two");
    assert_eq!(process_count(&stage), 2);
    let process: Process = stage.agent("one");
    stage.run(["stop", "one"]).ok();
    stage.eventually("its process is gone", SOON, || (!process.is_alive()).then_some(()));
    stage.run(["send", "two", "there?"]).ok();
    wait_said(&stage, "two", "echo: there?");
    stage.eventually("only the other's is listed", SOON, || {
        let listed = stage.run(["connections", "--json"]).json();
        let listed = listed["connections"].as_array().expect("connections").clone();
        (listed.len() == 1 && listed[0]["name"] == "shell@2-two").then_some(())
    });
    stage.run(["reconnect", "shell@2-two"]).ok();
    stage.run(["start", "one"]).ok();
    stage.run(["send", "one", "--queue", "again"]).ok();
    wait_said(&stage, "one", "echo: again");
}

#[test]
fn a_session_whose_keeper_died_with_the_daemon_ends_and_resumes_at_the_next_start() {
    let stage = stage(&[]);
    new_conversation(&stage, "one", "!say Hello.; tool Bash ls; end");
    wait_approval(&stage, "one");
    let keeper = stage.keeper("one");
    stage.kill_daemon();
    keeper.process.kill();
    keeper.child.expect("a keeper knows its agent").kill();
    assert_eq!(stage.status("one"), "stopped");
    let read = chat(&stage, "one");
    assert!(read.contains("Hello.") && read.contains("ls: withdrawn"), "{read}");
    assert_eq!(stage.run(["approvals"]).ok(), "");
    let kept = session(&stage, "1-one");
    stage.run(["start", "one"]).ok();
    stage.run(["send", "one", "--queue", "there?"]).ok();
    wait_said(&stage, "one", "echo: there?");
    assert_eq!(session(&stage, "1-one"), kept);
}

#[test]
fn a_stopped_session_stays_stopped_when_a_daemon_is_killed() {
    let stage = stage(&[]);
    new_conversation(&stage, "one", "!say Hello.; end");
    new_conversation(&stage, "two", "!say Hi.; end");
    wait_why(&stage, "one", "finished");
    wait_why(&stage, "two", "finished");
    stage.run(["stop", "one"]).ok();
    stage.kill_daemon();
    assert_eq!((stage.status("one"), stage.status("two")), ("stopped".to_owned(), "running".to_owned()));
    assert_eq!(connection(&stage)["sessions"], 1);
    stage.run(["send", "two", "there?"]).ok();
    wait_said(&stage, "two", "echo: there?");
}

#[test]
fn a_message_leaves_the_queue_although_its_answer_comes_late() {
    let stage = stage(&[]);
    let gate = stage.home().join("gate");
    agency_testkit::CommandOutput::of(stage.shell(&format!("mkfifo {}", gate.display())), b"").ok();
    new_conversation(&stage, "one", &format!("!await {}; say Late.; end", gate.display()));
    stage.eventually("its input has taken it", SOON, || {
        stage.run(["queue", "--json"]).json()["queued"].as_array().is_some_and(Vec::is_empty).then_some(())
    });
    agency_testkit::CommandOutput::of(stage.shell(&format!(": > {}", gate.display())), b"").ok();
    stage.eventually("it is said", SOON, || (count_said(&stage, "one", "Late.") == 1).then_some(()));
    stage.run(["send", "one", "--queue", "more"]).ok();
    wait_said(&stage, "one", "echo: more");
}

/// Whether an agent that does not read has a part of a long line.
fn is_half_written(stage: &Stage) -> bool {
    let connections = std::fs::read_dir(stage.state().join("w")).expect("connections").flatten();
    connections.into_iter().any(|dir| journal::is_half_written(&dir.path().join("j")))
}

#[test]
fn a_line_that_a_killed_daemon_left_half_written_does_not_begin_the_next() {
    let stage = stage(&[]);
    new_conversation(&stage, "one", "!say Ready.; end");
    wait_why(&stage, "one", "finished");
    let pids = std::fs::read_to_string(stage.home().join("pids")).expect("one process");
    let agent = Process::find(pids.trim().parse().expect("a pid")).expect("it lives");
    // The agent does not read, so the line stays in the middle: it goes in pieces, and the second waits for the first.
    assert!(agent.signal(Signal::STOP));
    let mut interrupted = send_long_message(&stage, "one");
    stage.eventually("a part of the line is written", SOON, || is_half_written(&stage).then_some(()));
    stage.kill_daemon();
    assert!(!interrupted.wait().expect("our own child").success());
    assert!(agent.signal(Signal::CONT));
    stage.run(["send", "one", "!say Still here.; end"]).ok();
    stage.eventually("the agent answers the next message", SOON, || {
        (count_said(&stage, "one", "Still here.") == 1).then_some(())
    });
    assert_eq!(process_count(&stage), 1, "the same process");
}

#[test]
fn an_agent_that_would_approve_its_own_actions_is_made_to_ask() {
    let stage = stage(&["--begin-in", "auto"]);
    new_conversation(&stage, "one", "!tool Bash make; end");
    wait_approval(&stage, "one");
    stage.run(["approve", "one"]).ok();
    wait_why(&stage, "one", "finished");
    let read = chat(&stage, "one");
    assert!(read.contains("mode: ask; the agent began in `auto`"), "{read}");
    let events = events(&stage);
    let changes = of_kind(&events, "ModeChanged");
    assert_eq!((&changes[0]["by"], &changes[0]["new"]), (&"agency".into(), &"ask".into()), "{changes:?}");
}

#[test]
fn an_agent_that_changes_its_mode_by_itself_is_loud() {
    let stage = stage(&[]);
    new_conversation(&stage, "one", "!say Hello.; end");
    wait_why(&stage, "one", "finished");
    assert_eq!(stage.task("one")["mode_warning"], Value::Null);
    stage.run(["send", "one", "!switch auto; tool Bash make; end"]).ok();
    let words =
        "the agent changed its mode from `ask` to `auto` by itself; it may approve its own actions now";
    wait_said(&stage, "one", &format!("Error: {words}"));
    wait_why(&stage, "one", "finished");
    let events = events(&stage);
    let changes = of_kind(&events, "ModeChanged");
    assert_eq!((&changes[0]["by"], &changes[0]["warning"]), (&"agent".into(), &words.into()), "{changes:?}");
    assert_eq!(stage.task("one")["mode_warning"], words);
    assert!(stage.run(["ls"]).ok().contains(words), "the list says it");
    assert!(stage.run(["explain", "one"]).ok().contains(words), "and so does the explanation");
    // The user puts it back.
    stage.run(["mode", "one", "ask"]).ok();
    stage.wait_task("one", "has no warning", |task| task["mode_warning"].is_null());
}

#[test]
fn an_agent_without_modes_works() {
    let stage = stage(&["--no-modes"]);
    new_conversation(&stage, "one", "!tool Bash make; end");
    wait_approval(&stage, "one");
    stage.run(["approve", "one"]).ok();
    wait_why(&stage, "one", "finished");
    assert_eq!(of_kind(&events(&stage), "ModeChanged").len(), 0, "nothing is known about its modes");
}

#[test]
fn a_session_that_the_agent_opens_under_a_wrong_id_is_an_error() {
    let stage = stage(&["--wrong-id"]);
    new_conversation(&stage, "one", "!say Never.; end");
    wait_why(&stage, "one", "error");
    let read = chat(&stage, "one");
    assert!(read.contains("it answered session/new under an id that Agency did not use"), "{read}");
    assert_eq!(stage.task("one")["queued"], 1, "the message waits");
    let refusal = stage.refused(&["send", "one", "hello"]);
    assert!(refusal.contains("agency chat one shows why") && !refusal.contains("--keys"), "{refusal}");
    stage.run(["stop", "one"]).ok();
}

#[test]
fn a_session_opens_on_a_connection_that_was_silent_for_longer_than_the_time_limit() {
    let stage = stage(&[]);
    new_conversation(&stage, "one", "hello");
    wait_said(&stage, "one", "echo: hello");
    // The agent must open a session within 60 seconds. Nothing happens for longer than that.
    for _ in 0..2 {
        assert_eq!(stage.run(["wait", "one", "--until", "exited", "--timeout", "31s"]).code, 4);
    }
    new_conversation(&stage, "two", "hello");
    wait_said(&stage, "two", "echo: hello");
}

#[test]
fn a_stop_ends_a_handshake_at_once() {
    let stage = stage(&["--mute", "--linger"]);
    let begin = |slug: &str| {
        let mut command = stage.agency(["new", slug, "--no-attach", "--driver", "acp", "-m", "go"]);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        command.spawn().expect("the command line runs")
    };
    let refused = begin("one");
    stage.eventually("the handshake has begun", SOON, || (process_count(&stage) == 1).then_some(()));
    stage.eventually("it can be stopped", SOON, || (stage.run(["stop", "one"]).code == 0).then_some(()));
    let refused = refused.wait_with_output().expect("our own child");
    assert!(!refused.status.success());
    // No task needs the connection any more: it ends, and has not failed.
    wait_connection(&stage, "idle");
    stage.eventually("no process is left", SOON, || stage.keepers().is_empty().then_some(()));

    let refused = begin("two");
    stage.eventually("the next handshake has begun", SOON, || (process_count(&stage) == 2).then_some(()));
    stage.run(["daemon", "stop", "--agents"]).ok();
    assert!(!refused.wait_with_output().expect("our own child").status.success());
    assert_eq!(of_kind(&events(&stage), "Error").len(), 0, "no handshake ran into its time limit");
    assert_eq!(stage.keepers(), [], "nothing is left");
}

#[test]
fn sessions_take_no_slot_of_max_agents() {
    let stage = Stage::new();
    configure(&stage, &[], "");
    let config = std::fs::read_to_string(stage.config()).expect("it was written");
    std::fs::write(stage.config(), format!("max_agents = 1\n{config}")).expect("room");
    new_conversation(&stage, "one", "!say Hello.; end");
    new_conversation(&stage, "two", "!say Hello.; end");
    stage.run(["new", "three", "--no-attach", "--", "sleep", "1000"]).ok();
    new_conversation(&stage, "four", "!say Hello.; end");
    let refusal = stage.refused(&["new", "five", "--no-attach", "--", "sleep", "1000"]);
    assert!(refusal.contains("maximum number of agents reached (1)"), "{refusal}");
}

#[test]
fn an_agent_that_is_not_installed_says_so_and_is_disconnected() {
    let stage = Stage::new();
    stage.configure("[agents.absent]\nacp = [\"no-such-program\"]\n");
    let refusal = stage.refused(&["new", "x", "--no-attach", "--agent", "absent", "--driver", "acp"]);
    for part in ["Could not start absent. Check that it's installed.", "`no-such-program` was not found"] {
        assert!(refusal.contains(part), "{part:?} in {refusal}");
    }
    assert_eq!(stage.traces(), [""; 0]);
    assert_eq!(statuses(&stage), ["disconnected"]);
    let events = events(&stage);
    let errors = of_kind(&events, "Error");
    assert_eq!(errors[0]["message"], "Could not start absent. Check that it's installed.", "{errors:?}");
    // A draft does not need its agent until it is started.
    stage.run(["new", "later", "--draft", "--agent", "absent", "--driver", "acp"]).ok();
    let refusal = stage.refused(&["chat", "later"]);
    assert!(refusal.contains("it has not been started"), "{refusal}");
    let refusal = stage.refused(&["start", "later"]);
    assert!(refusal.contains("Could not start absent. Check that it's installed."), "{refusal}");
}

#[test]
fn an_agent_that_cannot_list_its_sessions_is_not_asked_for_them() {
    let stage = stage(&["--no-list"]);
    new_conversation(&stage, "one", "!say Hello.; end");
    let refusal = stage.refused(&["connections", "--sessions", "fake"]);
    assert!(refusal.contains("Shell cannot list its sessions"), "{refusal}");
}

#[test]
fn events_name_their_agent_and_the_command_of_a_tool() {
    let stage = stage(&[]);
    new_conversation(&stage, "one", "!late make test; bare ls; end");
    wait_approval(&stage, "one");
    stage.run(["deny", "one", "-m", "not now"]).ok();
    wait_said(&stage, "one", "echo: I denied `ls`: not now");
    wait_why(&stage, "one", "finished");
    assert_eq!(count_said(&stage, "one", "echo: I denied `ls`: not now"), 1, "once");
    let events = events(&stage);
    let uses: Vec<(&Value, &Value)> =
        of_kind(&events, "ToolUse").into_iter().map(|data| (&data["title"], &data["command"])).collect();
    let (none, made) = (Value::Null, Value::from("make test"));
    assert_eq!(uses[..2], [(&Value::from("shell"), &none), (&made, &made)], "{uses:?}");
    assert_eq!(uses[2].0, "ls");
    let is_nameless = |event: &&Value| event["task"].is_number() && !event["agent"].is_string();
    let without_agent: Vec<&Value> = events.iter().filter(is_nameless).collect();
    assert_eq!(without_agent, Vec::<&Value>::new());
}

#[test]
fn no_event_state_or_log_quotes_a_message_that_was_lost_or_held() {
    let stage = stage(&[]);
    new_conversation(&stage, "one", "!say Hello.; end");
    wait_why(&stage, "one", "finished");
    stage.run(["send", "one", "!say Working.; wait for-the-secret-xyzzy"]).ok();
    stage.eventually("it works", SOON, || (count_said(&stage, "one", "Working.") == 1).then_some(()));
    stage.run(["send", "one", "--queue", "the-other-secret-plugh"]).ok();
    stage.agent("one").kill();
    stage.run(["stop", "one"]).ok();
    let listed = stage.run(["ls", "--json"]).ok() + &stage.run(["explain", "one", "--json"]).ok();
    let kept = std::fs::read_to_string(stage.state().join("events.jsonl")).expect("events");
    for (place, text) in [("a list", listed), ("an event", kept), ("the log", stage.daemon_log())] {
        assert!(!text.contains("xyzzy") && !text.contains("plugh"), "{place} quotes a message: {text}");
    }
    assert!(chat(&stage, "one").contains("xyzzy"), "the conversation has it");
    assert!(stage.run(["queue", "one"]).ok().contains("plugh"), "and so has the queue");
}
