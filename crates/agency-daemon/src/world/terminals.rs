//! Terminals and logs: callers attach to them, look at them, and read them.

use agency_api::config::Overrides;
use agency_api::method::{self, LogForm, LogReadParams, PtyAttachParams, ScreenDump, Stream};
use agency_api::{Failure, FailureCode};
use agency_core::config::Config;
use agency_core::ids::{ProjectId, TaskKey};
use agency_run::command::TerminalCommand;
use agency_run::environment;
use agency_run::handle::CommandSender;
use agency_run::logs::LogRequest;
use agency_run::view::screen_size;
use agency_run::viewers::ViewerOptions;
use agency_server::Promised;
use agency_store::settings::SettingsFiles;

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

    fn screen(&mut self, key: TaskKey) -> Result<Later<ScreenDump>, Failure> {
        let (_, commands) = self.live_terminal(&key)?;
        Ok(Later::new(async move {
            let ended =
                |_| Failure::new("the run ended before it could be looked at").code(FailureCode::NotRunning);
            commands.ask(|answer| TerminalCommand::DumpScreen { answer }).await.map_err(ended)
        }))
    }

    fn attach(&mut self, (key, params): (TaskKey, PtyAttachParams)) -> Result<Stream, Failure> {
        let (live, run) = self.live_terminal(&key)?;
        if params.inside_run.as_deref() == Some(live.meta.run.0.as_str()) {
            return Err(Failure::new("cannot attach a run to itself")
                .code(FailureCode::InvalidArgument)
                .because(format!("this terminal is the one of task {}", live.meta.name()))
                .hint("attach from another terminal"));
        }
        if let Some(target) = params.ssh_auth_sock.as_ref().filter(|target| !target.0.is_empty()) {
            let dir = self.context.state.run(&live.meta.run.0);
            if let Err(cause) = environment::refresh_ssh_link(&dir, target.as_os_str()) {
                tracing::warn!(%cause, "cannot update the link to the ssh agent");
            }
        }
        let (config, notes) = self.config_for_viewer(&key.project, &params.overrides)?;
        let view = ViewerOptions {
            size: screen_size(params.size),
            mode: params.mode,
            screen_only: params.screen_only,
            frames: params.frames,
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
        let LogReadParams { form, follow, .. } = params;
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

pub(super) fn no_terminal(key: &TaskKey) -> Failure {
    Failure::new(format!("task {} has no terminal", key.task))
        .code(FailureCode::Unsupported)
        .because("its agent has a conversation instead of a terminal")
        .hint(format!("agency chat {}", key.task))
}
