//! Eight agents commit at once in one repository; their work is merged, removed and restored at once. Nothing is lost.

use std::fs;

use crate::stage::Stage;
use crate::work_diff::{commit, put, stage};

const AGENTS: usize = 8;
const COMMITS: usize = 4;
const FILES: usize = 200;

/// Each agent changes its own lines of a shared file; at this distance git can merge them.
const LINES_APART: usize = 10;

/// Each commit has a new file and a line of the shared one; a commit that fails ends the agent with another exit code.
const SCRIPT: &str = r#"set -e
number=$1 line=$2 commits=$3
i=0
while [ $i -lt $commits ]; do
    i=$((i + 1))
    echo "$i" >"own/$number-$i"
    awk -v line="$line" -v i="$i" 'NR == line { $0 = $0 " " i } 1' shared >shared.new
    mv shared.new shared
    git add --all
    git commit --quiet --message "$number $i"
done"#;

#[test]
fn eight_tasks_commit_and_merge_at_once_and_nothing_is_lost() {
    let stage = stage_with_shared_file();
    std::thread::scope(|scope| {
        let stage = &stage;
        let working: Vec<_> =
            (1..=AGENTS).map(|number| scope.spawn(move || run_task(stage, number))).collect();
        // The daemon answers calls meanwhile.
        while working.iter().any(|one| !one.is_finished()) {
            stage.run(["conflicts"]).ok();
            stage.run(["ls"]).ok();
        }
    });
    assert_eq!(stage.run(["conflicts", "--json"]).json()["conflicts"], serde_json::json!([]));
    let before = branches(&stage);
    assert_eq!(before.len(), AGENTS);

    at_once(|number| merge_task(&stage, number));
    check_all_merged(&stage);
    at_once(|number| drop(stage.run(["rm", &slug(number)]).ok()));
    assert_eq!(branches(&stage), [""; 0]);
    at_once(|number| drop(stage.run(["undo", &slug(number)]).ok()));
    assert_eq!(branches(&stage), before);
    check_all_merged(&stage);
}

fn stage_with_shared_file() -> Stage {
    let stage = stage();
    let repo = stage.repo();
    for number in 0..FILES {
        put(&repo.join(format!("part{}/file{number}", number / 50)), &format!("{number}\n").repeat(20));
    }
    put(&repo.join("own/0"), "");
    let lines = (1..=LINES_APART * (AGENTS + 1)).map(|line| format!("line {line}\n"));
    put(&repo.join("shared"), &lines.collect::<String>());
    commit(&stage, &repo, "files");
    stage
}

fn slug(number: usize) -> String {
    format!("agent-{number}")
}

fn line_of(number: usize) -> usize {
    LINES_APART * number
}

fn at_once(work: impl Fn(usize) + Sync) {
    let work = &work;
    std::thread::scope(|scope| {
        for number in 1..=AGENTS {
            scope.spawn(move || work(number));
        }
    });
}

/// Starts the agent and waits until it has made all its commits.
fn run_task(stage: &Stage, number: usize) {
    let slug = slug(number);
    let [number, line, commits] = [number, line_of(number), COMMITS].map(|argument| argument.to_string());
    let agent = ["--", "sh", "-c", SCRIPT, "sh", &number, &line, &commits];
    stage.run([&["new", &slug, "--no-attach"], &agent[..]].concat()).ok();
    stage.run(["wait", &slug, "--until", "exited"]).ok();
    let task = stage.wait_task(&slug, "is done", |task| task["run"].is_null());
    assert_eq!(task["last_exit"], "0", "{}", stage.logs(&slug));
    stage.run(["complete", &slug]).ok();
}

fn merge_task(stage: &Stage, number: usize) {
    let way: &[&str] = match number % 3 {
        0 => &[],
        1 => &["--squash"],
        _ => &["--rebase"],
    };
    stage.run([&["merge", &slug(number)], way].concat()).ok();
}

/// The new commits of each workspace's branch.
fn branches(stage: &Stage) -> Vec<String> {
    let repo = stage.repo();
    let names = stage.git(&repo, &["for-each-ref", "--format=%(refname)", "refs/heads/agency/"]);
    let own = |name: &str| {
        let commits =
            stage.git(&repo, &["log", "--format=%H %s", "--no-merges", name, &format!("^{name}~{COMMITS}")]);
        assert_eq!(commits.lines().count(), COMMITS, "{commits}");
        commits
    };
    names.lines().map(own).collect()
}

/// Checks that branch and checkout contain every file and every line of every agent, and nothing else.
fn check_all_merged(stage: &Stage) {
    let repo = stage.repo();
    assert_eq!(stage.git(&repo, &["status", "--porcelain"]), "");
    let shared = fs::read_to_string(repo.join("shared")).expect("a file");
    let lines: Vec<&str> = shared.lines().collect();
    for number in 1..=AGENTS {
        let commits: Vec<String> = (1..=COMMITS).map(|commit| commit.to_string()).collect();
        let line = line_of(number);
        assert_eq!(lines[line - 1], format!("line {line} {}", commits.join(" ")));
        for commit in commits {
            let file = fs::read_to_string(repo.join(format!("own/{number}-{commit}"))).expect("a file");
            assert_eq!(file, format!("{commit}\n"));
        }
    }
    stage.git(&repo, &["fsck", "--no-dangling"]);
}
