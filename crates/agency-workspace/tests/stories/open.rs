//! Which project a directory belongs to.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use agency_workspace::{Vcs, create, state, workspace_path};

use crate::sandbox::{Sandbox, format_error, name, write};

fn root_from(sandbox: &Sandbox, path: &Path) -> std::path::PathBuf {
    sandbox.open(path).root().to_owned()
}

#[test]
fn a_repository_is_one_project_from_wherever_it_is_opened() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("my projects/größe");
    fs::create_dir_all(root.join("src/deep")).unwrap();
    let elsewhere = sandbox.path().join("elsewhere");
    sandbox.git(&root, &["worktree", "add", "--quiet", elsewhere.to_str().unwrap()]);
    let ours = create(&sandbox.open(&elsewhere), &name("1-fix"), None).unwrap();
    let link = sandbox.path().join("link");
    symlink(&root, &link).unwrap();
    for place in [&root, &root.join("src/deep"), &root.join(".git"), &elsewhere, &ours.path, &link] {
        assert_eq!(root_from(&sandbox, place), root, "from {}", place.display());
    }
    assert_eq!(ours.path, root.join(".agency/worktrees/1-fix"));
}

#[test]
fn variables_that_point_git_elsewhere_are_ignored() {
    let sandbox = Sandbox::new();
    let (root, other) = (sandbox.repository("root"), sandbox.repository("other"));
    let sandbox = sandbox.with("GIT_DIR", other.join(".git")).with("GIT_WORK_TREE", &other);
    assert_eq!(root_from(&sandbox, &root), root);
}

#[test]
fn a_bare_repository_is_its_own_root() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository("source");
    let bare = sandbox.path().join("bare.git");
    sandbox.git(&source, &["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    let made = create(&sandbox.open(&bare), &name("1-fix"), None).unwrap();
    assert_eq!(made.path, bare.join(".agency/worktrees/1-fix"));
    fs::create_dir_all(bare.join(".agency/tasks")).unwrap();
    for place in [&bare, &bare.join("refs"), &made.path] {
        let project = sandbox.open(place);
        assert_eq!((project.root(), project.vcs()), (bare.as_path(), Vcs::Git), "from {}", place.display());
    }
    write(&made.path.join("new"), "x");
    assert_eq!(state(&sandbox.open(&bare), &name("1-fix"), None).unwrap().uncommitted, [Path::new("new")]);
}

#[test]
fn a_bare_repository_behind_a_dot_git_is_rooted_beside_it() {
    let sandbox = Sandbox::new();
    let source = sandbox.repository("source");
    for (bare, door) in [("one/.git", None), ("two/.bare", Some("two/.git"))] {
        let bare = sandbox.path().join(bare);
        let root = bare.parent().unwrap();
        fs::create_dir(root).unwrap();
        sandbox.git(&source, &["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
        if let Some(door) = door {
            write(&sandbox.path().join(door), "gitdir: ./.bare\n");
        }
        sandbox.git(root, &["worktree", "add", "--quiet", "main"]);
        for place in [root, &bare, &root.join("main")] {
            assert_eq!(root_from(&sandbox, place), root, "from {}", place.display());
        }
        let made = create(&sandbox.open(root), &name("1-fix"), None).unwrap();
        assert_eq!(root_from(&sandbox, &made.path), root);
    }
}

#[test]
fn a_submodule_is_a_project_of_its_own() {
    let sandbox = Sandbox::new();
    let (source, whole) = (sandbox.repository("source"), sandbox.repository("whole"));
    sandbox.git(&whole, &["submodule", "--quiet", "add", source.to_str().unwrap(), "part"]);
    let part = whole.join("part");
    let made = create(&sandbox.open(&part), &name("1-fix"), None).unwrap();
    for place in [&part, &made.path] {
        assert_eq!(root_from(&sandbox, place), part);
    }
}

#[test]
fn a_separate_git_directory_is_found_from_our_workspaces_and_reported_missing_from_others() {
    let sandbox = Sandbox::new();
    let (root, git_dir) = (sandbox.path().join("root"), sandbox.path().join("kept-apart"));
    let separate = format!("--separate-git-dir={}", git_dir.display());
    sandbox.git(&sandbox.path(), &["init", "--quiet", "--initial-branch=main", &separate, "root"]);
    sandbox.commit(&root, "readme", "hello\n");
    let made = create(&sandbox.open(&root), &name("1-fix"), None).unwrap();
    assert_eq!(root_from(&sandbox, &made.path), root);
    let elsewhere = sandbox.path().join("elsewhere");
    sandbox.git(&root, &["worktree", "add", "--quiet", elsewhere.to_str().unwrap()]);
    let err = sandbox.try_open(&elsewhere).unwrap_err();
    assert_eq!(err.hint().unwrap(), "run the command in the main checkout");
}

#[test]
fn a_directory_without_a_repository_is_refused_with_a_hint() {
    let sandbox = Sandbox::new();
    let err = sandbox.try_open(&sandbox.path()).unwrap_err();
    let expected = format!(
        "Error: {} is not in a git repository\n\
         Hint: run `git init` and commit, or work in the directory itself: agency new SLUG --vcs none",
        sandbox.path().display()
    );
    assert_eq!(format_error(&err, err.hint()), expected);
    let missing = sandbox.try_open(&sandbox.path().join("nowhere")).unwrap_err();
    assert!(missing.to_string().starts_with("cannot enter"), "{missing}");
    let file = sandbox.path().join("file");
    write(&file, "x");
    assert!(sandbox.try_open(&file).unwrap_err().to_string().starts_with("cannot enter"));
}

#[test]
fn a_plain_directory_with_tasks_is_found_from_below_also_inside_a_repository() {
    let sandbox = Sandbox::new();
    let repository = sandbox.repository("repository");
    for root in [sandbox.path().join("plain"), repository.join("docs")] {
        fs::create_dir_all(root.join("chapter")).unwrap();
        assert_eq!(sandbox.open_plain(&root).root(), root);
        fs::create_dir_all(root.join(".agency/tasks")).unwrap();
        let found = sandbox.open(&root.join("chapter"));
        assert_eq!((found.root(), found.vcs()), (root.as_path(), Vcs::Plain));
    }
    assert_eq!(sandbox.open(&repository).vcs(), Vcs::Git);
}

#[test]
fn a_repository_can_be_used_as_a_plain_directory_even_without_a_commit() {
    let sandbox = Sandbox::new();
    let root = sandbox.path();
    sandbox.git(&root, &["init", "--quiet"]);
    let project = sandbox.open_plain(&root);
    assert_eq!(create(&project, &name("1-fix"), None).unwrap().path, root);
    assert_eq!(workspace_path(&project, &name("1-fix")), root);
}

#[test]
fn a_machine_without_git_gets_an_error_and_can_use_plain_directories() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let sandbox = sandbox.with("PATH", root.join("nothing-here"));
    let err = sandbox.try_open(&root).unwrap_err();
    let expected = format!(
        "Error: cannot open the repository of {}\n\
         Caused by: git is not installed, or not in the PATH\n\
         Hint: install git, or use the directory itself with --vcs none",
        root.display()
    );
    assert_eq!(format_error(&err, err.hint()), expected);
    let project = sandbox.open_plain(&root);
    create(&project, &name("1-fix"), None).unwrap();
    agency_workspace::exclude_agency_dir(&project).unwrap();
}

#[test]
fn the_kind_is_written_and_read_as_on_the_command_line() {
    for (vcs, word) in [(Vcs::Git, "git"), (Vcs::Plain, "none")] {
        assert_eq!((vcs.to_string().as_str(), word.parse()), (word, Ok(vcs)));
    }
    assert!("svn".parse::<Vcs>().is_err());
}
