//! The queue: messages wait for an agent's prompt in order, can be listed and dropped, and are never sent twice.

use agency_testkit::{Pause, eventually};
use serde_json::Value;

use crate::stage::{SOON, Stage};
use crate::state_log::NO_SILENCE;

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
    stage.wait_state(slug, "running (kernel)");
    pause
}

#[track_caller]
fn queue(stage: &Stage, slug: &str, text: &str) {
    let receipt = stage.run(["send", slug, "--queue", text]).ok();
    assert!(receipt.starts_with(&format!("queued {} bytes (number ", text.len())), "{receipt}");
}

/// The texts that the agent received, in order.
fn received(stage: &Stage, slug: &str) -> Vec<String> {
    let logs = stage.logs(slug);
    logs.lines().filter_map(|line| line.strip_prefix("got: ")).map(str::to_owned).collect()
}

#[test]
fn messages_wait_for_the_prompt_and_arrive_in_order() {
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
    assert!(stage.refused(&["queue", "drop", "one", "2"]).contains("task 1 has no queued message 2"));
    assert_eq!(queued(&stage, "one"), held(&["first", "second"]));
    assert_eq!(received(&stage, "one"), [""; 0]);
    pause.release();
    stage.eventually("both arrive", SOON, || (received(&stage, "one").len() == 2).then_some(()));
    assert_eq!(received(&stage, "one"), ["first", "second"]);
    stage.wait_task("one", "has nothing queued", |task| task["queued"] == 0);
    queue(&stage, "one", "at once");
    stage.wait_printed("one", "got: at once");
}

#[test]
fn no_message_is_delivered_into_a_dialog() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play(
        "one",
        r"raw; print \e[?2004h\e]7501\x3bstate=blocked:kind=question\a; wait-for y; print \e]7501\x3bstate=working\a; wait-for z; print \e]7501\x3bstate=idle\a; wait-for \e[201~; say pasted; wait-for \r; say entered; print \e]7501\x3bstate=working\a; no-read",
    );
    stage.wait_state("one", "needs_input question (status)");
    queue(&stage, "one", "go on");
    for (key, state) in [("y", "running (status)"), ("z", "")] {
        assert_eq!(queued(&stage, "one"), held(&["go on"]));
        stage.run(["send", "one", "--keys", key]).ok();
        if !state.is_empty() {
            stage.wait_state("one", state);
        }
    }
    stage.wait_printed("one", "entered");
    stage.wait_task("one", "has nothing queued", |task| task["queued"] == 0);

    // The question of a line program is not a prompt that the queue waits for.
    stage.play("two", "ask Delete everything?; loop; ask more>; end");
    stage.wait_state("two", "needs_input question (kernel)");
    queue(&stage, "two", "go on");
    stage.run(["send", "two", "no"]).ok();
    stage.wait_printed("two", "got: go on");
    assert_eq!(received(&stage, "two"), ["no", "go on"]);
}

#[test]
fn the_queue_survives_the_daemon_and_each_message_is_sent_once() {
    let stage = Stage::with_config(NO_SILENCE);
    let pause = busy(&stage, "one");
    queue(&stage, "one", "first");
    queue(&stage, "one", "second");
    stage.kill_daemon();
    pause.release();
    // The agent reaches its prompt while no daemon is running; the next daemon finds it there.
    stage.eventually("both arrive", SOON, || (received(&stage, "one").len() == 2).then_some(()));
    assert_eq!(received(&stage, "one"), ["first", "second"]);
    stage.wait_task("one", "has nothing queued", |task| task["queued"] == 0);
}

#[test]
fn a_daemon_killed_at_any_moment_sends_no_message_twice() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", "loop; ask more>; end");
    stage.wait_state("one", "needs_input prompt (kernel)");
    let mut sent = Vec::new();
    for round in 0..12 {
        let text = format!("<{round}>");
        queue(&stage, "one", &text);
        sent.push(text);
        // Each round kills the daemon a little later.
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
        (doubt || received(&stage, "one").iter().any(|line| line.contains("last"))).then_some(())
    });
    let heard = received(&stage, "one").concat();
    for text in &sent {
        assert!(heard.matches(text.as_str()).count() <= 1, "{text} in {heard}");
    }
}

#[test]
fn the_queue_is_removed_with_its_task() {
    let stage = Stage::with_config(NO_SILENCE);
    let pause = busy(&stage, "one");
    queue(&stage, "one", "never sent");
    stage.run(["stop", "one"]).ok();
    stage.run(["rm", "one", "--discard"]).ok();
    let text = std::fs::read_to_string(stage.state().join("queue.json")).expect("a queue was written");
    assert!(!text.contains("never sent") && !text.contains("\"id\""), "{text}");
    drop(pause);
}

#[test]
fn a_message_is_delivered_to_an_agent_that_reached_its_prompt_without_a_daemon() {
    let stage = Stage::with_config(NO_SILENCE);
    let (work, asked) = (Pause::at(stage.home().join("work")), stage.home().join("asked"));
    let line = format!(
        "cat {}; printf '> '; touch {}; read answer; echo \"so: $answer\"; read more",
        work.path().display(),
        asked.display()
    );
    stage.run(["new", "one", "--no-attach", "--", "sh", "-c", &line]).ok();
    stage.wait_state("one", "running (kernel)");
    let receipt = stage.run(["send", "one", "--queue", "go home"]).ok();
    assert!(receipt.starts_with("queued"), "{receipt}");
    assert_eq!(stage.task("one")["queued"], 1);
    stage.kill_daemon();
    work.release();
    eventually("it asks", SOON, || asked.exists().then_some(()));
    stage.wait_printed("one", "so: go home");
    stage.wait_task("one", "an empty queue", |task| task["queued"] == 0);
}
