//! Tasks that are finished: `agency gc` may remove them.
//!
//! Not here: the removal itself (see `removals`).

use agency_api::trash::{FinishedTask, FinishedTasks};
use agency_api::{Failure, method};
use agency_core::ids::{ProjectId, TaskKey};
use agency_core::supervisor::Occupation;
use agency_core::task_status::TaskStatus;
use agency_run::blocking::blocking;
use agency_workspace::{Presence, Project, Vcs, WorkspaceName};

use super::World;
use super::router::{Later, Router};

/// How many files that are not committed are named.
const NAMED_FILES: usize = 3;

pub(super) fn register(router: &mut Router) {
    router.on(method::TaskFinished, World::finished_tasks);
}

impl World {
    /// Finds out beside the loop which tasks of a project are finished.
    fn finished_tasks(&mut self, id: ProjectId) -> Result<Later<FinishedTasks>, Failure> {
        let ids = self.store.project(&id).into_iter().flat_map(|known| known.tasks.keys().copied());
        let keys: Vec<TaskKey> = ids.map(|task| TaskKey { project: id.clone(), task }).collect();
        let candidates: Vec<Candidate> = keys.iter().filter_map(|key| self.candidate(key)).collect();
        let decide = || Ok(FinishedTasks { tasks: candidates.into_iter().map(Candidate::decide).collect() });
        Ok(Later::new(blocking(decide)))
    }

    fn candidate(&self, key: &TaskKey) -> Option<Candidate> {
        let task = self.store.task(key)?;
        let file = task.content.as_ref().map_err(|problem| format!("its file cannot be read: {problem}"));
        let status = file.map(|file| file.fields().status);
        let stays = match (&status, self.supervisor.occupation(key)) {
            (Err(why), _) => Some(why.clone()),
            (Ok(_), Occupation::Elsewhere) => Some("it runs on another host".to_owned()),
            (Ok(_), Occupation::Live) => Some("its agent lives".to_owned()),
            (Ok(_), Occupation::Orphaned) => {
                Some("a process of an earlier run lives: agency orphans".to_owned())
            }
            (Ok(_), Occupation::Unsettled) => Some("its removal was cut off and is not finished".to_owned()),
            (Ok(_), occupation) if occupation.is_busy() => Some(format!("it is {occupation}")),
            (Ok(TaskStatus::Draft), _) => Some("it is a draft".to_owned()),
            (Ok(status @ (TaskStatus::Running | TaskStatus::Idle)), _) => {
                Some(format!("it is {}", status.as_str()))
            }
            (Ok(_), _) => None,
        };
        Some(Candidate {
            id: key.task.0,
            slug: task.name.slug.as_str().to_owned(),
            status: status.unwrap_or(TaskStatus::Draft),
            stays,
            base: self.base_of(key),
            merged_into: self.workspaces.records.get(key).merged_into,
            workspace: self.workspace_of(key).ok(),
        })
    }
}

/// A task that may be finished.
struct Candidate {
    id: u64,
    slug: String,
    status: TaskStatus,
    /// Why it stays, if that is known without a look at its files.
    stays: Option<String>,
    base: Option<String>,
    /// The branch, if Agency merged the task.
    merged_into: Option<String>,
    workspace: Option<(Project, WorkspaceName)>,
}

impl Candidate {
    /// Blocking.
    fn decide(self) -> FinishedTask {
        let (goes, reason) = match (&self.stays, &self.workspace) {
            (Some(why), _) => (false, why.clone()),
            (None, None) => (false, "its workspace cannot be named".to_owned()),
            (None, Some((project, name))) => self.judge(project, name),
        };
        FinishedTask { id: self.id, slug: self.slug, goes, reason }
    }

    fn merged_reason(&self) -> String {
        self.merged_into.as_ref().map_or_else(|| "merged".to_owned(), |into| format!("merged into {into}"))
    }

    fn judge(&self, project: &Project, name: &WorkspaceName) -> (bool, String) {
        let word = self.status.as_str();
        if project.vcs() == Vcs::Plain {
            return match self.status {
                TaskStatus::Stopped => {
                    (false, "it is stopped, and has no branch that could be merged".to_owned())
                }
                _ => (true, format!("{word}; the directory itself stays")),
            };
        }
        let state = match agency_workspace::state(project, name, self.base.as_deref()) {
            Ok(state) => state,
            Err(err) => return (false, format!("its workspace cannot be examined: {}", err.cause)),
        };
        let base = self.base.as_deref().unwrap_or("its base");
        match (state.presence, state.uncommitted.as_slice(), state.unmerged_commits) {
            (Presence::NotOurs, ..) => (false, format!("{} is not its workspace", state.path.display())),
            (_, [], 0) if self.status == TaskStatus::Merged => (true, self.merged_reason()),
            (_, [], 0) => (true, format!("{word}, and all of its work is in {base}")),
            (_, [], 1) => (false, format!("1 commit is not in {base}")),
            (_, [], commits) => (false, format!("{commits} commits are not in {base}")),
            (_, files, _) => (false, format!("not committed: {}", name_some(files))),
        }
    }
}

fn name_some(files: &[std::path::PathBuf]) -> String {
    let mut names: Vec<String> =
        files.iter().take(NAMED_FILES).map(|file| file.display().to_string()).collect();
    if files.len() > NAMED_FILES {
        names.push(format!("and {} more", files.len() - NAMED_FILES));
    }
    names.join(", ")
}
