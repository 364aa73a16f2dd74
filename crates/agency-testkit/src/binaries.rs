//! The paths of the programs under test.
//!
//! Builds nothing: a test that builds is slow, and it is unclear what it tests.

use std::path::{Path, PathBuf};

/// Derived from the path of the running test: for `target/PROFILE/deps/TEST` they are in `target/PROFILE` and
/// `target/keeper`.
pub struct Binaries;

impl Binaries {
    pub fn agency() -> PathBuf {
        must_exist(agency_path(), "cargo build -p agency")
    }

    /// The keeper that was built with the keeper profile, as users run it: small, aborts on panic.
    pub fn keeper() -> PathBuf {
        must_exist(keeper_path(), "cargo build --profile keeper -p agency-keeper")
    }

    pub fn fake_agent() -> PathBuf {
        must_exist(fake_agent_path(), "cargo build -p agency-testkit --bin fake-agent")
    }

    /// Names and paths, whether the programs were built or not.
    pub(crate) fn all() -> [(&'static str, PathBuf); 3] {
        [("agency", agency_path()), ("agency-keeper", keeper_path()), ("fake-agent", fake_agent_path())]
    }
}

fn agency_path() -> PathBuf {
    profile_dir().join("agency")
}

fn keeper_path() -> PathBuf {
    let profile = profile_dir();
    profile.parent().expect("a profile lies in the target directory").join("keeper/agency-keeper")
}

fn fake_agent_path() -> PathBuf {
    profile_dir().join("fake-agent")
}

fn profile_dir() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let deps = test.ancestors().find(|path| path.ends_with("deps"));
    let profile = deps.and_then(Path::parent).or_else(|| test.parent());
    profile.expect("a test lies in a directory").to_path_buf()
}

fn must_exist(path: PathBuf, build: &str) -> PathBuf {
    assert!(path.is_file(), "{} does not exist; build it first: {build}", path.display());
    path
}
