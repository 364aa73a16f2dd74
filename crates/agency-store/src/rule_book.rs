//! The rules about screens in force: the shipped ones, and those in the user's `rules/` directory.
//!
//! Read again when a file there changes: whoever asks finds out, so nothing has to watch.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use agency_core::evidence::Rules;

use crate::bounded_read::{Links, read_bounded};
use crate::clock;

/// More often than this nobody saves a file and looks for its effect.
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
    /// `dir` holds the user's own rules; it need not be there.
    pub fn open(dir: Option<PathBuf>) -> RuleBook {
        let loaded = LoadedRules::read(dir.as_deref());
        RuleBook { dir, loaded: Mutex::new(loaded) }
    }

    /// The rules as the files are now.
    pub fn rules(&self) -> Arc<Rules> {
        self.loaded().rules.clone()
    }

    /// What is wrong with the user's files.
    pub fn problems(&self) -> Vec<String> {
        self.loaded().problems.clone()
    }

    fn loaded(&self) -> std::sync::MutexGuard<'_, LoadedRules> {
        // A loaded is replaced whole, so one that was being replaced when a thread died is the one before.
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

/// The files of the directory, in order, and what changes with their content.
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
