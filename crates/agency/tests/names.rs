//! Names keep their promises: a function whose name asks (`is_`, `has_`, `was_`) changes nothing, and answers.

#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

mod source;

use std::path::{Path, PathBuf};

use source::end_of_brackets;
use source::lexer::{Token, tokens};

/// File, function, and why it may break the rule. Delete a row as soon as the test says so.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

#[test]
fn a_name_that_asks_changes_nothing_and_answers() {
    let mut problems = Vec::new();
    let mut excused = Vec::new();
    for file in rust_files() {
        let text = std::fs::read_to_string(source::workspace().join(&file)).unwrap();
        for Liar { line, name, problem } in liars_in(&tokens(&text)) {
            match EXCEPTIONS.iter().find(|row| Path::new(row.0) == file && row.1 == name) {
                Some(row) => excused.push(row),
                None => problems.push(format!("{}:{line}: {name} {problem}", file.display())),
            }
        }
    }
    let unneeded = EXCEPTIONS.iter().filter(|row| !excused.contains(row));
    problems.extend(unneeded.map(|row| format!("{}: {} is fine now: delete the exception", row.0, row.1)));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_search_finds_both_kinds() {
    let text = "
        fn is_set(&self) -> bool { true }
        fn is_old(&mut self) -> bool { true }
        fn has_all<T>(&'a mut self, more: T) -> bool { true }
        pub(super) fn was_allowed(&self, name: &str) -> Result<(), Failure> { Ok(()) }
        fn has_name(&self) -> Result<bool, Failure> { Ok(true) }
        fn island(&mut self) {}
    ";
    let found: Vec<String> = liars_in(&tokens(text)).into_iter().map(|liar| liar.name).collect();
    assert_eq!(found, ["is_old", "has_all", "was_allowed"]);
}

struct Liar {
    line: usize,
    name: String,
    problem: &'static str,
}

fn liars_in(tokens: &[Token]) -> Vec<Liar> {
    let asks = |name: &str| ["is_", "has_", "was_"].iter().any(|start| name.starts_with(start));
    let functions = tokens
        .iter()
        .enumerate()
        .filter(|(at, token)| *at > 0 && tokens[at - 1].is("fn") && asks(&token.text));
    functions
        .filter_map(|(at, token)| {
            let problem = problem_of(&tokens[at + 1..])?;
            Some(Liar { line: token.line, name: token.text.clone(), problem })
        })
        .collect()
}

/// Reads a function from the sign after its name.
fn problem_of(rest: &[Token]) -> Option<&'static str> {
    let open = rest.iter().position(|token| token.is("("))?;
    let close = end_of_brackets(rest, open);
    let arguments: Vec<&str> = rest[open..close]
        .iter()
        .map(|token| token.text.as_str())
        .filter(|text| !text.starts_with('\''))
        .collect();
    if arguments.starts_with(&["(", "&", "mut", "self"]) {
        return Some("takes `&mut self`: name it after what it does");
    }
    let returned: Vec<&str> = rest[close..].iter().take(5).map(|token| token.text.as_str()).collect();
    let is_check = returned == ["->", "Result", "<", "(", ")"];
    is_check.then_some("returns `Result<(), …>`: name it after what it refuses")
}

/// All Rust files of the crates, with their tests, relative to the workspace.
fn rust_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut next = vec![source::workspace().join("crates")];
    while let Some(path) = next.pop() {
        if path.is_dir() {
            next.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            files.push(path.strip_prefix(source::workspace()).unwrap().to_owned());
        }
    }
    files.sort();
    files
}
