//! The connection of the simulated world: the process that an ACP agent shares among its sessions, and those sessions.
//!
//! Not here: when it is started again. The connection of core decides that.

use std::time::Duration;

use agency_core::connection::{Effect, Event as ConnectionEvent};
use agency_core::exit::ExitCode;
use agency_core::ids::{Epoch, RunId, TaskKey, Ticket};
use agency_core::supervisor::{Event, RunTerms};

use crate::universe::{World, WorldEvent};

/// The shared process. It outlives the daemon.
pub(crate) struct SharedProcess {
    id: usize,
    /// The epoch by which the connection of the daemon that lives now knows it.
    epoch: Epoch,
    is_greeted: bool,
}

/// A start that waits for the connection.
pub(crate) struct SessionStart {
    pub(crate) key: TaskKey,
    epoch: Epoch,
    terms: RunTerms,
}

/// Whether the agent of a task is a session of the connection.
pub(crate) fn is_session(key: &TaskKey) -> bool {
    key.task.0.is_multiple_of(4)
}

impl World {
    pub(crate) fn adopt_connection(&mut self) {
        let Some(process) = &self.shared_process else { return };
        self.tally.count("adopted connection");
        let greeted = process.is_greeted;
        self.tell_connection(ConnectionEvent::Adopted { greeted });
        let epoch = self.daemon().connection.epoch().expect("it was adopted");
        self.shared_process.as_mut().expect("it lives").epoch = epoch;
    }

    pub(crate) fn tell_connection(&mut self, event: ConnectionEvent) {
        let now = self.now;
        let Some(daemon) = &mut self.daemon else { return };
        let effects = daemon.connection.on(event.clone(), now);
        self.say(|| format!("the connection: {event:?}"));
        for effect in effects {
            self.say(|| format!("    the connection: {effect:?}"));
            self.perform_for_connection(effect);
        }
    }

    fn perform_for_connection(&mut self, effect: Effect) {
        match effect {
            Effect::Spawn { epoch } => {
                assert!(self.shared_process.is_none(), "a connection has two processes");
                let (delay, generation) = (self.dice.delay(), self.generation);
                self.later(delay, WorldEvent::ConnectionSpawns { generation, epoch });
            }
            Effect::End { epoch } => {
                // Its end may be on its way already.
                if let Some(process) = self.shared_process.as_ref().filter(|process| process.epoch == epoch) {
                    let id = process.id;
                    self.later(Duration::from_millis(50), WorldEvent::ConnectionEnds { id });
                }
            }
            Effect::Answer { ticket, answer } => {
                let start = self.daemon().connecting.remove(&ticket);
                match (start.expect("a ticket of the connection is answered once"), answer) {
                    (Some(start), Ok(())) => self.open_session(start),
                    (Some(SessionStart { key, epoch, .. }), Err(error)) => {
                        let error = error.to_string();
                        self.tell(self.generation, Event::KeeperFailed { key, epoch, error });
                    }
                    (None, _) => {}
                }
            }
            Effect::Announce { .. } | Effect::Fail(_) => {}
        }
    }

    /// Messages of the process take their time.
    fn report_to_connection(&mut self, event: ConnectionEvent) {
        let (delay, generation) = (self.dice.delay(), self.generation);
        self.later(delay, WorldEvent::ConnectionReported { generation, event });
    }

    pub(crate) fn connection_reported(&mut self, generation: u64, event: ConnectionEvent) {
        if generation == self.generation {
            self.tell_connection(event);
        }
    }

    pub(crate) fn connection_spawns(&mut self, generation: u64, epoch: Epoch) {
        if self.dice.percent(self.faults.spawn_fails) {
            let cause = "no such program".into();
            let event = ConnectionEvent::SpawnFailed { epoch, not_found: true, cause };
            return self.connection_reported(generation, event);
        }
        assert!(self.shared_process.is_none(), "a connection has two processes");
        let id = self.step_number();
        self.shared_process = Some(SharedProcess { id, epoch, is_greeted: false });
        self.say(|| "the shared process begins".into());
        let (delay, answers) = (self.dice.delay(), self.dice.percent(80));
        self.later(delay, WorldEvent::ConnectionGreets { id, answers });
        if self.dice.percent(40) {
            let life = self.dice.delay() + self.dice.delay();
            self.later(life, WorldEvent::ConnectionEnds { id });
        }
        self.connection_reported(generation, ConnectionEvent::Spawned { epoch });
    }

    pub(crate) fn connection_greets(&mut self, id: usize, answers: bool) {
        let Some(process) = self.shared_process.as_mut().filter(|process| process.id == id) else { return };
        process.is_greeted = answers;
        let epoch = process.epoch;
        self.report_to_connection(match answers {
            true => ConnectionEvent::Initialized { epoch },
            false => ConnectionEvent::HandshakeFailed { epoch, cause: "no".into() },
        });
    }

    /// All its sessions end with it.
    pub(crate) fn connection_ends(&mut self, id: usize) {
        if self.shared_process.as_ref().is_none_or(|process| process.id != id) {
            return;
        }
        self.say(|| "the shared process ends".into());
        self.tally.count("lost connection");
        let epoch = self.shared_process.take().expect("it was just seen").epoch;
        self.end_sessions();
        self.report_to_connection(ConnectionEvent::Gone { epoch });
    }

    fn end_sessions(&mut self) {
        let sessions: Vec<RunId> =
            self.living().filter(|(_, run)| is_session(&run.key)).map(|(id, _)| id.clone()).collect();
        for session in sessions {
            self.ends(session, ExitCode::Unknown);
        }
    }

    /// A shutdown of the daemon with its agents ends the shared process too.
    pub(crate) fn end_connection(&mut self) {
        if self.shared_process.take().is_some() {
            self.end_sessions();
        }
    }

    pub(crate) fn start_session(&mut self, key: TaskKey, epoch: Epoch, terms: RunTerms) {
        let start = SessionStart { key, epoch, terms };
        let ticket = self.new_connection_ticket(Some(start));
        self.tell_connection(ConnectionEvent::Ensure { ticket });
    }

    pub(crate) fn reconnect(&mut self) {
        let ticket = self.new_connection_ticket(None);
        self.tell_connection(ConnectionEvent::Reconnect { ticket });
    }

    fn new_connection_ticket(&mut self, start: Option<SessionStart>) -> Ticket {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.daemon().connecting.insert(ticket, start);
        ticket
    }

    /// The connection may not know yet that its process has ended.
    fn open_session(&mut self, start: SessionStart) {
        let SessionStart { key, epoch, terms } = start;
        if self.shared_process.as_ref().is_none_or(|process| !process.is_greeted) {
            let error = "the connection is lost".into();
            return self.tell(self.generation, Event::KeeperFailed { key, epoch, error });
        }
        self.tally.count("session");
        let run = self.born(key.clone(), terms);
        self.tell(self.generation, Event::KeeperReady { key, epoch, run });
    }

    /// The daemon has died: a process that it was starting comes to life, or never does.
    pub(crate) fn fate_of_connection(&mut self) {
        if self.remove_planned(|event| matches!(event, WorldEvent::ConnectionSpawns { .. }))
            && self.dice.percent(50)
        {
            let id = self.step_number();
            self.shared_process = Some(SharedProcess { id, epoch: Epoch(0), is_greeted: false });
            let delay = self.dice.delay();
            self.later(delay, WorldEvent::ConnectionGreets { id, answers: true });
        }
    }

    pub(crate) fn check_connection(&self) {
        let lives = self.shared_process.is_some();
        for (id, run) in self.living().filter(|(_, run)| is_session(&run.key)) {
            assert!(lives, "the session {id} of {} lives without its connection", run.key);
        }
    }
}
