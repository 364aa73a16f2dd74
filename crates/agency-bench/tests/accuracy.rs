//! In all recordings: the detector misses no wait, reports no work as waiting, and reports both in time.

use std::path::Path;
use std::process::Command;

#[test]
fn every_goal_is_reached_over_all_recordings() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two levels up");
    let mut accuracy = Command::new(env!("CARGO_BIN_EXE_accuracy"));
    accuracy.args(["--with", "everything", "--verbose", "--project"]).arg(project);
    let output = accuracy.output().expect("it can be run");
    let printed = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&printed));
}
