//! The text and the slug of a task: shows and replaces the text, and changes the slug.
//!
//! Not here: the first text, which a new task brings (see `new_tasks`), and messages to a running agent (see `sends`).

use agency_api::method::{self, TaskEditParams, TaskRenameParams, TaskTextView};
use agency_api::{Bytes, Failure, FailureCode, view};
use agency_core::ids::TaskKey;
use agency_core::slug::Slug;
use agency_core::supervisor::{Occupation, Refusal};
use agency_core::task_status::TaskStatus;
use agency_store::workspace_record::SetupProgress;
use agency_workspace::Vcs;

use super::World;
use super::router::Router;
use super::tasks::store_failure;

pub(super) fn register(router: &mut Router) {
    router.on(method::TaskText, World::text_of_task);
    router.on(method::TaskEdit, World::edit_text);
    router.on(method::TaskRename, World::rename);
}

impl World {
    fn text_of_task(&mut self, key: TaskKey) -> Result<TaskTextView, Failure> {
        let text = self.store.file(&key).map_err(store_failure)?.body().to_vec();
        Ok(TaskTextView { task: self.view(&key)?, text: Bytes(text) })
    }

    fn edit_text(&mut self, (key, params): (TaskKey, TaskEditParams)) -> Result<view::Task, Failure> {
        let name = self.name_of(&key);
        if params.text.0.iter().all(u8::is_ascii_whitespace) {
            return Err(Failure::new(format!("the text of {name} is unchanged"))
                .code(FailureCode::InvalidArgument)
                .because("the new text is empty"));
        }
        let current = self.store.file(&key).map_err(store_failure)?.body();
        if params.replaces.is_some_and(|seen| seen.0 != current) {
            return Err(Failure::new(format!("the text of {name} is unchanged"))
                .code(FailureCode::ChangedMeanwhile)
                .because("its file has changed meanwhile")
                .hint(format!("look at it and edit it again: agency edit {name}")));
        }
        self.store.set_text(&key, params.text.0).map_err(store_failure)?;
        self.view(&key)
    }

    fn rename(&mut self, (key, params): (TaskKey, TaskRenameParams)) -> Result<view::Task, Failure> {
        let slug = Slug::for_new_task(&params.slug).map_err(|err| {
            Failure::new(err.to_string()).code(FailureCode::InvalidArgument).hint(err.hint())
        })?;
        match self.supervisor.occupation(&key) {
            Occupation::Free => {}
            Occupation::Live => return Err(self.cannot_rename(&key, &slug)),
            doing => return Err(self.refusal_failure(Refusal::Busy { key, doing })),
        }
        if self.has_place_or_run(&key)? {
            return Err(self.cannot_rename(&key, &slug));
        }
        self.refuse_namesake(&key, &slug)?;
        self.store.rename(&key, slug).map_err(store_failure)?;
        self.view(&key)
    }

    /// Whether something has the name of the task by now: a directory, a branch, or a run.
    fn has_place_or_run(&self, key: &TaskKey) -> Result<bool, Failure> {
        let (project, workspace) = self.workspace_of(key)?;
        // The workspace of a task in a plain directory is that directory, whatever the task is called.
        let has_directory = project.vcs() != Vcs::Plain
            && agency_workspace::workspace_path(&project, &workspace).symlink_metadata().is_ok();
        let is_draft = self.supervisor.status(key) == Some(TaskStatus::Draft);
        let is_set_up = self.workspaces.records.get(key).setup != SetupProgress::None;
        Ok(!is_draft || has_directory || is_set_up || self.runs.history.contains_key(key))
    }

    fn cannot_rename(&self, key: &TaskKey, slug: &Slug) -> Failure {
        let name = self.name_of(key);
        let failure = Failure::new(format!("{name} cannot be renamed"))
            .code(FailureCode::WrongStatus)
            .because("its branch, its workspace and its recordings have this name since its first start");
        let branch = self.view(key).ok().and_then(|task| task.branch);
        let way_out = branch.map(|branch| {
            let slug = slug.as_str();
            format!("; a new task can continue its commits: agency new {slug} --base-branch {branch}")
        });
        failure.hint(format!("only drafts can be renamed{}", way_out.unwrap_or_default()))
    }

    fn refuse_namesake(&self, key: &TaskKey, slug: &Slug) -> Result<(), Failure> {
        let Some(known) = self.store.project(&key.project) else { return Ok(()) };
        let is_open = |id| {
            let other = TaskKey { project: key.project.clone(), task: id };
            other != *key && self.supervisor.status(&other) != Some(TaskStatus::Merged)
        };
        let mut names = known.tasks.values().map(|task| &task.name);
        match names.find(|name| name.slug == *slug && is_open(name.id)) {
            None => Ok(()),
            Some(other) => Err(Failure::new(format!("another task has this name: {other}"))
                .code(FailureCode::AlreadyExists)
                .hint("choose another name, or finish that task first")),
        }
    }
}
