//! The shared process of one ACP agent: started when a task needs it, restarted when it dies, given up when that does not
//! help.
//!
//! Not here: processes, pipes and messages. A late report carries the epoch of its process; the connection ignores reports
//! about other processes.
//!
//! Invariants: one process at a time, the next one only when the last is gone; every ticket gets one answer.

mod attempt;
mod status;

use std::collections::VecDeque;
use std::time::Duration;

use crate::Time;
use crate::ids::{Epoch, Ticket};
use crate::restart::{LOOP_WINDOW, MAX_RESTARTS_IN_WINDOW};

pub use status::{ConnectError, Status};

/// Retries after a connection was lost; then it stays down.
pub const MAX_RETRIES: u32 = 5;
/// The longest wait between two retries.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Some agents need ten seconds to start, and more on a cold disk. An agent that has not answered by then never will.
const GREETED_WITHIN: Duration = Duration::from_secs(60);

/// An event of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A caller needs the connection.
    Ensure {
        /// The caller to answer.
        ticket: Ticket,
    },
    /// A caller wants a new process.
    Reconnect {
        /// The caller to answer.
        ticket: Ticket,
    },
    /// A caller needs the connection no more. The caller has got its answer.
    Cancel {
        /// The caller.
        ticket: Ticket,
    },
    /// End the process, whatever it does.
    Shutdown {
        /// The caller to answer.
        ticket: Ticket,
    },
    /// The daemon found the process alive when it started. Only the first event.
    Adopted {
        /// Whether the agent had answered the greeting.
        greeted: bool,
    },
    /// The process lives, and the daemon sent the greeting (`initialize`).
    Spawned {
        /// The process.
        epoch: Epoch,
    },
    /// The process could not be started.
    SpawnFailed {
        /// The process.
        epoch: Epoch,
        /// Whether the program does not exist.
        not_found: bool,
        /// Why, in words.
        cause: String,
    },
    /// The agent answered the greeting.
    Initialized {
        /// The process.
        epoch: Epoch,
    },
    /// The agent refused the greeting, or the answer was invalid.
    HandshakeFailed {
        /// The process.
        epoch: Epoch,
        /// Why, in words.
        cause: String,
    },
    /// The pipes broke or the process ended. May be reported several times.
    Lost {
        /// The process.
        epoch: Epoch,
        /// Why, in words.
        cause: String,
    },
    /// Nothing is left of the process.
    Gone {
        /// The process.
        epoch: Epoch,
    },
    /// A deadline passed.
    Tick,
}

/// An order that the daemon carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start a process.
    Spawn {
        /// The new process.
        epoch: Epoch,
    },
    /// Close its input, and kill what is left of it five seconds later. `Gone` reports the end.
    End {
        /// The process.
        epoch: Epoch,
    },
    /// Announce a change of the status (`agent:status`).
    Announce {
        /// The new status.
        status: Status,
    },
    /// Announce an error (`error`).
    Fail(ConnectError),
    /// Answer a caller.
    Answer {
        /// The caller.
        ticket: Ticket,
        /// Whether the caller has what it asked for.
        answer: Result<(), ConnectError>,
    },
}

/// A planned retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Counts from 1.
    pub number: u32,
    /// When.
    pub due: Time,
}

/// The state of one connection.
#[derive(Clone, Debug)]
pub struct Connection {
    display_name: String,
    announced: Status,
    state: State,
    next_epoch: u64,
    /// Callers that wait for the connection.
    waiting: Vec<Ticket>,
    /// Callers that wait for its end.
    ending: Vec<Ticket>,
    /// When retries were made, oldest first, none older than the window.
    recent: VecDeque<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// No process, and none is planned: idle or disconnected.
    Down,
    Starting(Attempt),
    Connected {
        epoch: Epoch,
    },
    /// A retry is due.
    Waiting(Retry),
    /// The process is ending; `then` follows.
    Ending {
        epoch: Epoch,
        is_spawned: bool,
        then: AfterEnd,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Attempt {
    epoch: Epoch,
    is_spawned: bool,
    due: Time,
    /// The number of the retry, or `None` if a caller requested the start.
    retry: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AfterEnd {
    /// The connection stays down.
    Nothing,
    /// Idle: no caller needs it any more.
    Unneeded,
    /// Idle: a caller shuts it down.
    Idle,
    Retry(Retry),
    /// Start again immediately.
    Start {
        retry: Option<u32>,
    },
}

impl Connection {
    /// A connection without a process. `display_name` is for messages.
    pub fn new(display_name: impl Into<String>) -> Connection {
        Connection {
            display_name: display_name.into(),
            announced: Status::Idle,
            state: State::Down,
            next_epoch: 1,
            waiting: Vec::new(),
            ending: Vec::new(),
            recent: VecDeque::new(),
        }
    }

    /// The status that was announced last.
    pub fn status(&self) -> Status {
        self.announced
    }

    /// The epoch of the process that lives or is being started.
    pub fn epoch(&self) -> Option<Epoch> {
        match &self.state {
            State::Down | State::Waiting(_) => None,
            State::Starting(Attempt { epoch, .. }) => Some(*epoch),
            State::Connected { epoch } | State::Ending { epoch, .. } => Some(*epoch),
        }
    }

    /// The retry that is planned.
    pub fn retry(&self) -> Option<Retry> {
        match &self.state {
            State::Waiting(retry) | State::Ending { then: AfterEnd::Retry(retry), .. } => Some(*retry),
            _ => None,
        }
    }

    /// When `Tick` is needed next.
    pub fn deadline(&self) -> Option<Time> {
        match &self.state {
            State::Waiting(retry) => Some(retry.due),
            State::Starting(attempt) => Some(attempt.due),
            State::Down | State::Connected { .. } | State::Ending { .. } => None,
        }
    }

    /// Handles one event and returns the orders that follow.
    pub fn on(&mut self, event: Event, now: Time) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Ensure { ticket } => self.on_ensure(ticket, now, &mut effects),
            Event::Reconnect { ticket } => self.on_reconnect(ticket, now, &mut effects),
            Event::Cancel { ticket } => self.on_cancel(ticket, &mut effects),
            Event::Shutdown { ticket } => self.on_shutdown(ticket, &mut effects),
            Event::Adopted { greeted } => self.on_adopted(greeted, now, &mut effects),
            Event::Spawned { epoch } => self.on_spawned(epoch, now, &mut effects),
            Event::SpawnFailed { epoch, not_found, cause } => {
                self.on_spawn_failed(epoch, not_found, cause, now, &mut effects);
            }
            Event::Initialized { epoch } => self.on_initialized(epoch, &mut effects),
            Event::HandshakeFailed { epoch, cause } => self.on_refused(epoch, cause, now, &mut effects),
            Event::Lost { epoch, cause } => self.on_lost(epoch, cause, now, &mut effects),
            Event::Gone { epoch } => self.on_gone(epoch, now, &mut effects),
            Event::Tick => self.on_tick(now, &mut effects),
        }
        effects
    }

    fn on_ensure(&mut self, ticket: Ticket, now: Time, effects: &mut Vec<Effect>) {
        match &mut self.state {
            State::Connected { .. } => return effects.push(Effect::Answer { ticket, answer: Ok(()) }),
            State::Ending { then: AfterEnd::Idle, .. } => return self.refuse(ticket, effects),
            State::Starting(_) | State::Ending { then: AfterEnd::Start { .. }, .. } => {}
            State::Ending { then: then @ (AfterEnd::Nothing | AfterEnd::Unneeded), .. } => {
                self.recent.clear();
                *then = AfterEnd::Start { retry: None };
            }
            State::Ending { then, .. } => {
                if let AfterEnd::Retry(retry) = then {
                    *then = AfterEnd::Start { retry: Some(retry.number) };
                }
            }
            State::Waiting(retry) => {
                let retry = Some(retry.number);
                self.start(retry, now, effects);
            }
            State::Down => {
                self.recent.clear();
                self.start(None, now, effects);
            }
        }
        self.waiting.push(ticket);
    }

    fn on_reconnect(&mut self, ticket: Ticket, now: Time, effects: &mut Vec<Effect>) {
        if matches!(self.state, State::Ending { then: AfterEnd::Idle, .. }) {
            return self.refuse(ticket, effects);
        }
        self.waiting.push(ticket);
        self.recent.clear();
        // Announce it even if the status is the same, because a caller asked for it.
        self.announced = Status::Reconnecting;
        effects.push(Effect::Announce { status: Status::Reconnecting });
        match &mut self.state {
            State::Down | State::Waiting(_) => self.start(None, now, effects),
            State::Starting(_) | State::Connected { .. } => {
                self.end(AfterEnd::Start { retry: None }, effects)
            }
            State::Ending { then, .. } => *then = AfterEnd::Start { retry: None },
        }
    }

    /// Ends a handshake that no other caller waits for.
    fn on_cancel(&mut self, ticket: Ticket, effects: &mut Vec<Effect>) {
        self.waiting.retain(|waiting| *waiting != ticket);
        let is_unneeded = matches!(&self.state, State::Starting(Attempt { retry: None, .. }));
        if is_unneeded && self.waiting.is_empty() {
            self.end(AfterEnd::Unneeded, effects);
        }
    }

    fn on_shutdown(&mut self, ticket: Ticket, effects: &mut Vec<Effect>) {
        self.ending.push(ticket);
        for ticket in std::mem::take(&mut self.waiting) {
            self.refuse(ticket, effects);
        }
        match &mut self.state {
            State::Down | State::Waiting(_) => self.become_idle(effects),
            State::Starting(_) | State::Connected { .. } => self.end(AfterEnd::Idle, effects),
            State::Ending { then, .. } => *then = AfterEnd::Idle,
        }
    }

    fn on_adopted(&mut self, greeted: bool, now: Time, effects: &mut Vec<Effect>) {
        if self.state != State::Down {
            return;
        }
        let epoch = self.take_epoch();
        match greeted {
            true => {
                self.state = State::Connected { epoch };
                self.announce(Status::Connected, effects);
            }
            false => {
                let due = now.saturating_add(GREETED_WITHIN);
                self.state = State::Starting(Attempt { epoch, is_spawned: true, due, retry: None });
                self.announce(Status::Starting, effects);
            }
        }
    }

    fn on_tick(&mut self, now: Time, effects: &mut Vec<Effect>) {
        match &self.state {
            State::Waiting(retry) if retry.due <= now => {
                let retry = Some(retry.number);
                self.start(retry, now, effects);
            }
            State::Starting(attempt) if attempt.due <= now => {
                let epoch = attempt.epoch;
                let cause = format!("the agent did not answer within {} seconds", GREETED_WITHIN.as_secs());
                self.on_refused(epoch, cause, now, effects);
            }
            _ => {}
        }
    }

    /// Plans retry `number`, unless there were too many.
    fn next_retry(&mut self, number: u32, now: Time) -> Option<Retry> {
        let start = now.saturating_sub(LOOP_WINDOW);
        while self.recent.front().is_some_and(|retry| *retry < start) {
            self.recent.pop_front();
        }
        if number > MAX_RETRIES || self.recent.len() >= MAX_RESTARTS_IN_WINDOW {
            return None;
        }
        self.recent.push_back(now);
        let wait = Duration::from_secs(1 << (number - 1).min(5)).min(LONGEST_WAIT);
        Some(Retry { number, due: now.saturating_add(wait) })
    }

    fn refuse(&self, ticket: Ticket, effects: &mut Vec<Effect>) {
        let answer = Err(ConnectError::shut_down(&self.display_name));
        effects.push(Effect::Answer { ticket, answer });
    }

    fn become_idle(&mut self, effects: &mut Vec<Effect>) {
        self.state = State::Down;
        self.announce(Status::Idle, effects);
        let answered = std::mem::take(&mut self.ending).into_iter();
        effects.extend(answered.map(|ticket| Effect::Answer { ticket, answer: Ok(()) }));
    }

    fn announce(&mut self, status: Status, effects: &mut Vec<Effect>) {
        if std::mem::replace(&mut self.announced, status) != status {
            effects.push(Effect::Announce { status });
        }
    }

    fn take_epoch(&mut self) -> Epoch {
        let epoch = Epoch(self.next_epoch);
        self.next_epoch += 1;
        epoch
    }
}
