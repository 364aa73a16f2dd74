//! Ignored files that a new workspace gets copies of.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use agency_workspace::{
    CopyError, INCLUDE_FILE, Project, copy_ignored, create, exclude_agency_dir, includes_files,
    workspace_path,
};

use crate::sandbox::{Sandbox, files_under, name, write};

const IGNORED: &str = ".env*\nnode_modules/\nconfig/*.local\n/build/\n";

struct Scene {
    sandbox: Sandbox,
    root: PathBuf,
    project: Project,
    workspace: PathBuf,
}

/// A repository with common ignore patterns, and a new workspace of it.
fn scene(include: &str) -> Scene {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("git");
    sandbox.commit(&root, ".gitignore", IGNORED);
    let project = sandbox.open(&root);
    exclude_agency_dir(&project).unwrap();
    if !include.is_empty() {
        write(&root.join(INCLUDE_FILE), include);
    }
    create(&project, &name("1-fix"), None).unwrap();
    let workspace = workspace_path(&project, &name("1-fix"));
    Scene { sandbox, root, project, workspace }
}

impl Scene {
    /// Copies, and returns the names of the files that exist afterwards.
    fn copied(&self, patterns: &[&str]) -> Vec<String> {
        let before = files_under(&self.workspace);
        let patterns: Vec<String> = patterns.iter().map(|pattern| pattern.to_string()).collect();
        let copied = copy_ignored(&self.project, &name("1-fix"), &patterns, || true).unwrap();
        let prefix = format!("{}/", self.workspace.display());
        let new = files_under(&self.workspace).into_iter().filter(|file| !before.contains(file));
        let new: Vec<String> = new.map(|file| file.strip_prefix(&prefix).unwrap().to_owned()).collect();
        assert_eq!(copied.files, new.len() as u64, "{copied:?}");
        assert_eq!(copied.left_out, [""; 0]);
        new
    }

    fn write(&self, file: &str, content: &str) -> PathBuf {
        let path = self.root.join(file);
        write(&path, content);
        path
    }
}

#[test]
fn only_ignored_files_that_the_include_file_names_are_copied() {
    let scene = scene(".env\nnode_modules/\n*.local\n!config/b.local\n");
    for file in [".env", "sub/.env", ".env.prod", "config/a.local", "config/b.local", "build/.env"] {
        scene.write(file, file);
    }
    scene.write("node_modules/left-pad/index.js", "js");
    scene.write("new.local", "untracked, not ignored");
    let expected = [".env", "build/.env", "config/a.local", "node_modules/left-pad/index.js", "sub/.env"];
    assert_eq!(scene.copied(&[]), expected);
    assert_eq!(fs::read_to_string(scene.workspace.join("sub/.env")).unwrap(), "sub/.env");
    assert_eq!(scene.sandbox.git(&scene.workspace, &["status", "--porcelain"]), "", "still clean");
    assert_eq!(scene.copied(&[]), [""; 0], "all of it is there");
}

#[test]
fn patterns_of_the_configuration_work_with_and_without_the_include_file() {
    let scene = scene("");
    scene.write(".env", "x");
    scene.write("config/a.local", "x");
    assert!(!includes_files(&scene.project, &[]));
    assert!(includes_files(&scene.project, &["x".to_owned()]));
    assert_eq!(scene.copied(&[]), [""; 0]);
    assert_eq!(scene.copied(&["config/*.local"]), ["config/a.local"]);
    write(&scene.root.join(INCLUDE_FILE), "# a comment\n");
    assert!(includes_files(&scene.project, &[]));
    assert_eq!(scene.copied(&["/.env", "--output=x"]), [".env"]);
}

#[test]
fn an_existing_file_is_not_replaced() {
    let scene = scene(".env\n");
    scene.write(".env", "theirs");
    scene.write("sub/.env", "theirs");
    write(&scene.workspace.join(".env"), "mine");
    symlink("/nowhere", scene.workspace.join("sub")).unwrap();
    let copied = copy_ignored(&scene.project, &name("1-fix"), &[], || true).unwrap();
    assert_eq!(copied.files, 0);
    assert_eq!(copied.left_out, ["sub/.env: sub is not a directory in the workspace"]);
    assert_eq!(fs::read_to_string(scene.workspace.join(".env")).unwrap(), "mine");
}

#[test]
fn a_link_in_the_workspace_cannot_redirect_a_copy() {
    let scene = scene("*.local\n");
    let outside = scene.sandbox.path().join("outside");
    fs::create_dir(&outside).unwrap();
    scene.write("config/a.local", "x");
    symlink(&outside, scene.workspace.join("config")).unwrap();
    copy_ignored(&scene.project, &name("1-fix"), &[], || true).unwrap();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn permissions_times_and_links_are_kept() {
    let scene = scene("node_modules\n.env\n");
    let tool = scene.write("node_modules/.bin/real", "#!/bin/sh\n");
    let secret = scene.write(".env", "KEY=1");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    let then = SystemTime::now() - Duration::from_secs(86_400);
    fs::File::options().write(true).open(&secret).unwrap().set_modified(then).unwrap();
    symlink("real", scene.root.join("node_modules/.bin/link")).unwrap();
    symlink("/etc/hostname", scene.root.join("node_modules/.bin/away")).unwrap();
    assert_eq!(scene.copied(&[]).len(), 4);
    let meta = |file: &str| fs::symlink_metadata(scene.workspace.join(file)).unwrap();
    assert_eq!(meta("node_modules/.bin/real").mode() & 0o777, 0o755);
    assert_eq!(meta(".env").mode() & 0o777, 0o600);
    assert_eq!(meta(".env").modified().unwrap(), fs::metadata(&secret).unwrap().modified().unwrap());
    let target = |file: &str| fs::read_link(scene.workspace.join(file)).unwrap();
    assert_eq!(target("node_modules/.bin/link"), Path::new("real"));
    assert_eq!(target("node_modules/.bin/away"), Path::new("/etc/hostname"));
}

#[test]
fn repositories_inside_and_other_workspaces_are_left_alone() {
    let scene = scene(".env\n.agency/\n");
    create(&scene.project, &name("2-other"), None).unwrap();
    write(&workspace_path(&scene.project, &name("2-other")).join(".env"), "other");
    scene.write(".agency/tasks/1-fix.md", "task");
    scene.write("build/inner/.env", "inner");
    scene.sandbox.git(&scene.root.join("build/inner"), &["init", "--quiet"]);
    assert_eq!(scene.copied(&["*"]), [""; 0]);
}

#[test]
fn a_stopped_copy_is_completed_by_the_next_one() {
    let scene = scene("node_modules/\n");
    for number in 0..20 {
        scene.write(&format!("node_modules/{number}"), "x");
    }
    let mut asked = 0;
    let stopped = copy_ignored(&scene.project, &name("1-fix"), &[], || {
        asked += 1;
        asked <= 7
    });
    assert!(matches!(stopped, Err(CopyError::Stopped)), "{stopped:?}");
    // As a killed copy leaves it.
    write(&scene.workspace.join(".agency/copying/file"), "half");
    assert_eq!(scene.copied(&[]).len(), 13);
    assert!(!scene.workspace.join(".agency").exists());
}

#[test]
fn a_plain_directory_and_a_bare_repository_need_no_copies() {
    let sandbox = Sandbox::new();
    let root = sandbox.path().join("plain");
    write(&root.join(INCLUDE_FILE), ".env\n");
    let plain = sandbox.open_plain(&root);
    assert!(!includes_files(&plain, &[".env".to_owned()]));
    assert_eq!(copy_ignored(&plain, &name("1-fix"), &[], || true).unwrap().files, 0);
    let repository = sandbox.repository("git");
    let bare = sandbox.path().join("bare.git");
    sandbox.git(&sandbox.path(), &["clone", "--quiet", "--bare", repository.to_str().unwrap(), "bare.git"]);
    assert!(!includes_files(&sandbox.open(&bare), &[".env".to_owned()]));
}
