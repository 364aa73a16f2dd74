//! Other users have no access.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use agency_testkit::{Binaries, CommandOutput};

use crate::stage::Stage;

/// The directory and everything below it.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut paths = vec![dir.to_path_buf()];
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let is_dir = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir());
        paths.extend(if is_dir { tree(&path) } else { vec![path] });
    }
    paths
}

#[test]
fn only_the_owner_can_read_the_state() {
    let stage = Stage::new();
    // The caller's umask must not matter.
    let line = "umask 000; exec agency new one -m x -- fake-agent -c 'ask ready?'";
    CommandOutput::of(stage.shell(line), b"").ok();
    stage.wait_printed("one", "ready?");
    let mut sockets = 0;
    for path in tree(&stage.state()) {
        let meta = fs::symlink_metadata(&path).expect("it is there");
        let mode = meta.mode() & 0o777;
        if meta.is_dir() {
            assert_eq!(mode, 0o700, "{}", path.display());
        } else if meta.file_type().is_socket() {
            sockets += 1;
            assert_eq!(mode, 0o600, "{}", path.display());
        } else if path.extension().is_some_and(|extension| extension == "md" || extension == "aj") {
            assert_eq!(mode & 0o077, 0, "{}", path.display());
        }
    }
    assert_eq!(sockets, 2, "the daemon's and the keeper's");
}

/// Only root can act as another user.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

const NOBODY: u32 = 65534;

#[test]
fn another_user_is_refused_even_if_the_directories_are_open() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    if !is_root() {
        return;
    }
    // A program that every user may run.
    let program = stage.home().join("agency");
    fs::copy(Binaries::agency(), &program).expect("a copy");
    let as_nobody = || {
        let mut agency = stage.command(&program);
        agency.args(["ls", "--all", "--json"]).current_dir("/").uid(NOBODY).gid(NOBODY);
        CommandOutput::of(agency, b"")
    };
    let open = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .unwrap_or_else(|err| panic!("{path:?}: {err}"));
    };
    let root = stage.home().parent().expect("a root").to_path_buf();
    open(&root, 0o755);
    open(&stage.home(), 0o755);
    open(&root.join("state"), 0o755);
    let ran = as_nobody();
    assert!(ran.code != 0 && !ran.stdout.contains("tasks"), "the directory is closed: {ran}");

    open(&stage.state(), 0o755);
    let files =
        fs::read_dir(stage.state()).expect("a directory").map(|entry| entry.expect("an entry").path());
    let socket = files.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "sock"));
    open(&socket.expect("the daemon's socket"), 0o666);
    let ran = as_nobody();
    assert!(ran.code != 0 && !ran.stdout.contains("tasks"), "the peer is not the owner: {ran}");
    assert_eq!(stage.status("one"), "running", "and the agent still runs");
}
