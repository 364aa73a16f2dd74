//! Reads the sources of the workspace as words and signs, without comments and tests, for the tests that guard their shape.
//!
//! No parser: it knows modules, attributes, brackets and paths, and nothing of types or macros.

#![allow(dead_code, reason = "every test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

pub mod lexer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lexer::Token;

/// One library or program: the modules that its root declares, directly or through others.
pub struct Unit {
    /// `agency-daemon`; `agency-keeper/main` for a program beside a library; `agency-testkit/fake-agent` for one in `src/bin`.
    pub name: String,
    /// By path: `""` is the root, `"world::merges"` a module.
    pub modules: BTreeMap<String, Module>,
}

pub struct Module {
    pub file: String,
    /// Without comments, and without items that only tests compile.
    pub tokens: Vec<Token>,
}

pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All libraries and programs below `crates`.
pub fn units() -> Vec<Unit> {
    let mut units = Vec::new();
    for folder in entries(&workspace().join("crates")) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let src = folder.join("src");
        let (library, program) = (src.join("lib.rs"), src.join("main.rs"));
        match (library.exists(), program.exists()) {
            (true, true) => {
                units.push(Unit::read(&name, &library));
                units.push(Unit::read(&format!("{name}/main"), &program));
            }
            (true, false) => units.push(Unit::read(&name, &library)),
            (false, _) => units.push(Unit::read(&name, &program)),
        }
        for program in entries(&src.join("bin")) {
            let stem = program.file_stem().unwrap().to_string_lossy().into_owned();
            let root = if program.is_dir() { program.join("main.rs") } else { program };
            units.push(Unit::read(&format!("{name}/{stem}"), &root));
        }
    }
    units
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(found) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = found.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

impl Unit {
    fn read(name: &str, root: &Path) -> Unit {
        let mut unit = Unit { name: name.to_owned(), modules: BTreeMap::new() };
        unit.add("", root, root.parent().unwrap());
        unit
    }

    /// `folder` holds the files of the modules that this file declares.
    fn add(&mut self, path: &str, file: &Path, folder: &Path) {
        let text = std::fs::read_to_string(file).unwrap_or_else(|err| panic!("{}: {err}", file.display()));
        let module = Module::of(&file.strip_prefix(workspace()).unwrap().display().to_string(), &text);
        for child in declared(&module.tokens) {
            let files = [folder.join(format!("{child}.rs")), folder.join(&child).join("mod.rs")];
            let file = files.iter().find(|file| file.exists());
            let file =
                file.unwrap_or_else(|| panic!("no file for the module {child} in {}", folder.display()));
            self.add(&join(path, &child), file, &folder.join(&child));
        }
        self.modules.insert(path.to_owned(), module);
    }
}

impl Module {
    pub fn of(file: &str, text: &str) -> Module {
        Module { file: file.to_owned(), tokens: without_tests(&lexer::tokens(text)) }
    }
}

pub fn join(path: &str, child: &str) -> String {
    if path.is_empty() { child.to_owned() } else { format!("{path}::{child}") }
}

/// The names in `mod name;`.
fn declared(tokens: &[Token]) -> Vec<String> {
    let windows = tokens.windows(3).filter(|part| part[0].is("mod") && part[2].is(";"));
    windows.map(|part| part[1].text.clone()).collect()
}

/// Drops every item with `#[cfg(test)]` or `#[test]`.
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let attribute = attribute_at(tokens, at);
        if attribute.is_some_and(is_for_tests) {
            at = end_of_item(tokens, at);
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// The tokens of `#[…]` between its brackets, if one begins here.
pub fn attribute_at(tokens: &[Token], at: usize) -> Option<&[Token]> {
    let begins = tokens[at].is("#") && tokens.get(at + 1).is_some_and(|token| token.is("["));
    begins.then(|| &tokens[at + 2..end_of_brackets(tokens, at + 1) - 1])
}

fn is_for_tests(attribute: &[Token]) -> bool {
    let words: Vec<&str> = attribute.iter().map(|token| token.text.as_str()).collect();
    matches!(words.as_slice(), ["test"] | ["cfg", "(", "test", ")"] | ["cfg", "(", "all", "(", "test", ..])
}

/// Behind the `;` or the braces that end the item, whose attributes begin here.
fn end_of_item(tokens: &[Token], mut at: usize) -> usize {
    while at < tokens.len() {
        match tokens[at].text.as_str() {
            ";" => return at + 1,
            "{" => return end_of_brackets(tokens, at),
            "(" | "[" => at = end_of_brackets(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// Behind the bracket that closes the one here.
pub fn end_of_brackets(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    panic!("line {}: a bracket that nothing closes", tokens[open].line);
}
