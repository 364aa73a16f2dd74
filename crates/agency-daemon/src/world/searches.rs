//! Search: which tasks the index reads, and the words that callers search for.

use std::collections::HashMap;

use agency_api::search::{Found, Hit, SearchParams};
use agency_api::{Failure, FailureCode, method};
use agency_core::ids::{ProjectId, TaskKey};
use agency_run::blocking::blocking;
use agency_search::{self as index, Index, IndexedTask, Match, Scope, TaskConversation};
use agency_server::Argument;
use agency_workspace::Project;

use super::World;
use super::argument::{open_project, open_task};
use super::loop_event::NamedTask;
use super::router::{Later, Router};
use super::runs::is_conversation;

/// One screen.
const USUAL_HITS: u64 = 20;
const MOST_HITS: u64 = 1000;

pub(super) fn register(router: &mut Router) {
    router.on(method::ChatSearch, World::search);
}

/// A search, with the tasks that it is limited to.
impl Argument<World, SearchParams> for (Scope, SearchParams) {
    type Prepared = (Option<NamedTask>, Option<Project>, SearchParams);

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
        if let Some(listed) = self.listed(key) {
            self.index.update_task(listed);
        }
    }

    /// Has the index read all tasks. A task that has not changed costs little.
    pub(super) fn index_all_tasks(&self) {
        self.index.replace_tasks(self.all_listed());
    }

    fn all_listed(&self) -> Vec<IndexedTask> {
        let keys = self.store.projects().flat_map(|(id, known)| {
            known.tasks.keys().map(|task| TaskKey { project: id.clone(), task: *task })
        });
        keys.filter_map(|key| self.listed(&key)).collect()
    }

    fn listed(&self, key: &TaskKey) -> Option<IndexedTask> {
        let root = self.store.project(&key.project)?.root().into();
        let task = self.store.task(key)?;
        let slug = task.name.slug.as_str().to_owned();
        Some(IndexedTask {
            key: key.clone(),
            root,
            slug,
            file: task.path.clone(),
            conversation: self.indexed_conversation(key),
        })
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
        let expression = index::expression(&params.words).ok_or_else(no_word)?;
        let limit = params.limit.unwrap_or(USUAL_HITS).clamp(1, MOST_HITS);
        let search = Search { expression, scope, limit };
        self.read_edited_files();
        let tasks = self.all_listed();
        let names = tasks.iter().map(|listed| (listed.key.clone(), listed.clone())).collect();
        self.index.replace_tasks(tasks);
        let index = self.index.clone();
        Ok(Later::new(async move { search_index(&index, search, names).await }))
    }

    fn scope(&mut self, task: Option<NamedTask>, project: Option<Project>) -> Result<Scope, Failure> {
        if let Some(task) = task {
            let key = self.find(task)?;
            return Ok(Scope { project: Some(key.project), task: Some(key.task) });
        }
        let project = project.map(|project| self.open_project(project)).transpose()?;
        Ok(Scope { project, task: None })
    }

    /// Reads task files that were edited by hand. A project that cannot be read is searched in its old state.
    fn read_edited_files(&mut self) {
        let projects: Vec<ProjectId> = self.store.projects().map(|(id, _)| id.clone()).collect();
        for id in projects {
            match self.store.refresh(&id) {
                Ok(changed) => self.report_edited_tasks(&id, changed),
                Err(cause) => tracing::debug!(project = %id, %cause, "a project cannot be read"),
            }
        }
    }
}

struct Search {
    expression: String,
    scope: Scope,
    limit: u64,
}

fn no_word() -> Failure {
    Failure::new("there is no word to search for")
        .code(FailureCode::InvalidArgument)
        .hint("letters or digits are needed: agency search login")
}

/// Searches. If the file of the index is damaged, builds it again once.
async fn search_index(
    index: &Index,
    search: Search,
    names: HashMap<TaskKey, IndexedTask>,
) -> Result<Found, Failure> {
    let mut unread = index.wait_until_read().await;
    let mut outcome = read_index(index, &search).await?;
    if outcome.as_ref().is_err_and(index::IndexError::is_damaged) {
        index.rebuild();
        unread = index.wait_until_read().await;
        outcome = read_index(index, &search).await?;
    }
    let mut matches = outcome.map_err(|err| {
        Failure::new("the index of conversations cannot be read")
            .caused_by(&err)
            .code(FailureCode::IoError)
            .hint(format!("delete it, and the daemon builds it again: rm {}", index.path().display()))
    })?;
    let more = matches.len() as u64 > search.limit;
    matches.truncate(search.limit as usize);
    Ok(Found { hits: matches.into_iter().filter_map(|found| hit(found, &names)).collect(), more, unread })
}

async fn read_index(
    index: &Index,
    search: &Search,
) -> Result<Result<Vec<Match>, index::IndexError>, Failure> {
    let (path, expression, scope) =
        (index.path().to_path_buf(), search.expression.clone(), search.scope.clone());
    let limit = search.limit + 1;
    blocking(move || Ok(index::find(&path, &expression, &scope, limit))).await
}

/// `None` if the task has been removed meanwhile.
fn hit(found: Match, names: &HashMap<TaskKey, IndexedTask>) -> Option<Hit> {
    let task = names.get(&found.key)?;
    let time = found.at_ms.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    Some(Hit {
        task: found.key.task.0,
        slug: task.slug.clone(),
        project: task.root.clone(),
        number: (found.number > 0).then_some(found.number),
        kind: found.kind,
        time: time.map(|time| time.to_string()),
        snippet: found.snippet,
    })
}
