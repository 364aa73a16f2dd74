//! The lock that lets only one merge, sync or commit at a time change the branches of a project.

use std::fs::File;
use std::io;

use crate::error::OperationCause;
use crate::repository::Repository;

/// Held by the one call that changes branches of a project. Other calls wait for it.
pub(crate) struct IntegrationLock(#[expect(dead_code, reason = "closing the file gives the lock up")] File);

impl IntegrationLock {
    pub(crate) fn acquire(repository: &Repository) -> Result<Self, OperationCause> {
        let path = repository.common_dir().join("agency-merge.lock");
        let open = || -> io::Result<File> {
            let file = File::options().create(true).truncate(false).write(true).open(&path)?;
            file.lock()?;
            Ok(file)
        };
        open().map(Self).map_err(|source| OperationCause::Write { path, source })
    }
}
