//! `agency config`: showing and changing the configuration.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use agency_testkit::CommandOutput;
use serde_json::{Value, json};

use crate::stage::{Stage, refused};

fn user_file(stage: &Stage) -> PathBuf {
    PathBuf::from(stage.run(["config", "path"]).ok().trim_end())
}

fn project_file(stage: &Stage) -> PathBuf {
    stage.repo().join(".agency/config.toml")
}

fn with_variable(stage: &Stage, name: &str, value: &str, args: &[&str]) -> CommandOutput {
    let mut agency = stage.command("agency");
    agency.current_dir(stage.repo()).env(name, value).args(args);
    CommandOutput::of(agency, b"")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[track_caller]
fn entry(stage: &Stage, key: &str) -> Value {
    let shown = stage.run(["config", "--json"]).json();
    assert_eq!((&shown["schema_version"], &shown["version"]), (&json!(1), &Value::Null));
    let settings = shown["settings"].as_array().expect("settings");
    settings.iter().find(|entry| entry["key"] == key).unwrap_or_else(|| panic!("no {key}: {shown}")).clone()
}

#[test]
fn every_value_names_its_source_and_later_sources_win() {
    let stage = Stage::with_config("max_agents = 7\nstale_timeout = \"9s\"\n");
    assert_eq!(entry(&stage, "scrollback")["origin"], json!({ "kind": "default" }));
    let max = entry(&stage, "max_agents");
    assert_eq!(
        (&max["value"], &max["origin"]["kind"], &max["origin"]["line"]),
        (&json!(7), &json!("user"), &json!(2))
    );
    stage.run(["config", "set", "--project", "max_agents", "6"]).ok();
    assert_eq!(entry(&stage, "max_agents")["origin"]["kind"], "project");
    assert_eq!(with_variable(&stage, "AGENCY_MAX_AGENTS", "5", &["config", "get", "max_agents"]).ok(), "5\n");
    let all = ["config", "get", "max_agents", "--config", "max_agents=4"];
    assert_eq!(with_variable(&stage, "AGENCY_MAX_AGENTS", "5", &all).ok(), "4\n");
    let shown = stage.run(["config", "--show-origin", "--config", "stale_timeout=2m"]).ok();
    assert!(shown.contains("stale_timeout = \"2m\"") && shown.contains("# --config\n"), "{shown}");
    assert!(
        shown.lines().any(|line| line.starts_with("max_agents = 6 ") && line.ends_with("config.toml:1")),
        "{shown}"
    );
    let plain = stage.run(["config"]).ok();
    let again: toml_edit::DocumentMut = plain.parse().expect("what is printed is TOML");
    assert_eq!(again["agents"]["shell"]["start"].as_array().map(toml_edit::Array::len), Some(1));
}

#[test]
fn a_value_of_any_type_is_a_document() {
    let stage = Stage::with_config("max_agents = 7\n[agents.mine]\nstart = [\"true\", \"-x\"]\n");
    let got = |key: &str| stage.run(["config", "get", key, "--json"]).json();
    for (key, value) in [
        ("max_agents", json!(7)),
        ("default_agent", json!("shell")),
        ("agents.mine.start", json!(["true", "-x"])),
    ] {
        assert_eq!(got(key), json!({ "schema_version": 1, "key": key, "value": value }));
    }
}

#[test]
fn a_variable_and_an_option_apply_to_the_agent_that_the_command_starts() {
    let stage = Stage::new();
    stage.play("one", "ask q");
    let new = ["new", "two", "--", "fake-agent", "-c", "ask q"];
    let refusal = refused(with_variable(&stage, "AGENCY_MAX_AGENTS", "1", &new));
    assert!(refusal.contains("maximum number of agents reached (1)"), "{refusal}");
    let refusal = stage.refused(&["--config", "max_agents=1", "new", "two", "--", "fake-agent"]);
    assert!(refusal.contains("maximum number of agents reached (1)"), "{refusal}");
    let refusal = refused(with_variable(&stage, "AGENCY_MAX_AGENTS", "many", &new));
    assert!(refusal.contains("Caused by: $AGENCY_MAX_AGENTS: `max_agents` must be"), "{refusal}");
    assert!(
        with_variable(&stage, "AGENCY_MAX_AGENT", "1", &new)
            .stderr
            .contains("did you mean `AGENCY_MAX_AGENTS`?")
    );
}

#[test]
fn set_changes_one_key_and_says_when_it_takes_effect() {
    let stage = Stage::with_config("# mine\nmax_agents   = 7 # seven\n");
    let path = user_file(&stage);
    let before = fs::read_to_string(&path).expect("a file");
    let ran = stage.run(["config", "set", "max_agents", "8"]);
    assert!(ran.stderr.contains("max_agents takes effect now"), "{ran}");
    ran.ok();
    assert_eq!(fs::read_to_string(&path).expect("a file"), before.replace("= 7", "= 8"));
    stage.run(["config", "set", "agents.mine.start", "--", "fake-agent", "-c", "say hi; ask ready?"]).ok();
    stage.run(["config", "set", "agents.mine.env.MOOD", "good"]).ok();
    stage.run(["new", "one", "--agent", "mine", "-m", "x"]).ok();
    stage.wait_printed("one", "hi");
    stage.run(["config", "unset", "max_agents"]).ok();
    assert_eq!(stage.run(["config", "get", "max_agents"]).ok(), "10\n");
    let shadowed = with_variable(&stage, "AGENCY_MAX_AGENTS", "3", &["config", "set", "max_agents", "9"]);
    assert!(
        shadowed.stderr.contains("the value in use here is max_agents = 3, from $AGENCY_MAX_AGENTS"),
        "{shadowed}"
    );
}

#[test]
fn an_invalid_value_is_not_written() {
    let stage = Stage::new();
    let path = user_file(&stage);
    let before = fs::read_to_string(&path).expect("a file");
    for args in [
        ["config", "set", "max_agents", "ten"],
        ["config", "set", "stale_timeout", "5"],
        ["config", "set", "detach_keys", "banana"],
        ["config", "set", "max_agent", "3"],
        ["config", "set", "agents.x.start", "[1]"],
    ] {
        let refusal = stage.refused(&args);
        assert!(refusal.starts_with("Error: ") && refusal.contains(args[2]), "{refusal}");
    }
    assert_eq!(fs::read_to_string(&path).expect("a file"), before);
    stage.write_config("max_agents = \"ten\"\n");
    let place = format!("Caused by: {}:1:14: ", path.display());
    for args in [&["config"][..], &["config", "set", "scrollback", "3"], &["new", "one", "-m", "x"]] {
        let refusal = stage.refused(args);
        assert!(refusal.contains(&place), "{refusal}");
        assert!(
            refusal.contains("\n  1 | max_agents = \"ten\"\n    |              ^^^^^\nHint: "),
            "{refusal}"
        );
    }
    assert_eq!(fs::read_to_string(&path).expect("a file"), "max_agents = \"ten\"\n");
}

#[test]
fn new_files_are_private_or_shared_and_links_stay_links() {
    let stage = Stage::new();
    let path = user_file(&stage);
    fs::remove_file(&path).expect("ours");
    stage.run(["config", "set", "max_agents", "3"]).ok();
    stage.run(["config", "set", "--project", "max_agents", "3"]).ok();
    assert_eq!((mode(&path), mode(&project_file(&stage))), (0o600, 0o644));
    let dotfile = stage.repo().join("dotfile.toml");
    fs::rename(&path, &dotfile).and_then(|()| symlink(&dotfile, &path)).expect("ours");
    stage.run(["config", "set", "max_agents", "4"]).ok();
    assert!(path.symlink_metadata().expect("a link").is_symlink());
    assert_eq!(fs::read_to_string(&dotfile).expect("a file"), "max_agents = 4\n");
}

#[test]
fn an_edited_file_is_checked_before_it_is_used() {
    let stage = Stage::new();
    let (path, editor) = (user_file(&stage), stage.repo().join("editor"));
    let before = fs::read_to_string(&path).expect("a file");
    let edit = |script: &str| {
        fs::write(&editor, format!("#!/bin/sh\n{script}\n")).expect("room");
        fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).expect("ours");
        with_variable(&stage, "VISUAL", editor.to_str().expect("a path"), &["config", "edit"])
    };
    assert_eq!(edit("true").ok(), "nothing changed\n");
    let refusal = refused(edit("echo 'max_agents = x' >> \"$1\""));
    assert!(
        refusal.contains("config.toml:2:14: ") && refusal.contains("your text is saved in "),
        "{refusal}"
    );
    assert_eq!(fs::read_to_string(&path).expect("a file"), before);
    assert!(refused(edit("exit 3")).starts_with("Error: the editor failed, so nothing was changed\n"));
    let ran = edit("echo 'max_agents = 5 # five' >> \"$1\"; echo 'max_agent = 1' >> \"$1\"");
    assert!(ran.stderr.contains("max_agents takes effect now"), "{ran}");
    assert!(ran.stderr.contains("unknown key `max_agent` (did you mean `max_agents`?)"), "{ran}");
    ran.ok();
    assert_eq!(stage.run(["config", "get", "max_agents"]).ok(), "5\n");
    // The change of another program is not lost.
    let racing = format!("echo '# theirs' >> {}; echo '# mine' >> \"$1\"", path.display());
    assert!(refused(edit(&racing)).contains("has changed meanwhile"));
}

#[test]
fn a_change_by_hand_takes_effect_without_a_restart() {
    let stage = Stage::new();
    for number in ["3", "4", "5"] {
        stage.configure(&format!("max_agents = {number}\n"));
        assert_eq!(stage.run(["config", "get", "max_agents"]).ok(), format!("{number}\n"));
    }
}

#[test]
fn outside_a_project_config_works_on_the_users_file() {
    let stage = Stage::with_config("max_agents = 7\n");
    let mut agency = stage.command("agency");
    agency.current_dir("/").args(["config", "--json"]);
    let shown: Value = CommandOutput::of(agency, b"").json();
    assert_eq!(shown["files"]["project"], Value::Null);
    assert!(shown["warnings"].as_array().is_some_and(Vec::is_empty), "{shown}");
    let schema: Value = stage.run(["config", "schema"]).json();
    assert_eq!(schema["properties"]["max_agents"]["type"], "integer");
}
