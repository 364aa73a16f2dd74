//! Changing the driver of a task: the session continues, or the refusal gives the reason.

use crate::conversations::{chat, new_conversation, session, wait_said, wait_why};
use crate::stage::{SOON, Stage};

const AGENTS: &str = r#"
[agents.both]
display_name = "Both"
start = ["fake-agent", "-c", "say begun; ask more?"]
resume = ["fake-agent", "-c", "say resumed $AGENCY_SESSION_ID; ask more?"]
stream = ["fake-agent", "--stream-json", "prompt; args; end", "--resume", "$AGENCY_SESSION_ID"]

[agents.forgetful]
start = ["fake-agent", "-c", "say begun; ask more?"]
stream = ["fake-agent", "--stream-json", "prompt; args; end"]

[agents.amnesic]
display_name = "Amnesic"
stream = ["fake-agent", "--stream-json", "prompt; args; end", "--resume", "$AGENCY_SESSION_ID"]
acp = ["fake-agent", "--acp", "", "--forget"]

[agents.newborn]
display_name = "Newborn"
stream = ["fake-agent", "--stream-json", "prompt; args; end", "--resume", "$AGENCY_SESSION_ID"]
acp = ["fake-agent", "--acp", "", "--no-load", "--no-resume"]

[agents.plain]
start = ["fake-agent", "-c", "say begun; ask more?"]
resume = ["fake-agent", "-c", "say resumed $AGENCY_SESSION_ID; ask more?"]
"#;

#[track_caller]
fn new_task(stage: &Stage, slug: &str, agent: &str, driver: &str) {
    stage.run(["new", slug, "--no-attach", "--agent", agent, "--driver", driver, "-m", "go"]).ok();
}

/// The session id without the driver.
#[track_caller]
fn session_id(stage: &Stage, name: &str) -> String {
    session(stage, name).trim_start_matches("session_id:").trim().trim_matches('"').to_owned()
}

#[test]
fn the_session_continues_from_pipe_to_terminal_and_back() {
    let stage = Stage::with_config(AGENTS);
    new_task(&stage, "both", "both", "stream-json");
    wait_why(&stage, "both", "finished");
    let id = session_id(&stage, "1-both");
    stage.run(["restart", "both", "--driver", "terminal"]).ok();
    assert_eq!(stage.task("both")["driver"], "terminal");
    assert!(stage.task_file("1-both").contains("\ndriver: terminal\n"));
    stage.wait_printed("both", &format!("resumed {id}"));
    assert!(chat(&stage, "both").starts_with("> go\nargs: \n"), "what was said is still there to read");
    let mut terminal = stage.on_terminal(["chat", "both"]);
    terminal.wait_for("[the agent now runs in a terminal: agency attach 1]");
    assert!(terminal.wait_exit().success());
    let told = stage.refused(&["start", "both", "--driver", "stream-json"]);
    assert!(told.contains("the agent of task 1-both is already running"), "{told}");
    assert!(told.contains("agency restart 1 --driver stream-json"), "{told}");

    stage.run(["restart", "both", "--driver", "stream-json"]).ok();
    stage.run(["send", "both", "again"]).ok();
    let read = wait_said(&stage, "both", &format!("args: --resume {id}"));
    assert!(read.starts_with("> go\n") && read.contains("─── Session restarted ───"), "{read}");
    assert_eq!(session_id(&stage, "1-both"), id);
    stage.kill_daemon();
    stage.run(["stop", "both"]).ok();
    assert_eq!(stage.task("both")["driver"], "stream-json");
    stage.run(["start", "both", "--driver", "terminal"]).ok();
    stage.wait_printed("both", &format!("resumed {id}"));
}

#[test]
fn a_session_that_cannot_continue_is_refused_with_the_reason_and_nothing_is_stopped() {
    let stage = Stage::with_config(AGENTS);
    new_task(&stage, "unsaid", "both", "terminal");
    let agent = stage.agent("unsaid");
    let told = stage.refused(&["restart", "unsaid", "--driver", "stream-json"]);
    assert!(told.contains("Both has not reported its session id yet") && told.contains("--fresh"), "{told}");
    assert_eq!(stage.agent("unsaid").pid, agent.pid);

    new_task(&stage, "plain", "plain", "terminal");
    let told = stage.refused(&["restart", "plain", "--driver", "stream-json"]);
    assert!(told.contains("agent plain has no command for the stream-json driver"), "{told}");

    new_task(&stage, "lost", "forgetful", "stream-json");
    wait_why(&stage, "lost", "finished");
    session(&stage, "3-lost");
    let told = stage.refused(&["restart", "lost", "--driver", "terminal"]);
    assert!(told.contains("cannot resume a session with the terminal driver"), "{told}");
    assert!(told.contains("set `resume` under [agents.forgetful]"), "{told}");
    stage.run(["restart", "lost", "--driver", "terminal", "--fresh"]).ok();
    stage.wait_printed("lost", "begun");
    assert!(!stage.task_file("3-lost").contains("session_id: fake"), "another session, not known yet");

    new_conversation(&stage, "own", "go", "prompt; end");
    wait_why(&stage, "own", "finished");
    let told = stage.refused(&["restart", "own", "--driver", "terminal", "--fresh"]);
    assert!(told.contains("its command was written for the stream-json driver"), "{told}");
    assert!(stage.refused(&["restart", "own", "--driver", "tty"]).contains("tty"));
}

#[test]
fn an_agent_without_that_session_keeps_running_or_the_error_has_a_hint() {
    let stage = Stage::with_config(AGENTS);
    new_task(&stage, "first", "newborn", "acp");
    wait_said(&stage, "first", "echo: go");
    new_task(&stage, "known", "newborn", "stream-json");
    wait_why(&stage, "known", "finished");
    let before = session_id(&stage, "2-known");
    let told = stage.refused(&["restart", "known", "--driver", "acp"]);
    assert!(
        told.contains("Newborn reports that it cannot resume sessions over ACP") && told.contains("--fresh"),
        "{told}"
    );
    assert_eq!((stage.status("known"), session_id(&stage, "2-known")), ("running".to_owned(), before));

    new_task(&stage, "unknown", "amnesic", "stream-json");
    wait_why(&stage, "unknown", "finished");
    let before = session_id(&stage, "3-unknown");
    stage.run(["restart", "unknown", "--driver", "acp"]).ok();
    let read = wait_said(&stage, "unknown", "it cannot continue this one");
    assert!(read.contains("agency restart --fresh") && read.contains("--driver goes back"), "{read}");
    stage.run(["restart", "unknown", "--driver", "stream-json"]).ok();
    assert_eq!(session_id(&stage, "3-unknown"), before);
}

#[test]
fn a_new_session_needs_an_option() {
    let stage = Stage::with_config(AGENTS);
    new_task(&stage, "fresh", "both", "stream-json");
    wait_why(&stage, "fresh", "finished");
    let before = session_id(&stage, "1-fresh");
    assert!(stage.refused(&["start", "fresh", "--fresh"]).contains("agency restart 1 --fresh"));
    stage.run(["restart", "fresh", "--fresh"]).ok();
    let read = stage.eventually("the text is sent again", SOON, || {
        Some(chat(&stage, "fresh")).filter(|read| read.matches("args: \n").count() == 2)
    });
    assert_eq!(read.matches("> go\n").count(), 2, "{read}");
    stage.eventually("another session is kept", SOON, || {
        (session_id(&stage, "1-fresh") != before).then_some(())
    });
}
