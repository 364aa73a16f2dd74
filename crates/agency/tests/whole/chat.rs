//! `agency chat` in a pipe and on a terminal: each text once and in order, the rows below it, and what the user types.

use std::fs::File;
use std::process::Stdio;

use agency_terminal::{Screen, Size};
use agency_testkit::Pty;

use crate::conversations::{self, chat, session, wait_approval, wait_said, wait_why};
use crate::stage::{SOON, Stage};

/// The default agent is the fake one that speaks ACP.
fn acp_stage(options: &[&str]) -> Stage {
    let stage = Stage::new();
    let words: Vec<String> =
        ["fake-agent", "--acp", ""].iter().chain(options).map(|word| format!("{word:?}")).collect();
    stage.configure(&format!(
        "[agents.fake]\nacp = [{}]\n[agents.fake.env]\nFAKE_AGENT_SESSIONS = {:?}\n",
        words.join(", "),
        stage.home().join("sessions").display().to_string(),
    ));
    stage
}

#[track_caller]
fn new_acp_conversation(stage: &Stage, slug: &str, message: &str) {
    stage.run(["new", slug, "--no-attach", "--driver", "acp", "-m", message]).ok();
}

/// The rows of a terminal of 80 × 24, and the rows above it.
fn rows(seen: &[u8]) -> Vec<String> {
    let mut screen = Screen::new(Size::cells(80, 24), 1000);
    screen.feed(seen);
    screen.text().lines().map(|row| row.trim_end().to_owned()).collect()
}

#[track_caller]
pub fn wait_rows(terminal: &mut Pty, what: &str, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
    terminal.wait_until(what, |seen| Some(rows(seen)).filter(|rows| is_so(rows)))
}

fn has_row(rows: &[String], text: &str) -> bool {
    rows.iter().any(|row| row == text)
}

/// Whether the rows above the status line are these.
fn has_input(rows: &[String], input: &[&str]) -> bool {
    rows.split_last().is_some_and(|(_, above)| {
        above.len() >= input.len() && above[above.len() - input.len()..].iter().eq(input)
    })
}

/// Sends a message while a script follows the conversation. Returns what the script read.
#[track_caller]
fn follow(stage: &Stage, slug: &str, message: &str, end: &str) -> String {
    let path = stage.home().join(format!("{slug}.followed"));
    let mut following = stage.agency(["chat", slug, "--follow"]);
    following.stdin(Stdio::null()).stdout(File::create(&path).expect("room")).stderr(Stdio::null());
    let mut following = following.spawn().expect("agency can be run");
    let read = || std::fs::read_to_string(&path).unwrap_or_default();
    stage.eventually("the script follows", SOON, || Some(read()).filter(|text| text.contains("turn ended")));
    stage.run(["send", slug, message]).ok();
    let text = stage.eventually("the turn ends", SOON, || {
        Some(read()).filter(|text| text.contains(end) && text.matches("turn ended").count() == 2)
    });
    following.kill().and_then(|()| following.wait()).expect("our own child");
    text
}

#[test]
fn a_message_that_is_interrupted_is_told_once_and_in_the_same_order_live_and_later() {
    let stage = acp_stage(&[]);
    new_acp_conversation(&stage, "acp", "hi");
    let script = "prompt; say Hm.; end; prompt; noisy 8; end";
    conversations::new_conversation(&stage, "stream", "hi", script);
    for (slug, message) in [("acp", "!noisy 8"), ("stream", "go")] {
        wait_why(&stage, slug, "finished");
        let live = follow(&stage, slug, message, "part 8");
        for part in 1..=8 {
            assert_eq!(live.matches(&format!("\npart {part} \n")).count(), 1, "{slug}: {live}");
            assert!(live.find(&format!("\npart {part} ")) < live.find(&format!("noise after part {part}")));
        }
        assert_eq!(live, chat(&stage, slug), "{slug}");
    }
}

#[test]
fn a_long_message_shows_its_end_and_grows_for_a_reader_that_follows() {
    let stage = Stage::new();
    let script = "prompt; say Hm.; end; prompt; long 400000; end";
    conversations::new_conversation(&stage, "long", "hi", script);
    wait_why(&stage, "long", "finished");
    let live = follow(&stage, "long", "go", "the end");
    assert!(live.len() < 420_000, "no part is repeated: {}", live.len());
    let later = chat(&stage, "long");
    assert!(later.contains("0123456789\nthe end\n") && later.contains("bytes left out"), "{}", later.len());
    assert!(later.len() < 120_000, "{}", later.len());
}

#[test]
fn the_reader_learns_of_earlier_entries() {
    let stage = Stage::new();
    conversations::new_conversation(&stage, "long", "go", "prompt; many 2100; end");
    wait_why(&stage, "long", "finished");
    let ran = stage.run(["chat", "long"]);
    assert!(
        ran.stderr.contains("[102 earlier entries above; `agency chat long --at 1` shows all]"),
        "{}",
        ran.stderr
    );
    assert_eq!(stage.run(["chat", "long", "--at", "1"]).ok().matches("message 1\n").count(), 1);
    let mut terminal = stage.on_terminal(["chat", "long"]);
    terminal.wait_for("[102 earlier entries above");
    terminal.wait_for("message 2100");
    terminal.send("\x04");
    assert!(terminal.wait_exit().success());
}

#[test]
fn a_terminal_shows_rendered_text_folded_thoughts_and_a_status_line() {
    let stage = acp_stage(&[]);
    let message =
        "!think First.\\nSecond.\\nThird.; say # Title\\n\\nSome **bold** and `code`.\\n\\n- one; usage 0.5";
    new_acp_conversation(&stage, "shown", message);
    wait_why(&stage, "shown", "finished");
    assert!(chat(&stage, "shown").contains("Some **bold** and `code`."), "a pipe gets the text as it is");
    let mut terminal = stage.on_terminal(["chat", "shown"]);
    let shown =
        wait_rows(&mut terminal, "a status line", |rows| rows.iter().any(|row| row.contains("model small")));
    for row in ["Title", "Some bold and code.", "• one", "∴ First. … 2 more lines (/show 2)", ">"] {
        assert!(has_row(&shown, row), "{row}: {shown:?}");
    }
    let status = shown.iter().rfind(|row| !row.is_empty()).expect("a row");
    assert!(status.starts_with("○ waits for you"), "{status}");
    assert!(status.contains("context 120 of 1k (12%) · $0.50 · mode ask · model small"), "{status}");
    terminal.send("/show\n");
    wait_rows(&mut terminal, "the whole thought", |rows| has_row(rows, "Second.") && has_row(rows, "Third."));
    terminal.send("!edit a.txt old|new\n");
    let asked = terminal.wait_for("y: allow");
    assert!(asked.contains("\x1b[32m  +new"), "{asked:?}");
    wait_rows(&mut terminal, "the state", |rows| {
        rows.iter().any(|row| row.contains("waits for your permission"))
    });
    terminal.send("y\n");
    wait_rows(&mut terminal, "the edit", |rows| has_row(rows, "✓ Edit a.txt"));
    terminal.send("!wait\n");
    wait_rows(&mut terminal, "work", |rows| rows.iter().any(|row| row.starts_with("● working")));
    terminal.send("and then\n");
    let shown = wait_rows(&mut terminal, "a queued message", |rows| {
        rows.last().is_some_and(|row| row.contains("1 queued"))
    });
    assert!(shown.iter().any(|row| row.starts_with("[queued: number")), "{shown:?}");
    terminal.send("\x04");
    terminal.wait_for("[left; the agent keeps running]");
    assert!(terminal.wait_exit().success());
    let left = rows(terminal.output());
    assert!(!left.iter().any(|row| row.contains(" · mode ")), "the status line is gone: {left:?}");
}

#[test]
fn commands_of_the_agent_are_listed_completed_and_not_hidden() {
    let stage = acp_stage(&[]);
    new_acp_conversation(&stage, "typed", "!commands compact|mode");
    wait_why(&stage, "typed", "finished");
    std::fs::write(stage.worktree("1-typed").join("notes.txt"), "").expect("room");
    let mut terminal = stage.on_terminal(["chat", "typed"]);
    wait_rows(&mut terminal, "the status", |rows| rows.iter().any(|row| row.contains("mode ask")));
    terminal.send("/co\t");
    wait_rows(&mut terminal, "a completed command", |rows| has_row(rows, "> /compact"));
    terminal.send("\x15/mo\t");
    let shown =
        wait_rows(&mut terminal, "two names", |rows| rows.iter().any(|row| row.starts_with("  /model")));
    assert!(has_row(&shown, "> /mode") && shown.iter().any(|row| row.starts_with("  /mode ")), "{shown:?}");
    terminal.send("\x15see @no\t");
    wait_rows(&mut terminal, "a completed file", |rows| has_row(rows, "> see @notes.txt"));
    terminal.send("\x15/help\n");
    let shown = wait_rows(&mut terminal, "the help", |rows| {
        rows.iter().any(|row| row.contains("does compact [what]"))
    });
    assert!(shown.iter().any(|row| row.trim_start().starts_with("//mode")), "{shown:?}");
    terminal.send("/mode\n");
    wait_said(&stage, "typed", "echo: /mode");
    terminal.send("//mode auto\n");
    wait_said(&stage, "typed", "\nmode: auto\n");
    terminal.send("\x04");
    assert!(terminal.wait_exit().success());
}

#[test]
fn earlier_messages_come_back_and_a_message_may_have_many_lines() {
    let stage = Stage::new();
    conversations::new_conversation(&stage, "typed", "hi", "prompt; say Hm.; end");
    conversations::new_conversation(&stage, "other", "hi", "prompt; say Hm.; end");
    wait_why(&stage, "typed", "finished");
    let mut terminal = stage.on_terminal(["chat", "typed"]);
    terminal.wait_for("turn ended");
    terminal.send("one\x1b\ntwo");
    wait_rows(&mut terminal, "two rows", |rows| has_row(rows, "> one") && has_row(rows, "  two"));
    terminal.send("\n");
    wait_said(&stage, "typed", "echo: one\ntwo");
    terminal.send("first line\\\nsecond line\n");
    wait_said(&stage, "typed", "echo: first line\nsecond line");
    terminal.send("\x1b[A\x1b[A\x1b[A");
    wait_rows(&mut terminal, "the earlier message", |rows| has_input(rows, &["> one", "  two"]));
    drop(terminal);
    wait_why(&stage, "other", "finished");
    let mut terminal = stage.on_terminal(["chat", "other"]);
    terminal.wait_for("turn ended");
    terminal.send("\x1b[A");
    wait_rows(&mut terminal, "a message of another chat", |rows| {
        has_input(rows, &["> first line", "  second line"])
    });
    terminal.send("\n");
    wait_said(&stage, "other", "echo: first line\nsecond line");
}

#[test]
fn options_are_shown_changed_and_set_again_after_a_restart() {
    let stage = acp_stage(&["--options"]);
    new_acp_conversation(&stage, "tuned", "hi");
    wait_why(&stage, "tuned", "finished");
    let shown = stage.run(["option", "tuned"]).ok();
    let expected = "mode: ask\n* ask   Ask first\n  auto  Auto\n\
        effort: low  (how hard it thinks)\n* low   Low\n  high  High\n\
        fast: off  (Fast mode)\n  on   true\n* off  false\n";
    assert_eq!(shown, expected);
    assert_eq!(stage.run(["option", "tuned", "effort", "High"]).ok(), "effort: high\n");
    assert_eq!(stage.run(["option", "tuned", "fast mode", "on"]).ok(), "fast: on\n");
    let listed = stage.run(["option", "tuned", "effort", "--json"]).json();
    assert_eq!(listed["options"][0]["current"], "high");
    let told = stage.refused(&["option", "tuned", "effort", "huge"]);
    assert!(told.contains("the option effort has no value huge; it has low, high"), "{told}");
    let told = stage.refused(&["option", "tuned", "colour", "red"]);
    assert!(told.contains("the agent has no option called colour; it has mode, effort, fast"), "{told}");
    stage.run(["restart", "tuned"]).ok();
    stage.run(["send", "tuned", "!option effort; option fast"]).ok();
    let read = wait_said(&stage, "tuned", "fast is true");
    assert!(read.contains("effort is \"high\"") && read.contains("\neffort: high\n"), "{read}");
    let mut terminal = stage.on_terminal(["chat", "tuned"]);
    terminal.wait_for("fast is true");
    terminal.send("/option effort low\n");
    terminal.wait_for("effort: low");
    terminal.send("/option effort\n");
    terminal.wait_for("* low   Low");
    terminal.send("\x04");
    assert!(terminal.wait_exit().success());
    stage.play("screen", "say hello; ask more?");
    assert!(stage.refused(&["option", "screen"]).contains("has no conversation"));
}

#[test]
fn images_reach_agents_that_take_them_and_others_refuse() {
    let stage = acp_stage(&["--images"]);
    let shot = stage.home().join("shot.png");
    std::fs::write(&shot, b"\x89PNG\r\n\x1a\n...").expect("room");
    let shot = shot.to_str().expect("a name");
    new_acp_conversation(&stage, "sees", "hi");
    conversations::new_conversation(&stage, "stream", "hi", "prompt; say Hm.; end");
    for slug in ["sees", "stream"] {
        wait_why(&stage, slug, "finished");
        stage.run(["send", slug, "--image", shot, "what is this?"]).ok();
        wait_said(&stage, slug, "echo: what is this? [image/png, 16]");
        assert!(chat(&stage, slug).contains("image]\n"), "the message shows that it had an image");
    }
    std::fs::copy(shot, stage.worktree("1-sees").join("shot.png")).expect("room");
    wait_why(&stage, "sees", "finished");
    let mut terminal = stage.on_terminal(["chat", "sees"]);
    terminal.wait_for("turn ended");
    terminal.send("and @shot.png?\n");
    wait_said(&stage, "sees", "echo: and @shot.png? [image/png, 16]");
    terminal.send("\x04");
    assert!(terminal.wait_exit().success());
    let told = stage.refused(&["send", "sees", "--image", "/none.png", "x"]);
    assert!(told.contains("cannot read the image /none.png"), "{told}");
    stage.play("screen", "say hello; ask more?");
    let told = stage.refused(&["send", "screen", "--image", shot, "x"]);
    assert!(told.contains("images need an agent with a conversation"), "{told}");

    let blind = acp_stage(&[]);
    std::fs::copy(shot, blind.home().join("shot.png")).expect("room");
    new_acp_conversation(&blind, "blind", "hi");
    wait_why(&blind, "blind", "finished");
    let shot = blind.home().join("shot.png");
    let told = blind.refused(&["send", "blind", "--image", shot.to_str().expect("a name"), "x"]);
    assert!(told.contains("the agent takes no images") && !chat(&blind, "blind").contains("> x"), "{told}");
}

#[test]
fn a_new_task_continues_an_earlier_session() {
    let stage = acp_stage(&["--no-resume"]);
    new_acp_conversation(&stage, "old", "remember the apple");
    wait_why(&stage, "old", "finished");
    let id = session(&stage, "1-old").trim_start_matches("session_id: ").trim_matches('"').to_owned();
    stage.run(["stop", "old"]).ok();
    stage.run(["new", "again", "--no-attach", "--driver", "acp", "--resume", &id, "-m", "go on"]).ok();
    let read = wait_said(&stage, "again", "echo: go on");
    assert!(read.contains("echo: remember the apple"), "the loaded history is shown: {read}");
    assert!(session(&stage, "2-again").contains(&id));

    stage.run(["new", "lost", "--no-attach", "--driver", "acp", "--resume", "none-1", "-m", "go"]).ok();
    wait_why(&stage, "lost", "error");
    let read = chat(&stage, "lost");
    assert!(read.contains("it cannot continue this one: no such session"), "{read}");
    assert!(!read.contains("echo: go"), "{read}");
    let told = stage.refused(&["new", "odd", "--driver", "acp", "--resume=-x", "-m", "go"]);
    assert!(told.contains("cannot resume the session -x"), "{told}");

    let stream =
        ["new", "stream", "--no-attach", "--driver", "stream-json", "--resume", "s-77", "-m", "hi", "--"];
    let agent = ["fake-agent", "--stream-json", "prompt; args; end", "--resume", "$AGENCY_SESSION_ID"];
    stage.run(stream.into_iter().chain(agent)).ok();
    wait_said(&stage, "stream", "args: --resume s-77");
}

#[test]
fn a_request_that_comes_while_the_user_types_leaves_the_message_as_it_is() {
    let stage = Stage::new();
    conversations::new_conversation(&stage, "line", "hi", "prompt; say Hm.; end; prompt; tool Bash ls; end");
    wait_why(&stage, "line", "finished");
    let mut terminal = stage.on_terminal(["chat", "line"]);
    terminal.wait_for("turn ended");
    terminal.send("half a mess");
    wait_rows(&mut terminal, "the typed text", |rows| has_row(rows, "> half a mess"));
    stage.run(["send", "line", "go"]).ok();
    wait_approval(&stage, "line");
    let shown =
        wait_rows(&mut terminal, "the request", |rows| rows.iter().any(|row| row.contains("y: allow")));
    assert_eq!(shown.iter().filter(|row| row.contains("half a mess")).count(), 1, "{shown:?}");
    terminal.send("\x15");
    wait_rows(&mut terminal, "an empty line", |rows| has_input(rows, &[">"]));
    terminal.send("y\n");
    terminal.wait_for("ran ls");
    terminal.send("\x04");
    assert!(terminal.wait_exit().success());
}
