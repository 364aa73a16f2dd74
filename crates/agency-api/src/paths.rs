//! The files and directories that Agency keeps outside the repository.
//!
//! Sockets are here too, and not in the runtime directory, because a logout deletes that one under running keepers.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The state directory of Agency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateDir {
    root: PathBuf,
    host: String,
}

/// Neither `XDG_STATE_HOME` nor `HOME` is set.
#[derive(Debug, thiserror::Error)]
#[error("cannot tell where to keep state: neither XDG_STATE_HOME nor HOME is set")]
pub struct NoHome;

impl StateDir {
    /// `$XDG_STATE_HOME/agency`, or else `~/.local/state/agency`. Inside an agent it is the one of the agent's daemon.
    pub fn from_env() -> Result<StateDir, NoHome> {
        let own = std::env::var_os("AGENCY_SOCKET").map(PathBuf::from);
        if let Some(root) = own.as_deref().filter(|socket| socket.is_absolute()).and_then(Path::parent) {
            return Ok(StateDir::at(root.to_path_buf()));
        }
        Ok(StateDir::at(base_directory("XDG_STATE_HOME", ".local/state").ok_or(NoHome)?.join("agency")))
    }

    /// The state directory at this path.
    pub fn at(root: PathBuf) -> StateDir {
        StateDir { root, host: host_id() }
    }

    /// Makes the directory and restricts it to its owner, also if it exists already.
    pub fn create(&self) -> io::Result<()> {
        create_private(&self.root)?;
        keep_private(&self.root, rustix::process::geteuid().as_raw())
    }

    /// The path of the directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The id of this machine. With a shared home, several machines use one state directory.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The socket of the daemon on this machine.
    pub fn daemon_socket(&self) -> PathBuf {
        self.root.join(format!("d-{}.sock", self.host))
    }

    /// The lock that allows one daemon on this machine.
    pub fn daemon_lock(&self) -> PathBuf {
        self.root.join(format!("d-{}.lock", self.host))
    }

    /// The log of announced events.
    pub fn event_log(&self) -> PathBuf {
        self.root().join("events.jsonl")
    }

    /// The log of the daemon.
    pub fn daemon_log(&self) -> PathBuf {
        self.root.join("daemon.log")
    }

    /// The file with the daemon's epoch.
    pub fn epoch(&self) -> PathBuf {
        self.root.join("epoch")
    }

    /// The file with the format of this directory.
    pub fn format(&self) -> PathBuf {
        self.root.join("format.json")
    }

    /// The copies of the keeper's program.
    pub fn keeper_copies(&self) -> PathBuf {
        self.root.join("bin")
    }

    /// The file with the user's consents.
    pub fn trust(&self) -> PathBuf {
        self.root.join("trust.json")
    }

    /// The file with the memory of programs.
    pub fn program_memory(&self) -> PathBuf {
        self.root.join("programs.json")
    }

    /// The directory of the reports that users wrote about wrong states.
    pub fn reports(&self) -> PathBuf {
        self.root.join("reports")
    }

    /// The directory of all projects.
    pub fn projects(&self) -> PathBuf {
        self.root.join("projects")
    }

    /// The directory of one project.
    pub fn project(&self, id: &str) -> PathBuf {
        self.projects().join(id)
    }

    /// The directory of one task's workspace: its ports, and how far its setup is.
    pub fn workspace(&self, project: &str, task: u64) -> WorkspaceDir {
        WorkspaceDir(self.project(project).join("w").join(task.to_string()))
    }

    /// The directory of all runs.
    pub fn runs(&self) -> PathBuf {
        self.root.join("r")
    }

    /// The directory of one run.
    pub fn run(&self, id: &str) -> RunDir {
        RunDir(self.runs().join(id))
    }

    /// The directory of all connections: processes that several tasks share.
    pub fn connections(&self) -> PathBuf {
        self.root.join("w")
    }

    /// The directory of one connection.
    pub fn connection(&self, id: &str) -> RunDir {
        RunDir(self.connections().join(id))
    }
}

/// The directory of one run. Its names are short, because socket addresses are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir(pub PathBuf);

impl RunDir {
    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The task, the project and the agent of the run.
    pub fn meta(&self) -> PathBuf {
        self.0.join("run.json")
    }

    /// The keeper's socket.
    pub fn socket(&self) -> PathBuf {
        self.0.join("k")
    }

    /// The keeper's pid file.
    pub fn pid_file(&self) -> PathBuf {
        self.0.join("pid")
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.0.join("j")
    }

    /// The file with the time of the last look at the run.
    pub fn seen_file(&self) -> PathBuf {
        self.0.join("seen")
    }

    /// The file with the last record whose events were announced.
    pub fn announced_file(&self) -> PathBuf {
        self.0.join("told")
    }

    /// The answers to dialogs on the run's terminal.
    pub fn decisions(&self) -> PathBuf {
        self.0.join("decisions.jsonl")
    }

    /// Every change of state, with its evidence.
    pub fn states(&self) -> PathBuf {
        self.0.join("states.jsonl")
    }
}

/// The directory of what belongs to one workspace and is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceDir(pub PathBuf);

impl WorkspaceDir {
    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The ports, the progress of the setup, and the id of its commands.
    pub fn record(&self) -> PathBuf {
        self.0.join("workspace.json")
    }

    /// The output of the last setup or teardown.
    pub fn setup_log(&self) -> PathBuf {
        self.0.join("setup.log")
    }
}

/// The user's configuration: `$XDG_CONFIG_HOME/agency/config.toml`, or else `~/.config/agency/config.toml`.
pub fn global_config() -> Option<PathBuf> {
    Some(base_directory("XDG_CONFIG_HOME", ".config")?.join("agency/config.toml"))
}

/// The directory of the user's screen rules, beside the configuration.
pub fn rules() -> Option<PathBuf> {
    Some(global_config()?.with_file_name("rules"))
}

fn base_directory(variable: &str, below_home: &str) -> Option<PathBuf> {
    // The XDG specification says to ignore relative paths in these variables.
    match std::env::var_os(variable).map(PathBuf::from) {
        Some(path) if path.is_absolute() => Some(path),
        _ => Some(PathBuf::from(std::env::var_os("HOME").filter(|home| !home.is_empty())?).join(below_home)),
    }
}

/// Makes a directory and its parents. Those that this call makes get the mode 0700.
pub fn create_private(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Restricts a directory to us. Its owner could replace our sockets and files, so another owner is an error.
pub(crate) fn keep_private(path: &Path, us: u32) -> io::Result<()> {
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

/// The machine's own id if it has one: if its name changed under running keepers, they would seem to belong to another
/// host. Containers that share a home usually have an id each or none. Those without an id differ by their name.
fn host_identity<'a>(machine_id: &'a [u8], host_name: &'a [u8]) -> &'a [u8] {
    match machine_id.trim_ascii() {
        // An image has this value before its first boot.
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
    fn the_state_directory_is_restricted_to_its_owner_also_if_it_was_open_before() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::at(home.path().join("deep/agency"));
        state.create().unwrap();
        assert_eq!(mode(state.root()), 0o700);
        std::fs::set_permissions(state.root(), std::fs::Permissions::from_mode(0o775)).unwrap();
        state.create().unwrap();
        assert_eq!(mode(state.root()), 0o700);
    }

    #[test]
    fn a_state_directory_of_another_user_is_refused_and_stays_unchanged() {
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
