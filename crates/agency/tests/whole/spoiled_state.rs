//! Every file of the state directory is cut, flipped, emptied or removed while no daemon runs, one at a time and in random
//! pairs, with live agents of all drivers: each agent is found again, is alone, answers, and can be stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use agency_testkit::{Process, Rng, seed_or};
use serde_json::Value;

use crate::conversations::{chat, new_conversation, wait_approval, wait_said};
use crate::stage::{SOON, Stage};

/// How many random pairs of files are spoiled after every file was spoiled alone.
const PAIRS: usize = 4;

const TASKS: [&str; 3] = ["screen", "stream", "session"];

#[derive(Debug, Clone, Copy)]
enum Damage {
    Cut,
    Flip,
    Empty,
    Remove,
}

const DAMAGES: [Damage; 4] = [Damage::Cut, Damage::Flip, Damage::Empty, Damage::Remove];

/// A file that can be spoiled. `name` is the same for every run of a task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct StateFile {
    name: String,
    path: PathBuf,
}

struct World {
    stage: Stage,
    agents: Vec<Process>,
    sent: usize,
}

impl World {
    fn new() -> World {
        let stage = Stage::new();
        stage.configure("[agents.fake]\nacp = [\"fake-agent\", \"--acp\", \"\"]\n");
        stage.play("screen", "loop; ask ready?; end");
        new_conversation(&stage, "stream", "hello", "");
        stage.run(["new", "session", "--no-attach", "--driver", "acp", "-m", "hello"]).ok();
        stage.wait_printed("screen", "ready?");
        for slug in ["stream", "session"] {
            let what = format!("{slug} answers");
            stage.eventually(&what, SOON, || chat(&stage, slug).contains("echo: hello").then_some(()));
        }
        let agents = agents(&stage);
        assert_eq!(agents.len(), 3);
        World { stage, agents, sent: 0 }
    }

    /// The files that a daemon could miss: all but those of runs that ended.
    fn files(&self) -> Vec<StateFile> {
        let runs = self.live_runs();
        let mut files = Vec::new();
        let mut directories = vec![self.stage.state()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).expect("a directory").flatten() {
                let path = entry.path();
                let kind = entry.file_type().expect("a type");
                if kind.is_dir() {
                    directories.push(path);
                } else if kind.is_file() {
                    files.extend(self.name(&path, &runs).map(|name| StateFile { name, path }));
                }
            }
        }
        files.sort();
        files
    }

    /// The last run of each task, and the task's slug.
    fn live_runs(&self) -> BTreeMap<String, String> {
        let mut last: BTreeMap<String, (u64, String)> = BTreeMap::new();
        for entry in fs::read_dir(self.stage.state().join("r")).expect("runs").flatten() {
            let text = fs::read(entry.path().join("run.json")).expect("every run has its file again");
            let meta: Value = serde_json::from_slice(&text).expect("JSON");
            let slug = meta["slug"].as_str().expect("a slug").to_owned();
            let (order, run) =
                (meta["order"].as_u64().expect("a number"), meta["run"].as_str().expect("a run"));
            if last.get(&slug).is_none_or(|(before, _)| *before < order) {
                last.insert(slug, (order, run.to_owned()));
            }
        }
        last.into_iter().map(|(slug, (_, run))| (run, slug)).collect()
    }

    /// `r/RUN/pid` becomes `r/screen/pid`. `None` for a run that ended.
    fn name(&self, path: &Path, runs: &BTreeMap<String, String>) -> Option<String> {
        let below = path.strip_prefix(self.stage.state()).expect("below").to_str().expect("text");
        let mut parts: Vec<&str> = below.split('/').collect();
        match parts.as_mut_slice() {
            ["r", run, ..] => *run = runs.get(*run)?,
            ["w", connection, ..] => *connection = "CONNECTION",
            ["projects", project, ..] => *project = "PROJECT",
            _ => {}
        }
        Some(parts.join("/"))
    }

    /// Kills the daemon, spoils the files, and checks what the next daemon makes of it.
    fn round(&mut self, spoiled: &[(StateFile, Damage)], slug: &str) {
        let what =
            format!("{:?}", spoiled.iter().map(|(file, damage)| (&file.name, damage)).collect::<Vec<_>>());
        eprintln!("{what}, then stop {slug}");
        self.stage.kill_daemon();
        spoiled.iter().for_each(|(file, damage)| spoil(&file.path, *damage));
        self.check_all_live(&what);
        self.check_answer(slug, &what);
        self.check_stop(slug, &what);
    }

    /// All three are live, with the agents that they had.
    fn check_all_live(&self, what: &str) {
        let listing = self.stage.eventually(&format!("all agents are live after {what}"), SOON, || {
            let listing = self.stage.listing();
            let is_live = |slug: &str| {
                let mut tasks = listing["tasks"].as_array().expect("tasks").iter();
                tasks.any(|task| {
                    task["slug"] == slug && task["run"].is_string() && task["status"] == "running"
                })
            };
            TASKS.iter().all(|slug| is_live(slug)).then_some(listing)
        });
        assert_eq!(listing["orphans"], serde_json::json!([]), "{what}");
        assert_eq!(agents(&self.stage), self.agents, "no agent is lost or doubled by {what}");
    }

    fn check_answer(&mut self, slug: &str, what: &str) {
        self.sent += 1;
        let text = format!("text {}", self.sent);
        match slug {
            "screen" => self.stage.run(["send", slug, &text]).ok(),
            // A message waits until the turn before has ended.
            _ => self.stage.run(["send", slug, "--queue", &text]).ok(),
        };
        let what = format!("{slug} answers after {what}");
        self.stage.eventually(&what, SOON, || match slug {
            "screen" => self.stage.logs(slug).contains(&format!("got: {text}")).then_some(()),
            _ => chat(&self.stage, slug).contains(&format!("echo: {text}")).then_some(()),
        });
    }

    /// The agent ends with its task, and starts again for the next round. A session leaves the shared process.
    fn check_stop(&mut self, slug: &str, what: &str) {
        self.stage.run(["stop", slug]).ok();
        let expected = if slug == "session" { 3 } else { 2 };
        assert_eq!(agents(&self.stage).len(), expected, "{slug} is stopped after {what}");
        if self.stage.run(["start", slug]).code != 0 {
            // Without `trust.json` the user has to agree to the commands again.
            self.stage.run(["trust", "--yes"]).ok();
            self.stage.run(["start", slug]).ok();
        }
        if slug == "screen" {
            self.stage.wait_printed(slug, "ready?");
        }
        self.agents = agents(&self.stage);
        assert_eq!(self.agents.len(), 3, "{slug} is started after {what}");
    }
}

/// The live processes of agents, sorted by pid.
fn agents(stage: &Stage) -> Vec<Process> {
    let mut found = stage.processes();
    found.retain(|process| process.name() == "fake-agent");
    found.sort_by_key(|process| process.pid);
    found
}

fn spoil(path: &Path, damage: Damage) {
    let Ok(mut bytes) = fs::read(path) else { return };
    match damage {
        Damage::Cut => bytes.truncate(bytes.len() / 2),
        Damage::Flip => {
            let len = bytes.len();
            for at in [0, len / 3, len / 2, len.saturating_sub(2)] {
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 0xa5);
            }
        }
        Damage::Empty => bytes.clear(),
        Damage::Remove => return fs::remove_file(path).expect("a file"),
    }
    // The program of a running keeper cannot be written, only replaced.
    if fs::write(path, &bytes).is_err() {
        fs::remove_file(path).and_then(|()| fs::write(path, &bytes)).expect("room");
    }
}

#[test]
fn no_spoiled_file_of_the_state_directory_loses_an_agent() {
    let chance = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
    let seed = seed_or(chance);
    eprintln!("AGENCY_SEED={seed}");
    let mut rng = Rng::seeded(seed);
    let mut world = World::new();
    let mut done: BTreeSet<String> = BTreeSet::new();
    let next = |world: &World, done: &BTreeSet<String>| {
        world.files().into_iter().find(|file| !done.contains(&file.name))
    };
    while let Some(file) = next(&world, &done) {
        done.insert(file.name.clone());
        let (damage, slug) = (*rng.pick(&DAMAGES), task_of(&file, &mut rng));
        world.round(&[(file, damage)], slug);
    }
    for _ in 0..PAIRS {
        let files = world.files();
        let pair = [0, 1].map(|_| (rng.pick(&files).clone(), *rng.pick(&DAMAGES)));
        let slug = task_of(&pair[0].0, &mut rng);
        world.round(&pair, slug);
    }
    world.stage.run(["daemon", "stop", "--agents"]).ok();
    world.stage.eventually("no agent is left", SOON, || agents(&world.stage).is_empty().then_some(()));
}

/// The task whose agent a file is about; any for a file about all.
fn task_of(file: &StateFile, rng: &mut Rng) -> &'static str {
    let named = TASKS.into_iter().find(|slug| file.name.contains(slug));
    match file.name.starts_with("w/") {
        true => "session",
        false => named.unwrap_or_else(|| *rng.pick(&TASKS)),
    }
}

/// The work of a session at the moment when the daemon dies and the journal of its connection is damaged.
#[derive(Debug, Clone, Copy)]
enum Moment {
    Opening,
    Idle,
    InTurn,
    Asking,
}

#[test]
fn no_session_waits_for_ever_after_its_connection_lost_its_journal() {
    let stage = Stage::new();
    stage.configure("[agents.fake]\nacp = [\"fake-agent\", \"--acp\", \"\"]\n");
    stage.run(["new", "session", "--no-attach", "--driver", "acp", "-m", "hello"]).ok();
    wait_said(&stage, "session", "echo: hello");
    let agents_before = agents(&stage);
    let (mut number, mut lost_turns) = (0, 0);
    for moment in [Moment::Opening, Moment::Idle, Moment::InTurn, Moment::Asking] {
        for damage in DAMAGES {
            number += 1;
            let what = format!("{damage:?} while {moment:?}");
            eprintln!("{what}");
            let has_turn = begin(&stage, moment, number);
            stage.kill_daemon();
            journals(&stage).iter().for_each(|path| spoil(path, damage));
            let text = format!("text {number}");
            stage.run(["send", "session", "--queue", &text]).ok();
            wait_said(&stage, "session", &format!("echo: {text}"));
            assert_eq!(agents(&stage), agents_before, "no agent is lost or doubled: {what}");
            let read = chat(&stage, "session");
            let reports = read.matches("the agent's answer may be lost; Agency cancels the turn").count();
            assert_eq!(reports, lost_turns + usize::from(has_turn), "{what}: {read}");
            lost_turns = reports;
        }
    }
    stage.run(["stop", "session"]).ok();
}

/// Brings the session to that moment. Returns whether it has a turn that the agent does not end.
fn begin(stage: &Stage, moment: Moment, number: usize) -> bool {
    let rest = match moment {
        Moment::Idle => return false,
        Moment::Opening => {
            stage.run(["restart", "session"]).ok();
            return false;
        }
        Moment::InTurn => "wait",
        Moment::Asking => "tool Bash pwd; end",
    };
    stage.run(["send", "session", "--queue", &format!("!say begun {number}; {rest}")]).ok();
    match moment {
        Moment::Asking => drop(wait_approval(stage, "session")),
        _ => drop(wait_said(stage, "session", &format!("\nbegun {number}"))),
    }
    true
}

/// The journals of connections.
fn journals(stage: &Stage) -> Vec<PathBuf> {
    let entries = |dir: PathBuf| fs::read_dir(dir).expect("a directory").flatten().map(|entry| entry.path());
    let connections = entries(stage.state().join("w"));
    connections
        .flat_map(|dir| entries(dir.join("j")).filter(|path| path.is_file()).collect::<Vec<_>>())
        .collect()
}

#[test]
fn an_ended_session_that_lost_its_journal_stays_ended() {
    let stage = Stage::new();
    stage.configure("[agents.fake]\nacp = [\"fake-agent\", \"--acp\", \"\"]\n");
    for slug in ["live", "stopped", "started"] {
        stage.run(["new", slug, "--no-attach", "--driver", "acp", "-m", "hello"]).ok();
        wait_said(&stage, slug, "echo: hello");
    }
    let ended =
        ["stopped", "started"].map(|slug| stage.task(slug)["run"].as_str().expect("a run").to_owned());
    stage.run(["stop", "stopped"]).ok();
    stage.run(["restart", "started"]).ok();
    let live = stage.task("started")["run"].clone();
    stage.kill_daemon();
    for run in ended {
        fs::remove_dir_all(stage.state().join("r").join(run).join("j")).expect("a journal");
    }
    for boot in 1..=2 {
        assert_eq!(stage.listing()["orphans"], serde_json::json!([]), "boot {boot}");
        assert_eq!(stage.status("stopped"), "stopped", "boot {boot}");
        assert_eq!(stage.task("started")["run"], live, "boot {boot}");
        stage.kill_daemon();
    }
    stage.run(["start", "stopped"]).ok();
    for slug in ["live", "stopped", "started"] {
        stage.run(["send", slug, "--queue", "more"]).ok();
        wait_said(&stage, slug, "echo: more");
    }
}
