//! Where Agency keeps things outside the repository.
//!
//! Sockets are here too and not in the runtime directory, which a logout deletes under running keepers.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
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

    /// Makes the directory, for its owner alone, also if it was there before.
    pub fn create(&self) -> io::Result<()> {
        create_private(&self.root)?;
        keep_private(&self.root, rustix::process::geteuid().as_raw())
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

    /// What happened, for who comes later.
    pub fn event_log(&self) -> PathBuf {
        self.root().join("events.jsonl")
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

    /// What is kept of the workspace of one task: its ports, how far it is set up.
    pub fn workspace(&self, project: &str, task: u64) -> WorkspaceDir {
        WorkspaceDir(self.project(project).join("w").join(task.to_string()))
    }

    pub fn runs(&self) -> PathBuf {
        self.root.join("r")
    }

    pub fn run(&self, id: &str) -> RunDir {
        RunDir(self.runs().join(id))
    }

    /// Processes that several tasks share.
    pub fn wires(&self) -> PathBuf {
        self.root.join("w")
    }

    pub fn wire(&self, id: &str) -> RunDir {
        RunDir(self.wires().join(id))
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

    /// When somebody last looked at it.
    pub fn seen(&self) -> PathBuf {
        self.0.join("seen")
    }

    /// Up to which record what happened has been told.
    pub fn told(&self) -> PathBuf {
        self.0.join("told")
    }

    /// What was made of the journal: every change of state.
    pub fn states(&self) -> PathBuf {
        self.0.join("states.jsonl")
    }
}

/// What belongs to one workspace and does not lie in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceDir(pub PathBuf);

impl WorkspaceDir {
    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn record(&self) -> PathBuf {
        self.0.join("workspace.json")
    }

    /// What its last setup printed, and its teardown.
    pub fn setup_log(&self) -> PathBuf {
        self.0.join("setup.log")
    }
}

/// `$XDG_CONFIG_HOME/agency/config.toml`, else `~/.config/agency/config.toml`.
pub fn global_config() -> Option<PathBuf> {
    Some(base_directory("XDG_CONFIG_HOME", ".config")?.join("agency/config.toml"))
}

/// The user's own rules about screens, beside the configuration.
pub fn rules() -> Option<PathBuf> {
    Some(global_config()?.with_file_name("rules"))
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

/// Whoever owns the directory decides what our sockets and files are: that must be us, and us alone.
fn keep_private(path: &Path, us: u32) -> io::Result<()> {
    let meta = std::fs::metadata(path)?;
    if meta.uid() != us {
        let problem = format!("{} belongs to another user (uid {}, we are {us})", path.display(), meta.uid());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem));
    }
    if meta.mode() & 0o777 == 0o700 {
        return Ok(());
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
}

/// A short stable name for bytes: 64 bits of FNV-1a, as hex.
pub fn short_hash(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

fn host_id() -> String {
    let machine_id = std::fs::read("/etc/machine-id").unwrap_or_default();
    let uname = rustix::system::uname();
    short_hash(host_identity(&machine_id, uname.nodename().to_bytes()))[..8].to_string()
}

/// The machine's own id where it has one: its name may change under running keepers, which would then
/// seem to be another host's. Containers that share a home mostly have ids of their own or none, and
/// those without are told apart by name.
fn host_identity<'a>(machine_id: &'a [u8], host_name: &'a [u8]) -> &'a [u8] {
    match machine_id.trim_ascii() {
        // What an image says before its first boot.
        b"" | b"uninitialized" => host_name,
        id => id,
    }
}

/// The identity of a project: its canonical root.
pub fn project_id(root: &Path) -> String {
    short_hash(root.as_os_str().as_bytes())[..12].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn the_state_directory_is_its_owners_alone_also_when_it_was_open_before() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::at(home.path().join("deep/agency"));
        state.create().unwrap();
        assert_eq!(mode(state.root()), 0o700);
        std::fs::set_permissions(state.root(), std::fs::Permissions::from_mode(0o775)).unwrap();
        state.create().unwrap();
        assert_eq!(mode(state.root()), 0o700);
    }

    #[test]
    fn a_state_directory_of_somebody_else_is_refused_and_left_alone() {
        let home = tempfile::tempdir().unwrap();
        std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let stranger = std::fs::metadata(home.path()).unwrap().uid() + 1;
        let err = keep_private(home.path(), stranger).expect_err("refused");
        assert_eq!(err.kind(), io::ErrorKind::PermissionDenied);
        assert!(err.to_string().contains("belongs to another user"), "{err}");
        assert_eq!(mode(home.path()), 0o755);
    }

    #[test]
    fn a_host_that_is_renamed_stays_the_same_host() {
        assert_eq!(host_identity(b"4a7f\n", b"old"), host_identity(b"4a7f\n", b"new"));
        for without in [b"".as_slice(), b"\n", b"uninitialized\n"] {
            assert_eq!(host_identity(without, b"name"), b"name");
        }
    }
}
