//! The one shared process of an agent type: started when somebody needs it, brought back when it dies, given up when
//! that does not help.
//!
//! Not here: processes, pipes, what is said on them. What answers later carries the epoch of the process that it
//! speaks of; what speaks of another falls away.
//!
//! Invariants: one process at a time, the next one only when the last is gone; every ticket is answered once.

mod attempt;
mod words;

use std::collections::VecDeque;
use std::time::Duration;

use crate::Time;
use crate::ids::{Epoch, Ticket};
use crate::restart::{LOOP_WINDOW, MAX_RESTARTS_IN_WINDOW};

pub use words::{ConnectError, Status};

/// Retries of a connection that was lost; then it stays down.
pub const MAX_RETRIES: u32 = 5;
/// Between two retries at most.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Some agents need ten seconds to come up, on a cold disk more. One that has said nothing by then never will.
const GREETED_WITHIN: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody needs the connection.
    Ensure {
        ticket: Ticket,
    },
    /// Somebody wants it made anew.
    Reconnect {
        ticket: Ticket,
    },
    /// End it, whatever it does.
    Shutdown {
        ticket: Ticket,
    },
    /// Found alive when the daemon came up; `greeted` if its greeting has been answered. Only at the beginning.
    Adopted {
        greeted: bool,
    },
    /// The process lives, and is greeted.
    Spawned {
        epoch: Epoch,
    },
    /// There is no process.
    SpawnFailed {
        epoch: Epoch,
        not_found: bool,
        cause: String,
    },
    /// The greeting was answered.
    Initialized {
        epoch: Epoch,
    },
    /// The greeting was refused, or answered with what makes no sense.
    HandshakeFailed {
        epoch: Epoch,
        cause: String,
    },
    /// Its pipes broke, or it ended. May be told several times.
    Lost {
        epoch: Epoch,
        cause: String,
    },
    /// Nothing of the process is left.
    Gone {
        epoch: Epoch,
    },
    Tick,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Spawn {
        epoch: Epoch,
    },
    /// Close its input, and kill what is left of it five seconds later; `Gone` says when.
    End {
        epoch: Epoch,
    },
    /// `agent:status`
    Tell {
        status: Status,
    },
    /// `error`
    Fail(ConnectError),
    Answer {
        ticket: Ticket,
        answer: Result<(), ConnectError>,
    },
}

/// The next try, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Counts from 1.
    pub number: u32,
    pub due: Time,
}

#[derive(Clone, Debug)]
pub struct Connection {
    display_name: String,
    told: Status,
    state: State,
    next_epoch: u64,
    /// Who waits for the connection.
    waiting: Vec<Ticket>,
    /// Who waits for its end.
    ending: Vec<Ticket>,
    /// When retries were made, oldest first, none older than the window.
    recent: VecDeque<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Nothing lives and nothing is planned: idle, or disconnected.
    Down,
    Starting(Attempt),
    Connected {
        epoch: Epoch,
    },
    /// A retry is due.
    Waiting(Retry),
    /// A process is on its way out, and then…
    Ending {
        epoch: Epoch,
        is_there: bool,
        then: Then,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Attempt {
    epoch: Epoch,
    is_there: bool,
    due: Time,
    /// Which retry it is; none of them if somebody asked for it.
    retry: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Then {
    /// It stays down.
    Nothing,
    /// Down for good: somebody shuts it down.
    Idle,
    Retry(Retry),
    /// At once.
    Start {
        retry: Option<u32>,
    },
}

impl Connection {
    /// As people call the agent.
    pub fn new(display_name: impl Into<String>) -> Connection {
        Connection {
            display_name: display_name.into(),
            told: Status::Idle,
            state: State::Down,
            next_epoch: 1,
            waiting: Vec::new(),
            ending: Vec::new(),
            recent: VecDeque::new(),
        }
    }

    pub fn status(&self) -> Status {
        self.told
    }

    /// The process that there is, or that is being made.
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
            State::Waiting(retry) | State::Ending { then: Then::Retry(retry), .. } => Some(*retry),
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

    pub fn on(&mut self, event: Event, now: Time) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Ensure { ticket } => self.on_ensure(ticket, now, &mut effects),
            Event::Reconnect { ticket } => self.on_reconnect(ticket, now, &mut effects),
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
            State::Ending { then: Then::Idle, .. } => return self.refuse(ticket, effects),
            State::Starting(_) | State::Ending { then: Then::Start { .. }, .. } => {}
            State::Ending { then: then @ Then::Nothing, .. } => {
                self.recent.clear();
                *then = Then::Start { retry: None };
            }
            State::Ending { then, .. } => {
                if let Then::Retry(retry) = then {
                    *then = Then::Start { retry: Some(retry.number) };
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
        if matches!(self.state, State::Ending { then: Then::Idle, .. }) {
            return self.refuse(ticket, effects);
        }
        self.waiting.push(ticket);
        self.recent.clear();
        // Said even if it was so already: somebody asked.
        self.told = Status::Reconnecting;
        effects.push(Effect::Tell { status: Status::Reconnecting });
        match &mut self.state {
            State::Down | State::Waiting(_) => self.start(None, now, effects),
            State::Starting(_) | State::Connected { .. } => self.end(Then::Start { retry: None }, effects),
            State::Ending { then, .. } => *then = Then::Start { retry: None },
        }
    }

    fn on_shutdown(&mut self, ticket: Ticket, effects: &mut Vec<Effect>) {
        self.ending.push(ticket);
        for ticket in std::mem::take(&mut self.waiting) {
            self.refuse(ticket, effects);
        }
        match &mut self.state {
            State::Down | State::Waiting(_) => self.is_idle(effects),
            State::Starting(_) | State::Connected { .. } => self.end(Then::Idle, effects),
            State::Ending { then, .. } => *then = Then::Idle,
        }
    }

    fn on_adopted(&mut self, greeted: bool, now: Time, effects: &mut Vec<Effect>) {
        if self.state != State::Down {
            return;
        }
        let epoch = self.epoch_now();
        match greeted {
            true => {
                self.state = State::Connected { epoch };
                self.tell(Status::Connected, effects);
            }
            false => {
                let due = now.saturating_add(GREETED_WITHIN);
                self.state = State::Starting(Attempt { epoch, is_there: true, due, retry: None });
                self.tell(Status::Starting, effects);
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
                let cause = format!("it has not answered for {} seconds", GREETED_WITHIN.as_secs());
                self.on_refused(epoch, cause, now, effects);
            }
            _ => {}
        }
    }

    /// The next retry after one, unless there were too many.
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

    fn is_idle(&mut self, effects: &mut Vec<Effect>) {
        self.state = State::Down;
        self.tell(Status::Idle, effects);
        let answered = std::mem::take(&mut self.ending).into_iter();
        effects.extend(answered.map(|ticket| Effect::Answer { ticket, answer: Ok(()) }));
    }

    fn tell(&mut self, status: Status, effects: &mut Vec<Effect>) {
        if std::mem::replace(&mut self.told, status) != status {
            effects.push(Effect::Tell { status });
        }
    }

    fn epoch_now(&mut self) -> Epoch {
        let epoch = Epoch(self.next_epoch);
        self.next_epoch += 1;
        epoch
    }
}
