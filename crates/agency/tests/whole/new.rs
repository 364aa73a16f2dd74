//! `agency new`: from one command to an agent in its own worktree.

use agency_testkit::{CommandOutput, Pty};

use crate::stage::Stage;

/// Prints its arguments, then waits for input.
const PARROT: &str = r#"
    [agents.parrot]
    start = ["fake-agent", "-c", "args; say that was all; ask more?", "-p", "$AGENCY_PROMPT"]
"#;

#[test]
fn a_new_task_has_a_worktree_a_branch_a_file_and_an_agent() {
    let stage = Stage::new();
    let args = ["new", "fix-login", "-m", "make the login work", "--label", "bug", "--label", "ui"];
    let command = ["--", "fake-agent", "-c", "cwd; ask more?"];
    assert_eq!(stage.run(args.iter().chain(&command)).ok(), "1 fix-login running\n");

    let worktree = stage.worktree("1-fix-login");
    assert!(worktree.join("README.md").is_file());
    assert_eq!(stage.git(&worktree, &["branch", "--show-current"]), "agency/1-fix-login\n");
    assert_eq!(stage.git(&stage.repo(), &["status", "--porcelain"]), "", "ours is kept out of git");
    stage.wait_printed("fix-login", &worktree.display().to_string());

    let file = stage.task_file("1-fix-login");
    let (head, body) =
        file.strip_prefix("---\n").and_then(|rest| rest.split_once("---\n")).expect("front matter");
    assert_eq!(body, "make the login work");
    let created_at = stage.task("fix-login")["created_at"].as_str().expect("a time").to_owned();
    let expected = format!(
        "base_branch: main\nstatus: running\nlabels: [\"bug\", \"ui\"]\ncreated_at: \"{created_at}\"\nagent: shell\n\
         driver: terminal\ncommand: [\"fake-agent\", \"-c\", \"cwd; ask more?\"]\n"
    );
    assert_eq!(head, expected);
}

#[test]
fn the_first_command_with_nothing_configured_gives_a_shell() {
    let stage = Stage::new();
    std::fs::remove_file(stage.config()).expect("it was there");
    let mut new = stage.agency(["new", "fix-login", "-m", "make the login work"]);
    new.env("PATH", stage.bare_path());
    let ran = CommandOutput::of(new, b"");
    assert!(ran.stderr.contains("agent: Shell"), "which agent was chosen is said: {ran}");
    assert_eq!(ran.ok(), "1 fix-login running\n");
    let task = stage.task("fix-login");
    assert_eq!(task["agent_name"], "Shell");
    stage.run(["send", "fix-login", "echo \"<$AGENCY_PROMPT>\""]).ok();
    // A task text is not a command: Agency passes it to the shell in a variable and does not type it.
    assert!(!stage.wait_printed("fix-login", "<make the login work>").contains("not found"));
}

#[test]
fn on_a_terminal_new_attaches_and_ctrl_q_leaves() {
    let stage = Stage::new();
    let mut terminal =
        stage.on_terminal(["new", "one", "-m", "x", "--", "fake-agent", "-c", "size; ask ready?"]);
    terminal
        .wait_for("[created branch agency/1-one, worktree .agency/worktrees/1-one, agent fake-agent]\r\n");
    terminal.wait_for("24 80");
    terminal.wait_for("ready?");
    terminal.send("\x11");
    assert!(terminal.wait_exit().success(), "{terminal}");
    assert_eq!(stage.status("one"), "running");
    assert!(stage.agent("one").is_alive());
}

#[test]
fn on_a_terminal_no_attach_prints_a_line_and_returns() {
    let stage = Stage::new();
    let mut terminal =
        stage.on_terminal(["new", "one", "--no-attach", "-m", "x", "--", "fake-agent", "-c", "ask q"]);
    assert!(terminal.wait_exit().success(), "{terminal}");
    terminal.wait_for("1 one running");
}

#[test]
fn without_a_message_the_text_is_read_from_standard_input() {
    let stage = Stage::with_config(PARROT);
    let new = stage.agency(["new", "one", "--agent", "parrot"]);
    CommandOutput::of(new, b"first line\n\nsecond line\n").ok();
    let printed = stage.wait_printed("one", "that was all");
    assert!(printed.starts_with("arg 1: -p\narg 2: first line\n\nsecond line\nthat was all\n"), "{printed}");
    assert!(stage.task_file("1-one").ends_with("---\nfirst line\n\nsecond line"));
}

#[test]
fn without_a_message_a_terminal_gets_the_editor() {
    let stage = Stage::with_config(PARROT);
    stage.editor_types("from the editor\n");
    let mut terminal = stage.on_terminal(["new", "one", "--agent", "parrot"]);
    terminal.wait_for("arg 2: from the editor");
    terminal.wait_for("more?");
    assert!(stage.task_file("1-one").ends_with("---\nfrom the editor"));
}

#[test]
fn a_failing_editor_makes_no_task() {
    let stage = Stage::new();
    let mut new = stage.agency(["new", "one"]);
    new.env("EDITOR", "false");
    let mut terminal = Pty::spawn(new, 80, 24);
    assert_eq!(terminal.wait_exit().code(), Some(1), "{terminal}");
    terminal.wait_for("Error:");
    assert_eq!(stage.traces(), [""; 0]);
}

#[test]
fn an_empty_body_sends_no_prompt_at_all() {
    let stage = Stage::with_config(PARROT);
    stage.run(["new", "one", "--agent", "parrot", "-m", ""]).ok();
    let printed = stage.wait_printed("one", "more?");
    assert_eq!(printed, "that was all\nmore?\n", "neither the text nor its option");
}

#[test]
fn a_draft_has_only_a_file_until_it_is_started() {
    let stage = Stage::new();
    let printed =
        stage.run(["new", "later", "--draft", "-m", "an idea", "--", "fake-agent", "-c", "ask q"]).ok();
    assert_eq!(printed, "1 later draft\n");
    assert_eq!(stage.traces(), ["1-later.md", "1-later.md"], "the file and its mirror, nothing else");
    assert!(stage.refused(&["attach", "later"]).contains("terminal"));

    assert_eq!(stage.run(["start", "later"]).ok(), "1 later running\n");
    assert!(stage.worktree("1-later").join("README.md").is_file());
    stage.wait_printed("later", "q");
    assert!(stage.task_file("1-later").contains("status: running\n"));
}

#[test]
fn a_draft_on_a_terminal_is_not_attached() {
    let stage = Stage::new();
    let mut terminal = stage.on_terminal(["new", "later", "--draft", "-m", "an idea"]);
    assert!(terminal.wait_exit().success(), "{terminal}");
    terminal.wait_for("[created task .agency/tasks/1-later.md]\r\n1 later draft");
}

#[test]
fn a_task_in_the_directory_itself_says_so() {
    let stage = Stage::new();
    let mut terminal =
        stage.on_terminal(["new", "one", "--vcs", "none", "--no-attach", "--", "fake-agent", "-c", "ask q"]);
    assert!(terminal.wait_exit().success(), "{terminal}");
    terminal.wait_for("[created task .agency/tasks/1-one.md, agent fake-agent in .]\r\n1 one running");
}

#[test]
fn ids_increase_and_are_never_reused() {
    let stage = Stage::new();
    for slug in ["one", "two"] {
        stage.run(["new", slug, "--draft", "-m", "x"]).ok();
    }
    stage.run(["rm", "two"]).ok();
    assert_eq!(stage.run(["new", "three", "--draft", "-m", "x"]).ok(), "3 three draft\n");
    stage.kill_daemon();
    assert_eq!(stage.run(["new", "four", "--draft", "-m", "x"]).ok(), "4 four draft\n");
}

#[test]
fn eight_at_once_are_eight_tasks() {
    let stage = Stage::new();
    let slugs: Vec<String> = (1..=8).map(|number| format!("task-{number}")).collect();
    std::thread::scope(|scope| {
        for slug in &slugs {
            scope.spawn(|| stage.run(["new", slug, "--", "fake-agent", "-c", "ask q"]).ok());
        }
    });
    let mut ids: Vec<u64> =
        slugs.iter().map(|slug| stage.task(slug)["id"].as_u64().expect("an id")).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(stage.keepers().len(), 8);
}

#[test]
fn a_repeated_name_is_reported_and_needs_an_id() {
    let stage = Stage::new();
    let args = ["new", "one", "--draft", "-m", "x"];
    assert!(!stage.run(args).stderr.contains("too"));
    let again = stage.run(args);
    assert_eq!((again.code, again.stdout.as_str()), (0, "2 one draft\n"), "{again}");
    assert!(again.stderr.contains("task 1 is called one too: name this one 2 or 2-one"), "{again}");
    for command in
        [&["path", "one"][..], &["diff", "one"], &["merge", "one"], &["rm", "one"], &["open", "one"]]
    {
        let refusal = stage.refused(command);
        assert!(refusal.contains("`one` could be one of 2 tasks"), "{refusal}");
        assert!(refusal.ends_with("Hint: name one of them:\n      1-one\n      2-one\n"), "{refusal}");
    }
    stage.run(["rm", "2-one"]).ok();
}

#[test]
fn the_base_is_the_branch_of_the_checkout_in_which_the_user_stands() {
    let stage = Stage::new();
    let side = stage.home().join("side");
    stage.git(&stage.repo(), &["worktree", "add", "--quiet", "-b", "side", side.to_str().expect("text")]);
    let made_in = |dir: &std::path::Path, slug: &str| {
        let mut new = stage.agency(["new", slug, "--draft"]);
        new.current_dir(dir);
        CommandOutput::of(new, b"").ok();
        stage.task(slug)["base_branch"].clone()
    };
    assert_eq!(made_in(&side, "one"), "side");
    std::fs::create_dir(side.join("below")).expect("room");
    assert_eq!(made_in(&side.join("below"), "two"), "side");
    assert_eq!(made_in(&stage.repo(), "three"), "main");
    // Agents make tasks too, in their own workspaces.
    stage.play("four", "ask ready?");
    assert_eq!(made_in(&stage.worktree("4-four"), "five"), "main");
}

/// The slugs and statuses of all tasks, by id.
fn slugs(stage: &Stage) -> Vec<(String, String)> {
    let listing = stage.listing();
    let mut tasks = listing["tasks"].as_array().expect("tasks").clone();
    tasks.sort_by_key(|task| task["id"].as_u64());
    let text = |task: &serde_json::Value, name: &str| task[name].as_str().unwrap_or_default().to_owned();
    tasks.iter().map(|task| (text(task, "slug"), text(task, "status"))).collect()
}

#[test]
fn one_command_starts_several_agents() {
    let stage = Stage::new();
    let script = "say number {{num}} of {{line}}; no-read";
    let made = stage.run(["new", "fix", "-n", "3", "-m", "do {{num}}", "--", "fake-agent", "-c", script]);
    assert!(made.stderr.ends_with("next: agency next\n"), "{made}");
    assert_eq!(made.ok(), "1 fix-1 running\n2 fix-2 running\n3 fix-3 running\n");
    for number in ["1", "2", "3"] {
        stage.wait_printed(&format!("fix-{number}"), &format!("number {number} of"));
        let file = stage.task_file(&format!("{number}-fix-{number}"));
        assert!(file.trim_end().ends_with(&format!("do {number}")), "{file}");
    }
    std::fs::write(stage.repo().join("bugs"), "the login\n\n  the logout \n").expect("room for a file");
    let each = ["new", "bug", "--foreach", "bugs", "--draft"];
    assert_eq!(stage.run(each).ok(), "4 bug-1 draft\n5 bug-2 draft\n");
    assert!(stage.task_file("5-bug-2").trim_end().ends_with("\nthe logout"));
    let named = ["new", "why", "--foreach", "bugs", "--draft", "-m", "why {{line}}?"];
    stage.run(named).ok();
    assert!(stage.task_file("6-why-1").trim_end().ends_with("\nwhy the login?"));
    std::fs::write(stage.repo().join("empty"), "\n").expect("room for a file");
    assert!(stage.refused(&["new", "x", "--foreach", "empty"]).contains("has no line with text"));
    assert!(stage.refused(&["new", "x", "-n", "0", "-m", "x"]).contains("1 to 100 tasks"));
}

#[test]
fn several_tasks_are_made_or_none() {
    let stage = Stage::with_config("max_agents = 2");
    stage.play("first", "no-read");
    let before = stage.traces();
    let refused = stage.refused(&["new", "fix", "-n", "2", "-m", "x", "--", "fake-agent", "-c", "no-read"]);
    assert_eq!(
        refused,
        "Error: 2 agents cannot start: 1 of 2 slots are free\n\
         Hint: stop another task, or raise max_agents in config.toml\n"
    );
    assert!(
        stage
            .refused(&["new", "fix", "-n", "1", "-m", "x", "--", "no-such-program"])
            .contains("no-such-program")
    );
    assert_eq!(stage.traces(), before, "nothing was made");
    // An agent that cannot start leaves its task, with its message.
    stage.run(["new", "last", "-n", "1", "-m", "x", "--", "fake-agent", "-c", "no-read"]).ok();
    assert_eq!(slugs(&stage).last(), Some(&("last-1".to_owned(), "running".to_owned())));
}

#[test]
fn a_task_without_a_name_is_named_after_its_text_or_its_command() {
    let stage = Stage::new();
    assert_eq!(
        stage.run(["new", "--draft", "-m", "Please make the login work"]).ok(),
        "1 make-login-work draft\n"
    );
    assert_eq!(
        stage.run(["new", "--draft", "-m", "make the login work!"]).ok(),
        "2 make-login-work-2 draft\n"
    );
    assert_eq!(stage.run(["new", "--", "fake-agent", "-c", "ask q"]).ok(), "3 fake-agent running\n");
    assert_eq!(stage.run(["new", "fix_login", "--draft", "-m", "x"]).ok(), "4 fix-login draft\n");
    assert!(stage.run(["rm", "fix_login"]).ok().contains("fix-login"));
    let refusal = stage.refused(&["new", "12", "--draft", "-m", "x"]);
    assert!(refusal.contains("it is a number, and numbers are the ids of tasks"), "{refusal}");
    assert!(refusal.contains("try `task-12`"), "{refusal}");
}

#[test]
fn leaving_the_editor_without_a_text_starts_nothing() {
    let stage = Stage::new();
    let mut new = stage.agency(["new", "one"]);
    new.env("EDITOR", "true").env_remove("VISUAL");
    let mut terminal = Pty::spawn(new, 80, 24);
    assert!(!terminal.wait_exit().success());
    terminal.wait_for("you left the editor without a text");
    assert_eq!(stage.listing()["tasks"], serde_json::json!([]));
    let drafts = std::fs::read_dir(stage.state().join("drafts")).map(|entries| entries.count());
    assert_eq!(drafts.unwrap_or(0), 0, "no draft stays behind");
}

#[test]
fn the_program_of_an_agent_names_the_agent() {
    let stage = Stage::new();
    let new = |agent: &str| stage.run(["new", "--draft", "-m", "x", "--agent", agent]);
    new("claude").ok();
    assert_eq!(stage.task("x")["agent"], "claude-code");
    let refusal = stage.refused(&["new", "y", "--draft", "-m", "x", "--agent", "clade"]);
    assert!(refusal.contains("no agent is called `clade`"), "{refusal}");
}
