//! The lock that lets only one merge, sync or commit at a time change the branches of a project.

use std::fs::{File, TryLockError};
use std::path::PathBuf;

use crate::error::OperationCause;
use crate::repository::Repository;

/// Held by the one call that changes branches of a project. Other calls wait for it.
pub(crate) struct IntegrationLock(#[expect(dead_code, reason = "closing the file gives the lock up")] File);

impl IntegrationLock {
    pub(crate) fn acquire(repository: &Repository) -> Result<Self, OperationCause> {
        let (path, file) = open(repository)?;
        file.lock().map_err(|source| OperationCause::Write { path, source })?;
        Ok(Self(file))
    }

    /// Returns None if another call holds the lock.
    pub(crate) fn try_acquire(repository: &Repository) -> Result<Option<Self>, OperationCause> {
        let (path, file) = open(repository)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(OperationCause::Write { path, source }),
        }
    }
}

fn open(repository: &Repository) -> Result<(PathBuf, File), OperationCause> {
    let path = repository.common_dir().join("agency-merge.lock");
    let opened = File::options().create(true).truncate(false).write(true).open(&path);
    match opened {
        Ok(file) => Ok((path, file)),
        Err(source) => Err(OperationCause::Write { path, source }),
    }
}
