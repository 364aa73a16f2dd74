//! A sent text arrives whole: many lines, long texts, unusual characters.

use crate::scene::{Agent, Scene};

const LINES: &str = "first line\n\n    an indented one\n\tone with a tab\n- a list \"quoted\" 'twice' `thrice`\n$HOME \\n !history #tag /not-a-command\nlast line";

/// Accents alone and combined, right to left, joined emoji, wide characters, characters beyond the first plane.
const ODD: &str = "e\u{301}é ﷺ שלום עולם 👩‍👩‍👧‍👦 🏳️‍🌈 日本語 𝕬𝖇 ÿ ſ ½ “quotes” — dash";

fn check_arrives(agent: Agent, text: &str) {
    let scene = Scene::at_prompt(agent);
    scene.deliver(text);
    scene.wait_waiting("finished");
    scene.wait_model_got(&as_taken(agent, text));
}

/// Claude Code turns tabs into spaces and joins a letter and its accent; Codex takes a text unchanged.
fn as_taken(agent: Agent, text: &str) -> String {
    match agent {
        Agent::Claude => text.replace('\t', "    ").replace("e\u{301}", "é"),
        Agent::Codex | Agent::Opencode | Agent::Gemini | Agent::Qwen | Agent::Copilot => text.to_owned(),
    }
}

/// Longer than 100 KB; all lines differ.
fn long_text() -> String {
    let lines: Vec<String> =
        (0..2_600).map(|line| format!("line {line} of a long text with some words")).collect();
    let text = lines.join("\n");
    assert!(text.len() > 100_000, "{}", text.len());
    text
}

#[test]
fn many_lines_reach_claude() {
    check_arrives(Agent::Claude, LINES);
}

#[test]
fn a_long_text_reaches_claude() {
    check_arrives(Agent::Claude, &long_text());
}

#[test]
fn unusual_characters_reach_claude() {
    check_arrives(Agent::Claude, ODD);
}

#[test]
fn many_lines_reach_codex() {
    check_arrives(Agent::Codex, LINES);
}

#[test]
fn a_long_text_reaches_codex() {
    check_arrives(Agent::Codex, &long_text());
}

#[test]
fn unusual_characters_reach_codex() {
    check_arrives(Agent::Codex, ODD);
}
