//! Structs and enums stay small: at most 16 fields, at most 30 variants.
//!
//! A type that grows beyond that has a second subject. Find it and name it, instead of adding an exception.

mod source;

use std::collections::BTreeMap;

use source::lexer::Token;
use source::{attribute_at, end_of_brackets};

const MOST_FIELDS: usize = 16;
const MOST_VARIANTS: usize = 30;

/// Crate, type, and why it may be larger. Delete a row as soon as the test says so.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("agency", "Command", "one variant per subcommand"),
    ("agency-api", "Task", "a task as callers see it; the API promises one flat object"),
    ("agency-core", "Agent", "one field per key of `[agents.NAME]`"),
    ("agency-core", "Detector", "one field per kind of evidence"),
    ("agency-terminal", "Snapshot", "everything that a terminal shows, as one value to compare"),
    ("agency-workspace", "OperationCause", "one variant per reason why git or jj cannot do it"),
];

#[test]
fn structs_and_enums_stay_small() {
    let large = large_types();
    let mut problems = Vec::new();
    for ((unit, name), problem) in &large {
        let is_excused = EXCEPTIONS.iter().any(|row| row.0 == unit && row.1 == name);
        problems.extend((!is_excused).then(|| problem.clone()));
    }
    for (unit, name, _) in EXCEPTIONS {
        let is_needed = large.contains_key(&(unit.to_string(), name.to_string()));
        problems.extend(
            (!is_needed).then(|| format!("{unit}: {name} is small enough now: delete the exception")),
        );
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// By crate and name, with a sentence about the size.
fn large_types() -> BTreeMap<(String, String), String> {
    let mut large = BTreeMap::new();
    for unit in source::units() {
        for module in unit.modules.values() {
            for found in types_in(&module.tokens).into_iter().filter(Type::is_large) {
                let Type { keyword, name, parts, line } = &found;
                let problem =
                    format!("{}:{line}: {keyword} {name} has {parts} {}", module.file, found.unit());
                large.insert((unit.name.clone(), name.clone()), problem);
            }
        }
    }
    large
}

#[derive(Debug, PartialEq)]
struct Type {
    keyword: String,
    name: String,
    parts: usize,
    line: usize,
}

impl Type {
    fn is_large(&self) -> bool {
        self.parts > if self.keyword == "enum" { MOST_VARIANTS } else { MOST_FIELDS }
    }

    fn unit(&self) -> &str {
        if self.keyword == "enum" { "variants" } else { "fields" }
    }
}

fn types_in(tokens: &[Token]) -> Vec<Type> {
    let starts = tokens
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| matches!(pair[0].text.as_str(), "struct" | "enum") && pair[1].is_word());
    let types = starts.map(|(at, pair)| Type {
        keyword: pair[0].text.clone(),
        name: pair[1].text.clone(),
        parts: body_of(tokens, at).map_or(0, count_parts),
        line: pair[0].line,
    });
    types.collect()
}

/// Between the brackets of a struct or an enum; none for `struct Name;`.
fn body_of(tokens: &[Token], from: usize) -> Option<&[Token]> {
    let open =
        from + tokens[from..].iter().position(|token| ["{", "(", ";"].contains(&token.text.as_str()))?;
    (!tokens[open].is(";")).then(|| &tokens[open + 1..end_of_brackets(tokens, open) - 1])
}

/// How many parts the commas separate; commas in brackets and between `<` and `>` separate none.
fn count_parts(body: &[Token]) -> usize {
    let (mut at, mut angles, mut parts, mut is_empty) = (0, 0usize, 0, true);
    while at < body.len() {
        if attribute_at(body, at).is_some() {
            at = end_of_brackets(body, at + 1);
            continue;
        }
        match body[at].text.as_str() {
            "," if angles == 0 => is_empty = true,
            text => {
                parts += usize::from(std::mem::take(&mut is_empty));
                match text {
                    "<" => angles += 1,
                    ">" => angles -= 1,
                    "(" | "[" | "{" => at = end_of_brackets(body, at) - 1,
                    _ => {}
                }
            }
        }
        at += 1;
    }
    parts
}

#[test]
fn fields_and_variants_are_counted() {
    let text = "
        struct Unit;
        pub struct Pair<T>(pub Vec<(T, u8)>, fn(u8, u8) -> u8);
        /// With a comment, and more.
        struct Named<T> where T: Into<String> {
            #[serde(default, rename = \"a\")] pub(crate) a: BTreeMap<u8, Vec<T>>, // one, two
            r#type: [u8; 3],
        }
        enum Kind { One = 1, Two { a: u8, b: u8 }, #[default] Three(u8, u8), }
    ";
    let found = types_in(&source::lexer::tokens(text));
    let counted: Vec<(&str, usize)> = found.iter().map(|found| (found.name.as_str(), found.parts)).collect();
    assert_eq!(counted, [("Unit", 0), ("Pair", 2), ("Named", 2), ("Kind", 3)]);
}
