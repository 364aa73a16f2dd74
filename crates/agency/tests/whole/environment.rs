//! The environment of an agent: variables of its task, its caller's environment, nothing of the daemon's own.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use agency_testkit::{CommandOutput, Process, Pty};

use crate::stage::{SOON, Stage};

type Variables = BTreeMap<String, Vec<u8>>;

fn environment_of(process: Process) -> Variables {
    let bytes = fs::read(format!("/proc/{}/environ", process.pid)).expect("a live process of ours");
    let variables = bytes.split(|byte| *byte == 0).filter_map(|variable| {
        let at = variable.iter().position(|byte| *byte == b'=')?;
        Some((String::from_utf8_lossy(&variable[..at]).into_owned(), variable[at + 1..].to_vec()))
    });
    variables.collect()
}

/// The environment of an agent that this command starts.
#[track_caller]
fn started_by(stage: &Stage, change: impl FnOnce(&mut Command)) -> Variables {
    let mut new = stage.agency(["new", "one", "--", "fake-agent", "-c", "ask ready?"]);
    change(&mut new);
    CommandOutput::of(new, b"").ok();
    environment_of(stage.agent("one"))
}

#[track_caller]
fn text<'a>(variables: &'a Variables, name: &str) -> Option<&'a str> {
    variables.get(name).map(|value| std::str::from_utf8(value).expect("text"))
}

#[test]
fn task_variables_are_in_arguments_and_environment() {
    let stage = Stage::with_config(
        r#"
        [agents.parrot]
        start = [
            "fake-agent", "-c", "args; say that was all; ask ready?", "$AGENCY_TASK_ID", "<$AGENCY_SLUG-$AGENCY_TASK_ID>",
            "$AGENCY_BODY", "$AGENCY_PROMPT", "$AGENCY_PROJECT_ROOT", "$AGENCY_WORKTREE", "--resume", "$AGENCY_SESSION_ID",
            "$AGENCY_UNKNOWN",
        ]
        env = { FROM_CONFIG = "yes" }
        "#,
    );
    let body = "costs $AGENCY_SLUG, and ; no `shell` $(sees) it";
    stage.run(["new", "one", "--agent", "parrot", "-m", body]).ok();
    let (root, worktree) =
        (stage.repo().display().to_string(), stage.worktree("1-one").display().to_string());
    let expected = format!(
        "arg 1: 1\narg 2: <one-1>\narg 3: {body}\narg 4: {body}\narg 5: {root}\narg 6: {worktree}\n\
         arg 7: $AGENCY_UNKNOWN\nthat was all\n"
    );
    let printed = stage.wait_printed("one", "that was all");
    assert!(printed.starts_with(&expected), "{printed}");

    let agent = stage.keeper("one");
    let env = environment_of(agent.child.expect("an agent"));
    for (name, value) in [
        ("AGENCY_TASK_ID", "1"),
        ("AGENCY_SLUG", "one"),
        ("AGENCY_BODY", body),
        ("AGENCY_PROMPT", body),
        ("AGENCY_PROJECT_ROOT", &root),
        ("AGENCY_WORKTREE", &worktree),
        ("AGENCY_RUN_ID", &agent.run),
        ("PWD", &worktree),
        ("FROM_CONFIG", "yes"),
    ] {
        assert_eq!(text(&env, name), Some(value), "{name}");
    }
    assert_eq!(text(&env, "AGENCY_SESSION_ID"), None);
    let socket = PathBuf::from(text(&env, "AGENCY_SOCKET").expect("the way to us"));
    assert_eq!(socket.parent(), Some(stage.state().as_path()));
}

#[test]
fn variables_about_the_callers_terminal_are_dropped() {
    let stage = Stage::new();
    let foreign = [
        "TMUX",
        "TMUX_PANE",
        "TERM_PROGRAM",
        "TERM_PROGRAM_VERSION",
        "KITTY_WINDOW_ID",
        "KITTY_LISTEN_ON",
        "CLAUDECODE",
        "AGENCY_TASK_ID",
        "AGENCY_SESSION_ID",
    ];
    let env = started_by(&stage, |new| {
        new.envs(foreign.map(|name| (name, "of another"))).env("AGENCY_RUN_ID", "foreign");
        new.env("TERM", "dumb").env_remove("COLORTERM").env_remove("LANG").env("LC_ALL", "POSIX");
        new.env("MINE", "stays");
    });
    for name in foreign {
        assert_ne!(text(&env, name), Some("of another"), "{name}");
    }
    assert_eq!(text(&env, "AGENCY_RUN_ID"), Some(stage.keeper("one").run.as_str()));
    for (name, value) in
        [("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("LANG", "C.UTF-8"), ("MINE", "stays")]
    {
        assert_eq!(text(&env, name), Some(value), "{name}");
    }
    assert_eq!(text(&env, "LC_ALL"), None, "it would overrule LANG");
}

#[test]
fn a_utf8_locale_is_kept() {
    let env = started_by(&Stage::new(), |new| {
        new.env("LANG", "de_DE.UTF-8");
    });
    assert_eq!(text(&env, "LANG"), Some("de_DE.UTF-8"));
}

#[test]
fn an_agent_gets_the_environment_of_its_caller_not_of_the_daemon() {
    let stage = Stage::new();
    let mut first = stage.agency(["daemon", "start"]);
    first.env("WHOSE", "the daemon's").env("ONLY_AT_BIRTH", "1");
    CommandOutput::of(first, b"").ok();
    let env = started_by(&stage, |new| {
        new.env("WHOSE", "the caller's");
    });
    assert_eq!((text(&env, "WHOSE"), text(&env, "ONLY_AT_BIRTH")), (Some("the caller's"), None));

    stage.run(["stop", "one"]).ok();
    let mut start = stage.agency(["start", "one"]);
    start.env("WHOSE", "a later caller's");
    CommandOutput::of(start, b"").ok();
    assert_eq!(text(&environment_of(stage.agent("one")), "WHOSE"), Some("a later caller's"));
}

#[test]
fn a_value_that_is_not_utf8_arrives_unchanged() {
    let stage = Stage::new();
    let odd = b"\xff\xfe not \x80 text";
    let env = started_by(&stage, |new| {
        new.env("ODD", OsStr::from_bytes(odd));
    });
    assert_eq!(env["ODD"], odd);
}

#[test]
fn the_ssh_agent_socket_is_a_link_that_follows_the_attached_client() {
    let stage = Stage::new();
    let env = started_by(&stage, |new| {
        new.env("SSH_AUTH_SOCK", "/tmp/of-the-first-login");
    });
    let link = PathBuf::from(text(&env, "SSH_AUTH_SOCK").expect("a socket"));
    let target = || fs::read_link(&link).expect("a link");
    assert_eq!(target(), Path::new("/tmp/of-the-first-login"));
    let mut attach = stage.agency(["attach", "one"]);
    attach.env("SSH_AUTH_SOCK", "/tmp/of-the-second-login");
    let mut terminal = Pty::spawn(attach, 80, 24);
    terminal.wait_for("ready?");
    assert_eq!(target(), Path::new("/tmp/of-the-second-login"));
    let mut terminal = stage.on_terminal(["attach", "one", "--read-only"]);
    terminal.wait_for("ready?");
    assert_eq!(target(), Path::new("/tmp/of-the-second-login"), "one without a socket changes nothing");
}

#[test]
fn a_prompt_that_is_too_long_for_a_command_is_passed_by_file_and_reported() {
    let stage = Stage::with_config(
        r#"
        [agents.parrot]
        start = ["fake-agent", "-c", "args; env AGENCY_PROMPT; env AGENCY_PROMPT_FILE; ask ready?", "$AGENCY_PROMPT"]
        "#,
    );
    let prompt = "all the tests, please\n".repeat(10_000);
    let prompt = prompt.trim_end();
    let ran = CommandOutput::of(stage.agency(["new", "one", "--agent", "parrot"]), prompt.as_bytes());
    let logs = stage.wait_printed("one", "ready?");
    let path = logs.lines().nth_back(1).expect("a path").to_owned();
    assert!(logs.contains(&format!("arg 1: Your task is in the file {path}. Read it first.")), "{logs}");
    assert!(ran.stderr.contains(&format!("{} bytes", prompt.len())) && ran.stderr.contains(&path), "{ran}");
    ran.ok();
    assert!(fs::read_to_string(&path).expect("the file") == prompt);
    assert_eq!(fs::metadata(&path).expect("the file").mode() & 0o777, 0o600);
    assert!(stage.task_file("1-one").ends_with(&prompt[prompt.len() - 1000..]));
}

#[test]
fn an_agent_gets_the_users_limit_of_open_files() {
    let stage = Stage::new();
    // The first command also starts the daemon, which raises its own limit.
    let line = "ulimit -S -n 333; exec agency new one -- sh -c 'ulimit -S -n; ulimit -H -n; echo done; cat'";
    CommandOutput::of(stage.shell(line), b"").ok();
    let hard = CommandOutput::of(stage.shell("ulimit -H -n"), b"").ok();
    let printed = stage.wait_printed("one", "done\n");
    assert_eq!(printed, format!("333\n{hard}done\n"));
    let limits = fs::read_to_string(format!("/proc/{}/limits", stage.daemon().expect("a daemon").pid));
    let limits = limits.expect("a live process of ours");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    let [soft, all] = line.split_whitespace().skip(3).take(2).collect::<Vec<_>>()[..] else {
        panic!("{line}")
    };
    assert_eq!(soft, all);
}

/// The files below the state directory that contain this text.
fn files_with(stage: &Stage, text: &str) -> Vec<String> {
    let mut grep = stage.command("grep");
    grep.args(["-rlF", "--", text]).arg(stage.state());
    let mut files: Vec<String> = CommandOutput::of(grep, b"").stdout.lines().map(str::to_owned).collect();
    files.sort();
    files
}

#[test]
fn prompts_and_environment_values_are_only_in_expected_files() {
    let stage = Stage::with_config(
        "[agents.quiet]\nstart = [\"fake-agent\", \"-c\", \"ask ready?\", \"$AGENCY_PROMPT\"]\n",
    );
    let (secret, prompt) = ("s3cr3t-t0k3n", "the very private prompt");
    let agency = |args: &[&str]| {
        let mut agency = stage.agency(args);
        // The daemon logs everything that it can.
        agency.env("API_TOKEN", secret).env("AGENCY_LOG", "trace");
        CommandOutput::of(agency, b"")
    };
    agency(&["new", "one", "--agent", "quiet", "-m", prompt]).ok();
    stage.wait_printed("one", "ready?");
    let keeper = stage.keeper("one").process;
    let line = fs::read(format!("/proc/{}/cmdline", keeper.pid)).expect("a live process of ours");
    let line = String::from_utf8_lossy(&line).into_owned();
    assert!(line.starts_with("agency-keeper: 1-one "), "{line}");
    assert!(!line.contains(secret) && !line.contains(prompt), "{line}");
    assert!(environment_of(keeper).is_empty(), "what it holds for the agent is in its memory only");

    agency(&["restart", "one"]).ok();
    stage.kill_daemon();
    agency(&["ls"]).ok();
    agency(&["stop", "one"]).ok();
    agency(&["start", "one"]).ok();
    agency(&["rm", "one", "--discard"]).ok();
    agency(&["new", "two", "--agent", "quiet", "-m", prompt]).ok();
    agency(&["new", "three", "--agent", "no-such-agent", "-m", prompt]).refused();

    assert_eq!(files_with(&stage, secret), [""; 0]);
    let found = files_with(&stage, prompt);
    assert!(!found.is_empty());
    for file in found {
        let below = Path::new(&file).strip_prefix(stage.state()).expect("in the state directory");
        let is_task = below.starts_with("projects") && file.ends_with(".md");
        // The search index must contain it.
        let is_index = file.ends_with(".sqlite") || file.ends_with(".sqlite-wal");
        assert!(is_task || is_index, "{file}");
    }
    assert!(stage.daemon_log().lines().count() > 5, "there is a log");
}

#[test]
fn an_upgrade_does_not_remove_the_keepers_program() {
    let stage = Stage::new();
    let programs = stage.home().join("programs");
    fs::create_dir(&programs).expect("room");
    let keeper = programs.join("agency-keeper");
    fs::copy(agency_testkit::Binaries::keeper(), &keeper).expect("a copy");
    let mut new = stage.agency(["new", "one", "--", "fake-agent", "-c", "loop; ask ready?; end"]);
    new.env("AGENCY_KEEPER", &keeper);
    CommandOutput::of(new, b"").ok();
    fs::remove_file(&keeper).expect("ours");
    symlink("/nowhere", &keeper).expect("the name is free");
    let exe = fs::read_link(format!("/proc/{}/exe", stage.keeper("one").process.pid)).expect("a program");
    assert_eq!(exe.parent(), Some(stage.state().join("bin").as_path()));
    assert!(exe.is_file(), "{}", exe.display());
    // The daemon that started it can still start a rescue keeper with it.
    stage.keeper("one").process.kill();
    // A text that reaches the dying keeper is refused, and not typed later.
    stage.eventually("input goes on", SOON, || (stage.run(["send", "one", "hello"]).code == 0).then_some(()));
    stage.eventually("it goes on", SOON, || stage.logs("one").contains("got: hello").then_some(()));
}

#[test]
fn a_start_resumes_a_known_session() {
    let stage = Stage::with_config(
        r#"
        [agents.talker]
        start = ["fake-agent", "-c", "say from the beginning; ask ready?"]
        resume = ["fake-agent", "-c", "args; env AGENCY_SESSION_ID; ask ready?", "--resume", "$AGENCY_SESSION_ID"]
        "#,
    );
    stage.run(["new", "one", "--agent", "talker", "-m", "x"]).ok();
    stage.wait_printed("one", "from the beginning");
    stage.run(["stop", "one"]).ok();
    let known = stage.task_file("1-one").replace("agent: talker\n", "agent: talker\nsession_id: abc-123\n");
    fs::write(stage.task_path("1-one"), known).expect("ours");
    stage.run(["start", "one"]).ok();
    stage.wait_printed("one", "arg 1: --resume\narg 2: abc-123\nabc-123\n");
}
