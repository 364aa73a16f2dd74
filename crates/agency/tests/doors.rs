//! The crates use each other only as ARCHITECTURE.md says.

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
    // The lock file counts what tests of our own crates use; their manifests tell it apart.
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

fn names_in(table: Option<&toml_edit::Item>) -> BTreeSet<String> {
    let keys = table.and_then(|item| item.as_table_like()).into_iter().flat_map(|table| table.iter());
    keys.map(|(key, _)| key.to_owned()).collect()
}
