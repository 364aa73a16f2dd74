//! `--json` prints documents that match the schemas in `docs/schema`; and `--quiet`, colours and widths of text output.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use agency_testkit::{Pause, Pty};
use serde_json::Value;

use crate::stage::{SOON, Stage};

pub struct Schema {
    root: Value,
}

impl Schema {
    pub fn of(name: &str) -> Schema {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/schema/{name}.json"));
        let text = fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
        Schema { root: serde_json::from_str(&text).expect("a schema is JSON") }
    }

    #[track_caller]
    pub fn check(&self, document: &Value) {
        if let Err(problem) = self.holds(&self.root, document, "") {
            panic!("{problem} in {document}");
        }
    }

    /// Knows every keyword that our schemas use, and no other.
    fn holds(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let Some(keywords) = schema.as_object() else { return Ok(()) };
        for (keyword, argument) in keywords {
            match keyword.as_str() {
                "$schema" | "$defs" | "title" | "description" | "format" | "default" => {}
                "$ref" => self.holds(self.definition(argument), value, at)?,
                "type" if !is_of(argument, value) => return Err(format!("{at} is no {argument}")),
                "type" => {}
                "const" if argument != value => return Err(format!("{at} is not {argument}")),
                "enum" if !argument.as_array().is_some_and(|known| known.contains(value)) => {
                    return Err(format!("{at} is none of {argument}"));
                }
                "const" | "enum" => {}
                "minimum" if value.as_f64() < argument.as_f64() && value.is_number() => {
                    return Err(format!("{at} is less than {argument}"));
                }
                "maximum" if value.as_f64() > argument.as_f64() && value.is_number() => {
                    return Err(format!("{at} is more than {argument}"));
                }
                "minimum" | "maximum" => {}
                "required" => self.check_all(argument, value, at)?,
                "properties" => {
                    for (name, schema) in argument.as_object().into_iter().flatten() {
                        value
                            .get(name)
                            .map_or(Ok(()), |value| self.holds(schema, value, &format!("{at}.{name}")))?;
                    }
                }
                "items" => {
                    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.holds(argument, item, &format!("{at}[{number}]"))?;
                    }
                }
                "anyOf" | "oneOf" => {
                    let fits = |schema: &Value| self.holds(schema, value, at).is_ok();
                    if !argument.as_array().into_iter().flatten().any(fits) {
                        return Err(format!("{at} fits none of {argument}"));
                    }
                }
                other => panic!("the keyword {other} is not known here"),
            }
        }
        Ok(())
    }

    fn definition(&self, path: &Value) -> &Value {
        let name = path.as_str().and_then(|path| path.strip_prefix("#/$defs/")).expect("a definition");
        &self.root["$defs"][name]
    }

    fn check_all(&self, names: &Value, value: &Value, at: &str) -> Result<(), String> {
        let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
        match names.filter(|_| value.is_object()).find(|name| value.get(name).is_none()) {
            Some(missing) => Err(format!("{at} has no {missing}")),
            None => Ok(()),
        }
    }
}

fn is_of(kinds: &Value, value: &Value) -> bool {
    let is = |kind: &str| match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no such type: {other}"),
    };
    match kinds {
        Value::String(kind) => is(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(is),
        other => panic!("no such type: {other}"),
    }
}

#[test]
fn documents_match_their_schemas() {
    let stage = Stage::new();
    stage.play("one", "say hello; ask q");
    stage.wait_printed("one", "hello");
    stage.wait_task("one", "waits", |task| task["state"]["state"] == "needs_input");
    stage.run(["new", "two", "--draft", "-m", "x", "--label", "later"]).ok();
    for (schema, args) in [
        ("ls", &["ls", "--json"][..]),
        ("ls", &["ls", "--all", "--json"]),
        ("agents", &["agents", "--json"]),
        ("doctor", &["doctor", "--json"]),
        ("daemon-status", &["daemon", "status", "--json"]),
        ("orphans", &["orphans", "--json"]),
        ("screen", &["screen", "one", "--json"]),
        ("explain", &["explain", "one", "--json"]),
        ("explain-wrong", &["explain", "one", "--wrong", "waiting", "--json"]),
        ("explain", &["explain", "one", "--json"]),
        ("explain-forget", &["explain", "one", "--forget", "--json"]),
        ("config-show", &["config", "--json"]),
        ("config-get", &["config", "get", "max_agents", "--json"]),
        ("trust", &["trust", "--json"]),
        ("trust-list", &["trust", "--list", "--json"]),
        ("uninstall", &["uninstall", "--dry-run", "--json"]),
    ] {
        let document = stage.run(args).json();
        assert_eq!(document["schema_version"], 1, "{args:?}");
        Schema::of(schema).check(&document);
    }
}

#[test]
fn every_event_matches_its_schema() {
    let stage = Stage::new();
    stage.run(["new", "one", "--draft", "-m", "x"]).ok();
    let path = stage.home().join("events");
    let mut events = stage.agency(["events", "--json"]);
    events.stdin(Stdio::null()).stdout(fs::File::create(&path).expect("room")).stderr(Stdio::null());
    let mut listening = events.spawn().expect("agency can be run");
    let heard = || fs::read_to_string(&path).expect("it is there");
    stage.eventually("an event", SOON, || {
        stage.run(["start", "one"]).ok();
        stage.run(["stop", "one"]).ok();
        heard().ends_with('\n').then_some(())
    });
    stage.kill_daemon();
    listening.wait().expect("our own child");
    let lines: Vec<Value> = heard().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let (failure, events) = lines.split_last().expect("lines");
    Schema::of("failure").check(failure);
    assert_eq!(failure["error"]["code"], "daemon_lost");
    events.iter().for_each(|event| Schema::of("events").check(event));
}

#[test]
fn a_document_that_lacks_a_key_would_be_noticed() {
    let schema = Schema::of("ls");
    let good = serde_json::json!({ "schema_version": 1, "tasks": [], "orphans": [], "warnings": [], "marks": "auto" });
    schema.check(&good);
    for bad in [
        serde_json::json!({ "schema_version": 2, "tasks": [], "orphans": [], "warnings": [], "marks": "auto" }),
        serde_json::json!({ "schema_version": 1, "orphans": [], "warnings": [], "marks": "auto" }),
        serde_json::json!({ "schema_version": 1, "tasks": [{ "id": "one" }], "orphans": [], "warnings": [], "marks": "auto" }),
    ] {
        assert!(schema.holds(&schema.root, &bad, "").is_err(), "{bad}");
    }
}

#[test]
fn quiet_prints_only_the_answer_and_errors() {
    let stage = Stage::new();
    stage.write_config("max_agent = 3\n");
    let loud = stage.run(["new", "one", "--draft", "-m", "x"]);
    assert!(loud.stderr.contains("max_agent"), "{loud}");
    for args in
        [["-q", "new", "two", "--draft", "-m", "x"], ["new", "three", "--draft", "-m", "x", "--quiet"]]
    {
        let quiet = stage.run(args);
        assert_eq!(quiet.stderr, "", "{quiet}");
        assert!(quiet.ok().ends_with(" draft\n"));
    }
    let refusal = stage.refused(&["-q", "stop", "nope"]);
    assert!(refusal.starts_with("Error: no task is called `nope`\n"), "{refusal}");
}

/// All output of a command to a terminal of this width.
fn output_on_terminal(stage: &Stage, cols: u16, line: &str) -> String {
    let mut terminal = Pty::spawn(stage.shell(line), cols, 24);
    terminal.wait_exit();
    String::from_utf8_lossy(terminal.output()).into_owned()
}

#[test]
fn colours_are_only_for_terminals_unless_requested() {
    let stage = Stage::new();
    stage.run(["new", "one", "--draft", "-m", "x"]).ok();
    assert!(output_on_terminal(&stage, 80, "agency ls").contains("\x1b[2mID\x1b[0m"));
    assert!(output_on_terminal(&stage, 80, "agency stop nope").contains("\x1b[1;31mError:\x1b[0m"));
    assert!(!output_on_terminal(&stage, 80, "NO_COLOR=1 agency ls").contains('\x1b'));
    assert!(!output_on_terminal(&stage, 80, "NO_COLOR=1 agency stop nope").contains('\x1b'));
    assert!(!stage.run(["ls"]).ok().contains('\x1b'), "never on a pipe");
}

#[test]
fn tables_fit_narrow_terminals() {
    let stage = Stage::new();
    stage.run(["new", "a-task-with-quite-a-long-name-indeed-for-a-terminal", "--draft", "-m", "x"]).ok();
    let table = output_on_terminal(&stage, 60, "NO_COLOR=1 agency ls --all");
    let widths: Vec<usize> = table.lines().map(|line| line.trim_end().chars().count()).collect();
    assert!(widths.iter().all(|width| *width <= 60) && table.contains('…'), "{table}");
}

#[test]
fn progress_is_shown_on_terminals_and_erased() {
    let stage = Stage::new();
    let pause = Pause::at(stage.home().join("pause"));
    let hook = stage.repo().join(".git/hooks/post-checkout");
    let script = format!("#!/bin/sh\nread line <'{}'\nexit 0\n", pause.path().display());
    fs::create_dir_all(hook.parent().expect("a directory")).expect("room");
    stage.write_program(&hook, script.as_bytes());
    let line = "agency new one --no-attach -- fake-agent -c 'ask q' | cat";
    let mut terminal = Pty::spawn(stage.shell(line), 80, 24);
    terminal.wait_for("creating the workspace …");
    pause.release();
    assert!(terminal.wait_exit().success());
    let seen = String::from_utf8_lossy(terminal.output()).into_owned();
    assert!(seen.ends_with("\r\x1b[K1 one running\r\n"), "{seen:?}");
}
