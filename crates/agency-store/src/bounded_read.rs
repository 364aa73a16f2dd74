//! Reads a file of limited size that may come from an untrusted repository.
//!
//! A repository can contain a link to a device, or a pipe without a writer. Neither may block the daemon or fill its
//! memory, so this module reads only regular files up to a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Far more than any text that a person or an agent writes.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// For the user's own files: dotfile managers replace them by links.
    Followed,
    /// For files of a repository: a link could lead out of it.
    Refused,
}

pub fn read_bounded(path: &Path, links: Links) -> io::Result<Vec<u8>> {
    read_at_most(path, links, MAX_BYTES)
}

fn read_at_most(path: &Path, links: Links, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path, links)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    // The reported length may be wrong, or the file may grow while we read it.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let problem = format!("it is larger than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(bytes)
}

fn open(path: &Path, links: Links) -> io::Result<File> {
    // Do not wait for the writer of a pipe, and do not acquire a controlling terminal.
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refused {
        flags |= OFlags::NOFOLLOW;
    }
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(descriptor) => Ok(File::from(descriptor)),
        Err(Errno::LOOP) if links == Links::Refused => {
            let problem = "it is a symbolic link, which is not followed";
            Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
        }
        Err(err) => Err(err.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn refusal(path: &Path, links: Links) -> String {
        read_bounded(path, links).expect_err("refused").to_string()
    }

    #[test]
    fn only_regular_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        for (path, links) in [
            (dir.path(), Links::Refused),
            (&pipe, Links::Refused),
            (Path::new("/dev/zero"), Links::Refused),
            (Path::new("/dev/zero"), Links::Followed),
        ] {
            assert_eq!(refusal(path, links), "it is not a regular file", "{}", path.display());
        }
    }

    #[test]
    fn links_are_followed_for_the_user_and_not_for_a_repository() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "text").unwrap();
        symlink(&file, &link).unwrap();
        assert_eq!(read_bounded(&link, Links::Followed).unwrap(), b"text");
        assert_eq!(refusal(&link, Links::Refused), "it is a symbolic link, which is not followed");
        let device = dir.path().join("device");
        symlink("/dev/zero", &device).unwrap();
        assert_eq!(refusal(&device, Links::Followed), "it is not a regular file");
    }

    #[test]
    fn a_file_that_is_too_large_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large");
        let limit = 1 << 20;
        std::fs::write(&path, vec![b'x'; limit]).unwrap();
        assert_eq!(read_at_most(&path, Links::Refused, limit as u64).unwrap().len(), limit);
        std::fs::write(&path, vec![b'x'; limit + 1]).unwrap();
        let err = read_at_most(&path, Links::Refused, limit as u64).expect_err("refused");
        assert_eq!(err.to_string(), "it is larger than 1 MiB");
    }

    #[test]
    fn a_missing_file_is_reported_as_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let err = read_bounded(&dir.path().join("none"), Links::Refused).expect_err("no such file");
        assert_eq!(err.kind(), io::ErrorKind::NotFound);
    }
}
