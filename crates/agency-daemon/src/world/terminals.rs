//! Terminals and logs: callers attach to them, look at them, and read them.

use std::path::{Path, PathBuf};

use agency_api::config::Overrides;
use agency_api::method::{
    self, LogForm, LogReadParams, PtyAttachParams, PtyScreenParams, ScreenDump, Stream,
};
use agency_api::{Failure, FailureCode};
use agency_core::config::Config;
use agency_core::ids::{ProjectId, TaskKey};
use agency_driver::terminal::Settings;
use agency_run::blocking::blocking;
use agency_run::command::TerminalCommand;
use agency_run::environment;
use agency_run::handle::CommandSender;
use agency_run::logs::LogRequest;
use agency_run::run_meta::RunMeta;
use agency_run::screen_dump;
use agency_run::view::screen_size;
use agency_run::viewers::ViewerOptions;
use agency_server::Promised;
use agency_store::settings::SettingsFiles;
use jiff::Timestamp;

use super::explain::parse_time;
use super::router::{Later, Router};
use super::runs::is_conversation;
use super::{LiveRun, World};

pub(super) fn register(router: &mut Router) {
    router.on(method::PtyAttach, World::attach);
    router.on(method::PtyScreen, World::screen);
    router.on(method::LogRead, World::log);
}

impl World {
    /// The live run of a task that has a terminal.
    pub(super) fn live_terminal(
        &self,
        key: &TaskKey,
    ) -> Result<(&LiveRun, CommandSender<TerminalCommand>), Failure> {
        let live = self.live_run(key)?;
        let commands = live.handle.terminal().ok_or_else(|| no_terminal(key))?;
        Ok((live, commands.clone()))
    }

    fn screen(&mut self, (key, params): (TaskKey, PtyScreenParams)) -> Result<Later<ScreenDump>, Failure> {
        if let Some(at) = &params.at {
            return self.screen_at(&key, parse_time(at)?);
        }
        let is_live = self.live_run(&key).is_ok() || self.runs.elsewhere.contains_key(&key);
        let last = self.runs.history.get(&key).and_then(|runs| runs.last()).filter(|_| !is_live);
        if let Some(meta) = last.filter(|meta| !is_conversation(meta)) {
            let (journal, settings) = self.past_terminal(meta);
            let picture = blocking(move || {
                screen_dump::last_picture(&journal, settings).map_err(|err| unreadable(&journal, &err))
            });
            return Ok(Later::new(picture));
        }
        let (_, commands) = self.live_terminal(&key)?;
        Ok(Later::new(dump_screen(commands)))
    }

    /// The screen of the run that had begun last at that time.
    fn screen_at(&self, key: &TaskKey, at: Timestamp) -> Result<Later<ScreenDump>, Failure> {
        let runs = self.runs.history.get(key).map(Vec::as_slice).unwrap_or_default();
        let has_begun =
            |meta: &&RunMeta| meta.started_at.parse::<Timestamp>().is_ok_and(|started| started <= at);
        let too_early = move |first: Option<String>| {
            let failure = Failure::new(format!("there was no screen at {at}")).code(FailureCode::NotFound);
            match first {
                Some(first) => failure.because(format!("the first agent of the task started at {first}")),
                None => failure.because("the task has had no agent"),
            }
        };
        let first = runs.first().map(|meta| meta.started_at.clone());
        let meta = runs.iter().rev().find(has_begun).ok_or_else(|| too_early(first.clone()))?;
        if is_conversation(meta) {
            return Err(no_terminal(key));
        }
        let (journal, settings) = self.past_terminal(meta);
        Ok(Later::new(blocking(move || {
            let picture = screen_dump::picture_at(&journal, settings, at);
            picture.map_err(|err| unreadable(&journal, &err))?.ok_or_else(|| too_early(first))
        })))
    }

    fn past_terminal(&self, meta: &RunMeta) -> (PathBuf, Settings) {
        let context = self.context_of(meta);
        (context.dir.journal(), context.settings())
    }

    fn attach(&mut self, (key, params): (TaskKey, PtyAttachParams)) -> Result<Stream, Failure> {
        let (id, run) = match &params.shell {
            Some(shell) => self.live_shell(&key, shell)?,
            None => self.live_terminal(&key).map(|(live, run)| (live.meta.run.clone(), run))?,
        };
        if params.inside_run.as_deref() == Some(id.0.as_str()) {
            return Err(Failure::new("cannot attach a run to itself")
                .code(FailureCode::InvalidArgument)
                .because(format!("this terminal is the one of task {}", self.name_of(&key)))
                .hint("attach from another terminal"));
        }
        if let Some(target) = params.ssh_auth_sock.as_ref().filter(|target| !target.0.is_empty()) {
            let dir = self.context.state.run(&id.0);
            if let Err(cause) = environment::refresh_ssh_link(&dir, target.as_os_str()) {
                tracing::warn!(%cause, "cannot update the link to the ssh agent");
            }
        }
        let (config, notes) = self.config_for_viewer(&key.project, &params.overrides)?;
        let view = ViewerOptions {
            size: screen_size(params.size),
            mode: params.mode,
            screen_only: params.screen_only,
            terminal: params.terminal,
            frames: params.frames,
            acknowledges: params.acknowledges,
            clipboard: config.clipboard,
        };
        let promised = Promised::Viewer { run, view };
        Ok(Stream { detach_keys: Some(config.detach_keys), notes, ..self.promise(&key, promised)? })
    }

    /// A broken configuration file must not keep a user from attaching, so it is only a note. Broken overrides of the
    /// call itself are a failure.
    fn config_for_viewer(
        &self,
        project: &ProjectId,
        overrides: &Overrides,
    ) -> Result<(Config, Vec<String>), Failure> {
        let own = SettingsFiles::without_files(overrides)?;
        Ok(match self.settings_with(Some(project), overrides) {
            Ok(settings) => (settings.config, Vec::new()),
            Err(failure) => {
                let words: Vec<String> = std::iter::once(failure.message).chain(failure.causes).collect();
                (own.config, vec![words.join(": ")])
            }
        })
    }

    fn log(&mut self, (key, params): (TaskKey, LogReadParams)) -> Result<Stream, Failure> {
        let LogReadParams { form, follow, shell, .. } = params;
        if let Some(shell) = shell {
            let runs = vec![self.context.state.run(&self.last_shell_run(&key, &shell)?.0)];
            return self.promise(&key, Promised::Log(LogRequest { runs, form, follow }));
        }
        self.record_look(&key);
        if form == LogForm::Setup {
            return self.setup_log(&key, follow);
        }
        let runs = self.runs.history.get(&key).map(Vec::as_slice).unwrap_or_default();
        let is_raw = form == LogForm::Raw;
        if !is_raw && runs.last().is_some_and(is_conversation) {
            return Err(no_terminal(&key));
        }
        // Output of a terminal and messages of a protocol are not shown in one text.
        let runs = runs.iter().filter(|meta| is_raw || !is_conversation(meta));
        let runs = runs.map(|meta| self.context.state.run(&meta.run.0)).collect();
        self.promise(&key, Promised::Log(LogRequest { runs, form, follow }))
    }

    pub(super) fn promise(&self, key: &TaskKey, promised: Promised) -> Result<Stream, Failure> {
        let token = self.context.streams.promise(promised);
        let stream = token.map_err(|err| {
            Failure::new("cannot promise a stream").code(FailureCode::IoError).caused_by(&err)
        })?;
        Ok(Stream { stream, task: self.view(key)?, detach_keys: None, notes: Vec::new() })
    }
}

fn unreadable(journal: &Path, cause: &std::io::Error) -> Failure {
    Failure::new(format!("cannot read {}", journal.display())).code(FailureCode::IoError).caused_by(cause)
}

/// Asks a run for its screen.
pub(super) async fn dump_screen(commands: CommandSender<TerminalCommand>) -> Result<ScreenDump, Failure> {
    let ended = |_| Failure::new("the run ended before it could be looked at").code(FailureCode::NotRunning);
    commands.ask(|answer| TerminalCommand::DumpScreen { answer }).await.map_err(ended)
}

pub(super) fn no_terminal(key: &TaskKey) -> Failure {
    Failure::new(format!("task {} has no terminal", key.task))
        .code(FailureCode::Unsupported)
        .because("its agent has a conversation instead of a terminal")
        .hint(format!("agency chat {}", key.task))
}
