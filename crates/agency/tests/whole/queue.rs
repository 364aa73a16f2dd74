//! Texts that wait for an agent's prompt: in order, visible, taken back, and never sent twice.

use agency_testkit::Pause;
use serde_json::Value;

use crate::stage::{SOON, Stage};
use crate::told::NO_SILENCE;

fn queued(stage: &Stage, slug: &str) -> Vec<(String, bool)> {
    let queue = stage.run(["queue", slug, "--json"]).json();
    let entries = queue["queued"].as_array().expect("a list");
    let text = |entry: &Value| {
        let text = entry["text"].as_str().map(str::to_owned).unwrap_or_else(|| entry["text"].to_string());
        (text, entry["uncertain"] == true)
    };
    entries.iter().map(text).collect()
}

fn held(texts: &[&str]) -> Vec<(String, bool)> {
    texts.iter().map(|text| ((*text).to_owned(), false)).collect()
}

/// The agent works until the test releases the pause, and reads lines then.
fn busy(stage: &Stage, slug: &str) -> Pause {
    let pause = Pause::at(stage.home().join(format!("pause-{slug}")));
    stage.play(slug, &format!("say busy; await {}; loop; ask more>; end", pause.path().display()));
    stage.wait_told(slug, "running (kernel)");
    pause
}

#[track_caller]
fn queue(stage: &Stage, slug: &str, text: &str) {
    let receipt = stage.run(["send", slug, "--queue", text]).ok();
    assert!(receipt.starts_with(&format!("queued {} bytes (number ", text.len())), "{receipt}");
}

/// What the agent got, in its order.
fn got(stage: &Stage, slug: &str) -> Vec<String> {
    let logs = stage.logs(slug);
    logs.lines().filter_map(|line| line.strip_prefix("got: ")).map(str::to_owned).collect()
}

#[test]
fn texts_wait_for_the_prompt_and_come_in_order() {
    let stage = Stage::with_config(NO_SILENCE);
    let pause = busy(&stage, "one");
    for text in ["first", "not this", "second"] {
        queue(&stage, "one", text);
    }
    assert_eq!(queued(&stage, "one"), held(&["first", "not this", "second"]));
    assert_eq!(stage.task("one")["queued"], 3);
    assert!(stage.run(["ls"]).ok().contains("3 queued"));
    let table = stage.run(["queue"]).ok();
    assert!(table.contains("not this") && table.contains("1-one"), "{table}");
    assert_eq!(stage.run(["queue", "drop", "one", "2"]).ok(), "1 text dropped\n");
    assert!(stage.refused(&["queue", "drop", "one", "2"]).contains("no text 2 is held for task 1"));
    assert_eq!(queued(&stage, "one"), held(&["first", "second"]));
    assert_eq!(got(&stage, "one"), [""; 0]);
    pause.release();
    stage.eventually("both arrive", SOON, || (got(&stage, "one").len() == 2).then_some(()));
    assert_eq!(got(&stage, "one"), ["first", "second"]);
    stage.wait_task("one", "has nothing queued", |task| task["queued"] == 0);
    queue(&stage, "one", "at once");
    stage.wait_printed("one", "got: at once");
}

#[test]
fn nothing_is_delivered_into_a_dialog() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play(
        "one",
        r"raw; print \e[?2004h\e]7501\x3bstate=blocked:kind=question\a; wait-for y; print \e]7501\x3bstate=working\a; wait-for z; print \e]7501\x3bstate=idle\a; wait-for \e[201~; say pasted; wait-for \r; say entered; print \e]7501\x3bstate=working\a; no-read",
    );
    stage.wait_told("one", "needs_input question (status)");
    queue(&stage, "one", "go on");
    for (key, state) in [("y", "running (status)"), ("z", "")] {
        assert_eq!(queued(&stage, "one"), held(&["go on"]));
        stage.run(["send", "one", "--keys", key]).ok();
        if !state.is_empty() {
            stage.wait_told("one", state);
        }
    }
    stage.wait_printed("one", "entered");
    stage.wait_task("one", "has nothing queued", |task| task["queued"] == 0);

    // A line program's question is none of the prompts that texts are held for.
    stage.play("two", "ask Delete everything?; loop; ask more>; end");
    stage.wait_told("two", "needs_input question (kernel)");
    queue(&stage, "two", "go on");
    stage.run(["send", "two", "no"]).ok();
    stage.wait_printed("two", "got: go on");
    assert_eq!(got(&stage, "two"), ["no", "go on"]);
}

#[test]
fn what_is_held_outlives_the_daemon_and_is_sent_once() {
    let stage = Stage::with_config(NO_SILENCE);
    let pause = busy(&stage, "one");
    queue(&stage, "one", "first");
    queue(&stage, "one", "second");
    stage.kill_daemon();
    pause.release();
    // The agent comes to its prompt while nobody looks: the next daemon finds it there.
    stage.eventually("both arrive", SOON, || (got(&stage, "one").len() == 2).then_some(()));
    assert_eq!(got(&stage, "one"), ["first", "second"]);
    stage.wait_task("one", "has nothing queued", |task| task["queued"] == 0);
}

#[test]
fn killed_at_any_moment_no_daemon_sends_a_text_twice() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", "loop; ask more>; end");
    stage.wait_told("one", "needs_input prompt (kernel)");
    let mut sent = Vec::new();
    for round in 0..12 {
        let text = format!("<{round}>");
        queue(&stage, "one", &text);
        sent.push(text);
        // The more rounds, the later.
        for _ in 0..round {
            stage.run(["ls"]).ok();
        }
        stage.kill_daemon();
        for (text, is_uncertain) in queued(&stage, "one") {
            if is_uncertain {
                let table = stage.run(["queue"]).ok();
                assert!(table.contains("(uncertain)"), "{text}: {table}");
                stage.run(["queue", "drop", "one"]).ok();
            }
        }
    }
    queue(&stage, "one", "last");
    stage.eventually("the last or a doubt", SOON, || {
        let doubt = queued(&stage, "one").iter().any(|(_, is_uncertain)| *is_uncertain);
        (doubt || got(&stage, "one").iter().any(|line| line.contains("last"))).then_some(())
    });
    let heard = got(&stage, "one").concat();
    for text in &sent {
        assert!(heard.matches(text.as_str()).count() <= 1, "{text} in {heard}");
    }
}

#[test]
fn texts_go_with_their_task() {
    let stage = Stage::with_config(NO_SILENCE);
    let pause = busy(&stage, "one");
    queue(&stage, "one", "for nobody");
    stage.run(["stop", "one"]).ok();
    stage.run(["rm", "one", "--discard"]).ok();
    let text = std::fs::read_to_string(stage.state().join("queue.json")).expect("a queue was written");
    assert!(!text.contains("for nobody") && !text.contains("\"id\""), "{text}");
    drop(pause);
}
