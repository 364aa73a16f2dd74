//! A user's screen rules: read, changed without a restart, and reported if they are invalid.

use std::fs;

use crate::stage::{SOON, Stage};
use crate::state_log::NO_SILENCE;

fn write_rules(stage: &Stage, file: &str, rules: &str) {
    let dir = stage.config().with_file_name("rules");
    fs::create_dir_all(&dir).and_then(|()| fs::write(dir.join(file), rules)).expect("room for rules");
}

const DEPLOY: &str = r#"
[[rule]]
name = "deploy"
says = "waiting"
why = "permission"
lines = 3
all = ['^\[mine\] Deploy']
detail = '\[mine\] Deploy (.+)\?'
"#;

#[test]
fn a_users_rule_recognizes_a_screen_and_can_be_changed() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", "raw; say [mine] Deploy to production?; no-read");
    stage.wait_printed("one", "production");
    stage.wait_state("one", "running (silence)");
    write_rules(&stage, "mine.toml", DEPLOY);
    let task = stage.wait_state("one", "needs_input permission (screen)");
    assert_eq!(
        (&task["evidence"]["rule"], &task["evidence"]["detail"]),
        (&"deploy".into(), &"to production".into()),
        "{task}"
    );
    write_rules(&stage, "mine.toml", &DEPLOY.replace("permission", "question"));
    stage.wait_state("one", "needs_input question (screen)");
    write_rules(
        &stage,
        "mine.toml",
        &DEPLOY.replace("waiting", "working").replace("why = \"permission\"", ""),
    );
    stage.wait_state("one", "running (screen)");
}

#[test]
fn an_invalid_rule_is_named_and_the_others_still_work() {
    let stage = Stage::with_config(NO_SILENCE);
    write_rules(
        &stage,
        "mine.toml",
        &format!("{DEPLOY}\n[[rule]]\nname = \"odd\"\nsays = \"working\"\nall = ['(']\n"),
    );
    stage.play("one", "raw; say [mine] Deploy to production?; no-read");
    stage.wait_state("one", "needs_input permission (screen)");
    let listed = stage.run(["ls"]);
    assert!(listed.stderr.contains("mine.toml: rule `odd`"), "{listed}");
    let examined = stage.run(["doctor"]);
    assert!(examined.stdout.contains("rule `odd`"), "{examined}");

    write_rules(&stage, "worse.toml", "[[rule");
    stage.eventually("the file is named", SOON, || {
        stage.run(["ls"]).stderr.contains("worse.toml").then_some(())
    });
    for file in ["mine.toml", "worse.toml"] {
        write_rules(&stage, file, DEPLOY.split("[[").next().unwrap_or_default());
    }
    stage.eventually("nothing is wrong any more", SOON, || stage.run(["ls"]).stderr.is_empty().then_some(()));
}
