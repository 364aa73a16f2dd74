//! The contents of a sealed environment: programs, an editor, a repository.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::Sealed;
use crate::binaries::Binaries;
use crate::command_output::CommandOutput;

impl Sealed {
    /// Installs links, so that `PATH` leads to nothing else of the build. A link to a program that was not built fails
    /// when a test runs it.
    pub(super) fn install_programs(&self) {
        for (name, path) in Binaries::all() {
            symlink(path, self.path("bin").join(name)).expect("a new directory is empty");
        }
    }

    pub(super) fn install_editor(&self) {
        let path = self.path("bin/editor");
        let text = self.path("editor-text");
        let script = format!("#!/bin/sh\n[ ! -f {0} ] || cat {0} >>\"$1\"\n", text.display());
        fs::write(&path, script)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
            .expect("room for an editor");
    }

    /// Makes another repository with one commit, in a directory that exists.
    pub fn make_repository(&self, dir: &Path) {
        fs::write(dir.join("README.md"), "# scratch\n").expect("room for a file");
        for args in [&["init", "-q", "-b", "main"][..], &["add", "."], &["commit", "-q", "-m", "first"]] {
            let mut git = self.command("git");
            git.current_dir(dir).args(args);
            CommandOutput::of(git, b"").ok();
        }
    }
}
