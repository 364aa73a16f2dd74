//! The state that every protocol driver keeps of a run: cut lines, the conversation, the agent's state, usage, turns.
//!
//! Knows no protocol. A driver cuts bytes into lines here, reads the lines itself, and records here what they mean.
//! Time and events do not travel through the driver's functions: the core holds both while one record is folded.

use std::collections::HashMap;
use std::time::Duration;

use agency_core::agent_state::{AgentState, Timing};
use agency_core::conversation::{Approval, ApprovalOutcome, Conversation, Item, TurnEnd, Usage};
use agency_core::evidence::{Activity, Change, Detector, Moment, Why};
use agency_core::exit::ExitCode;
use agency_core::plain::one_line;
use serde_json::Value;

use super::permission_mode::ModeMeaning;
use super::{AgentSetting, ConversationEvent, Inherited, ModeChange, ModeChanger, SessionReport};
use crate::lines::{LineSplitter, SplitLine};
use crate::meter::Meter;

/// The shared state of a run that is driven by a protocol.
pub struct ConversationCore {
    pub(crate) conversation: Conversation,
    detector: Detector,
    streams: Streams,
    /// The agent's own id of the session.
    pub(crate) session_id: Option<String>,
    /// Tokens of the whole conversation. The meter knows the cost.
    tokens: Usage,
    cost: Meter,
    /// A turn has begun in this run.
    has_begun_turn: bool,
    /// The last words of the last turn, if that turn failed.
    pub(crate) turn_failure: Option<String>,
    /// The agent died with a message that it had not answered, and the user has sent none since. In words, without the
    /// message: states and events may leave this machine.
    lost_message: Option<String>,
    /// Why the user should look at the agent's mode, as long as that is so.
    mode_warning: Option<String>,
    /// The number of our next request.
    next_request: u64,
    /// The time of the record that is being folded.
    now: Duration,
    /// The events of the record that is being folded.
    events: Vec<ConversationEvent>,
    /// The agent sends the history of a session again. Its messages are not news.
    pub(crate) is_replaying: bool,
    /// The reports of the agent about its session.
    report: SessionReport,
    /// The earlier parts of texts that still grow, by key, if other entries came between the parts.
    earlier_parts: HashMap<String, String>,
}

/// The three streams of the process, cut into lines.
#[derive(Default)]
struct Streams {
    output: LineSplitter,
    log: LineSplitter,
    input: LineSplitter,
    /// Bytes of output so far.
    offset: u64,
}

/// A state of the agent, the rule that derives it, and what the agent waits for.
pub(crate) struct Judgement {
    activity: Activity,
    rule: &'static str,
    detail: Option<String>,
}

impl Judgement {
    pub(crate) fn working(rule: &'static str) -> Judgement {
        Judgement { activity: Activity::Working, rule, detail: None }
    }

    pub(crate) fn waiting(why: Why, rule: &'static str, detail: Option<String>) -> Judgement {
        Judgement { activity: Activity::Waiting(why), rule, detail }
    }

    /// The agent waits for an answer to its request.
    pub(crate) fn open_request(is_permission: bool, title: &str) -> Judgement {
        let (why, rule) = match is_permission {
            true => (Why::Permission, "it asks for a permission"),
            false => (Why::Question, "it asks a question"),
        };
        Judgement::waiting(why, rule, Some(title.to_owned()))
    }
}

/// Accessors for callers.
impl ConversationCore {
    /// The conversation of this run and of the runs before it.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// The agent's own id of the session.
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// Tokens and cost of the whole conversation.
    pub fn usage(&self) -> Usage {
        Usage { cost_usd: self.cost.total(), ..self.tokens }
    }

    /// The reports of the agent about its session.
    pub fn report(&self) -> &SessionReport {
        &self.report
    }

    /// The state of the agent now.
    pub fn state(&self) -> AgentState {
        self.detector.state()
    }

    /// The evidence behind the state.
    pub fn detector(&self) -> &Detector {
        &self.detector
    }

    /// The changes of state since the last call.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.detector.take_changes()
    }

    /// When the state can next change without a new record.
    pub fn deadline(&self) -> Option<Duration> {
        self.detector.deadline()
    }

    /// Says what time it is.
    pub fn tick(&mut self, now: Duration) {
        self.detector.tick(now);
    }

    /// Whether a line to the agent was begun and not ended.
    pub fn is_half_written(&self) -> bool {
        self.streams.input.has_rest()
    }

    /// Sets how far the wall clock is ahead of the clock of the records.
    pub fn set_wall_offset(&mut self, offset: Duration) {
        self.conversation.set_wall_offset(offset);
    }

    /// The journal lacks some of the agent's output.
    pub fn on_gap(&mut self, at: Duration) {
        self.now = at;
        self.streams.output = LineSplitter::default();
        self.add_notice("some of what the agent said here is lost");
    }

    /// Adds an entry that was noted when the run ended.
    pub(crate) fn on_exit_note(&mut self, item: Item, at: Duration) {
        self.conversation.add(item, at);
    }
}

/// A run's beginning and end.
impl ConversationCore {
    pub(crate) fn new(timing: Timing, now: Duration) -> ConversationCore {
        ConversationCore {
            conversation: Conversation::default(),
            detector: Detector::new(timing, now),
            streams: Streams::default(),
            session_id: None,
            tokens: Usage::default(),
            cost: Meter::default(),
            has_begun_turn: false,
            turn_failure: None,
            lost_message: None,
            mode_warning: None,
            next_request: 1,
            now,
            events: Vec::new(),
            is_replaying: false,
            report: SessionReport::default(),
            earlier_parts: HashMap::new(),
        }
    }

    /// The core of a run that continues a conversation.
    pub(crate) fn continuing(inherited: Inherited, timing: Timing, now: Duration) -> ConversationCore {
        let Inherited { conversation, usage, session_id, chosen: _, chosen_options: _, lost_message } =
            inherited;
        ConversationCore {
            conversation,
            session_id,
            tokens: usage,
            cost: Meter::after(usage.cost_usd),
            turn_failure: lost_message.clone(),
            lost_message,
            ..ConversationCore::new(timing, now)
        }
    }

    pub(crate) fn into_inherited(
        self,
        chosen: std::collections::BTreeMap<AgentSetting, String>,
    ) -> Inherited {
        let usage = self.usage();
        Inherited {
            conversation: self.conversation,
            usage,
            session_id: self.session_id,
            chosen,
            chosen_options: std::collections::BTreeMap::new(),
            lost_message: self.lost_message,
        }
    }

    /// The process ended.
    pub(crate) fn exit(&mut self, code: ExitCode) -> Vec<ConversationEvent> {
        self.detector.on_exit(code, self.moment());
        std::mem::take(&mut self.events)
    }
}

/// Folding one record.
impl ConversationCore {
    /// The time of the record that is being folded.
    pub(crate) fn now(&self) -> Duration {
        self.now
    }

    pub(crate) fn begin_record(&mut self, at: Duration) {
        self.now = at;
    }

    /// Cuts output of the agent into lines.
    pub(crate) fn split_output(&mut self, bytes: &[u8]) -> Vec<SplitLine> {
        self.streams.offset += bytes.len() as u64;
        self.streams.output.feed(bytes)
    }

    /// The whole lines of what was written to the agent.
    pub(crate) fn split_input(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.streams.input.feed(bytes).into_iter().filter_map(SplitLine::whole).collect()
    }

    /// The whole lines of what the agent printed on its error output, without blank ones.
    pub(crate) fn split_log(&mut self, bytes: &[u8]) -> Vec<String> {
        let lines = self.streams.log.feed(bytes).into_iter().filter_map(SplitLine::whole);
        let texts = lines.map(|line| String::from_utf8_lossy(&line).trim().to_owned());
        texts.filter(|text| !text.is_empty()).collect()
    }

    /// The last line of output, if the process ended without ending it.
    pub(crate) fn take_last_line(&mut self) -> Option<Vec<u8>> {
        self.streams.output.take_rest()
    }

    /// Forgets lines that were begun. Another process begins its own.
    pub(crate) fn drop_partial_lines(&mut self) {
        (self.streams.output, self.streams.input) = (LineSplitter::default(), LineSplitter::default());
    }

    /// Ends a record: derives the state, and returns the events of the record.
    pub(crate) fn finish_record(&mut self, judgement: Judgement) -> Vec<ConversationEvent> {
        let Judgement { activity, rule, detail } = judgement;
        self.detector.on_protocol(activity, rule, detail, self.moment());
        std::mem::take(&mut self.events)
    }

    fn moment(&self) -> Moment {
        Moment { at: self.now, offset: self.streams.offset }
    }
}

/// Recording the meaning of lines.
impl ConversationCore {
    pub(crate) fn announce(&mut self, event: ConversationEvent) {
        self.events.push(event);
    }

    /// Announces an event, unless the agent is only sending history again.
    pub(crate) fn announce_news(&mut self, event: ConversationEvent) {
        if !self.is_replaying {
            self.events.push(event);
        }
    }

    pub(crate) fn add(&mut self, item: Item) {
        self.conversation.add(item, self.now);
    }

    pub(crate) fn add_notice(&mut self, text: impl Into<String>) {
        self.add(Item::Notice { text: text.into() });
    }

    pub(crate) fn add_error(&mut self, message: &str, cause: Option<String>) {
        self.add(Item::Error { message: message.to_owned(), cause: cause.clone() });
        self.announce_news(ConversationEvent::Error { message: message.to_owned(), cause });
    }

    /// Why the user should look at the agent's mode, if so.
    pub(crate) fn mode_warning(&self) -> Option<&str> {
        self.mode_warning.as_deref()
    }

    pub(crate) fn clear_mode_warning(&mut self) {
        self.mode_warning = None;
    }

    /// Says in the conversation and in an event that the user should look at the agent's mode. Says it once.
    pub(crate) fn warn_about_mode(&mut self, old: Option<String>, new: Option<String>, words: String) {
        if self.mode_warning.as_ref() == Some(&words) {
            return;
        }
        self.add(Item::Error { message: words.clone(), cause: None });
        let (by, warning) = (ModeChanger::Agent, Some(words.clone()));
        self.announce_news(ConversationEvent::ModeChanged(ModeChange { old, new, by, warning }));
        self.mode_warning = Some(words);
    }

    /// Says that the agent changed its mode although no user asked for it.
    pub(crate) fn warn_about_own_change(&mut self, old: String, new: String, meaning: ModeMeaning) {
        let words = meaning.describe_own_change(&old, &new);
        self.warn_about_mode(Some(old), Some(new), words);
        if matches!(meaning, ModeMeaning::Asks | ModeMeaning::ReadsOnly) {
            self.clear_mode_warning();
        }
    }

    /// Shows a message that this driver does not know, or cannot read, as it came.
    pub(crate) fn add_unknown(&mut self, kind: &str, value: &Value) {
        let kind = one_line(kind, 60);
        self.add_notice(format!("{kind}: {}", one_line(&value.to_string(), 300)));
        self.announce_news(ConversationEvent::Other { kind });
    }

    /// A line was longer than any message can be.
    pub(crate) fn add_long_line(&mut self, beginning: &[u8]) {
        let cause = format!("it begins with {}", String::from_utf8_lossy(beginning));
        self.add_error("a line has no end", Some(cause));
    }

    /// A line is not a message.
    pub(crate) fn add_unreadable_line(&mut self, line: &[u8], cause: String) {
        let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
        self.add_error(&format!("not a message: {shown}"), Some(cause));
    }

    pub(crate) fn upsert(
        &mut self,
        key: &str,
        new: impl FnOnce() -> Item,
        change: impl FnOnce(&mut Item) -> bool,
    ) {
        self.conversation.upsert(key, self.now, new, change);
    }

    /// Adds the entry of a key, or replaces it.
    pub(crate) fn put(&mut self, key: &str, item: Item) {
        let new = item.clone();
        self.upsert(key, || new, |known| replace(known, item));
    }

    /// Shows a request of the agent that waits for an answer.
    pub(crate) fn open_approval(&mut self, approval: Approval) {
        let asked = Box::new(approval.clone());
        self.upsert(&approval_key(&asked.id), || Item::Approval(approval), |_| false);
        self.announce(ConversationEvent::ApprovalRequested(asked));
    }

    /// Records the answer to a request. The answer may say that the request was cancelled.
    pub(crate) fn decide_approval(&mut self, id: &str, outcome: ApprovalOutcome) {
        self.close_approval(id, outcome.clone());
        self.announce(match outcome.cancelled {
            true => ConversationEvent::ApprovalWithdrawn { id: id.to_owned() },
            false => ConversationEvent::ApprovalDecided { id: id.to_owned(), outcome },
        });
    }

    /// A request needs no answer any more.
    pub(crate) fn withdraw_approval(&mut self, id: &str) {
        self.decide_approval(
            id,
            ApprovalOutcome { allowed: false, cancelled: true, ..ApprovalOutcome::default() },
        );
    }

    fn close_approval(&mut self, id: &str, outcome: ApprovalOutcome) {
        let key = approval_key(id);
        self.conversation.update(&key, |item| match item {
            Item::Approval(approval) if approval.outcome.is_none() => {
                approval.outcome = Some(outcome);
                true
            }
            _ => false,
        });
        // If the agent uses the same id again, that is another request.
        self.conversation.settle(&key);
    }

    pub(crate) fn begin_turn(&mut self) {
        (self.has_begun_turn, self.turn_failure, self.lost_message) = (true, None, None);
    }

    /// The agent ended with a message that it had not answered.
    pub(crate) fn lose_message(&mut self, words: &str, cause: Option<String>) {
        self.turn_failure = Some(words.to_owned());
        self.lost_message = Some(words.to_owned());
        self.add_error(words, cause);
    }

    pub(crate) fn end_turn(&mut self, end: TurnEnd) {
        let words = end.text.as_ref().or(end.reason.as_ref()).map(|words| one_line(words, 300));
        self.turn_failure = end.failed.then(|| words.unwrap_or_default());
        self.has_begun_turn = true;
        self.add(Item::TurnEnd(end.clone()));
        self.announce(ConversationEvent::TurnEnd(end));
    }

    /// The state of an agent that neither works nor waits for an answer.
    pub(crate) fn judge_idle(&self) -> Judgement {
        match &self.turn_failure {
            Some(words) => {
                let detail = Some(words.clone()).filter(|words| !words.is_empty());
                Judgement::waiting(Why::Error, "the turn failed", detail)
            }
            None if self.has_begun_turn => Judgement::waiting(Why::Finished, "the turn is over", None),
            None => Judgement::waiting(Why::Prompt, "it takes messages", None),
        }
    }

    /// Adds the tokens of one turn; returns them with the cost so far.
    pub(crate) fn add_tokens(&mut self, turn: Usage) -> Usage {
        let all = &mut self.tokens;
        all.input_tokens = all.input_tokens.saturating_add(turn.input_tokens);
        all.output_tokens = all.output_tokens.saturating_add(turn.output_tokens);
        all.cached_tokens = all.cached_tokens.saturating_add(turn.cached_tokens);
        Usage { cost_usd: self.cost.total(), ..turn }
    }

    /// Records the cost that the agent reports for its session so far.
    pub(crate) fn record_cost(&mut self, total: f64) {
        self.cost.record(total);
    }

    pub(crate) fn take_request_number(&mut self) -> u64 {
        let number = self.next_request;
        self.next_request = number.saturating_add(1);
        number
    }

    /// The journal has a request of ours with this number.
    pub(crate) fn skip_request_number(&mut self, number: u64) {
        self.next_request = self.next_request.max(number.saturating_add(1));
    }
}

/// Recording the status of the session.
impl ConversationCore {
    /// Changes the report about the session.
    pub(crate) fn update_report(&mut self, change: impl FnOnce(&mut SessionReport)) {
        let before = self.report.clone();
        change(&mut self.report);
        if self.report != before {
            self.conversation.touch();
        }
    }
}

/// Texts that arrive in parts.
impl ConversationCore {
    /// Adds to the text of a key. If another entry was added meanwhile, the text continues in a new entry: the
    /// conversation keeps the order in which things arrived, and an entry grows only while it is the last one.
    pub(crate) fn grow_text(&mut self, key: &str, empty: impl FnOnce() -> Item, more: &str) {
        if !self.conversation.is_last(key)
            && let Some(part) = self.conversation.get(key).and_then(item_text)
        {
            let part = part.to_owned();
            self.earlier_parts.entry(key.to_owned()).or_default().push_str(&part);
            self.conversation.settle(key);
        }
        self.upsert(key, empty, |item| append_text(item, more));
    }

    /// The whole text of a key so far.
    pub(crate) fn grown_text(&self, key: &str) -> Option<String> {
        let last = self.conversation.get(key).and_then(item_text)?;
        Some(format!("{}{last}", self.earlier_part(key)))
    }

    /// The rest of a whole text that begins with the text of a key. `None` if it does not.
    pub(crate) fn rest_of_text<'a>(&self, key: &str, whole: &'a str) -> Option<&'a str> {
        let last = self.conversation.get(key).and_then(item_text)?;
        whole.strip_prefix(self.earlier_part(key))?.strip_prefix(last)
    }

    fn earlier_part(&self, key: &str) -> &str {
        self.earlier_parts.get(key).map_or("", String::as_str)
    }

    /// Closes the text of a key: it is complete.
    pub(crate) fn settle_text(&mut self, key: &str) {
        self.earlier_parts.remove(key);
        self.conversation.settle(key);
    }
}

fn item_text(item: &Item) -> Option<&str> {
    match item {
        Item::User { text } | Item::Assistant { text } | Item::Thinking { text } => Some(text),
        _ => None,
    }
}

fn append_text(item: &mut Item, more: &str) -> bool {
    match item {
        Item::User { text } | Item::Assistant { text } | Item::Thinking { text } => text.push_str(more),
        _ => return false,
    }
    !more.is_empty()
}

/// Replaces an item; returns whether that changed it.
fn replace(known: &mut Item, item: Item) -> bool {
    let is_new = *known != item;
    *known = item;
    is_new
}

fn approval_key(id: &str) -> String {
    format!("approval {id}")
}
