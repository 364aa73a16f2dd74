//! Files in a workspace, as callers list, read and write them.
//!
//! Every path is resolved below the workspace (see `beneath`). A write replaces the whole file, and only if it still has
//! the content that the caller has seen.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use agency_api::file::{FileContent, FileEntry, FileKind, FileListing, FileWritten, LONGEST_PART};
use agency_api::paths::short_hash;
use agency_api::{Bytes, Failure, FailureCode};
use agency_store::trust::digest;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, fchmod, openat, readlinkat, renameat, renameat_with,
    statat, unlinkat,
};
use rustix::io::Errno;

use crate::beneath::{InnerPath, Root, leads_out};

/// No caller looks through more names.
const MOST_ENTRIES: usize = 10_000;

/// The digest needs the whole file. Larger files are no text that a person edits.
const LARGEST_FILE: u64 = 64 << 20;

/// The usual part of a file.
const USUAL_PART: u64 = 1 << 20;

/// Only one write at a time: a write that was cut off leaves a file that the next one replaces.
static WRITES: Mutex<()> = Mutex::new(());

/// The workspace of a task.
#[derive(Debug)]
pub struct Files {
    root: Root,
}

/// A regular file with its whole content.
struct WholeFile {
    bytes: Vec<u8>,
    mode: Mode,
}

impl Files {
    /// Blocking. Opens the workspace in this directory.
    pub fn open(workspace: &Path) -> Result<Files, Failure> {
        let root = Root::open(workspace).map_err(|cause| cannot("open", workspace, &cause))?;
        Ok(Files { root })
    }

    /// Blocking. The entries of a directory.
    pub fn list(&self, path: Option<&Path>) -> Result<FileListing, Failure> {
        let path = inner(path.unwrap_or(Path::new("")))?;
        let failed = |cause: &io::Error| cannot("list", path.as_path(), cause);
        let directory = self.root.open_directory(&path).map_err(|cause| failed(&cause))?;
        let read = Dir::read_from(&directory).map_err(|cause| failed(&cause.into()))?;
        let mut names: Vec<OsString> = Vec::new();
        for entry in read {
            let entry = entry.map_err(|cause| failed(&cause.into()))?;
            names.push(OsString::from_vec(entry.file_name().to_bytes().to_vec()));
        }
        names.retain(|name| name != "." && name != "..");
        names.sort();
        let left_out = names.len().saturating_sub(MOST_ENTRIES) as u64;
        // An entry may be deleted meanwhile.
        let entries = names.iter().take(MOST_ENTRIES).filter_map(|name| entry(&directory, name).ok());
        Ok(FileListing { path: path.as_path().into(), entries: entries.collect(), left_out })
    }

    /// Blocking. A part of a file.
    pub fn read(&self, path: &Path, offset: u64, max_bytes: Option<u64>) -> Result<FileContent, Failure> {
        let path = inner(path)?;
        let failed = |cause: &io::Error| cannot("read", path.as_path(), cause);
        let file = self.root.open_file(&path).map_err(|cause| failed(&cause))?;
        let WholeFile { bytes, mode } = read_whole(file).map_err(|cause| failed(&cause))?;
        let size = bytes.len() as u64;
        let begin = offset.min(size);
        let length = max_bytes.unwrap_or(USUAL_PART).min(LONGEST_PART).min(size - begin);
        let part = &bytes[begin as usize..(begin + length) as usize];
        Ok(FileContent {
            path: path.as_path().into(),
            content: Bytes(part.to_vec()),
            offset: begin,
            size,
            digest: digest(&bytes),
            more: begin + length < size,
            executable: mode.contains(Mode::XUSR),
        })
    }

    /// Blocking. Replaces a file that has the expected digest, or makes one if none is expected.
    pub fn write(&self, path: &Path, content: &[u8], expect: Option<&str>) -> Result<FileWritten, Failure> {
        let path = inner(path)?;
        refuse_repository(&path)?;
        if content.len() as u64 > LONGEST_PART {
            return Err(refused("write", path.as_path())
                .because(format!("its content has more than {} MiB", LONGEST_PART >> 20)));
        }
        let failed = |cause: &io::Error| cannot("write", path.as_path(), cause);
        let nameless = || refused("write", path.as_path()).because("it is the workspace itself");
        let (parent, name) = path.split().ok_or_else(nameless)?;
        let directory = self.root.open_directory(&parent).map_err(|cause| failed(&cause))?;
        let _alone = WRITES.lock().unwrap_or_else(PoisonError::into_inner);
        let current = read_here(&directory, name).map_err(|cause| failed(&cause))?;
        check_expected(path.as_path(), current.as_ref(), expect)?;
        let mode = current.as_ref().map_or(Mode::from(0o644), |file| file.mode);
        let fresh = FreshFile::write(&directory, name, content, mode).map_err(|cause| failed(&cause))?;
        let placed = match expect {
            Some(expected) => fresh.replace(name, expected),
            None => fresh.place(name),
        };
        match placed {
            Ok(true) => {}
            Ok(false) => return Err(changed(path.as_path())),
            Err(cause) => return Err(failed(&cause)),
        }
        let written = path.as_path().into();
        Ok(FileWritten {
            path: written,
            digest: digest(content),
            size: content.len() as u64,
            created: expect.is_none(),
        })
    }
}

/// A new file under a name of our own, until it takes its place.
struct FreshFile<'a> {
    directory: &'a OwnedFd,
    name: PathBuf,
}

impl<'a> FreshFile<'a> {
    fn write(directory: &'a OwnedFd, name: &OsStr, content: &[u8], mode: Mode) -> io::Result<FreshFile<'a>> {
        let own = format!(".agency-write-{}", short_hash(name.as_encoded_bytes()));
        let fresh = FreshFile { directory, name: own.into() };
        // A daemon that was killed may have left it.
        fresh.remove();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(directory, &fresh.name, flags, Mode::from(0o644))?;
        let written = fchmod_if_other(&file, mode).and_then(|()| {
            let mut file = File::from(file);
            file.write_all(content)?;
            file.sync_all()
        });
        match written {
            Ok(()) => Ok(fresh),
            Err(cause) => {
                fresh.remove();
                Err(cause)
            }
        }
    }

    /// Gives the file its name, unless another file has it. Returns whether it has.
    fn place(self, name: &OsStr) -> io::Result<bool> {
        let moved = renameat_with(self.directory, &self.name, self.directory, name, RenameFlags::NOREPLACE);
        match moved {
            Ok(()) => Ok(true),
            Err(cause) => {
                self.remove();
                match cause {
                    Errno::EXIST => Ok(false),
                    cause => Err(cause.into()),
                }
            }
        }
    }

    /// Exchanges the file with the old one, and looks at the old one once more: an agent may have written it meanwhile. Then
    /// exchanges them back. Returns whether the new file has its place.
    fn replace(self, name: &OsStr, expected: &str) -> io::Result<bool> {
        let exchange =
            || renameat_with(self.directory, &self.name, self.directory, name, RenameFlags::EXCHANGE);
        match exchange() {
            Ok(()) => {}
            // The file system cannot exchange files.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                renameat(self.directory, &self.name, self.directory, name)?;
                return Ok(true);
            }
            Err(cause) => {
                self.remove();
                return if cause == Errno::NOENT { Ok(false) } else { Err(cause.into()) };
            }
        }
        let old = read_here(self.directory, self.name.as_os_str());
        let is_same = matches!(&old, Ok(Some(old)) if digest(&old.bytes) == expected);
        if !is_same {
            exchange()?;
        }
        self.remove();
        Ok(is_same)
    }

    fn remove(&self) {
        match unlinkat(self.directory, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(cause) => {
                tracing::warn!(file = %self.name.display(), %cause, "a file of Agency stays behind")
            }
        }
    }
}

/// The umask of the daemon has decided about a new file already.
fn fchmod_if_other(file: &OwnedFd, mode: Mode) -> io::Result<()> {
    match mode == Mode::from(0o644) {
        true => Ok(()),
        false => Ok(fchmod(file, mode)?),
    }
}

fn inner(path: &Path) -> Result<InnerPath, Failure> {
    InnerPath::new(path).ok_or_else(|| {
        Failure::new(format!("{} is not in the workspace", path.display()))
            .code(FailureCode::OutsideWorkspace)
            .hint("name it relative to the workspace, without `..`")
    })
}

/// The files of git and jj decide which programs they run.
fn refuse_repository(path: &InnerPath) -> Result<(), Failure> {
    let is_own = |part: &OsStr| part.eq_ignore_ascii_case(".git") || part.eq_ignore_ascii_case(".jj");
    match path.as_path().iter().any(is_own) {
        true => Err(refused("write", path.as_path()).because("it belongs to git or jj")),
        false => Ok(()),
    }
}

fn check_expected(path: &Path, current: Option<&WholeFile>, expect: Option<&str>) -> Result<(), Failure> {
    match (current, expect) {
        (None, None) => Ok(()),
        (Some(file), Some(expected)) if digest(&file.bytes) == expected => Ok(()),
        (Some(file), None) => Err(Failure::new(format!("{} exists already", path.display()))
            .code(FailureCode::AlreadyExists)
            .hint(format!("to replace it, expect its digest: {}", digest(&file.bytes)))),
        (_, Some(_)) => Err(changed(path)),
    }
}

fn changed(path: &Path) -> Failure {
    Failure::new(format!("{} has changed", path.display()))
        .code(FailureCode::ChangedMeanwhile)
        .because("it no longer has the content that you have seen, and nothing was written")
        .hint("read it again")
}

fn entry(directory: &OwnedFd, name: &OsStr) -> io::Result<FileEntry> {
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Link,
        _ => FileKind::Other,
    };
    let target = match kind {
        FileKind::Link => Some(Bytes(readlinkat(directory, name, Vec::new())?.into_bytes())),
        _ => None,
    };
    let size = (kind == FileKind::File).then_some(stat.st_size as u64);
    Ok(FileEntry { name: name.to_owned().into(), kind, size, target })
}

/// The file of this name in the directory. `None` if there is none. A link is no file.
fn read_here(directory: &OwnedFd, name: &OsStr) -> io::Result<Option<WholeFile>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(directory.as_fd(), name, flags, Mode::empty()) {
        Ok(file) => read_whole(file).map(Some),
        Err(Errno::NOENT) => Ok(None),
        Err(cause) => Err(cause.into()),
    }
}

fn read_whole(file: OwnedFd) -> io::Result<WholeFile> {
    let stat = rustix::fs::fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(io::ErrorKind::IsADirectory.into()),
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
    let mut bytes = Vec::new();
    File::from(file).take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_FILE {
        let problem = format!("it is larger than {} MiB", LARGEST_FILE >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(WholeFile { bytes, mode: Mode::from_raw_mode(stat.st_mode) & Mode::from(0o777) })
}

fn refused(verb: &str, path: &Path) -> Failure {
    Failure::new(format!("cannot {verb} {}", path.display())).code(FailureCode::InvalidArgument)
}

fn cannot(verb: &str, path: &Path, cause: &io::Error) -> Failure {
    let failure = refused(verb, path);
    if leads_out(cause) {
        return failure
            .code(FailureCode::OutsideWorkspace)
            .because("it is a symbolic link, or a link in its path leads out of the workspace");
    }
    let code = match cause.kind() {
        io::ErrorKind::NotFound => FailureCode::NotFound,
        io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidInput => {
            FailureCode::InvalidArgument
        }
        io::ErrorKind::FileTooLarge => FailureCode::Unsupported,
        _ => FailureCode::IoError,
    };
    failure.code(code).caused_by(cause)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn scene() -> (tempfile::TempDir, Files) {
        let dir = tempfile::tempdir().unwrap();
        let files = Files::open(dir.path()).unwrap();
        (dir, files)
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_made_read_and_replaced_only_if_it_has_not_changed() {
        let (dir, files) = scene();
        let path = Path::new("a.txt");
        let made = files.write(path, b"one", None).unwrap();
        assert!(made.created);
        assert_eq!(files.write(path, b"two", None).unwrap_err().code, FailureCode::AlreadyExists);
        fs::set_permissions(dir.path().join(path), fs::Permissions::from_mode(0o755)).unwrap();
        let replaced = files.write(path, b"two", Some(&made.digest)).unwrap();
        assert_eq!((replaced.created, replaced.digest), (false, digest(b"two")));
        assert_eq!(
            files.write(path, b"three", Some(&made.digest)).unwrap_err().code,
            FailureCode::ChangedMeanwhile
        );
        assert_eq!(
            files.write(Path::new("b"), b"x", Some(&made.digest)).unwrap_err().code,
            FailureCode::ChangedMeanwhile
        );
        let read = files.read(path, 1, Some(1)).unwrap();
        assert_eq!(
            (read.content.0.as_slice(), read.size, read.more, read.executable),
            (&b"w"[..], 3, true, true)
        );
        assert_eq!(read.digest, digest(b"two"));
        assert_eq!(names(dir.path()), ["a.txt"], "nothing stays behind");
    }

    #[test]
    fn a_file_that_changes_at_the_last_moment_is_put_back() {
        let (dir, files) = scene();
        let made = files.write(Path::new("a"), b"one", None).unwrap();
        let directory = files.root.open_directory(&inner(Path::new("")).unwrap()).unwrap();
        let fresh = FreshFile::write(&directory, OsStr::new("a"), b"mine", Mode::from(0o644)).unwrap();
        fs::write(dir.path().join("a"), "the agent's").unwrap();
        assert!(!fresh.replace(OsStr::new("a"), &made.digest).unwrap());
        assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"the agent's");
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[test]
    fn a_file_that_a_killed_daemon_left_does_not_hinder_the_next_write() {
        let (dir, files) = scene();
        fs::write(dir.path().join(format!(".agency-write-{}", short_hash(b"a"))), "left").unwrap();
        files.write(Path::new("a"), b"one", None).unwrap();
        assert_eq!(names(dir.path()), ["a"]);
    }

    #[test]
    fn links_and_repositories_are_not_written() {
        let (dir, files) = scene();
        fs::write(dir.path().join("target"), "one").unwrap();
        symlink("target", dir.path().join("link")).unwrap();
        let refusal = files.write(Path::new("link"), b"two", Some(&digest(b"one"))).unwrap_err();
        assert_eq!(refusal.code, FailureCode::OutsideWorkspace);
        for path in [".git/config", "deep/.GIT", ".jj/x"] {
            let refusal = files.write(Path::new(path), b"x", None).unwrap_err();
            assert_eq!(refusal.causes, ["it belongs to git or jj"], "{path}");
        }
        assert_eq!(files.write(Path::new("no/such"), b"x", None).unwrap_err().code, FailureCode::NotFound);
        assert_eq!(files.write(Path::new("."), b"x", None).unwrap_err().code, FailureCode::InvalidArgument);
        assert_eq!(
            files.write(Path::new("../x"), b"x", None).unwrap_err().code,
            FailureCode::OutsideWorkspace
        );
        assert_eq!(fs::read(dir.path().join("target")).unwrap(), b"one");
    }

    #[test]
    fn a_listing_names_kinds_and_does_not_follow_links() {
        let (dir, files) = scene();
        fs::create_dir(dir.path().join("dir")).unwrap();
        fs::write(dir.path().join("file"), "12345").unwrap();
        symlink("/etc", dir.path().join("link")).unwrap();
        let listed = files.list(None).unwrap();
        let entries: Vec<(String, FileKind, Option<u64>)> = listed
            .entries
            .iter()
            .map(|entry| (entry.name.as_path().display().to_string(), entry.kind, entry.size))
            .collect();
        let expected = [
            ("dir".to_owned(), FileKind::Directory, None),
            ("file".to_owned(), FileKind::File, Some(5)),
            ("link".to_owned(), FileKind::Link, None),
        ];
        assert_eq!(entries, expected);
        assert_eq!(listed.entries[2].target, Some("/etc".into()));
        assert_eq!(files.list(Some(Path::new("link"))).unwrap_err().code, FailureCode::OutsideWorkspace);
        assert_eq!(files.list(Some(Path::new("file"))).unwrap_err().code, FailureCode::InvalidArgument);
        assert_eq!(files.read(Path::new("dir"), 0, None).unwrap_err().code, FailureCode::InvalidArgument);
    }
}
