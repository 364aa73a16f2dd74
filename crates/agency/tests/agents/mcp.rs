//! Claude Code uses Agency's tools: it starts another agent, waits for it, and reads its answer.

use crate::scene::{Agent, SOON, Scene};

const HELPER: &str = "\
[agents.helper]
driver = \"stream-json\"
stream = [\"fake-agent\", \"--stream-json\", \"prompt; say The kumquat is peeled.; end\"]
";

/// Writes what `claude mcp add --scope user agency -- agency mcp` writes, and allows the tools.
fn add_agency_tools(scene: &Scene) {
    scene.write_config(HELPER);
    let known = std::fs::read_to_string(scene.home().join(".claude.json")).expect("the settings exist");
    let mut claude: serde_json::Value = serde_json::from_str(&known).expect("JSON");
    claude["mcpServers"]["agency"] =
        serde_json::json!({ "type": "stdio", "command": "agency", "args": ["mcp"] });
    scene.write_home(".claude.json", &claude.to_string());
    scene.write_home(".claude/settings.json", r#"{ "permissions": { "allow": ["mcp__agency"] } }"#);
}

#[test]
fn claude_starts_an_agent_waits_for_it_and_reads_its_answer() {
    let scene = Scene::new(Agent::Claude);
    add_agency_tools(&scene);
    let start =
        r#"<<tool mcp__agency__start_task {"slug":"peel","message":"peel the kumquat","agent":"helper"}>>"#;
    let wait = r#"<<tool mcp__agency__wait_for_task {"task":"peel"}>>"#;
    let read = r#"<<tool mcp__agency__read_task {"task":"peel"}>>"#;
    let message = format!("{start} {wait} {read} <<say That was it.>>");
    let new =
        ["new", "x", "--agent", "claude-code", "--driver", "stream-json", "--no-attach", "-m", &message];
    scene.run(&new).ok();
    let read = scene.eventually("the end of the turn", SOON, || {
        let chat = scene.run(&["chat", "x"]).ok();
        chat.lines().any(|line| line == "That was it.").then_some(chat)
    });
    assert!(read.contains("The kumquat is peeled."), "{read}");
    let tasks = scene.run(&["ls", "--json"]).json();
    assert_eq!(
        (&tasks["tasks"][1]["slug"], &tasks["tasks"][1]["parent"]),
        (&"peel".into(), &1.into()),
        "{tasks}"
    );
    let shown = scene.run(&["ls"]).ok();
    assert!(shown.lines().any(|line| line.starts_with("2   └ peel")), "{shown}");
    let found = scene.run(&["search", "kumquat", "--json"]).json();
    assert!(found["hits"].as_array().is_some_and(|hits| hits.len() >= 3), "{found}");
}
