//! One process of a connection: its start, its greeting, its loss and its end.

use super::{Attempt, ConnectError, Connection, Effect, GREETED_WITHIN, Retry, State, Status, Then};
use crate::Time;
use crate::ids::Epoch;

impl Connection {
    pub(super) fn start(&mut self, retry: Option<u32>, now: Time, effects: &mut Vec<Effect>) {
        let epoch = self.epoch_now();
        let due = now.saturating_add(GREETED_WITHIN);
        self.state = State::Starting(Attempt { epoch, is_there: false, due, retry });
        // A retry is part of reconnecting.
        self.tell(if retry.is_some() { Status::Reconnecting } else { Status::Starting }, effects);
        effects.push(Effect::Spawn { epoch });
    }

    /// Ends the process that there is; one that is only being made is ended as soon as it is there.
    pub(super) fn end(&mut self, then: Then, effects: &mut Vec<Effect>) {
        let (epoch, is_there) = match &self.state {
            State::Starting(attempt) => (attempt.epoch, attempt.is_there),
            State::Connected { epoch } => (*epoch, true),
            State::Down | State::Waiting(_) | State::Ending { .. } => return,
        };
        if is_there {
            effects.push(Effect::End { epoch });
        }
        self.state = State::Ending { epoch, is_there, then };
    }

    pub(super) fn on_spawned(&mut self, epoch: Epoch, now: Time, effects: &mut Vec<Effect>) {
        match &mut self.state {
            State::Starting(attempt) if attempt.epoch == epoch => {
                (attempt.is_there, attempt.due) = (true, now.saturating_add(GREETED_WITHIN));
            }
            State::Ending { epoch: ending, is_there: is_there @ false, .. } if *ending == epoch => {
                *is_there = true;
                effects.push(Effect::End { epoch });
            }
            _ => {}
        }
    }

    pub(super) fn on_spawn_failed(
        &mut self,
        epoch: Epoch,
        not_found: bool,
        cause: String,
        now: Time,
        effects: &mut Vec<Effect>,
    ) {
        match &self.state {
            State::Starting(attempt) if attempt.epoch == epoch && !attempt.is_there => {
                let retry = attempt.retry;
                let error = ConnectError::not_started(&self.display_name, not_found, cause);
                let then = self.failed(retry, error, now, effects);
                self.go_on(then, now, effects);
            }
            State::Ending { epoch: ending, is_there: false, .. } if *ending == epoch => {
                self.on_gone(epoch, now, effects);
            }
            _ => {}
        }
    }

    pub(super) fn on_initialized(&mut self, epoch: Epoch, effects: &mut Vec<Effect>) {
        let State::Starting(attempt) = &self.state else { return };
        if attempt.epoch != epoch {
            return;
        }
        self.state = State::Connected { epoch };
        self.tell(Status::Connected, effects);
        let answered = std::mem::take(&mut self.waiting).into_iter();
        effects.extend(answered.map(|ticket| Effect::Answer { ticket, answer: Ok(()) }));
    }

    pub(super) fn on_refused(&mut self, epoch: Epoch, cause: String, now: Time, effects: &mut Vec<Effect>) {
        let State::Starting(attempt) = &self.state else { return };
        if attempt.epoch != epoch {
            return;
        }
        let retry = attempt.retry;
        let error = ConnectError::not_connected(&self.display_name, cause);
        let then = self.failed(retry, error, now, effects);
        self.end(then, effects);
    }

    pub(super) fn on_lost(&mut self, epoch: Epoch, cause: String, now: Time, effects: &mut Vec<Effect>) {
        match &self.state {
            // It died in the handshake.
            State::Starting(attempt) if attempt.epoch == epoch => self.on_refused(epoch, cause, now, effects),
            State::Connected { epoch: connected } if *connected == epoch => {
                self.tell(Status::Disconnected, effects);
                effects.push(Effect::Fail(ConnectError::lost(&self.display_name, cause)));
                let then = self.again(1, now, effects);
                self.end(then, effects);
            }
            _ => {}
        }
    }

    pub(super) fn on_gone(&mut self, epoch: Epoch, now: Time, effects: &mut Vec<Effect>) {
        if self.epoch() != Some(epoch) {
            return;
        }
        if !matches!(self.state, State::Ending { .. }) {
            let begun = effects.len();
            self.on_lost(epoch, "the process ended".to_owned(), now, effects);
            let end = effects.iter().skip(begun).position(|effect| *effect == Effect::End { epoch });
            end.map(|at| effects.remove(begun + at));
        }
        if let State::Ending { then, .. } = &self.state {
            let then = then.clone();
            self.go_on(then, now, effects);
        }
    }

    /// Nothing lives any more.
    fn go_on(&mut self, then: Then, now: Time, effects: &mut Vec<Effect>) {
        match then {
            Then::Nothing => {
                self.state = State::Down;
                self.tell(Status::Disconnected, effects);
            }
            Then::Idle => self.is_idle(effects),
            Then::Retry(Retry { number, due }) if due <= now => self.start(Some(number), now, effects),
            Then::Retry(retry) => self.state = State::Waiting(retry),
            Then::Start { retry } => self.start(retry, now, effects),
        }
    }

    /// An attempt came to nothing: whoever waited for it is told.
    fn failed(
        &mut self,
        retry: Option<u32>,
        error: ConnectError,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Then {
        effects.push(Effect::Fail(error.clone()));
        for ticket in std::mem::take(&mut self.waiting) {
            effects.push(Effect::Answer { ticket, answer: Err(error.clone()) });
        }
        match retry {
            // What somebody asked for and did not work is theirs to ask for again.
            None => {
                self.tell(Status::Disconnected, effects);
                Then::Nothing
            }
            Some(number) => self.again(number + 1, now, effects),
        }
    }

    fn again(&mut self, number: u32, now: Time, effects: &mut Vec<Effect>) -> Then {
        match self.next_retry(number, now) {
            Some(retry) => {
                self.tell(Status::Reconnecting, effects);
                Then::Retry(retry)
            }
            None => {
                if number <= super::MAX_RETRIES {
                    effects.push(Effect::Fail(ConnectError::looping(&self.display_name)));
                }
                self.tell(Status::Disconnected, effects);
                Then::Nothing
            }
        }
    }
}
