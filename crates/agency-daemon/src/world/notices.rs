//! Notifications: runs report to the notifier, which decides what is due, and the channels send it to people.

use std::collections::HashMap;

use agency_api::config::Overrides;
use agency_api::method::{self, Nothing};
use agency_api::notify::{ChannelState, ChannelStates, ChannelTest, NoticeTask, TestParams};
use agency_api::{Failure, pty::ViewerNotice};
use agency_core::config::Notify;
use agency_core::evidence::DetectedState;
use agency_core::exit::RunExit;
use agency_core::ids::{RunId, TaskKey};
use agency_core::notify::{Cause, Notifier, Occasion};
use agency_notify::{NotificationSender, words};
use agency_run::command::TerminalCommand;
use agency_store::clock;

use super::World;
use super::router::{Later, Router};

pub(super) fn register(router: &mut Router) {
    router.on(method::NotifyTest, World::test_notices);
    router.on(method::NotifyChannels, World::channel_states);
}

#[derive(Default)]
pub(super) struct Notices {
    pub(super) notifier: Notifier,
    sender: NotificationSender,
    /// How many users read a conversation right now.
    pub(super) readers: HashMap<TaskKey, usize>,
    /// The settings when the user's file could last be read.
    settings: Notify,
}

impl World {
    /// Records the first state of a run. Only later changes cause notifications.
    pub(super) fn record_first_state(&mut self, key: &TaskKey, run: &RunId, standing: &DetectedState) {
        self.notices.notifier.record_found(key, need_of(run, standing));
    }

    pub(super) fn record_state(&mut self, key: &TaskKey, run: &RunId, standing: &DetectedState) {
        match need_of(run, standing) {
            Some(cause) => self.notices.notifier.record_need(key, cause, clock::now()),
            None => self.notices.notifier.clear_need(key),
        }
    }

    /// The agent's question is often known only a moment after the agent began to wait. Adds it to a notification that
    /// is not sent yet.
    pub(super) fn record_detail(&mut self, key: &TaskKey, run: &RunId, standing: &DetectedState) {
        if standing.state.waiting().is_some() {
            self.record_state(key, run, standing);
        }
    }

    pub(super) fn record_unexpected_end(&mut self, key: &TaskKey, run: Option<&RunId>, detail: String) {
        let last = || self.runs.history.get(key).and_then(|runs| runs.last()).map(|meta| meta.run.clone());
        let Some(run) = run.cloned().or_else(last) else { return };
        self.notices.notifier.record_need(
            key,
            Cause { run, occasion: Occasion::Exited { detail } },
            clock::now(),
        );
    }

    pub(super) fn send_due_notices(&mut self) {
        let Some(due) = self.notices.notifier.take_due(clock::now()) else { return };
        let settings = self.notify_settings();
        let wanted = due.iter().filter(|(_, cause)| settings.wants(cause.occasion.why()));
        let tasks: Vec<NoticeTask> = wanted.filter_map(|(key, cause)| self.notice_task(key, cause)).collect();
        if tasks.is_empty() {
            return;
        }
        let notice = words::notice(tasks, clock::timestamp());
        // Logs are shown to others, so they do not contain the agents' messages.
        tracing::info!(about = words::title(&notice), "a notification is sent");
        let attention =
            ViewerNotice::Attention { text: notice.text.clone(), how: settings.terminal.as_str().to_owned() };
        // The notification is never about a task that has a viewer.
        let viewed = self.runs.live.values().filter(|live| live.viewers > 0);
        for terminal in viewed.filter_map(|live| live.handle.terminal()) {
            terminal.post(TerminalCommand::Notify(attention.clone()));
        }
        self.notices.sender.send(&settings, &notice);
    }

    /// Notifies the user of an agent whose mode changed, or may let it approve its own actions. It waits for nothing, so
    /// the notifier has no part in it.
    pub(super) fn send_mode_notice(&mut self, key: &TaskKey, run: &RunId, warning: &str) {
        let settings = self.notify_settings();
        let occasion = Occasion::NeedsInput { why: "error".to_owned(), detail: warning.to_owned() };
        if !settings.wants(occasion.why()) || self.notices.readers.contains_key(key) {
            return;
        }
        let cause = Cause { run: run.clone(), occasion };
        if let Some(task) = self.notice_task(key, &cause) {
            self.notices.sender.send(&settings, &words::notice(vec![task], clock::timestamp()));
        }
    }

    /// The settings of the user's own file. A project cannot change them.
    fn notify_settings(&mut self) -> Notify {
        if let Ok(settings) = self.settings(None) {
            self.notices.settings = settings.config.notify;
        }
        self.notices.settings.clone()
    }

    /// `None` if the task is gone.
    fn notice_task(&self, key: &TaskKey, cause: &Cause) -> Option<NoticeTask> {
        let task = self.view(key).ok()?;
        let (state, why) = match &cause.occasion {
            Occasion::NeedsInput { why, .. } if why.is_empty() => ("needs_input", "unknown"),
            Occasion::NeedsInput { why, .. } => ("needs_input", why.as_str()),
            Occasion::Exited { .. } => ("exited", "exited"),
        };
        let detail = words::clean(cause.occasion.detail());
        Some(NoticeTask {
            project: Some(task.project),
            task: Some(task.id),
            slug: Some(task.slug),
            agent: Some(task.agent_name),
            run: Some(cause.run.0.clone()),
            state: Some(state.to_owned()),
            why: Some(why.to_owned()),
            detail: (!detail.is_empty()).then_some(detail),
        })
    }

    fn test_notices(&mut self, params: TestParams) -> Result<Later<ChannelTest>, Failure> {
        let settings = self.settings_with(None, &params.overrides)?;
        let (sender, warnings) = (self.notices.sender.clone(), settings.warnings);
        let settings = settings.config.notify;
        Ok(Later::new(async move {
            let ways = sender.send_test(&settings, &words::test(clock::timestamp())).await;
            let terminal = settings.terminal.as_str().to_owned();
            Ok(ChannelTest { ways, terminal, warnings })
        }))
    }

    fn channel_states(&mut self, _: Nothing) -> Result<ChannelStates, Failure> {
        let settings = self.settings_with(None, &Overrides::default())?.config.notify;
        let ways: Vec<ChannelState> = self.notices.sender.channel_states(&settings);
        Ok(ChannelStates { ways })
    }
}

/// The reason why an agent waits for a user; `None` if it does not wait.
fn need_of(run: &RunId, standing: &DetectedState) -> Option<Cause> {
    let (_, why) = standing.state.waiting()?;
    let detail = standing.evidence.detail.clone().unwrap_or_default();
    let occasion = Occasion::NeedsInput { why: why.as_str().to_owned(), detail };
    Some(Cause { run: run.clone(), occasion })
}

pub(super) fn ended_with(exit: RunExit) -> String {
    format!("it ended with {}", exit.code)
}
