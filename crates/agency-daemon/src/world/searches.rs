//! Search: which tasks the index reads, and the words that callers search for.

use agency_api::search::{Found, SearchParams};
use agency_api::{Failure, method};
use agency_core::ids::{ProjectId, TaskKey};
use agency_run::run_meta::RunMeta;
use agency_search::{IndexedTask, Scope, Search, TaskConversation, TaskOutput, TerminalJournal};
use agency_server::Argument;

use super::World;
use super::argument::{open_project, open_task};
use super::loop_event::{NamedTask, OpenedProject};
use super::router::{Later, Router};
use super::runs::is_conversation;

/// When the index reads the terminal of a live agent: it prints all the time, so a search is early enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LiveOutput {
    Now,
    Later,
}

pub(super) fn register(router: &mut Router) {
    router.on(method::ChatSearch, World::search);
}

/// A search, with the tasks that it is limited to.
impl Argument<World, SearchParams> for (Scope, SearchParams) {
    type Prepared = (Option<NamedTask>, Option<OpenedProject>, SearchParams);

    async fn prepare(params: SearchParams) -> Result<Self::Prepared, Failure> {
        let task = match params.task.clone() {
            Some(task) => Some(open_task(task).await?),
            None => None,
        };
        let project = match params.cwd.clone() {
            Some(cwd) => Some(open_project(cwd).await?),
            None => None,
        };
        Ok((task, project, params))
    }

    fn resolve(world: &mut World, (task, project, params): Self::Prepared) -> Result<Self, Failure> {
        Ok((world.scope(task, project)?, params))
    }
}

impl World {
    /// Has the index read a task again, because something may be new in it.
    pub(super) fn touch_index(&self, key: &TaskKey) {
        if let Some(listed) = self.listed(key, LiveOutput::Later) {
            self.index.update_task(listed);
        }
    }

    /// Has the index read all tasks. A task that has not changed costs little.
    pub(super) fn index_all_tasks(&self) {
        self.index.replace_tasks(self.all_listed(LiveOutput::Later));
    }

    fn all_listed(&self, live: LiveOutput) -> Vec<IndexedTask> {
        let keys = self.store.projects().flat_map(|(id, known)| {
            known.tasks.keys().map(|task| TaskKey { project: id.clone(), task: *task })
        });
        keys.filter_map(|key| self.listed(&key, live)).collect()
    }

    fn listed(&self, key: &TaskKey, live: LiveOutput) -> Option<IndexedTask> {
        let root = self.store.project(&key.project)?.root().into();
        let task = self.store.task(key)?;
        let slug = task.name.slug.as_str().to_owned();
        Some(IndexedTask {
            key: key.clone(),
            root,
            slug,
            file: task.path.clone(),
            conversation: self.indexed_conversation(key),
            output: self.indexed_output(key, live),
        })
    }

    fn indexed_output(&self, key: &TaskKey, live: LiveOutput) -> TaskOutput {
        let is_live = self.supervisor.live_run(key).is_some();
        if is_live && live == LiveOutput::Later {
            return TaskOutput::Unchanged;
        }
        let runs = self.runs.history.get(key).into_iter().flatten().filter(|meta| !is_conversation(meta));
        let journal = |meta: &RunMeta| TerminalJournal {
            run: meta.run.clone(),
            path: self.context.state.run(&meta.run.0).journal(),
        };
        let journals: Vec<_> = runs.map(journal).collect();
        // The live run may be a conversation, and then all terminals of the task have ended.
        let newest = journals.last().map(|journal| &journal.run);
        TaskOutput::Journals { is_live: is_live && newest == self.supervisor.live_run(key), journals }
    }

    fn indexed_conversation(&self, key: &TaskKey) -> TaskConversation {
        let live = self.supervisor.live_run(key).and_then(|run| self.runs.live.get(run));
        if let Some((live, commands)) = live.and_then(|live| Some((live, live.handle.conversation()?))) {
            return TaskConversation::Live { run: live.meta.run.clone(), commands: commands.clone() };
        }
        let runs = self.runs.history.get(key).into_iter().flatten().filter(|meta| is_conversation(meta));
        let runs = runs.map(|meta| meta.run.clone()).collect();
        self.past_conversation(key).map_or(TaskConversation::None, |journals| TaskConversation::Past {
            runs,
            journals: Box::new(journals),
        })
    }

    fn search(&mut self, (scope, params): (Scope, SearchParams)) -> Result<Later<Found>, Failure> {
        let search = Search::new(&params, scope)?;
        self.read_edited_files();
        let tasks = self.all_listed(LiveOutput::Now);
        let names = tasks.iter().map(|listed| (listed.key.clone(), listed.clone())).collect();
        self.index.replace_tasks(tasks);
        let index = self.index.clone();
        Ok(Later::new(async move { search.run(&index, names).await }))
    }

    fn scope(&mut self, task: Option<NamedTask>, project: Option<OpenedProject>) -> Result<Scope, Failure> {
        if let Some(task) = task {
            let key = self.find(task)?;
            return Ok(Scope { project: Some(key.project), task: Some(key.task) });
        }
        let project = project.map(|project| self.open_project(project)).transpose()?;
        Ok(Scope { project, task: None })
    }

    /// Reads task files that were edited by hand. A project that cannot be read is searched in its old state.
    pub(super) fn read_edited_files(&mut self) {
        let projects: Vec<ProjectId> = self.store.projects().map(|(id, _)| id.clone()).collect();
        for id in projects {
            match self.store.refresh(&id) {
                Ok(changed) => self.report_edited_tasks(&id, changed),
                Err(cause) => tracing::debug!(project = %id, %cause, "a project cannot be read"),
            }
        }
    }
}
