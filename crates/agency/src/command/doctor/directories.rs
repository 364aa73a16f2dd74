//! Checks the directories that Agency writes to: owner, permissions, file system, free space.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use agency_api::paths::{StateDir, global_config};
use rustix::fs::{Access, access};

use super::finding::{About, Finding};
use crate::output::bytes;

/// A few busy agents write this much into their journals within a day.
const WARN_BELOW: u64 = 1 << 30;

/// With less, the next journal segments may not fit.
const BROKEN_BELOW: u64 = 64 << 20;

/// The address of a socket has 108 bytes, with a final zero. Longer paths need /proc.
const LONGEST_ADDRESS: usize = 107;

pub(super) fn check(state: &StateDir) -> Vec<Finding> {
    let mut findings = vec![ownership("state", state.root(), 0o077)];
    findings.extend(disk(state.root()));
    findings.extend(file_system(state.root()));
    findings.extend(address(&state.daemon_socket()));
    findings.extend(global_config().as_deref().and_then(Path::parent).map(config_directory));
    findings.extend(agency_daemon::rule_problems().into_iter().map(rule));
    findings
}

fn rule(problem: String) -> Finding {
    About::Files.warning(format!("a screen rule is not used: {problem}"), "fix or remove it")
}

fn config_directory(path: &Path) -> Finding {
    match path.exists() {
        // Others may read it, but must not change what we run.
        true => ownership("config", path, 0o022),
        false => About::Files
            .note(format!("config {} does not exist: every setting has its default", path.display())),
    }
}

/// Checks that only this user decides what is in the directory. `forbidden` are the mode bits that others must not have.
fn ownership(name: &str, path: &Path, forbidden: u32) -> Finding {
    let here = format!("{name} {}", path.display());
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(_) => return missing(&here, path),
    };
    let us = rustix::process::geteuid().as_raw();
    if !meta.is_dir() {
        About::Files.broken(
            format!("{here} is not a directory"),
            format!("move it away: mv '{0}' '{0}.old'", path.display()),
        )
    } else if meta.uid() != us {
        let owner = meta.uid();
        About::Files.broken(
            format!("{here} belongs to uid {owner}, not to you"),
            format!("sudo chown -R {us} '{}'", path.display()),
        )
    } else if access(path, Access::WRITE_OK).is_err() {
        About::Files.broken(
            format!("{here} cannot be written"),
            format!("chmod u+rwx '{}', or mount its disk for writing", path.display()),
        )
    } else if meta.mode() & forbidden != 0 {
        let mode = meta.mode() & 0o777;
        About::Files.warning(
            format!("{here} is accessible to other users (mode {mode:03o})"),
            format!("chmod go-w,o-rwx '{}'", path.display()),
        )
    } else {
        About::Files.fine(here)
    }
}

fn missing(here: &str, path: &Path) -> Finding {
    let around = nearest_existing(path);
    match around.is_dir() && access(&around, Access::WRITE_OK).is_ok() {
        true => About::Files.note(format!("{here} does not exist yet; the first task creates it")),
        false => About::Files.broken(
            format!("{here} does not exist and cannot be created in {}", around.display()),
            "set XDG_STATE_HOME to a directory that you can write",
        ),
    }
}

/// The deepest part of the path that exists.
fn nearest_existing(path: &Path) -> PathBuf {
    path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/")).to_path_buf()
}

fn disk(path: &Path) -> Option<Finding> {
    let disk = rustix::fs::statvfs(nearest_existing(path)).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let words = format!("{} free for journals", bytes(free));
    let fix = "free space: `agency rm` removes tasks and their journals";
    Some(match free {
        _ if disk.f_files > 0 && disk.f_favail == 0 => {
            About::Files.broken("no inodes are left on the disk of the state directory", fix)
        }
        0..BROKEN_BELOW => About::Files.broken(words, fix),
        BROKEN_BELOW..WARN_BELOW => About::Files.warning(words, fix),
        _ => About::Files.fine(words),
    })
}

fn file_system(path: &Path) -> Option<Finding> {
    let kind = network_file_system(&nearest_existing(path))?;
    Some(About::Files.warning(
        format!("state is on {kind}: locks are slow there, and sockets work on one host only"),
        "set XDG_STATE_HOME to a directory on a local disk",
    ))
}

#[cfg(target_os = "linux")]
fn network_file_system(path: &Path) -> Option<&'static str> {
    network_name(rustix::fs::statfs(path).ok()?.f_type as u64)
}

#[cfg(not(target_os = "linux"))]
fn network_file_system(_path: &Path) -> Option<&'static str> {
    None
}

/// From the magic numbers of statfs(2).
#[cfg(any(target_os = "linux", test))]
fn network_name(magic: u64) -> Option<&'static str> {
    match magic & 0xffff_ffff {
        0x6969 => Some("NFS"),
        0xff53_4d42 | 0x517b | 0xfe53_4d42 => Some("SMB"),
        0x5346_414f => Some("AFS"),
        0x0102_1997 => Some("9P"),
        0x00c3_6400 => Some("Ceph"),
        _ => None,
    }
}

fn address(socket: &Path) -> Option<Finding> {
    let length = socket.as_os_str().len();
    let without_proc = length > LONGEST_ADDRESS && !Path::new("/proc/self/fd").exists();
    without_proc.then(|| {
        About::Files.broken(
            format!("the path of the daemon's socket is too long ({length} bytes) without /proc"),
            "set XDG_STATE_HOME to a shorter path",
        )
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_home_on_a_network_is_known_by_its_number() {
        assert_eq!(network_name(0x6969), Some("NFS"));
        assert_eq!(network_name(0xffff_ffff_fe53_4d42), Some("SMB"), "negative where it is signed");
        for local in [0xef53, 0x0102_1994, 0x9123_683e, 0x794c_7630] {
            assert_eq!(network_name(local), None, "ext4, tmpfs, btrfs, overlay");
        }
        assert_eq!(network_file_system(Path::new("/proc")), None);
    }

    #[test]
    fn a_directory_is_fine_open_or_in_the_way() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("state");
        let level = |path: &Path| ownership("state", path, 0o077).level;
        assert_eq!(level(&dir), Level::Note, "not there yet");
        std::fs::create_dir(&dir).unwrap();
        for (mode, wanted) in [(0o700, Level::Fine), (0o755, Level::Warning)] {
            std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(level(&dir), wanted, "{mode:o}");
        }
        let file = home.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(level(&file), Level::Broken, "a file where a directory should be");
        assert_eq!(level(&file.join("below")), Level::Broken, "and nothing can be made in it");
    }
}
