//! `agency search` finds words of conversations, also after damage to the index and killed daemons.

use std::path::PathBuf;

use serde_json::Value;

use crate::conversations::{new_conversation, wait_approval, wait_said, wait_why};
use crate::json::Schema;
use crate::stage::{SOON, Stage};

/// Hits, once the index has every task: task, number of the entry, kind.
#[track_caller]
fn search(stage: &Stage, args: &[&str]) -> Vec<(u64, Option<u64>, String)> {
    let found = stage.eventually("every task is read", SOON, || {
        let found = stage.run([&["search", "--json"], args].concat()).json();
        (found["unread"] == 0).then_some(found)
    });
    let hits = found["hits"].as_array().expect("hits").iter();
    let hit = |hit: &Value| {
        let kind = hit["kind"].as_str().expect("a kind").to_owned();
        (hit["task"].as_u64().expect("a task"), hit["number"].as_u64(), kind)
    };
    hits.map(hit).collect()
}

#[track_caller]
fn kinds(stage: &Stage, args: &[&str]) -> Vec<String> {
    search(stage, args).into_iter().map(|(_, _, kind)| kind).collect()
}

/// The file of the index.
#[track_caller]
fn file(stage: &Stage) -> PathBuf {
    let entries = std::fs::read_dir(stage.state()).expect("a state directory");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    paths.find(|path| path.extension().is_some_and(|ext| ext == "sqlite")).expect("an index")
}

#[track_caller]
fn delete(stage: &Stage) {
    let path = file(stage);
    for suffix in ["", "-wal", "-shm"] {
        let path = path.with_extension(format!("sqlite{suffix}"));
        if path.exists() {
            std::fs::remove_file(path).expect("it is ours");
        }
    }
}

const SCRIPT: &str = "prompt; think About marmalade.; say The kumquat is ripe.; tool Bash peel quince; end";

/// A task with a conversation about many things, which waits.
#[track_caller]
fn fruit_conversation(stage: &Stage, slug: &str) {
    new_conversation(stage, slug, "look for the papaya", SCRIPT);
    wait_approval(stage, slug);
    stage.run(["approve", slug, "-m", "tangerines are fine"]).ok();
    wait_why(stage, slug, "finished");
}

#[test]
fn every_kind_of_entry_is_found_with_its_number() {
    let stage = Stage::new();
    fruit_conversation(&stage, "fruit");
    new_conversation(&stage, "other", "nothing of the kind", "prompt; say Kumquats, said another.; end");
    wait_said(&stage, "other", "Kumquats, said another.");
    assert_eq!(kinds(&stage, &["kumquat", "--task", "fruit"]), ["assistant"]);
    assert_eq!(search(&stage, &["kumq"]).len(), 2, "the last word may go on");
    assert_eq!(kinds(&stage, &["marmalade"]), ["thinking"]);
    assert_eq!(kinds(&stage, &["papaya"]), ["user", "task"]);
    assert_eq!(kinds(&stage, &["tangerines"]), ["approval"]);
    assert_eq!(kinds(&stage, &["ran", "peel"]), ["tool_call"], "what a tool printed");
    assert_eq!(kinds(&stage, &["\"ripe kumquat\""]), [""; 0], "a phrase has its order");
    assert_eq!(kinds(&stage, &["kumquat", "marmalade"]), [""; 0], "all words in one place");
    assert_eq!(
        kinds(&stage, &["--", "kumquat\" OR (NEAR", "*", "-x:"]),
        [""; 0],
        "nothing is a syntax error"
    );
    assert!(stage.refused(&["search", "***"]).contains("no word to search for"));

    let found = stage.run(["search", "ripe", "kumquat", "--json"]).json();
    Schema::of("search").check(&found);
    let number = found["hits"][0]["number"].as_u64().expect("a number").to_string();
    let read = stage.run(["chat", "fruit", "--at", &number]).ok();
    assert!(read.starts_with("The kumquat is ripe."), "{read}");
    assert!(stage.refused(&["chat", "fruit", "--at", "999"]).contains("there is no entry 999"));
    let printed = stage.run(["search", "ripe", "kumquat", "--project"]).ok();
    assert!(printed.starts_with("1-fruit  "), "{printed}");
    assert!(
        printed.contains(&format!("  agent  agency chat 1 --at {number}\n    The kumquat is ripe.")),
        "{printed}"
    );
    let few = stage.run(["search", "kumquat", "--limit", "1"]);
    assert!(few.stderr.contains("there are more"), "{few}");
    stage.run(["send", "fruit", "and a durian"]).ok();
    wait_said(&stage, "fruit", "echo: and a durian");
    assert_eq!(kinds(&stage, &["durian"]), ["assistant", "user"], "a live conversation goes on");
}

#[test]
fn a_missing_or_damaged_index_is_rebuilt() {
    let stage = Stage::new();
    fruit_conversation(&stage, "live");
    fruit_conversation(&stage, "dead");
    stage.run(["stop", "dead"]).ok();
    let wanted = search(&stage, &["kumquat"]);
    assert_eq!(wanted.len(), 2);

    delete(&stage);
    assert_eq!(search(&stage, &["kumquat"]), wanted, "deleted while the daemon lives");
    stage.run(["daemon", "stop"]).ok();
    delete(&stage);
    assert_eq!(search(&stage, &["kumquat"]), wanted, "deleted while there is none");
    for rubbish in [&b"this is no index"[..], &[0x55; 20_000]] {
        std::fs::write(file(&stage), rubbish).expect("room");
        assert_eq!(search(&stage, &["kumquat"]), wanted, "overwritten while the daemon lives");
        stage.run(["daemon", "stop"]).ok();
        std::fs::write(file(&stage), rubbish).expect("room");
        assert_eq!(search(&stage, &["kumquat"]), wanted, "overwritten while there is none");
    }
}

#[test]
fn a_killed_daemon_loses_no_entries() {
    let stage = Stage::new();
    fruit_conversation(&stage, "fruit");
    let wanted = search(&stage, &["kumquat"]);
    stage.run(["send", "fruit", "one durian"]).ok();
    wait_said(&stage, "fruit", "echo: one durian");
    stage.kill_daemon();
    assert_eq!(search(&stage, &["kumquat"]), wanted);
    assert_eq!(kinds(&stage, &["durian"]), ["assistant", "user"]);
    // Kill it while it builds the index.
    for _ in 0..5 {
        delete(&stage);
        stage.run(["search", "kumquat"]).ok();
        stage.kill_daemon();
        stage.run(["ls"]).ok();
        stage.kill_daemon();
    }
    assert_eq!(search(&stage, &["kumquat"]), wanted);
}

#[test]
fn a_task_is_found_by_its_own_text_until_it_is_removed() {
    let stage = Stage::new();
    stage.run(["new", "grow-lychee", "--draft", "--label", "orchard", "-m", "with plenty of rambutan"]).ok();
    for word in ["lychee", "orchard", "rambutan"] {
        assert_eq!(search(&stage, &[word]), [(1, None, "task".to_owned())], "{word}");
    }
    let path = stage.task_path("1-grow-lychee");
    let edited = stage.task_file("1-grow-lychee").replace("rambutan", "salak");
    std::fs::write(&path, edited).expect("room");
    assert_eq!(search(&stage, &["salak"]).len(), 1, "edited by hand");
    assert_eq!(search(&stage, &["rambutan"]), []);
    stage.run(["rm", "grow-lychee"]).ok();
    assert_eq!(search(&stage, &["salak"]), []);
}
