//! The calls that commands make to the daemon, and everything they print, word for word.

#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

mod cli_support;

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use agency_api::pty::ViewerNotice;
use agency_api::{Failure, FailureCode};
use serde_json::{Value, json};

use cli_support::Home;
use cli_support::daemon::{FakeDaemon, task};
use cli_support::pty::Pty;

fn home_and_daemon() -> (Home, FakeDaemon) {
    let home = Home::new();
    let daemon = FakeDaemon::start(&home);
    (home, daemon)
}

fn listing(tasks: Value, orphans: Value) -> Value {
    json!({ "tasks": tasks, "orphans": orphans, "warnings": [], "marks": "auto" })
}

fn orphan() -> Value {
    json!({
        "run": "k3v9x0a2bc", "kind": "keeper", "project": "/project", "task": 7, "slug": "lost",
        "agent": "shell", "pid": 4711,
    })
}

#[test]
fn ls_shows_a_table_and_the_number_of_orphans() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("task.list", listing(json!([task("running"), task("stopped")]), json!([orphan()])));
    home.run(&["ls"]).is(
        0,
        "\
ID  SLUG       STATE                         AGENT  AGE
1   fix-login  🟡 at its prompt 12s, unread  Shell  3m
1   fix-login  ⚪ stopped 5m                 Shell  3m
1 orphan: agency orphans
",
        "",
    );
    assert_eq!(daemon.called("task.list")["cwd"], home.path().canonicalize().unwrap().to_str().unwrap());
}

#[test]
fn ls_in_json_is_one_document_of_the_api() {
    let (home, daemon) = home_and_daemon();
    let answer = listing(json!([task("running")]), json!([]));
    daemon.answer("task.list", answer.clone());
    let output = home.run(&["ls", "--all", "--json"]);
    let mut wanted = answer;
    wanted["schema_version"] = 1.into();
    assert_eq!(serde_json::from_str::<Value>(&output.stdout).unwrap(), wanted);
    assert_eq!(output.stdout.lines().count(), 1);
    assert_eq!(daemon.called("task.list")["cwd"], Value::Null);
}

#[test]
fn an_empty_list_teaches_the_first_step() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("task.list", listing(json!([]), json!([])));
    let output = home.run(&[]);
    assert_eq!(output.code, Some(0));
    assert!(
        output.stdout.starts_with("No tasks yet. Start one:\n\n  agency new fix-login"),
        "{}",
        output.stdout
    );
}

#[test]
fn agency_without_a_command_lists_tasks_and_suggests_next_steps() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("task.list", listing(json!([task("running")]), json!([])));
    home.run(&[]).is(
        0,
        "\
ID  SLUG       STATE                         AGENT  AGE
1   fix-login  🟡 at its prompt 12s, unread  Shell  3m

Next:
  agency attach fix-login     open its terminal; ctrl-q leaves
  agency new SLUG -m MESSAGE  start another task
  agency help                 see all commands
",
        "",
    );
}

#[test]
fn a_failure_is_printed_as_error_cause_and_hint() {
    let (home, daemon) = home_and_daemon();
    let failure =
        Failure::new("no task is called fix").because("it could be fix-a or fix-b").hint("agency ls");
    daemon.refuse("task.stop", failure);
    home.run(&["stop", "fix"]).is(
        1,
        "",
        "Error: no task is called fix\nCaused by: it could be fix-a or fix-b\nHint: agency ls\n",
    );
}

/// The document that a command prints when it fails with `--json`.
#[track_caller]
fn failure_document(home: &Home, arguments: &[&str], code: i32) -> Value {
    let output = home.run(arguments);
    assert_eq!(output.code, Some(code), "{arguments:?}: {output:?}");
    assert_eq!(output.stdout.lines().count(), 1, "{arguments:?}: nothing but the document: {output:?}");
    let document: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(document["schema_version"], 1, "{arguments:?}");
    let message = document["error"]["message"].as_str().expect("a message");
    assert!(output.stderr.starts_with(&format!("Error: {message}\n")), "{arguments:?}: {output:?}");
    document
}

#[test]
fn with_json_a_refusal_is_a_document_with_the_code_of_the_daemon() {
    let (home, daemon) = home_and_daemon();
    let failure = Failure::new("no task is called `fix`")
        .code(FailureCode::TaskNotFound)
        .because("it was removed")
        .hint("agency ls");
    let methods = ["task.diff", "task.merge", "pty.screen", "task.send", "turn.list", "queue.list"];
    for method in methods {
        daemon.refuse(method, failure.clone());
    }
    for arguments in [
        &["diff", "fix", "--json"][..],
        &["merge", "fix", "--json"],
        &["screen", "fix", "--json"],
        &["send", "fix", "hello", "--json"],
        &["turns", "fix", "--json"],
        &["queue", "fix", "--json"],
    ] {
        let document = failure_document(&home, arguments, 1);
        let wanted = json!({
            "code": "task_not_found", "message": "no task is called `fix`", "causes": ["it was removed"],
            "hint": "agency ls",
        });
        assert_eq!(document["error"], wanted, "{arguments:?}");
    }
}

#[test]
fn with_json_failures_of_the_program_itself_have_codes() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("config.show", json!({ "files": {}, "settings": [], "warnings": [] }));
    for (arguments, code) in [
        (&["config", "get", "opener", "--json"][..], "config_not_set"),
        (&["undo", "--turn", "fix", "two", "--json"], "invalid_argument"),
        (&["agents", "--json"], "version_mismatch"),
    ] {
        let document = failure_document(&home, arguments, 1);
        assert_eq!(document["error"]["code"], code, "{arguments:?}");
    }
    daemon.crash();
    for arguments in [&["ls", "--json"][..], &["daemon", "status", "--json"]] {
        let document = failure_document(&home, arguments, 1);
        assert_eq!(document["error"]["code"], "no_daemon", "{arguments:?}");
    }
}

#[test]
fn with_json_wrong_usage_is_a_document_and_exits_with_2() {
    let home = Home::new();
    for arguments in [
        &["ls", "--json", "--wide"][..],
        &["screen", "--json"],
        &["merge", "fix", "--squash", "--rebase", "--json"],
        &["gc", "--json", "--older-than", "soon", "--trash"],
        &["lss", "--json"],
        &["idle", "fix", "--json"],
    ] {
        let document = failure_document(&home, arguments, 2);
        assert_eq!(document["error"]["code"], "invalid_argument", "{arguments:?}");
    }
    let output = home.run(&["attach", "--", "--json", "x"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "words after `--` are no options");
}

#[test]
fn with_json_a_stream_ends_with_its_failure() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("event.subscribe", json!({}));
    let mut events = home.agency(&["events", "--json"]);
    let events = events.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    daemon.called("event.subscribe");
    daemon.crash();
    let output = events.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(document["error"]["code"], "daemon_lost");
}

#[test]
fn a_mistyped_command_gets_a_suggestion() {
    let output = Home::new().run(&["atttach", "x"]);
    output.is(
        2,
        "",
        "Error: there is no command `agency atttach`\nHint: did you mean `attach`? `agency help --all` lists all commands\n",
    );
}

#[test]
fn a_name_that_only_shares_letters_is_not_suggested() {
    Home::new().run(&["frobnicate"]).is(
        2,
        "",
        "Error: there is no command `agency frobnicate`\nHint: `agency help --all` lists all commands\n",
    );
}

#[test]
fn a_wrong_option_is_refused_even_by_a_command_that_does_not_use_it() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("task.list", listing(json!([task("running")]), json!([])));
    home.run(&["--config", "a", "ls"]).is(
        1,
        "",
        "Error: the configuration cannot be used\nCaused by: --config: `a` is not KEY=VALUE\n\
         Hint: write it as in --config max_agents=3\n",
    );
    let output = home.run(&["--config", "max_agent=3", "ls", "--json"]);
    assert_eq!(output.code, Some(1));
    let document: Value = serde_json::from_str(&output.stdout).expect("one document");
    assert_eq!(document["error"]["code"], "invalid_config");
}

#[test]
fn an_mcp_client_that_leaves_at_once_is_named() {
    let output = Home::new().run_with_input(&["mcp"], "");
    let expected = "Error: the MCP client closed standard input before it sent `initialize`\n";
    assert!(output.code == Some(1) && output.stderr.starts_with(expected), "{}", output.stderr);
}

#[test]
fn a_daemon_of_another_version_is_reported_with_a_hint() {
    let (home, daemon) = home_and_daemon();
    home.run(&["agents"]).is(
        1,
        "",
        "\
Error: the daemon and this program disagree about agent.list
Caused by: the test has no answer to agent.list
Hint: they may have different versions: `agency daemon restart` starts the new one, and agents keep running
",
    );
    daemon.answer("task.list", json!({ "work": "of another age" }));
    home.run(&["ls", "--all"]).is(
        1,
        "",
        "\
Error: the daemon and this program disagree about task.list
Caused by: missing field `tasks` at line 1 column 58
Hint: they may have different versions: `agency daemon restart` starts the new one, and agents keep running
",
    );
}

#[test]
fn new_sends_everything_and_prints_one_line_without_a_terminal() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("task.new", json!({ "task": task("running"), "notes": ["agent: Shell (sh)"] }));
    let arguments = [
        "new",
        "fix-login",
        "-m",
        "make it work",
        "--agent",
        "shell",
        "--label",
        "a",
        "--label",
        "b",
        "--vcs",
        "none",
    ];
    home.run(&arguments).is(0, "1 fix-login running\n", "agent: Shell (sh)\n");
    let params = daemon.called("task.new");
    assert_eq!((&params["slug"], &params["body"]), (&json!("fix-login"), &json!("make it work")));
    assert_eq!((&params["labels"], &params["vcs"]), (&json!(["a", "b"]), &json!("none")));
    assert_eq!((&params["command"], &params["draft"]), (&Value::Null, &json!(false)));
    let environment = params["caller"]["env"].as_array().unwrap();
    assert!(environment.contains(&json!(["TERM", "xterm-256color"])));
    assert!(params["caller"]["open_files"][0].as_u64().unwrap() > 0);
}

#[test]
fn new_takes_any_command_with_arguments_that_look_like_ours() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("task.new", json!({ "task": task("running"), "notes": [] }));
    home.run(&["new", "build", "--", "make", "-m", "--draft"]).is(0, "1 fix-login running\n", "");
    let params = daemon.called("task.new");
    assert_eq!(params["command"], json!(["make", "-m", "--draft"]));
    assert_eq!((&params["body"], &params["draft"]), (&json!(""), &json!(false)));
}

#[test]
fn new_reads_the_text_from_standard_input() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("task.new", json!({ "task": task("draft"), "notes": [] }));
    home.run_with_input(&["new", "x", "--draft"], "# Login\n\nmake it work\n").is(
        0,
        "1 fix-login draft\n",
        "",
    );
    assert_eq!(daemon.called("task.new")["body"], "# Login\n\nmake it work");
    assert_eq!(home.drafts(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_text_from_standard_input_is_saved_if_the_task_cannot_be_created() {
    let (home, daemon) = home_and_daemon();
    daemon.refuse("task.new", Failure::new("this is not a repository").hint("pass --vcs none"));
    let output = home.run_with_input(&["new", "fix login"], "long text\n");
    let drafts = home.drafts();
    let [draft] = drafts.as_slice() else { panic!("{drafts:?}") };
    output.is(
        1,
        "",
        &format!(
            "Error: this is not a repository\nHint: pass --vcs none\n      \
             your text is saved: agency new 'fix login' < {}\n",
            draft.display()
        ),
    );
    assert_eq!(std::fs::read_to_string(draft).unwrap(), "long text");
    assert_eq!(std::fs::metadata(draft).unwrap().permissions().mode() & 0o777, 0o600);
}

/// An editor that appends `text` and exits with `code`.
fn editor(home: &Home, text: &str, code: i32) -> String {
    let script = home.path().join("editor");
    std::fs::write(
        &script,
        format!("#!/bin/sh\ncat \"$2\" > seen\nprintf '{text}' >> \"$2\"\nexit {code}\n"),
    )
    .unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{} --wait", script.display())
}

#[test]
fn new_on_a_terminal_opens_the_editor() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("task.new", json!({ "task": task("draft"), "notes": [] }));
    let mut command = home.agency(&["new", "x", "--draft"]);
    command.env("EDITOR", editor(&home, "make it work\\n", 0));
    let mut terminal = Pty::spawn(command);
    assert_eq!(terminal.end().code(), Some(0));
    terminal.wait_for("1 fix-login draft");
    assert_eq!(daemon.called("task.new")["body"], "make it work");
    assert!(
        std::fs::read_to_string(home.path().join("seen")).unwrap().starts_with("<!-- agency: what should")
    );
    assert_eq!(home.drafts(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_failing_editor_creates_no_task_and_loses_no_text() {
    let (home, _daemon) = home_and_daemon();
    let mut command = home.agency(&["new", "x"]);
    command.env("VISUAL", editor(&home, "half a thought", 1)).env("EDITOR", "false");
    let mut terminal = Pty::spawn(command);
    assert_eq!(terminal.end().code(), Some(1));
    terminal.wait_for("the editor failed, so no task was created");
    terminal.wait_for("your text is saved: agency new x < ");
    let drafts = home.drafts();
    assert_eq!(std::fs::read_to_string(&drafts[0]).unwrap(), "half a thought");

    let mut command = home.agency(&["new", "x"]);
    command.env("EDITOR", "false");
    let mut terminal = Pty::spawn(command);
    assert_eq!(terminal.end().code(), Some(1));
    assert_eq!(home.drafts(), drafts, "an empty text needs no file");
}

#[test]
fn send_joins_words_and_prints_the_receipt() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("task.send", json!({ "receipt": "typed", "bytes": 11 }));
    home.run(&["send", "fix", "cargo", "test"]).is(0, "typed 11 bytes\n", "");
    let params = daemon.called("task.send");
    assert_eq!((&params["text"], &params["enter"]), (&json!("cargo test"), &json!(true)));
    home.run_with_input(&["send", "fix", "-"], "a\nb\n");
    assert_eq!(daemon.called("task.send")["text"], "a\nb");
    home.run_with_input(&["send", "fix", "-", "--no-enter"], "a\nb\n");
    let params = daemon.called("task.send");
    assert_eq!((&params["text"], &params["enter"]), (&json!("a\nb\n"), &json!(false)));
}

#[test]
fn stop_names_processes_that_it_stopped_outside_the_group() {
    let (home, daemon) = home_and_daemon();
    let ended = json!([
        { "pid": 12, "name": "node", "killed": false },
        { "pid": 13, "name": "stubborn", "killed": true },
    ]);
    daemon.answer("task.stop", json!({ "task": task("stopped"), "code": "-15", "ended": ended }));
    home.run(&["stop", "fix"]).is(
        0,
        "1 fix-login stopped\n",
        "also ended: node (pid 12)\nalso killed: stubborn (pid 13)\n",
    );
}

#[test]
fn rm_prints_how_to_undo_it() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("task.remove", json!({ "id": 1, "slug": "fix-login", "trash": "1-fix-login-7" }));
    home.run(&["rm", "--discard", "fix"]).is(0, "1 fix-login removed\n", "undo: agency undo 1-fix-login-7\n");
    assert_eq!(daemon.called("task.remove")["discard"], true);
}

fn plan(home: &Home, argv: Value) -> Value {
    json!({ "task": task("running"), "cwd": home.path(), "argv": argv, "env": [["AGENCY_SLUG", "fix-login"]] })
}

#[test]
fn exec_and_run_become_the_command_in_the_workspace() {
    let (home, daemon) = home_and_daemon();
    std::fs::create_dir(home.path().join("w")).unwrap();
    let mut answer = plan(&home, json!([]));
    answer["cwd"] = json!(home.path().join("w"));
    daemon.answer("task.plan", answer.clone());
    let inside = format!("{}/w fix-login\n", home.path().display());
    home.run(&["exec", "fix", "--", "sh", "-c", "echo $PWD $AGENCY_SLUG; exit 7"]).is(7, &inside, "");
    home.run(&["path", "fix"]).is(0, &format!("{}/w\n", home.path().display()), "");
    answer["argv"] = json!(["sh", "-c", "echo asked; exit 3"]);
    daemon.answer("task.plan", answer);
    home.run(&["run", "fix", "what", "now?"]).is(3, "asked\n", "");
    let asked =
        std::iter::from_fn(|| Some(daemon.called("task.plan"))).find(|params| !params["message"].is_null());
    assert_eq!(asked.unwrap()["message"], "what now?");
}

#[test]
fn a_missing_workspace_is_not_mistaken_for_a_missing_program() {
    let (home, daemon) = home_and_daemon();
    let mut answer = plan(&home, json!([]));
    answer["cwd"] = json!("/nowhere");
    daemon.answer("task.plan", answer);
    home.run(&["exec", "fix", "ls"]).is(
        1,
        "",
        "Error: the workspace of 1-fix-login does not exist\nCaused by: /nowhere is not a directory\n\
         Hint: `agency start fix-login` creates it again\n",
    );
    daemon.answer("task.plan", plan(&home, json!([])));
    let output = home.run(&["exec", "fix", "no-such-program"]);
    assert!(
        output.stderr.starts_with("Error: cannot run no-such-program\nCaused by: No such file"),
        "{}",
        output.stderr
    );
}

#[test]
fn logs_are_copied_to_the_end() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("log.read", json!({ "stream": "l", "task": task("running") }));
    let child = home.agency(&["logs", "fix", "--raw"]).stdout(Stdio::piped()).spawn().unwrap();
    let stream = daemon.stream();
    stream.send(b"one \x1b[1m");
    stream.send(b"two\n");
    stream.close();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(0), b"one \x1b[1mtwo\n".to_vec()));
    let params = daemon.called("log.read");
    assert_eq!((&params["form"], &params["follow"]), (&json!("raw"), &json!(false)));
}

#[test]
fn an_incomplete_log_is_a_failure() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("log.read", json!({ "stream": "l", "task": task("running") }));
    let mut command = home.agency(&["logs", "fix", "-f"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stream = daemon.stream();
    stream.send(b"one\n");
    stream.notice(&ViewerNotice::DaemonLeaves);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(1), b"one\n".to_vec()));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("Error: the log is incomplete\n"));
}

#[test]
fn a_closed_pipe_ends_the_log_without_a_failure() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("log.read", json!({ "stream": "l", "task": task("running") }));
    let mut command = home.agency(&["logs", "fix"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stream = daemon.stream();
    stream.send(b"first line\n");
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 11]).unwrap();
    drop(stdout);
    // A process that another test starts at this moment may hold our end of the pipe a little longer.
    while child.try_wait().unwrap().is_none() && stream.try_send(b"more\n") {
        std::thread::yield_now();
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn events_that_end_with_the_daemon_end_with_a_failure() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("event.subscribe", json!({}));
    let child = home.agency(&["events"]).stderr(Stdio::piped()).spawn().unwrap();
    daemon.called("event.subscribe");
    daemon.crash();
    let output = cli_support::CommandOutput::from(child.wait_with_output().unwrap());
    assert_eq!(output.code, Some(1));
    assert!(
        output.stderr.starts_with("Error: the daemon ended, so no more events follow\n"),
        "{}",
        output.stderr
    );
}

#[test]
fn orphans_are_listed_with_commands_to_return_and_stop_them() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("orphan.list", json!({ "orphans": [orphan()] }));
    home.run(&["orphans"]).is(
        0,
        "\
RUN         KIND    TASK    AGENT  PID   PROJECT
k3v9x0a2bc  keeper  7-lost  shell  4711  /project

Return it to its task: agency orphans attach k3v9x0a2bc
Stop it:               agency orphans kill k3v9x0a2bc
",
        "",
    );
    daemon.answer("orphan.kill", json!({ "task": null, "code": "-15", "ended": [] }));
    home.run(&["orphans", "kill", "k3v9x0a2bc"]).is(0, "k3v9x0a2bc stopped\n", "");
    home.run(&["orphans", "stop", "k3v9x0a2bc"]).is(0, "k3v9x0a2bc stopped\n", "");
    daemon.answer("orphan.list", json!({ "orphans": [] }));
    home.run(&["orphans"]).is(0, "No orphans: every agent belongs to a task.\n", "");
}

fn trust(trusted: bool) -> Value {
    json!({
        "file": "/project/.agency/config.toml", "content": "…", "digest": "d1",
        "commands": ["agents.x.start: evil \u{1b}[2K --all"], "trusted": trusted,
    })
}

const WOULD_RUN: &str =
    "the configuration and tasks of /project would run:\n  agents.x.start: evil \\u{1b}[2K --all\n";

#[test]
fn trust_shows_what_would_run_and_needs_a_yes() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("trust.show", trust(false)).answer("trust.agree", trust(true));
    home.run(&["trust"]).is(
        1,
        WOULD_RUN,
        "Error: cannot ask without a terminal\n\
         Hint: read the commands above; `agency trust --yes` trusts them\n",
    );
    home.run(&["trust", "--yes"]).is(0, &format!("{WOULD_RUN}trusted: /project\n"), "");
    let params = daemon.called("trust.agree");
    assert_eq!((&params["digest"], &params["revoke"]), (&json!("d1"), &json!(false)));
    home.run(&["trust", "--revoke"]).is(0, "no longer trusted: /project\n", "");
    assert_eq!(daemon.called("trust.agree")["revoke"], true);
}

#[test]
fn commands_in_task_files_are_shown_without_a_configuration_too() {
    let (home, daemon) = home_and_daemon();
    let mut brought = trust(false);
    brought["content"] = Value::Null;
    brought["commands"] = json!(["task 1 runs [\"evil\"]"]);
    daemon.answer("trust.show", brought).answer("trust.agree", trust(true));
    home.run(&["trust", "--yes"]).is(
        0,
        "the configuration and tasks of /project would run:\n  task 1 runs [\"evil\"]\ntrusted: /project\n",
        "",
    );
}

#[test]
fn trust_asks_on_a_terminal_and_takes_an_empty_answer_as_no() {
    let (home, daemon) = home_and_daemon();
    daemon.answer("trust.show", trust(false)).answer("trust.agree", trust(true));
    for (answer, code) in [("\r", 1), ("n\r", 1), ("y\r", 0)] {
        let mut terminal = Pty::spawn(home.agency(&["trust"]));
        terminal.wait_for("Trust exactly this content? [y/N]");
        terminal.type_in(answer);
        assert_eq!(terminal.end().code(), Some(code), "{answer:?}");
    }
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let (home, daemon) = home_and_daemon();
    daemon.refuse("task.stop", Failure::new("no task x"));
    let mut terminal = Pty::spawn(home.agency(&["stop", "x"]));
    terminal.wait_for("\x1b[1;31mError:\x1b[0m no task x");
    terminal.end();
    let mut command = home.agency(&["stop", "x"]);
    command.env("NO_COLOR", "1");
    let mut terminal = Pty::spawn(command);
    terminal.end();
    assert!(terminal.wait_for("no task x").starts_with("Error: no task x"));
}

#[test]
fn status_and_stop_start_no_daemon() {
    let home = Home::new();
    home.run(&["daemon", "status"]).is(
        1,
        "",
        "Error: no daemon is running\nHint: the next command starts one: agency ls\n",
    );
    home.run(&["daemon", "stop"]).is(0, "no daemon was running\n", "");
}

#[test]
fn without_a_home_there_is_a_clear_error() {
    let home = Home::new();
    let mut command = home.agency(&["ls"]);
    let output = command.env_remove("HOME").env_remove("XDG_STATE_HOME").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("neither XDG_STATE_HOME nor HOME is set\nHint: set HOME"), "{stderr}");
}
