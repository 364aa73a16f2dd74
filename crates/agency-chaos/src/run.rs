//! One run: the plan comes from the seed, the interleaving from the machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use agency_testkit::Rng;

use crate::fault::{self, Fault};
use crate::options::Options;
use crate::site::Site;
use crate::world::World;
use crate::{check, work};

/// Often enough to know which step broke something, seldom enough for many faults in between.
const STEPS_BETWEEN_CHECKS: u64 = 60;

/// A fault follows every third step of work.
const WORK_PER_FAULT: u64 = 3;

/// Returns whether everything held.
pub fn run(options: &Options, seed: u64, may_mount: bool) -> Result<bool, String> {
    let is_interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, is_interrupted.clone()).map_err(|err| err.to_string())?;
    }
    let site = Site::make(may_mount, options.duration().as_secs() / 60)?;
    let enabled = options.enabled()?;
    let (faults, skipped) = fault::usable(&site, &enabled);
    println!("directory {}", site.root().display());
    if !skipped.is_empty() {
        println!("skipped, because this machine does not allow it: {}", skipped.join(", "));
    }
    if site.projects.len() < 3 {
        println!("skipped, because jj is not installed: the jj project");
    }
    let mut world = World::new(site, enabled, options.verbose)?;
    let begin = Instant::now();
    play(&mut world, options, seed, &faults, &is_interrupted);
    finish(&mut world, seed);
    println!("{}after {} s, seed {seed}", world.figures, begin.elapsed().as_secs());
    Ok(report(&mut world, options, seed))
}

fn play(
    world: &mut World,
    options: &Options,
    seed: u64,
    faults: &[&'static Fault],
    is_interrupted: &AtomicBool,
) {
    let mut rng = Rng::seeded(seed);
    let work_per_fault = if options.only.is_empty() { WORK_PER_FAULT } else { 1 };
    work::begin(world);
    check::quiet(world);
    let begin = Instant::now();
    while begin.elapsed() < options.duration() && world.violations.is_empty() && !is_reached(world, options) {
        let step = world.begin_step();
        if is_interrupted.load(Ordering::Relaxed) {
            world.note("interrupted");
            return;
        }
        work::step(world, &mut rng);
        if step.is_multiple_of(work_per_fault) && !faults.is_empty() {
            fault::step(world, faults, &mut rng);
        }
        if step.is_multiple_of(STEPS_BETWEEN_CHECKS) {
            check::quiet(world);
        }
    }
}

fn is_reached(world: &World, options: &Options) -> bool {
    options.kills.is_some_and(|(daemons, keepers)| {
        world.figures.count("daemons killed") >= daemons && world.figures.count("keepers killed") >= keepers
    })
}

/// The last checks. After a violation the state proves nothing more.
fn finish(world: &mut World, seed: u64) {
    if world.violations.is_empty() {
        check::quiet(world);
    }
    if world.violations.is_empty() {
        // After a deletion the journals are gone, so half of the runs end with the other checks.
        let is_alone = world.enabled.len() == 1;
        if world.enabled.contains("delete-state") && (is_alone || seed % 2 == 1) {
            fault::delete_state(world);
        } else {
            check::end(world);
        }
    }
}

fn report(world: &mut World, options: &Options, seed: u64) -> bool {
    let is_well = world.violations.is_empty();
    for violation in &world.violations {
        println!("\nviolation at step {} of seed {seed}", violation.step);
        println!("  expected: {}", violation.expected);
        println!("  found:    {}", violation.found);
    }
    if !is_well || options.keep {
        let processes = world.site.census().describe();
        if let Err(err) = std::fs::write(world.site.root().join("processes.txt"), processes) {
            eprintln!("cannot write the list of processes: {err}");
        }
        world.site.keep();
        let root = world.site.root().display();
        println!(
            "\nkept in {root}: steps.log, processes.txt, truth/, state/ (state.kept/ if it was a small disk)"
        );
    }
    if !is_well {
        println!(
            "to repeat the plan: make chaos CHAOS=\"--seed {seed} --minutes {}{}\"",
            options.minutes,
            repeat(options)
        );
    }
    is_well
}

fn repeat(options: &Options) -> String {
    match (options.only.is_empty(), options.faults.join(",")) {
        (false, _) => format!(" --only {}", options.only.join(",")),
        (true, faults) if faults == "default" => String::new(),
        (true, faults) => format!(" --faults {faults}"),
    }
}
