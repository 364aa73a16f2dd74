//! Whether a task is finished: nothing is lost when `agency gc` removes it.

use agency_api::trash::FinishedTask;
use agency_core::task_status::TaskStatus;
use agency_workspace::{Presence, Project, Vcs, WorkspaceName};

/// How many files that are not committed are named.
const NAMED_FILES: usize = 3;

/// A task that may be finished.
#[derive(Debug)]
pub struct Candidate {
    pub id: u64,
    pub slug: String,
    pub status: TaskStatus,
    /// Why it stays, if that is known without a look at its files.
    pub stays: Option<String>,
    pub base: Option<String>,
    /// The branch, if Agency merged the task.
    pub merged_into: Option<String>,
    pub workspace: Option<(Project, WorkspaceName)>,
}

impl Candidate {
    /// Blocking.
    pub fn decide(self) -> FinishedTask {
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
