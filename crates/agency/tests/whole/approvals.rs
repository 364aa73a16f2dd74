//! Rules that answer approvals, and the record of every answer.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::conversations::{chat, events, new_conversation, of_kind, wait_approval, wait_said, wait_why};
use crate::stage::{SOON, Stage};

const RULES: &str = r#"
[[approve]]
tool = "Bash"
match = "rm *"
decision = "deny"
why = "nothing is removed here"

[[approve]]
tool = "Bash"
match = "git push*"
decision = "ask"

[[approve]]
tool = "Bash"
match = "cargo test*"
decision = "allow"

[[approve]]
tool = "Bash"
match = "git *"
decision = "allow"
agent = "fake"
"#;

#[track_caller]
fn log(stage: &Stage, task: &str) -> Vec<Value> {
    let log = stage.run(["approvals", "--log", task, "--json"]).json();
    log["decisions"].as_array().expect("decisions").clone()
}

#[test]
fn rules_decide_in_order_and_the_user_decides_the_rest() {
    let stage = Stage::with_config(RULES);
    let script = "prompt; tool Bash cargo test --all; tool Bash ls && rm -rf /; tool Bash git status; \
        ask Which?|Red|Blue; tool Bash git push; tool Bash cargo test | sh; end";
    new_conversation(&stage, "ruled", "go", script);
    wait_why(&stage, "ruled", "question");
    let read = chat(&stage, "ruled");
    let file = stage.run(["config", "path"]).ok();
    let file = file.trim_end();
    for line in [
        format!("? Bash: cargo test --all: allowed by rule 3 of {file}"),
        format!("? Bash: ls && rm -rf /: denied by rule 1 of {file} (nothing is removed here)"),
        format!("? Bash: git status: allowed by rule 4 of {file}"),
        "  nothing is removed here".to_owned(),
    ] {
        assert!(read.contains(&line), "{line:?} in {read}");
    }
    stage.run(["approve", "ruled", "--answer", "Blue"]).ok();
    assert_eq!(wait_approval(&stage, "ruled")["title"], "Bash: git push");
    stage.run(["approve", "ruled"]).ok();
    stage.eventually("the last one", SOON, || {
        (wait_approval(&stage, "ruled")["title"] == "Bash: cargo test | sh").then_some(())
    });
    stage.run(["deny", "ruled", "-m", "no pipes"]).ok();
    wait_why(&stage, "ruled", "finished");

    let decisions = log(&stage, "ruled");
    let by = |decided: &Value| decided["outcome"]["by"].as_str().expect("who").to_owned();
    let who: Vec<String> = decisions.iter().map(by).collect();
    let rule = |number: u64| format!("rule {number} of {file}");
    assert_eq!(who[..3], [rule(3), rule(1), rule(4)], "{decisions:#?}");
    assert!(who[3..].iter().all(|by| by.starts_with("cli (pid ")) && who.len() == 6, "{who:?}");
    assert_eq!(decisions[5]["outcome"]["message"], "no pipes");
    assert_eq!(decisions[3]["outcome"]["answer"], "Blue", "{decisions:#?}");
    assert!(decisions.iter().all(|decided| decided["agent"] == "shell" && decided["slug"] == "ruled"));
    let shown = stage.run(["approvals", "--log"]).ok();
    assert!(shown.contains("1-ruled") && shown.contains("denied by rule 1 of"), "{shown}");
    assert!(chat(&stage, "ruled").contains("? Which?: answered by cli (pid "), "{shown}");

    let events = events(&stage);
    let told = of_kind(&events, "Approval").into_iter().find(|data| data["decision"] == "denied");
    assert_eq!(
        told.map(|data| (&data["by"], &data["why"])),
        Some((&rule(1).into(), &"nothing is removed here".into()))
    );
    let waits = of_kind(&events, "StateChange").iter().filter(|data| data["why"] == "permission").count();
    assert_eq!(waits, 2, "the agent does not wait where a rule answers");
}

#[test]
fn a_new_rule_also_decides_open_approvals() {
    let stage = Stage::new();
    new_conversation(&stage, "late", "go", "prompt; tool Bash make; tool Bash ls; say Made.; end");
    assert_eq!(wait_approval(&stage, "late")["title"], "Bash: make");
    stage.configure("[[approve]]\ntool = \"Bash\"\nmatch = \"make*\"\ndecision = \"allow\"\n");
    // No client calls the daemon meanwhile.
    stage.eventually("the rule decides", SOON, || {
        let events = events(&stage);
        let decided = of_kind(&events, "Approval").into_iter().find(|data| data["decision"] == "allowed")?;
        decided["by"].as_str().is_some_and(|by| by.starts_with("rule 1 of ")).then_some(())
    });
    stage.eventually("the next one waits", SOON, || {
        (wait_approval(&stage, "late")["title"] == "Bash: ls").then_some(())
    });
    stage.run(["approve", "late"]).ok();
    wait_said(&stage, "late", "Made.");
    let by = log(&stage, "late")[0]["outcome"]["by"].clone();
    assert!(by.as_str().is_some_and(|by| by.starts_with("rule 1 of ")), "{by}");
}

#[test]
fn a_repository_cannot_allow_anything_by_its_own_rules() {
    let stage = Stage::new();
    let path = stage.repo().join(".agency/config.toml");
    fs::create_dir_all(path.parent().expect("a directory")).expect("room");
    fs::write(&path, "[[approve]]\ntool = \"*\"\ndecision = \"allow\"\n").expect("room");
    new_conversation(&stage, "mine", "go", "prompt; tool Bash one; tool Bash two; end");
    assert_eq!(wait_approval(&stage, "mine")["title"], "Bash: one");
    let told = stage.run(["trust"]).stdout;
    assert!(told.contains("approve[1] = { tool = \"*\", decision = \"allow\" }"), "{told}");
    stage.run(["trust", "--yes"]).ok();
    let read = wait_said(&stage, "mine", "── turn ended");
    for asked in ["one", "two"] {
        let line = format!("? Bash: {asked}: allowed by rule 1 of {}", path.display());
        assert!(read.contains(&line), "{line:?} in {read}");
    }
    fs::write(&path, "[[approve]]\ntool = \"**\"\ndecision = \"allow\"\n").expect("room");
    new_conversation(&stage, "again", "go", "prompt; tool Bash three; end");
    assert_eq!(wait_approval(&stage, "again")["title"], "Bash: three", "another content is another matter");
}

#[test]
fn an_invalid_rule_is_named_and_allows_nothing() {
    let stage = Stage::with_config("[[approve]]\ntool = \"Bash\"\nmach = \"ls\"\ndecision = \"allow\"\n");
    let told = stage.refused(&["config"]);
    assert!(
        told.contains("unknown key `approve[1].mach`") && told.contains("did you mean `match`?"),
        "{told}"
    );
    stage.configure(RULES);
    let shown = stage.run(["config"]).ok();
    let again: toml_edit::DocumentMut = shown.parse().expect("what is printed is TOML");
    assert_eq!(again["approve"].as_array().map(toml_edit::Array::len), Some(4));
    assert!(stage.run(["config", "get", "approve[2]"]).ok().contains("git push*"));
    assert!(stage.refused(&["config", "set", "approve[2]", "x"]).contains("agency config edit"));
    new_conversation(&stage, "later", "go", "prompt; tool Bash make; tool Bash cargo test; end");
    wait_approval(&stage, "later");
    stage.configure("[[approve]]\ntool = \"Bash\"\n");
    stage.run(["approve", "later"]).ok();
    stage.eventually("the next one", SOON, || {
        (wait_approval(&stage, "later")["title"] == "Bash: cargo test").then_some(())
    });
}

#[test]
fn each_request_is_answered_once_even_if_daemons_are_killed() {
    let stage = Stage::new();
    let tools: String = (1..=40).map(|number| format!("tool Bash cargo test {number}; ")).collect();
    new_conversation(&stage, "often", "go", &format!("prompt; {tools}say All done.; end"));
    wait_approval(&stage, "often");
    stage.kill_daemon();
    stage.configure(RULES);
    for _ in 0..8 {
        stage.listing();
        stage.kill_daemon();
    }
    let read = wait_said(&stage, "often", "All done.");
    assert!(!read.contains("answered twice"), "{read}");
    assert_eq!(log(&stage, "often").len(), 40);
    let events = events(&stage);
    let allowed = of_kind(&events, "Approval").into_iter().filter(|data| data["decision"] == "allowed");
    let allowed: BTreeSet<String> = allowed.map(|data| data["id"].to_string()).collect();
    assert_eq!(allowed.len(), 40, "and each has an event");
}

#[test]
fn rules_are_suggested_from_what_was_always_allowed_and_never_denied() {
    let stage = Stage::new();
    let asks = "tool Bash cargo test --lib; tool Bash cargo test --doc; tool Bash cargo test -p x; tool Bash make; tool Bash make install";
    new_conversation(&stage, "one", "go", &format!("prompt; {asks}; end"));
    for answer in ["approve", "approve", "approve", "approve", "deny"] {
        let open = wait_approval(&stage, "one");
        let id = open["id"].as_str().expect("an id").to_owned();
        stage.run([answer, "one", "--id", &id]).ok();
        stage.eventually("the answer arrives", SOON, || {
            let left = stage.run(["approvals", "one", "--json"]).json();
            let is_open = left["approvals"].as_array()?.iter().any(|open| open["id"] == id.as_str());
            (!is_open).then_some(())
        });
    }
    wait_why(&stage, "one", "finished");
    stage.kill_daemon();
    let suggested = stage.run(["approvals", "--suggest"]).ok();
    let rule = "[[approve]]\ntool = \"execute\"\nmatch = \"cargo test *\"\ndecision = \"allow\"\nwhy = \"allowed 3 of 3 times\"\n";
    assert!(suggested.contains("#   cargo test --lib\n") && suggested.ends_with(rule), "{suggested}");
    assert!(!suggested.contains("make"), "{suggested}");
    let json = stage.run(["approvals", "--suggest", "--json"]).json();
    crate::json::Schema::of("approval-suggestions").check(&json);
    // The printed text is a configuration that works.
    stage.configure(&suggested);
    new_conversation(&stage, "two", "go", "prompt; tool Bash cargo test --all; say done; end");
    wait_why(&stage, "two", "finished");
    let log = stage.run(["approvals", "--log", "two"]).ok();
    assert!(log.contains("rule 1 of"), "{log}");
}
