//! The runs of tasks: what the daemon knows of a run, and the reports that a live run sends.
//!
//! Not here: how a run is started (see `launches`) and found again (see `boot`).

use std::sync::Arc;
use std::time::Duration;

use agency_api::event::{ErrorEvent, EventData, ModeChangedEvent};
use agency_api::keeper::Ended;
use agency_api::paths::project_id;
use agency_api::{Bytes, ProcessIdentity};
use agency_core::agent::Driver;
use agency_core::config::Config;
use agency_core::evidence::{Change, Evidence, UserWords};
use agency_core::exit::{ExitCode, RunExit};
use agency_core::ids::{ProjectId, RunId, TaskId, TaskKey};
use agency_core::supervisor::{Event, FoundRun, FoundTask, RunTerms};
use agency_core::task_file::Field;
use agency_run::command::{RunCommand, TerminalCommand};
use agency_run::conversation::ConversationSource;
use agency_run::handle::RunHandle;
use agency_run::report::RunReport;
use agency_run::run_context::RunContext;
use agency_run::run_meta::{self, RunMeta};
use agency_run::{fold, plan};
use agency_store::{announced_mark, clock};

use super::{LiveRun, World};

impl World {
    /// From now on the loop handles the report of the run.
    pub(super) fn register(&mut self, key: TaskKey, meta: RunMeta, handle: RunHandle) {
        handle.command(RunCommand::Begin);
        self.watch_workspace(&key);
        let run = meta.run.clone();
        let (standing, missed) = (handle.standing.clone(), handle.missed.clone());
        self.record_first_state(&key, &run, &standing);
        let seen_at = self.seen_at(&run);
        let live = LiveRun {
            key: key.clone(),
            meta,
            standing,
            handle,
            viewers: 0,
            seen_at,
            journal_error: None,
            mode_warning: None,
        };
        self.runs.live.insert(run.clone(), live);
        // These changes happened while no daemon was there to announce them.
        missed.iter().for_each(|change| self.announce_state(&key, &run, change));
    }

    /// Routes the report of a run.
    pub(super) fn on_run_report(&mut self, run: RunId, report: RunReport) {
        let Some(key) = self.runs.live.get(&run).map(|live| live.key.clone()) else {
            return match self.runs.shells.is_live(&run) {
                true => self.on_shell_report(&run, report),
                false => self.on_orphan_report(&run, report),
            };
        };
        match report {
            RunReport::State(change) => self.on_state_changed(&key, &run, &change),
            RunReport::Evidence(evidence) => self.on_evidence(&key, &run, *evidence),
            RunReport::Session(id) => self.write_session(&key, &run, Some(id)),
            RunReport::SessionLost => self.write_session(&key, &run, None),
            RunReport::ModeWarning(warning) => self.on_mode_warning(&run, warning),
            RunReport::Viewers(viewers) => self.on_viewers(&key, &run, viewers),
            RunReport::ConversationEvents { events, next_seq } => {
                self.on_conversation_events(&key, &run, events, next_seq)
            }
            RunReport::ApprovalRequested(approval) => self.put_before_rules(&key, &run, &approval),
            RunReport::Over { exit, ended } => self.on_run_over(&key, run, exit, ended),
            RunReport::Reached { environment } => self.on_keeper_reached(&key, &run, environment),
            RunReport::Rescued { keeper } => self.on_run_rescued(&key, &run, keeper),
            RunReport::Journal { cause } => self.on_journal_report(&key, &run, cause),
        }
    }

    fn on_state_changed(&mut self, key: &TaskKey, run: &RunId, change: &Change) {
        if let Some(live) = self.runs.live.get_mut(run) {
            live.standing = change.new.clone();
        }
        self.announce_state(key, run, change);
        if change.is_new_wait() {
            // The user may know the question before. This one is another.
            self.notices.notifier.clear_need(key);
        }
        self.record_state(key, run, &change.new);
        self.deliver_next(key);
        self.touch_index(key);
        self.check_workspace(key);
        // The agent rests: compare its work with other workspaces.
        if change.new.state.waiting().is_some() {
            self.plan_conflict_scan(&key.project);
        }
    }

    fn on_evidence(&mut self, key: &TaskKey, run: &RunId, evidence: Evidence) {
        let Some(live) = self.runs.live.get_mut(run) else { return };
        live.standing.evidence = evidence;
        let standing = live.standing.clone();
        self.record_detail(key, run, &standing);
    }

    fn on_mode_warning(&mut self, run: &RunId, warning: Option<String>) {
        if let Some(live) = self.runs.live.get_mut(run) {
            live.mode_warning = warning;
        }
    }

    fn on_viewers(&mut self, key: &TaskKey, run: &RunId, viewers: usize) {
        if let Some(live) = self.runs.live.get_mut(run) {
            live.viewers = viewers;
        }
        self.record_view(run);
        self.notices.notifier.set_viewed(key, viewers > 0);
    }

    fn on_conversation_events(
        &mut self,
        key: &TaskKey,
        run: &RunId,
        events: Vec<(Duration, EventData)>,
        next_seq: u64,
    ) {
        let has_turn_ended = events.iter().any(|(_, data)| matches!(data, EventData::TurnEnd(_)));
        for (at, data) in events {
            if let EventData::ModeChanged(ModeChangedEvent { warning: Some(warning), .. }) = &data {
                tracing::warn!(task = %key, %run, warning, "look at the mode of this agent");
                self.send_mode_notice(key, run, warning);
            }
            self.announce_at(clock::timestamp_of(at), Some(key), Some(run), data);
        }
        if has_turn_ended {
            *self.runs.turns.entry(key.clone()).or_default() += 1;
            self.check_workspace(key);
            self.take_turn_snapshot(key);
        }
        if let Err(cause) = announced_mark::write(&self.context.state.run(&run.0).announced_file(), next_seq)
        {
            tracing::warn!(%run, %cause, "some events may be announced twice");
        }
    }

    fn on_run_over(&mut self, key: &TaskKey, run: RunId, exit: RunExit, ended: Vec<Ended>) {
        tracing::info!(task = %key, %run, code = %exit.code, "the run is over");
        self.runs.ended.insert(key.clone(), ended);
        let is_watched = self.runs.live.get(&run).is_some_and(|live| live.viewers > 0)
            || self.notices.readers.contains_key(key);
        self.decide(Event::RunExited { key: key.clone(), run, exit });
        if !exit.requested && exit.code.is_success() {
            self.announce_unsent_texts(key);
        }
        if is_watched {
            self.record_look(key);
        }
        self.notices.notifier.end_run(key);
        self.touch_index(key);
        self.plan_conflict_scan(&key.project);
    }

    fn on_keeper_reached(&mut self, key: &TaskKey, run: &RunId, environment: Vec<(Bytes, Bytes)>) {
        if let Some(live) = self.runs.live.get_mut(run) {
            live.handle.environment = environment;
        }
        self.notices.notifier.expect_late_state(key);
    }

    fn on_run_rescued(&mut self, key: &TaskKey, run: &RunId, keeper: ProcessIdentity) {
        tracing::warn!(task = %key, %run, "the keeper was killed; another one holds the run now");
        if let Some(live) = self.runs.live.get_mut(run) {
            live.handle.keeper = keeper;
        }
        let cause = "another one holds the run now; what was printed meanwhile may be missing";
        self.announce(Some(key), Some(run), ErrorEvent::new("the keeper was killed", cause));
    }

    fn on_journal_report(&mut self, key: &TaskKey, run: &RunId, cause: Option<String>) {
        if let Some(live) = self.runs.live.get_mut(run) {
            live.journal_error = cause.clone();
        }
        match cause {
            Some(cause) => {
                tracing::error!(task = %key, %run, %cause, "the keeper cannot write the journal");
                let error = ErrorEvent::new("the journal cannot be written", cause);
                self.announce(Some(key), Some(run), error);
            }
            None => tracing::info!(task = %key, %run, "the keeper writes the journal again"),
        }
    }

    /// Writes beside the run when a user looked at it, so that the next daemon knows.
    pub(super) fn record_view(&mut self, run: &RunId) {
        let (now, path) = (clock::now(), self.context.state.run(&run.0).seen_file());
        if let Some(live) = self.runs.live.get_mut(run) {
            live.seen_at = Some(now);
            let key = live.key.clone();
            self.record_minute_of_look(&key);
        }
        if let Err(cause) = std::fs::write(path, now.as_nanos().to_string()) {
            tracing::warn!(%run, %cause, "cannot record that a user looked at a run");
        }
    }

    /// Writes the session into the task file: the next start continues it, or begins a new one if there is none.
    fn write_session(&mut self, key: &TaskKey, run: &RunId, id: Option<String>) {
        let known = self.store.file(key).is_ok_and(|file| file.fields().session_id == id);
        if known {
            return;
        }
        if let Err(cause) = self.store.set(key, vec![Field::SessionId(id)]) {
            tracing::warn!(task = %key, %run, %cause, "cannot write the session into the task file");
        }
    }

    /// Gives the runs new screen rules: a run without output would not read them again by itself.
    pub(super) fn apply_screen_rules(&mut self) {
        let rules = self.context.rule_book.rules();
        if !Arc::ptr_eq(&rules, &self.configuration.screen_rules) {
            self.configuration.screen_rules = rules;
            let terminals = self.runs.live.values().filter_map(|live| live.handle.terminal());
            terminals.for_each(|terminal| terminal.post(TerminalCommand::ReloadRules));
        }
    }

    pub(super) fn found_run(&self, key: &TaskKey) -> FoundRun {
        if self.runs.elsewhere.contains_key(key) {
            return FoundRun::Elsewhere;
        }
        match self.runs.live.values().find(|live| live.key == *key) {
            Some(live) if live.handle.gone => {
                FoundRun::Ended { run: live.meta.run.clone(), exit: self.recorded_exit(&live.meta) }
            }
            Some(live) => {
                FoundRun::Live { run: live.meta.run.clone(), terms: self.terms_of(key, &live.meta) }
            }
            None => FoundRun::None,
        }
    }

    /// How a run ended, as far as its journal says.
    pub(super) fn recorded_exit(&self, meta: &RunMeta) -> RunExit {
        let journal = self.context.state.run(&meta.run.0).journal();
        let exit = fold::exit_in(&journal).unwrap_or_else(|cause| {
            tracing::warn!(journal = %journal.display(), %cause, "a journal cannot be read");
            None
        });
        exit.unwrap_or(RunExit::by_itself(ExitCode::Unknown))
    }

    /// How to follow a run, from its metadata and the configuration of now.
    pub(super) fn context_of(&self, meta: &RunMeta) -> RunContext {
        let key = key_of(meta);
        let config = self.config_for(&key.project);
        let agent = config.agents.find(&meta.agent).cloned();
        let agent = agent.unwrap_or_else(|_| agency_core::agent::Agent::named(&meta.agent));
        RunContext {
            id: meta.run.clone(),
            name: meta.process_name(),
            driver: meta.driver.parse().unwrap_or_default(),
            is_session: meta.acp.is_some(),
            conversation: meta.conversation_terms(),
            before: self.conversations_before(
                self.runs.history.get(&key).map(Vec::as_slice).unwrap_or_default(),
                meta,
            ),
            dir: self.context.state.run(&meta.run.0),
            epoch: self.context.epoch.clone(),
            owner: serde_json::to_value(meta).ok(),
            keeper_binary: self.context.keeper_binary.clone(),
            open_files: self.context.open_files,
            spare: agent.spare.clone(),
            fold: plan::fold_settings(&config, &agent, &meta.program),
            rule_book: self.context.rule_book.clone(),
            memories: self.context.memories.clone(),
            task_words: self.task_words(&key),
        }
    }

    /// The words of a task: its name, its text and the directory of its project. They may be on the screen of its agent.
    pub(super) fn task_words(&self, key: &TaskKey) -> Arc<UserWords> {
        let mut words = UserWords::default();
        if let Some(task) = self.store.task(key) {
            words.add(task.name.slug.as_str());
        }
        if let Ok(file) = self.store.file(key) {
            words.add(&String::from_utf8_lossy(file.body()));
        }
        if let Some(project) = self.store.project(&key.project) {
            words.add(&project.root().to_string_lossy());
        }
        Arc::new(words)
    }

    /// The task's earlier runs that are one conversation with this one.
    pub(super) fn conversations_before(&self, runs: &[RunMeta], meta: &RunMeta) -> Vec<ConversationSource> {
        let is_earlier = |other: &&RunMeta| {
            is_conversation(other)
                && is_conversation(meta)
                && key_of(other) == key_of(meta)
                && other.order < meta.order
        };
        runs.iter().filter(is_earlier).map(|other| self.conversation_source(other)).collect()
    }

    pub(super) fn conversation_source(&self, meta: &RunMeta) -> ConversationSource {
        ConversationSource {
            terms: meta.conversation_terms(),
            journal: self.context.state.run(&meta.run.0).journal(),
        }
    }

    pub(super) fn terms_of(&self, key: &TaskKey, meta: &RunMeta) -> RunTerms {
        let config = self.config_for(&key.project);
        let agent = config.agents.find(&meta.agent).cloned();
        let agent = agent.unwrap_or_else(|_| agency_core::agent::Agent::named(&meta.agent));
        plan::run_terms(&agent, meta.driver.parse().unwrap_or_default())
    }

    fn config_for(&self, project: &ProjectId) -> Config {
        self.settings(Some(project)).map(|settings| settings.config).unwrap_or_default()
    }

    /// Finds out whether another host holds a run of the task, and tells the supervisor if that has changed.
    pub(super) fn check_other_hosts(&mut self, key: &TaskKey) {
        let own = self.context.state.host();
        let there = run_meta::all(&self.context.state)
            .into_iter()
            .filter(|(dir, meta)| {
                meta.host != own && meta.shell.is_none() && key_of(meta) == *key && dir.pid_file().exists()
            })
            .map(|(_, meta)| meta.host_name)
            .next_back();
        let before = match there.clone() {
            Some(host) => self.runs.elsewhere.insert(key.clone(), host),
            None => self.runs.elsewhere.remove(key),
        };
        if before.is_some() != there.is_some() {
            self.report_task_to_supervisor(key);
        }
    }

    /// Tells the supervisor what the task file says now.
    pub(super) fn report_task_to_supervisor(&mut self, key: &TaskKey) {
        if let Ok(file) = self.store.file(key) {
            let status = file.fields().status;
            self.decide(Event::TaskSeen(FoundTask { key: key.clone(), status, run: self.found_run(key) }));
        }
    }
}

/// A run that holds a conversation rather than a terminal.
pub(super) fn is_conversation(meta: &RunMeta) -> bool {
    meta.driver.parse::<Driver>().is_ok_and(|driver| driver != Driver::Terminal)
}

pub(super) fn key_of(meta: &RunMeta) -> TaskKey {
    TaskKey { project: ProjectId(project_id(&meta.root)), task: TaskId(meta.task) }
}
