//! No import cycles: neither between the modules of a crate nor between the parts of one module.
//!
//! A module is a file together with the folder of the same name. A file that declares modules is not a node beside
//! them: parents use their parts and parts use their parents. Method calls need no import, so this test cannot see them.

#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

mod source;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use source::lexer::Token;
use source::{Module, Unit, end_of_brackets, join};

/// Modules that are part of a cycle today: crate, the module that declares them (`""` for the crate's root), and their names.
/// Delete a name as soon as the test says so; do not add any.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// From which module to which, and one line that makes the connection.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

#[test]
fn modules_do_not_import_each_other_in_a_cycle() {
    let mut problems = Vec::new();
    let mut known: BTreeSet<(String, String)> = BTreeSet::new();
    for unit in source::units() {
        for (parent, imports) in graphs(&unit) {
            let allowed = exceptions(&unit.name, &parent);
            known.insert((unit.name.clone(), parent.clone()));
            let found = compare(&imports, &allowed);
            problems.extend(found.iter().map(|problem| at(&unit.name, &parent, problem)));
        }
    }
    for (unit, parent, _) in EXCEPTIONS {
        let is_known = known.contains(&(unit.to_string(), parent.to_string()));
        problems.extend((!is_known).then(|| at(unit, parent, "no such module: delete the exception")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn at(unit: &str, parent: &str, problem: &str) -> String {
    match parent {
        "" => format!("{unit}: {problem}"),
        parent => format!("{unit}, in {parent}: {problem}"),
    }
}

fn exceptions(unit: &str, parent: &str) -> BTreeSet<String> {
    let rows = EXCEPTIONS.iter().filter(|row| row.0 == unit && row.1 == parent);
    rows.flat_map(|row| row.2.split(' ')).map(str::to_owned).collect()
}

/// Circles that no exception covers, and exceptions that no cycle needs.
fn compare(imports: &Imports, allowed: &BTreeSet<String>) -> Vec<String> {
    let cycles: BTreeMap<&String, Vec<String>> =
        imports.keys().filter_map(|name| Some((name, cycle(imports, name)?))).collect();
    let stale = allowed.iter().filter(|name| !cycles.contains_key(name));
    let stale: Vec<String> =
        stale.map(|name| format!("{name} is in no cycle any more: delete the exception")).collect();
    let mut reported: BTreeSet<String> = BTreeSet::new();
    let mut problems: Vec<String> = Vec::new();
    for (name, path) in cycles {
        let is_new = !allowed.contains(name) && !reported.contains(name);
        if is_new {
            problems.push(describe(imports, &path));
            reported.extend(path);
        }
    }
    problems.extend(stale);
    problems
}

/// The shortest way from a module back to itself.
fn cycle(imports: &Imports, from: &str) -> Option<Vec<String>> {
    let mut came_from: BTreeMap<String, String> = BTreeMap::new();
    let mut next = VecDeque::from([from.to_owned()]);
    while let Some(module) = next.pop_front() {
        for target in imports.get(&module).into_iter().flat_map(|targets| targets.keys()) {
            if target == from {
                let mut path = vec![module.clone()];
                while let Some(before) = came_from.get(path.last().unwrap()) {
                    path.push(before.clone());
                }
                path.reverse();
                return Some(path);
            }
            if !came_from.contains_key(target) {
                came_from.insert(target.clone(), module.clone());
                next.push_back(target.clone());
            }
        }
    }
    None
}

fn describe(imports: &Imports, path: &[String]) -> String {
    let mut text = format!("cycle {} → {}", path.join(" → "), path[0]);
    for (at, from) in path.iter().enumerate() {
        let to = &path[(at + 1) % path.len()];
        text += &format!("\n    {from} → {to}: {}", imports[from][to]);
    }
    text
}

/// For the root and each module with parts: the imports between these parts.
fn graphs(unit: &Unit) -> BTreeMap<String, Imports> {
    let names = Names::of(unit);
    let mut graphs: BTreeMap<String, Imports> = BTreeMap::new();
    for path in unit.modules.keys().filter(|path| !path.is_empty()) {
        let (parent, name) = path.rsplit_once("::").unwrap_or(("", path));
        graphs.entry(parent.to_owned()).or_default().entry(name.to_owned()).or_default();
    }
    for (path, module) in &unit.modules {
        for (segments, line) in paths_in(path, module) {
            let place = format!("{}:{line}", module.file);
            for target in names.resolve(&segments) {
                connect(&mut graphs, path, &target, &place);
            }
        }
    }
    graphs
}

/// Two modules meet in the deepest module that holds both; the import counts between its parts.
fn connect(graphs: &mut BTreeMap<String, Imports>, from: &str, to: &str, place: &str) {
    let (mut from, mut to) = (segments(from), segments(to));
    let mut parent = String::new();
    while let (Some(one), Some(other)) = (from.pop_front(), to.pop_front()) {
        if one != other {
            let imports = graphs.get_mut(&parent).unwrap().get_mut(&one).unwrap();
            imports.entry(other).or_insert_with(|| place.to_owned());
            return;
        }
        parent = join(&parent, &one);
    }
}

fn segments(path: &str) -> VecDeque<String> {
    path.split("::").filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
}

/// Which names a module imports, so that a path through a re-export leads to the module that defines the item.
struct Names<'a> {
    unit: &'a Unit,
    imported: BTreeMap<&'a str, Vec<Import>>,
}

/// `use path as name`; the name is `*` if it imports all names.
struct Import {
    name: String,
    path: Vec<String>,
}

impl<'a> Names<'a> {
    fn of(unit: &'a Unit) -> Names<'a> {
        let imports = unit.modules.iter().map(|(path, module)| {
            let uses = use_trees(path, module).into_iter();
            (path.as_str(), uses.map(|(path, name, _)| Import { name, path }).collect())
        });
        Names { unit, imported: imports.collect() }
    }

    /// The modules that a path passes through or ends in.
    fn resolve(&self, segments: &[String]) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        self.walk(segments, 8, &mut found);
        found
    }

    /// `steps` bounds re-exports that lead to each other.
    fn walk(&self, segments: &[String], steps: usize, found: &mut BTreeSet<String>) {
        let mut module = String::new();
        for (at, segment) in segments.iter().enumerate() {
            let child = join(&module, segment);
            if self.unit.modules.contains_key(&child) {
                module = child;
                continue;
            }
            let mut imports = self.imported.get(module.as_str()).into_iter().flatten();
            let import = imports.find(|import| import.name == *segment);
            if let (Some(import), true) = (import, steps > 0) {
                let path: Vec<String> = import.path.iter().chain(&segments[at + 1..]).cloned().collect();
                self.walk(&path, steps - 1, found);
            }
            break;
        }
        found.insert(module);
    }
}

/// Every path in a module that begins with `crate`, `self` or `super`, from the root on, with its line.
fn paths_in(path: &str, module: &Module) -> Vec<(Vec<String>, usize)> {
    let uses = use_trees(path, module).into_iter().map(|(path, _, line)| (path, line));
    let mut found: Vec<(Vec<String>, usize)> = uses.collect();
    let mut at = Position::new(path);
    for (index, token) in module.tokens.iter().enumerate() {
        at.pass(&module.tokens, index);
        let begins = matches!(token.text.as_str(), "crate" | "super" | "self")
            && followed_by(&module.tokens, index, "::");
        let is_inner = index > 0 && module.tokens[index - 1].is("::");
        if begins && !is_inner {
            let written = written_path(&module.tokens, index);
            found.push((at.absolute(&written), token.line));
        }
    }
    found
}

fn followed_by(tokens: &[Token], at: usize, text: &str) -> bool {
    tokens.get(at + 1).is_some_and(|token| token.is(text))
}

fn written_path(tokens: &[Token], mut at: usize) -> Vec<String> {
    let mut path = vec![tokens[at].text.clone()];
    while followed_by(tokens, at, "::") && tokens.get(at + 2).is_some_and(|token| token.is_word()) {
        at += 2;
        path.push(tokens[at].text.clone());
    }
    path
}

/// All leaves of all `use` items: the path from the root on, the name it gets here, and the line.
fn use_trees(path: &str, module: &Module) -> Vec<(Vec<String>, String, usize)> {
    let mut found = Vec::new();
    let mut at = Position::new(path);
    for (index, token) in module.tokens.iter().enumerate() {
        at.pass(&module.tokens, index);
        // `impl Trait + use<'a>` is no import.
        if token.is("use") && !followed_by(&module.tokens, index, "<") {
            let mut leaves = Vec::new();
            leaves_of(&module.tokens, index + 1, &[], &mut leaves);
            found.extend(leaves.into_iter().map(|(written, name)| (at.absolute(&written), name, token.line)));
        }
    }
    found
}

/// Reads one tree of a `use` item from here on, and answers with the index behind it.
fn leaves_of(
    tokens: &[Token],
    mut at: usize,
    before: &[String],
    found: &mut Vec<(Vec<String>, String)>,
) -> usize {
    let mut path = before.to_vec();
    loop {
        if tokens[at].is("::") {
            at += 1;
        }
        if tokens[at].is("{") {
            let end = end_of_brackets(tokens, at);
            at += 1;
            while at < end - 1 {
                at = leaves_of(tokens, at, &path, found);
                at += usize::from(tokens[at].is(","));
            }
            return end;
        }
        // `use a::b::{self}` is `use a::b`.
        match (tokens[at].text.as_str(), path.is_empty()) {
            ("self", false) | ("*", _) => {}
            (word, _) => path.push(word.to_owned()),
        }
        let is_glob = tokens[at].is("*");
        at += 1;
        if !tokens[at].is("::") {
            let mut name = if is_glob { "*".to_owned() } else { path.last().cloned().unwrap_or_default() };
            if tokens[at].is("as") {
                name.clone_from(&tokens[at + 1].text);
                at += 2;
            }
            found.push((path, name));
            return at;
        }
    }
}

/// The module that surrounds a token: the file's own, or one with a body inside of it.
struct Position {
    file: VecDeque<String>,
    inner: Vec<(String, usize)>,
    depth: usize,
}

impl Position {
    fn new(path: &str) -> Position {
        Position { file: segments(path), inner: Vec::new(), depth: 0 }
    }

    fn pass(&mut self, tokens: &[Token], at: usize) {
        match tokens[at].text.as_str() {
            "{" => {
                self.depth += 1;
                if at >= 2 && tokens[at - 2].is("mod") {
                    self.inner.push((tokens[at - 1].text.clone(), self.depth));
                }
            }
            "}" => {
                self.inner.pop_if(|(_, depth)| *depth == self.depth);
                self.depth -= 1;
            }
            _ => {}
        }
    }

    /// The path from the root on. A path into another crate comes out as one below this module, where nothing has that name.
    fn absolute(&self, written: &[String]) -> Vec<String> {
        let inner = self.inner.iter().map(|(name, _)| name);
        let mut path: Vec<String> = self.file.iter().chain(inner).cloned().collect();
        for segment in written {
            match segment.as_str() {
                "crate" => path.clear(),
                "self" => {}
                "super" => drop(path.pop()),
                name => path.push(name.to_owned()),
            }
        }
        path
    }
}

/// A crate of a root and modules, each with its text.
fn unit(modules: &[(&str, &str)]) -> Unit {
    let parsed = modules.iter().map(|(path, text)| (path.to_string(), Module::of(path, text)));
    Unit { name: "example".to_owned(), modules: parsed.collect() }
}

/// All cycles of an example, as paths.
fn cycles(modules: &[(&str, &str)]) -> Vec<String> {
    let graphs = graphs(&unit(modules));
    let problems = graphs.values().flat_map(|imports| compare(imports, &BTreeSet::new()));
    problems.map(|problem| problem.lines().next().unwrap().to_owned()).collect()
}

#[test]
fn a_cycle_is_found_through_use_lines_and_paths() {
    let found = cycles(&[
        ("", ""),
        ("a", "use crate::{c::X, b::{self, Y}};"),
        ("b", "fn f() { crate::c::g() }"),
        ("c", "use super::a::Z;"),
    ]);
    assert_eq!(found, ["cycle a → c → a", "cycle b → c → a → b"]);
}

#[test]
fn a_cycle_is_found_through_a_name_that_the_root_passes_on() {
    assert_eq!(
        cycles(&[("", "pub use b::Y;"), ("a", "use crate::Y;"), ("b", "use crate::a;")]),
        ["cycle a → b → a"]
    );
}

#[test]
fn a_cycle_between_the_parts_of_a_module_is_found() {
    let found = cycles(&[("", ""), ("a", ""), ("a::b", "use super::c::X;"), ("a::c", "use crate::a::b::Y;")]);
    assert_eq!(found, ["cycle b → c → b"]);
}

#[test]
fn parents_tests_comments_and_other_crates_make_no_cycle() {
    let found = cycles(&[
        ("", "use a::X;"),
        ("a", "use crate::b::Y; pub(crate) fn f() {} mod inner { use super::f; }"),
        ("a::part", "use super::X; use crate::a::f; pub(in crate::a) struct P;"),
        (
            "b",
            "// crate::a\nuse a::b; #[cfg(test)] mod tests { use crate::a::X; } fn g<'a>() { \"crate::a\"; '\"'; }",
        ),
    ]);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn an_exception_that_nothing_needs_is_reported() {
    let graphs = graphs(&unit(&[("", ""), ("a", "use crate::b::X;"), ("b", "")]));
    let problems = compare(&graphs[""], &BTreeSet::from(["a".to_owned()]));
    assert_eq!(problems, ["a is in no cycle any more: delete the exception"]);
}
