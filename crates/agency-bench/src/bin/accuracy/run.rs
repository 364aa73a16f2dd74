//! Judges all recordings with each kind of knowledge, and with a detector that knows only silence.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::Serialize;

use crate::judge::{Judged, judge};
use crate::knowledge::Knowledge;
use crate::label::{self, Label};
use crate::options::Options;
use crate::recording::Recording;
use crate::replay::Replayer;
use crate::timeline::Timeline;

/// The results of a run; `--json` writes them.
#[derive(Debug, Serialize)]
pub struct Run {
    pub recordings: Vec<String>,
    pub labels: Vec<Label>,
    pub silence: Vec<Judged>,
    pub agency: Vec<Trial>,
}

#[derive(Debug, Serialize)]
pub struct Trial {
    pub knowledge: Knowledge,
    pub phases: Vec<Judged>,
}

impl Run {
    pub fn judge(options: &Options) -> Result<Run, String> {
        let home = options.project.join("tests/recordings");
        let labels = label::read(&home.join("labels.toml"))?;
        let files = if options.files.is_empty() { project_recordings(&home)? } else { options.files.clone() };
        let recordings: Result<Vec<_>, String> =
            files.iter().map(|file| Recording::read(file, &labels)).collect();
        let recordings = recordings?;
        let rules = options.rules();
        let trial = |knowledge: &Knowledge| trial(*knowledge, &rules, &recordings);
        Ok(Run {
            silence: recordings
                .iter()
                .flat_map(|one| judge(one, &Timeline::of_silence(&one.outputs)))
                .collect(),
            agency: options.knowledge.iter().map(trial).collect::<Result<_, _>>()?,
            recordings: recordings.iter().map(|one| one.name.clone()).collect(),
            labels,
        })
    }
}

/// The recordings of terminals in the project, by name.
fn project_recordings(home: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for dir in [home.to_owned(), home.join("states")] {
        files.extend(casts_in(&dir)?);
    }
    files.sort();
    Ok(files)
}

/// The recordings in a directory, by name.
pub fn casts_in(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(|err| format!("{}: {err}", dir.display()))? {
        let path = entry.map_err(|err| format!("{}: {err}", dir.display()))?.path();
        files.extend(path.extension().is_some_and(|kind| kind == "cast").then_some(path));
    }
    files.sort();
    Ok(files)
}

/// Replays the recordings and judges every phase.
pub fn trial(knowledge: Knowledge, rules: &Path, recordings: &[Recording]) -> Result<Trial, String> {
    let replayer = Replayer::new(knowledge, rules)?;
    let next = AtomicUsize::new(0);
    let judged = Mutex::new(Vec::new());
    let work = || {
        while let Some(recording) = recordings.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result = replayer.states(&recording.path).map(|timeline| judge(recording, &timeline));
            judged.lock().expect("no thread panics while it holds the lock").push((&recording.path, result));
        }
    };
    thread::scope(|scope| {
        (0..thread::available_parallelism().map_or(1, usize::from)).for_each(|_| drop(scope.spawn(work)));
    });
    let mut judged = judged.into_inner().expect("no thread panics while it holds the lock");
    judged.sort_by_key(|(path, _)| *path);
    let phases: Result<Vec<Vec<Judged>>, String> = judged.into_iter().map(|(_, result)| result).collect();
    Ok(Trial { knowledge, phases: phases?.into_iter().flatten().collect() })
}
