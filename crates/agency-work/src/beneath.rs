//! Opens files below one directory. No path leaves it: not by `..`, not by a symbolic link, and not by one that another
//! process swaps in at the last moment.
//!
//! On Linux the kernel resolves the whole path (`openat2`, `RESOLVE_BENEATH`), so links that stay inside are followed.
//! Elsewhere, and on kernels without it, each part of the path is opened by itself and no link is followed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// The directory that nothing leaves.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    resolver: Resolver,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resolver {
    /// The kernel, if it can.
    Kernel,
    /// Part by part, without links.
    Steps,
}

/// A path below the root: relative, without `..`, and not empty unless it is the root itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InnerPath(PathBuf);

impl InnerPath {
    /// `None` if the path could lead out.
    pub fn new(path: &Path) -> Option<InnerPath> {
        let mut inner = PathBuf::new();
        for part in path.components() {
            match part {
                Component::Normal(name) => inner.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(InnerPath(inner))
    }

    /// The path, without `.`.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The directory and the name in it. `None` for the root.
    pub fn split(&self) -> Option<(InnerPath, &std::ffi::OsStr)> {
        Some((InnerPath(self.0.parent()?.to_path_buf()), self.0.file_name()?))
    }
}

impl Root {
    /// Opens the directory. The path to it may have links: it is ours.
    pub fn open(path: &Path) -> io::Result<Root> {
        let directory = openat(CWD, path, directory_flags(), Mode::empty())?;
        let resolver = if cfg!(target_os = "linux") { Resolver::Kernel } else { Resolver::Steps };
        Ok(Root { directory, resolver })
    }

    /// Opens a directory below the root, or the root itself.
    pub fn open_directory(&self, path: &InnerPath) -> io::Result<OwnedFd> {
        self.open_inner(path, directory_flags())
    }

    /// Opens a file below the root for reading. It never waits for the writer of a pipe.
    pub fn open_file(&self, path: &InnerPath) -> io::Result<OwnedFd> {
        self.open_inner(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC)
    }

    fn open_inner(&self, path: &InnerPath, flags: OFlags) -> io::Result<OwnedFd> {
        if path.0.as_os_str().is_empty() {
            return Ok(openat(&self.directory, ".", flags, Mode::empty())?);
        }
        match self.resolver {
            Resolver::Kernel => match resolve_in_kernel(self.directory.as_fd(), &path.0, flags) {
                // Sandboxes answer with `EPERM` for calls that they do not know.
                Err(Errno::NOSYS | Errno::PERM) => open_in_steps(self.directory.as_fd(), &path.0, flags),
                opened => Ok(opened?),
            },
            Resolver::Steps => open_in_steps(self.directory.as_fd(), &path.0, flags),
        }
    }
}

/// Whether the error says that a path leads out, or that a link is in the way.
pub fn leads_out(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::XDEV | Errno::LOOP))
}

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

#[cfg(target_os = "linux")]
fn resolve_in_kernel(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    /// The kernel gives up if a directory is renamed meanwhile. A rename in each of so many attempts is an attack.
    const ATTEMPTS: usize = 32;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..ATTEMPTS {
        match openat2(root, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            opened => return opened,
        }
    }
    Err(Errno::XDEV)
}

#[cfg(not(target_os = "linux"))]
fn resolve_in_kernel(_root: BorrowedFd<'_>, _path: &Path, _flags: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

fn open_in_steps(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let mut parts = path.components().map(Component::as_os_str).peekable();
    let mut current: Option<OwnedFd> = None;
    while let Some(part) = parts.next() {
        let at = current.as_ref().map_or(root, AsFd::as_fd);
        let flags = if parts.peek().is_some() { directory_flags() } else { flags };
        current = Some(openat(at, part, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(as_link_error)?);
    }
    current.ok_or_else(|| Errno::NOENT.into())
}

/// With `O_DIRECTORY`, a link is reported as something that is not a directory.
fn as_link_error(error: Errno) -> io::Error {
    match error {
        Errno::NOTDIR => Errno::LOOP.into(),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::{self, File};
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn roots(path: &Path) -> [Root; 2] {
        let root = || Root::open(path).unwrap();
        [root(), Root { resolver: Resolver::Steps, ..root() }]
    }

    fn read(root: &Root, path: &str) -> io::Result<String> {
        let mut text = String::new();
        let file = root.open_file(&InnerPath::new(Path::new(path)).unwrap())?;
        File::from(file).read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn paths_that_lead_out_have_no_inner_path() {
        for path in ["/etc/passwd", "..", "a/../../b", "a/../b"] {
            assert_eq!(InnerPath::new(Path::new(path)), None, "{path}");
        }
        assert_eq!(InnerPath::new(Path::new("./a/./b")).unwrap().as_path(), Path::new("a/b"));
    }

    #[test]
    fn no_link_leads_out() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("inside");
        fs::create_dir_all(inside.join("deep")).unwrap();
        fs::write(dir.path().join("secret"), "secret").unwrap();
        fs::write(inside.join("deep/file"), "inner").unwrap();
        symlink("../secret", inside.join("up")).unwrap();
        symlink(dir.path().join("secret"), inside.join("absolute")).unwrap();
        symlink("..", inside.join("parent")).unwrap();
        symlink("/proc/self/root", inside.join("magic")).unwrap();
        for root in roots(&inside) {
            assert_eq!(read(&root, "deep/file").unwrap(), "inner");
            for path in ["up", "absolute", "parent/secret", "magic/etc/hostname"] {
                let refused = read(&root, path).unwrap_err();
                assert!(leads_out(&refused), "{path}: {refused}");
            }
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_link_that_stays_inside_is_followed_where_the_kernel_resolves_paths() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("deep")).unwrap();
        fs::write(dir.path().join("deep/file"), "inner").unwrap();
        symlink("deep", dir.path().join("link")).unwrap();
        let [kernel, steps] = roots(dir.path());
        assert_eq!(read(&kernel, "link/file").unwrap(), "inner");
        assert!(leads_out(&read(&steps, "link/file").unwrap_err()));
    }

    #[test]
    fn a_link_that_is_swapped_in_leads_out_at_no_moment() {
        let dir = tempfile::tempdir().unwrap();
        let (inside, outside) = (dir.path().join("inside"), dir.path().join("outside"));
        for (at, text) in [(inside.join("real"), "inner"), (outside.clone(), "secret")] {
            fs::create_dir_all(&at).unwrap();
            fs::write(at.join("file"), text).unwrap();
        }
        symlink(&outside, inside.join("link")).unwrap();
        fs::rename(inside.join("real"), inside.join("door")).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (door, real, link) = (inside.join("door"), inside.join("real"), inside.join("link"));
                while !is_over.load(Ordering::Relaxed) {
                    fs::rename(&door, &real).unwrap();
                    fs::rename(&link, &door).unwrap();
                    fs::rename(&door, &link).unwrap();
                    fs::rename(&real, &door).unwrap();
                }
            });
            // Until both the directory and the link were met often.
            let read_often = |root: Root| -> BTreeMap<String, usize> {
                let mut met = BTreeMap::new();
                while met.len() < 2 || met.values().any(|times| *times < 200) {
                    let text = read(&root, "door/file").unwrap_or_else(|_| "refused".to_owned());
                    *met.entry(text).or_default() += 1;
                }
                met
            };
            // The other thread must end even if this one panics.
            let met = roots(&inside).map(read_often);
            is_over.store(true, Ordering::Relaxed);
            for met in met {
                assert_eq!(met.into_keys().collect::<Vec<_>>(), ["inner", "refused"]);
            }
        });
    }
}
