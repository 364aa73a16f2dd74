//! Reading a file that somebody else may have put there.
//!
//! A repository can hold a link to a device, or a pipe that nobody writes to: neither may hold up or
//! fill the daemon, so only regular files of a sane size are read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// No text that a person or an agent writes comes near it.
const MOST_BYTES: u64 = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// The user's own files, which dotfile managers link to.
    Followed,
    /// What came with a repository must not lead out of it.
    Refused,
}

pub fn read_bounded(path: &Path, links: Links) -> io::Result<Vec<u8>> {
    read_at_most(path, links, MOST_BYTES)
}

fn read_at_most(path: &Path, links: Links, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path, links)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    // Its length may be a lie, or grow while we read.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let problem = format!("it is larger than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(bytes)
}

fn open(path: &Path, links: Links) -> io::Result<File> {
    // Without waiting for the other end of a pipe, and without getting a terminal of our own.
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
    fn what_is_not_there_is_said_to_be_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let err = read_bounded(&dir.path().join("none"), Links::Refused).expect_err("nothing there");
        assert_eq!(err.kind(), io::ErrorKind::NotFound);
    }
}
