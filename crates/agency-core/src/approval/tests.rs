//! Stories of rules that meet approvals.

use serde_json::json;

use super::*;
use crate::conversation::Choice;

fn rule(tool: &str, pattern: Option<&str>, decision: Decision) -> NamedRule {
    let (tool, pattern) = (tool.to_owned(), pattern.map(str::to_owned));
    let rule = Rule { tool, pattern, agent: None, decision, why: None };
    NamedRule { name: "rule 1 of here".to_owned(), rule }
}

fn approval(tool: &str, input: Value) -> Approval {
    let choice = |kind| Choice { id: String::new(), kind, label: String::new() };
    Approval {
        id: "r1".to_owned(),
        tool: tool.to_owned(),
        title: tool.to_owned(),
        input,
        choices: vec![choice(ChoiceKind::AllowOnce), choice(ChoiceKind::RejectOnce)],
        outcome: None,
    }
}

fn ask(rules: &[NamedRule], tool: &str, input: Value) -> Option<bool> {
    let asker = Asker { agent: "claude-code", workspace: Path::new("/w/1-fix") };
    ruling(rules, asker, &approval(tool, input)).map(|ruling| ruling.allow)
}

fn fits(decision: Decision, tool: &str, pattern: &str, input: Value) -> bool {
    ask(&[rule(tool, Some(pattern), decision)], tool, input).is_some()
}

#[test]
fn a_command_is_allowed_only_as_it_is_written() {
    for (pattern, command, expected) in [
        ("cargo test*", "cargo test", true),
        ("cargo test*", "cargo test -p core --lib", true),
        ("cargo test*", " cargo test\n", true),
        ("cargo test*", "cargo testify", true),
        ("cargo test *", "cargo testify", false),
        ("cargo test*", "cargo build", false),
        ("cargo test*", "sudo cargo test", false),
        ("cargo test*", "cargo test; rm -rf /", false),
        ("cargo test*", "cargo test && rm x", false),
        ("cargo test*", "cargo test & rm x", false),
        ("cargo test*", "cargo test || rm x", false),
        ("cargo test*", "cargo test | sh", false),
        ("cargo test*", "cargo test\nrm x", false),
        ("cargo test*", "cargo test\r\nrm x", false),
        ("cargo test*", "cargo test $(rm x)", false),
        ("cargo test*", "cargo test `rm x`", false),
        ("cargo test*", "cargo test $HOME", false),
        ("cargo test*", "cargo test > ~/.bashrc", false),
        ("cargo test*", "cargo test < x", false),
        ("cargo test*", "cargo test <(rm x)", false),
        ("cargo test*", "cargo test 'a;b'", false),
        ("cargo test*", "cargo test \\; rm", false),
        ("*", "ls; rm x", false),
        ("*", "ls", true),
        ("cargo test* | tail*", "cargo test --all | tail -5", true),
        ("cargo test* | tail*", "cargo test | rm x | tail", false),
        ("cargo test* | tail*", "cargo test | tail; rm x", false),
        ("make && make test", "make && make test", true),
    ] {
        let input = json!({ "command": command });
        assert_eq!(fits(Decision::Allow, "Bash", pattern, input), expected, "{pattern:?} {command:?}");
    }
}

#[test]
fn a_command_is_denied_wherever_it_stands() {
    for (pattern, command, expected) in [
        ("rm *", "rm -rf /", true),
        ("rm *", "true; rm -rf /", true),
        ("rm *", "true && rm x", true),
        ("rm *", "echo $(rm x)", true),
        ("rm *", "ls | rm x", true),
        ("rm *", "ls\nrm x", true),
        ("rm *", "echo rm x", false),
        ("*sudo*", "ls; sudo ls", true),
    ] {
        for decision in [Decision::Deny, Decision::Ask] {
            let rules = [rule("Bash", Some(pattern), decision), rule("*", None, Decision::Allow)];
            let answer = ask(&rules, "Bash", json!({ "command": command }));
            let otherwise = (decision == Decision::Deny).then_some(false);
            assert_eq!(answer, if expected { otherwise } else { Some(true) }, "{pattern:?} {command:?}");
        }
    }
}

#[test]
fn commands_come_as_words_and_within_calls() {
    let allowed = |input: Value| fits(Decision::Allow, "execute", "cargo test*", input);
    assert!(allowed(json!({ "command": ["cargo", "test", "-p", "core"] })));
    assert!(allowed(json!({ "command": ["/bin/bash", "-lc", "cargo test"] })));
    assert!(!allowed(json!({ "command": ["bash", "-lc", "cargo test; rm x"] })));
    assert!(
        !allowed(json!({ "command": ["bash", "-c", "cargo test", "x"] })),
        "more words than a shell line has"
    );
    assert!(!allowed(json!({ "command": ["cargo test", "x"] })), "a program with a strange name");
    assert!(!allowed(json!({ "command": ["cargo", 1] })));
    assert!(allowed(json!({ "title": "x", "rawInput": { "command": "cargo test" } })));
    assert!(!allowed(json!({ "title": "cargo test" })), "a title proves nothing");
    assert!(!allowed(Value::Null));
    assert!(!allowed(json!({ "command": "cargo test", "dangerouslyDisableSandbox": true })));
}

#[test]
fn a_rule_that_denies_or_asks_fits_what_the_agent_does_not_say() {
    let allow = || rule("execute", None, Decision::Allow);
    let deny = || rule("execute", Some("rm *"), Decision::Deny);
    for input in [json!({}), Value::Null, json!({ "command": ["rm -rf", 1] }), json!({ "title": "ls" })] {
        assert_eq!(ask(&[deny(), allow()], "execute", input.clone()), Some(false), "{input}");
        let asks = rule("execute", Some("rm *"), Decision::Ask);
        assert_eq!(ask(&[asks, allow()], "execute", input.clone()), None, "{input}");
    }
    assert_eq!(ask(&[deny(), allow()], "execute", json!({ "command": "ls" })), Some(true));
    let secret = rule("edit", Some("*.pem"), Decision::Deny);
    assert_eq!(ask(&[secret, rule("*", None, Decision::Allow)], "edit", json!({})), Some(false));
}

#[test]
fn a_tool_without_a_name_may_be_any_so_the_user_answers() {
    let rules = [rule("execute", Some("rm *"), Decision::Deny), rule("*", None, Decision::Allow)];
    assert_eq!(ask(&rules, "tool", json!({})), None);
    assert_eq!(ask(&rules, "other", json!({ "line": "true; rm -rf x" })), None);
    assert_eq!(ask(&rules, "other", json!({ "line": "ls" })), Some(true));
}

#[test]
fn rules_for_every_tool_see_the_arguments_of_tools_without_a_kind() {
    let rules = [rule("*", Some("rm *"), Decision::Deny), rule("*", None, Decision::Allow)];
    assert_eq!(ask(&rules, "TodoWrite", json!({ "todos": [{ "content": "test" }] })), Some(true));
    assert_eq!(ask(&rules, "mcp__box__run", json!({ "line": "cd x && rm -rf y" })), Some(false));
}

fn action(tool: &str, title: &str, input: Value) -> Action {
    Action::of(&Approval { title: title.to_owned(), ..approval(tool, input) })
}

#[test]
fn an_action_says_what_is_asked_and_marks_the_agents_words() {
    let copilot =
        action("execute", "Run a scripted command", json!({ "command": "rm -rf build", "cwd": "/w" }));
    assert_eq!(copilot.summary().as_deref(), Some("rm -rf build"));
    assert_eq!(copilot.directory.as_deref(), Some("/w"));
    assert_eq!(copilot.words.as_deref(), Some("Run a scripted command"));
    let claude = json!({ "command": "ls", "description": "List the files" });
    let claude = action("Bash", "Bash: ls", claude);
    assert_eq!((claude.command.as_deref(), claude.words.as_deref()), (Some("ls"), Some("List the files")));
    let edit = json!({ "file_path": "a.txt", "old_string": "one", "new_string": "two" });
    let edit = action("Edit", "Edit a.txt", edit);
    assert_eq!((edit.summary().as_deref(), edit.diff.as_deref()), (Some("a.txt"), Some("-one\n+two\n")));
    assert_eq!(edit.words, None, "the title repeats the path");
    let words = json!({ "command": ["rm -rf", "a b"] });
    assert_eq!(action("execute", "x y", words).summary().as_deref(), Some("rm -rf a b"));
    assert_eq!(
        action("fetch", "fetch", json!({ "url": "https://a.b/c" })).summary().as_deref(),
        Some("https://a.b/c")
    );
}

#[test]
fn the_tool_of_an_mcp_server_is_named_with_its_arguments() {
    for (tool, title) in [("mcp__agency__list_tasks", "x"), ("other", "list_tasks (agency MCP Server): {}")] {
        let action = action(tool, title, json!({ "all": true }));
        let mcp = McpTool { server: "agency".to_owned(), tool: "list_tasks".to_owned() };
        assert_eq!(action.mcp, Some(mcp));
        assert_eq!(action.summary().as_deref(), Some("list_tasks of agency {\"all\":true}"));
    }
    assert_eq!(action("other", "a b (c MCP Server)", json!({})).mcp, None, "these are only words");
}

#[test]
fn files_are_those_of_the_workspace_unless_a_pattern_begins_at_the_root() {
    for (pattern, path, expected) in [
        ("src/*", "/w/1-fix/src/main.rs", true),
        ("src/*", "/w/1-fix/src/deep/er.rs", true),
        ("src/*", "src/main.rs", true),
        ("./src/*", "src/./main.rs", true),
        ("src/*", "/w/1-fix/src/../Cargo.toml", false),
        ("src/*", "src/../../../etc/passwd", false),
        ("src/*", "/w/2-other/src/main.rs", false),
        ("src/*", "/w/1-fixed/src/main.rs", false),
        ("*", "/etc/passwd", false),
        ("/etc/*", "/etc/passwd", true),
        ("/etc/*", "../../etc/passwd", true),
        ("*.md", "docs/a.md", true),
    ] {
        for (tool, key) in [("Edit", "file_path"), ("Read", "file_path"), ("NotebookEdit", "notebook_path")] {
            let answer = fits(Decision::Allow, tool, pattern, json!({ key: path }));
            assert_eq!(answer, expected, "{tool} {pattern:?} {path:?}");
        }
    }
    assert!(fits(Decision::Deny, "Read", "*.pem", json!({ "file_path": "/home/me/key.pem" })));
    assert!(fits(Decision::Deny, "Read", ".env", json!({ "file_path": "src/../.env" })));
}

#[test]
fn of_several_files_all_must_be_allowed_and_one_is_enough_to_deny() {
    let both = json!({ "locations": [{ "path": "src/a.rs" }, { "path": "/etc/passwd" }] });
    assert!(!fits(Decision::Allow, "edit", "src/*", both.clone()));
    assert!(fits(Decision::Deny, "edit", "/etc/*", both));
    let changes = json!({ "rawInput": { "changes": { "src/a.rs": {}, "src/b.rs": {} } } });
    assert!(fits(Decision::Allow, "edit", "src/*", changes));
    assert!(!fits(Decision::Allow, "edit", "*", json!({ "locations": [] })));
}

#[test]
fn addresses_are_allowed_by_their_host() {
    for (pattern, url, expected) in [
        ("https://docs.rs/*", "https://docs.rs/serde", true),
        ("https://docs.rs/*", "https://DOCS.rs/serde", true),
        ("https://docs.rs/*", "http://docs.rs/serde", false),
        ("https://docs.rs/*", "https://docs.rs.evil.com/serde", false),
        ("https://docs.rs/*", "https://docs.rs@evil.com/", false),
        ("https://docs.rs/*", "https://docs.rs\\@evil.com/", false),
        ("https://*.docs.rs/*", "https://evil.com/.docs.rs/", false),
        ("https://*.docs.rs/*", "https://evil.com?.docs.rs/", false),
        ("https://*.docs.rs/*", "https://a.docs.rs/", true),
        ("https://docs.rs", "https://docs.rs/", true),
        ("https://docs.rs", "https://docs.rs/serde", false),
        ("docs.rs", "https://docs.rs/serde", true),
        ("docs.rs", "https://evil.com/docs.rs", false),
        ("docs.rs", "docs.rs", false),
    ] {
        let answer = fits(Decision::Allow, "WebFetch", pattern, json!({ "url": url, "prompt": "x" }));
        assert_eq!(answer, expected, "{pattern:?} {url:?}");
    }
    assert!(fits(Decision::Deny, "fetch", "*evil*", json!({ "url": "https://x@evil.com/" })));
}

#[test]
fn tools_are_named_by_themselves_or_by_their_kind() {
    for (named, tool, expected) in [
        ("Bash", "Bash", true),
        ("bash", "Bash", true),
        ("execute", "Bash", true),
        ("Bash", "execute", true),
        ("edit", "Write", true),
        ("Write", "edit", false),
        ("Write", "Edit", false),
        ("mcp__github__*", "mcp__github__create_issue", true),
        ("mcp__github__*", "mcp__gitlab__create_issue", false),
        ("*", "anything", true),
        ("fetch", "WebFetch", true),
        ("Read", "Bash", false),
    ] {
        let answer = ask(&[rule(named, None, Decision::Allow)], tool, json!({ "command": "ls; ls" }));
        assert_eq!(answer.is_some(), expected, "{named} {tool}");
    }
    let unknown = rule("mcp__x", Some("*"), Decision::Allow);
    assert_eq!(
        ask(&[unknown], "mcp__x", json!({ "command": "ls" })),
        None,
        "an unknown tool may use this argument for something else"
    );
}

#[test]
fn the_first_rule_that_fits_decides_and_ask_ends_the_search() {
    let ls = json!({ "command": "ls" });
    let (allow, deny) = (rule("Bash", None, Decision::Allow), rule("Bash", None, Decision::Deny));
    let leave = rule("Bash", Some("ls"), Decision::Ask);
    assert_eq!(ask(&[allow.clone(), deny.clone()], "Bash", ls.clone()), Some(true));
    assert_eq!(ask(&[deny.clone(), allow.clone()], "Bash", ls.clone()), Some(false));
    assert_eq!(ask(&[leave, allow.clone()], "Bash", ls.clone()), None);
    assert_eq!(ask(&[], "Bash", ls.clone()), None);
    let mut of_codex = deny;
    of_codex.rule.agent = Some("codex".to_owned());
    assert_eq!(ask(&[of_codex, allow], "Bash", ls), Some(true));
}

#[test]
fn a_rule_says_who_it_is_and_why() {
    let mut named = rule("*", None, Decision::Deny);
    named.rule.why = Some("not here".to_owned());
    let asker = Asker { agent: "codex", workspace: Path::new("/w") };
    let answer = ruling(&[named], asker, &approval("Bash", Value::Null));
    let (by, why) = ("rule 1 of here".to_owned(), Some("not here".to_owned()));
    assert_eq!(answer, Some(Ruling { allow: false, by, why }));
}

#[test]
fn questions_are_for_people() {
    let everything = [rule("*", None, Decision::Allow)];
    assert_eq!(ask(&everything, "AskUserQuestion", json!({})), None);
    assert_eq!(ask(&everything, "form", json!({ "questions": [] })), None);
    let asker = Asker { agent: "codex", workspace: Path::new("/w") };
    let without_choices = Approval { choices: Vec::new(), ..approval("Bash", Value::Null) };
    assert_eq!(ruling(&everything, asker, &without_choices), None);
}
