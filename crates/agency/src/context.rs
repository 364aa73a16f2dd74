//! The context of every command: state directory, current directory, path of this program, daemon.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use agency_api::method::TaskRef;
use agency_api::paths::StateDir;
use agency_api::view::Task;
use agency_api::{Bytes, Failure, FailureCode};
use agency_client::Client;

use crate::progress;

#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) state: StateDir,
    /// The program that is started as the daemon if none is running.
    pub(crate) executable: PathBuf,
    /// `--config KEY=VALUE`, as typed.
    pub(crate) options: Vec<String>,
}

impl Context {
    pub(crate) fn from_process(options: Vec<String>) -> Result<Context, Failure> {
        let state = StateDir::from_env().map_err(|err| {
            Failure::new(err.to_string())
                .code(FailureCode::InvalidConfig)
                .hint("set HOME, or XDG_STATE_HOME to an absolute path")
        })?;
        check_options(&options)?;
        Ok(Context { state, executable: executable(), options })
    }

    /// Connects to the daemon; starts one if none is running.
    pub(crate) async fn daemon(&self) -> Result<Client, Failure> {
        let found = Client::connect_or_start(&self.state, &self.executable);
        progress::during("starting the daemon", found).await
    }

    pub(crate) fn task(&self, name: &str) -> Result<TaskRef, Failure> {
        Ok(TaskRef { cwd: here()?, name: name.to_owned() })
    }

    /// A task, and the terminal beside its agent if the name has one: `fix-login:server`.
    pub(crate) fn terminal(&self, name: &str) -> Result<(TaskRef, Option<String>), Failure> {
        let (task, shell) = agency_core::shell::split_name(name);
        Ok((self.task(task)?, shell.map(str::to_owned)))
    }
}

/// Refuses a wrong `--config` before the command runs, also if the command does not use it.
fn check_options(options: &[String]) -> Result<(), Failure> {
    agency_core::config::from_options(options.iter().map(String::as_str)).map(drop).map_err(|err| {
        let failure = Failure::new("the configuration cannot be used")
            .code(FailureCode::InvalidConfig)
            .because(err.to_string());
        err.problem.hint().into_iter().fold(failure, Failure::hint)
    })
}

/// A reference to a known task that works from every directory.
pub(crate) fn reference(task: &Task) -> TaskRef {
    TaskRef { cwd: task.project.clone(), name: task.id.to_string() }
}

/// `-C DIR`.
pub(crate) fn change_directory(directory: &Path) -> Result<(), Failure> {
    std::env::set_current_dir(directory).map_err(|err| {
        Failure::new(format!("cannot use the directory {}", directory.display()))
            .code(FailureCode::InvalidArgument)
            .caused_by(&err)
    })
}

pub(crate) fn here() -> Result<Bytes, Failure> {
    std::env::current_dir().map(Bytes::from).map_err(|err| {
        Failure::new("cannot find the current directory")
            .code(FailureCode::IoError)
            .caused_by(&err)
            .hint("it may have been deleted: cd somewhere else")
    })
}

/// The path of this program. Linux adds ` (deleted)` if the file was replaced; the new file has the old name.
fn executable() -> PathBuf {
    let path =
        std::env::current_exe().ok().or_else(path_of_first_word).unwrap_or_else(|| PathBuf::from("agency"));
    match path.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(name) if !path.exists() => PathBuf::from(OsString::from_vec(name.to_vec())),
        _ => path,
    }
}

/// Without /proc: the path under which the shell found the program.
fn path_of_first_word() -> Option<PathBuf> {
    let name = PathBuf::from(std::env::args_os().next()?);
    if name.components().count() > 1 {
        return std::path::absolute(name).ok();
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(&name)).find(|path| path.is_file())
}
