//! `agency new --best-of`, `compare` and `promote`: several agents do the same, and one of them wins.

use serde_json::Value;

use crate::json::Schema;
use crate::stage::{SOON, Stage};

const AGENTS: &str = r#"
    [agents.painter]
    start = ["fake-agent", "-c", "say painted; ask more?"]
    [agents.sculptor]
    start = ["fake-agent", "-c", "say carved; ask more?"]
    [agents.absent]
    start = ["no-such-program"]
"#;

#[track_caller]
fn compare(stage: &Stage) -> Vec<Value> {
    let compared = stage.run(["compare", "landing", "--json"]).json();
    Schema::of("compare").check(&compared);
    compared["candidates"].as_array().expect("candidates").clone()
}

#[test]
fn candidates_are_compared_and_one_is_promoted() {
    let stage = Stage::with_config(AGENTS);
    let made = stage.run(["new", "landing", "--best-of", "painter,sculptor,painter", "-m", "a page"]);
    assert!(made.stderr.ends_with("next: agency compare landing\n"), "{made}");
    assert_eq!(made.ok(), "1 landing-1 running\n2 landing-2 running\n3 landing-3 running\n");
    stage.wait_printed("landing-2", "carved");
    std::fs::write(stage.worktree("2-landing-2").join("page.html"), "one\ntwo\n").expect("a worktree");
    let candidates = compare(&stage);
    let agents: Vec<_> = candidates.iter().map(|candidate| candidate["agent"].as_str()).collect();
    assert_eq!(agents, [Some("painter"), Some("sculptor"), Some("painter")]);
    let changes = serde_json::json!({ "files": 1, "additions": 2, "deletions": 0 });
    assert_eq!((&candidates[1]["changes"], &candidates[1]["usage"]), (&changes, &Value::Null));
    let table = stage.run(["compare", "landing"]).ok();
    assert!(table.lines().nth(2).is_some_and(|line| line.starts_with("landing/2")), "{table}");

    let again = stage.refused(&["new", "landing", "--best-of", "2", "-m", "x"]);
    assert!(again.contains("there are candidates called landing already"), "{again}");
    assert!(stage.refused(&["promote", "landing/9"]).contains("its candidates are 1, 2, 3"));
    assert!(stage.refused(&["promote", "landing"]).contains("names no candidate"));
    assert!(stage.refused(&["compare", "other"]).contains("there are no candidates called other"));
    assert_eq!(compare(&stage).len(), 3, "nothing was removed");

    stage.kill_daemon();
    let promoted = stage.run(["promote", "landing/2"]);
    assert!(promoted.stderr.ends_with("next: agency merge 2\n"), "{promoted}");
    let undo: Vec<String> = promoted
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("undo: agency undo "))
        .map(str::to_owned)
        .collect();
    assert_eq!(promoted.ok(), "1 landing-1 removed\n3 landing-3 removed\n2 landing-2 promoted\n");
    assert_eq!(compare(&stage).len(), 1);
    assert_eq!(undo.len(), 1, "one step brings all of them back");
    for entry in &undo {
        stage.run(["undo", entry]).ok();
    }
    let numbers: Vec<_> = compare(&stage).iter().map(|candidate| candidate["number"].as_u64()).collect();
    assert_eq!(numbers, [Some(1), Some(2), Some(3)], "undo brings them back, with their labels");
}

#[test]
fn candidates_are_made_or_none() {
    let stage = Stage::with_config(AGENTS);
    let before = stage.traces();
    let refused = stage.refused(&["new", "landing", "--best-of", "painter,absent", "-m", "x"]);
    assert!(refused.contains("no-such-program"), "{refused}");
    assert!(
        stage.refused(&["new", "landing", "--best-of", "painter", "-m", "x"]).contains("nothing to compare")
    );
    let both =
        stage.refused(&["new", "landing", "--best-of", "painter,painter", "--agent", "sculptor", "-m", "x"]);
    assert!(both.contains("contradict each other"), "{both}");
    stage.eventually("the first candidate is gone", SOON, || (stage.traces() == before).then_some(()));
    stage.run(["new", "landing", "--best-of", "2", "--agent", "sculptor", "-m", "x"]).ok();
    assert!(compare(&stage).iter().all(|candidate| candidate["agent"] == "sculptor"));
}
