//! The published reference and schema of the configuration are up to date: `docs/configuration.md`, `docs/schema/config.json`.
//!
//! `AGENCY_BLESS=1 cargo test -p agency-core --test reference` writes both again.

#![allow(clippy::disallowed_methods, reason = "the test reads the published pages")]

use std::path::PathBuf;

use agency_core::config::{json_schema, reference};

const BEGIN: &str = "<!-- keys: begin, made from the tables in agency-core -->\n";
const END: &str = "<!-- keys: end -->\n";

#[track_caller]
fn check(file: &str, wanted: impl Fn(&str) -> String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
    let published = std::fs::read_to_string(&path).expect("a published file");
    let wanted = wanted(&published);
    if std::env::var_os("AGENCY_BLESS").is_some() {
        return std::fs::write(&path, wanted).expect("the page can be written");
    }
    assert!(published == wanted, "docs/{file} is out of date: run this test with AGENCY_BLESS=1");
}

#[test]
fn the_reference_lists_the_keys_of_the_tables() {
    check("configuration.md", |published| {
        let (before, rest) = published.split_once(BEGIN).expect("a place for the keys");
        let (_, after) = rest.split_once(END).expect("an end of the keys");
        format!("{before}{BEGIN}\n{}\n{END}{after}", reference())
    });
}

#[test]
fn the_schema_describes_the_keys_of_the_tables() {
    check("schema/config.json", |_| {
        let mut schema = json_schema();
        schema.sort_all_objects();
        let pretty = serde_json::to_string_pretty(&schema).expect("JSON");
        format!("{pretty}\n")
    });
}
