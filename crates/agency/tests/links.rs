//! Every relative link in our Markdown leads to a file, and every anchor to a heading.

#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The pages at the top level and all pages below `docs`.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![root().join("docs")];
    pages.extend(entries(&root()).into_iter().filter(|path| path.is_file()));
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() { folders.push(path) } else { pages.push(path) }
        }
    }
    pages.retain(|path| path.extension().is_some_and(|ext| ext == "md"));
    pages
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The lines outside of code blocks, where `[a](b)` is not a link and `#` not a heading.
fn prose(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut fenced = false;
    let lines = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    });
    lines.map(str::to_owned).collect()
}

/// The anchor of a heading on a forge: lowercase, words joined by dashes, no other signs.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    kept.chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || matches!(c, '-' | '_') => Some(c),
            _ => None,
        })
        .collect()
}

fn anchors(path: &Path) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut anchors = BTreeSet::new();
    for line in prose(path).iter().filter(|line| line.starts_with('#')) {
        let name = anchor(line.trim_start_matches('#'));
        let count = seen.entry(name.clone()).or_default();
        anchors.insert(if *count == 0 { name } else { format!("{name}-{count}") });
        *count += 1;
    }
    anchors
}

fn targets(line: &str) -> Vec<&str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target).collect()
}

fn broken(page: &Path, target: &str) -> Option<String> {
    let elsewhere = ["http://", "https://", "mailto:"].iter().any(|scheme| target.starts_with(scheme));
    if elsewhere {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => page.to_path_buf(),
        file => page.parent().unwrap().join(file),
    };
    let found = path.exists() && (heading.is_empty() || anchors(&path).contains(heading));
    (!found).then(|| format!("{}: {target}", page.display()))
}

#[test]
fn every_link_has_a_target() {
    let pages = pages();
    assert!(pages.iter().any(|page| page.ends_with("docs/configuration.md")), "{pages:?}");
    let mut missing = Vec::new();
    for page in &pages {
        for line in prose(page) {
            missing.extend(targets(&line).into_iter().filter_map(|target| broken(page, target)));
        }
    }
    assert!(missing.is_empty(), "links without a target:\n{}", missing.join("\n"));
}

#[test]
fn anchors_match_those_of_a_forge() {
    for (heading, expected) in [
        (" What a project's file may do", "what-a-projects-file-may-do"),
        ("Crates: each is one verb", "crates-each-is-one-verb"),
        ("Keys of `[agents.NAME]`", "keys-of-agentsname"),
    ] {
        assert_eq!(anchor(heading), expected);
    }
}
