//! The desk and its subscribers: reads everything that surfaces show, finds what has changed, and sends the changes.
//!
//! Works beside the loop, because open approvals and costs have to be asked from runs. It reads nothing while it
//! has no subscriber, and nothing while nothing happens.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use agency_api::Failure;
use agency_api::chat::Usage;
use agency_api::desk::{Desk, DeskStart, DeskUpdate, TaskCost};
use agency_server::RequestLoop;
use tokio::sync::{Mutex, Notify, broadcast};

use super::desks::{CollectedDesk, UsageSource};
use super::loop_event::Reporter;

/// The name of the request with which the desk reads the world. It changes nothing, so it does not wake the feed.
pub const COLLECT: &str = "desk.collect";

/// Events come in bursts, and people need no fresher picture.
const SETTLE: Duration = Duration::from_millis(50);

/// A run whose keeper does not answer must not hold up everything else.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// Updates that a client may be behind without reading everything again.
const RECENT: usize = 1024;

/// Updates that wait for a subscriber that reads slowly.
const WAITING: usize = 1024;

/// Each daemon numbers its updates above those of all daemons before it.
const UPDATES_PER_DAEMON: u64 = 1 << 32;

#[derive(Clone)]
pub struct DeskFeed {
    updates: broadcast::Sender<DeskUpdate>,
    changed: Arc<Notify>,
    known: Arc<Mutex<KnownDesk>>,
}

/// The desk as subscribers know it.
#[derive(Default)]
struct KnownDesk {
    desk: Desk,
    recent: VecDeque<DeskUpdate>,
    /// The tokens and the cost of each task, as of a version of its conversation.
    usages: HashMap<(Vec<u8>, u64), (String, Usage)>,
}

impl DeskFeed {
    pub fn new(epoch: u64) -> DeskFeed {
        let (updates, _) = broadcast::channel(WAITING);
        let desk = Desk { seq: epoch.saturating_mul(UPDATES_PER_DAEMON), ..Desk::default() };
        let known = KnownDesk { desk, ..KnownDesk::default() };
        DeskFeed { updates, changed: Arc::default(), known: Arc::new(Mutex::new(known)) }
    }

    /// Where subscribers get the updates.
    pub fn updates(&self) -> broadcast::Sender<DeskUpdate> {
        self.updates.clone()
    }

    /// Something happened that may have changed the desk.
    pub fn touch(&self) {
        if self.updates.receiver_count() > 0 {
            self.changed.notify_one();
        }
    }

    /// Sends updates for as long as the daemon lives.
    pub async fn follow(self, reporter: Reporter) {
        loop {
            self.changed.notified().await;
            tokio::time::sleep(SETTLE).await;
            if let Err(failure) = self.refresh(&reporter).await {
                tracing::debug!(%failure, "the desk cannot be read");
            }
        }
    }

    /// The desk of this moment.
    pub async fn read(&self, reporter: &Reporter) -> Result<Desk, Failure> {
        self.refresh(reporter).await?;
        Ok(self.known.lock().await.desk.clone())
    }

    /// The updates between the desk that a subscriber has and this moment.
    pub async fn updates_since(&self, since: Option<u64>, reporter: &Reporter) -> Result<DeskStart, Failure> {
        self.refresh(reporter).await?;
        let known = self.known.lock().await;
        let seq = known.desk.seq;
        let first = known.recent.front().map_or(seq + 1, |update| update.seq);
        let gap = since.is_some_and(|since| since > seq || since + 1 < first);
        let is_missing = |update: &&DeskUpdate| since.is_some_and(|since| update.seq > since);
        let updates = known.recent.iter().filter(is_missing).filter(|_| !gap).cloned().collect();
        Ok(DeskStart { seq, updates, gap })
    }

    /// Reads the desk, and sends what has changed since it was read last.
    async fn refresh(&self, reporter: &Reporter) -> Result<(), Failure> {
        // Two readers must not number their updates at the same time.
        let mut known = self.known.lock().await;
        let collected =
            reporter.request(COLLECT, |world, reply| reply.send(Ok(world.collect_desk()))).await?;
        let newer = known.complete(collected).await;
        for change in known.desk.changes_to(&newer) {
            let update = DeskUpdate { seq: known.desk.seq + 1, change };
            known.desk.seq = update.seq;
            known.recent.push_back(update.clone());
            // There may be no subscriber.
            self.updates.send(update).map(drop).unwrap_or_default();
        }
        let surplus = known.recent.len().saturating_sub(RECENT);
        known.recent.drain(..surplus);
        let seq = known.desk.seq;
        known.desk = Desk { seq, ..newer };
        Ok(())
    }
}

impl KnownDesk {
    /// Asks the runs for their approvals and costs.
    async fn complete(&mut self, collected: CollectedDesk) -> Desk {
        let CollectedDesk { mut desk, approvals, usages } = collected;
        desk.approvals = match approvals {
            Ok(later) => match tokio::time::timeout(ANSWERED_WITHIN, later.finish()).await {
                Ok(open) => open.map(|open| open.approvals).unwrap_or_default(),
                Err(_) => self.desk.approvals.clone(),
            },
            Err(_) => Vec::new(),
        };
        for source in usages {
            desk.costs.extend(self.cost(source).await);
        }
        desk
    }

    /// Reads a conversation only if it has changed since it was read last.
    async fn cost(&mut self, source: UsageSource) -> Option<TaskCost> {
        let (project, task, version) = (source.project.clone(), source.task, source.version.clone());
        let place = (project.0.clone(), task);
        let known = self.usages.get(&place).filter(|(known, _)| *known == version).map(|(_, usage)| *usage);
        let usage = match known {
            Some(usage) => usage,
            None => {
                let usage = source.read().await?;
                self.usages.insert(place, (version, usage));
                usage
            }
        };
        (usage != Usage::default()).then_some(TaskCost { project, task, usage })
    }
}
