//! Every commit that an agent made is still there, merged work is in the base, and the repositories are sound.

use std::collections::BTreeSet;
use std::fs;

use crate::agent::commits_file;
use crate::site::Vcs;
use crate::world::World;

/// How often `git fsck` looks again before a line counts.
const LOOKS: usize = 3;

pub fn check(world: &mut World) {
    let mut checked = 0;
    let mut problems = Vec::new();
    for (index, project) in world.site.projects.iter().enumerate() {
        if let Err(why) = fsck(world, index) {
            problems.push((format!("{} is sound", project.root.display()), why));
        }
        let made = commits_of(world, index);
        checked += made.len() as u64;
        let reachable = reachable(world, index, &made);
        let lost: Vec<&String> = made.iter().filter(|commit| !reachable.contains(*commit)).collect();
        if !lost.is_empty() {
            problems.push((
                format!("every commit in {} is reachable", project.root.display()),
                format!("{lost:?} are not"),
            ));
        }
        problems.extend(unmerged(world, index));
    }
    world.figures.set("commits checked", checked);
    problems.into_iter().for_each(|(expected, found)| world.violate(expected, found));
}

/// Agents commit meanwhile, and `git fsck` then misses objects that are younger than its own list. Another look does not
/// miss the same ones, so only a line that every look prints is a problem.
fn fsck(world: &World, project: usize) -> Result<(), String> {
    let root = &world.site.projects[project].root;
    let look = || world.site.tool(root, "git", &["fsck", "--no-dangling", "--no-progress"]);
    let Err(mut found) = look() else { return Ok(()) };
    for _ in 0..LOOKS {
        let Err(again) = look() else { return Ok(()) };
        let same: Vec<&str> = found.lines().filter(|line| again.contains(*line)).collect();
        found = same.join("\n");
        if found.is_empty() {
            return Ok(());
        }
    }
    Err(found)
}

fn lines_of(world: &World, slug: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(commits_file(&world.site.truth(), slug)).unwrap_or_default();
    // The last line may be incomplete: the agent was killed, or writes at the moment.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let pairs = whole.lines().filter_map(|line| line.split_once(' '));
    pairs.map(|(commit, name)| (commit.to_owned(), name.to_owned())).collect()
}

fn commits_of(world: &World, project: usize) -> Vec<String> {
    let subjects =
        world.subjects.iter().filter(|subject| subject.project == project && subject.kind.vcs.is_some());
    subjects.flat_map(|subject| lines_of(world, &subject.slug)).map(|(commit, _)| commit).collect()
}

/// By any ref, hidden ones included. jj keeps every commit under a ref of its own.
fn reachable(world: &World, project: usize, made: &[String]) -> BTreeSet<String> {
    let Some(site) = world.site.projects.get(project).filter(|_| !made.is_empty()) else {
        return BTreeSet::new();
    };
    let listed = world.site.tool(&site.root, "git", &["rev-list", "--all"]).unwrap_or_default();
    listed.lines().map(str::to_owned).collect()
}

/// After a merge that reported success, the base has every file of the task.
fn unmerged(world: &World, project: usize) -> Vec<(String, String)> {
    let site = &world.site.projects[project];
    let merged = world.subjects.iter().filter(|subject| subject.project == project && subject.is_merged);
    let merged: Vec<&str> = merged.map(|subject| subject.slug.as_str()).collect();
    if merged.is_empty() || site.vcs == Vcs::Jj && !site.root.join(".git").exists() {
        return Vec::new();
    }
    let base =
        world.site.tool(&site.root, "git", &["ls-tree", "-r", "--name-only", "main"]).unwrap_or_default();
    let base: BTreeSet<&str> = base.lines().collect();
    let missing = merged.into_iter().flat_map(|slug| {
        lines_of(world, slug).into_iter().filter(|(_, name)| !base.contains(name.as_str())).map(
            move |(_, name)| {
                (format!("main has {name}: the merge of {slug} reported success"), "it has not".to_owned())
            },
        )
    });
    missing.collect()
}
