//! The rules about screens in force: the shipped ones, and those in the user's `rules/` directory.
//!
//! Read again when a file there changes: whoever asks finds out, so nothing has to watch.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use agency_core::evidence::Rules;

use crate::clock;
use crate::read_small::{Links, read_small};

/// More often than this nobody saves a file and looks for its effect.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct RuleBook {
    dir: Option<PathBuf>,
    page: Mutex<Page>,
}

#[derive(Debug)]
struct Page {
    looked_at: Duration,
    stamps: Vec<Stamp>,
    rules: Arc<Rules>,
    problems: Vec<String>,
}

type Stamp = (PathBuf, Option<SystemTime>, u64);

impl RuleBook {
    /// `dir` holds the user's own rules; it need not be there.
    pub fn open(dir: Option<PathBuf>) -> RuleBook {
        let page = Page::read(dir.as_deref());
        RuleBook { dir, page: Mutex::new(page) }
    }

    /// The rules as the files are now.
    pub fn rules(&self) -> Arc<Rules> {
        self.page().rules.clone()
    }

    /// What is wrong with the user's files.
    pub fn problems(&self) -> Vec<String> {
        self.page().problems.clone()
    }

    fn page(&self) -> std::sync::MutexGuard<'_, Page> {
        // A page is replaced whole, so one that was being replaced when a thread died is the one before.
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        if now.saturating_sub(page.looked_at) >= LOOK_EVERY {
            page.looked_at = now;
            if page.stamps != stamps(self.dir.as_deref()) {
                *page = Page::read(self.dir.as_deref());
                page.problems.iter().for_each(|problem| tracing::warn!(%problem, "a rule cannot be used"));
            }
        }
        page
    }
}

impl Page {
    fn read(dir: Option<&Path>) -> Page {
        let stamps = stamps(dir);
        let (mut files, mut problems) = (Vec::new(), Vec::new());
        for (path, ..) in &stamps {
            match read_small(path, Links::Followed).and_then(text) {
                Ok(text) => files.push((path.display().to_string(), text)),
                Err(cause) => problems.push(format!("cannot read {}: {cause}", path.display())),
            }
        }
        let (rules, wrong) = Rules::with_users(&files);
        problems.extend(wrong.iter().map(ToString::to_string));
        Page { looked_at: clock::now(), stamps, rules: Arc::new(rules), problems }
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
