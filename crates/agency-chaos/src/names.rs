//! The names of all faults, as `--faults` takes them.
//!
//! Says nothing about what a fault does: see `fault.rs`.

/// Every fault. Two of them also make a check stricter: `joined-sends` and `draft-after-run`.
pub const ALL: &[&str] = &[
    "kill-daemon",
    "kill-keeper",
    "kill-keeper-then-daemon",
    "kill-agent",
    "kill-viewer",
    "kill-client",
    "pause-daemon",
    "pause-keeper",
    "pause-agent",
    "pause-viewer",
    "full-state",
    "full-state-restart",
    "full-project",
    "spoil-epoch",
    "spoil-pid",
    "spoil-run",
    "spoil-project",
    "spoil-task",
    "spoil-mirror",
    "spoil-queue",
    "spoil-trust",
    "spoil-workspace",
    "spoil-lock",
    "spoil-index",
    "spoil-events",
    "spoil-states",
    "spoil-wire",
    "spoil-ended-journal",
    "time-namespace",
    "delete-state",
    "joined-sends",
    "draft-after-run",
];

/// Faults that the default leaves out: each broke Agency when it was added, as its comment says. Most are mended and have
/// stories of their own, but no long run has shown it yet. `--faults all` and `--faults NAME` run them. Delete a name as soon
/// as such a run has passed.
pub const KNOWN_BROKEN: &[&str] = &[
    // A lost or low epoch locks every live agent away.
    "spoil-epoch",
    // A full state directory and one restart of the daemon hide all tasks.
    "full-state-restart",
    // A session of an ACP agent that talked while the disk was full hangs once its connection is made again.
    "full-state",
    // An unreadable pid file or run.json: a second agent in the same workspace.
    "spoil-pid",
    "spoil-run",
    // An unreadable project.json: all agents of the project become orphans.
    "spoil-project",
    // A task file that breaks while no daemon runs: its agent cannot be reached.
    "spoil-task",
    // A send that the daemon's death cuts off becomes the beginning of the next one.
    "joined-sends",
    // A state directory that is deleted under a live daemon: two daemons.
    "delete-state",
    // A daemon in another time namespace calls every agent dead.
    "time-namespace",
    // Without wire.json the daemon does not know the process that speaks ACP: its tasks are stopped, and it lives on.
    "spoil-wire",
    // Without its journal, an ended session of an ACP agent is taken for a live one, and the live one for an orphan.
    "spoil-ended-journal",
    // A task whose agent has run stays a draft.
    "draft-after-run",
];

pub fn find(word: &str) -> Result<&'static str, String> {
    let found = ALL.iter().find(|name| **name == word);
    found
        .copied()
        .ok_or_else(|| format!("no fault is called {word:?}; there are all, default, {}", ALL.join(", ")))
}
