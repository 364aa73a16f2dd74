//! The changes of a workspace, as its user sees them.

use std::fs;

use agency_workspace::{Diff, FileStatus, Project, create, diff, patch};

use crate::sandbox::{Sandbox, format_error, name, write};

/// Formats a diff: `A new +1 -0`, one line for each file.
fn listed(diff: &Diff) -> String {
    let line = |file: &agency_workspace::FileDiff| {
        let status = match file.status {
            FileStatus::Added => 'A',
            FileStatus::Modified => 'M',
            FileStatus::Deleted => 'D',
            FileStatus::Renamed => 'R',
            FileStatus::Copied => 'C',
            FileStatus::TypeChanged => 'T',
        };
        let old = file.old_path.as_ref().map(|old| format!("{} → ", old.display())).unwrap_or_default();
        let counts =
            if file.binary { "binary".into() } else { format!("+{} -{}", file.additions, file.deletions) };
        format!("{status} {old}{} {counts}", file.path.display())
    };
    diff.files.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn text(project: &Project, diff: &Diff) -> String {
    String::from_utf8(patch(project, &name("1-fix"), diff).unwrap()).unwrap()
}

#[test]
fn a_diff_shows_everything_since_the_base_and_changes_nothing() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    for (file, content) in
        [("gone", "1\n2\n"), ("old name", "a\nb\nc\nd\ne\nf\n"), (".gitignore", "target\n")]
    {
        sandbox.commit(&root, file, content);
    }
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    sandbox.commit(&path, "committed", "x\n");
    write(&path.join("staged"), "y\n");
    sandbox.git(&path, &["add", "staged"]);
    write(&path.join("readme"), "hello\nworld\n");
    write(&path.join("new dir/größe"), "untracked\n");
    write(&path.join("target/big"), "ignored");
    fs::write(path.join("picture"), b"\x00\x01\x02").unwrap();
    fs::remove_file(path.join("gone")).unwrap();
    fs::rename(path.join("old name"), path.join("new name")).unwrap();
    // New commits of the base are not changes of the workspace.
    sandbox.commit(&root, "readme", "changed in main\n");
    let before = (
        sandbox.git(&path, &["status", "--porcelain"]),
        fs::read(root.join(".git/worktrees/1-fix/index")).unwrap(),
    );

    let seen = diff(&project, &name("1-fix"), Some("main")).unwrap();
    let expected = "A committed +1 -0\nD gone +0 -2\nA new dir/größe +1 -0\nR old name → new name +0 -0\n\
                    A picture binary\nM readme +1 -0\nA staged +1 -0";
    assert_eq!(listed(&seen), expected);
    assert_eq!((seen.additions(), seen.deletions(), seen.warnings.len()), (4, 2, 0));
    let patch = text(&project, &seen);
    assert!(
        patch.contains("+world")
            && patch.contains("rename to new name")
            && !patch.contains("changed in main")
    );
    let after = (
        sandbox.git(&path, &["status", "--porcelain"]),
        fs::read(root.join(".git/worktrees/1-fix/index")).unwrap(),
    );
    assert_eq!(after, before);
}

#[test]
fn a_patch_can_be_applied_elsewhere() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    write(&path.join("[a]*"), "odd name\n");
    let seen = diff(&project, &name("1-fix"), None).unwrap();
    let patch = patch(&project, &name("1-fix"), &seen).unwrap();
    fs::write(root.join("patch"), patch).unwrap();
    sandbox.git(&root, &["apply", "patch"]);
    assert_eq!(fs::read_to_string(root.join("[a]*")).unwrap(), "odd name\n");
}

#[test]
fn commits_that_the_server_has_are_not_changes_of_the_workspace() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let server = sandbox.path().join("server");
    sandbox.git(&root, &["clone", "--quiet", "--bare", ".", server.to_str().unwrap()]);
    sandbox.git(&root, &["remote", "add", "origin", server.to_str().unwrap()]);
    sandbox.git(&root, &["fetch", "--quiet", "origin"]);
    sandbox.git(&root, &["branch", "--quiet", "--set-upstream-to=origin/main"]);
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    sandbox.commit(&path, "theirs", "1");
    sandbox.git(&path, &["push", "--quiet", "origin", "HEAD:main"]);
    sandbox.commit(&path, "own", "1\n");
    assert_eq!(listed(&diff(&project, &name("1-fix"), Some("main")).unwrap()), "A own +1 -0");
}

#[test]
fn a_nested_repository_without_a_commit_hides_no_other_file() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    fs::create_dir(path.join("scaffold")).unwrap();
    sandbox.git(&path.join("scaffold"), &["init", "--quiet"]);
    write(&path.join("work"), "x\n");
    let seen = diff(&project, &name("1-fix"), None).unwrap();
    assert_eq!(listed(&seen), "A work +1 -0");
    assert!(seen.warnings.join("\n").contains("scaffold"), "{:?}", seen.warnings);
}

#[test]
fn a_diff_of_a_deleted_directory_shows_its_commits() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    let path = create(&project, &name("1-fix"), None).unwrap().path;
    sandbox.commit(&path, "work", "1\n");
    fs::remove_dir_all(&path).unwrap();
    assert_eq!(listed(&diff(&project, &name("1-fix"), None).unwrap()), "A work +1 -0");
    let err = diff(&project, &name("2-never"), None).unwrap_err();
    assert!(format_error(&err, err.hint()).contains("does not exist"), "{}", format_error(&err, None));
    let err = diff(&project, &name("1-fix"), Some("mian")).unwrap_err();
    let expected = "Error: cannot compare workspace 1-fix\n\
                    Caused by: there is no branch, tag or commit `mian`\n\
                    Hint: set the task's base_branch to one that exists";
    assert_eq!(format_error(&err, err.hint()), expected);
}
