//! Texts that wait for an agent's prompt, over the lives of daemons.

use agency_testkit::{Pause, eventually};

use crate::stage::{SOON, Stage};
use crate::told::NO_SILENCE;

#[test]
fn a_text_is_delivered_to_an_agent_that_asked_while_no_daemon_lived() {
    let stage = Stage::with_config(NO_SILENCE);
    let (work, asked) = (Pause::at(stage.home().join("work")), stage.home().join("asked"));
    let line = format!(
        "cat {}; printf '> '; touch {}; read answer; echo \"so: $answer\"; read more",
        work.path().display(),
        asked.display()
    );
    stage.run(["new", "one", "--no-attach", "--", "sh", "-c", &line]).ok();
    stage.wait_told("one", "running (kernel)");
    let receipt = stage.run(["send", "one", "--queue", "go home"]).ok();
    assert!(receipt.starts_with("queued"), "{receipt}");
    assert_eq!(stage.task("one")["queued"], 1);
    stage.kill_daemon();
    work.open();
    eventually("it asks", SOON, || asked.exists().then_some(()));
    stage.wait_printed("one", "so: go home");
    stage.wait_task("one", "an empty queue", |task| task["queued"] == 0);
}
