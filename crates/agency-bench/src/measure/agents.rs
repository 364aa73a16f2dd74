//! Many agents at once: starts them all, lists them, gets an answer from each, and lists them again after the death of
//! the daemon, beside many stopped tasks.

use std::time::Instant;

use agency_testkit::CommandOutput;

use super::{Measure, PATIENCE, echo, tasks};
use crate::figure::{Sample, Unit, quantile};
use crate::holders;
use crate::peer::{AGENCY, Peer};
use crate::sizes::Sizes;
use crate::stage::Stage;

pub const MEASURE: Measure = Measure {
    name: "agents",
    title: "Two hundred agents",
    applies: |peer| peer.name == AGENCY,
    is_once: true,
    run,
};

fn run(peer: &'static Peer, sizes: &Sizes) -> Vec<Sample> {
    let stage = Stage::new(peer, sizes);
    let mut samples = start_all(&stage, sizes.agents);
    samples.extend(list(&stage, sizes.lists));
    stage.meter();
    let holders = stage.holders();
    let idle = holders::idle(&holders, sizes.times.idle);
    samples.push(Sample::new("keepers alive", Unit::Count, stage.keepers().len() as f64));
    samples.push(Sample::new("PSS of all", Unit::Kilobytes, holders::pss_kb(&holders)));
    let daemon = stage.sealed.daemon().map_or(f64::NAN, |daemon| holders::pss_kb(&[daemon]));
    samples.push(Sample::new("PSS of the daemon", Unit::Kilobytes, daemon));
    samples.push(Sample::new("idle CPU", Unit::Percent, idle.cpu_percent));
    let mut terminal = echo::begin(&stage);
    samples.extend(echo::samples(&echo::times(&mut terminal, sizes.keys), " of echo beside them"));
    terminal.leave();
    tasks::write_stopped(&stage, sizes.stopped);
    samples.extend(boot(&stage, sizes.boots));
    samples
}

/// Kills the daemon and lists all tasks, which starts the next daemon.
fn boot(stage: &Stage, times: usize) -> Vec<Sample> {
    let once = |_| {
        let daemon = stage.sealed.daemon().expect("a daemon is running");
        daemon.kill();
        daemon.wait_gone(PATIENCE);
        let began = Instant::now();
        CommandOutput::of(stage.sealed.agency(["ls"]), b"").ok();
        let took = began.elapsed().as_secs_f64();
        let next = stage.sealed.daemon().expect("the command started a daemon");
        (took, holders::cpu_of(&[next]))
    };
    let (times, cpu): (Vec<f64>, Vec<f64>) = (0..times).map(once).unzip();
    vec![
        Sample::new(FIRST_LIST, Unit::Seconds, quantile(&times, 0.5)),
        Sample::new("CPU of the new daemon until then, p50", Unit::Seconds, quantile(&cpu, 0.5)),
    ]
}

/// The figure that a goal refers to.
pub const FIRST_LIST: &str = "first `agency ls` after the daemon's death, beside 1 000 stopped tasks, p50";

/// Starts one after the other, as a script would; then sends each a line and waits for its answer.
fn start_all(stage: &Stage, agents: usize) -> Vec<Sample> {
    let answered = stage.signal("answered");
    let body = format!("read line\n{}\nexec sh\n", answered.send_command());
    let began = Instant::now();
    (0..agents).for_each(|number| stage.start(&format!("agent{number}"), &body));
    let started = began.elapsed();
    let began = Instant::now();
    for number in 0..agents {
        CommandOutput::of(stage.sealed.agency(["send", &format!("agent{number}"), "hello"]), b"").ok();
    }
    let answered_after = answered.wait(agents, PATIENCE) - began;
    vec![
        Sample::seconds("until all are started", started),
        Sample::seconds("each start", started / u32::try_from(agents).unwrap_or(1)),
        Sample::seconds("until all were sent a line and have answered", answered_after),
    ]
}

fn list(stage: &Stage, count: usize) -> Vec<Sample> {
    let once = |_| {
        let began = Instant::now();
        CommandOutput::of(stage.sealed.agency(["ls"]), b"").ok();
        began.elapsed().as_secs_f64()
    };
    let times: Vec<f64> = (0..count).map(once).collect();
    let sample = |name: &str, share: f64| Sample::new(name, Unit::Seconds, quantile(&times, share));
    vec![sample("`agency ls`, p50", 0.5), sample("`agency ls`, p99", 0.99)]
}
