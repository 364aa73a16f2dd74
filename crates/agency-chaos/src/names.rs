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
    "spoil-format",
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

pub fn find(word: &str) -> Result<&'static str, String> {
    let found = ALL.iter().find(|name| **name == word);
    found.copied().ok_or_else(|| format!("no fault is called {word:?}; there are all, {}", ALL.join(", ")))
}
