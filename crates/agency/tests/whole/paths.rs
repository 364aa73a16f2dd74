//! Long paths, paths with spaces and paths with Unicode.

use std::fs;
use std::path::Path;

use agency_testkit::CommandOutput;

use crate::stage::{SOON, Stage};

/// Runs the life of one task in this directory with this state directory.
fn run_task(stage: &Stage, repo: &Path, state: &Path) {
    let agency = |args: &[&str]| {
        let mut agency = stage.agency(args);
        agency.current_dir(repo).env("XDG_STATE_HOME", state);
        CommandOutput::of(agency, b"")
    };
    assert_eq!(
        agency(&["new", "one", "--", "fake-agent", "-c", "cwd; loop; ask ready?; end"]).ok(),
        "1 one running\n"
    );
    let wait_printed = |text: &str| {
        stage.eventually(text, SOON, || agency(&["logs", "one"]).ok().contains(text).then_some(()));
    };
    let worktree = repo.join(".agency/worktrees/1-one");
    wait_printed(&worktree.display().to_string());
    assert_eq!(agency(&["path", "one"]).ok(), format!("{}\n", worktree.display()));
    let before = agency(&["daemon", "status", "--json"]).json()["pid"].clone();
    let daemon = stage.processes().into_iter().find(|process| before == process.pid).expect("the daemon");
    daemon.kill();
    agency(&["send", "one", "hello"]).ok();
    wait_printed("got: hello");
    assert_ne!(agency(&["daemon", "status", "--json"]).json()["pid"], before);
    assert_eq!(agency(&["exec", "one", "--", "git", "branch", "--show-current"]).ok(), "agency/1-one\n");
    assert_eq!(agency(&["stop", "one"]).ok(), "1 one stopped\n");
    assert!(agency(&["rm", "one"]).ok().starts_with("1 one removed\n"));
}

#[test]
fn a_state_directory_longer_than_a_socket_path_works() {
    let stage = Stage::new();
    let deep = stage.home().join("d".repeat(80)).join("e".repeat(80));
    assert!(deep.as_os_str().len() > 108);
    run_task(&stage, &stage.repo(), &deep);
}

#[test]
fn spaces_and_unicode_in_paths_work() {
    let stage = Stage::new();
    let repo = stage.home().join("my projects/ünïcode ☃ 'quoted' \"twice\" $HOME");
    fs::create_dir_all(&repo).expect("room");
    stage.make_repository(&repo);
    run_task(&stage, &repo, &stage.home().join("stäte dir"));
}
