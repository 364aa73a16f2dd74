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

#[test]
fn every_program_without_rules_is_recorded_at_two_sizes() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two levels up");
    for half in ["unseen", "held-out"] {
        let home = project.join("tests/recordings").join(half);
        for entry in home.join("scenarios").read_dir().expect("a directory") {
            let path = entry.expect("a readable directory").path();
            let program = path.file_stem().expect("a name").to_string_lossy().into_owned();
            for file in ["80x24.cast", "80x24.proc.jsonl", "120x40.cast", "120x40.proc.jsonl"] {
                let recording = home.join(format!("{program}-{file}"));
                assert!(recording.is_file(), "{} does not exist", recording.display());
            }
        }
    }
}
