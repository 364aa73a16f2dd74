//! Every live agent is listed, alone in its workspace and stoppable; no process stays; there is one daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agency_testkit::Process;
use serde_json::Value;

use super::wait_until_none;
use crate::processes::Census;
use crate::subject::{Ends, Existence, KnownAgent};
use crate::world::{PATIENCE, World, find_task};

/// Compares the listing with the processes of the machine. `None`: there is no listing.
pub fn survey(world: &mut World) -> Option<()> {
    let begin = Instant::now();
    let (listing, census) = loop {
        let listing = world.listing()?;
        let census = world.site.census();
        let problems = problems(world, &listing, &census);
        if problems.is_empty() {
            break (listing, census);
        }
        if begin.elapsed() > PATIENCE / 3 {
            problems.into_iter().for_each(|(expected, found)| world.violate(expected, found));
            break (listing, census);
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    learn(world, &listing, &census);
    Some(())
}

/// Pairs of what was expected and what was found.
fn problems(world: &World, listing: &Value, census: &Census) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    if census.daemons.len() != 1 {
        problems.push((
            "one daemon".to_owned(),
            format!("{} daemons: {:?}", census.daemons.len(), census.daemons),
        ));
    }
    if listing["orphans"].as_array().is_none_or(|orphans| !orphans.is_empty()) {
        problems.push(("no orphans".to_owned(), listing["orphans"].to_string()));
    }
    problems.extend(unlisted(listing, census));
    problems.extend(unkept(world, listing, census));
    problems.extend(doubled(census));
    problems.extend(lost(world, listing));
    problems.extend(drafts(world, listing));
    problems
}

fn listed_runs(listing: &Value) -> BTreeSet<&str> {
    let tasks = listing["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    tasks.iter().filter_map(|task| task["run"].as_str()).collect()
}

/// Processes whose run is the run of no task.
fn unlisted(listing: &Value, census: &Census) -> Vec<(String, String)> {
    let listed = listed_runs(listing);
    let shared: BTreeSet<&str> =
        census.keepers.iter().filter(|keeper| keeper.is_shared).map(|keeper| keeper.run.as_str()).collect();
    let is_unknown = |run: &str| !listed.contains(run) && !shared.contains(run);
    let agents = census.agents.iter().filter(|agent| is_unknown(&agent.run)).map(|agent| {
        format!("process {} ({}) of run {}", agent.process.pid, agent.process.name(), agent.run)
    });
    let keepers = census.keepers.iter().filter(|keeper| is_unknown(&keeper.run));
    let keepers = keepers.map(|keeper| format!("keeper {} of run {}", keeper.process.pid, keeper.run));
    let expected = "every live keeper and agent belongs to a task in `agency ls`";
    agents.chain(keepers).map(|found| (expected.to_owned(), format!("{found} does not"))).collect()
}

/// Listed runs without a keeper. A session has none of its own.
fn unkept(world: &World, listing: &Value, census: &Census) -> Vec<(String, String)> {
    let kept: BTreeSet<&str> = census.keepers.iter().map(|keeper| keeper.run.as_str()).collect();
    let subjects = world.subjects.iter().filter(|subject| subject.kind.driver != "acp");
    let runs = subjects
        .filter_map(|subject| Some((&subject.slug, find_task(listing, &subject.slug)?["run"].as_str()?)));
    let unkept = runs.filter(|(_, run)| !kept.contains(run));
    unkept
        .map(|(slug, run)| (format!("run {run} of {slug} has a keeper"), "it has none".to_owned()))
        .collect()
}

/// Workspaces in which processes of two runs live, and runs with two keepers.
fn doubled(census: &Census) -> Vec<(String, String)> {
    let mut runs: BTreeMap<PathBuf, BTreeSet<&str>> = BTreeMap::new();
    for agent in &census.agents {
        if let Some(workspace) = &agent.workspace {
            runs.entry(workspace.clone()).or_default().insert(&agent.run);
        }
    }
    let crowded = runs.into_iter().filter(|(_, runs)| runs.len() > 1);
    let crowded = crowded.map(|(workspace, runs)| {
        let expected = format!("one agent in {}", workspace.display());
        (expected, format!("the runs {}", runs.into_iter().collect::<Vec<_>>().join(", ")))
    });
    let mut keepers: BTreeMap<&str, usize> = BTreeMap::new();
    census.keepers.iter().for_each(|keeper| *keepers.entry(&keeper.run).or_default() += 1);
    let kept_twice = keepers.into_iter().filter(|(_, count)| *count > 1);
    let kept_twice =
        kept_twice.map(|(run, count)| (format!("one keeper of run {run}"), format!("{count} keepers")));
    crowded.chain(kept_twice).collect()
}

/// Tasks that are not listed, and agents that nothing ended and that are gone or not listed.
fn lost(world: &World, listing: &Value) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    for subject in &world.subjects {
        let slug = &subject.slug;
        let Some(task) = find_task(listing, slug) else {
            if subject.existence == Existence::Certain && subject.removed.is_none() {
                problems.push((format!("task {slug} is listed"), "it is not".to_owned()));
            }
            continue;
        };
        if !task["broken"].is_null() {
            problems.push((format!("task {slug} is in order"), task["broken"].to_string()));
        }
        let Some(agent) = subject.agent.as_ref().filter(|_| !subject.may_change) else { continue };
        if task["run"] != agent.run.as_str() {
            let found = format!("run {}, status {}, exit {}", task["run"], task["status"], task["last_exit"]);
            problems.push((format!("{slug} goes on with run {}", agent.run), found));
        }
        if agent.process.is_some_and(|process| !process.is_alive()) {
            problems
                .push((format!("the agent of {slug} is alive: nothing ended it"), "it is gone".to_owned()));
        }
    }
    problems
}

/// Tasks whose agent has run and that are called drafts.
fn drafts(world: &World, listing: &Value) -> Vec<(String, String)> {
    let tasks = listing["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let drafts = tasks.iter().filter(|task| task["status"] == "draft" && !task["last_exit"].is_null());
    let drafts = drafts.filter(|_| world.enabled.contains("draft-after-run"));
    drafts
        .map(|task| (format!("{} is stopped: its agent has run", task["slug"]), "a draft".to_owned()))
        .collect()
}

/// Remembers what the listing says, for the next check.
fn learn(world: &mut World, listing: &Value, census: &Census) {
    let tasks = listing["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let drafts =
        tasks.iter().filter(|task| task["status"] == "draft" && !task["last_exit"].is_null()).count();
    world.figures.set("tasks that stayed drafts", drafts as u64);
    for subject in &mut world.subjects {
        let Some(task) = find_task(listing, &subject.slug) else {
            if subject.existence == Existence::InDoubt {
                subject.existence = Existence::Never;
            }
            if subject.removed.is_none() {
                subject.agent = None;
            }
            continue;
        };
        if subject.existence != Existence::Certain {
            subject.existence = Existence::Certain;
        }
        subject.workspace = task["worktree"].as_str().map(PathBuf::from);
        subject.agent = task["run"].as_str().map(|run| KnownAgent {
            run: run.to_owned(),
            process: if subject.kind.driver == "acp" {
                None
            } else {
                leader(world.site.state(), run, census)
            },
        });
    }
}

/// The agent of a run: the process that its keeper started.
fn leader(state: PathBuf, run: &str, census: &Census) -> Option<Process> {
    let text = std::fs::read_to_string(state.join("r").join(run).join("pid")).ok()?;
    let file: Value = serde_json::from_str(&text).ok()?;
    let pid = file["child"]["pid"].as_i64()?;
    let found = census.agents.iter().find(|agent| i64::from(agent.process.pid) == pid && agent.run == run);
    found.map(|agent| agent.process)
}

/// From here on, every change of an agent needs a reason again.
pub fn forget_changes(world: &mut World) {
    world.subjects.iter_mut().for_each(|subject| subject.may_change = subject.kind.ends == Ends::Soon);
}

/// Stops one agent, another one each time.
pub fn check_stop(world: &mut World) {
    let live = world.which(|subject| subject.is_free() && subject.agent.is_some());
    let turn = world.figures.count("quiet checks") as usize;
    if let Some(index) = turn.checked_rem(live.len()).map(|at| live[at]) {
        stop(world, index);
    }
}

pub fn stop_each(world: &mut World) {
    if survey(world).is_none() {
        return;
    }
    for index in world.which(|subject| subject.agent.is_some()) {
        stop(world, index);
    }
}

/// Stops the agent of this task, which must work.
pub fn stop(world: &mut World, index: usize) {
    let subject = &world.subjects[index];
    let (project, slug) = (subject.project, subject.slug.clone());
    let Some(agent) = subject.agent.clone() else { return };
    world.disturb(index);
    let Some(ended) = world.ask(project, &["stop", &slug]) else { return };
    // An agent that ended by itself in this moment cannot be stopped.
    let is_gone = ended.is_ok() || world.subjects[index].kind.ends == Ends::Soon;
    if !is_gone {
        world.violate(format!("`agency stop {slug}` stops it"), ended.describe());
    }
    let run = agent.run.clone();
    let left = wait_until_none(PATIENCE / 3, || {
        let census = world.site.census();
        let left = census.agents.iter().filter(|process| process.run == run);
        left.map(|process| format!("process {} ({})", process.process.pid, process.process.name())).collect()
    });
    if !left.is_empty() {
        world.violate(format!("after `agency stop {slug}` no process of run {run} lives"), left.join(", "));
    }
    world.subjects[index].agent = None;
}

/// `daemon stop --agents` says the truth, and nothing stays.
pub fn check_nothing_left(world: &mut World) {
    if let Some(ended) = world.ask(0, &["daemon", "stop", "--agents"])
        && !ended.is_ok()
    {
        world.violate("`agency daemon stop --agents` succeeds", ended.describe());
    }
    let left = wait_until_none(PATIENCE / 3, || {
        let left = world.site.census().describe();
        left.lines().map(str::to_owned).collect()
    });
    if !left.is_empty() {
        world.violate("after `agency daemon stop --agents` no process lives", left.join(", "));
    }
}
