//! What is sent arrives whole: many lines, much text, odd signs.

use crate::scene::{Agent, Scene};

const LINES: &str = "first line\n\n    an indented one\n\tone with a tab\n- a list \"quoted\" 'twice' `thrice`\n$HOME \\n !history #tag /not-a-command\nlast line";

/// Accents alone and combined, right to left, joined emoji, wide signs, signs beyond the first plane.
const ODD: &str = "e\u{301}é ﷺ שלום עולם 👩‍👩‍👧‍👦 🏳️‍🌈 日本語 𝕬𝖇 ÿ ſ ½ “quotes” — dash";

fn arrives(agent: Agent, text: &str) {
    let scene = Scene::at_prompt(agent);
    scene.deliver(text);
    scene.wait_waiting("finished");
    scene.wait_told(&as_taken(agent, text));
}

/// Claude Code itself makes spaces of tabs and one sign of a letter and its accent; Codex takes a text as it comes.
fn as_taken(agent: Agent, text: &str) -> String {
    match agent {
        Agent::Claude => text.replace('\t', "    ").replace("e\u{301}", "é"),
        Agent::Codex => text.to_owned(),
    }
}

/// Longer than 100 KB, every line another one.
fn long() -> String {
    let lines: Vec<String> =
        (0..2_600).map(|line| format!("line {line} of a long text with some words")).collect();
    let text = lines.join("\n");
    assert!(text.len() > 100_000, "{}", text.len());
    text
}

#[test]
fn many_lines_reach_claude() {
    arrives(Agent::Claude, LINES);
}

#[test]
fn much_text_reaches_claude() {
    arrives(Agent::Claude, &long());
}

#[test]
fn odd_signs_reach_claude() {
    arrives(Agent::Claude, ODD);
}

#[test]
fn many_lines_reach_codex() {
    arrives(Agent::Codex, LINES);
}

#[test]
fn much_text_reaches_codex() {
    arrives(Agent::Codex, &long());
}

#[test]
fn odd_signs_reach_codex() {
    arrives(Agent::Codex, ODD);
}
