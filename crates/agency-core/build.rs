//! Lists the rule files, so that a new rule file needs no code.

#![allow(clippy::disallowed_methods, reason = "a build script reads files; the crate itself does not")]

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=rules");
    let here = env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?;
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    let mut files: Vec<_> = fs::read_dir(Path::new(&here).join("rules"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let entries = files.iter().map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("({name:?}, include_str!({path:?})),\n")
    });
    let list: String = entries.collect();
    fs::write(Path::new(&out).join("shipped_rules.rs"), format!("&[\n{list}]\n"))
}
