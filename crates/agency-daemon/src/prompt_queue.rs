//! Texts that wait for their agents' prompts, on disk: none is lost with the daemon, and none is sent twice.

use std::io;
use std::path::PathBuf;

use agency_api::Bytes;
use agency_api::paths::StateDir;
use agency_core::ids::{ProjectId, TaskId, TaskKey};
use serde::{Deserialize, Serialize};

use crate::{atomic, clock};

#[derive(Debug)]
pub struct PromptQueue {
    path: PathBuf,
    content: Content,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    next_id: u64,
    waiting: Vec<Waiting>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    pub id: u64,
    project: String,
    task: u64,
    pub text: Bytes,
    /// RFC 3339.
    pub time: String,
    pub step: Step,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    Held,
    /// On its way. Found so by the next daemon: nobody knows whether it arrived.
    Leaving,
    Uncertain,
}

impl Waiting {
    pub fn key(&self) -> TaskKey {
        TaskKey { project: ProjectId(self.project.clone()), task: TaskId(self.task) }
    }
}

impl PromptQueue {
    pub fn load(state: &StateDir) -> PromptQueue {
        let path = state.root().join("queue.json");
        let read = std::fs::read(&path);
        let mut content: Content = match &read {
            Ok(text) => serde_json::from_slice(text).unwrap_or_else(|cause| {
                tracing::error!(%cause, "the queue of texts cannot be read");
                Content::default()
            }),
            Err(_) => Content::default(),
        };
        for waiting in content.waiting.iter_mut().filter(|waiting| waiting.step == Step::Leaving) {
            waiting.step = Step::Uncertain;
        }
        PromptQueue { path, content }
    }

    pub fn of(&self, key: &TaskKey) -> impl Iterator<Item = &Waiting> {
        self.content.waiting.iter().filter(move |waiting| waiting.key() == *key)
    }

    pub fn all(&self) -> impl Iterator<Item = &Waiting> {
        self.content.waiting.iter()
    }

    pub fn push(&mut self, key: &TaskKey, text: Bytes) -> io::Result<u64> {
        self.content.next_id += 1;
        let id = self.content.next_id;
        let (project, task) = (key.project.0.clone(), key.task.0);
        let waiting = Waiting { id, project, task, text, time: clock::timestamp(), step: Step::Held };
        self.content.waiting.push(waiting);
        self.write().inspect_err(|_| drop(self.content.waiting.pop()))?;
        Ok(id)
    }

    /// The next text for the agent, unless one is on its way to it or nobody knows of one whether it is.
    pub fn next(&self, key: &TaskKey) -> Option<&Waiting> {
        let first = self.of(key).next()?;
        let is_any_leaving = self.of(key).any(|waiting| waiting.step == Step::Leaving);
        (first.step == Step::Held && !is_any_leaving).then_some(first)
    }

    pub fn set(&mut self, id: u64, step: Step) -> io::Result<()> {
        for waiting in self.content.waiting.iter_mut().filter(|waiting| waiting.id == id) {
            waiting.step = step;
        }
        self.write()
    }

    /// Takes out what is told, and hands it over.
    pub fn take(&mut self, told: impl Fn(&Waiting) -> bool) -> io::Result<Vec<Waiting>> {
        let (taken, kept) = self.content.waiting.iter().cloned().partition(told);
        self.content.waiting = kept;
        self.write()?;
        Ok(taken)
    }

    fn write(&self) -> io::Result<()> {
        atomic::write(&self.path, &serde_json::to_vec(&self.content)?)
    }
}
