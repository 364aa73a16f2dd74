//! The list of files that Agency wrote outside its state directory and repositories because the user asked for them.
//!
//! `agency uninstall` names and removes them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use agency_api::paths::StateDir;
use agency_api::{Failure, FailureCode};

/// No path contains this byte.
const SEPARATOR: u8 = 0;

fn list_file(state: &StateDir) -> PathBuf {
    state.root().join("installed")
}

/// Adds these files to the list.
pub(crate) fn remember(state: &StateDir, files: &[PathBuf]) -> Result<(), Failure> {
    let path = list_file(state);
    let cannot = |err: io::Error| {
        Failure::new(format!("cannot write {}", path.display())).code(FailureCode::IoError).caused_by(&err)
    };
    state.create().map_err(cannot)?;
    let mut known: BTreeSet<PathBuf> = existing(state).into_iter().collect();
    known.extend(files.iter().map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone())));
    let names: Vec<u8> =
        known.iter().flat_map(|file| [file.as_os_str().as_bytes(), &[SEPARATOR]].concat()).collect();
    let fresh = path.with_extension("new");
    fs::write(&fresh, names).and_then(|()| fs::rename(&fresh, &path)).map_err(cannot)
}

/// The files of the list that still exist. Agency writes only absolute paths, so relative ones are ignored.
pub(crate) fn existing(state: &StateDir) -> Vec<PathBuf> {
    let names = fs::read(list_file(state)).unwrap_or_default();
    let paths = names.split(|byte| *byte == SEPARATOR);
    let paths = paths.map(|name| PathBuf::from(OsString::from_vec(name.to_vec())));
    paths.filter(|path: &PathBuf| path.is_absolute() && exists(path)).collect()
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn deleted_files_are_not_listed() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::at(home.path().join("state"));
        let files = [home.path().join("a.1"), home.path().join("b.1")];
        fs::write(&files[0], "").unwrap();
        remember(&state, &files).unwrap();
        remember(&state, &files[..1]).unwrap();
        assert_eq!(existing(&state), files[..1]);
    }

    #[test]
    fn a_name_may_have_a_line_end_and_a_relative_one_is_ignored() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::at(home.path().join("state"));
        let odd = home.path().join("a\n.");
        fs::create_dir_all(&odd).unwrap();
        remember(&state, std::slice::from_ref(&odd)).unwrap();
        fs::OpenOptions::new().append(true).open(list_file(&state)).unwrap().write_all(b".\0").unwrap();
        assert_eq!(existing(&state), [odd]);
    }
}
