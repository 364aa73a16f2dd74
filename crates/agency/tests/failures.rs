//! Every failure has a code: `Failure::new(…)` and `Failure::from_error(…)` are followed by `.code(…)`.
//!
//! The code `failed` says nothing to a program. Only a daemon of another version may send it.

mod source;

use source::end_of_brackets;
use source::lexer::{Token, tokens};

/// Files with a `Failure` that is another type, or that define this one.
const OTHER: &[&str] = &["crates/agency-api/src/failure.rs", "crates/agency-keeper/"];

#[test]
fn every_failure_has_a_code() {
    let mut problems = Vec::new();
    for unit in source::units() {
        for module in
            unit.modules.values().filter(|module| !OTHER.iter().any(|other| module.file.starts_with(other)))
        {
            problems
                .extend(without_code(&module.tokens).iter().map(|line| format!("{}:{line}", module.file)));
        }
    }
    problems.sort();
    problems.dedup();
    assert!(problems.is_empty(), "failures without a code:\n{}", problems.join("\n"));
}

/// The lines on which a failure without a code begins.
fn without_code(tokens: &[Token]) -> Vec<usize> {
    let is_failure = |at: &usize| {
        let words: Vec<&str> = tokens[*at..].iter().take(4).map(|token| token.text.as_str()).collect();
        matches!(words.as_slice(), ["Failure", "::", "new" | "from_error", "("])
    };
    let begins = (0..tokens.len()).filter(is_failure);
    begins.filter(|at| !has_code(tokens, at + 3)).map(|at| tokens[at].line).collect()
}

/// Whether one of the methods that are called on the value sets the code. `open`: the bracket of the first call.
fn has_code(tokens: &[Token], open: usize) -> bool {
    let mut end = end_of_brackets(tokens, open);
    loop {
        let next: Vec<&str> = tokens[end..].iter().take(3).map(|token| token.text.as_str()).collect();
        match next.as_slice() {
            [".", "code", "("] => return true,
            [".", _, "("] => end = end_of_brackets(tokens, end + 2),
            _ => return false,
        }
    }
}

#[test]
fn a_failure_without_a_code_is_found() {
    let text = r#"
        let one = Failure::new(format!("a {b}")).because("c").code(Code::Busy);
        let two = Failure::new("a").because("c");
        let three = Failure::from_error(&err, err.hint());
        let four = Failure::from_error(&err, None::<String>).code(code(&err)).hint("d");
    "#;
    assert_eq!(without_code(&tokens(text)), [3, 4]);
}
