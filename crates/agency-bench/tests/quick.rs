//! The harness at its smallest sizes: every measure gives its figures. Does not test speed.

use std::collections::BTreeSet;
use std::process::Command;

/// Figures that a run must have for Agency, whichever peers are installed.
const OF_AGENCY: [(&str, &str); 21] = [
    ("cat", "detached, wall"),
    ("cat", "detached, CPU"),
    ("cat", "attached, wall"),
    ("echo", "p50"),
    ("echo", "p99"),
    ("attach", "until the screen is drawn"),
    ("attach", "until the scrollback is there"),
    ("floods", "4 at once, wall"),
    ("floods", "p99 of echo beside an endless flood"),
    ("start", "until the first output, beyond git"),
    ("worktree", "20 tasks at once"),
    ("worktree", "`agency conflicts`, one changed"),
    ("memory", "PSS at 2"),
    ("memory", "idle CPU at 2"),
    ("memory", "PSS of 10 000 lines"),
    ("agents", "`agency ls`, p50"),
    ("agents", "first `agency ls` after the daemon's death, beside 1 000 stopped tasks, p50"),
    ("tasks", "`agency ls`, p50"),
    ("tasks", "`agency doctor` with 100 tasks, p50"),
    ("conversation", "opened when its agent has ended, p50"),
    ("conversation", "`agency search`, p50"),
];

#[test]
fn a_quick_run_gives_every_figure_and_can_be_shown_again() {
    let dir = tempfile::tempdir().unwrap();
    let (json, page) = (dir.path().join("run.json"), dir.path().join("page.md"));
    let mut bench = Command::new(env!("CARGO_BIN_EXE_agency-bench"));
    let output = bench.args(["--quick", "--peers", "agency,bare", "--json"]).arg(&json).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let run: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let figures = run["figures"].as_array().unwrap().iter();
    let agency = figures.filter(|figure| figure["peer"] == "agency" && !figure["values"][0].is_null());
    let found: BTreeSet<_> =
        agency.filter_map(|it| Some((it["measure"].as_str()?, it["name"].as_str()?))).collect();
    let missing: Vec<_> = OF_AGENCY.iter().filter(|name| !found.contains(name)).collect();
    assert!(missing.is_empty(), "no figures for {missing:?}");

    std::fs::write(
        &page,
        "# Page\n<!-- figures: written by `make bench-doc` -->\n<!-- end of figures -->\nown words\n",
    )
    .unwrap();
    let mut bench = Command::new(env!("CARGO_BIN_EXE_agency-bench"));
    let shown = bench.args(["--markdown", "--from"]).arg(&json).arg("--page").arg(&page).output().unwrap();
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("| echo p50, of tmux |") && page.ends_with("own words\n"), "{page}");
}
