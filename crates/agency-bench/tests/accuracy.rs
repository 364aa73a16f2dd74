//! Over all recordings: no wait is missed, no work is called waiting, and both are said in time.

use std::path::Path;
use std::process::Command;

#[test]
fn every_goal_is_reached_over_all_recordings() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two levels up");
    let mut accuracy = Command::new(env!("CARGO_BIN_EXE_accuracy"));
    accuracy.args(["--with", "everything", "--verbose", "--project"]).arg(project);
    let ran = accuracy.output().expect("it can be run");
    let told = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&told));
}
