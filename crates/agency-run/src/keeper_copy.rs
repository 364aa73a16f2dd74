//! The keeper's program, copied to a file for each version.
//!
//! Keepers run for weeks. If an upgrade replaced the file that they were started from, a rescue would start another version
//! than it expects.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use agency_api::paths::{StateDir, create_private, short_hash};
use agency_store::atomic;

const NAME: &str = "agency-keeper";

/// Why there is no copy of the keeper.
#[derive(Debug, thiserror::Error)]
pub enum KeeperCopyError {
    /// The keeper's program is not beside this one.
    #[error("no {NAME} beside {}", .0.display())]
    Missing(PathBuf),
    /// The program cannot be read, or its copy cannot be written.
    #[error("cannot copy {} to {}", from.display(), to.display())]
    Copy {
        /// The program.
        from: PathBuf,
        /// The copy.
        to: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Returns the copy of the keeper that belongs to this build, and makes it if it is missing.
pub fn installed(state: &StateDir) -> Result<PathBuf, KeeperCopyError> {
    let from = find()?;
    let content = std::fs::read(&from).map_err(|source| copy_error(&from, &state.keeper_copies(), source))?;
    let name = format!("{NAME}-{}-{}", env!("CARGO_PKG_VERSION"), &short_hash(&content)[..8]);
    let to = state.keeper_copies().join(name);
    if is_whole(&to, &content) {
        return Ok(to);
    }
    create_private(&state.keeper_copies())
        .and_then(|()| atomic::write_with_mode(&to, &content, 0o700))
        .map_err(|source| copy_error(&from, &to, source))?;
    Ok(to)
}

fn is_whole(path: &Path, content: &[u8]) -> bool {
    let is_program = std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o100 != 0);
    is_program && std::fs::read(path).is_ok_and(|copy| copy == content)
}

/// Looks at `$AGENCY_KEEPER`, then beside this program, then where a development build puts it.
fn find() -> Result<PathBuf, KeeperCopyError> {
    if let Some(path) = std::env::var_os("AGENCY_KEEPER") {
        return Ok(PathBuf::from(path));
    }
    let program =
        std::env::current_exe().map_err(|_| KeeperCopyError::Missing(PathBuf::from("this program")))?;
    let beside = program.with_file_name(NAME);
    let built = program.ancestors().nth(2).map(|target| target.join("keeper").join(NAME));
    [Some(beside), built]
        .into_iter()
        .flatten()
        .find(|path| path.is_file())
        .ok_or(KeeperCopyError::Missing(program))
}

fn copy_error(from: &Path, to: &Path, source: io::Error) -> KeeperCopyError {
    KeeperCopyError::Copy { from: from.to_path_buf(), to: to.to_path_buf(), source }
}
