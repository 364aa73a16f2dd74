//! Flags that every surface shares: pinned, and put off until a time.

use crate::json::Schema;
use crate::stage::Stage;
use crate::state_log::NO_SILENCE;

fn slugs(stage: &Stage, args: &[&str]) -> Vec<String> {
    let shown = stage.run([&["ls"], args].concat()).ok();
    let words = shown.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
    words.map(str::to_owned).collect()
}

#[test]
fn a_pinned_task_is_at_the_top_also_for_the_next_daemon() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.run(["new", "idea", "--draft", "-m", "x"]).ok();
    stage.play("asks", "ask ready?");
    stage.wait_task("asks", "asks", |task| task["headline"] == "asks");
    assert_eq!(slugs(&stage, &[]), ["asks", "idea"]);
    assert_eq!(stage.run(["pin", "idea"]).ok(), "1-idea: pinned\n");
    stage.kill_daemon();
    assert_eq!(slugs(&stage, &[]), ["idea", "asks"]);
    assert_eq!(stage.task("idea")["pinned"], true);
    assert!(stage.run(["next"]).ok().contains("asks"), "a pin is for lists only");
    assert_eq!(stage.run(["pin", "idea", "--off"]).ok(), "1-idea: not pinned\n");
    assert_eq!(slugs(&stage, &[]), ["asks", "idea"]);
}

#[test]
fn a_snoozed_task_comes_back_when_it_needs_the_user_for_something_new() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", "ask first?; ask second?");
    stage.wait_task("one", "asks", |task| task["headline"] == "asks");
    let said = stage.run(["snooze", "one", "--for", "2h"]).ok();
    assert!(said.starts_with("1-one: snoozed until "), "{said}");
    for _ in 0..2 {
        let task = stage.task("one");
        assert_eq!((&task["urgency"], &task["waiting_for"]), (&"read".into(), &"question".into()), "{task}");
        assert!(task["snoozed_until"].is_string());
        assert_eq!(stage.run(["ls", "--needs-me"]).ok(), "no task fits\n");
        // The flag survives the daemon.
        stage.kill_daemon();
    }
    stage.run(["send", "one", "go"]).ok();
    let task = stage.wait_task("one", "asks again", |task| task["evidence"]["detail"] == "second?");
    assert_eq!((&task["urgency"], &task["snoozed_until"]), (&"blocked".into(), &serde_json::Value::Null));
    assert_eq!(slugs(&stage, &["--needs-me"]), ["one"]);
}

#[test]
fn a_snooze_ends_at_its_time_or_when_the_user_says_so() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", "ask ready?");
    stage.wait_task("one", "asks", |task| task["headline"] == "asks");
    stage.run(["snooze", "one", "2999-01-31 14:05"]).ok();
    assert_eq!(stage.task("one")["urgency"], "read");
    assert_eq!(stage.run(["snooze", "one", "--off"]).ok(), "1-one: not snoozed\n");
    assert_eq!(stage.task("one")["urgency"], "blocked");
    let mut terminal = stage.on_terminal(["ls", "--watch", "--needs-me"]);
    terminal.wait_for("asks");
    stage.run(["snooze", "one", "--for", "2s"]).ok();
    terminal.wait_for("no task fits");
    terminal.wait_for("asks");
    terminal.send("q");
    assert!(terminal.wait_exit().success(), "{terminal}");
    assert_eq!(stage.run(["snooze", "one", "2001-01-31 14:05"]).code, 2);
    assert!(stage.refused(&["snooze", "one"]).starts_with("Error: `agency snooze` needs a time\n"));
}

#[test]
fn since_sums_up_what_happened_after_the_last_look() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("looked", "exit 0");
    stage.wait_task("looked", "is done", |task| task["headline"] == "done");
    let all = stage.run(["since", "1h", "--json"]).json();
    Schema::of("since").check(&all);
    assert_eq!(all["finished"][0]["slug"], "looked", "{all}");
    stage.play("crashed", "exit 2");
    stage.wait_task("crashed", "has failed", |task| task["headline"] == "failed");
    stage.play("asks", "ask ready?");
    stage.wait_task("asks", "asks", |task| task["headline"] == "asks");
    let shown = stage.run(["since", "1h"]).ok();
    assert!(
        shown.contains("failed     2-crashed at ") && shown.contains("waiting    3-asks asks "),
        "{shown}"
    );
    assert!(shown.contains("finished   1-looked at "), "{shown}");

    stage.run(["logs", "looked"]).ok();
    let looked = stage.task("looked")["looked_at"].as_str().expect("a time").to_owned();
    stage.kill_daemon();
    let recent = stage.run(["since", "--json"]).json();
    assert_eq!(recent["since"], looked.as_str(), "{recent}");
    assert_eq!(recent["waiting"][0]["slug"], "asks", "{recent}");
}
