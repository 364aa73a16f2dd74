//! What a sealed environment is furnished with: programs, an editor, a repository.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::binaries::Binaries;
use crate::ran::Ran;
use crate::sealed::Sealed;

impl Sealed {
    /// Links, so that nothing else of the build is found. What was not built is missed when it is run.
    pub(crate) fn install_programs(&self) {
        for (name, path) in Binaries::all() {
            symlink(path, self.path("bin").join(name)).expect("a new directory is empty");
        }
    }

    pub(crate) fn install_editor(&self) {
        let path = self.path("bin/editor");
        let text = self.path("editor-text");
        let script = format!("#!/bin/sh\n[ ! -f {0} ] || cat {0} >>\"$1\"\n", text.display());
        fs::write(&path, script)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
            .expect("room for an editor");
    }

    /// Another repository of one commit, in a directory that is there.
    pub fn make_repository(&self, dir: &Path) {
        fs::write(dir.join("README.md"), "# scratch\n").expect("room for a file");
        for args in [&["init", "-q", "-b", "main"][..], &["add", "."], &["commit", "-q", "-m", "first"]] {
            let mut git = self.command("git");
            git.current_dir(dir).args(args);
            Ran::of(git, b"").ok();
        }
    }
}
