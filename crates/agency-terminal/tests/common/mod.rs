//! Recordings of real agents, and helpers for tests that cut a stream.

#![allow(dead_code)] // Each test binary uses its own part.
#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

pub(crate) mod soup;

use std::path::PathBuf;

use agency_terminal::{Screen, Size, Snapshot};
use serde_json::Value;

pub(crate) const SCROLLBACK: usize = 1000;

/// Everything that a program wrote.
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) size: Size,
    pub(crate) output: Vec<u8>,
}

/// Every recording (asciicast v2) that the project keeps.
pub(crate) fn recordings() -> Vec<Recording> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the project keeps recordings")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cast"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 5, "recordings are missing from {folder:?}");
    paths.iter().map(recording).collect()
}

fn recording(path: &PathBuf) -> Recording {
    let text = std::fs::read_to_string(path).expect("a recording is text");
    let mut lines = text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON"));
    let header: Value = lines.next().expect("a recording has a header");
    let size =
        Size::cells(header["width"].as_u64().unwrap() as u16, header["height"].as_u64().unwrap() as u16);
    let events = lines.filter(|event: &Value| event[1] == "o");
    let output = events.flat_map(|event| event[2].as_str().unwrap().bytes().collect::<Vec<u8>>()).collect();
    Recording { name: path.file_name().unwrap().to_string_lossy().into_owned(), size, output }
}

/// A screen that was dumped and restored.
pub(crate) fn reborn(screen: &mut Screen) -> Screen {
    Screen::restore(&screen.dump()).expect("a fresh dump is sound")
}

pub(crate) fn drawn(size: Size, bytes: &[u8]) -> Screen {
    let mut screen = Screen::new(size, SCROLLBACK);
    screen.feed(bytes);
    screen
}

/// A small random number generator with a fixed sequence.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }
}

/// Compares two snapshots and names the place where they differ: a whole snapshot is too long to read.
#[track_caller]
pub(crate) fn assert_same(seen: &Snapshot, meant: &Snapshot, what: &str) {
    if seen == meant {
        return;
    }
    let (seen, meant) = (serde_json::to_value(seen).unwrap(), serde_json::to_value(meant).unwrap());
    panic!("{what}: {}", difference(&seen, &meant, "").unwrap_or_default());
}

fn difference(seen: &Value, meant: &Value, path: &str) -> Option<String> {
    match (seen, meant) {
        (Value::Object(left), Value::Object(right)) => {
            left.iter().find_map(|(key, value)| difference(value, &right[key], &format!("{path}.{key}")))
        }
        (Value::Array(left), Value::Array(right)) => {
            let mut pairs = left.iter().zip(right).enumerate();
            let found =
                pairs.find_map(|(at, (left, right))| difference(left, right, &format!("{path}[{at}]")));
            let lengths = || format!("{path} has {} of these, not {}", left.len(), right.len());
            found.or_else(|| (left.len() != right.len()).then(lengths))
        }
        _ => (seen != meant).then(|| format!("{path} is {seen:.300}, not {meant:.300}")),
    }
}
