//! The table of tasks, word for word, at many widths.

use agency_api::Bytes;
use agency_api::view::{Conflict, Why};

use super::*;
use crate::sample_task::{draft, ended, merged, read, waiting, with_detail, working};
use crate::task_order::{Sort, sorted};

const PLAIN: Look =
    Look { paint: Paint::Plain, marks: Marks::Emoji, width: None, all_projects: false, ages: Ages::Exact };

fn shown(tasks: &[Task], look: Look) -> String {
    lines(&task_tree::order_by_parent(&sorted(tasks, Sort::Need)), look).join("\n")
}

fn conflict(with: &str, files: &[&str]) -> Conflict {
    let files = files.iter().map(|file| Bytes::from(*file)).collect();
    Conflict { with: with.into(), task: None, files }
}

/// Tasks in all kinds of states.
fn desk() -> Vec<Task> {
    let mut far = draft(9, "far");
    far.elsewhere = Some("build-7".into());
    vec![
        merged(1, "old"),
        working(2, "build", 420),
        read(waiting(3, "docs", Why::Finished, 900)),
        with_detail(waiting(4, "fix-login", Why::Permission, 12), "approve Bash: rm -rf build"),
        waiting(5, "api", Why::Finished, 60),
        ended(6, "tests", "2", false),
        ended(7, "paused", "-15", true),
        draft(8, "idea"),
        far,
    ]
}

#[test]
fn what_an_agent_wants_comes_first_and_what_is_over_last() {
    assert_eq!(
        shown(&desk(), PLAIN),
        "\
ID  SLUG       STATE                                                       AGENT  AGE
4   fix-login  🟡 asks permission 12s, unread: approve Bash: rm -rf build  Shell  3m
5   api        🟡 done 1m, unread                                          Shell  3m
2   build      🟢 working 7m                                               Shell  3m
3   docs       🟡 done 15m                                                 Shell  3m
6   tests      🔴 failed 5m: exit 2                                        Shell  3m
7   paused     ⚪ stopped 5m                                               Shell  3m
8   idea       ⚪ draft                                                    Shell  3m
9   far        ⚪ on build-7                                               Shell  3m
1   old        ⚪ merged                                                   Shell  3m"
    );
}

#[test]
fn unread_work_is_bold_read_work_is_dim_and_stale_work_is_orange() {
    let look = Look { paint: Paint::Coloured, ..PLAIN };
    let new = waiting(1, "new", Why::Finished, 60);
    let known =
        read(Task { workspace_status: WorkspaceStatus::Stale, ..waiting(2, "known", Why::Finished, 60) });
    let asked = ended(3, "asked", "-15", true);
    let shown = shown(&[new, known, asked], look);
    assert!(shown.contains("\x1b[1;33m🟡 done 1m\x1b[0m"), "{shown}");
    assert!(shown.contains("\x1b[2;38;5;208m🟠 done 1m\x1b[0m"), "{shown}");
    assert!(shown.contains("\x1b[2m⚪ stopped 5m\x1b[0m"), "a stop is grey and no error: {shown}");
    assert!(!shown.contains("unread"), "{shown}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut tasks = desk();
    tasks[0].project = Bytes::from("/home/user/projects/with-a-long-name/shop");
    tasks[3].conflicts = vec![conflict("2-docs", &["a.rs", "b.rs"]), conflict("main", &["src/main.rs"])];
    tasks.push(waiting(10, "a-rather-long-name-for-a-task-that-differs-in-the-end", Why::Prompt, 5));
    for marks in [Marks::Emoji, Marks::Ascii] {
        for width in 1..=200 {
            let look = Look { width: Some(width), marks, all_projects: true, ..PLAIN };
            for line in shown(&tasks, look).lines() {
                assert!(line.width() <= width, "{width}: {line:?} has {}", line.width());
                assert!(marks == Marks::Emoji || line.is_ascii(), "{line}");
            }
        }
    }
}

#[test]
fn details_are_cut_first_slugs_in_the_middle_and_projects_from_the_left() {
    let long = "a-rather-long-name-for-a-task-that-differs-in-the-end-1";
    let mut tasks =
        vec![with_detail(waiting(1, long, Why::Permission, 12), "approve Bash: rm -rf build and much more")];
    tasks[0].project = Bytes::from("/home/user/projects/shop");
    let at = |width| shown(&tasks, Look { width: Some(width), all_projects: true, ..PLAIN });
    let wide = at(150);
    assert!(wide.contains(long) && wide.contains("asks permission 12s, unread: appr"), "{wide}");
    assert!(wide.contains("/home/user/projects/shop"), "{wide}");
    let usual = at(80);
    assert!(usual.contains("a-rather-l") && usual.contains("the-end-1"), "{usual}");
    assert!(usual.contains("asks permission 12s") && usual.contains("…r/projects/shop"), "{usual}");
    let narrow = at(50);
    assert!(narrow.contains("asks permission 12s") && narrow.contains("end-1"), "{narrow}");
}

#[test]
fn conflicts_have_a_column_while_there_are_any() {
    let mut tasks = [draft(1, "fix"), draft(2, "docs")];
    tasks[0].conflicts = vec![conflict("main", &["a.rs"]), conflict("2-docs", &["a.rs", "b.rs"])];
    assert_eq!(
        shown(&tasks, PLAIN),
        "\
ID  SLUG  STATE     AGENT  AGE  CONFLICTS
1   fix   ⚪ draft  Shell  3m   ⚔ main: a.rs, ⚔ 2-docs: 2 files
2   docs  ⚪ draft  Shell  3m"
    );
}

#[test]
fn a_task_that_an_agent_started_is_shown_under_it() {
    let child = |id: u64, parent: u64| Task { parent: Some(parent), ..draft(id, "x") };
    let tasks = [draft(1, "boss"), draft(2, "other"), child(3, 1), child(4, 3), child(5, 1)];
    let names = |tasks: &[Task]| -> Vec<String> {
        let shown = shown(tasks, PLAIN);
        shown
            .lines()
            .skip(1)
            .map(|line| line.split(" ⚪").next().unwrap_or(line).trim_end().to_owned())
            .collect()
    };
    assert_eq!(names(&tasks), ["1   boss", "3   └ x", "4     └ x", "5   └ x", "2   other"]);
    let circle = [child(1, 2), child(2, 1)];
    assert_eq!(names(&circle).len(), 2, "no task is left out");
    let asks = Task { parent: Some(2), ..waiting(6, "asks", Why::Question, 3) };
    let families = [draft(1, "boss"), draft(2, "other"), asks];
    let order: Vec<String> = names(&families)
        .iter()
        .map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(order, ["2 other", "6 └", "1 boss"], "a child that needs the user brings its family up");
}

#[test]
fn a_list_that_stays_on_the_screen_counts_no_seconds() {
    let tasks = [waiting(1, "new", Why::Finished, 12), waiting(2, "old", Why::Finished, 150)];
    let shown = shown(&tasks, Look { ages: Ages::Coarse, ..PLAIN });
    assert!(shown.contains("done <1m") && shown.contains("done 2m"), "{shown}");
}
