//! Stories of files that people and Agency edit in turn.

use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> TaskFile {
    TaskFile::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

fn text_of(file: &TaskFile) -> String {
    String::from_utf8(file.to_bytes()).expect("UTF-8")
}

/// The text after one change.
fn after(text: &str, field: Field) -> String {
    let mut file = parsed(text);
    file.set(field).unwrap_or_else(|error| panic!("{error} in\n{text}"));
    let written = text_of(&file);
    assert_eq!(parsed(&written), file, "{written}");
    written
}

fn running() -> Field {
    Field::Status(TaskStatus::Running)
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn list(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_parent_that_is_not_a_task_id_is_ignored_and_kept() {
    for (written, parent) in [("7", Some(TaskId(7))), ("epic", None), ("0", None), ("[1]", None), ("", None)]
    {
        let text = format!("---\nparent: {written}\n---\n");
        assert_eq!(parsed(&text).fields().parent, parent, "{written}");
        assert_eq!(after(&text, running()).lines().nth(1), text.lines().nth(1), "{written}");
    }
}

#[test]
fn a_new_file_reads_as_it_was_made() {
    let fields = Fields {
        base_branch: some("main"),
        status: TaskStatus::Draft,
        labels: list("bug ui"),
        created_at: some("2026-01-31T12:00:00Z"),
        agent: some("claude-code"),
        driver: Some(Driver::StreamJson),
        command: Some(vec!["make".to_owned(), "a b".to_owned()]),
        session_id: some("0e1f"),
        parent: Some(TaskId(3)),
        last_exit: Some(LastExit {
            code: ExitCode::Signal(15),
            raw: ExitCode::Code(0),
            at: some("2026-01-31T12:05:00Z"),
            asked: true,
        }),
    };
    let file = TaskFile::create(fields.clone(), b"make the login work\n".to_vec());
    assert_eq!(
        text_of(&file),
        r#"---
base_branch: main
status: draft
labels: ["bug", "ui"]
created_at: "2026-01-31T12:00:00Z"
agent: claude-code
driver: stream-json
command: ["make", "a b"]
session_id: "0e1f"
parent: 3
last_exit: {code: -15, raw: 0, at: "2026-01-31T12:05:00Z"}
---
make the login work
"#
    );
    assert_eq!(parsed(&text_of(&file)), file);
    assert_eq!(file.fields(), &fields);
}

#[test]
fn a_draft_needs_almost_nothing() {
    for text in
        ["---\n---\n", "---\n---", "---\n# only a comment\n---\n", "---\n\nstatus:\nlabels: ~\n\n---\n"]
    {
        let file = parsed(text);
        assert_eq!(file.fields(), &Fields::default(), "{text:?}");
        assert_eq!(text_of(&file), text);
    }
    assert_eq!(
        text_of(&TaskFile::create(Fields::default(), b"fix".to_vec())),
        "---\nstatus: draft\nlabels: []\n---\nfix"
    );
}

#[test]
fn the_body_is_whatever_follows() {
    for body in
        ["", "\n", "text", "\n\n  text\n", "---\nstatus: merged\n---\n", "a\r\nb\r\n---\r\n", "\u{feff}x"]
    {
        let file = parsed(&format!("---\nstatus: idle\n---\n{body}"));
        assert_eq!(file.body(), body.as_bytes());
        assert_eq!(file.fields().status, TaskStatus::Idle);
    }
    let bytes = b"---\nstatus: idle\n---\ncaf\xe9 \0 \xff\n".as_slice();
    let mut file = TaskFile::parse(bytes).expect("a task file");
    file.set(running()).expect("a change");
    assert_eq!(file.to_bytes(), b"---\nstatus: running\n---\ncaf\xe9 \0 \xff\n");
}

#[test]
fn values_that_people_write_are_understood() {
    let file = parsed(
        "--- \t
status: 'stopped' # since Friday
labels:
- bug
- \"needs: care\"
base_branch: feature/x y
created_at: 2026-01-31 12:00:00
agent: >-
  claude-code
command: [sh, -c, 'echo \"a\"; exit 3']
session_id: 0123
last_exit:
  code: 3
  at: 2026-01-31
  host: laptop
---
",
    );
    assert_eq!(
        file.fields(),
        &Fields {
            base_branch: some("feature/x y"),
            status: TaskStatus::Stopped,
            labels: vec!["bug".to_owned(), "needs: care".to_owned()],
            created_at: some("2026-01-31 12:00:00"),
            agent: some("claude-code"),
            driver: None,
            command: Some(vec!["sh".to_owned(), "-c".to_owned(), "echo \"a\"; exit 3".to_owned()]),
            session_id: some("0123"),
            parent: None,
            last_exit: Some(LastExit {
                code: ExitCode::Code(3),
                raw: ExitCode::Code(3),
                at: some("2026-01-31"),
                asked: false,
            }),
        }
    );
    for (written, code) in [("-9", ExitCode::Signal(9)), ("unknown", ExitCode::Unknown)] {
        let file = parsed(&format!("---\nlast_exit: {written}\n---\n"));
        assert_eq!(file.fields().last_exit, Some(LastExit { code, raw: code, at: None, asked: false }));
    }
}

#[test]
fn an_exit_says_whether_somebody_asked_for_it() {
    for (written, asked) in [
        ("{code: -15, raw: 0}", true),
        ("{code: -15, raw: -15, asked: false}", false),
        ("{code: -9, raw: -9}", false),
        ("{code: -9, raw: -9, asked: true}", true),
        ("{code: 2, raw: 2, asked: perhaps}", false),
    ] {
        let exit = parsed(&format!("---\nlast_exit: {written}\n---\n")).fields().last_exit.clone().unwrap();
        assert_eq!(exit.asked, asked, "{written}");
        let mut file = parsed("---\nstatus: stopped\n---\n");
        file.set(Field::LastExit(Some(exit.clone()))).unwrap();
        assert_eq!(parsed(&text_of(&file)).fields().last_exit, Some(exit), "{written}");
    }
}

#[test]
fn a_change_touches_its_own_lines_only() {
    for (before, field, expected) in [
        // Replaced in place; the comment stays.
        ("status: draft # mine\nagent: codex", running(), "status: running # mine\nagent: codex"),
        ("status:   'draft'", running(), "status: running"),
        ("status:", running(), "status: running"),
        ("status: # not yet", running(), "status: running # not yet"),
        ("status: 'draft'   # it's mine", running(), "status: running   # it's mine"),
        ("status: \"dr\\x61ft\" # so \"to say\"", running(), "status: running # so \"to say\""),
        ("agent: 'it''s' # '", Field::Agent(some("a")), "agent: a # '"),
        ("agent: \"\\\"#\\\\\" # \"", Field::Agent(some("a")), "agent: a # \""),
        ("labels: [a, 'b]'] # [c]", Field::Labels(list("d")), "labels: [\"d\"] # [c]"),
        ("last_exit: {code: 1} # {}", Field::LastExit(None), ""),
        ("status : draft", running(), "status : running"),
        ("\"status\": draft", running(), "\"status\": running"),
        ("status: !!str draft", running(), "status: running"),
        ("  status: draft\n  x: 1", running(), "  status: running\n  x: 1"),
        // Added at the end.
        ("agent: codex\n# end\n", running(), "agent: codex\n# end\n\nstatus: running"),
        ("  agent: codex", running(), "  agent: codex\n  status: running"),
        ("x: |+\n  text\n\n", running(), "x: |+\n  text\n\n\nstatus: running"),
        // Several lines become one.
        (
            "labels:\n  - a # first\n  - b\n# next\nx: 1",
            Field::Labels(list("c")),
            "labels: [\"c\"]\n# next\nx: 1",
        ),
        ("labels:\n- a\n-\n\nx: 1", Field::Labels(list("c")), "labels: [\"c\"]\n\nx: 1"),
        ("labels: [a,\n  b\n  ] # both\nx: 1", Field::Labels(list("c")), "labels: [\"c\"]\nx: 1"),
        (
            "agent: |\n  codex\n  # no comment\n\n# comment\nx: 1",
            Field::Agent(some("a")),
            "agent: a\n\n# comment\nx: 1",
        ),
        ("agent: 'co\n  dex'\nx: 1", Field::Agent(some("a")), "agent: a\nx: 1"),
        ("agent: co\n  dex\nx: 1", Field::Agent(some("a")), "agent: a\nx: 1"),
        ("agent:\n  codex\nx: 1", Field::Agent(some("a")), "agent: a\nx: 1"),
        // Removed.
        ("agent: codex # old\nx: 1", Field::Agent(None), "x: 1"),
        ("x: 1\nagent: codex", Field::Agent(None), "x: 1"),
        ("command:\n- a\n- b\n\nx: 1", Field::Command(None), "\nx: 1"),
        // Characters of several bytes before and after the value.
        ("\"stat\\u0075s\": \"dr\\u0061ft\" # größe ✓", running(), "\"stat\\u0075s\": running # größe ✓"),
    ] {
        let written = after(&format!("---\n{before}\n---\nbody"), field);
        let expected = if expected.is_empty() { String::new() } else { format!("{expected}\n") };
        assert_eq!(written, format!("---\n{expected}---\nbody"), "{before:?}");
    }
}

#[test]
fn setting_the_same_value_changes_nothing() {
    for text in
        ["---\nstatus:   'running'   # odd\n---\n", "---\nlabels:\n  - a\n  - b\nstatus: running\n---\n"]
    {
        assert_eq!(after(text, running()), text);
    }
    assert_eq!(
        after("---\nlabels: [ a , b ]\n---\n", Field::Labels(list("a b"))),
        "---\nlabels: [ a , b ]\n---\n"
    );
    assert_eq!(after("---\n---\n", Field::Status(TaskStatus::Draft)), "---\n---\n");
}

#[test]
fn line_ends_and_a_byte_order_mark_survive() {
    assert_eq!(
        after("\u{feff}---\r\nstatus: draft\r\nx: 1\r\n---\r\nbody\n", running()),
        "\u{feff}---\r\nstatus: running\r\nx: 1\r\n---\r\nbody\n"
    );
    assert_eq!(
        after("---\r\nlabels:\r\n  - a\r\nx: 1\r\n---\r\n", Field::Labels(list("b"))),
        "---\r\nlabels: [\"b\"]\r\nx: 1\r\n---\r\n"
    );
    assert_eq!(after("---\r\n---\r\n", running()), "---\r\nstatus: running\r\n---\r\n");
    // The closing `---` is the last line of the file, without a newline.
    assert_eq!(after("---\n---", running()), "---\nstatus: running\n---");
    // Mixed line ends, as after an edit on another system.
    assert_eq!(after("---\nstatus: draft\r\nx: 1\n---\n", running()), "---\nstatus: running\r\nx: 1\n---\n");
}

#[test]
fn text_that_yaml_would_misread_is_quoted() {
    for text in [
        "",
        " ",
        "~",
        "null",
        "True",
        "yes",
        "N",
        "off",
        "1",
        "-1",
        "1e3",
        "0x1f",
        "1_000",
        "12:30:45",
        "2026-01-31",
        ".inf",
        "=",
        "<<",
        "a: b",
        "a #b",
        "#a",
        "- a",
        "-",
        "--- a",
        "...",
        "? a",
        ": a",
        "[a",
        "{a}",
        "*a",
        "&a",
        "!a",
        "|",
        ">",
        "%a",
        "@a",
        "`a",
        "'a'",
        "\"a\"",
        "a\\b",
        "a\nb",
        "a\r\nb",
        "\ta",
        "a ",
        "größe",
        "✓ 🦀",
        "\u{0}\u{7}\u{1b}\u{7f}",
        "\u{85}\u{2028}\u{2029}",
        "\u{feff}a",
        "\u{fffe}\u{ffff}",
        "a,b]",
    ] {
        let file = TaskFile::create(
            Fields {
                agent: some(text),
                labels: vec![text.to_owned(), text.to_owned()],
                last_exit: Some(LastExit {
                    code: ExitCode::Unknown,
                    raw: ExitCode::Unknown,
                    at: some(text),
                    asked: false,
                }),
                ..Fields::default()
            },
            Vec::new(),
        );
        assert_eq!(parsed(&text_of(&file)), file, "{text:?}");
        let line = text_of(&file).lines().find_map(|line| line.strip_prefix("agent: ").map(str::to_owned));
        assert!(
            line.is_some_and(|value| value.starts_with('"') && value.is_ascii() == text.is_ascii()
                || value.starts_with('"')),
            "{text:?}"
        );
    }
    for text in ["main", "agency/1-fix-login", "claude-code", "origin/v1.2", "user@host", "c++"] {
        assert_eq!(yaml::scalar(text), text);
    }
}

#[test]
fn a_broken_file_gives_a_line_and_a_problem() {
    for (text, expected, hint) in [
        ("", "line 1: the file does not begin with `---`", "begin the file"),
        ("fix it\n", "line 1: the file does not begin with `---`", "begin the file"),
        ("\n---\n---\n", "line 1: the file does not begin with `---`", "begin the file"),
        ("----\n---\n", "line 1: the file does not begin with `---`", "begin the file"),
        ("---\nstatus: draft\n", "line 1: the front matter has no second `---` line", "end the front matter"),
        (
            "---\nstatus: draft\nagent: [a\n---\n",
            "line 3: while parsing a flow sequence, expected ',' or ']'",
            "quote",
        ),
        ("---\nstatus: draft\nagent codex\n---\n", "line 3: simple key expect ':'", "quote"),
        ("---\nagent: a: b\n---\n", "line 2: mapping values are not allowed in this context", "quote"),
        ("---\nx: 1\n\nagent: \"a\n---\n", "line 4: while scanning a quoted scalar", "quote"),
        ("---\nx: *y\n---\n", "line 2: while parsing node, found unknown anchor", "quote"),
        (
            "---\njust text\n---\n",
            "line 2: the front matter is not a list of `key: value` lines",
            "write one",
        ),
        ("---\n- a\n- b\n---\n", "line 2: the front matter is not a list of", "write one"),
        ("---\n{status: draft}\n---\n", "line 2: the front matter is not a list of", "write one"),
        ("---\n{\n status: draft\n}\n---\n", "line 2: the front matter is not a list of", "write one"),
        ("---\nx: 1\n? status\n: draft\n---\n", "line 3: the front matter is not a list of", "write one"),
        ("---\n[a]: 1\n---\n", "line 2: the front matter is not a list of", "write one"),
        ("---\nx: 1\n...\ny: 2\n---\n", "line 4: the front matter is not a list of", "write one"),
        ("---\nx: 1\ny: 2\nx: 3\n---\n", "line 4: `x` occurs twice", "delete one of the two `x`"),
        (
            "---\nstatus: bananas\n---\n",
            "line 2: `status` must be draft, running, idle, stopped, completed, failed, reviewed or merged, not `bananas`",
            "correct `status`",
        ),
        (
            "---\nx: 1\ndriver: tty\n---\n",
            "line 3: `driver` must be terminal, stream-json or acp, not `tty`",
            "correct",
        ),
        (
            "---\nlabels: bug\n---\n",
            "line 2: `labels` must be a list such as [bug, ui], not `bug`",
            "correct",
        ),
        (
            "---\nlabels: [[a]]\n---\n",
            "line 2: `labels` must be a list such as [bug, ui], not something",
            "correct",
        ),
        (
            "---\ncommand: make test\n---\n",
            "line 2: `command` must be a list such as [make, test]",
            "correct",
        ),
        (
            "---\ncommand: []\n---\n",
            "line 2: `command` must be a list such as [make, test], not a list",
            "correct",
        ),
        ("---\nagent: [a]\n---\n", "line 2: `agent` must be the name of an agent, not a list", "correct"),
        (
            "---\nagent: {a: b}\n---\n",
            "line 2: `agent` must be the name of an agent, not a mapping",
            "correct",
        ),
        (
            "---\nlast_exit: soon\n---\n",
            "line 2: `last_exit` must be an exit such as {code: -15, raw: 0}",
            "correct",
        ),
        ("---\nlast_exit: {raw: 0}\n---\n", "line 2: `last_exit` must be an exit such as", "correct"),
        (
            "---\nx: a\rb\n---\n",
            "line 2: a line of the front matter ends with a carriage return only",
            "save the file",
        ),
    ] {
        let error = TaskFile::parse(text.as_bytes()).expect_err(text);
        assert!(error.to_string().starts_with(expected), "{error}\nfor {text:?}");
        assert!(error.hint().starts_with(hint), "{}\nfor {text:?}", error.hint());
    }
    let error = TaskFile::parse(b"---\nx: 1\ny: \xff\n---\n").expect_err("not UTF-8");
    assert_eq!(error.to_string(), "line 3: the front matter is not UTF-8");
}

#[test]
fn connected_keys_are_refused_and_left_alone() {
    let text = "---\nagent: &a codex\nreviewer: *a\n---\n";
    let mut file = parsed(text);
    let error = file.set(Field::Agent(some("fake"))).expect_err("an alias would dangle");
    assert_eq!(error.to_string(), "line 2: `agent` cannot be changed without changing other keys");
    assert_eq!(error.hint(), "write the value of `agent` on one line, without anchors (`&`)");
    assert_eq!(text_of(&file), text);
    file.set(running()).expect("another key");
    assert_eq!(text_of(&file), "---\nagent: &a codex\nreviewer: *a\nstatus: running\n---\n");
}

#[test]
fn hostile_front_matter_is_refused_not_fatal() {
    for (open, close) in
        [("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", ""), ("a:\n ", ""), ("!!x ", ""), ("&a ", "")]
    {
        let deep = format!("---\nx: {}1{}\n---\n", open.repeat(20_000), close.repeat(20_000));
        // It may be accepted or refused, but the parser must return.
        if let Ok(file) = TaskFile::parse(deep.as_bytes()) {
            assert_eq!(text_of(&file), deep);
        }
    }
}

#[test]
fn prompts_do_not_reach_logs() {
    assert!(!format!("{:?}", parsed("---\n---\nsecret")).contains("secret"));
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z0-9 :#'\"\\[\\]{},&*!|>%@`~\n\r\t-]{0,12}", "[a-z/-]{1,10}"]
}

fn any_list() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(any_text(), 0..4)
}

fn any_exit() -> impl Strategy<Value = ExitCode> {
    prop_oneof![
        (0..=i32::MAX).prop_map(ExitCode::Code),
        (1..=i32::MAX).prop_map(ExitCode::Signal),
        Just(ExitCode::Unknown)
    ]
}

fn any_field() -> impl Strategy<Value = Field> {
    let text = || prop::option::of(any_text());
    let exit = (any_exit(), any_exit(), text(), any::<bool>()).prop_map(|(code, raw, at, asked)| LastExit {
        code,
        raw,
        at,
        asked,
    });
    prop_oneof![
        text().prop_map(Field::BaseBranch),
        prop::sample::select(&TaskStatus::ALL[..]).prop_map(Field::Status),
        any_list().prop_map(Field::Labels),
        text().prop_map(Field::CreatedAt),
        text().prop_map(Field::Agent),
        prop::option::of(prop::sample::select(&Driver::ALL[..])).prop_map(Field::Driver),
        prop::option::of(any_list()).prop_map(Field::Command),
        text().prop_map(Field::SessionId),
        prop::option::of(exit).prop_map(Field::LastExit),
    ]
}

/// Lines of unknown keys, in all forms that people use.
const STRANGERS: [&str; 9] = [
    "# a comment\n",
    "\n",
    "priority: 3 # high\n",
    "owner: {name: ada, mail: 'a@b'}\n",
    "links:\n  - https://example.org/#x\n  -   two: [1,\n       2]\n",
    "notes: |\n  # not a comment\n   deeper\n\n  status: merged\n",
    "kept: |+\n  text\n\n",
    "folded: >\n  one\n  two\n  # three\n",
    "plain: one\n  two # end\n",
];

/// Front matter with unknown keys and keys of Agency, in any order and style.
fn any_head() -> impl Strategy<Value = (Vec<&'static str>, String)> {
    let strangers = prop::sample::subsequence(&STRANGERS[..], 0..=STRANGERS.len());
    let ours = prop::sample::subsequence(
        vec![
            "status: 'idle' # here\n",
            "labels:\n  - a\n  # between\n  - b # c\n",
            "agent: >-\n  codex\n",
            "command: [sh, # one\n  -c]\n",
            "session_id: \"a\\\n  b\"\n",
            "last_exit:\n  code: 1\n",
            "base_branch:\n",
        ],
        0..=7,
    );
    (strangers, ours).prop_flat_map(|(strangers, ours)| {
        let all: Vec<&str> = strangers.iter().copied().chain(ours).collect();
        (Just(strangers), Just(all).prop_shuffle().prop_map(|lines| lines.concat()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_are_read_or_refused_and_come_back_the_same(bytes in any::<Vec<u8>>()) {
        let framed = [b"---\n", bytes.as_slice(), b"\n---\n", &bytes].concat();
        for bytes in [bytes, framed] {
            if let Ok(file) = TaskFile::parse(&bytes) {
                prop_assert_eq!(file.to_bytes(), bytes);
            }
        }
    }

    #[test]
    fn any_front_matter_text_is_read_or_refused(lines in prop::collection::vec("[ a-c:#'\"\\[\\]{},&*!|>?\t-]{0,10}", 0..6)) {
        let text = format!("---\n{}\n---\nbody", lines.join("\n"));
        // A generated line can be `---` itself, and then closes the front matter early.
        let closing = lines.iter().position(|line| line.trim_end() == "---");
        let body = closing.map_or("body".to_owned(), |at| {
            let rest: String = lines[at + 1..].iter().map(|line| format!("{line}\n")).collect();
            format!("{rest}---\nbody")
        });
        if let Ok(mut file) = TaskFile::parse(text.as_bytes()) {
            prop_assert_eq!(text_of(&file), text);
            if file.set(running()).is_ok() {
                prop_assert_eq!(parsed(&text_of(&file)), file.clone());
                prop_assert_eq!(file.body(), body.as_bytes());
            }
        }
    }

    #[test]
    fn a_created_file_reads_back(fields in prop::collection::vec(any_field(), 0..9), body in any::<Vec<u8>>()) {
        let mut made = Fields::default();
        fields.into_iter().for_each(|field| made.apply(field));
        let file = TaskFile::create(made, body);
        prop_assert_eq!(TaskFile::parse(&file.to_bytes()), Ok(file));
    }

    #[test]
    fn a_change_keeps_everything_else(
        (strangers, head) in any_head(),
        crlf in any::<bool>(),
        changes in prop::collection::vec(any_field(), 1..8),
        body in any::<Vec<u8>>(),
    ) {
        let ended = |text: &str| if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        let bytes = [ended(&format!("---\n{head}---\n")).as_bytes(), &body].concat();
        let mut file = TaskFile::parse(&bytes).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let mut expected = file.fields().clone();
        for change in changes {
            expected.apply(change.clone());
            file.set(change).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(file.fields(), &expected);
            prop_assert_eq!(file.body(), &body);
            let read_back = TaskFile::parse(&file.to_bytes());
            prop_assert_eq!(read_back.as_ref(), Ok(&file));
        }
        let written = file.to_bytes();
        let head = String::from_utf8_lossy(&written[..written.len() - body.len()]).into_owned();
        for stranger in strangers {
            prop_assert!(head.contains(&ended(stranger)), "{stranger:?} is gone from\n{head}");
        }
    }
}
