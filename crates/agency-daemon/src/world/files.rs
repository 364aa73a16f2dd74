//! `file.list`, `file.read` and `file.write`: files in the workspace of a task.
//!
//! Not here: how paths are kept inside the workspace (see `agency_work::files`).

use std::path::PathBuf;

use agency_api::file::{
    FileContent, FileListParams, FileListing, FileReadParams, FileWriteParams, FileWritten,
};
use agency_api::{Bytes, Failure, method};
use agency_core::ids::TaskKey;
use agency_core::supervisor::Operation;
use agency_run::blocking::blocking;
use agency_work::files::Files;

use super::World;
use super::router::{Later, Router};

pub(super) fn register(router: &mut Router) {
    router.on(method::FileList, World::list_files);
    router.on(method::FileRead, World::read_workspace_file);
    router.on(method::FileWrite, World::write_workspace_file);
}

impl World {
    fn list_files(
        &mut self,
        (key, params): (TaskKey, FileListParams),
    ) -> Result<Later<FileListing>, Failure> {
        let path = params.path;
        self.in_workspace(&key, move |files| files.list(path.as_ref().map(Bytes::as_path)))
    }

    fn read_workspace_file(
        &mut self,
        (key, params): (TaskKey, FileReadParams),
    ) -> Result<Later<FileContent>, Failure> {
        let FileReadParams { path, offset, max_bytes, .. } = params;
        self.in_workspace(&key, move |files| files.read(path.as_path(), offset, max_bytes))
    }

    fn write_workspace_file(
        &mut self,
        (key, params): (TaskKey, FileWriteParams),
    ) -> Result<Later<FileWritten>, Failure> {
        self.may(&key, Operation::WriteFile)?;
        let FileWriteParams { path, content, expect, .. } = params;
        self.in_workspace(&key, move |files| files.write(path.as_path(), &content.0, expect.as_deref()))
    }

    /// Works on files beside the loop.
    fn in_workspace<T: Send + 'static>(
        &self,
        key: &TaskKey,
        work: impl FnOnce(Files) -> Result<T, Failure> + Send + 'static,
    ) -> Result<Later<T>, Failure> {
        let workspace: PathBuf = self.workspace_to_enter(key)?;
        Ok(Later::new(blocking(move || work(Files::open(&workspace)?))))
    }
}
