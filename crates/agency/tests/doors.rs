//! Crates use each other as ARCHITECTURE.md allows, and every dependency has a user.

#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Doors = BTreeMap<String, BTreeSet<String>>;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The rows of the table below the heading `### Doors`.
fn documented() -> Doors {
    let text = std::fs::read_to_string(workspace().join("ARCHITECTURE.md")).unwrap();
    let section = text.split("### Doors").nth(1).expect("a section about doors");
    let section = section.split("\n#").next().unwrap_or(section);
    let rows = section.lines().filter(|line| line.starts_with("| `agency"));
    rows.map(|row| {
        let mut names = row.split('`').skip(1).step_by(2).map(str::to_owned);
        (names.next().expect("a crate"), names.collect())
    })
    .collect()
}

fn manifest(name: &str) -> toml_edit::DocumentMut {
    let path = workspace().join("crates").join(name).join("Cargo.toml");
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

fn used() -> Doors {
    let crates = std::fs::read_dir(workspace().join("crates")).unwrap();
    let names = crates.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.map(|name| (name.clone(), ours_in(manifest(&name).get("dependencies")))).collect()
}

fn ours_in(table: Option<&toml_edit::Item>) -> BTreeSet<String> {
    names_in(table).into_iter().filter(|name| name.starts_with("agency")).collect()
}

#[test]
fn crates_use_each_other_as_the_map_says() {
    assert_eq!(used(), documented(), "manifests (left) and ARCHITECTURE.md (right) differ");
}

#[test]
fn the_keeper_has_no_runtime_and_no_policy() {
    let lock = std::fs::read_to_string(workspace().join("Cargo.lock")).unwrap();
    let lock: toml_edit::DocumentMut = lock.parse().unwrap();
    let packages = lock["package"].as_array_of_tables().unwrap();
    let depends = |name: &str| -> Vec<String> {
        let package = packages.iter().find(|package| package["name"].as_str() == Some(name));
        let list = package.and_then(|package| package.get("dependencies")).and_then(|list| list.as_array());
        let names = list.into_iter().flatten().filter_map(|value| value.as_str());
        names.map(|name| name.split(' ').next().unwrap_or(name).to_owned()).collect()
    };
    // The lock file also lists dependencies of tests, so use the manifests for our own crates.
    let needs = |name: &str| match name.starts_with("agency") {
        true => names_in(manifest(name).get("dependencies")).into_iter().collect(),
        false => depends(name),
    };
    let mut reached: BTreeSet<String> = BTreeSet::new();
    let mut next: Vec<String> = needs("agency-keeper");
    while let Some(name) = next.pop() {
        if reached.insert(name.clone()) {
            next.extend(needs(&name));
        }
    }
    for forbidden in ["tokio", "mio", "agency-core", "agency-daemon", "toml_edit", "zstd", "clap"] {
        assert!(!reached.contains(forbidden), "the keeper reaches {forbidden}");
    }
}

/// A dependency that no line of code names only costs time. Macros and attributes name theirs too.
#[test]
fn every_dependency_is_used() {
    let mut unused = Vec::new();
    for (name, _) in used() {
        let folder = workspace().join("crates").join(&name);
        let (own, tests) =
            (code_in(&[folder.join("src")]), code_in(&[folder.join("src"), folder.join("tests")]));
        for (table, code) in [("dependencies", &own), ("dev-dependencies", &tests)] {
            let names = names_in(manifest(&name).get(table)).into_iter();
            let idle = names.filter(|dependency| !names_crate(code, &dependency.replace('-', "_")));
            unused.extend(idle.map(|dependency| format!("{name}: {dependency} ({table})")));
        }
    }
    assert!(unused.is_empty(), "no code names them:\n{}", unused.join("\n"));
}

#[test]
fn every_shared_version_has_a_user() {
    let text = std::fs::read_to_string(workspace().join("Cargo.toml")).unwrap();
    let document: toml_edit::DocumentMut = text.parse().unwrap();
    let shared = names_in(document["workspace"].get("dependencies"));
    let users = used().into_keys().flat_map(|name| {
        let manifest = manifest(&name);
        ["dependencies", "dev-dependencies"].map(|table| names_in(manifest.get(table)))
    });
    let taken: BTreeSet<String> = users.flatten().collect();
    let idle: Vec<&String> = shared.difference(&taken).collect();
    assert!(idle.is_empty(), "[workspace.dependencies] that no crate uses: {idle:?}");
}

#[test]
fn the_toolchain_is_the_oldest_supported_version() {
    let read = |file: &str| -> toml_edit::DocumentMut {
        std::fs::read_to_string(workspace().join(file)).unwrap().parse().unwrap()
    };
    let promised = read("Cargo.toml")["workspace"]["package"]["rust-version"].as_str().unwrap().to_owned();
    let pinned = read("rust-toolchain.toml")["toolchain"]["channel"].as_str().unwrap().to_owned();
    assert!(pinned.starts_with(&format!("{promised}.")), "{pinned} is not {promised}");
}

/// All code in these folders, without comments.
fn code_in(folders: &[PathBuf]) -> String {
    let mut code = String::new();
    let mut next = folders.to_vec();
    while let Some(path) = next.pop() {
        if path.is_dir() {
            next.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            lines.for_each(|line| code.extend([line, "\n"]));
        }
    }
    code
}

/// Whether the code contains `name::…`, `use name;` or `use name as other;`.
fn names_crate(code: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + name.len()..]);
        let whole = !before.ends_with(word) && !after.starts_with(word);
        whole && (after.starts_with("::") || before.ends_with("use ") || before.ends_with("extern crate "))
    })
}

fn names_in(table: Option<&toml_edit::Item>) -> BTreeSet<String> {
    let keys = table.and_then(|item| item.as_table_like()).into_iter().flat_map(|table| table.iter());
    keys.map(|(key, _)| key.to_owned()).collect()
}
