//! The process of a run's keeper: from its pid file, or, if that cannot be used, from the process table.

use agency_api::ProcessIdentity;
use agency_api::paths::RunDir;
use agency_keeper::keeper_search::find_keepers;
use agency_keeper::pidfile::PidFile;
use agency_keeper::platform;

/// The live keeper of the run in this directory.
pub(crate) fn find(dir: &RunDir) -> Option<ProcessIdentity> {
    let written = PidFile::read(&dir.pid_file()).ok().flatten().map(|file| file.keeper);
    written.filter(platform::is_alive).or_else(|| {
        let run = dir.path().file_name()?.to_str()?;
        find_keepers().into_iter().find(|found| found.run_id == run).map(|found| found.process)
    })
}
