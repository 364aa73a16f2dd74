//! A sealed environment takes nothing from outside and leaves nothing behind.

use std::collections::BTreeMap;
use std::fs;

use agency_testkit::{CommandOutput, Keeper, Process, Pty, Sealed};

fn environment(sealed: &Sealed) -> BTreeMap<String, String> {
    let printed = CommandOutput::of(sealed.command("env"), b"").ok();
    printed
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

#[test]
fn nothing_of_the_callers_environment_reaches_it() {
    let sealed = Sealed::new();
    let env = environment(&sealed);
    assert!(!env.contains_key("CARGO_MANIFEST_DIR"), "cargo set it for this test");
    let own: Vec<&String> = env.keys().filter(|name| name.starts_with("AGENCY_")).collect();
    assert_eq!(own, ["AGENCY_KEEPER"]);
    assert_eq!(env["HOME"], sealed.home().display().to_string());
    assert!(sealed.state().starts_with(&env["XDG_STATE_HOME"]));
    assert!(sealed.config().starts_with(&env["XDG_CONFIG_HOME"]));
    assert!(env["PATH"].starts_with(&format!("{}/bin:", sealed.home().parent().expect("a root").display())));
}

#[test]
fn paths_of_sockets_are_short_enough() {
    let socket = Sealed::new().state().join("r/abcdefghij/k");
    assert!(socket.as_os_str().len() < 100, "{}", socket.display());
}

#[test]
fn the_repository_has_one_clean_commit() {
    let sealed = Sealed::new();
    let git = |args: &[&str]| {
        let mut command = sealed.command("git");
        command.args(args);
        CommandOutput::of(command, b"").ok()
    };
    assert_eq!(git(&["log", "--format=%an %s", "main"]), "Tester first\n");
    assert_eq!(git(&["status", "--porcelain"]), "");
}

#[test]
fn the_editor_types_the_given_text() {
    let sealed = Sealed::new();
    let path = sealed.home().join("note");
    fs::write(&path, "# title\n").expect("room");
    let edit = || {
        let mut editor = sealed.command("editor");
        editor.arg(&path);
        CommandOutput::of(editor, b"").ok();
        fs::read_to_string(&path).expect("there")
    };
    assert_eq!(edit(), "# title\n");
    sealed.editor_types("body\n");
    assert_eq!(edit(), "# title\nbody\n");
}

#[test]
fn the_state_directory_tells_which_daemon_and_keepers_are_alive() {
    let sealed = Sealed::new();
    let mut command = sealed.command("fake-agent");
    command.args(["-c", "say ready; no-read"]);
    let mut ours = Pty::spawn(command, 80, 24);
    ours.wait_for("ready");
    let process = Process::find(ours.pid()).expect("it lives");
    let run = sealed.state().join("r/run1");
    fs::create_dir_all(&run).expect("room");
    assert_eq!((sealed.daemon(), sealed.keepers()), (None, vec![]));

    fs::write(sealed.state().join("d-12345678.lock"), format!("{}\n", process.pid)).expect("room");
    let pid_file = |start_time: u64| {
        let identity = format!(r#"{{"pid":{},"start_time":{start_time},"boot_id":"b"}}"#, process.pid);
        format!(r#"{{"keeper":{identity},"child":{identity}}}"#)
    };
    fs::write(run.join("pid"), pid_file(process.start_time)).expect("room");
    assert_eq!(sealed.daemon(), Some(process));
    assert_eq!(sealed.keepers(), [Keeper { run: "run1".into(), process, child: Some(process) }]);

    // The same pid with another start time is another process; a process of another environment is not our daemon.
    fs::write(run.join("pid"), pid_file(process.start_time + 1)).expect("room");
    assert_eq!(sealed.keepers(), []);
    fs::write(sealed.state().join("d-12345678.lock"), std::process::id().to_string()).expect("room");
    assert_eq!(sealed.daemon(), None);
}

#[test]
fn the_output_of_a_command_says_how_it_ended() {
    let sealed = Sealed::new();
    let sh = |script: &str| {
        let mut command = sealed.command("sh");
        command.args(["-c", script]);
        CommandOutput::of(command, b"input")
    };
    assert_eq!(sh("cat; exit 0").ok(), "input");
    assert_eq!(sh("echo no >&2; exit 4").refused(), "no\n");
    assert_eq!(sh("kill -9 $$").code, -9);
    assert_eq!(sh("echo '{\"a\": [1]}'").json()["a"][0], 1);
}
