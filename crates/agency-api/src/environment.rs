//! The environment of a process: how it travels over the API, and how a program is found in it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::Bytes;

/// Variables by name.
pub type Environment = BTreeMap<OsString, OsString>;

/// The environment as messages carry it.
pub fn to_wire(env: Environment) -> Vec<(Bytes, Bytes)> {
    env.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// Reads an environment from a message.
pub fn from_wire(env: Vec<(Bytes, Bytes)>) -> Environment {
    env.into_iter().map(|(name, value)| (name.as_os_str().to_owned(), value.as_os_str().to_owned())).collect()
}

/// The file that exec would run for `program` in `directory`, if there is one.
pub fn find_program(program: &str, env: &Environment, directory: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(directory.join(program)).filter(|path| is_executable(path));
    }
    path_directories(env).map(|dir| dir.join(program)).find(|path| is_executable(path))
}

/// The directories of `PATH`, or the usual ones if it is not set.
pub fn path_directories(env: &Environment) -> impl Iterator<Item = PathBuf> + '_ {
    let path =
        env.get(OsStr::new("PATH")).map_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"), OsString::as_os_str);
    path.as_bytes().split(|byte| *byte == b':').map(|dir| PathBuf::from(OsStr::from_bytes(dir)))
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
