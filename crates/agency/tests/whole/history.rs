//! The past of terminals: `logs`, `screen`, `search` and `timeline`, also of full-screen programs; and `cost`.

use agency_testkit::Pause;
use serde_json::Value;

use crate::conversations::{new_conversation, wait_why};
use crate::json::Schema;
use crate::stage::{SOON, Stage};

/// Paints three pages on the alternate screen, each after a key, and leaves it at the end. The last lines of a page are the
/// first ones of the next, as when text scrolls.
const PAGES: &str = "say before; raw; \
    print \\e[?1049h\\e[2J\\e[Hplum\\r\\npeach\\r\\nquince; wait-for a; \
    print \\e[2J\\e[Hpeach\\r\\nquince\\r\\nmedlar; wait-for b; \
    print \\e[2J\\e[Hmedlar\\r\\nsloe\\r\\ntoken=hunter2; wait-for c; \
    print \\e[?1049lbye\\r\\n; wait-for d; exit 0";

/// Presses a key once the screen shows the text.
#[track_caller]
fn press_after(stage: &Stage, slug: &str, shown: &str, key: &str) {
    wait_shown(stage, slug, shown);
    stage.run(["send", slug, "--keys", key]).ok();
}

#[track_caller]
fn wait_shown(stage: &Stage, slug: &str, shown: &str) -> Value {
    stage.eventually(&format!("{slug} shows {shown}"), SOON, || {
        let screen = stage.run(["screen", slug, "--json"]).json();
        screen["lines"].to_string().contains(shown).then_some(screen)
    })
}

#[track_caller]
fn wait_ended(stage: &Stage, slug: &str) {
    stage.wait_task(slug, "ended", |task| task["run"].is_null());
}

#[track_caller]
fn hits(stage: &Stage, word: &str) -> Vec<Value> {
    let found = stage.eventually("every task is read", SOON, || {
        let found = stage.run(["search", "--json", word]).json();
        (found["unread"] == 0).then_some(found)
    });
    Schema::of("search").check(&found);
    found["hits"].as_array().expect("hits").clone()
}

#[test]
fn a_full_screen_program_can_be_read_after_its_end() {
    let stage = Stage::new();
    stage.play("pages", PAGES);
    press_after(&stage, "pages", "quince", "a");
    wait_shown(&stage, "pages", "medlar");
    stage.kill_daemon();
    press_after(&stage, "pages", "medlar", "b");
    press_after(&stage, "pages", "sloe", "c");
    press_after(&stage, "pages", "bye", "d");
    wait_ended(&stage, "pages");
    let text = "before\nplum\npeach\nquince\nmedlar\nsloe\ntoken=hunter2\nbye\n";
    assert_eq!(stage.logs("pages"), text);
    assert_eq!(stage.run(["logs", "pages", "-f"]).ok(), text);

    let hit = &hits(&stage, "plum")[0];
    assert_eq!((hit["kind"].as_str(), hit["number"].as_u64()), (Some("output"), None));
    assert!(hits(&stage, "hunter2").is_empty(), "what looks like a secret is not in the index");
    let printed = stage.run(["search", "plum"]).ok();
    let command = printed.lines().next().and_then(|line| line.split("  agency ").nth(1)).expect("a command");
    let opened = stage.run(command.split(' ')).ok();
    assert!(opened.contains("before"), "{opened}");
}

#[test]
fn the_last_screen_of_an_ended_agent_is_the_one_before_it_left() {
    let stage = Stage::new();
    let end = Pause::at(stage.home().join("end"));
    let paint = "say before; print \\e[?1049h\\e[2J\\e[Hpicture\\r\\n\\r\\nof the agent";
    let leave = "print \\e[?1049l; say resume with; exit 0";
    stage.play("left", &format!("{paint}; await {}; {leave}", end.path().display()));
    wait_shown(&stage, "left", "of the agent");
    end.release();
    wait_ended(&stage, "left");
    let screen = stage.run(["screen", "left"]);
    assert!(screen.stderr.contains("the agent has ended; it drew this screen last, at "), "{screen}");
    assert_eq!(screen.ok(), "before\npicture\n\nof the agent\n");
    let json = stage.run(["screen", "left", "--json"]).json();
    Schema::of("screen").check(&json);
    assert_eq!(json["alternate"], true);
    // A program that prints has its last lines.
    stage.play("printed", "say one; say two; exit 0");
    wait_ended(&stage, "printed");
    assert_eq!(stage.run(["screen", "printed"]).ok(), "one\ntwo\n");
    stage.run(["new", "never", "--draft", "-m", "x"]).ok();
    assert!(stage.refused(&["screen", "never"]).contains("has no live agent"));
}

#[test]
fn a_screen_of_the_past_is_folded_from_the_journal() {
    let stage = Stage::new();
    stage.play("one", "say first; ask more?; say last; no-read");
    wait_shown(&stage, "one", "more?");
    let first = jiff::Timestamp::now();
    stage.run(["send", "one", "yes"]).ok();
    wait_shown(&stage, "one", "last");
    stage.kill_daemon();
    let at = first.to_string();
    let then = stage.run(["screen", "one", "--at", &at]);
    assert!(then.stderr.contains("the agent drew this screen at "), "{then}");
    assert_eq!(then.ok(), "first\nmore?\n");
    let now = stage.run(["screen", "one", "--at", "-0s"]).ok();
    assert!(now.starts_with("first\n") && now.ends_with("last\n"), "{now}");
    let early = stage.refused(&["screen", "one", "--at", "-1d"]);
    assert!(early.contains("there was no screen at") && early.contains("started at"), "{early}");
    stage.run(["stop", "one"]).ok();
    assert_eq!(stage.run(["screen", "one", "--at", &at]).ok(), "first\nmore?\n", "after the end, too");
}

#[test]
fn a_live_terminal_is_searched_as_far_as_it_has_printed() {
    let stage = Stage::new();
    stage.play("live", "say kumquat; ask more?; say tangerine; ask more?");
    wait_shown(&stage, "live", "more?");
    assert_eq!(hits(&stage, "kumquat").len(), 1);
    assert!(hits(&stage, "tangerine").is_empty());
    stage.run(["send", "live", "yes"]).ok();
    wait_shown(&stage, "live", "tangerine");
    assert_eq!(hits(&stage, "tangerine").len(), 1, "the writer reads on");
    assert_eq!(hits(&stage, "kumquat").len(), 1, "and nothing twice");
    stage.kill_daemon();
    assert_eq!((hits(&stage, "kumquat").len(), hits(&stage, "tangerine").len()), (1, 1));
    stage.run(["stop", "live"]).ok();
    assert_eq!((hits(&stage, "kumquat").len(), hits(&stage, "tangerine").len()), (1, 1));
    // No program printed the password.
    stage.play("secret", "getpass Password:; say welcome; ask more?");
    wait_shown(&stage, "secret", "Password:");
    stage.run(["send", "secret", "--keys", "s,e,s,a,m,e,enter"]).ok();
    wait_shown(&stage, "secret", "welcome");
    assert_eq!(hits(&stage, "welcome").len(), 1);
    assert!(hits(&stage, "sesame").is_empty());
}

#[test]
fn cost_names_the_agents_that_report_none() {
    let stage = Stage::new();
    stage.play("painter", "say hello; ask more?");
    stage.run(["new", "idea", "--draft", "-m", "x"]).ok();
    let nothing = stage.run(["cost"]);
    assert!(
        nothing.stderr.contains("not known: 1-painter (agents in terminals report no cost)"),
        "{nothing}"
    );
    new_conversation(&stage, "talker", "hello", "prompt; say hi; end");
    wait_why(&stage, "talker", "finished");
    let costs = stage.run(["cost", "--json"]).json();
    Schema::of("cost").check(&costs);
    assert_eq!(
        (costs["unknown"][0]["slug"].as_str(), costs["unknown"].as_array().map(Vec::len)),
        (Some("painter"), Some(1))
    );
    assert_eq!(costs["tasks"][0]["slug"], "talker");
}

/// The words of a timeline's entries, without changes of state.
#[track_caller]
fn timeline(stage: &Stage, args: &[&str]) -> Vec<String> {
    let timeline = stage.run([&["timeline", "--json"], args].concat()).json();
    Schema::of("timeline").check(&timeline);
    let entries =
        timeline["entries"].as_array().expect("entries").iter().filter(|entry| entry["what"] != "state");
    let words = |entry: &Value| {
        let detail = ["agent", "text", "title", "code"].iter().find_map(|name| entry[*name].as_str());
        format!("{} {}", entry["what"].as_str().expect("a word"), detail.unwrap_or_default())
            .trim()
            .to_owned()
    };
    entries.map(words).collect()
}

#[test]
fn a_timeline_has_everything_that_happened_to_the_agents_of_a_task() {
    let stage = Stage::new();
    stage.play("one", "loop; ask more?; end");
    wait_shown(&stage, "one", "more?");
    stage.run(["send", "one", "make it work"]).ok();
    stage.kill_daemon();
    stage.run(["stop", "one"]).ok();
    let middle = jiff::Timestamp::now().to_string();
    stage.run(["start", "one"]).ok();
    stage.run(["stop", "one"]).ok();
    let all = timeline(&stage, &["one"]);
    assert_eq!(all[..2], ["started shell", "sent make it work"], "{all:?}");
    assert!(all[2].starts_with("exited") && all[3] == "started shell", "{all:?}");
    assert!(all[4].starts_with("exited") && all.len() == 5, "{all:?}");
    assert_eq!(timeline(&stage, &["one", "--limit", "1"]).len(), 1);
    let later = timeline(&stage, &["one", "--since", &middle]);
    assert!(later.len() <= 2 && later.last().is_some_and(|last| last.starts_with("exited")), "{later:?}");
    let text = stage.run(["timeline", "one"]).ok();
    assert!(text.contains("sent") && text.contains("make it work") && text.contains("needs_input"), "{text}");

    new_conversation(&stage, "talk", "look", "prompt; tool Bash peel quince; end");
    crate::conversations::wait_approval(&stage, "talk");
    stage.run(["deny", "talk"]).ok();
    wait_why(&stage, "talk", "finished");
    let talk = timeline(&stage, &["talk"]);
    let order = ["sent look", "asked", "decided", "turn_end"];
    let places: Vec<Option<usize>> =
        order.iter().map(|word| talk.iter().position(|entry| entry.starts_with(word))).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{talk:?}");

    stage.run(["new", "never", "--draft", "-m", "x"]).ok();
    assert!(stage.run(["timeline", "never"]).stderr.contains("the task has had no agent"));
}
