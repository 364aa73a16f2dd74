//! The faults: one small function each. A new one needs a row in `FAULTS` and its name in `names.rs`.
//!
//! A fault ends what it began: it wakes what it paused and frees the disk that it filled.

mod disk;
mod spoil;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use agency_testkit::{Process, Rng, Signal};
use serde_json::Value;

use crate::processes::KeeperProcess;
use crate::site::Site;
use crate::subject::{Ends, KINDS, Listens};
use crate::work;
use crate::world::{PATIENCE, Then, World};

pub struct Fault {
    pub name: &'static str,
    /// How often it is chosen, beside the others.
    pub weight: u64,
    pub run: fn(&mut World, &mut Rng),
    pub needs: Needs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// Small disks, which need a mount namespace.
    Disks,
    /// A time namespace, which needs root.
    TimeNamespace,
}

const FAULT: Fault = Fault { name: "", weight: 1, run: kill_daemon, needs: Needs::Nothing };

pub const FAULTS: &[Fault] = &[
    Fault { name: "kill-daemon", weight: 16, run: kill_daemon, ..FAULT },
    Fault { name: "kill-keeper", weight: 6, run: kill_keeper, ..FAULT },
    Fault { name: "kill-keeper-then-daemon", weight: 2, run: kill_keeper_then_daemon, ..FAULT },
    Fault { name: "kill-agent", weight: 2, run: kill_agent, ..FAULT },
    Fault { name: "kill-viewer", weight: 4, run: kill_viewer, ..FAULT },
    Fault { name: "kill-client", weight: 4, run: kill_client, ..FAULT },
    Fault { name: "pause-daemon", weight: 1, run: pause_daemon, ..FAULT },
    Fault { name: "pause-keeper", weight: 2, run: pause_keeper, ..FAULT },
    Fault { name: "pause-agent", weight: 2, run: pause_agent, ..FAULT },
    Fault { name: "pause-viewer", weight: 3, run: pause_viewer, ..FAULT },
    Fault { name: "joined-sends", weight: 4, run: kill_daemon_at_send, ..FAULT },
    Fault { name: "draft-after-run", weight: 2, run: kill_daemon_at_start, ..FAULT },
    Fault { name: "full-state", needs: Needs::Disks, run: disk::fill_state, ..FAULT },
    Fault { name: "full-state-restart", needs: Needs::Disks, run: disk::fill_state_and_restart, ..FAULT },
    Fault { name: "full-project", needs: Needs::Disks, run: disk::fill_project, ..FAULT },
    Fault { name: "spoil-epoch", run: spoil::epoch, ..FAULT },
    Fault { name: "spoil-format", run: spoil::format, ..FAULT },
    Fault { name: "spoil-pid", run: spoil::pid, ..FAULT },
    Fault { name: "spoil-run", run: spoil::run, ..FAULT },
    Fault { name: "spoil-project", run: spoil::project, ..FAULT },
    Fault { name: "spoil-task", run: spoil::task, ..FAULT },
    Fault { name: "spoil-mirror", run: spoil::mirror, ..FAULT },
    Fault { name: "spoil-queue", run: spoil::queue, ..FAULT },
    Fault { name: "spoil-trust", run: spoil::trust, ..FAULT },
    Fault { name: "spoil-workspace", run: spoil::workspace, ..FAULT },
    Fault { name: "spoil-lock", run: spoil::lock, ..FAULT },
    Fault { name: "spoil-index", run: spoil::index, ..FAULT },
    Fault { name: "spoil-events", run: spoil::events, ..FAULT },
    Fault { name: "spoil-states", run: spoil::states, ..FAULT },
    Fault { name: "spoil-wire", run: spoil::wire, ..FAULT },
    Fault { name: "spoil-ended-journal", run: spoil::ended_journal, ..FAULT },
    Fault { name: "time-namespace", needs: Needs::TimeNamespace, run: change_time_namespace, ..FAULT },
];

/// Deletes the state directory under a live daemon. Only at the end of a run: nothing can be checked against the
/// journals afterwards.
pub use disk::delete_state;

/// The enabled faults that this machine allows, and the names of those that it does not.
pub fn usable(site: &Site, enabled: &BTreeSet<&'static str>) -> (Vec<&'static Fault>, Vec<&'static str>) {
    let wanted = FAULTS.iter().filter(|fault| enabled.contains(fault.name));
    let (usable, skipped): (Vec<_>, Vec<_>) = wanted.partition(|fault| match fault.needs {
        Needs::Nothing => true,
        Needs::Disks => !site.disks.is_empty(),
        Needs::TimeNamespace => has_time_namespaces(),
    });
    (usable, skipped.into_iter().map(|fault| fault.name).collect())
}

pub fn step(world: &mut World, faults: &[&'static Fault], rng: &mut Rng) {
    let fault = work::pick_weighted(faults, |fault| fault.weight, rng);
    let mut own = Rng::seeded(rng.next_u64());
    world.note(format!("fault {}", fault.name));
    (fault.run)(world, &mut own);
}

/// The next command or viewer starts another one; a third of the time this fault also kills the next one while it
/// boots.
fn kill_daemon(world: &mut World, rng: &mut Rng) {
    if world.kill_daemons() == 0 || rng.one_in(3) {
        world.launch(0, [(vec!["ls".to_owned()], Then::Nothing)].into());
        std::thread::sleep(Duration::from_millis(rng.below(150)));
        world.kill_daemons();
    }
}

/// Kills the daemon between the text and its Enter, if the moment is right.
fn kill_daemon_at_send(world: &mut World, rng: &mut Rng) {
    let lines = world.which(|subject| {
        subject.is_free() && subject.agent.is_some() && subject.kind.listens == Listens::Lines
    });
    // The daemon is up, so that the text is typed at once.
    if lines.is_empty() || world.listing().is_none() {
        return;
    }
    world.send(*rng.pick(&lines), &[]);
    std::thread::sleep(Duration::from_millis(rng.between(5, 150)));
    world.kill_daemons();
}

/// Kills the daemon while it starts an agent that ends at once, and boots the next one after that end.
fn kill_daemon_at_start(world: &mut World, rng: &mut Rng) {
    let Some(kind) = KINDS.iter().find(|kind| kind.ends == Ends::Soon) else { return };
    world.close_viewers();
    world.settle_all();
    if world.listing().is_some() {
        world.create(kind, 0);
        std::thread::sleep(Duration::from_millis(rng.between(50, 700)));
        world.kill_daemons();
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// A keeper that the daemon knows, whose task no command is about.
fn choose_keeper(world: &mut World, rng: &mut Rng) -> Option<(KeeperProcess, Option<usize>)> {
    // The daemon answers, so it has adopted every run.
    let listing = world.listing()?;
    let census = world.site.census();
    let tasks = listing["tasks"].as_array()?;
    let subject_of = |run: &str| {
        let slug = tasks.iter().find(|task| task["run"] == run)?["slug"].as_str()?;
        world.subjects.iter().position(|subject| subject.slug == slug)
    };
    let found: Vec<(KeeperProcess, Option<usize>)> = census
        .keepers
        .into_iter()
        .map(|keeper| (subject_of(&keeper.run), keeper))
        .filter(|(subject, keeper)| {
            keeper.is_shared || subject.is_some_and(|index| world.subjects[index].is_free())
        })
        .map(|(subject, keeper)| (keeper, subject))
        .collect();
    (!found.is_empty()).then(|| rng.pick(&found).clone())
}

fn kill_keeper(world: &mut World, rng: &mut Rng) {
    if let Some((keeper, subject)) = choose_keeper(world, rng) {
        kill_and_await_rescue(world, &keeper, subject, None);
    }
}

/// An agent on pipes cannot survive its keeper; one on a terminal gets another keeper, also if the daemon is killed
/// this long after it.
fn kill_and_await_rescue(
    world: &mut World,
    keeper: &KeeperProcess,
    subject: Option<usize>,
    daemon_after: Option<Duration>,
) -> Option<()> {
    let subject =
        subject.filter(|index| !keeper.is_shared && world.subjects[*index].kind.driver == "terminal");
    let Some(index) = subject else {
        // Every task of a shared process loses it.
        for index in world.which(|subject| subject.kind.driver != "terminal") {
            world.disturb(index);
        }
        keeper.process.signal(Signal::KILL);
        world.figures.add("keepers killed whose agent uses pipes", 1);
        world.note(format!("killed keeper {} of run {}", keeper.process.pid, keeper.run));
        return None;
    };
    let slug = world.subjects[index].slug.clone();
    let agent = agent_of(world, &keeper.run)?;
    // A send that reaches the dying keeper is refused or unknown, and never delivered.
    let begin = Instant::now();
    if !keeper.process.signal(Signal::KILL) {
        return None;
    }
    world.figures.add("keepers killed", 1);
    world.note(format!("killed keeper {} of run {} ({slug})", keeper.process.pid, keeper.run));
    if let Some(pause) = daemon_after {
        std::thread::sleep(pause);
        world.kill_daemons();
    }
    while begin.elapsed() < PATIENCE / 3 {
        if is_rescued(world, keeper, agent) {
            world.figures.add_rescue(begin.elapsed());
            return Some(());
        }
        // The agent ended in this moment for another reason.
        if !agent.is_alive() && world.subjects[index].may_change {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    world.violate(
        format!("{slug} gets another keeper after keeper {} was killed", keeper.process.pid),
        if agent.is_alive() { "it has none, its agent is alive" } else { "its agent is dead" },
    );
    None
}

fn pid_file(world: &World, run: &str) -> Option<Value> {
    let path = world.site.state().join("r").join(run).join("pid");
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

fn agent_of(world: &World, run: &str) -> Option<Process> {
    let pid = pid_file(world, run)?["child"]["pid"].as_i64()?;
    Process::find(i32::try_from(pid).ok()?)
}

/// Another keeper has written the pid file, and holds the same agent.
fn is_rescued(world: &World, before: &KeeperProcess, agent: Process) -> bool {
    pid_file(world, &before.run).is_some_and(|file| {
        file["keeper"]["pid"] != i64::from(before.process.pid) && file["child"]["pid"] == i64::from(agent.pid)
    })
}

/// Half of the time within 10 ms of each other, otherwise once another keeper holds the run.
fn kill_keeper_then_daemon(world: &mut World, rng: &mut Rng) {
    let at_once = rng.one_in(2).then(|| Duration::from_millis(rng.below(10)));
    if let Some((keeper, subject)) = choose_keeper(world, rng)
        && kill_and_await_rescue(world, &keeper, subject, at_once).is_some()
        && at_once.is_none()
    {
        kill_daemon(world, rng);
    }
}

fn kill_agent(world: &mut World, rng: &mut Rng) {
    let known = world.which(|subject| subject.agent.as_ref().is_some_and(|agent| agent.process.is_some()));
    if known.is_empty() {
        return;
    }
    let index = *rng.pick(&known);
    world.disturb(index);
    let Some(process) = world.subjects[index].agent.as_ref().and_then(|agent| agent.process) else { return };
    if process.signal(Signal::KILL) {
        world.figures.add("agents killed", 1);
        world.note(format!("killed the agent of {}", world.subjects[index].slug));
    }
}

fn kill_viewer(world: &mut World, rng: &mut Rng) {
    if !world.viewers.is_empty() {
        let index = rng.below(world.viewers.len() as u64) as usize;
        // Dropping a terminal kills its program.
        world.viewers.swap_remove(index);
        world.figures.add("viewers killed", 1);
    }
}

fn kill_client(world: &mut World, rng: &mut Rng) {
    let Some(process) = world.flight_process(rng.next_u64()) else { return };
    if process.signal(Signal::KILL) {
        world.figures.add("clients killed", 1);
        world.note(format!("killed client {}", process.pid));
    }
}

/// Stops the process, works for a while, and continues it.
fn pause(world: &mut World, rng: &mut Rng, process: Process, figure: &'static str) {
    if !process.signal(Signal::STOP) {
        return;
    }
    world.figures.add(figure, 1);
    world.note(format!("paused {}", process.pid));
    let time = Duration::from_millis(rng.between(100, 2_000));
    work::work_for(world, rng, time);
    process.signal(Signal::CONT);
    world.note(format!("continued {}", process.pid));
}

fn pause_daemon(world: &mut World, rng: &mut Rng) {
    if let Some(daemon) = world.site.census().daemons.first() {
        pause(world, rng, *daemon, "daemons paused");
    }
}

fn pause_keeper(world: &mut World, rng: &mut Rng) {
    let keepers = world.site.census().keepers;
    if !keepers.is_empty() {
        let process = rng.pick(&keepers).process;
        pause(world, rng, process, "keepers paused");
    }
}

fn pause_agent(world: &mut World, rng: &mut Rng) {
    let agents = world.site.census().agents;
    if !agents.is_empty() {
        let process = rng.pick(&agents).process;
        pause(world, rng, process, "agents paused");
    }
}

fn pause_viewer(world: &mut World, rng: &mut Rng) {
    if world.viewers.is_empty() {
        return;
    }
    let pid = rng.pick(&world.viewers).terminal.pid();
    if let Some(process) = Process::find(pid) {
        pause(world, rng, process, "viewers paused");
    }
}

fn has_time_namespaces() -> bool {
    let mut unshare = std::process::Command::new("unshare");
    unshare.args(["-T", "--boottime", "100000", "-f", "true"]);
    unshare.output().is_ok_and(|ran| ran.status.success())
}

/// The next daemon starts in another time namespace: start times of processes look different there.
fn change_time_namespace(world: &mut World, _: &mut Rng) {
    world.close_viewers();
    world.settle_all();
    world.kill_daemons();
    let mut command = world.site.command("unshare");
    let agency = world.site.root().join("bin/agency");
    command.args(["-T", "--boottime", "100000", "-f"]).arg(agency).args(["ls"]);
    match command.output() {
        Ok(ran) => world.note(format!("ls in another time namespace: {}", ran.status)),
        Err(err) => world.note(format!("cannot run unshare: {err}")),
    }
    crate::check::survey(world);
    world.kill_daemons();
}
