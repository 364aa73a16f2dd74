//! Where Agency keeps things outside the repository.
//!
//! Sockets are here too and not in the runtime directory, which a logout deletes under running keepers.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDir {
    root: PathBuf,
    host: String,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot tell where to keep state: neither XDG_STATE_HOME nor HOME is set")]
pub struct NoHome;

impl StateDir {
    /// `$XDG_STATE_HOME/agency`, else `~/.local/state/agency`. Inside an agent, that of its own daemon.
    pub fn from_env() -> Result<StateDir, NoHome> {
        let own = std::env::var_os("AGENCY_SOCKET").map(PathBuf::from);
        if let Some(root) = own.as_deref().filter(|socket| socket.is_absolute()).and_then(Path::parent) {
            return Ok(StateDir::at(root.to_path_buf()));
        }
        Ok(StateDir::at(base_directory("XDG_STATE_HOME", ".local/state").ok_or(NoHome)?.join("agency")))
    }

    pub fn at(root: PathBuf) -> StateDir {
        StateDir { root, host: host_id() }
    }

    /// Makes the directory, for its owner alone.
    pub fn create(&self) -> io::Result<()> {
        create_private(&self.root)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Which machine this is: with a shared home, several use one state directory.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn daemon_socket(&self) -> PathBuf {
        self.root.join(format!("d-{}.sock", self.host))
    }

    pub fn daemon_lock(&self) -> PathBuf {
        self.root.join(format!("d-{}.lock", self.host))
    }

    pub fn daemon_log(&self) -> PathBuf {
        self.root.join("daemon.log")
    }

    pub fn epoch(&self) -> PathBuf {
        self.root.join("epoch")
    }

    pub fn keeper_copies(&self) -> PathBuf {
        self.root.join("bin")
    }

    pub fn trust(&self) -> PathBuf {
        self.root.join("trust.json")
    }

    pub fn projects(&self) -> PathBuf {
        self.root.join("projects")
    }

    pub fn project(&self, id: &str) -> PathBuf {
        self.projects().join(id)
    }

    pub fn runs(&self) -> PathBuf {
        self.root.join("r")
    }

    pub fn run(&self, id: &str) -> RunDir {
        RunDir(self.runs().join(id))
    }
}

/// The directory of one run. Names are short because sockets live here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir(pub PathBuf);

impl RunDir {
    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn meta(&self) -> PathBuf {
        self.0.join("run.json")
    }

    pub fn socket(&self) -> PathBuf {
        self.0.join("k")
    }

    pub fn pid_file(&self) -> PathBuf {
        self.0.join("pid")
    }

    pub fn journal(&self) -> PathBuf {
        self.0.join("j")
    }
}

/// `$XDG_CONFIG_HOME/agency/config.toml`, else `~/.config/agency/config.toml`.
pub fn global_config() -> Option<PathBuf> {
    Some(base_directory("XDG_CONFIG_HOME", ".config")?.join("agency/config.toml"))
}

fn base_directory(variable: &str, below_home: &str) -> Option<PathBuf> {
    // The specification says that relative paths in these variables are to be ignored.
    match std::env::var_os(variable).map(PathBuf::from) {
        Some(path) if path.is_absolute() => Some(path),
        _ => Some(PathBuf::from(std::env::var_os("HOME").filter(|home| !home.is_empty())?).join(below_home)),
    }
}

/// A directory and its parents, 0700 for what this call makes.
pub fn create_private(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A short stable name for bytes: 64 bits of FNV-1a, as hex.
pub fn short_hash(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn host_id() -> String {
    let mut identity = std::fs::read("/etc/machine-id").unwrap_or_default();
    identity.extend_from_slice(rustix::system::uname().nodename().to_bytes());
    short_hash(&identity)[..8].to_string()
}

/// The identity of a project: its canonical root.
pub fn project_id(root: &Path) -> String {
    short_hash(root.as_os_str().as_bytes())[..12].to_string()
}
