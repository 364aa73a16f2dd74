//! The life of one process of a connection: start, greeting, loss and end.

use super::{AfterEnd, Attempt, ConnectError, Connection, Effect, GREETED_WITHIN, Retry, State, Status};
use crate::Time;
use crate::ids::Epoch;

impl Connection {
    pub(super) fn start(&mut self, retry: Option<u32>, now: Time, effects: &mut Vec<Effect>) {
        let epoch = self.take_epoch();
        let due = now.saturating_add(GREETED_WITHIN);
        self.state = State::Starting(Attempt { epoch, is_spawned: false, due, retry });
        // A retry is part of reconnecting.
        self.announce(if retry.is_some() { Status::Reconnecting } else { Status::Starting }, effects);
        effects.push(Effect::Spawn { epoch });
    }

    /// Ends the process. A process that is still being started is ended as soon as it lives.
    pub(super) fn end(&mut self, then: AfterEnd, effects: &mut Vec<Effect>) {
        let (epoch, is_spawned) = match &self.state {
            State::Starting(attempt) => (attempt.epoch, attempt.is_spawned),
            State::Connected { epoch } => (*epoch, true),
            State::Down | State::Waiting(_) | State::Ending { .. } => return,
        };
        if is_spawned {
            effects.push(Effect::End { epoch });
        }
        self.state = State::Ending { epoch, is_spawned, then };
    }

    pub(super) fn on_spawned(&mut self, epoch: Epoch, now: Time, effects: &mut Vec<Effect>) {
        match &mut self.state {
            State::Starting(attempt) if attempt.epoch == epoch => {
                (attempt.is_spawned, attempt.due) = (true, now.saturating_add(GREETED_WITHIN));
            }
            State::Ending { epoch: ending, is_spawned: is_spawned @ false, .. } if *ending == epoch => {
                *is_spawned = true;
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
            State::Starting(attempt) if attempt.epoch == epoch && !attempt.is_spawned => {
                let retry = attempt.retry;
                let error = ConnectError::not_started(&self.display_name, not_found, cause);
                let then = self.fail_attempt(retry, error, now, effects);
                self.follow_up(then, now, effects);
            }
            State::Ending { epoch: ending, is_spawned: false, .. } if *ending == epoch => {
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
        self.announce(Status::Connected, effects);
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
        let then = self.fail_attempt(retry, error, now, effects);
        self.end(then, effects);
    }

    pub(super) fn on_lost(&mut self, epoch: Epoch, cause: String, now: Time, effects: &mut Vec<Effect>) {
        match &self.state {
            // The process died before it answered the greeting.
            State::Starting(attempt) if attempt.epoch == epoch => self.on_refused(epoch, cause, now, effects),
            State::Connected { epoch: connected } if *connected == epoch => {
                self.announce(Status::Disconnected, effects);
                effects.push(Effect::Fail(ConnectError::lost(&self.display_name, cause)));
                let then = self.plan_retry(1, now, effects);
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
            self.follow_up(then, now, effects);
        }
    }

    /// Continues after the process is gone.
    fn follow_up(&mut self, then: AfterEnd, now: Time, effects: &mut Vec<Effect>) {
        match then {
            AfterEnd::Nothing => {
                self.state = State::Down;
                self.announce(Status::Disconnected, effects);
            }
            AfterEnd::Idle | AfterEnd::Unneeded => self.become_idle(effects),
            AfterEnd::Retry(Retry { number, due }) if due <= now => self.start(Some(number), now, effects),
            AfterEnd::Retry(retry) => self.state = State::Waiting(retry),
            AfterEnd::Start { retry } => self.start(retry, now, effects),
        }
    }

    /// An attempt failed: fails every caller that waits for it, and plans a retry if the attempt was one.
    fn fail_attempt(
        &mut self,
        retry: Option<u32>,
        error: ConnectError,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> AfterEnd {
        effects.push(Effect::Fail(error.clone()));
        for ticket in std::mem::take(&mut self.waiting) {
            effects.push(Effect::Answer { ticket, answer: Err(error.clone()) });
        }
        match retry {
            // A caller requested this start, so the caller decides whether to try again.
            None => {
                self.announce(Status::Disconnected, effects);
                AfterEnd::Nothing
            }
            Some(number) => self.plan_retry(number + 1, now, effects),
        }
    }

    fn plan_retry(&mut self, number: u32, now: Time, effects: &mut Vec<Effect>) -> AfterEnd {
        match self.next_retry(number, now) {
            Some(retry) => {
                self.announce(Status::Reconnecting, effects);
                AfterEnd::Retry(retry)
            }
            None => {
                if number <= super::MAX_RETRIES {
                    effects.push(Effect::Fail(ConnectError::looping(&self.display_name)));
                }
                self.announce(Status::Disconnected, effects);
                AfterEnd::Nothing
            }
        }
    }
}
