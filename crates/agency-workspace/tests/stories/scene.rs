//! A git repository with one workspace, `1-fix`, in which most stories take place.
//!
//! Each file of stories adds its own steps in an `impl Scene`.

use std::path::{Path, PathBuf};

use agency_workspace::{Project, create};

use crate::sandbox::{Sandbox, name};

pub(crate) struct Scene {
    pub(crate) sandbox: Sandbox,
    /// The main checkout.
    pub(crate) root: PathBuf,
    pub(crate) project: Project,
    /// The workspace `1-fix`.
    pub(crate) path: PathBuf,
}

impl Scene {
    /// Creates the workspace after `prepare` has changed the repository.
    pub(crate) fn new(sandbox: Sandbox, prepare: impl FnOnce(&Sandbox, &Path)) -> Self {
        let root = sandbox.repository("root");
        prepare(&sandbox, &root);
        let project = sandbox.open(&root);
        let path = create(&project, &name("1-fix"), None).unwrap().path;
        Self { sandbox, root, project, path }
    }

    /// Runs git in the main checkout.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.sandbox.git(&self.root, args)
    }

    /// Runs git in the workspace.
    pub(crate) fn git_inside(&self, args: &[&str]) -> String {
        self.sandbox.git(&self.path, args)
    }
}
