//! Messages that wait until their agents are at the prompt.
//!
//! The queue is on disk: a killed daemon loses no message, and the next one sends none twice.

use std::io;
use std::path::{Path, PathBuf};

use agency_api::Bytes;
use agency_api::paths::StateDir;
use agency_core::ids::{ProjectId, TaskId, TaskKey};
use serde::{Deserialize, Serialize};

use crate::{atomic, clock};

/// A user queues a few messages. A script that queues more than this ignores whether they arrive.
const MAX_QUEUED: usize = 100;

#[derive(Debug)]
pub struct PromptQueue {
    path: PathBuf,
    content: Content,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    next_id: u64,
    waiting: Vec<QueuedMessage>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedMessage {
    pub id: u64,
    project: String,
    task: u64,
    pub text: Bytes,
    /// RFC 3339.
    pub time: String,
    pub step: DeliveryStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStep {
    /// The message waits for the prompt.
    Held,
    /// The daemon is sending it. If the next daemon finds it in this step, it may have arrived or not.
    Leaving,
    /// It may have been typed. The user decides whether to send it again.
    Uncertain,
}

impl QueuedMessage {
    pub fn key(&self) -> TaskKey {
        TaskKey { project: ProjectId(self.project.clone()), task: TaskId(self.task) }
    }
}

impl PromptQueue {
    pub fn load(state: &StateDir) -> PromptQueue {
        let path = state.root().join("queue.json");
        let mut content = read(&path).unwrap_or_else(|cause| {
            tracing::error!(%cause, "the message queue cannot be read");
            rename_unreadable(&path);
            Content::default()
        });
        for waiting in content.waiting.iter_mut().filter(|waiting| waiting.step == DeliveryStep::Leaving) {
            waiting.step = DeliveryStep::Uncertain;
        }
        PromptQueue { path, content }
    }

    pub fn of(&self, key: &TaskKey) -> impl Iterator<Item = &QueuedMessage> {
        self.content.waiting.iter().filter(move |waiting| waiting.key() == *key)
    }

    pub fn all(&self) -> impl Iterator<Item = &QueuedMessage> {
        self.content.waiting.iter()
    }

    /// The number that the next message gets.
    pub fn next_id(&self) -> u64 {
        self.content.next_id + 1
    }

    pub fn push(&mut self, key: &TaskKey, text: Bytes) -> io::Result<u64> {
        if self.of(key).count() >= MAX_QUEUED {
            return Err(io::Error::other(format!("{MAX_QUEUED} messages already wait for it")));
        }
        self.content.next_id += 1;
        let id = self.content.next_id;
        let (project, task) = (key.project.0.clone(), key.task.0);
        let waiting =
            QueuedMessage { id, project, task, text, time: clock::timestamp(), step: DeliveryStep::Held };
        self.content.waiting.push(waiting);
        self.write().inspect_err(|_| drop(self.content.waiting.pop()))?;
        Ok(id)
    }

    /// Returns the next message for the agent; none while another one is being sent, or may have been typed.
    pub fn next(&self, key: &TaskKey) -> Option<&QueuedMessage> {
        let first = self.of(key).next()?;
        let is_any_leaving = self.of(key).any(|waiting| waiting.step == DeliveryStep::Leaving);
        (first.step == DeliveryStep::Held && !is_any_leaving).then_some(first)
    }

    pub fn set(&mut self, id: u64, step: DeliveryStep) -> io::Result<()> {
        for waiting in self.content.waiting.iter_mut().filter(|waiting| waiting.id == id) {
            waiting.step = step;
        }
        self.write()
    }

    /// Removes the messages that `is_meant` selects, and returns them.
    pub fn take(&mut self, is_meant: impl Fn(&QueuedMessage) -> bool) -> io::Result<Vec<QueuedMessage>> {
        let (taken, kept) = self.content.waiting.iter().cloned().partition(is_meant);
        self.content.waiting = kept;
        self.write()?;
        Ok(taken)
    }

    /// The user has moved the project: messages go with their task.
    pub fn follow_move(&mut self, from: &TaskKey, to: &TaskKey) -> io::Result<()> {
        let mut moved = self.content.waiting.iter_mut().filter(|waiting| waiting.key() == *from).peekable();
        if moved.peek().is_none() {
            return Ok(());
        }
        moved.for_each(|waiting| waiting.project.clone_from(&to.project.0));
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        atomic::write(&self.path, &serde_json::to_vec(&self.content)?)
    }
}

fn read(path: &Path) -> io::Result<Content> {
    match std::fs::read(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(Content::default()),
        text => Ok(serde_json::from_slice(&text?)?),
    }
}

/// Renames a queue that cannot be read: the next write would replace it, and the user may still need its content.
fn rename_unreadable(path: &Path) {
    if let Err(cause) = std::fs::rename(path, path.with_extension("json.unreadable")) {
        tracing::error!(%cause, "cannot rename a queue that cannot be read");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> TaskKey {
        TaskKey { project: ProjectId("p".to_owned()), task: TaskId(1) }
    }

    fn state() -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().to_path_buf());
        (dir, state)
    }

    #[test]
    fn the_next_daemon_does_not_send_a_message_that_may_have_arrived() {
        let (_dir, state) = state();
        let mut queue = PromptQueue::load(&state);
        let first = queue.push(&key(), Bytes(b"one".to_vec())).unwrap();
        queue.push(&key(), Bytes(b"two".to_vec())).unwrap();
        assert_eq!(queue.next(&key()).map(|waiting| waiting.id), Some(first));
        queue.set(first, DeliveryStep::Leaving).unwrap();
        assert_eq!(queue.next(&key()), None, "one at a time");
        let mut queue = PromptQueue::load(&state);
        assert_eq!(queue.next(&key()), None, "no message overtakes an uncertain one");
        queue.take(|waiting| waiting.id == first).unwrap();
        assert_eq!(queue.next(&key()).map(|waiting| waiting.text.0.as_slice()), Some(b"two".as_slice()));
    }

    #[test]
    fn an_unreadable_queue_is_renamed_and_a_full_one_takes_no_more() {
        let (dir, state) = state();
        std::fs::write(dir.path().join("queue.json"), "{ half").unwrap();
        let mut queue = PromptQueue::load(&state);
        for _ in 0..MAX_QUEUED {
            queue.content.waiting.push(QueuedMessage {
                id: 0,
                project: "p".to_owned(),
                task: 1,
                text: Bytes(Vec::new()),
                time: String::new(),
                step: DeliveryStep::Held,
            });
        }
        assert!(queue.push(&key(), Bytes(Vec::new())).is_err());
        assert_eq!(std::fs::read(dir.path().join("queue.json.unreadable")).unwrap(), b"{ half");
    }
}
