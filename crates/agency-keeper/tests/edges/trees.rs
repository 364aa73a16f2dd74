//! A stop reaches the whole tree, also processes that left the group or the session.

use std::time::Duration;

use agency_journal::{ExitStatus, StopSignal};
use agency_keeper::platform;
use rustix::process::Signal;

use crate::harness::{Client, Run, is_alive, keeper_binary, private_dir, run_id, spec, wait_for_end};

/// The pid that a script printed as `name=pid`.
fn pid(client: &Client, name: &str) -> i32 {
    let text = client.text();
    let after = text.split_once(&format!("{name}=")).unwrap_or_else(|| panic!("no {name} in {text:?}")).1;
    after.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok()).expect("a pid")
}

const ESCAPES: &str = r#"
    setsid sh -c 'echo session=$$; exec sleep 1000' &
    sh -c 'sh -c "setsid sh -c \"echo orphan=\\\$\\\$; exec sleep 1000\" &"; exit'
    setsid sh -c 'trap "" TERM HUP; echo deaf=$$; while :; do sleep 0.01; done' &
    sleep 1000 & echo group=$!
    cat
"#;

#[test]
fn children_that_left_the_group_are_ended_and_listed() {
    let run = Run::script(ESCAPES);
    let mut daemon = run.daemon();
    for name in ["session=", "orphan=", "deaf=", "group="] {
        daemon.wait_for_text(name);
    }
    let names = ["session", "orphan", "deaf", "group"];
    let [session, orphan, deaf, group] = names.map(|name| pid(&daemon, name));
    assert!([session, orphan, deaf, group].into_iter().all(is_alive));
    daemon.stop(Duration::from_millis(300));
    assert_eq!(daemon.wait_for_exit().1, Some(StopSignal::Term), "the agent itself went at once");
    let ended = daemon.wait_for_gone();
    for pid in [session, orphan, deaf, group] {
        assert!(!is_alive(pid), "{pid} is left");
    }
    let killed = |pid| ended.iter().find(|ended| ended.pid == pid).map(|ended| ended.killed);
    assert_eq!((killed(session), killed(orphan)), (Some(false), Some(false)), "{ended:?}");
    assert_eq!(killed(deaf), Some(true), "{ended:?}");
    assert_eq!(killed(group), None, "the agent's own group is not listed");
}

#[test]
fn spared_processes_stay_and_do_not_hold_up_the_end() {
    let dir = private_dir();
    let spared = dir.path().join("gpg-agent-x");
    std::fs::copy(std::fs::canonicalize("/bin/sleep").expect("sleep"), &spared).expect("a copy");
    let script =
        format!("setsid {} 1000 & echo spared=$!; setsid sleep 1000 & echo other=$!; cat", spared.display());
    let run = Run::with(&["sh", "-c", &script], |spec| spec.spare = vec!["gpg-agent-x".into()]);
    let mut daemon = run.daemon();
    daemon.wait_for_text("other=");
    let (spared, other) = (pid(&daemon, "spared"), pid(&daemon, "other"));
    daemon.probe_until("has its name", |probe| {
        probe.processes.iter().any(|process| process.pid == spared && process.name == "gpg-agent-x")
    });
    daemon.stop(Duration::from_secs(5));
    let ended = daemon.wait_for_gone();
    assert!(is_alive(spared) && !is_alive(other));
    assert!(ended.iter().all(|ended| ended.pid != spared), "{ended:?}");
    let spared = platform::identity_of(spared).expect("alive");
    assert!(platform::signal_if_same(&spared, Signal::KILL).expect("ours"));
}

#[test]
fn a_stopped_process_ends_too() {
    let run = Run::script("setsid sh -c 'echo halted=$$; kill -STOP $$; sleep 1000' & cat");
    let mut daemon = run.daemon();
    daemon.wait_for_text("halted=");
    let halted = pid(&daemon, "halted");
    daemon.probe_until("stopped", |probe| {
        probe.processes.iter().any(|one| one.pid == halted && one.state == "T")
    });
    daemon.stop(Duration::from_secs(10));
    let ended = daemon.wait_for_gone();
    assert!(ended.iter().any(|ended| ended.pid == halted && !ended.killed), "TERM was enough: {ended:?}");
}

#[test]
fn a_tree_that_keeps_forking_is_ended() {
    let run = Run::script(
        "trap '' TERM HUP; echo up; f() { (sleep 0.02; f) & (sleep 0.01) & }; f; while :; do (sleep 0.05 &); sleep 0.01; done",
    );
    let mut daemon = run.daemon();
    daemon.wait_for_text("up");
    daemon.stop(Duration::from_millis(100));
    daemon.wait_for_gone();
    let left = platform::processes_with_environment("AGENCY_RUN_ID", &run_id(run.dir.path()));
    assert_eq!(left, [], "nothing of the run is left");
}

#[test]
fn processes_that_outlive_the_agent_are_ended() {
    let run = Run::script("setsid sh -c 'echo left=$$; exec sleep 1000' & read line; exit 2");
    let mut daemon = run.daemon();
    daemon.wait_for_text("left=");
    daemon.type_in(1, b"\n");
    assert_eq!(daemon.wait_for_exit(), (ExitStatus::Code(2), None), "no stop was requested");
    let ended = daemon.wait_for_gone();
    let left = pid(&daemon, "left");
    assert!(!is_alive(left));
    assert_eq!(ended.iter().map(|ended| ended.pid).collect::<Vec<_>>(), [left]);
}

#[test]
fn term_to_the_keeper_ends_the_tree_and_then_the_keeper() {
    let run = Run::script("echo up; setsid sleep 1000 & cat");
    let mut daemon = run.daemon();
    daemon.wait_for_text("up");
    assert!(platform::signal_if_same(&run.keeper, Signal::HUP).expect("ours"), "HUP changes nothing");
    daemon.type_in(1, b"after hup\n");
    daemon.wait_for_text("after hup");
    assert!(platform::signal_if_same(&run.keeper, Signal::TERM).expect("ours"));
    assert_eq!(daemon.wait_for_exit().1, Some(StopSignal::Term));
    daemon.wait_for_gone();
    run.wait_for_keeper();
    assert_eq!(platform::processes_with_environment("AGENCY_RUN_ID", &run_id(run.dir.path())), []);
}

/// Not a test by itself: the program that an agent starts below, which acts like a daemon.
#[test]
fn a_daemon_of_an_agent() {
    let Some(run_dir) = std::env::var_os("TEST_RUN_DIR") else { return };
    let run_dir = std::path::Path::new(&run_dir);
    let mut client = Client::to(run_dir);
    client.hello(7);
    client.follow(1);
    println!("daemon={} here", std::process::id());
    client.wait_for_gone();
    std::fs::write(run_dir.join("survived"), "").expect("written");
}

#[test]
fn a_daemon_that_an_agent_started_is_not_ended_with_it() {
    let exe = std::env::current_exe().expect("ourselves");
    let script = "setsid $EXE --exact trees::a_daemon_of_an_agent --nocapture & cat";
    let run = Run::with(&["sh", "-c", script], |spec| {
        if let agency_api::keeper::Start::Spawn { env, .. } = &mut spec.start {
            env.push(("EXE".into(), exe.into()));
            env.push(("TEST_RUN_DIR".into(), spec.run_dir.clone()));
        }
    });
    let mut guest = run.connect();
    guest.hello(0);
    guest.follow(1);
    guest.wait_for_text(" here");
    let daemon = platform::identity_of(pid(&guest, "daemon")).expect("alive");
    assert!(platform::signal_if_same(&run.keeper, Signal::TERM).expect("ours"));
    run.wait_for_keeper();
    wait_for_end(&daemon);
    assert!(run.path("survived").exists(), "the daemon survived its agent's stop");
}

/// An agent may start a daemon, which starts keepers: they descend from the agent but are not part of its tree.
#[test]
fn the_keeper_of_another_run_is_not_ended_with_the_agent_that_started_it() {
    let inner = private_dir();
    let mut launch = spec(inner.path(), &["sh", "-c", "echo inner up; cat"]);
    launch.name = "2-inner".into();
    let frame = agency_api::keeper::Frame::control(&launch).expect("json").encoded();
    std::fs::write(inner.path().join("spec"), frame).expect("a file");
    let script = format!("{} < {}/spec; cat", keeper_binary().display(), inner.path().display());
    let outer = Run::script(&script);
    let mut daemon = outer.daemon();
    daemon.wait_for_text("ready");
    let mut inner_daemon = Client::to(inner.path());
    let welcome = inner_daemon.hello(1);
    inner_daemon.follow(1);
    inner_daemon.wait_for_text("inner up");
    let holder = platform::process(platform::process(welcome.keeper.pid).expect("it lives").parent);
    let holder = holder.expect("it lives").identity();
    daemon.stop(Duration::from_millis(100));
    daemon.wait_for_gone();
    assert!(platform::is_alive(&holder), "the holder of another run stays, too");
    inner_daemon.type_in(1, b"alive\n");
    inner_daemon.wait_for_text("alive\r\nalive");
    inner_daemon.stop(Duration::ZERO);
    inner_daemon.wait_for_gone();
    inner_daemon.send_message(&agency_api::keeper::ToKeeper::Dismiss);
    wait_for_end(&welcome.keeper);
}
