//! Many stopped tasks: lists them, and checks the installation with some of them.

use std::fs;
use std::time::Instant;

use agency_testkit::CommandOutput;

use super::Measure;
use crate::figure::{Sample, Unit, quantile};
use crate::peer::{AGENCY, Peer};
use crate::sizes::Sizes;
use crate::stage::Stage;

pub const MEASURE: Measure = Measure {
    name: "tasks",
    title: "A thousand stopped tasks",
    applies: |peer| peer.name == AGENCY,
    is_once: true,
    run,
};

/// The figures that goals refer to.
pub const LIST: &str = "`agency ls`, p50";
pub const DOCTOR: &str = "`agency doctor` with 100 tasks, p50";

/// `doctor` is measured with a tenth of the tasks.
const TENTH: usize = 10;

fn run(peer: &'static Peer, sizes: &Sizes) -> Vec<Sample> {
    let stage = Stage::new(peer, sizes);
    write_stopped(&stage, sizes.stopped / TENTH);
    let doctor = time(&stage, DOCTOR, &["doctor"], sizes.lists);
    write_stopped(&stage, sizes.stopped);
    let list = time(&stage, LIST, &["ls"], sizes.lists);
    let json = time(&stage, "`agency ls --json`, p50", &["ls", "--json"], sizes.lists);
    vec![list, json, doctor]
}

/// Writes the files of stopped tasks, as another program may. Their numbers begin far above those of tasks that Agency made.
pub fn write_stopped(stage: &Stage, count: usize) {
    let tasks = stage.sealed.repo().join(".agency/tasks");
    fs::create_dir_all(&tasks).expect("room for tasks");
    for number in 1..=count {
        let file =
            "---\nstatus: stopped\nagent: shell\ncreated_at: 2026-01-01T00:00:00Z\n---\n# A stopped task\n";
        fs::write(tasks.join(format!("{}-stopped-{number}.md", 10_000 + number)), file)
            .expect("room for a task");
    }
    // The first list reads the new files.
    CommandOutput::of(stage.sealed.agency(["ls"]), b"").ok();
}

fn time(stage: &Stage, name: &str, args: &[&str], times: usize) -> Sample {
    let once = |_| {
        let began = Instant::now();
        CommandOutput::of(stage.sealed.agency(args), b"").ok();
        began.elapsed().as_secs_f64()
    };
    let values: Vec<f64> = (0..times).map(once).collect();
    Sample::new(name, Unit::Seconds, quantile(&values, 0.5))
}
