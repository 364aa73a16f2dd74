//! The screen rules in force: the built-in ones, and those in the user's `rules/` directory.
//!
//! Every call checks whether a file has changed and reads it again, so nothing has to watch the directory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use agency_core::evidence::Rules;

use crate::bounded_read::{Links, read_bounded};
use crate::clock;

/// Checks files at most this often. No user saves a rule and expects its effect sooner.
const CHECK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct RuleBook {
    dir: Option<PathBuf>,
    loaded: Mutex<LoadedRules>,
}

#[derive(Debug)]
struct LoadedRules {
    checked_at: Duration,
    stamps: Vec<Stamp>,
    rules: Arc<Rules>,
    problems: Vec<String>,
}

type Stamp = (PathBuf, Option<SystemTime>, u64);

impl RuleBook {
    /// `dir` contains the user's own rules. It need not exist.
    pub fn open(dir: Option<PathBuf>) -> RuleBook {
        let loaded = LoadedRules::read(dir.as_deref());
        RuleBook { dir, loaded: Mutex::new(loaded) }
    }

    /// Returns the current rules, read again if a file has changed.
    pub fn rules(&self) -> Arc<Rules> {
        self.loaded().rules.clone()
    }

    /// Returns the problems in the user's files.
    pub fn problems(&self) -> Vec<String> {
        self.loaded().problems.clone()
    }

    fn loaded(&self) -> std::sync::MutexGuard<'_, LoadedRules> {
        // The rules are replaced in one step, so a thread that panicked while it held the lock left complete ones.
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        if now.saturating_sub(loaded.checked_at) >= CHECK_EVERY {
            loaded.checked_at = now;
            if loaded.stamps != stamps(self.dir.as_deref()) {
                *loaded = LoadedRules::read(self.dir.as_deref());
                loaded.problems.iter().for_each(|problem| tracing::warn!(%problem, "a rule cannot be used"));
            }
        }
        loaded
    }
}

impl LoadedRules {
    fn read(dir: Option<&Path>) -> LoadedRules {
        let stamps = stamps(dir);
        let (mut files, mut problems) = (Vec::new(), Vec::new());
        for (path, ..) in &stamps {
            match read_bounded(path, Links::Followed).and_then(text) {
                Ok(text) => files.push((path.display().to_string(), text)),
                Err(cause) => problems.push(format!("cannot read {}: {cause}", path.display())),
            }
        }
        let (rules, wrong) = Rules::with_users(&files);
        problems.extend(wrong.iter().map(ToString::to_string));
        LoadedRules { checked_at: clock::now(), stamps, rules: Arc::new(rules), problems }
    }
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Returns the rule files in order, each with the metadata that changes with its content.
fn stamps(dir: Option<&Path>) -> Vec<Stamp> {
    let entries = dir.and_then(|dir| std::fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    let mut stamps: Vec<Stamp> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .filter_map(|path| {
            let meta = std::fs::metadata(&path).ok()?;
            Some((path, meta.modified().ok(), meta.len()))
        })
        .collect();
    stamps.sort();
    stamps
}
