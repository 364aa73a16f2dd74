//! Stories of configuration files, and of layers that are merged.

use std::time::Duration;

use proptest::prelude::*;

use super::schema::AGENT_KEYS;
use super::*;
use crate::agent::{Driver, Restart};

fn layer(text: &str, file: &str) -> Layer {
    parse(text, file).unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn words(line: &str) -> Option<Vec<String>> {
    Some(line.split_whitespace().map(str::to_owned).collect())
}

const EVERYTHING: &str = r#"
default_agent       = "mine"
max_agents          = 3
needs_input_timeout = "500ms"
stale_timeout       = "2m"
shutdown_timeout    = "1h"
detach_keys         = "ctrl-p,ctrl-q"
scrollback          = 500
clipboard           = "allow"

[ui]
marks = "ascii"

[notify]
desktop  = false
terminal = "osc777"
command  = ["tell", "me"]
webhook  = "https://example.org/hook?key=1"
on       = ["permission", "exited"]

[workspace]
copy          = [".env", "config/*.local"]
setup         = ["npm", "ci"]
teardown      = [["docker", "compose", "down"], ["rm", "-rf", "$AGENCY_WORKTREE/data"]]
setup_timeout = "5m"
ports         = 20
port_base     = 9000
opener        = ["code", "$AGENCY_WORKTREE"]
keep_ignored  = true

[mcp]
allow     = ["list_tasks", "start_task"]
depth     = 2
max_tasks = 3
offer = true

[agents.mine]
display_name = "My Agent"
start  = ["mine", "$AGENCY_PROMPT"]
resume = ["mine", "--again", "$AGENCY_SESSION_ID"]
run    = ["mine", "-1", "$AGENCY_MESSAGE"]
stream = ["mine", "--stream"]
acp    = ["mine-acp"]
mode   = "ask"
per_workspace = true
driver = "acp"
restart = "on-crash"
max_restarts = 7
stop_grace = "9s"
spare = ["gpg-agent", "sccache"]
env = { A = "1", "B.c" = "two" }
needs_input_timeout = "1s"
stale_timeout = "3s"
"#;

#[test]
fn without_a_file_the_defaults_hold() {
    let config = Config::merged([]);
    assert_eq!(config, Config::default());
    assert_eq!((config.max_agents, config.scrollback, config.detach_keys.as_str()), (10, 10_000, "ctrl-q"));
    assert_eq!(
        (config.needs_input_timeout, config.stale_timeout, config.shutdown_timeout),
        (secs(5), secs(60), secs(30))
    );
    assert_eq!(config.choose_default_agent(|_| false).map(|agent| agent.name.as_str()), Ok("shell"));
}

#[test]
fn every_key_is_read() {
    let config = Config::merged([&layer(EVERYTHING, "config.toml")]);
    assert_eq!(config.default_agent.as_deref(), Some("mine"));
    assert_eq!((config.max_agents, config.scrollback), (3, 500));
    assert_eq!(config.detach_keys, "ctrl-p,ctrl-q");
    assert_eq!(
        (config.needs_input_timeout, config.stale_timeout, config.shutdown_timeout),
        (Duration::from_millis(500), secs(120), secs(3600))
    );
    assert_eq!(config.ui, Ui { marks: MarkStyle::Ascii });
    let expected = Notify {
        desktop: Some(false),
        terminal: TerminalNotice::Osc777,
        command: words("tell me"),
        webhook: Some("https://example.org/hook?key=1".to_owned()),
        on: vec!["permission".to_owned(), "exited".to_owned()],
    };
    assert_eq!(config.notify, expected);
    let expected = WorkspaceConfig {
        copy: vec![".env".to_owned(), "config/*.local".to_owned()],
        setup: words("npm ci").into_iter().collect(),
        teardown: words("docker compose down")
            .into_iter()
            .chain(words("rm -rf $AGENCY_WORKTREE/data"))
            .collect(),
        setup_timeout: secs(300),
        ports: 20,
        port_base: 9000,
        opener: words("code $AGENCY_WORKTREE"),
        keep_ignored: true,
    };
    assert_eq!(config.workspace, expected);
    let expected = Mcp {
        allow: vec!["list_tasks".to_owned(), "start_task".to_owned()],
        depth: 2,
        max_tasks: 3,
        offer: true,
    };
    assert_eq!(config.mcp, expected);
    assert!(config.mcp.allows("start_task") && !config.mcp.allows("stop_task"));
    let mine = config.agents.find("mine").expect("configured");
    let expected = Agent {
        display_name: "My Agent".to_owned(),
        start: words("mine $AGENCY_PROMPT"),
        resume: words("mine --again $AGENCY_SESSION_ID"),
        run: words("mine -1 $AGENCY_MESSAGE"),
        stream: words("mine --stream"),
        acp: words("mine-acp"),
        mode: Some("ask".to_owned()),
        per_workspace: true,
        driver: Driver::Acp,
        restart: Some(Restart::OnCrash),
        max_restarts: Some(7),
        stop_grace: Some(secs(9)),
        spare: vec!["gpg-agent".to_owned(), "sccache".to_owned()],
        env: [("A", "1"), ("B.c", "two")].map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        needs_input_timeout: Some(secs(1)),
        stale_timeout: Some(secs(3)),
        ..Agent::named("mine")
    };
    assert_eq!(mine, &expected);
    assert_eq!((config.needs_input_timeout(mine), config.stale_timeout(mine)), (secs(1), secs(3)));
    let shell = config.agents.find("fake").expect("built in");
    assert_eq!(
        (config.needs_input_timeout(shell), config.stale_timeout(shell)),
        (config.needs_input_timeout, secs(120))
    );
}

#[test]
fn the_schema_names_every_key_that_is_read() {
    let layer = layer(EVERYTHING, "config.toml");
    assert_eq!(layer.unknown_keys, []);
    for key in Key::all_fixed() {
        assert!(layer.settings.contains_key(&key), "{key}");
    }
    for key in &AGENT_KEYS {
        let agent = "mine".to_owned();
        let key = match key.info.kind {
            ValueKind::Env => Key::Env { agent, variable: "A".to_owned() },
            _ => Key::Agent { agent, key },
        };
        assert!(layer.settings.contains_key(&key), "{key}");
    }
}

#[test]
fn every_key_sets_its_own_field_and_nothing_else() {
    let layer = layer(EVERYTHING, "config.toml");
    let default = Config::merged([]);
    for (key, setting) in &layer.settings {
        let alone = Layer { settings: [(key.clone(), setting.clone())].into(), unknown_keys: Vec::new() };
        let config = Config::merged([&alone]);
        assert_eq!(config.get(key).as_ref(), Some(&setting.value), "{key}");
        let others = config.entries().into_iter().filter(|(other, _)| {
            // Setting any key of an agent also makes the agent known.
            other != key && !other.to_string().starts_with("agents.mine.")
        });
        for (other, value) in others {
            assert_eq!(default.get(&other), Some(value), "{key} changed {other}");
        }
    }
}

#[test]
fn a_value_of_another_kind_changes_nothing() {
    for key in Key::all_fixed() {
        let wrong = match key.kind() {
            ValueKind::Truth => Value::Count(1),
            _ => Value::Truth(true),
        };
        let setting = Setting { value: wrong, origin: Origin::Option };
        let layer = Layer { settings: [(key.clone(), setting)].into(), unknown_keys: Vec::new() };
        assert_eq!(Config::merged([&layer]).get(&key), Config::default().get(&key), "{key}");
    }
}

#[test]
fn later_layers_win_key_by_key_and_every_value_has_an_origin() {
    let global = layer(
        "max_agents = 3\nscrollback = 1\n\n[agents.codex]\nenv = { A = \"1\", B = \"1\" }\nstop_grace = \"9s\"\n",
        "/home/me/config.toml",
    );
    let project = layer(
        "scrollback = 2\n[agents.codex]\nenv.B = \"2\"\nstart = [\"codex\"]\n[agents.shell]\nstart = [\"bash\"]\n",
        ".agency/config.toml",
    );
    let config = Config::merged([&global, &project]);
    assert_eq!((config.max_agents, config.scrollback), (3, 2));
    let codex = config.agents.find("codex").expect("built in");
    assert_eq!(
        codex.env,
        [("A", "1"), ("B", "2")].map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    );
    assert_eq!((codex.start.clone(), codex.stop_grace), (words("codex"), Some(secs(9))));
    // A key that no layer sets keeps its built-in value, and an alias means the agent itself.
    assert_eq!(codex.display_name, "Codex");
    assert_eq!(config.agents.find("fake").map(|agent| agent.start.clone()), Ok(words("bash")));

    let origins: Vec<String> = config.origins().map(|(key, origin)| format!("{key} {origin}")).collect();
    assert_eq!(
        origins,
        [
            "max_agents /home/me/config.toml:1",
            "scrollback .agency/config.toml:1",
            "agents.codex.start .agency/config.toml:4",
            "agents.codex.stop_grace /home/me/config.toml:6",
            "agents.shell.start .agency/config.toml:6",
            "agents.codex.env.A /home/me/config.toml:5",
            "agents.codex.env.B .agency/config.toml:3",
        ]
    );
    assert_eq!(config.origin(&Key::STALE_TIMEOUT), Origin::BuiltIn);
}

#[test]
fn an_empty_command_removes_the_command_and_a_new_bridge_has_no_older_name() {
    let config =
        Config::merged([&layer("[agents.claude-code]\nresume = []\nacp = [\"my-bridge\"]\n", "config.toml")]);
    let claude = config.agents.find("claude-code").expect("built in");
    assert_eq!(claude.resume, None);
    assert_eq!(claude.launch_acp(|program| program == "claude-code-acp"), Ok(&vec!["my-bridge".to_owned()]));
}

#[test]
fn settings_that_a_stranger_could_abuse_wait_for_consent() {
    let user =
        layer("[agents.aider]\nstart = [\"aider\", \"--yes\"]\n[agents.mine]\nstart = [\"x\"]\n", "mine");
    for (text, waiting, ignored) in [
        ("", "", ""),
        ("needs_input_timeout = \"1s\"\nstale_timeout = \"1s\"\n", "", ""),
        ("max_agents = 0", "max_agents", ""),
        ("[agents.codex]\nneeds_input_timeout = \"1s\"\nstale_timeout = \"1s\"\n", "", ""),
        ("default_agent = \"codex\"", "", ""),
        ("default_agent = \"shell\"", "", ""),
        ("default_agent = \"mine\"", "default_agent", ""),
        // Built in, but the user changed it, so it may do more than the built-in one.
        ("default_agent = \"aider\"", "default_agent", ""),
        ("default_agent = \"theirs\"", "default_agent", ""),
        ("detach_keys = \"none\"\nscrollback = 4000000000", "detach_keys scrollback", ""),
        ("shutdown_timeout = \"8760h\"", "", "shutdown_timeout"),
        ("[agents.x]\nstart = [\"rm\"]\nstop_grace = \"1s\"", "agents.x.start agents.x.stop_grace", ""),
        ("agents.x.resume = [\"rm\"]", "agents.x.resume", ""),
        ("agents.x.run = [\"rm\"]", "agents.x.run", ""),
        ("agents.x.stream = [\"rm\"]", "agents.x.stream", ""),
        ("agents.x.acp = []", "agents.x.acp", ""),
        ("agents = { fake = { env = { PATH = \"/evil\" } } }", "agents.shell.env.PATH", ""),
        (
            "[agents.codex]\ndisplay_name = \"X\"\ndriver = \"acp\"",
            "agents.codex.display_name agents.codex.driver",
            "",
        ),
        (
            "[agents.codex]\nrestart = \"on-crash\"\nmax_restarts = 9\nspare = [\"x\"]",
            "agents.codex.max_restarts agents.codex.restart agents.codex.spare",
            "",
        ),
    ] {
        let layer = layer(text, "config.toml");
        let split = layer.clone().split_by_trust(Some(&user));
        let names = |keys: Vec<&Key>| keys.into_iter().map(Key::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(names(split.waiting.keys().collect()), waiting, "{text}");
        assert_eq!(names(split.ignored.iter().collect()), ignored, "{text}");
        assert!(!split.free.settings.keys().any(Key::runs_commands));
        let parts = split.free.settings.len() + split.waiting.len() + split.ignored.len();
        assert_eq!(parts, layer.settings.len());
    }
}

#[test]
fn keys_are_written_and_read_alike() {
    for text in ["max_agents", "agents.codex.start", "agents.x.env.A", "agents.\"a.b\".env.\"x y\""] {
        assert_eq!(Key::parse(text).map(|key| key.to_string()), Ok(text.to_owned()));
    }
    for (text, hint) in [
        ("max_agent", "did you mean `max_agents`?"),
        ("agents.codex.starts", "did you mean `agents.codex.start`?"),
        ("agents.codex.env", "did you mean `agents.codex.env.VARIABLE`?"),
        ("agents.codex", "`agency config` lists all keys"),
        ("", "`agency config` lists all keys"),
        ("\"\".max_agents", "`agency config` lists all keys"),
        ("a b", "`agency config` lists all keys"),
        ("agents.-x.start", "`agency config` lists all keys"),
    ] {
        assert_eq!(Key::parse(text).expect_err(text).hint(), hint, "{text}");
    }
}

#[test]
fn the_list_shows_the_values_in_force() {
    let config = Config::merged([&layer(EVERYTHING, "config.toml")]);
    let lines: Vec<String> = config.entries().iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let again = Config::merged([&layer(&lines.join("\n"), "config.toml")]);
    assert_eq!(again.entries(), config.entries());
    assert!(lines.contains(&"stale_timeout = \"2m\"".to_owned()), "{lines:?}");
    assert!(lines.contains(&"agents.mine.env.\"B.c\" = \"two\"".to_owned()), "{lines:?}");
    assert!(lines.contains(&"agents.codex.driver = \"terminal\"".to_owned()), "{lines:?}");
}

#[test]
fn unknown_keys_are_named_with_the_nearest_known_one() {
    let layer = layer(
        "max_agent = 3\nbanana = 1\n[agent.codex]\nstart = [\"x\"]\n[agents.codex]\nstarts = [\"x\"]\n  comand = 1\n",
        "c.toml",
    );
    let warnings: Vec<String> = layer
        .unknown_keys
        .iter()
        .map(|unknown| format!("{unknown} / {}", unknown.hint().unwrap_or_default()))
        .collect();
    assert_eq!(
        warnings,
        [
            "c.toml:1:1: unknown key `max_agent` / did you mean `max_agents`?",
            "c.toml:2:1: unknown key `banana` / ",
            "c.toml:3:2: unknown key `agent` / did you mean `agents`?",
            "c.toml:6:1: unknown key `agents.codex.starts` / did you mean `start`?",
            "c.toml:7:3: unknown key `agents.codex.comand` / ",
        ]
    );
    assert!(layer.settings.is_empty());
}

#[test]
fn errors_have_a_position_and_name_the_key() {
    for (text, expected) in [
        (
            "max_agents = \"ten\"",
            "c.toml:1:14: `max_agents` must be a whole number, 0 or more, not the string \"ten\"",
        ),
        ("max_agents = -1", "c.toml:1:14: `max_agents` must be a whole number, 0 or more, not the number -1"),
        (
            "max_agents = 1.5",
            "c.toml:1:14: `max_agents` must be a whole number, 0 or more, not the number 1.5",
        ),
        ("\n\n  scrollback = true", "c.toml:3:16: `scrollback` must be a whole number, 0 or more, not true"),
        (
            "stale_timeout = 60",
            "c.toml:1:17: `stale_timeout` must be a time such as \"500ms\", \"5s\", \"2m\" or \"1h\", not the number 60",
        ),
        ("stale_timeout = \"60\"", "c.toml:1:17: `stale_timeout`: `60` has no unit"),
        ("[agents.x]\nstop_grace = \"soon\"", "c.toml:2:14: `agents.x.stop_grace`: `soon` is not a time"),
        ("detach_keys = [\"a\"]", "c.toml:1:15: `detach_keys` must be a string, not an array"),
        (
            "default_agent = 2026-01-31",
            "c.toml:1:17: `default_agent` must be a string, not the date 2026-01-31",
        ),
        ("notify = 3", "c.toml:1:10: `notify` must be a table, not the number 3"),
        ("[notify]\ndesktop = 1", "c.toml:2:11: `notify.desktop` must be true or false, not the number 1"),
        (
            "[notify]\nwebhook = \"example.org\"",
            "c.toml:2:11: `notify.webhook` must be an address that begins with http:// or https://, not the string \"example.org\"",
        ),
        (
            "[mcp]\nallow = [\"list_tasks\", \"rm\"]",
            "c.toml:2:24: `mcp.allow` must be an array of names of tools (docs/configuration.md lists them), not one that holds the string \"rm\"",
        ),
        (
            "[notify]\non = [\"exited\", \"never\"]",
            "c.toml:2:17: `notify.on` must be an array of \"prompt\", \"permission\", \"question\", \"finished\", \"error\", \"unknown\" and \"exited\", not one that holds the string \"never\"",
        ),
        (
            "[notify]\nterminal = \"loud\"",
            "c.toml:2:12: `notify.terminal` must be \"auto\", \"osc9\", \"osc777\", \"bell\" or \"none\", not the string \"loud\"",
        ),
        ("agents = 3", "c.toml:1:10: `agents` must be a table, not the number 3"),
        ("[[agents]]\nx = 1", "c.toml:1:1: `agents` must be a table, not an array of tables"),
        ("agents.codex = \"codex\"", "c.toml:1:16: `agents.codex` must be a table, not the string \"codex\""),
        (
            "[agents.x]\nstart = \"sh -c 'ü'\"",
            "c.toml:2:9: `agents.x.start` must be an array of strings, the program first, not the string \"sh -c 'ü'\"",
        ),
        (
            "[agents.x]\n# ü\nstart = [\"ü\", 5]",
            "c.toml:3:15: `agents.x.start` must be an array of strings, the program first, not one that holds the number 5",
        ),
        ("[agents.x]\nstart = [\"\", \"a\"]", "c.toml:2:9: `agents.x.start` names no program"),
        (
            "[agents.x]\nspare = 1",
            "c.toml:2:9: `agents.x.spare` must be an array of strings, not the number 1",
        ),
        (
            "[agents.x]\ndriver = \"tty\"",
            "c.toml:2:10: `agents.x.driver` must be \"terminal\", \"stream-json\" or \"acp\", not the string \"tty\"",
        ),
        (
            "[agents.x]\nrestart = false",
            "c.toml:2:11: `agents.x.restart` must be \"never\" or \"on-crash\", not false",
        ),
        ("[agents.x]\nenv = []", "c.toml:2:7: `agents.x.env` must be a table, not an array"),
        ("[agents.x.env]\nA = 1", "c.toml:2:5: `agents.x.env.A` must be a string, not the number 1"),
        ("[agents.x.env]\n\"A=B\" = \"1\"", "c.toml:2:1: `A=B` cannot be the name of a variable"),
        (
            "[agents.x.env]\nA = \"\\u0000\"",
            "c.toml:2:5: `agents.x.env.A` contains a NUL character, which cannot be passed to a program",
        ),
        ("[agents.\"a b\"]\nstart = []", "c.toml:1:9: `a b` cannot be the name of an agent"),
        ("[agents.-x]\n", "c.toml:1:9: `-x` cannot be the name of an agent"),
    ] {
        let error = parse(text, "c.toml").expect_err(text);
        assert_eq!(error.to_string(), expected);
        assert!(!error.hint().is_empty() && !error.hint().ends_with('.'), "{}", error.hint());
    }
}

#[test]
fn a_syntax_error_has_a_position() {
    for (text, place) in [
        ("max_agents =", "c.toml:1:13: "),
        ("a = 1\na = 2", "c.toml:2:1: "),
        ("[agents.x\n", "c.toml:1:10: "),
        ("a = 1\n\nb = \"ü", "c.toml:3:7: "),
        ("\u{feff}a = 1\nb", "c.toml:2:2: "),
    ] {
        let error = parse(text, "c.toml").expect_err(text);
        assert!(error.to_string().starts_with(place) && !error.to_string().contains('\n'), "{error}");
        assert!(matches!(error.problem, ConfigProblem::Syntax(_)));
    }
}

#[test]
fn a_byte_order_mark_and_foreign_line_ends_do_no_harm() {
    let layer = layer("\u{feff}max_agents = 3\r\n[agents.codex]\r\nstop_grace = \"1s\"\r\n", "c.toml");
    assert_eq!(layer.unknown_keys, []);
    let origins: Vec<String> = layer.settings.values().map(|setting| setting.origin.to_string()).collect();
    assert_eq!(origins, ["c.toml:1", "c.toml:3"]);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in prop_oneof![any::<String>(), "([a-z_.]{1,8} ?= ?[0-9\"\\[{a-z]{0,6}\n|\\[[a-z.\"]{1,8}\\]\n){0,4}"]) {
        match parse(&text, "c.toml") {
            Ok(layer) => drop(Config::merged([&layer])),
            Err(error) => prop_assert!(error.position.line <= text.lines().count() + 1),
        }
    }

    #[test]
    fn times_as_we_would_write_them_are_read(number in 0u64..8760, unit in "ms|s|m|h") {
        let text = format!("{number}{unit}");
        prop_assert!(parse_time_span(&text).is_ok());
    }
}

const RULES: &str = r#"
[[approve]]
tool = "Bash"
match = "cargo test*"
agent = "shell"
decision = "allow"
why = "tests are safe"

[[approve]]
tool = "*"
decision = "ask"
"#;

#[test]
fn rules_are_kept_in_order_and_those_of_the_user_come_first() {
    let user = layer(RULES, "user.toml");
    let project = layer("approve = [{ tool = \"Edit\", decision = \"deny\" }]", "project.toml");
    let config = Config::merged([&user, &project]);
    let names: Vec<_> = config.approve.iter().map(|named| named.name.as_str()).collect();
    assert_eq!(names, ["rule 1 of user.toml", "rule 2 of user.toml", "rule 1 of project.toml"]);
    let first = &config.approve[0].rule;
    assert_eq!(first.agent.as_deref(), Some("shell"), "by its alias");
    assert_eq!((first.tool.as_str(), first.pattern.as_deref()), ("Bash", Some("cargo test*")));
    let third = Key::parse("approve[3]").expect("a rule");
    assert_eq!(config.origin(&third).to_string(), "project.toml:1");
    assert_eq!(config.origin(&Key::Rule { number: 2 }).to_string(), "user.toml:10");
    let value = config.get(&third).expect("it is there");
    assert_eq!(value.to_string(), "{ tool = \"Edit\", decision = \"deny\" }");
    assert_eq!(value.to_json(), serde_json::json!({ "tool": "Edit", "decision": "deny" }));
    assert_eq!(config.get(&Key::Rule { number: 4 }), None);
    let split = project.split_by_trust(None);
    assert!(split.free.settings.is_empty() && split.waiting.len() == 1, "a repository allows itself nothing");
}

#[test]
fn a_rule_that_is_not_understood_is_named() {
    for (text, expected, hint) in [
        ("[[approve]]\ntool = \"Bash\"", "c:2:1: `approve[1]` has no `decision`", "write decision"),
        ("[[approve]]\ndecision = \"allow\"", "c:2:1: `approve[1]` has no `tool`", "for every tool"),
        (
            "[[approve]]\ntool = \"a\"\ndecision = \"ask\"\n[[approve]]\ntool = \"b\"\ndecision = \"yes\"",
            "c:6:12: `approve[2].decision` must be \"allow\", \"deny\" or \"ask\", not the string \"yes\"",
            "correct line 6",
        ),
        (
            "[[approve]]\ntool = \"a\"\nmach = \"ls\"\ndecision = \"allow\"",
            "c:3:1: unknown key `approve[1].mach`, so the meaning of the rule is not clear",
            "did you mean `match`?",
        ),
        (
            "[[approve]]\ntool = 1",
            "c:2:8: `approve[1].tool` must be a string, not the number 1",
            "correct line 2",
        ),
        ("[approve]\ntool = \"a\"", "c:1:1: `approve[1]` must be tables, as in [[approve]], not a table", ""),
        ("approve = [1]", "c:1:11: `approve[1]` must be tables, as in [[approve]], not an array", ""),
    ] {
        let error = parse(text, "c").expect_err(text);
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().contains(hint), "{}", error.hint());
    }
}

#[test]
fn a_rule_is_changed_by_hand_and_other_keys_are_changed_around_it() {
    let key = Key::parse("approve[1]").expect("a rule");
    let refused = Value::from_words(&key, &["x".to_owned()]).expect_err("no value can be typed");
    assert_eq!(refused.to_string(), "`approve[1]` can only be changed in its file");
    assert_eq!(Key::parse("approve").expect_err("which?").hint(), "did you mean `approve[1]`?");
    let max = Key::parse("max_agents").expect("a key");
    let after = set(RULES, "c", &max, &Value::Count(3)).expect("it can be set");
    assert!(after.contains("max_agents = 3") && after.ends_with(RULES.trim_start()), "{after}");
    assert!(unset(RULES, "c", &key).is_err());
}
