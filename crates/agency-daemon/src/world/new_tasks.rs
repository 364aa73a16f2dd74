//! New tasks: everything that could make the start fail is checked before the task file is written.
//!
//! Not here: the start itself (see `starts`).

use std::ffi::OsString;
use std::path::Path;

use agency_api::method::{self, Caller, Started, TaskNewParams};
use agency_api::{Bytes, Failure, FailureCode};
use agency_core::agent::{Agent, Driver};
use agency_core::ids::{ProjectId, TaskKey};
use agency_core::slug::{Slug, TaskName};
use agency_core::supervisor::{Event, FoundRun, FoundTask};
use agency_core::task_file::{Fields, TaskFile};
use agency_core::task_status::TaskStatus;
use agency_run::blocking::blocking;
use agency_run::environment;
use agency_run::fold::is_name;
use agency_run::plan::{self, LaunchPlan, PlannedTask};
use agency_server::Argument;
use agency_server::Reply;
use agency_store::settings::Settings;
use agency_store::{clock, trust};
use agency_work::workspace::{self, WorkspaceCheck};
use agency_workspace::{Environment, Vcs, WorkspaceName};

use super::World;
use super::argument::open_project_as;
use super::consent::cannot_remember;
use super::loop_event::{LoopEvent, NewTask};
use super::router::Router;
use super::starts::parse_driver;
use super::tasks::store_failure;

pub(super) fn register(router: &mut Router) {
    router.on_reply(method::TaskNew, World::new_task);
}

impl Argument<World, TaskNewParams> for NewTask {
    type Prepared = NewTask;

    async fn prepare(params: TaskNewParams) -> Result<NewTask, Failure> {
        let vcs = params.vcs.as_deref().map(str::parse::<Vcs>).transpose();
        let vcs = vcs.map_err(|err| Failure::new(err.to_string()).code(FailureCode::InvalidArgument))?;
        let project = open_project_as(params.cwd.clone(), vcs, environment_of(&params.caller)).await?;
        Ok(NewTask { project, params })
    }

    fn resolve(_world: &mut World, new: NewTask) -> Result<NewTask, Failure> {
        Ok(new)
    }
}

/// A task whose file has been written.
struct CreatedTask {
    key: TaskKey,
    /// For the user.
    notes: Vec<String>,
    /// The plan of its start; `None` for a draft.
    plan: Option<LaunchPlan>,
}

impl World {
    /// Has git say whether the workspace can be made, before anything is written.
    fn new_task(&mut self, new: NewTask, reply: Reply<Started>) {
        let name = match self.next_name(&new) {
            Ok(name) => name,
            Err(failure) => return reply.send(Err(failure)),
        };
        let reporter = self.context.reporter.clone();
        tokio::spawn(async move {
            let (project, base) = (new.project.project.clone(), new.params.base_branch.clone());
            let cwd = new.params.cwd.clone();
            let checked = blocking(move || {
                let here = agency_workspace::base_where_user_is(&project, cwd.as_path(), base.as_deref());
                workspace::check(&project, &name, here.or(base).as_deref())
            });
            let checked = checked.await;
            reporter.report(LoopEvent::NewTaskChecked { new: Box::new(new), checked, reply }).await;
        });
    }

    /// The name of the workspace, unless another task is made first.
    fn next_name(&mut self, new: &NewTask) -> Result<WorkspaceName, Failure> {
        let id = self.open_project(new.project.clone())?;
        let slug = self.slug_of(&id, &new.params)?;
        let name = self.store.next_name(&id, slug).to_string();
        name.parse().map_err(|err: agency_workspace::NameError| {
            Failure::new(err.to_string()).code(FailureCode::InvalidArgument)
        })
    }

    /// The name that the caller gives; without one, a name that is made from the text or the command.
    fn slug_of(&self, project: &ProjectId, params: &TaskNewParams) -> Result<Slug, Failure> {
        if let Some(slug) = &params.slug {
            return Slug::for_new_task(slug).map_err(|err| {
                Failure::new(err.to_string()).code(FailureCode::InvalidArgument).hint(err.hint())
            });
        }
        let program = params.command.as_ref().and_then(|words| words.first());
        let program = program.and_then(|word| word.as_path().file_name()).map(|name| name.to_string_lossy());
        let text = String::from_utf8_lossy(&params.body.0);
        let text = if text.trim().is_empty() { program.unwrap_or_default() } else { text };
        let known = self.store.project(project);
        let is_taken = |slug: &str| {
            known.is_some_and(|known| known.tasks.values().any(|task| task.name.slug.as_str() == slug))
        };
        Ok(Slug::from_text(&text, is_taken))
    }

    pub(super) fn on_new_task_checked(
        &mut self,
        mut new: NewTask,
        checked: Result<WorkspaceCheck, Failure>,
        reply: Reply<Started>,
    ) {
        self.lend_environment(&mut new.params);
        match checked.and_then(|checked| self.create_task(&new, checked)) {
            Ok(CreatedTask { key, notes, plan: None }) => {
                let task = self.view(&key);
                reply.send(task.map(|task| Started { task, notes }));
            }
            Ok(CreatedTask { key, notes, plan: Some(plan) }) => {
                self.starts.notes.insert(key.clone(), notes);
                self.begin_new(key, plan, &new.params.caller, reply);
            }
            Err(failure) => reply.send(Err(failure)),
        }
    }

    /// Checks everything else and plans the start, then writes the task file.
    fn create_task(&mut self, new: &NewTask, checked: WorkspaceCheck) -> Result<CreatedTask, Failure> {
        let params = &new.params;
        let id = self.open_project(new.project.clone())?;
        let slug = self.slug_of(&id, params)?;
        let asker = params.on_behalf_of.as_deref().map(|run| self.parent_for(&id, run)).transpose()?;
        if params.vcs.is_some() {
            self.store.choose_vcs(&id, new.project.project.clone()).map_err(store_failure)?;
        }
        let mut settings = self.settings_with(Some(&id), &params.caller.overrides)?;
        let mut notes = std::mem::take(&mut settings.warnings);
        let (agent, note) = choose_agent(&settings, params)?;
        notes.extend(note);
        let driver = parse_driver(params.driver.as_deref())?;
        let command = params.command.as_ref().map(|words| parse_words(words)).transpose()?;
        let driver = driver.or_else(|| Some(plan::driver_for(agent, command.is_some())));
        if let Some(session) = &params.resume {
            self.check_new_resume(session, agent, driver.unwrap_or(agent.driver), command.is_some())?;
        }
        let name = self.store.next_name(&id, slug);
        notes.extend(checked.warning);
        notes.extend(self.namesake(&id, &name));
        let plan = match params.draft && params.agents_to_start.is_none() {
            true => None,
            false => {
                self.check_capacity(params.agents_to_start.unwrap_or(1))?;
                let root =
                    self.store.project(&id).map(|known| known.root().to_path_buf()).unwrap_or_default();
                let command = command.as_deref();
                let session_known = params.resume.is_some();
                let task = PlannedTask { driver, command, session_known, directory: &root };
                let planned = plan::plan(&settings.config, agent, task, &params.caller);
                let driver = driver.unwrap_or_default();
                Some(planned.map_err(|failure| self.announce_missing_agent(agent, driver, failure))?)
            }
        };
        if let (Some(agents), Some(plan)) = (params.agents_to_start, &plan) {
            self.check_slots(&id, params, agents, plan)?;
        }
        // A base that was found in another kind of repository means nothing in the one that the project's tasks use.
        let vcs = self.store.project(&id).map(|known| known.project.vcs());
        let base =
            if vcs == Some(new.project.project.vcs()) { checked.base } else { params.base_branch.clone() };
        let fields = Fields {
            base_branch: base,
            labels: params.labels.clone(),
            created_at: Some(clock::timestamp()),
            agent: Some(agent.name.clone()),
            driver,
            command: command.clone(),
            parent: asker.map(|asker| asker.task),
            session_id: params.resume.clone(),
            ..Fields::default()
        };
        if let Some(command) = command {
            self.trust_typed_command(&id, new.project.project.root(), &command)?;
        }
        let file = TaskFile::create(fields, params.body.0.clone());
        let key = self.store.create(&id, name, file).map_err(store_failure)?;
        let found = FoundTask { key: key.clone(), status: TaskStatus::Draft, run: FoundRun::None };
        self.decide(Event::TaskSeen(found));
        self.touch_index(&key);
        Ok(CreatedTask { key, notes, plan: plan.filter(|_| !params.draft) })
    }

    /// Refuses the first of several tasks if its caller could not start all of them.
    fn check_slots(
        &mut self,
        id: &ProjectId,
        params: &TaskNewParams,
        agents: u32,
        plan: &LaunchPlan,
    ) -> Result<(), Failure> {
        self.refresh_limits(Some(id), &params.caller.overrides);
        match plan.terms.takes_slot {
            true => self.supervisor.check_slots(agents).map_err(|refusal| self.refusal_failure(refusal)),
            false => Ok(()),
        }
    }

    /// Checks whether a new task can continue an earlier session of its agent.
    fn check_new_resume(
        &self,
        session: &str,
        agent: &Agent,
        driver: Driver,
        has_command: bool,
    ) -> Result<(), Failure> {
        let refused =
            || Failure::new(format!("cannot resume the session {session}")).code(FailureCode::Unsupported);
        if !is_name(session) {
            return Err(refused()
                .code(FailureCode::InvalidArgument)
                .because("this is not the id of a session")
                .hint("`agency connections --sessions AGENT` lists the sessions of an agent over ACP"));
        }
        if !has_command {
            agent.check_resume(driver).map_err(|err| refused().because(err.to_string()).hint(err.hint()))?;
        }
        if driver == Driver::Acp && self.cannot_resume_sessions(&agent.name) {
            return Err(refused()
                .because(format!("{} reports that it cannot resume sessions over ACP", agent.display_name)));
        }
        Ok(())
    }

    /// The user has just typed this command, so the same command in the task file needs no further consent.
    fn trust_typed_command(
        &mut self,
        id: &ProjectId,
        root: &Path,
        command: &[String],
    ) -> Result<(), Failure> {
        let digest = trust::command_digest(command);
        let agreed = self.configuration.trust.agree(&self.context.state, id, root, digest);
        agreed.map_err(|err| cannot_remember(&err))
    }

    /// A note if another task has the same slug: the slug alone names neither of them any more.
    fn namesake(&self, project: &ProjectId, name: &TaskName) -> Option<String> {
        let tasks = self.store.project(project)?.tasks.values();
        let other = tasks.map(|task| &task.name).find(|other| other.slug == name.slug)?;
        let slug = name.slug.as_str();
        Some(format!("task {} is called {slug} too: name this one {} or {name}", other.id, name.id))
    }
}

/// The agent that the caller names, or the default one. With a note for the user.
fn choose_agent<'a>(
    settings: &'a Settings,
    params: &TaskNewParams,
) -> Result<(&'a Agent, Option<String>), Failure> {
    if params.agent.is_none() && params.command.is_none() {
        settings.check_agent_choice()?;
    }
    let env = environment::from_caller(&params.caller.env);
    let chosen = plan::choose_agent(&settings.config, params.agent.as_deref(), &env);
    let (agent, note) = chosen.map_err(|failure| settings.add_trust_hint(failure))?;
    Ok((agent, note.filter(|_| params.command.is_none())))
}

fn environment_of(caller: &Caller) -> Environment {
    let pairs = |(name, value): &(Bytes, Bytes)| -> (OsString, OsString) {
        (name.as_os_str().to_owned(), value.as_os_str().to_owned())
    };
    Environment::of(caller.env.iter().map(pairs))
}

fn parse_words(words: &[Bytes]) -> Result<Vec<String>, Failure> {
    let text = |word: &Bytes| String::from_utf8(word.0.clone());
    let texts: Result<Vec<String>, _> = words.iter().map(text).collect();
    texts.map_err(|_| {
        Failure::new("the command is not UTF-8 text")
            .code(FailureCode::InvalidArgument)
            .because("a task file could not hold it")
    })
}
