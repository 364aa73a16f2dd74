//! Small files of the state directory that are lost, cut or garbled while no daemon runs: no agent is lost with them, none
//! gets a second one beside it, and each can be stopped.

use std::fs;
use std::path::{Path, PathBuf};

use agency_testkit::{CommandOutput, Keeper, Process, Sealed, Signal};

use crate::conversations::wait_said;
use crate::stage::{SOON, Stage};

const SCRIPT: &str = "say the first words; loop; ask ready?; end";

/// A live agent whose daemon is dead.
fn left_alone() -> (Stage, Keeper) {
    let stage = Stage::new();
    stage.play("live", SCRIPT);
    stage.wait_printed("live", "ready?");
    let keeper = stage.keeper("live");
    stage.kill_daemon();
    (stage, keeper)
}

fn run_file(stage: &Stage, keeper: &Keeper, name: &str) -> PathBuf {
    stage.state().join("r").join(&keeper.run).join(name)
}

fn project_file(stage: &Stage) -> PathBuf {
    let projects = fs::read_dir(stage.state().join("projects")).expect("projects");
    let project = projects.map(|project| project.expect("a project").path()).next().expect("one project");
    project.join("project.json")
}

/// Every way to spoil a file that the stories below use.
const DAMAGES: [fn(&Path); 4] = [cut, flip, empty, remove];

fn cut(path: &Path) {
    let bytes = fs::read(path).expect("a file");
    fs::write(path, &bytes[..bytes.len() / 2]).expect("room");
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).expect("a file");
    let middle = bytes.len() / 2;
    // Two bytes that no JSON and no number contains.
    bytes[middle] = 0xff;
    bytes[0] = 0xfe;
    fs::write(path, bytes).expect("room");
}

fn empty(path: &Path) {
    fs::write(path, "").expect("room");
}

fn remove(path: &Path) {
    fs::remove_file(path).expect("a file");
}

/// The agent is the same, it answers, it is alone, and `stop` ends it.
#[track_caller]
fn check_reachable(stage: &Stage, agent: Process) {
    let task = stage.task("live");
    assert_eq!((&task["status"], &task["run"].is_string()), (&"running".into(), &true), "{task}");
    assert_eq!(stage.listing()["orphans"], serde_json::json!([]));
    stage.run(["send", "live", "hello"]).ok();
    let logs = stage.wait_printed("live", "got: hello");
    assert!(logs.starts_with("the first words\n"), "{logs}");
    stage.run(["start", "live"]);
    assert_eq!(stage.agent("live"), agent, "no second agent is started");
    assert_eq!(stage.run(["stop", "live"]).ok(), "1 live stopped\n");
    agent.wait_gone(SOON);
}

#[track_caller]
fn check_reported(stage: &Stage, file: &str) {
    let log = stage.daemon_log();
    let is_warned = log.lines().any(|line| line.contains("WARN") && line.contains(file));
    assert!(is_warned, "the log says nothing about {file}");
    let doctor = stage.run(["doctor"]).stdout.replace("\n       ", " ");
    assert!(doctor.contains(file), "{doctor}");
}

#[test]
fn an_unreadable_pid_file_hides_no_agent() {
    for damage in DAMAGES {
        let (stage, keeper) = left_alone();
        let path = run_file(&stage, &keeper, "pid");
        damage(&path);
        let is_there = path.exists();
        stage.listing();
        if is_there {
            check_reported(&stage, "/pid");
        }
        check_reachable(&stage, keeper.child.expect("an agent"));
    }
}

#[test]
fn an_unreadable_run_file_hides_no_agent() {
    for damage in DAMAGES {
        let (stage, keeper) = left_alone();
        let path = run_file(&stage, &keeper, "run.json");
        let before = fs::read(&path).expect("a file");
        damage(&path);
        stage.listing();
        check_reported(&stage, "/run.json");
        assert_eq!(fs::read(&path).expect("a file"), before, "the keeper knows all of it");
        check_reachable(&stage, keeper.child.expect("an agent"));
    }
}

#[test]
fn a_lost_or_stale_epoch_locks_no_agent_away() {
    for content in [&b"x"[..], b"\xff\xfe", b"", b"1\n"] {
        let stage = Stage::new();
        stage.play("live", SCRIPT);
        stage.wait_printed("live", "ready?");
        let agent = stage.agent("live");
        for _ in 0..3 {
            stage.kill_daemon();
            stage.listing();
        }
        stage.kill_daemon();
        fs::write(stage.state().join("epoch"), content).expect("room");
        stage.listing();
        if content != b"1\n" {
            check_reported(&stage, "/epoch");
        }
        check_reachable(&stage, agent);
        let epoch = fs::read_to_string(stage.state().join("epoch")).expect("a file");
        assert_eq!(epoch, "5\n", "one more than the fourth daemon's");
    }
}

#[test]
fn an_unreadable_project_file_hides_no_task_and_gives_no_id_twice() {
    for damage in DAMAGES {
        let stage = Stage::new();
        stage.play("live", SCRIPT);
        stage.wait_printed("live", "ready?");
        stage.run(["new", "draft", "--draft", "-m", "x"]).ok();
        stage.run(["rm", "draft"]).ok();
        let agent = stage.agent("live");
        stage.kill_daemon();
        let path = project_file(&stage);
        let before = fs::read(&path).expect("a file");
        damage(&path);
        // A call that names no project must find it, too.
        let all = stage.run(["ls", "--all", "--json"]).json();
        assert_eq!(all["tasks"][0]["status"], "running", "{all}");
        check_reported(&stage, "/project.json");
        assert_eq!(fs::read(&path).expect("a file"), before);
        stage.run(["new", "next", "--draft", "-m", "x"]).ok();
        assert_eq!(stage.task("next")["id"], 3);
        check_reachable(&stage, agent);
    }
}

#[test]
fn a_broken_task_file_leaves_its_agent_reachable() {
    let (stage, keeper) = left_alone();
    let path = stage.task_path("1-live");
    let before = fs::read(&path).expect("a file");
    fs::write(&path, "garbage").expect("room");
    let task = stage.task("live");
    assert_eq!((&task["status"], &task["run"]), (&"running".into(), &keeper.run.as_str().into()), "{task}");
    assert!(task["broken"].is_string(), "{task}");
    let agent = keeper.child.expect("an agent");
    stage.run(["send", "live", "hello"]).ok();
    stage.wait_printed("live", "got: hello");
    stage.run(["start", "live"]);
    assert_eq!(stage.agent("live"), agent, "no second agent is started");
    stage.run(["stop", "live"]).ok();
    agent.wait_gone(SOON);
    assert_eq!(fs::read(&path).expect("a file"), b"garbage", "the user's file is not touched");
    fs::write(&path, before).expect("room");
    assert!(stage.task("live")["broken"].is_null());
}

#[test]
fn a_task_whose_run_began_and_ended_without_a_daemon_is_no_draft() {
    let stage = Stage::new();
    let go = stage.home().join("go");
    let wait = format!("echo ready; while [ ! -e {} ]; do sleep 0.05; done", go.display());
    stage.run(["new", "live", "--no-attach", "--", "sh", "-c", &wait]).ok();
    stage.wait_printed("live", "ready");
    let agent = stage.agent("live");
    stage.kill_daemon();
    // The daemon was killed before it wrote the status.
    let file = stage.task_file("1-live").replace("status: running", "status: draft");
    assert!(file.contains("status: draft"), "{file}");
    fs::write(stage.task_path("1-live"), file).expect("room");
    fs::write(go, "").expect("room");
    agent.wait_gone(SOON);
    stage.wait_status("live", "stopped");
    stage.run(["complete", "live"]).ok();
    assert_eq!(stage.status("live"), "completed");
}

/// Starts a daemon as on a full disk: it can make no file grow.
fn start_daemon_on_full_disk(stage: &Stage) {
    let line = "trap '' XFSZ; ulimit -S -f 0; exec \"$0\" daemon start >/dev/null 2>&1";
    let mut shell = stage.shell(line);
    shell.arg(stage.agency(["daemon"]).get_program());
    CommandOutput::of(shell, b"").ok();
}

/// The lock file does not name a daemon that cannot write.
fn daemon_on_full_disk(stage: &Stage) -> Process {
    let is_daemon = |process: &Process| process.name() == "agency";
    stage.eventually("only the daemon lives", SOON, || {
        let mut found = stage.processes();
        found.retain(is_daemon);
        (found.len() == 1).then(|| found.remove(0))
    })
}

fn make_room(daemon: &Process) {
    let pid = rustix::process::Pid::from_raw(daemon.pid);
    let none = rustix::process::Rlimit { current: None, maximum: None };
    rustix::process::prlimit(pid, rustix::process::Resource::Fsize, none).expect("our own process");
}

#[test]
fn a_full_disk_and_new_daemons_hide_no_agent_and_all_is_well_when_there_is_room() {
    let (stage, keeper) = left_alone();
    let agent = keeper.child.expect("an agent");
    let path = project_file(&stage);
    let before = fs::read(&path).expect("a file");
    for round in 0..3 {
        if round == 2 {
            remove(&path);
        }
        start_daemon_on_full_disk(&stage);
        let listing = stage.listing();
        let task = &listing["tasks"][0];
        assert_eq!(
            (&task["status"], &task["run"]),
            (&"running".into(), &keeper.run.as_str().into()),
            "{task}"
        );
        assert_eq!(listing["orphans"], serde_json::json!([]));
        let text = format!("hello {round}");
        stage.run(["send", "live", &text]).ok();
        stage.wait_printed("live", &format!("got: {text}"));
        assert!(stage.refused(&["complete", "live"]).contains("cannot write"), "round {round}");
        assert_eq!(stage.task("live")["status"], "running", "the file says so");
        let is_warned = listing["warnings"].to_string().contains("project.json cannot be written");
        assert_eq!(is_warned, round == 2, "{listing}");
        if round < 2 {
            daemon_on_full_disk(&stage).kill();
        }
    }
    assert!(!path.exists());
    make_room(&daemon_on_full_disk(&stage));
    assert!(!stage.listing()["warnings"].to_string().contains("cannot be written"));
    assert_eq!(fs::read(&path).expect("a file"), before);
    check_reachable(&stage, agent);
}

/// Runs Agency where this directory is read-only. A daemon that it starts sees it so for its whole life.
fn run_on_read_only(stage: &Stage, dir: &Path, words: &[&str]) -> CommandOutput {
    let mut command = stage.command("unshare");
    let script = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && exec \"$@\"";
    command.args(["-m", "sh", "-c", script]).arg(dir).arg(stage.agency(["ls"]).get_program()).args(words);
    CommandOutput::of(command, b"")
}

/// State directory, project and home, each alone.
#[test]
fn a_read_only_disk_and_new_daemons_hide_no_agent_and_all_is_well_when_it_is_writable() {
    for dir in [Sealed::state, Sealed::repo, Sealed::home] {
        let (stage, keeper) = left_alone();
        let dir = dir(&stage);
        if run_on_read_only(&stage, &dir, &["--version"]).code != 0 {
            return eprintln!("skipped: this machine does not let us mount a directory");
        }
        for round in 0..2 {
            let listing = run_on_read_only(&stage, &dir, &["ls", "--json"]).json();
            let task = &listing["tasks"][0];
            let expected = (&"running".into(), &keeper.run.as_str().into());
            assert_eq!((&task["status"], &task["run"]), expected, "{} {listing}", dir.display());
            assert_eq!(listing["orphans"], serde_json::json!([]));
            let text = format!("hello {round}");
            run_on_read_only(&stage, &dir, &["send", "live", &text]).ok();
            stage.wait_printed("live", &format!("got: {text}"));
            daemon_on_full_disk(&stage).kill();
        }
        check_reachable(&stage, keeper.child.expect("an agent"));
    }
}

#[test]
fn a_full_disk_and_new_daemons_lose_no_session() {
    let stage = Stage::new();
    stage.configure("[agents.fake]\nacp = [\"fake-agent\", \"--acp\", \"\"]\n");
    stage.run(["new", "session", "--no-attach", "--driver", "acp", "-m", "hello"]).ok();
    wait_said(&stage, "session", "echo: hello");
    let run = stage.task("session")["run"].clone();
    let check_answer = |text: &str| {
        stage.eventually("the session takes a message", SOON, || {
            (stage.run(["send", "session", text]).code == 0).then_some(())
        });
        wait_said(&stage, "session", &format!("echo: {text}"));
    };
    stage.kill_daemon();
    for round in 0..2 {
        start_daemon_on_full_disk(&stage);
        let task = stage.task("session");
        assert_eq!((&task["status"], &task["run"]), (&"running".into(), &run), "{task}");
        check_answer(&format!("full {round}"));
        if round == 0 {
            daemon_on_full_disk(&stage).kill();
        }
    }
    make_room(&daemon_on_full_disk(&stage));
    check_answer("room");
    daemon_on_full_disk(&stage).kill();
    let chat = wait_said(&stage, "session", "echo: room");
    assert!(chat.contains("may be lost"), "no journal took the lines of the full disk: {chat}");
    check_answer("again");
    stage.run(["stop", "session"]).ok();
}

#[test]
fn an_agent_whose_project_comes_back_belongs_to_its_task_again() {
    let (stage, keeper) = left_alone();
    let aside = stage.home().join("aside");
    fs::rename(stage.repo(), &aside).expect("one file system");
    let mut list = stage.agency(["ls", "--all", "--json"]);
    list.current_dir(stage.home());
    let listing = CommandOutput::of(list, b"").json();
    assert_eq!(listing["orphans"][0]["run"], keeper.run.as_str(), "{listing}");
    fs::rename(&aside, stage.repo()).expect("one file system");
    stage.wait_task("live", "has its agent", |task| task["run"].is_string());
    check_reachable(&stage, keeper.child.expect("an agent"));
}

#[test]
fn a_daemon_in_another_time_namespace_adopts_its_agents() {
    let (stage, keeper) = left_alone();
    let mut shifted = stage.command("unshare");
    let words = ["-T", "--boottime", "100000", "-f", "true"];
    if !shifted.args(words).output().is_ok_and(|ran| ran.status.success()) {
        return eprintln!("skipped: this machine does not let us make a time namespace");
    }
    let mut list = stage.command("unshare");
    list.args(["-T", "--boottime", "100000", "-f"]).arg(stage.agency(["ls"]).get_program()).arg("ls");
    CommandOutput::of(list, b"").ok();
    check_reachable(&stage, keeper.child.expect("an agent"));
}

/// Deletes the state directory, in which a daemon or a keeper may write at the same time.
fn delete_state(stage: &Stage) {
    stage.eventually("the state directory is deleted", SOON, || {
        fs::remove_dir_all(stage.state()).is_ok().then_some(())
    });
}

#[test]
fn a_deleted_state_directory_leaves_one_daemon_and_no_agent_behind() {
    let stage = Stage::new();
    stage.play("live", SCRIPT);
    stage.wait_printed("live", "ready?");
    let (agent, first) = (stage.agent("live"), stage.daemon().expect("a daemon lives"));
    delete_state(&stage);
    stage.wait_task("live", "has its agent", |task| task["run"].is_string());
    first.wait_gone(SOON);
    assert_eq!(stage.agent("live"), agent);
    stage.run(["send", "live", "hello"]).ok();
    stage.wait_printed("live", "got: hello");
    stage.run(["start", "live"]);
    assert_eq!(stage.agent("live"), agent, "no second agent is started");
    // Also without a daemon that could notice it.
    stage.kill_daemon();
    delete_state(&stage);
    stage.wait_task("live", "has its agent", |task| task["run"].is_string());
    stage.run(["daemon", "stop", "--agents"]).ok();
    agent.wait_gone(SOON);
}

/// An agent that ignores signals and outlived its daemon, its keeper and all files about it.
fn only_the_process_left() -> (Stage, Keeper, Process) {
    let stage = Stage::new();
    stage.play("live", "ignore-term; ask ready?");
    stage.wait_printed("live", "ready?");
    let keeper = stage.keeper("live");
    let agent = keeper.child.expect("an agent");
    stage.kill_daemon();
    keeper.kill_for_good();
    delete_state(&stage);
    (stage, keeper, agent)
}

#[test]
fn a_process_without_files_and_keeper_is_an_orphan_that_the_end_of_all_agents_ends() {
    let (stage, keeper, agent) = only_the_process_left();
    let listing = stage.listing();
    assert_eq!(listing["orphans"][0]["pid"], agent.pid, "{listing}");
    let refusal = stage.refused(&["start", "live"]);
    assert!(refusal.contains(&format!("pid {}", agent.pid)), "{refusal}");
    assert!(refusal.contains(&format!("agency orphans kill {}", keeper.run)), "{refusal}");
    stage.run(["daemon", "stop", "--agents"]).ok();
    agent.wait_gone(SOON);
}

/// The keeper is suspended, its file is lost, and its agent has no environment that says whose it is.
#[test]
fn no_agent_starts_beside_a_keeper_that_nothing_explains() {
    let stage = Stage::new();
    stage.run(["new", "live", "--no-attach", "--", "env", "-i", "cat"]).ok();
    let keeper = stage.keeper("live");
    let agent = keeper.child.expect("an agent");
    stage.eventually("the agent has no environment", SOON, || (agent.name() == "cat").then_some(()));
    stage.kill_daemon();
    remove(&run_file(&stage, &keeper, "run.json"));
    assert!(keeper.process.signal(Signal::STOP));
    let listing = stage.listing();
    assert_eq!(listing["orphans"][0]["pid"], keeper.process.pid, "{listing}");
    let refusal = stage.refused(&["start", "live"]);
    assert!(refusal.contains(&format!("pid {}", keeper.process.pid)), "{refusal}");
    assert!(refusal.contains(&format!("Hint: agency orphans kill {}", keeper.run)), "{refusal}");
    assert_eq!(stage.run(["orphans", "kill", &keeper.run]).ok(), format!("{} stopped\n", keeper.run));
    agent.wait_gone(SOON);
    keeper.process.wait_gone(SOON);
    stage.run(["start", "live"]).ok();
}

/// The orphan may write at any moment, so no files change below it.
#[test]
fn neither_a_sync_nor_a_turn_changes_files_below_an_orphan() {
    let (stage, keeper, agent) = only_the_process_left();
    assert_eq!(stage.listing()["orphans"][0]["pid"], agent.pid);
    let hint = format!("Hint: agency orphans kill {}", keeper.run);
    for command in [&["sync", "live"][..], &["undo", "--turn", "live"], &["setup", "live"], &["rm", "live"]] {
        let refusal = stage.refused(command);
        assert!(refusal.contains(&format!("pid {}", agent.pid)), "{command:?}: {refusal}");
        assert!(refusal.contains(&hint), "{command:?}: {refusal}");
    }
    stage.run(["orphans", "kill", &keeper.run]).ok();
    agent.wait_gone(SOON);
    stage.run(["sync", "live"]).ok();
}
