//! Tasks named from anywhere, `-C`, and the list of projects.

use std::path::{Path, PathBuf};

use agency_testkit::CommandOutput;

use crate::stage::{Stage, refused};

/// A second repository with a task, and a directory that is in no repository.
struct Places {
    shop: PathBuf,
    nowhere: PathBuf,
}

fn places(stage: &Stage) -> Places {
    let (shop, nowhere) = (stage.home().join("shop"), stage.home().join("nowhere"));
    std::fs::create_dir(&shop).expect("room");
    std::fs::create_dir(&nowhere).expect("room");
    stage.make_repository(&shop);
    Places { shop, nowhere }
}

fn at(stage: &Stage, dir: &Path, args: &[&str]) -> CommandOutput {
    let mut agency = stage.agency(args);
    agency.current_dir(dir);
    CommandOutput::of(agency, b"")
}

fn draft(stage: &Stage, dir: &Path, slug: &str) {
    at(stage, dir, &["new", slug, "--draft", "-m", "text"]).ok();
}

#[test]
fn a_task_is_named_from_anywhere_and_the_own_project_wins() {
    let stage = Stage::new();
    let Places { shop, nowhere } = places(&stage);
    let here = stage.repo().to_path_buf();
    for (dir, slug) in [(&here, "both"), (&here, "only-here"), (&shop, "both"), (&shop, "cart")] {
        draft(&stage, dir, slug);
    }
    let complete = |dir: &Path, name: &str| at(&stage, dir, &["idle", name]).stderr;
    let about = |dir: &Path, name: &str| complete(dir, name).lines().next().unwrap_or_default().to_owned();
    // A draft cannot become idle: the refusal names the task that was found.
    for (dir, name, found) in [
        (&nowhere, "cart", "task 2"),
        (&nowhere, "shop/cart", "task 2"),
        (&nowhere, "shop/both", "task 1"),
        (&nowhere, "shop/1", "task 1"),
        (&here, "cart", "task 2"),
        (&here, "both", "task 1"),
        (&here, "shop/c", "task 2"),
    ] {
        let line = about(dir, name);
        assert!(line.contains(found) && line.contains("draft"), "{name}: {line}");
    }
    let refusal = refused(at(&stage, &nowhere, &["stop", "both"]));
    let repo = here.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(refusal.starts_with("Error: `both` could be one of 2 tasks\n"), "{refusal}");
    assert!(refusal.contains("\n      shop/1-both\n"), "{refusal}");
    assert!(refusal.contains(&format!("\n      {repo}/1-both\n")), "{refusal}");
    let refusal = refused(at(&stage, &nowhere, &["stop", "1"]));
    assert!(refusal.contains("Hint: every project has its own ids"), "{refusal}");
    let refusal = refused(at(&stage, &nowhere, &["stop", "shpo/cart"]));
    assert!(refusal.contains("did you mean `shop/cart`?"), "{refusal}");
    // The next daemon knows them, too.
    stage.kill_daemon();
    assert!(about(&nowhere, "cart").contains("draft"));
}

#[test]
fn commands_run_in_the_directory_that_the_user_gives() {
    let stage = Stage::new();
    let Places { shop, nowhere } = places(&stage);
    let shop_text = shop.to_str().expect("UTF-8");
    assert_eq!(
        at(&stage, &nowhere, &["-C", shop_text, "new", "cart", "--draft", "-m", "x"]).ok(),
        "1 cart draft\n"
    );
    let listed = at(&stage, &nowhere, &["ls", "-C", "../shop", "--json"]).json();
    assert_eq!(listed["tasks"][0]["slug"], "cart");
    let refusal = refused(at(&stage, &nowhere, &["-C", "missing", "ls"]));
    assert!(refusal.starts_with("Error: cannot use the directory missing\nCaused by: "), "{refusal}");
    // Without a repository and without tasks, bare `agency` gives no advice that would fail.
    at(&stage, &shop, &["rm", "cart"]).ok();
    let refusal = refused(at(&stage, &nowhere, &[]));
    assert!(refusal.contains("is not in a git repository"), "{refusal}");
}

#[test]
fn projects_are_listed_added_and_forgotten() {
    let stage = Stage::new();
    let Places { shop, nowhere } = places(&stage);
    let names = || -> Vec<String> {
        let listed = at(&stage, &nowhere, &["projects", "--json"]).json();
        let projects = listed["projects"].as_array().expect("a list").clone();
        projects.iter().map(|project| project["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(), Vec::<String>::new());
    assert_eq!(
        at(&stage, &nowhere, &["projects", "add", "../shop"]).ok(),
        format!("added {}\n", shop.display())
    );
    assert_eq!(names(), ["shop"]);
    let refusal = refused(at(&stage, &nowhere, &["projects", "add", "../shop"]));
    assert!(refusal.starts_with("Error: Project already added\n"), "{refusal}");
    let refusal = refused(at(&stage, &nowhere, &["projects", "add", "missing"]));
    assert!(refusal.starts_with("Error: Directory does not exist\n"), "{refusal}");
    let refusal = refused(at(&stage, &nowhere, &["projects", "add", "."]));
    assert!(refusal.contains("is not in a git repository"), "{refusal}");

    at(&stage, &shop, &["new", "cart", "--", "fake-agent", "-c", "ask ready?"]).ok();
    let refusal = refused(at(&stage, &nowhere, &["projects", "forget", "shop"]));
    assert!(refusal.contains("Caused by: 1 agent is running in it\n"), "{refusal}");
    at(&stage, &nowhere, &["stop", "cart"]).ok();
    let forgot = at(&stage, &nowhere, &["projects", "forget", "shop"]).ok();
    assert!(forgot.starts_with(&format!("forgot {}; ", shop.display())), "{forgot}");
    assert_eq!(names(), Vec::<String>::new());
    stage.kill_daemon();
    assert_eq!(names(), Vec::<String>::new(), "the next daemon does not list it either");
    assert_eq!(at(&stage, &nowhere, &["ls", "--all", "--json"]).json()["tasks"], serde_json::json!([]));
    assert!(refused(at(&stage, &nowhere, &["start", "cart"])).contains("no task is called `cart`"));
    // Nothing was deleted, and using it adds it again.
    assert_eq!(at(&stage, &shop, &["ls", "--json"]).json()["tasks"][0]["slug"], "cart");
    assert_eq!(names(), ["shop"]);

    // A project whose directory is gone can be forgotten, too.
    stage.kill_daemon();
    std::fs::rename(&shop, stage.home().join("away")).expect("a move");
    assert_eq!(at(&stage, &nowhere, &["projects", "--json"]).json()["projects"][0]["missing"], true);
    at(&stage, &nowhere, &["projects", "forget", "shop"]).ok();
    assert_eq!(names(), Vec::<String>::new());
}
