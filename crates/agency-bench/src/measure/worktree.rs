//! Tasks in a large repository: the time until the agent runs, beside the time of `git worktree add`, one at a time and
//! many at once; and the time of `agency conflicts`.

use std::fs;
use std::time::{Duration, Instant};

use agency_testkit::CommandOutput;

use super::{Measure, start};
use crate::figure::{Sample, Unit, quantile};
use crate::peer::{AGENCY, Peer};
use crate::sizes::Sizes;
use crate::stage::Stage;

pub const ALONE: &str = "`git worktree add` alone";
pub const STARTED: &str = "until the first output";
pub const ALONE_AT_ONCE: &str = "20 × `git worktree add` at once";
pub const STARTED_AT_ONCE: &str = "20 tasks at once";

pub const MEASURE: Measure = Measure {
    name: "worktree",
    title: "New tasks in a repository of 50 000 files",
    applies: |peer| peer.name == AGENCY,
    is_once: true,
    run,
};

fn run(peer: &'static Peer, sizes: &Sizes) -> Vec<Sample> {
    let stage = Stage::new(peer, sizes);
    start::fill_repository(&stage, sizes.starts.many_files);
    start::start(&stage, "first");
    let (mut starts, mut gits) = (Vec::new(), Vec::new());
    for number in 0..sizes.starts.large {
        gits.push(start::git(&stage, number).as_secs_f64());
        starts.push(start::start(&stage, &format!("start{number}")).as_secs_f64());
    }
    let median = |name: &str, times: &[f64]| Sample::new(name, Unit::Seconds, quantile(times, 0.5));
    let alone = at_once(&stage, sizes.starts.at_once, |number| {
        start::git(&stage, sizes.starts.large + number);
    });
    let body = "exec cat >/dev/null\n";
    let started =
        at_once(&stage, sizes.starts.at_once, |number| stage.start(&format!("together{number}"), body));
    let mut samples = vec![
        median(STARTED, &starts),
        median(ALONE, &gits),
        Sample::seconds(STARTED_AT_ONCE, started),
        Sample::seconds(ALONE_AT_ONCE, alone),
    ];
    samples.extend(scan_conflicts(&stage));
    samples
}

/// The time until the last one is done. Writes everything to disk first, so that no measurement pays for an earlier one.
fn at_once(stage: &Stage, many: usize, work: impl Fn(usize) + Sync) -> Duration {
    CommandOutput::of(stage.sealed.command("sync"), b"").ok();
    let (work, began) = (&work, Instant::now());
    std::thread::scope(|scope| {
        for number in 0..many {
            scope.spawn(move || work(number));
        }
    });
    began.elapsed()
}

/// The second scan finds no changes, the third one changed workspace.
fn scan_conflicts(stage: &Stage) -> Vec<Sample> {
    let scan = || {
        let began = Instant::now();
        stage.sealed.run(["conflicts"]).ok();
        began.elapsed()
    };
    scan();
    let unchanged = scan();
    let worktrees = fs::read_dir(stage.sealed.repo().join(".agency/worktrees")).expect("a directory");
    let one = worktrees.flatten().next().expect("a worktree").path();
    fs::write(one.join("part0/file0.rs"), "// changed\n").expect("room for a file");
    let changed = scan();
    vec![
        Sample::seconds("`agency conflicts`, nothing changed", unchanged),
        Sample::seconds("`agency conflicts`, one changed", changed),
    ]
}
