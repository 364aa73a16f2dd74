//! The time from the command that starts a session until the client draws the first output, on the same terminal.
//!
//! Agency also makes a worktree. Between the starts this measures the time that git alone needs for one, and subtracts it.

use std::fs;
use std::time::{Duration, Instant};

use agency_testkit::CommandOutput;

use super::Measure;
use crate::figure::{Sample, Unit, quantile};
use crate::peer::{AGENCY, Peer};
use crate::sizes::Sizes;
use crate::stage::Stage;

pub const MEASURE: Measure = Measure {
    name: "start",
    title: "A new session until its first output",
    applies: Peer::opens,
    is_once: false,
    run,
};

fn run(peer: &'static Peer, sizes: &Sizes) -> Vec<Sample> {
    let stage = Stage::new(peer, sizes);
    if peer.name == AGENCY {
        fill_repository(&stage, sizes.starts.files);
    }
    // The first session also starts the daemon or the server.
    start(&stage, "first");
    let (mut starts, mut gits) = (Vec::new(), Vec::new());
    for number in 0..sizes.starts.small {
        starts.push(start(&stage, &format!("start{number}")).as_secs_f64());
        if peer.name == AGENCY {
            gits.push(git(&stage, number).as_secs_f64());
        }
    }
    let sample = |name: &str, value: f64| Sample::new(name, Unit::Seconds, value);
    let (start, git) = (quantile(&starts, 0.5), quantile(&gits, 0.5));
    let mut samples = vec![sample("until the first output", start)];
    if peer.name == AGENCY {
        samples.push(sample("`git worktree add` alone", git));
        samples.push(sample("until the first output, beyond git", start - git));
    }
    samples
}

pub(super) fn start(stage: &Stage, session: &str) -> Duration {
    let body = "printf '@FIRST-%s@' OUTPUT\nexec cat >/dev/null\n";
    let began = Instant::now();
    let mut terminal = stage.open(session, body);
    let took = terminal.wait_for("@FIRST-OUTPUT@") - began;
    terminal.settle();
    terminal.leave();
    took
}

pub(super) fn git(stage: &Stage, number: usize) -> Duration {
    let mut git = stage.sealed.command("git");
    let path = stage.path(&format!("worktree{number}"));
    git.args(["worktree", "add", "--quiet", "-b", &format!("alone{number}")]).arg(path);
    let began = Instant::now();
    CommandOutput::of(git, b"").ok();
    began.elapsed()
}

/// A few hundred files per directory, as in real projects.
pub(super) fn fill_repository(stage: &Stage, files: usize) {
    for number in 0..files {
        let dir = stage.sealed.repo().join(format!("part{}", number / 500));
        let path = dir.join(format!("file{number}.rs"));
        fs::create_dir_all(dir).expect("room for a directory");
        fs::write(path, format!("// {number}\n").repeat(100)).expect("room for a file");
    }
    for args in [&["add", "."][..], &["commit", "--quiet", "-m", "files"]] {
        let mut git = stage.sealed.command("git");
        git.args(args);
        CommandOutput::of(git, b"").ok();
    }
}
