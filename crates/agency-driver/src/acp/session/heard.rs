//! What is heard in a session, from the agent and from us, and what it changes.

use std::time::Duration;

use agency_core::conversation::{Item, Outcome, TurnEnd, Usage};
use agency_core::plain::one_line;
use agent_client_protocol_schema::v1::SessionUpdate;
use serde::Deserialize;
use serde_json::Value;

use super::super::asking::Asked;
use super::super::opening::{Capabilities, Stage, Way};
use super::super::rpc::{self, Message, Refusal};
use super::super::telling::Voice;
use super::{AcpRun, Replay, Sent, Turn, approval_key, prompt_text, withdrawn};
use crate::conversation::{AgentSetting, ConversationEvent};

impl AcpRun {
    /// The agent says.
    pub(super) fn heard(&mut self, message: Message, at: Duration, events: &mut Vec<ConversationEvent>) {
        match message {
            Message::Notification { method, params } => match method.as_str() {
                "session/update" if params["sessionId"].is_string() => {
                    self.update(&params["update"], at, events);
                }
                "$/cancel_request" => self.taken_back(&params["requestId"], events),
                "elicitation/complete" => {}
                other => self.telling.unknown(other, &params, at, events),
            },
            Message::Request { id, method, params } => match method.as_str() {
                "session/request_permission" => {
                    let asked = Asked::permission(self.name(&id), id, &params);
                    self.ask(asked, at, events);
                }
                "elicitation/create" => {
                    let asked = Asked::question(self.name(&id), id, &params);
                    self.ask(asked, at, events);
                }
                other => {
                    let words = format!("{} is not known here", one_line(other, 60));
                    self.reply(&id, rpc::refusal(&id, rpc::UNKNOWN_METHOD, &words));
                    self.telling.unknown(&format!("request {other}"), &params, at, events);
                }
            },
            Message::Answer { id, answer } => self.answered(&id, answer, at, events),
        }
    }

    /// We said.
    pub(super) fn wrote(&mut self, message: Message, at: Duration, events: &mut Vec<ConversationEvent>) {
        match message {
            Message::Notification { method, .. } if method == "session/cancel" => self.cancelled(events),
            Message::Notification { .. } => {}
            Message::Request { id, method, params } => self.asked_for(&id, &method, &params, at, events),
            Message::Answer { id, answer } => self.replied(&id, answer.ok().as_ref(), events),
        }
    }

    fn asked_for(
        &mut self,
        id: &Value,
        method: &str,
        params: &Value,
        at: Duration,
        events: &mut Vec<ConversationEvent>,
    ) {
        let number = id.as_str().and_then(|id| id.rsplit_once(':')?.1.parse::<u64>().ok());
        self.next_request = self.next_request.max(number.map_or(0, |number| number.saturating_add(1)));
        self.wanted.retain(|(key, _)| id.as_str() != Some(key));
        let session = || params["sessionId"].as_str().unwrap_or_default().to_owned();
        let value = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
        let sent = match method {
            "session/new" => Sent::Open(Way::New),
            "session/resume" => Sent::Open(Way::Resume(session())),
            "session/load" => Sent::Open(Way::Load(session())),
            "session/prompt" => {
                self.prompted(id, prompt_text(params), at, events);
                Sent::Prompt
            }
            "session/set_mode" => Sent::Set(AgentSetting::Mode, value("modeId")),
            "session/set_model" => Sent::Set(AgentSetting::Model, value("modelId")),
            "session/set_config_option" => match self.settings.setting(&value("configId")) {
                Some(setting) => Sent::Set(setting, value("value")),
                None => Sent::Other,
            },
            "session/close" => {
                self.stage = Stage::Closed;
                Sent::Other
            }
            "authenticate" => {
                self.logging_in(events);
                Sent::Login
            }
            _ => Sent::Other,
        };
        if let Sent::Open(way) = &sent {
            self.opening(id, way.clone());
        }
        self.sent.insert(rpc::key(id), sent);
    }

    fn opening(&mut self, id: &Value, way: Way) {
        if matches!(way, Way::Load(_)) {
            let replay = if self.telling.has_words() { Replay::Swallowed } else { Replay::Kept };
            self.replay = Some(replay);
            self.telling.history_begins();
        }
        self.stage = Stage::Opening { way, id: id.as_str().unwrap_or_default().to_owned(), is_sent: true };
    }

    fn prompted(&mut self, id: &Value, text: String, at: Duration, events: &mut Vec<ConversationEvent>) {
        self.telling.prompted(&text, at, events);
        (self.begun, self.ended_badly, self.writing) = (true, None, None);
        self.turn = Some(Turn { key: rpc::key(id), text, is_cancelled: false });
    }

    /// Whoever waits for an answer when the turn is cancelled is told so; the protocol wants it.
    fn cancelled(&mut self, events: &mut Vec<ConversationEvent>) {
        if let Some(turn) = &mut self.turn {
            turn.is_cancelled = true;
        }
        self.withdraw(events);
    }

    fn withdraw(&mut self, events: &mut Vec<ConversationEvent>) {
        let (requests, others) =
            std::mem::take(&mut self.open).into_iter().partition(|asked| asked.rpc.is_some());
        self.open = others;
        let requests: Vec<Asked> = requests;
        for asked in requests {
            if let Some(rpc) = &asked.rpc {
                self.reply(rpc, rpc::answer(rpc, &asked.cancelled()));
            }
            self.close(&asked.id, withdrawn());
            self.deciders.remove(&asked.id);
            events.push(ConversationEvent::ApprovalWithdrawn { id: asked.id });
        }
    }

    fn taken_back(&mut self, id: &Value, events: &mut Vec<ConversationEvent>) {
        let Some(at) = self.open.iter().position(|asked| asked.rpc.as_ref() == Some(id)) else { return };
        let asked = self.open.remove(at);
        self.reply(id, rpc::refusal(id, rpc::TAKEN_BACK, "taken back by who asked"));
        self.close(&asked.id, withdrawn());
        self.deciders.remove(&asked.id);
        events.push(ConversationEvent::ApprovalWithdrawn { id: asked.id });
    }

    /// An answer that goes out whether anybody looks or not.
    fn reply(&mut self, id: &Value, line: Vec<u8>) {
        let key = format!("reply {} {}", self.epoch, rpc::key(id));
        self.replies.retain(|(known, _)| *known != key);
        self.replies.push((key, line));
    }

    /// An answer of ours stands in the journal.
    fn replied(&mut self, id: &Value, result: Option<&Value>, events: &mut Vec<ConversationEvent>) {
        let key = format!("reply {} {}", self.epoch, rpc::key(id));
        self.replies.retain(|(known, _)| *known != key);
        let Some(at) = self.open.iter().position(|asked| asked.rpc.as_ref() == Some(id)) else { return };
        let asked = self.open.remove(at);
        let outcome = asked.outcome(result);
        self.decided(&asked.id, outcome, events);
    }

    fn decided(&mut self, id: &str, outcome: Outcome, events: &mut Vec<ConversationEvent>) {
        let (by, why) = self.deciders.remove(id).unzip();
        let outcome = Outcome { by, message: why.flatten(), ..outcome };
        self.close(id, outcome.clone());
        events.push(match outcome.cancelled {
            true => ConversationEvent::ApprovalWithdrawn { id: id.to_owned() },
            false => ConversationEvent::ApprovalDecided { id: id.to_owned(), outcome },
        });
    }

    /// Ids of the agent's requests begin again with each process, and with each run.
    fn name(&self, id: &Value) -> String {
        let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        self.named(&format!("{}:{id}", self.epoch))
    }

    fn ask(&mut self, asked: Asked, at: Duration, events: &mut Vec<ConversationEvent>) {
        self.telling.pause(events);
        if let (Some(rpc), true) = (&asked.rpc, self.turn.as_ref().is_some_and(|turn| turn.is_cancelled)) {
            let line = rpc::answer(rpc, &asked.cancelled());
            return self.reply(&rpc.clone(), line);
        }
        let approval = asked.approval();
        self.open.retain(|known| known.id != asked.id);
        self.telling.conversation.upsert(
            &approval_key(&asked.id),
            at,
            || Item::Approval(approval),
            |_| false,
        );
        let (id, tool, title) = (asked.id.clone(), asked.tool().to_owned(), asked.title.clone());
        self.open.push(asked);
        events.push(ConversationEvent::ApprovalRequested { id, tool, title });
    }

    fn answered(
        &mut self,
        id: &Value,
        answer: Result<Value, Refusal>,
        at: Duration,
        events: &mut Vec<ConversationEvent>,
    ) {
        match (self.sent.remove(&rpc::key(id)), answer) {
            (Some(Sent::Open(way)), Ok(result)) => self.opened(&way, &result, at, events),
            (Some(Sent::Open(way)), Err(refusal)) => self.not_opened(way, &refusal, at, events),
            (Some(Sent::Prompt), answer) => self.turn_ended(id, answer, at, events),
            (Some(Sent::Set(setting, value)), Ok(result)) => {
                self.settings.is_set(setting, &value);
                self.settings.read(&result);
                if is_numbered(id) {
                    self.chosen.insert(setting, value.clone());
                }
                if self.stage == Stage::Ready {
                    let text = format!("{}: {value}", setting.word());
                    self.telling.conversation.add(Item::Notice { text }, at);
                }
                self.settle(Some(setting));
                events.push(settled(id, Ok(())));
            }
            (Some(Sent::Set(setting, value)), Err(refusal)) => {
                self.not_set(setting, &value, &refusal, at, events);
                events.push(settled(id, Err(refusal.words())));
            }
            (Some(Sent::Login), Ok(_)) => {
                if let Stage::Locked { way } = self.stage.clone() {
                    self.open_by(way);
                }
            }
            (Some(Sent::Login), Err(refusal)) => self.locked_out(&refusal, at, events),
            (Some(Sent::Other), _) => {}
            // Not asked for in this session: the connection's greeting, or nothing.
            (None, Ok(result)) if result["protocolVersion"].is_number() => self.greeted(&result, at, events),
            (None, _) => {}
        }
    }

    fn greeted(&mut self, result: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        if !matches!(self.stage, Stage::Greeting) {
            return;
        }
        self.capabilities = Capabilities::read(result);
        match Way::to(self.target.as_deref(), &self.capabilities) {
            Some(way) => self.open_by(way),
            None => self.begin_anew("it can neither resume nor load one", at, events),
        }
    }

    fn open_by(&mut self, way: Way) {
        self.openings += 1;
        let id = self.named(&format!("open{}", self.openings));
        self.stage = Stage::Opening { way, id, is_sent: false };
    }

    /// The session cannot be had. Whoever came for that one gets no other, and it stays theirs to come back to.
    fn begin_anew(&mut self, why: &str, at: Duration, events: &mut Vec<ConversationEvent>) {
        if self.terms.must_resume && self.target == self.terms.session_id {
            let way_out = "agency restart --fresh begins a new one, --driver goes back to the one before";
            return self.no_session(format!("it cannot go on with this one: {why}; {way_out}"), at, events);
        }
        self.forgotten(why, at, events);
        self.open_by(Way::New);
    }

    fn forgotten(&mut self, why: &str, at: Duration, events: &mut Vec<ConversationEvent>) {
        let message =
            "the agent does not have this session any more; a new one begins, which knows nothing of it";
        self.telling.failed(message, Some(why.to_owned()), at, events);
        self.target = None;
    }

    fn opened(&mut self, way: &Way, result: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        if self.replay.take().is_some() {
            self.telling.history_ends();
        }
        let named = result["sessionId"].as_str().filter(|id| !id.is_empty());
        let session = match (way, named) {
            (Way::Resume(session) | Way::Load(session), _) => session.clone(),
            (Way::New, Some(session)) => session.to_owned(),
            (Way::New, None) => {
                return self.no_session("it named no session".to_owned(), at, events);
            }
        };
        (self.target, self.session_id) = (Some(session.clone()), Some(session));
        self.settings.read(result);
        self.set_up(at, events);
    }

    /// What the user asked for is set before anything is done, or the agent would do it in its own way.
    fn set_up(&mut self, at: Duration, events: &mut Vec<ConversationEvent>) {
        self.stage = Stage::Settling;
        for setting in [AgentSetting::Mode, AgentSetting::Model] {
            let Some(wanted) = self.wish(setting) else { continue };
            if self.settings.offers(setting).current.as_ref() == Some(&wanted) {
                continue;
            }
            match self.settings.change(setting, &wanted) {
                Some(mut change) => {
                    change.params["sessionId"] = Value::from(self.target.clone());
                    let id = self.named(&format!("{}{}", setting.word(), self.openings));
                    self.wanted.push((id.clone(), rpc::request(&id, change.method, &change.params)));
                }
                None => self.unwilling(setting, self.no_such(setting, &wanted), at, events),
            }
        }
        self.settle(None);
    }

    /// What was chosen last, or what the user always wants.
    fn wish(&self, setting: AgentSetting) -> Option<String> {
        let usual = match setting {
            AgentSetting::Mode => &self.terms.mode,
            AgentSetting::Model => &self.terms.model,
        };
        self.chosen.get(&setting).or(usual.as_ref()).cloned()
    }

    /// A session whose mode is not the one that was asked for gets no message: it might do what nobody allowed.
    fn unwilling(
        &mut self,
        setting: AgentSetting,
        why: String,
        at: Duration,
        events: &mut Vec<ConversationEvent>,
    ) {
        self.telling.failed(&why, None, at, events);
        if setting == AgentSetting::Mode {
            self.stage = Stage::Failed { why };
        }
    }

    fn settle(&mut self, set: Option<AgentSetting>) {
        let is_setting = self.sent.values().any(|sent| matches!(sent, Sent::Set(..)));
        let is_mended = matches!(self.stage, Stage::Failed { .. }) && set == Some(AgentSetting::Mode);
        if (self.stage == Stage::Settling || is_mended) && self.wanted.is_empty() && !is_setting {
            self.stage = Stage::Ready;
        }
    }

    fn not_set(
        &mut self,
        setting: AgentSetting,
        value: &str,
        refusal: &Refusal,
        at: Duration,
        events: &mut Vec<ConversationEvent>,
    ) {
        let why = format!("the agent does not take the {} {value}: {}", setting.word(), refusal.words());
        match self.stage {
            Stage::Settling => self.unwilling(setting, why, at, events),
            _ => self.telling.failed(&why, None, at, events),
        }
        self.settle(None);
    }

    fn not_opened(&mut self, way: Way, refusal: &Refusal, at: Duration, events: &mut Vec<ConversationEvent>) {
        if self.replay.take().is_some() {
            self.telling.history_ends();
        }
        if refusal.code == rpc::LOGIN_FIRST && !self.capabilities.logins.is_empty() {
            let agent = self.capabilities.name.clone().unwrap_or_else(|| "the agent".to_owned());
            let asked = Asked::login(
                self.named(&format!("login{}", self.openings)),
                &agent,
                &self.capabilities.logins,
            );
            self.stage = Stage::Locked { way };
            return self.ask(asked, at, events);
        }
        match way.next(&self.capabilities) {
            Some(Way::New) => self.begin_anew(&refusal.words(), at, events),
            Some(next) => self.open_by(next),
            None => self.no_session(refusal.words(), at, events),
        }
    }

    fn no_session(&mut self, cause: String, at: Duration, events: &mut Vec<ConversationEvent>) {
        let message = "the agent begins no session";
        self.stage = Stage::Failed { why: format!("{message}: {cause}") };
        self.telling.failed(message, Some(cause), at, events);
    }

    /// Somebody chose a way to log in.
    fn logging_in(&mut self, events: &mut Vec<ConversationEvent>) {
        let Some(at) = self.open.iter().position(|asked| asked.rpc.is_none()) else { return };
        let asked = self.open.remove(at);
        let outcome = Outcome { allowed: true, ..Outcome::default() };
        self.decided(&asked.id, outcome, events);
    }

    fn locked_out(&mut self, refusal: &Refusal, at: Duration, events: &mut Vec<ConversationEvent>) {
        let message = "the agent could not log in";
        self.stage = Stage::Failed { why: format!("{message}: {}", refusal.words()) };
        self.telling.failed(message, Some(refusal.words()), at, events);
    }

    fn turn_ended(
        &mut self,
        id: &Value,
        answer: Result<Value, Refusal>,
        at: Duration,
        events: &mut Vec<ConversationEvent>,
    ) {
        if self.turn.take_if(|turn| turn.key == rpc::key(id)).is_none() {
            return;
        }
        self.withdraw(events);
        let said = self.telling.turn_ends(events);
        let end = match answer {
            Ok(result) => self.turn_end(&result, said),
            Err(refusal) => TurnEnd {
                text: Some(refusal.words()),
                reason: Some("error".to_owned()),
                failed: true,
                usage: Usage { cost_usd: self.usage.cost_usd, ..Usage::default() },
            },
        };
        if end.failed || end.reason.as_deref() == Some("cancelled") {
            self.telling.tools.fail(&mut self.telling.conversation);
        }
        let words = end.text.as_ref().or(end.reason.as_ref()).map(|words| one_line(words, 300));
        self.ended_badly = end.failed.then(|| words.unwrap_or_default());
        self.telling.conversation.add(Item::TurnEnd(end.clone()), at);
        events.push(ConversationEvent::TurnEnd(end));
    }

    fn turn_end(&mut self, result: &Value, said: Option<String>) -> TurnEnd {
        let reason = result["stopReason"].as_str().map(|reason| one_line(reason, 60));
        let failed = matches!(reason.as_deref(), Some("refusal" | "max_tokens" | "max_turn_requests"));
        let count = |name: &str| result["usage"][name].as_u64().unwrap_or(0);
        let usage = Usage {
            input_tokens: count("inputTokens").saturating_add(count("cachedWriteTokens")),
            output_tokens: count("outputTokens"),
            cached_tokens: count("cachedReadTokens"),
            cost_usd: self.usage.cost_usd,
        };
        let all = &mut self.usage;
        all.input_tokens = all.input_tokens.saturating_add(usage.input_tokens);
        all.output_tokens = all.output_tokens.saturating_add(usage.output_tokens);
        all.cached_tokens = all.cached_tokens.saturating_add(usage.cached_tokens);
        let text = if failed { reason.clone() } else { said };
        TurnEnd { text, reason, failed, usage }
    }

    fn update(&mut self, update: &Value, at: Duration, events: &mut Vec<ConversationEvent>) {
        let is_swallowed = self.replay == Some(Replay::Swallowed);
        let known = SessionUpdate::deserialize(update).ok();
        if known.as_ref().is_some_and(|known| self.is_about_now(known, at)) || is_swallowed {
            return;
        }
        let is_whole = known.as_ref().is_some_and(|known| is_whole(update, known));
        let is_told = known.is_some_and(|known| self.told(known, at, events));
        if !is_whole || !is_told {
            let kind = update["sessionUpdate"].as_str().unwrap_or("an update without a kind");
            self.telling.unknown(kind, update, at, events);
        }
    }

    /// What says something of the session rather than of the conversation counts whenever it comes.
    fn is_about_now(&mut self, update: &SessionUpdate, at: Duration) -> bool {
        match update {
            SessionUpdate::UsageUpdate(usage) => {
                let cost = usage.cost.as_ref().filter(|cost| cost.currency.eq_ignore_ascii_case("USD"));
                if let Some(cost) = cost {
                    self.meter.told(cost.amount);
                }
                self.usage.cost_usd = self.meter.total();
            }
            SessionUpdate::CurrentModeUpdate(mode) => {
                let before = self.modes().current;
                self.settings.is_set(AgentSetting::Mode, &mode.current_mode_id.to_string());
                self.say_mode(before, at);
            }
            SessionUpdate::ConfigOptionUpdate(update) => {
                let before = self.modes().current;
                self.settings.set_options(update.config_options.clone());
                self.say_mode(before, at);
            }
            SessionUpdate::AvailableCommandsUpdate(_) | SessionUpdate::SessionInfoUpdate(_) => {}
            _ => return false,
        }
        true
    }

    fn say_mode(&mut self, before: Option<String>, at: Duration) {
        let now = self.modes().current;
        if let (Some(mode), Some(chosen)) = (&now, self.chosen.get_mut(&AgentSetting::Mode))
            && self.stage == Stage::Ready
        {
            // One that leaves a mode by itself is not put back into it.
            chosen.clone_from(mode);
        }
        if let Some(mode) = now.filter(|now| before.is_some_and(|before| before != *now)) {
            self.telling.notice(format!("mode: {}", one_line(&mode, 60)), at);
        }
    }

    /// `false` for what there is no place for in a conversation.
    fn told(&mut self, update: SessionUpdate, at: Duration, events: &mut Vec<ConversationEvent>) -> bool {
        match update {
            SessionUpdate::UserMessageChunk(chunk) => {
                let echoed = super::super::telling::block(&chunk.content);
                // Some agents say again what they were asked.
                if !self.turn.as_ref().is_some_and(|turn| turn.text.contains(echoed.trim())) {
                    self.telling.chunk(Voice::User, &chunk, at, events);
                }
            }
            SessionUpdate::AgentMessageChunk(chunk) => self.telling.chunk(Voice::Agent, &chunk, at, events),
            SessionUpdate::AgentThoughtChunk(chunk) => self.telling.chunk(Voice::Thought, &chunk, at, events),
            SessionUpdate::ToolCall(call) => self.telling.tool(call.into(), at, events),
            SessionUpdate::ToolCallUpdate(update) => self.telling.tool(update.into(), at, events),
            SessionUpdate::Plan(plan) => {
                self.telling.pause(events);
                self.telling.plan(&plan.entries, at);
            }
            SessionUpdate::Notice(notice) => self.telling.agents_notice(&notice, at, events),
            SessionUpdate::CompactionUpdate(update) => self.telling.compaction(&update, at),
            _ => return false,
        }
        true
    }
}

/// The official types leave out what they cannot read of a list; here nothing is to be lost.
fn is_whole(update: &Value, known: &SessionUpdate) -> bool {
    const LISTS: [&str; 3] = ["content", "entries", "locations"];
    const WORDS: [&str; 3] = ["title", "status", "kind"];
    if !matches!(
        known,
        SessionUpdate::ToolCall(_) | SessionUpdate::ToolCallUpdate(_) | SessionUpdate::Plan(_)
    ) {
        return true;
    }
    let kept = serde_json::to_value(known).unwrap_or_default();
    let is_kept = |name: &&str| match (&update[*name], &kept[*name]) {
        (Value::Null, _) => true,
        (Value::Array(all), Value::Array(kept)) => all.len() == kept.len(),
        (Value::Array(all), _) => all.is_empty(),
        _ => false,
    };
    let is_word = |name: &&str| update[*name].is_null() || update[*name].is_string();
    LISTS.iter().all(is_kept) && WORDS.iter().all(is_word)
}

/// Asked for by somebody; what belongs to the opening of a session has names.
fn is_numbered(id: &Value) -> bool {
    id.as_str().and_then(|id| id.rsplit_once(':')).is_some_and(|(_, what)| what.parse::<u64>().is_ok())
}

fn settled(id: &Value, outcome: Result<(), String>) -> ConversationEvent {
    ConversationEvent::SettingAnswered { request: id.as_str().unwrap_or_default().to_owned(), outcome }
}
