//! Keeping `.agency/` out of git.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::thread;

use agency_workspace::{create, exclude_agency_dir, update_exclude_lines};

use crate::sandbox::{Sandbox, name, write};

#[test]
fn the_line_is_added_once_and_other_lines_stay() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let file = root.join(".git/info/exclude");
    write(&file, "*.swp\r\n# no newline at the end");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let project = sandbox.open(&root);
    let inside = sandbox.open(&create(&project, &name("1-fix"), None).unwrap().path);
    for project in [&project, &inside, &project] {
        exclude_agency_dir(project).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "*.swp\r\n# no newline at the end\n/.agency/*\n!/.agency/config.toml\n"
    );
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    write(&root.join(".agency/tasks/1-fix.md"), "");
    assert_eq!(sandbox.git(&root, &["status", "--porcelain"]), "");
}

#[test]
fn concurrent_calls_add_one_line() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let project = sandbox.open(&root);
    fs::remove_dir_all(root.join(".git/info")).unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| exclude_agency_dir(&project).unwrap());
        }
    });
    assert_eq!(
        fs::read_to_string(root.join(".git/info/exclude")).unwrap(),
        "/.agency/*\n!/.agency/config.toml\n"
    );
    assert_eq!(fs::read_dir(root.join(".git/info")).unwrap().count(), 1);
}

#[test]
fn an_exclude_file_that_is_a_link_stays_one() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let (file, dotfile) = (root.join(".git/info/exclude"), sandbox.path().join("dotfile"));
    write(&dotfile, "");
    fs::remove_file(&file).unwrap();
    symlink(&dotfile, &file).unwrap();
    exclude_agency_dir(&sandbox.open(&root)).unwrap();
    assert!(file.symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&dotfile).unwrap(), "/.agency/*\n!/.agency/config.toml\n");
}

#[test]
fn a_plain_directory_inside_a_repository_is_kept_out_of_it() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let docs = root.join("odd [name] *");
    write(&docs.join(".agency/tasks/1-fix.md"), "");
    exclude_agency_dir(&sandbox.open_plain(&docs)).unwrap();
    assert_eq!(sandbox.git(&root, &["status", "--porcelain"]), "");
    exclude_agency_dir(&sandbox.open_plain(&root)).unwrap();
    let content = fs::read_to_string(root.join(".git/info/exclude")).unwrap();
    let odd = "/odd \\[name] \\*/.agency";
    let lines = format!("{odd}/*\n!{odd}/config.toml\n/.agency/*\n!/.agency/config.toml\n");
    assert!(content.ends_with(&lines), "{content}");
}

#[test]
fn the_configuration_of_a_project_can_be_committed() {
    let sandbox = Sandbox::new();
    let root = sandbox.repository("root");
    let file = root.join(".git/info/exclude");
    write(&file, "*.swp\n/.agency/\n*.orig\n");
    let project = sandbox.open(&root);
    write(&root.join(".agency/config.toml"), "max_agents = 3\n");
    write(&root.join(".agency/tasks/1-fix.md"), "");
    assert_eq!(sandbox.git(&root, &["status", "--porcelain"]), "", "the line of earlier versions");
    update_exclude_lines(&project).unwrap();
    update_exclude_lines(&project).unwrap();
    let lines = "*.swp\n*.orig\n/.agency/*\n!/.agency/config.toml\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), lines);
    sandbox.git(&root, &["add", ".agency/config.toml"]);
    assert_eq!(sandbox.git(&root, &["status", "--porcelain"]).trim_end(), "A  .agency/config.toml");
    // A repository that Agency does not keep out gets no lines.
    write(&file, "*.swp\n");
    update_exclude_lines(&project).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "*.swp\n");
}
