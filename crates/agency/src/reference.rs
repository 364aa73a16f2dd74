//! The reference pages in `docs/`, generated from the definitions.
//!
//! Tests compare them. After a change: `UPDATE_DOCS=1 cargo test -p agency reference`.

mod api;
mod commands;
mod schemas;

use std::fs;
use std::path::{Path, PathBuf};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Compares a page with the definitions. With `UPDATE_DOCS` it writes the page first.
#[track_caller]
fn check(name: &str, wanted: &str) {
    let path = docs().join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(path.parent().expect("a directory around it")).expect("room");
        fs::write(&path, wanted).expect("room");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let first = found.lines().zip(wanted.lines()).position(|(one, other)| one != other);
    assert!(
        found == wanted,
        "docs/{name} is not what the definitions say (line {}): UPDATE_DOCS=1 cargo test -p agency reference",
        first.map_or_else(|| "the last".to_owned(), |line| (line + 1).to_string())
    );
}
