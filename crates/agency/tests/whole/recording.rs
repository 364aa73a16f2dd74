//! `agency screen`, `export` and `replay`.

use crate::stage::Stage;

#[test]
fn a_screen_can_be_shown_without_attaching() {
    let stage = Stage::new();
    stage.play("one", "say hello; print \\e[?2004h\\e[1mbold\\e[0m; no-read");
    stage.wait_printed("one", "bold");
    assert_eq!(stage.run(["screen", "one"]).ok(), "hello\nbold\n");
    let seen = stage.run(["screen", "one", "--json"]).json();
    assert_eq!(seen["lines"], serde_json::json!(["hello", "bold"]));
    assert_eq!(seen["cursor"], serde_json::json!({ "row": 1, "column": 4 }));
    assert_eq!(seen["modes"]["bracketed_paste"], true);
    let ansi = stage.run(["screen", "one", "--ansi"]).ok();
    assert!(ansi.contains("bold") && ansi.contains("\x1b[?2004h"), "{ansi:?}");
}

#[test]
fn a_recording_has_output_and_no_input() {
    let stage = Stage::new();
    stage.play("one", "say hello; raw; say ready; wait-for sesame; say open; no-read");
    stage.wait_printed("one", "ready");
    stage.run(["send", "--no-enter", "--anyway", "one", "sesame"]).ok();
    stage.wait_printed("one", "open");
    stage.run(["export", "one", "-o", "one.cast"]).ok();
    let cast = std::fs::read_to_string(stage.repo().join("one.cast")).expect("the file was written");
    assert!(cast.starts_with('{') && cast.contains("\"version\":2"), "{cast}");
    assert!(cast.contains("hello") && cast.contains("open") && !cast.contains("sesame"), "{cast}");
    assert!(stage.run(["export", "one", "--input"]).ok().contains("sesame"));
    let played = stage.run(["replay", "one.cast", "--speed", "1000"]).ok();
    assert!(played.contains("hello\r\n") && played.contains("open\r\n"), "{played:?}");
}

#[test]
fn a_recording_is_not_overwritten_and_an_invalid_one_is_refused() {
    let stage = Stage::new();
    stage.play("one", "say hello; no-read");
    stage.wait_printed("one", "hello");
    stage.run(["export", "one", "-o", "one.cast"]).ok();
    let refused = stage.run(["export", "one", "-o", "one.cast"]).refused();
    assert_eq!(refused, "Error: one.cast already exists\nHint: name another file, or pass --force\n");
    stage.run(["export", "one", "-o", "one.cast", "--force"]).ok();
    // A link stays a link, and a path that is not a file is not changed.
    std::os::unix::fs::symlink("one.cast", stage.repo().join("link.cast")).expect("a link");
    stage.run(["export", "one", "-o", "link.cast", "--force"]).ok();
    assert!(stage.repo().join("link.cast").is_symlink());
    let refused = stage.run(["export", "one", "-o", ".agency", "--force"]).refused();
    assert!(
        refused.starts_with("Error: cannot write .agency\nCaused by: it is not a regular file\n"),
        "{refused}"
    );
    assert!(stage.run(["export", "one", "-o", "-"]).ok().contains("hello"));
    std::fs::write(stage.repo().join("other"), "hello\n").expect("room for a file");
    let refused = stage.run(["replay", "other"]).refused();
    assert!(refused.starts_with("Error: other is not a recording that can be played\n"), "{refused}");
}

/// The states that `agency replay --states` prints for a recording of this repository.
fn states(stage: &Stage, recording: &str, args: &[&str]) -> String {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings");
    let mut replay = stage.agency(["replay", "--states"]);
    replay.args(args).arg(dir.join(recording));
    agency_testkit::CommandOutput::of(replay, b"").ok()
}

#[test]
fn a_replay_reports_the_same_states_as_a_live_run() {
    let stage = Stage::new();
    let expected = [
        r#"{"schema_version":1,"t":0.101,"state":"running","why":null,"source":"silence","rule":"output","confidence":"guess","detail":null,"offset":13}"#,
        r#"{"schema_version":1,"t":8.231,"state":"needs_input","why":"question","source":"kernel","rule":"python3 reads the terminal","confidence":"high","detail":"Deploy to production? [y/N]","offset":41}"#,
        r#"{"schema_version":1,"t":16.168,"state":"running","why":null,"source":"kernel","rule":"python3 does not read the terminal","confidence":"high","detail":null,"offset":58}"#,
        r#"{"schema_version":1,"t":24.101,"state":"needs_input","why":"question","source":"kernel","rule":"python3 reads without echo","confidence":"high","detail":"Token:","offset":65}"#,
        r#"{"schema_version":1,"t":32.221,"state":"running","why":null,"source":"kernel","rule":"python3 does not read the terminal","confidence":"high","detail":null,"offset":78}"#,
    ];
    let told = states(&stage, "states/ask-alone.cast", &["--json"]);
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
    assert!(states(&stage, "states/ask-alone.cast", &[]).contains("Deploy to production? [y/N]"));
    assert_eq!(stage.daemon(), None, "a recording needs no daemon");

    let told = states(&stage, "claude7501-tui.cast", &["--json"]);
    let changes: Vec<serde_json::Value> =
        told.lines().map(|line| serde_json::from_str(line).expect("a document a line")).collect();
    let by_status =
        changes.iter().filter(|change| change["source"] == "status").map(crate::state_log::describe);
    let by_status: Vec<String> = by_status.collect();
    assert!(by_status.contains(&"needs_input permission (status)".to_owned()), "{by_status:?}");
    assert!(
        changes.iter().all(|change| change["source"] != "silence" || change["state"] == "running"),
        "{told}"
    );
    let missing = stage.run(["replay", "--states", "no-such.cast"]);
    assert_eq!(missing.code, 1, "{missing}");
}
