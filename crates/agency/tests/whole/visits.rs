//! Opening a task and leaving it: terminals and conversations alike, taking over, and going on to the next task.

use agency_terminal::{Screen, Size};
use agency_testkit::Pty;

use crate::conversations::{new_conversation, wait_said, wait_why};
use crate::stage::Stage;

const CTRL_Q: &str = "\x11";

fn rows(terminal: &Pty) -> Vec<String> {
    let mut screen = Screen::new(Size::cells(80, 24), 1000);
    screen.feed(terminal.output());
    screen.rows()
}

#[test]
fn attach_opens_a_conversation_and_the_detach_key_leaves_it() {
    let stage = Stage::new();
    new_conversation(
        &stage,
        "talk",
        "hello",
        "prompt; say Hello to you.; end; prompt; say Hello again.; end",
    );
    wait_said(&stage, "talk", "Hello to you.");
    let mut terminal = stage.on_terminal(["attach", "talk"]);
    terminal.wait_for("Hello to you.");
    terminal.send("and again\n");
    terminal.wait_for("Hello again.");
    terminal.send(CTRL_Q);
    assert!(terminal.wait_exit().success(), "{terminal}");
    terminal.wait_for("[left; the agent keeps running]");
    assert_eq!(stage.status("talk"), "running");

    // The configured key, as in a terminal.
    let mut chat = stage.agency(["chat", "talk"]);
    chat.env("AGENCY_DETACH_KEYS", "ctrl-p,ctrl-x");
    let mut terminal = Pty::spawn(chat, 80, 24);
    terminal.wait_for("Hello to you.");
    terminal.send("\x10\x18");
    assert!(terminal.wait_exit().success(), "{terminal}");

    let mut terminal = stage.on_terminal(["attach", "talk", "--read-only"]);
    terminal.wait_for("Hello to you.");
    terminal.send("\x03");
    terminal.wait_exit();
}

#[test]
fn a_key_without_control_says_so_and_enter_takes_over() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    let mut first = stage.on_terminal(["attach", "one"]);
    first.wait_for("ready?");
    let mut second = stage.on_terminal(["attach", "one"]);
    second.wait_for("ready?");
    second.send("x");
    second.wait_for("[another viewer types in 1-one; Enter takes over]");
    assert!(second.output().contains(&0x07), "with a bell");
    second.send("\r");
    first.wait_for("watching");
    second.send("from the second\r");
    second.wait_for("got: from the second");
    assert!(!stage.logs("one").contains("xfrom"), "keys before were not sent");
    first.send("y");
    first.wait_for("[another viewer types in 1-one;");
    first.send(CTRL_Q);
    assert!(first.wait_exit().success());
}

#[test]
fn the_detach_key_twice_goes_on_to_the_next_task_that_waits() {
    let stage = Stage::new();
    stage.play("one", "loop; ask first?; end");
    stage.play("two", "loop; ask second?; end");
    for slug in ["one", "two"] {
        stage.wait_task(slug, "waits", |task| task["workspace_status"] == "needs_input");
    }
    let mut terminal = stage.on_terminal(["attach", "one"]);
    terminal.wait_for("first?");
    terminal.send(CTRL_Q);
    terminal.send(CTRL_Q);
    terminal.wait_for("second?");
    terminal.send("hello two\r");
    terminal.wait_for("got: hello two");
    stage.wait_task("two", "waits", |task| task["workspace_status"] == "needs_input");
    terminal.send(CTRL_Q);
    terminal.send("n");
    let seen = terminal.output().len();
    terminal.wait_until("the first task again", |output| {
        String::from_utf8_lossy(&output[seen..]).contains("first?").then_some(())
    });
    terminal.send(CTRL_Q);
    assert!(terminal.wait_exit().success(), "{terminal}");
    terminal.wait_for("[detached from 1-one]");

    // If no other agent waits, the key only detaches.
    stage.run(["stop", "two"]).ok();
    let mut terminal = stage.on_terminal(["attach"]);
    terminal.wait_for("first?");
    terminal.send(CTRL_Q);
    terminal.send(CTRL_Q);
    assert!(terminal.wait_exit().success(), "{terminal}");
    terminal.wait_for("[detached from 1-one; no other agent is waiting for you]");
    stage.run(["stop", "one"]).ok();
    let mut terminal = stage.on_terminal(["attach"]);
    assert!(!terminal.wait_exit().success());
    terminal.wait_for("no agent is running");
}

#[test]
fn leaving_names_the_agents_that_ask_for_something() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    new_conversation(&stage, "third", "clean up", "prompt; tool Bash rm -rf build; say Done.; end");
    wait_why(&stage, "third", "permission");
    let mut terminal = stage.on_terminal(["attach", "one"]);
    terminal.wait_for("ready?");
    terminal.send(CTRL_Q);
    assert!(terminal.wait_exit().success(), "{terminal}");
    terminal.wait_for("[detached from 1-one]");
    terminal.wait_for("[third asks: Bash: rm -rf build]");
}

#[test]
fn notes_of_a_new_task_are_repeated_and_the_shell_continues_below_the_last_line() {
    let stage = Stage::new();
    std::fs::write(stage.repo().join("changed"), "not committed").expect("room");
    let mut terminal = stage.on_terminal(["new", "one", "--", "fake-agent", "-c", "loop; ask ready?; end"]);
    terminal.wait_for("ready?");
    let before = terminal.output().len();
    terminal.send(CTRL_Q);
    assert!(terminal.wait_exit().success(), "{terminal}");
    terminal.wait_for("[detached from 1-one]");
    let after = String::from_utf8_lossy(&terminal.output()[before..]).into_owned();
    assert!(after.contains("uncommitted"), "{after:?}");
    let rows = rows(&terminal);
    let at = |text: &str| rows.iter().position(|row| row.contains(text));
    let (asked, detached) = (at("ready?").expect("the agent's line"), at("[detached from 1-one]"));
    assert_eq!(detached, Some(asked + 1), "{rows:#?}");
}
