//! The files of a checkout that no commit holds.
//!
//! Not commits: `git_workspace` counts those.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::git::Git;
use crate::tool::ToolError;

/// Lists every untracked file by itself, whatever the user has configured. No renames, so that each entry is
/// one path.
const STATUS: [&str; 6] =
    ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=none"];

pub(crate) fn uncommitted_files(git: &Git, paths: &[&str]) -> Result<Vec<PathBuf>, ToolError> {
    let listed = git.read(&[&STATUS[..], paths].concat())?;
    let entries = listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    // Each entry begins with two letters and a space.
    Ok(entries
        .filter_map(|entry| entry.get(3..))
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        .collect())
}
