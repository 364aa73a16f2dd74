//! Finds keepers among all processes: by their name, which ends with the run, and by their working directory.
//!
//! This works without any file of the run.

use std::path::PathBuf;

use agency_api::ProcessIdentity;

use crate::platform;

/// The kernel's short name of every keeper begins with this; a version may follow.
pub(crate) const PROGRAM: &str = "agency-keeper";

/// A live keeper, as the process table shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundKeeper {
    /// The process.
    pub process: ProcessIdentity,
    /// The name of the task, or of the connection.
    pub name: String,
    /// The run that it holds.
    pub run_id: String,
    /// The directory of the run, also if it was deleted.
    pub run_dir: PathBuf,
}

/// All live keepers that we may see.
pub fn find_keepers() -> Vec<FoundKeeper> {
    let named = platform::all_processes().into_iter().filter(|process| process.name.starts_with(PROGRAM));
    let found = named.filter(|process| !process.has_ended()).filter_map(|process| {
        // The first argument is `agency-keeper: 1-fix-login q7h…`.
        let arguments = platform::arguments(process.pid);
        let title = String::from_utf8_lossy(arguments.first()?);
        let (name, run_id) = title.strip_prefix("agency-keeper: ")?.rsplit_once(' ')?;
        let run_dir = platform::working_directory(process.pid)?;
        let (name, run_id) = (name.to_owned(), run_id.to_owned());
        Some(FoundKeeper { process: process.identity(), name, run_id, run_dir })
    });
    found.collect()
}
