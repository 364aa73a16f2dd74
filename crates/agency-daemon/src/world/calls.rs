//! What callers ask for: answered at once, or handed to the supervisor with a ticket.

use std::sync::Arc;

use agency_api::config::Overrides;
use agency_api::method::{
    Caller, LogForm, Nothing, Orphans, Plan, PtyAttachParams, Started, Stopped, Stream, TaskListing,
};
use agency_api::{Bytes, Failure, view};
use agency_core::agent::Driver;
use agency_core::config::Config;
use agency_core::ids::{ProjectId, TaskKey};
use agency_core::slug::{Slug, TaskName};
use agency_core::supervisor::{Event, FoundRun, FoundTask, Limits, Origin, StartPlan};
use agency_core::task_file::{Fields, TaskFile};
use agency_run::audience::View;
use agency_run::hold::screen_size;
use agency_run::logs::LogRequest;
use agency_run::plan::{self, PlannedTask, Wish};
use agency_run::room::{self, Room};
use agency_run::run::RunCommand;
use agency_run::{environment, limits};
use agency_store::settings::SettingsFiles;
use agency_store::{clock, trust};
use agency_workspace::Project;

use super::boot::is_talk;
use super::consent::cannot_remember;
use super::lifecycle::may_remove;
use super::setups::{RemovalWish, SetupMode};
use super::talks::no_terminal;
use super::tasks::store_failure;
use super::{Pending, World};
use crate::happening::{Answer, Call, Happening, NewTask, OrphanIntent, TaskCall};
use crate::rpc;
use crate::streams::Promised;

impl World {
    pub(super) fn called(&mut self, call: Call, answer: Answer) {
        self.heed_rules();
        match call {
            Call::Status => answer.give_as(Ok(self.daemon_view())),
            Call::Stop { agents: true, overrides } => self.end_all(&overrides, Some(answer)),
            Call::Stop { agents: false, .. } => {
                answer.give_as(Ok(Nothing {}));
                self.leaving = true;
            }
            Call::NextName { project, slug } => answer.give_as(self.next_name(project, &slug)),
            Call::New(new) => self.new_task(*new, answer),
            Call::Start { task, caller, wish } => self.start(task, caller, wish, answer, false),
            Call::Restart { task, caller, wish } => self.start(task, caller, wish, answer, true),
            Call::Setup { task, caller } => {
                self.with_task(task, answer, |world, key, answer| world.setup_task(key, &caller, answer));
            }
            Call::StopTask(task) => self.stop_task(task, answer),
            Call::Idle(task) => self.with_task(task, answer, |world, key, answer| {
                let ticket = world.ticket(Pending::Mark { key: key.clone(), answer });
                world.decide(Event::Idle { key, ticket });
            }),
            Call::Mark(task, verdict) => self.with_task(task, answer, |world, key, answer| {
                let ticket = world.ticket(Pending::Mark { key: key.clone(), answer });
                world.decide(Event::Mark { key, ticket, verdict });
            }),
            Call::Diff { task, turn, stat } => self.diff(task, turn, stat, answer),
            Call::Merge { task, params } => self.merge(task, *params, answer),
            Call::Sync { task, params } => self.sync(task, *params, answer),
            Call::Conflicts { project } => self.conflicts(project, answer),
            Call::Remove { task, discard, reason, caller } => {
                self.with_task(task, answer, move |world, key, answer| {
                    world.remove_task(key, RemovalWish { discard, reason, caller }, answer);
                })
            }
            Call::Spent { project } => self.spent(project, answer),
            Call::TrashList { project } => self.trash_list(project, answer),
            Call::TrashRestore { project, id } => self.undo(project, id, answer),
            Call::TrashExpire { project, params } => self.expire_trash(project, params, answer),
            Call::Turns(task) => self.with_task(task, answer, |world, key, answer| world.turns(&key, answer)),
            Call::TurnRestore { task, turn } => self.with_task(task, answer, move |world, key, answer| {
                world.take_turn_back(key, turn, answer);
            }),
            Call::List { project } => answer.give_as(self.list(project)),
            Call::Get(task) => {
                let view = self.find(task).and_then(|key| self.view(&key));
                answer.give_as(view);
            }
            Call::Explain { task, at } => self.explain(task, at, answer),
            Call::Send { task, params } => self.send(task, *params, answer),
            Call::Chat { task, wanted, wait, looking } => {
                self.chat(task, wanted, wait, wait && looking, answer)
            }
            Call::Search { task, project, words, limit } => self.search(task, project, &words, limit, answer),
            Call::Approvals { task } => self.approvals(task, answer),
            Call::Decisions { task } => self.decisions(task, answer),
            Call::AnswerApproval { task, params } => self.answer_approval(task, *params, answer),
            Call::Tune { task, setting, wanted } => self.tune(task, setting, wanted, answer),
            Call::Interrupt(task) => self.interrupt(task, answer),
            Call::Connections => answer.give_as(Ok(self.connections())),
            Call::Reconnect { name } => self.reconnect(&name, answer),
            Call::AgentSessions { name } => self.agent_sessions(&name, answer),
            Call::QueueList { task } => answer.give_as(self.queue_list(task)),
            Call::QueueDrop { task, id } => answer.give_as(self.queue_drop(task, id)),
            Call::Plan { task, message, overrides } => answer.give_as(self.plan(task, message, &overrides)),
            Call::Attach { task, params } => answer.give_as(self.attach(task, &params)),
            Call::Screen(task) => self.screen(task, answer),
            Call::Log { task, form, follow } => answer.give_as(self.log(task, form, follow)),
            Call::Orphans => answer.give_as(Ok(Orphans { orphans: self.orphan_views() })),
            Call::OrphanKill { run } => self.see_to_orphan(run, OrphanIntent::End, answer),
            Call::OrphanAdopt { run } => self.see_to_orphan(run, OrphanIntent::Adopt, answer),
            Call::ConfigShow { project, params } => {
                answer.give_as(self.config_show(project.as_ref(), &params))
            }
            Call::ConfigSet { project, params } => answer.give_as(self.config_set(project, &params)),
            Call::ConfigRead { project, params } => answer.give_as(self.config_read(project, &params)),
            Call::ConfigWrite { project, params } => answer.give_as(self.config_write(project, params)),
            Call::Agents { project, path } => answer.give_as(self.agent_listing(project, path)),
            Call::Known => answer.give_as(Ok(self.known_projects())),
            Call::TrustShow { project } => answer.give_as(self.trust_view(project)),
            Call::McpTerms { project, run } => answer.give_as(self.mcp_terms(project, run.as_deref())),
            Call::McpPermit { project, params } => answer.give_as(self.mcp_permit(project, &params)),
            Call::NotifyTest(params) => self.test_notices(&params, answer),
            Call::NotifyWays => answer.give_as(self.notice_ways()),
            Call::TrustList => answer.give_as(Ok(self.trust_list())),
            Call::TrustAgree { project, digest, revoke } => {
                answer.give_as(self.agree(project, digest, revoke))
            }
        }
    }

    fn with_task(&mut self, task: TaskCall, answer: Answer, then: impl FnOnce(&mut World, TaskKey, Answer)) {
        match self.find(task) {
            Ok(key) => then(self, key, answer),
            Err(failure) => answer.give(Err(failure)),
        }
    }

    fn daemon_view(&self) -> view::Daemon {
        let state = &self.ground.state;
        view::Daemon {
            pid: std::process::id() as i32,
            version: env!("CARGO_PKG_VERSION").to_string(),
            epoch: self.ground.epoch,
            uptime_seconds: clock::now().saturating_sub(self.born).as_secs(),
            socket: state.daemon_socket().into(),
            state_dir: state.root().into(),
            log: state.daemon_log().into(),
            projects: self.store.projects().count() as u64,
            live_runs: self.supervisor.live_runs().count() as u64,
            orphans: self.orphans.len() as u64,
            open_files: room::open_files(),
            room: Room::now().figures(),
        }
    }

    /// What the task would be called, if nobody makes another one first.
    fn next_name(&mut self, project: Project, slug: &str) -> Result<String, Failure> {
        let slug = Slug::new(slug).map_err(|err| Failure::new(err.to_string()).hint(err.hint()))?;
        let id = self.open_project(project)?;
        Ok(self.store.next_name(&id, slug).to_string())
    }

    fn new_task(&mut self, mut new: NewTask, answer: Answer) {
        self.lend_environment(&mut new.params);
        match self.create_task(&new) {
            Ok((key, notes)) if new.params.draft => {
                let task = self.view(&key);
                answer.give_as(task.map(|task| Started { task, notes }));
            }
            Ok((key, notes)) => {
                self.notes.insert(key.clone(), notes);
                let wish = Wish::default();
                self.begin(key, &new.params.caller, wish, Origin::MadeByThisCall, answer, false);
            }
            Err(failure) => answer.give(Err(failure)),
        }
    }

    /// Checks everything, then writes the task file.
    fn create_task(&mut self, new: &NewTask) -> Result<(TaskKey, Vec<String>), Failure> {
        let params = &new.params;
        let slug = Slug::new(&params.slug).map_err(|err| Failure::new(err.to_string()).hint(err.hint()))?;
        let id = self.open_project(new.project.clone())?;
        let asker = params.on_behalf_of.as_deref().map(|run| self.parent_for(&id, run)).transpose()?;
        if params.vcs.is_some() {
            self.store.choose_vcs(&id, new.project.clone()).map_err(store_failure)?;
        }
        // What was found out of another kind of repository than the project's tasks have says nothing of theirs.
        let vcs = self.store.project(&id).map(|known| known.project.vcs());
        let base = if vcs == Some(new.project.vcs()) { &new.base } else { &params.base_branch }.clone();
        let mut settings = self.settings_with(Some(&id), &params.caller.overrides)?;
        let mut notes = std::mem::take(&mut settings.warnings);
        if params.agent.is_none() && params.command.is_none() {
            settings.check_choice()?;
        }
        let env = environment::from_caller(&params.caller.env);
        let chosen = plan::choose_agent(&settings.config, params.agent.as_deref(), &env);
        let (agent, chosen) = chosen.map_err(|failure| settings.about_trust(failure))?;
        notes.extend(chosen.filter(|_| params.command.is_none()));
        let driver = params.driver.as_deref().map(str::parse::<Driver>).transpose();
        let driver =
            driver.map_err(|err| Failure::new(err.to_string()).hint("terminal, stream-json or acp"))?;
        let command = params.command.as_ref().map(|words| texts(words)).transpose()?;
        let driver = driver.or_else(|| Some(plan::driver_for(agent, command.is_some())));
        let name = self.store.next_name(&id, slug);
        notes.extend(new.warning.clone());
        notes.extend(self.namesake(&id, &name));
        if !params.draft {
            self.has_room()?;
            let root = self.store.project(&id).map(|known| known.root().to_path_buf()).unwrap_or_default();
            let task =
                PlannedTask { driver, command: command.as_deref(), session_known: false, directory: &root };
            plan::plan(&settings.config, agent, task, &params.caller)?;
        }
        let fields = Fields {
            base_branch: base,
            labels: params.labels.clone(),
            created_at: Some(clock::timestamp()),
            agent: Some(agent.name.clone()),
            driver,
            command: command.clone(),
            parent: asker.map(|asker| asker.task),
            ..Fields::default()
        };
        if let Some(command) = command {
            // Typed by the user just now; the same words in the file later are theirs too.
            let (digest, root) = (trust::command_digest(&command), new.project.root());
            self.trust.agree(&self.ground.state, &id, root, digest).map_err(|err| cannot_remember(&err))?;
        }
        let file = TaskFile::create(fields, params.body.0.clone());
        let key = self.store.create(&id, name, file).map_err(store_failure)?;
        self.decide(Event::TaskSeen(FoundTask {
            key: key.clone(),
            status: agency_core::task_status::TaskStatus::Draft,
            run: FoundRun::None,
        }));
        self.touch_index(&key);
        Ok((key, notes))
    }

    /// A name that says nothing any more from now on.
    fn namesake(&self, project: &ProjectId, name: &TaskName) -> Option<String> {
        let tasks = self.store.project(project)?.tasks.values();
        let other = tasks.map(|task| &task.name).find(|other| other.slug == name.slug)?;
        let slug = name.slug.as_str();
        Some(format!("task {} is called {slug} too: name this one {} or {name}", other.id, name.id))
    }

    fn start(&mut self, task: TaskCall, caller: Caller, wish: Wish, answer: Answer, restart: bool) {
        self.with_task(task, answer, |world, key, answer| {
            world.begin(key, &caller, wish, Origin::Existing, answer, restart);
        });
    }

    pub(super) fn begin(
        &mut self,
        key: TaskKey,
        caller: &Caller,
        wish: Wish,
        origin: Origin,
        answer: Answer,
        restart: bool,
    ) {
        self.look_elsewhere(&key);
        // One that lives needs nothing more, and makes room first if it is to be started anew. For one that
        // this call made there was room a moment ago.
        let needs_none = self.live_run(&key).is_ok() || origin == Origin::MadeByThisCall;
        let room = if needs_none { Ok(()) } else { self.has_room() };
        let planned = room.and_then(|()| self.nothing_left_of(&key));
        let planned =
            planned.and_then(|()| self.not_being_removed(&key)).and_then(|()| self.not_landing(&key));
        let planned = planned.and_then(|()| if restart { Ok(()) } else { self.lives_otherwise(&key, wish) });
        let planned = planned.and_then(|()| self.plan_start(&key, caller, wish));
        let plan = match planned {
            Ok(plan) => plan,
            Err(failure) => {
                if origin == Origin::MadeByThisCall {
                    self.store
                        .undo_create(&key)
                        .unwrap_or_else(|left| tracing::warn!(%left, "a task file stays behind"));
                }
                return answer.give(Err(failure));
            }
        };
        self.refresh_limits(Some(&key.project), &caller.overrides);
        let start = StartPlan { task: origin, terms: plan.terms };
        self.plans.insert(key.clone(), plan);
        let setup = if wish.skip_setup { SetupMode::Skip } else { SetupMode::IfOwed };
        self.wish(&key, caller, setup);
        let ticket = self.ticket(Pending::Start { key: key.clone(), answer });
        self.decide(match restart {
            false => Event::Start { key, ticket, plan: start },
            true => Event::Restart { key, ticket, plan: start },
        });
    }

    /// A start changes nothing about an agent that lives.
    fn lives_otherwise(&self, key: &TaskKey, wish: Wish) -> Result<(), Failure> {
        let Ok(live) = self.live_run(key) else { return Ok(()) };
        let other = wish.driver.filter(|driver| driver.to_string() != live.meta.driver);
        let (cause, option) = match (other, wish.fresh) {
            (Some(driver), _) => {
                (format!("it is driven by {}", live.meta.driver), format!("--driver {driver}"))
            }
            (None, true) => ("it is in its session".to_owned(), "--fresh".to_owned()),
            (None, false) => return Ok(()),
        };
        let failure = Failure::new(format!("the agent of task {} lives", live.meta.name())).because(cause);
        Err(failure.hint(format!("agency restart {} {option}", key.task)))
    }

    /// Whether the machine takes one more agent besides those that are being started.
    fn has_room(&self) -> Result<(), Failure> {
        let starting =
            self.pending.values().filter(|pending| matches!(pending, Pending::Start { .. })).count();
        Room::now().holds(1 + starting as u64)
    }

    /// What is left of an earlier run would be a second process in the same workspace.
    pub(super) fn nothing_left_of(&self, key: &TaskKey) -> Result<(), Failure> {
        match self.orphans.values().find(|orphan| super::boot::key_of(&orphan.meta) == *key) {
            None => Ok(()),
            Some(orphan) => {
                Err(Failure::new(format!("task {} still has a process of an earlier run", key.task))
                    .because(format!("nobody could take run {} over", orphan.meta.run))
                    .hint(format!("agency orphans kill {}", orphan.meta.run)))
            }
        }
    }

    /// The limits as they are configured now, where the caller stands.
    pub(super) fn refresh_limits(&mut self, project: Option<&ProjectId>, overrides: &Overrides) {
        if let Ok(settings) = self.settings_with(project, overrides) {
            let (max_agents, shutdown_timeout) =
                (settings.config.max_agents, settings.config.shutdown_timeout);
            self.supervisor.set_limits(Limits { max_agents, shutdown_timeout });
        }
    }

    /// A run that is silent has no reason of its own to look at the rules again.
    fn heed_rules(&mut self) {
        let rules = self.ground.rule_book.rules();
        if !Arc::ptr_eq(&rules, &self.rules) {
            self.rules = rules;
            self.runs.values().for_each(|live| live.handle.command(RunCommand::HeedRules));
        }
    }

    fn stop_task(&mut self, task: TaskCall, answer: Answer) {
        self.with_task(task, answer, |world, key, answer| {
            if world.end_teardown(&key) {
                let stopped = |task| Stopped { task: Some(task), code: None, ended: Vec::new() };
                return answer.give_as(world.view(&key).map(stopped));
            }
            let ticket = world.ticket(Pending::Stop { key: key.clone(), answer });
            world.decide(Event::Stop { key, ticket });
        });
    }

    fn list(&mut self, project: Option<Project>) -> Result<TaskListing, Failure> {
        let projects: Vec<ProjectId> = match project {
            Some(project) => vec![self.open_project(project)?],
            None => self.store.projects().map(|(id, _)| id.clone()).collect(),
        };
        self.look_for_whoever_asks(&projects);
        let (mut tasks, mut warnings) = (Vec::new(), Vec::new());
        for id in &projects {
            match self.store.refresh(id).map_err(store_failure) {
                Ok(changed) => self.see_changes(id, changed),
                // One project that cannot be read does not hide the others.
                Err(failure) => warnings.extend(std::iter::once(failure.message).chain(failure.causes)),
            }
            warnings.extend(self.store.project(id).into_iter().flat_map(|known| known.unused.clone()));
            let config = match self.settings(Some(id)) {
                Ok(settings) => {
                    warnings.extend(settings.warnings);
                    settings.config
                }
                // A list is shown all the same; the words about the file are worth a warning.
                Err(failure) => {
                    warnings.extend(failure.causes);
                    Config::default()
                }
            };
            let ids = self.store.project(id).into_iter().flat_map(|known| known.tasks.keys());
            for task in ids {
                tasks.push(self.view_with(&TaskKey { project: id.clone(), task: *task }, &config)?);
            }
        }
        let troubled = self.runs.values().filter_map(|live| Some((live, live.trouble.as_ref()?)));
        warnings.extend(troubled.map(|(live, cause)| {
            format!(
                "what task {} prints is not kept: its journal cannot be written: {cause}",
                live.meta.name()
            )
        }));
        warnings.extend(self.ground.rule_book.problems());
        warnings.dedup();
        Ok(TaskListing { tasks, orphans: self.orphan_views(), warnings })
    }

    fn screen(&mut self, task: TaskCall, answer: Answer) {
        let commands = self.find(task).and_then(|key| Ok(self.live_terminal(&key)?.handle.commands.clone()));
        match commands {
            Err(failure) => answer.give(Err(failure)),
            Ok(commands) => {
                tokio::spawn(async move {
                    let (sender, dump) = tokio::sync::oneshot::channel();
                    // A run that ends meanwhile lets go of the question, which is the answer.
                    drop(commands.send(RunCommand::Screen { answer: sender }).await);
                    answer.give_as(
                        dump.await.map_err(|_| Failure::new("the run ended before it could be looked at")),
                    );
                });
            }
        }
    }

    /// The live run of a task; the way out when there is none.
    pub(super) fn live_run(&self, key: &TaskKey) -> Result<&super::LiveRun, Failure> {
        let name = self.store.task(key).map_or_else(|| key.task.to_string(), |task| task.name.to_string());
        if let Some(host) = self.elsewhere.get(key) {
            return Err(Failure::new(format!("task {name} runs on {host}")).hint("use `agency` there"));
        }
        let live = self.supervisor.live_run(key).and_then(|run| self.runs.get(run));
        live.ok_or_else(|| {
            let status = self.supervisor.status(key).map_or("not known", |status| status.as_str());
            Failure::new(format!("task {name} has no live agent: it is {status}"))
                .hint(format!("agency start {}", key.task))
        })
    }

    fn plan(
        &mut self,
        task: TaskCall,
        message: Option<Bytes>,
        overrides: &Overrides,
    ) -> Result<Plan, Failure> {
        let key = self.find(task)?;
        let cwd = self.workspace_to_enter(&key)?;
        self.give_ports(&key)?;
        let tokens = self.tokens_of(&key, message.as_ref().map(|message| message.as_os_str().to_owned()))?;
        let file = self.store.file(&key).map_err(store_failure)?;
        let settings = self.settings_with(Some(&key.project), overrides)?;
        let opener = settings.config.workspace.opener.as_deref().unwrap_or_default();
        let opener = tokens.expand(opener).into_iter().map(Bytes::from).collect();
        let argv = match message {
            None => Vec::new(),
            Some(_) => {
                let agent = settings.config.agents.find(file.fields().agent.as_deref().unwrap_or_default());
                let action = agent.and_then(|agent| agent.run_action()).map_err(plan::agent_failure)?;
                tokens.expand(action).into_iter().map(Bytes::from).collect()
            }
        };
        let (short, long): (Vec<_>, Vec<_>) =
            tokens.exported().into_iter().partition(|(_, value)| value.len() <= limits::LONGEST_EXEC_VALUE);
        let mut env: Vec<(Bytes, Bytes)> =
            short.into_iter().map(|(name, value)| (name.as_str().into(), Bytes::from(value))).collect();
        if !long.is_empty() {
            // What exec does not take can be read where it is written.
            let path = self.store.task(&key).map(|task| task.path.clone()).unwrap_or_default();
            env.push((environment::PROMPT_FILE.into(), path.into()));
        }
        Ok(Plan { task: self.view(&key)?, cwd: cwd.into(), argv, env, opener })
    }

    fn attach(&mut self, task: TaskCall, params: &PtyAttachParams) -> Result<Stream, Failure> {
        let key = self.find(task)?;
        let live = self.live_terminal(&key)?;
        if params.inside_run.as_deref() == Some(live.meta.run.0.as_str()) {
            return Err(Failure::new("cannot attach a run to itself")
                .because(format!("this terminal is the one of task {}", live.meta.name()))
                .hint("attach from another terminal"));
        }
        if let Some(target) = params.ssh_auth_sock.as_ref().filter(|target| !target.0.is_empty()) {
            let dir = self.ground.state.run(&live.meta.run.0);
            if let Err(cause) = agency_run::environment::refresh_ssh_link(&dir, target.as_os_str()) {
                tracing::warn!(%cause, "the link to the ssh agent stays as it was");
            }
        }
        let run = live.handle.commands.clone();
        let (config, notes) = self.config_for_viewer(&key.project, &params.overrides)?;
        let view = View {
            size: screen_size(params.size),
            mode: params.mode,
            screen_only: params.screen_only,
            frames: params.frames,
            clipboard: config.clipboard,
        };
        let promised = Promised::Viewer { run, view };
        Ok(Stream { detach_keys: Some(config.detach_keys), notes, ..self.promise(&key, promised)? })
    }

    /// A file that cannot be used keeps nobody from their agent; what the call itself says has to be right.
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

    fn log(&mut self, task: TaskCall, form: LogForm, follow: bool) -> Result<Stream, Failure> {
        let key = self.find(task)?;
        if form == LogForm::Setup {
            return self.setup_log(&key, follow);
        }
        let runs = self.history.get(&key).map(Vec::as_slice).unwrap_or_default();
        let is_raw = form == LogForm::Raw;
        if !is_raw && runs.last().is_some_and(is_talk) {
            return Err(no_terminal(&key));
        }
        // What was drawn and what was said do not mix.
        let runs = runs.iter().filter(|meta| is_raw || !is_talk(meta));
        let runs = runs.map(|meta| self.ground.state.run(&meta.run.0)).collect();
        self.promise(&key, Promised::Log(LogRequest { runs, form, follow }))
    }

    pub(super) fn promise(&self, key: &TaskKey, promised: Promised) -> Result<Stream, Failure> {
        let token = self.ground.streams.promise(promised);
        let stream = token.map_err(|err| Failure::new("cannot promise a stream").caused_by(&err))?;
        Ok(Stream { stream, task: self.view(key)?, detach_keys: None, notes: Vec::new() })
    }

    fn remove_task(&mut self, key: TaskKey, wish: RemovalWish, answer: Answer) {
        let discard = wish.discard;
        if self.is_unsettled(&key).is_some() {
            return self.remove_again(&key, answer);
        }
        if let Err(failure) = self.not_being_removed(&key).and_then(|()| self.not_landing(&key)) {
            return answer.give(Err(failure));
        }
        if let (Ok(live), false) = (self.live_run(&key), discard) {
            let name = live.meta.name();
            return answer.give(Err(Failure::new(format!("cannot remove task {name}"))
                .because("its agent is still there")
                .hint(format!("agency stop {}, or pass --discard", key.task))));
        }
        let checked = self.workspace_of(&key);
        let base = self.base_of(&key);
        let ticket = self.ticket(Pending::Remove { key: key.clone(), wish: Box::new(wish), answer });
        let reporter = self.ground.reporter.clone();
        tokio::spawn(async move {
            let verdict = rpc::blocking(move || {
                let (project, name) = checked?;
                may_remove(&project, &name, base.as_deref(), discard)
            })
            .await;
            reporter.report(Happening::RemovalChecked { key, ticket, verdict }).await;
        });
    }
}

fn texts(words: &[Bytes]) -> Result<Vec<String>, Failure> {
    let text = |word: &Bytes| String::from_utf8(word.0.clone());
    let texts: Result<Vec<String>, _> = words.iter().map(text).collect();
    texts.map_err(|_| Failure::new("the command is not UTF-8 text").because("a task file could not hold it"))
}
