//! Announces events: numbers them, writes them to the event log, and sends them to subscribers.

use agency_api::event::{self, EventData};
use agency_core::agent::canonical_name;
use agency_core::evidence::Change;
use agency_core::ids::{RunId, TaskKey};
use agency_store::clock;

use super::World;

impl World {
    pub(super) fn announce(
        &mut self,
        key: Option<&TaskKey>,
        run: Option<&RunId>,
        data: impl Into<EventData>,
    ) {
        self.announce_at(clock::timestamp_of(clock::now()), key, run, data);
    }

    pub(super) fn announce_at(
        &mut self,
        time: String,
        key: Option<&TaskKey>,
        run: Option<&RunId>,
        data: impl Into<EventData>,
    ) {
        let event = self.event(time, key, run, data.into());
        self.announce_event(event);
    }

    /// Numbers the event, writes it to the event log, and sends it to subscribers.
    pub(super) fn announce_event(&mut self, mut event: event::Event) {
        self.events.last += 1;
        event.seq = self.events.last;
        if let Err(cause) = self.events.log.append(&event) {
            tracing::warn!(%cause, "cannot write an event to the event log");
        }
        // There may be no subscriber.
        self.context.events.send(event).unwrap_or_default();
    }

    /// Sends an event without a number to the subscribers of this moment. Its content is kept elsewhere.
    pub(super) fn announce_in_passing(&mut self, key: &TaskKey, data: impl Into<EventData>) {
        let event = self.event(clock::timestamp_of(clock::now()), Some(key), None, data.into());
        self.context.events.send(event).unwrap_or_default();
    }

    pub(super) fn announce_state(&mut self, key: &TaskKey, run: &RunId, change: &Change) {
        let (now, new) = (clock::now(), &change.new);
        let time = clock::timestamp_of(new.since.at);
        let change = event::StateChangeEvent {
            old: agency_run::view::state(change.old, now, now),
            new: agency_run::view::state(new.state, new.since.at, now),
            why: new.state.waiting().map(|(_, why)| agency_run::view::why(why)),
            evidence: agency_run::view::evidence(&new.evidence),
            offset: new.since.offset,
        };
        self.announce_at(time, Some(key), Some(run), change);
    }

    /// The name of a task's agent: that of its last run, or the one in its file.
    fn agent_of(&self, key: &TaskKey) -> Option<String> {
        let last = self.runs.history.get(key).and_then(|runs| runs.last()).map(|meta| meta.agent.clone());
        let file = || self.store.last_content(key)?.fields().agent.clone();
        last.or_else(file).map(|agent| canonical_name(&agent).to_owned())
    }

    fn event(
        &self,
        time: String,
        key: Option<&TaskKey>,
        run: Option<&RunId>,
        data: EventData,
    ) -> event::Event {
        let root = key.and_then(|key| self.store.project(&key.project)).map(|project| project.root().into());
        let live = run.and_then(|run| self.runs.live.get(run)).map(|live| live.meta.agent.clone());
        let agent = live.or_else(|| key.and_then(|key| self.agent_of(key)));
        event::Event {
            seq: 0,
            time,
            project: root,
            task: key.map(|key| key.task.0),
            agent,
            run: run.map(|run| run.0.clone()),
            data,
        }
    }
}
