//! Removing tasks so that they can be had back, and bringing them back.
//!
//! A removal is written down before anything goes (`removal.rs`), and its record ends with it. What a daemon did not
//! live to end is settled by the next one, and until then nobody gets at it.

use std::time::Duration;

use agency_api::Failure;
use agency_api::event::{FilesRestoredEvent, TaskRestoredEvent};
use agency_api::method::Removed;
use agency_api::paths::{RunDir, StateDir};
use agency_api::trash::{Discarded, Expired, Restored, Spent, SpentTask, TrashExpireParams};
use agency_core::agent_state::AgentState;
use agency_core::ids::{ProjectId, TaskId, TaskKey};
use agency_core::task_file::Field;
use agency_core::task_status::TaskStatus;
use agency_run::run_meta::{self, RunMeta};
use agency_store::workspace_record::Mark;
use agency_workspace::{Presence, Project, TrashEntry, Vcs, WorkspaceName};
use tokio::task::JoinHandle;

use super::World;
use super::setups::RemovalWish;
use super::tasks::store_failure;
use super::turns::{TurnLock, keep_brought_back};
use crate::discarded::{self, Back, CutOff, Entry, Settled};
use crate::happening::{Answer, Happening};
use crate::removal::{Bin, Removal, Step};
use crate::rpc;

/// Work that may be lost is named, up to so many files.
const NAMED_FILES: usize = 3;

const EXPIRING: &str = "the trash of this project is being emptied";

/// How long a start waits for what was cut off before it answers.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

impl World {
    fn bin(&self, project: &ProjectId) -> Bin {
        Bin::of(&self.ground.state, project)
    }

    /// The project as its tasks use it, and its trash.
    fn trash_of(&mut self, project: Project) -> Result<(ProjectId, Project, Bin), Failure> {
        let id = self.open_project(project)?;
        let known = self.store.project(&id).ok_or_else(|| Failure::new("the project is not known"))?;
        Ok((id.clone(), known.project.clone(), self.bin(&id)))
    }

    pub(super) fn trash_list(&mut self, project: Project, answer: Answer) {
        match self.trash_of(project) {
            Err(failure) => answer.give(Err(failure)),
            Ok((_, project, bin)) => {
                tokio::spawn(async move {
                    answer.give_as(rpc::blocking(move || discarded::list(&project, &bin)).await);
                });
            }
        }
    }

    /// Before anything goes: what is to be finished or taken back, if we do not live to do it.
    pub(super) fn begin_removal(&mut self, key: &TaskKey, wish: &RemovalWish) -> Result<(), Failure> {
        let gone = || Failure::new(format!("there is no task {}", key.task));
        let name = self.store.task(key).ok_or_else(gone)?.name.clone();
        let settings = self.settings_with(Some(&key.project), &wish.caller.overrides)?;
        let queued = self.queue.of(key).map(|waiting| waiting.text.clone()).collect();
        let keep_ignored = settings.config.workspace.keep_ignored;
        let begun = self.bin(&key.project).begin(&name, wish.why(), keep_ignored, queued);
        let removal =
            begun.map_err(|err| Failure::new("a removal cannot be written down").caused_by(&err))?;
        self.removing.insert(key.clone(), removal);
        Ok(())
    }

    /// The workspace is gone: the task goes too, and both are in the trash.
    pub(super) fn end_removal(
        &mut self,
        key: &TaskKey,
        reference: Option<String>,
        bytes: u64,
    ) -> Result<Removal, Failure> {
        let unknown = || Failure::new(format!("the removal of task {} was not begun", key.task));
        let removal = self.removing.get(key).cloned().ok_or_else(unknown)?;
        let bin = self.bin(&key.project);
        self.store.remove(key, &bin.task_file(&removal.id)).map_err(store_failure)?;
        self.removing.remove(key);
        self.workspaces.put_aside(key, &bin.workspace(&removal.id));
        let removal = Removal { step: Step::Done, reference, bytes, ..removal };
        if let Err(cause) = bin.write(&removal) {
            // Its files say the same to the next daemon.
            tracing::warn!(task = %key, %cause, "that a removal is over is not kept");
        }
        Ok(removal)
    }

    pub(super) fn give_removal_up(&mut self, key: &TaskKey) {
        let Some(removal) = self.removing.remove(key) else { return };
        if let Err(cause) = self.bin(&key.project).delete(&removal.id) {
            tracing::warn!(task = %key, %cause, "the record of a removal that failed stays behind");
        }
    }

    /// What the daemon before us did not live to end. What takes long is seen to while we answer already.
    pub(super) async fn settle_removals(&mut self) {
        let deadline = tokio::time::Instant::now() + SETTLED_WITHIN;
        for mut settling in self.cut_off() {
            match tokio::time::timeout_at(deadline, &mut settling).await {
                Ok(Ok(settled)) => self.settle_removal(settled),
                Ok(Err(cause)) => tracing::error!(%cause, "what was cut off stays unfinished"),
                Err(_) => {
                    let reporter = self.ground.reporter.clone();
                    tokio::spawn(async move {
                        if let Ok(settled) = settling.await {
                            reporter.report(Happening::RemovalSettled { settled, answer: None }).await;
                        }
                    });
                }
            }
        }
    }

    fn cut_off(&mut self) -> Vec<JoinHandle<CutOff>> {
        let projects: Vec<(ProjectId, Project)> =
            self.store.projects().map(|(id, known)| (id.clone(), known.project.clone())).collect();
        let mut settling = Vec::new();
        for (id, project) in projects {
            let bin = self.bin(&id);
            for removal in bin.all() {
                match removal.step {
                    Step::Done => {}
                    Step::Begun => settling.push(self.go_on_removing(&id, project.clone(), &bin, removal)),
                    Step::Restoring => settling.push(self.go_on_returning(&id, project.clone(), removal)),
                }
            }
        }
        settling
    }

    fn go_on_removing(
        &mut self,
        id: &ProjectId,
        project: Project,
        bin: &Bin,
        removal: Removal,
    ) -> JoinHandle<CutOff> {
        let key = TaskKey { project: id.clone(), task: TaskId(removal.task) };
        let has_task = self.store.task(&key).is_some_and(|task| task.name.slug.as_str() == removal.slug);
        self.removing.insert(key.clone(), removal.clone());
        let bin = bin.clone();
        tokio::spawn(async move {
            let settled = rpc::blocking(move || discarded::settle(&project, &bin, &removal, has_task)).await;
            CutOff::Removal { key, settled }
        })
    }

    fn go_on_returning(&mut self, id: &ProjectId, project: Project, removal: Removal) -> JoinHandle<CutOff> {
        self.restoring.insert(removal.id.clone());
        let (state, looked) = (self.ground.state.clone(), removal.clone());
        let (id, of) = (id.clone(), id.clone());
        tokio::spawn(async move {
            let back = rpc::blocking(move || brought_back(&state, &of, &project, &looked, true)).await;
            CutOff::Return { project: id, removal, back }
        })
    }

    /// Before anybody is told of any task.
    fn settle_removal(&mut self, settled: CutOff) {
        match settled {
            CutOff::Removal { key, settled } => {
                // What went wrong is kept for whoever asks.
                self.end_cut_off_removal(&key, settled).unwrap_or_default();
            }
            CutOff::Return { project, removal, back } => {
                self.restoring.remove(&removal.id);
                if let Err(cause) = back.and_then(|_| self.bring_task_back(&project, &removal)) {
                    tracing::error!(entry = removal.id, %cause, "what was on its way back stays in the trash");
                    self.mark_removal(&project, &removal, Step::Done);
                }
            }
        }
    }

    /// `agency rm` of a task whose removal was cut off and could not be finished.
    pub(super) fn remove_again(&mut self, key: &TaskKey, answer: Answer) {
        let known = self.store.project(&key.project).map(|known| known.project.clone());
        let Some((project, removal)) = known.zip(self.removing.get(key).cloned()) else {
            return answer.give(Err(Failure::new(format!("there is no task {}", key.task))));
        };
        self.unsettled.remove(key);
        let bin = self.bin(&key.project);
        let settling = self.go_on_removing(&key.project, project, &bin, removal);
        let reporter = self.ground.reporter.clone();
        tokio::spawn(async move {
            if let Ok(settled) = settling.await {
                reporter.report(Happening::RemovalSettled { settled, answer: Some(answer) }).await;
            }
        });
    }

    pub(super) fn on_removal_settled(&mut self, settled: CutOff, answer: Option<Answer>) {
        match settled {
            CutOff::Removal { key, settled } => {
                let removed = self.on_cut_off_removal(&key, settled);
                if let Some(answer) = answer {
                    answer.give_as(removed);
                }
            }
            CutOff::Return { project, removal, back } => {
                let (answer, _) = tokio::sync::oneshot::channel();
                self.on_task_restored(project, removal, Answer(answer), back);
            }
        }
    }

    fn on_cut_off_removal(
        &mut self,
        key: &TaskKey,
        settled: Result<Settled, Failure>,
    ) -> Result<Removed, Failure> {
        let slug = self.removing.get(key).map(|removal| removal.slug.clone()).unwrap_or_default();
        match self.end_cut_off_removal(key, settled)? {
            Some(Removal { id: trash, reference: kept_as, .. }) => {
                self.forget_removed(key);
                Ok(Removed { id: key.task.0, slug, kept_as, trash, notes: Vec::new() })
            }
            None => {
                self.see_again(key);
                Err(Failure::new(format!("the removal of task {} is taken back", key.task))
                    .because("it was cut off before anything had gone")
                    .hint(format!("agency rm {}", key.task)))
            }
        }
    }

    /// What is in the trash now, if the task is gone. One that cannot be finished stays where it is: in a workspace
    /// of which a part may have gone, nothing begins.
    fn end_cut_off_removal(
        &mut self,
        key: &TaskKey,
        settled: Result<Settled, Failure>,
    ) -> Result<Option<Removal>, Failure> {
        let ended = match settled {
            Ok(Settled::TakenBack) => {
                self.give_removal_up(key);
                tracing::warn!(task = %key, "a removal that was cut off is taken back: nothing had gone");
                return Ok(None);
            }
            Ok(Settled::Gone { reference, bytes }) => self.end_removal(key, reference, bytes),
            Err(failure) => Err(failure),
        };
        match &ended {
            Ok(_) => tracing::warn!(task = %key, "a removal that was cut off is finished"),
            Err(cause) => {
                tracing::error!(task = %key, %cause, "a removal that was cut off stays unfinished");
                self.unsettled.insert(key.clone(), cause.clone());
            }
        }
        ended.map(Some)
    }

    /// Why nothing begins there, if the removal does not go on either.
    pub(super) fn is_unsettled(&self, key: &TaskKey) -> Option<Failure> {
        let why = self.unsettled.get(key)?.clone();
        let way = why.hint.as_ref().map(|hint| format!("{hint}; then: ")).unwrap_or_default();
        let told = why.within(format!("the removal of task {} was cut off, and is not finished", key.task));
        Some(told.hint(format!("{way}agency rm {} tries again", key.task)))
    }

    fn mark_removal(&self, project: &ProjectId, removal: &Removal, step: Step) {
        let removal = Removal { step, ..removal.clone() };
        if let Err(cause) = self.bin(project).write(&removal) {
            tracing::error!(entry = removal.id, %cause, "how far a removal is taken back is not kept");
        }
    }

    /// `agency undo`.
    pub(super) fn undo(&mut self, project: Project, word: Option<String>, answer: Answer) {
        let (id, project, bin) = match self.trash_of(project) {
            Ok(found) => found,
            Err(failure) => return answer.give(Err(failure)),
        };
        let reporter = self.ground.reporter.clone();
        tokio::spawn(async move {
            let chosen = rpc::blocking(move || discarded::choose(&project, &bin, word.as_deref())).await;
            reporter.report(Happening::UndoChosen { project: id, answer, chosen }).await;
        });
    }

    pub(super) fn on_undo_chosen(&mut self, id: ProjectId, answer: Answer, chosen: Result<Entry, Failure>) {
        let begun = match chosen {
            Ok(_) if self.expiring.contains(&id) => {
                Err(Failure::new(EXPIRING).hint("`agency undo --list` shows in a moment what is left"))
            }
            Ok(Entry::Task(removal)) => self.may_come_back(&id, &removal).map(|project| {
                self.restoring.insert(removal.id.clone());
                self.mark_removal(&id, &removal, Step::Restoring);
                let (was_cut_off, state) = (removal.step == Step::Restoring, self.ground.state.clone());
                Return::Task { was_cut_off, removal, project, state }
            }),
            Ok(Entry::Kept(trashed, shown)) => self.may_put_back(&id, &shown).map(|(key, project)| {
                self.rewinding.insert(key.clone());
                Return::Files { lock: self.turn_lock(&key), key, project, trashed, shown }
            }),
            Err(failure) => Err(failure),
        };
        let back = match begun {
            Ok(back) => back,
            Err(failure) => return answer.give(Err(failure)),
        };
        let reporter = self.ground.reporter.clone();
        tokio::spawn(async move { reporter.report(back.go(id, answer).await).await });
    }

    fn may_come_back(&self, id: &ProjectId, removal: &Removal) -> Result<Project, Failure> {
        let refused = || Failure::new(format!("cannot bring {}-{} back", removal.task, removal.slug));
        if self.restoring.contains(&removal.id) {
            return Err(refused().because("it is on its way back already"));
        }
        let key = TaskKey { project: id.clone(), task: TaskId(removal.task) };
        if let Some(task) = self.store.task(&key) {
            return Err(refused()
                .because(format!("{} has the same id: {}", task.name, task.path.display()))
                .hint("give that file another id, or remove that task first"));
        }
        let known = self.store.project(id).ok_or_else(|| refused().because("its project is not known"))?;
        Ok(known.project.clone())
    }

    fn may_put_back(&self, id: &ProjectId, shown: &Discarded) -> Result<(TaskKey, Project), Failure> {
        let key = TaskKey { project: id.clone(), task: TaskId(shown.task) };
        self.must_rest(&key).map_err(|failure| failure.within(format!("cannot bring {} back", shown.id)))?;
        let known = self.store.project(id).ok_or_else(|| Failure::new("the project is not known"))?;
        Ok((key, known.project.clone()))
    }

    /// Files must not change under an agent that works with them, nor under a merge or sync.
    pub(super) fn must_rest(&self, key: &TaskKey) -> Result<(), Failure> {
        self.not_being_removed(key)?;
        self.not_landing(key)?;
        if let Some(host) = self.elsewhere.get(key) {
            return Err(Failure::new(format!("task {} runs on {host}", key.task)));
        }
        let works = self.live_run(key).is_ok_and(|live| match live.standing.state {
            AgentState::Starting | AgentState::Running => true,
            AgentState::NeedsInput { .. } | AgentState::Stale { .. } | AgentState::Exited { .. } => false,
        });
        if works || self.supervisor.occupation(key).is_busy() {
            return Err(Failure::new(format!("the agent of task {} is at work", key.task)).hint(format!(
                "wait until its turn ends, or: agency interrupt {0}, agency stop {0}",
                key.task
            )));
        }
        Ok(())
    }

    pub(super) fn on_task_restored(
        &mut self,
        id: ProjectId,
        removal: Removal,
        answer: Answer,
        restored: Result<Back, Failure>,
    ) {
        self.restoring.remove(&removal.id);
        let restored = restored.and_then(|Back { mut notes, runs }| {
            let (key, told) = self.bring_task_back(&id, &removal)?;
            notes.extend(told);
            self.history.insert(key.clone(), runs);
            self.see_again(&key);
            self.touch_index(&key);
            self.announce(Some(&key), None, TaskRestoredEvent { entry: removal.id.clone() });
            let task = self.view(&key)?;
            Ok(Restored { entry: Entry::Task(removal.clone()).shown(), task: Some(task), notes })
        });
        if restored.is_err() && self.bin(&id).holds(&removal.id) {
            self.mark_removal(&id, &removal, Step::Done);
        }
        answer.give_as(restored);
    }

    /// The task's file and what else is kept of it; then there is nothing left in the trash.
    fn bring_task_back(
        &mut self,
        project: &ProjectId,
        removal: &Removal,
    ) -> Result<(TaskKey, Vec<String>), Failure> {
        let bin = self.bin(project);
        let cannot = |what: &str| Failure::new(format!("cannot bring back the {what} of {}", removal.slug));
        let bytes =
            std::fs::read(bin.task_file(&removal.id)).map_err(|err| cannot("file").caused_by(&err))?;
        let name = removal.name().map_err(|err| cannot("name").caused_by(&err))?;
        let key = self.store.bring_back(project, &name, &bytes).map_err(store_failure)?;
        if let Err(cause) = self.workspaces.bring_back(&key, &bin.workspace(&removal.id)) {
            tracing::warn!(task = %key, %cause, "what was kept of a workspace does not come back");
        }
        let notes = self.make_true(&key, removal);
        for text in &removal.queued {
            if let Err(cause) = self.queue.push(&key, text.clone()) {
                tracing::warn!(task = %key, %cause, "a text that waited for its prompt does not come back");
            }
        }
        if let Err(cause) = bin.delete(&removal.id) {
            tracing::warn!(task = %key, %cause, "an entry of the trash stays behind");
        }
        Ok((key, notes))
    }

    /// Nothing of it runs; and what git does not hold is still to be made.
    fn make_true(&mut self, key: &TaskKey, removal: &Removal) -> Vec<String> {
        let claims = self.store.file(key).is_ok_and(|file| file.fields().status.claims_a_process());
        if claims && let Err(cause) = self.store.set(key, vec![Field::Status(TaskStatus::Stopped)]) {
            tracing::warn!(task = %key, %cause, "the status of a task that is back is not written");
        }
        let was_set_up = self.workspaces.get(key).setup == Mark::Done;
        if removal.reference.is_none() || removal.keep_ignored || !was_set_up {
            return Vec::new();
        }
        self.mark_setup(key, Mark::Pending);
        vec!["ignored files were not kept: the next start sets the workspace up again".to_owned()]
    }

    pub(super) fn on_files_restored(
        &mut self,
        key: &TaskKey,
        shown: Discarded,
        answer: Answer,
        restored: Result<Vec<String>, Failure>,
    ) {
        self.rewinding.remove(key);
        self.deliver_next(key);
        answer.give_as(restored.map(|mut notes| {
            let task = self.view(key).ok();
            if task.is_none() {
                notes.push("its task is not kept: only the workspace is back".to_owned());
            } else {
                self.announce(Some(key), None, FilesRestoredEvent { entry: shown.id.clone() });
            }
            Restored { entry: shown, task, notes }
        }));
    }

    /// `agency gc --trash`.
    pub(super) fn expire_trash(&mut self, project: Project, params: TrashExpireParams, answer: Answer) {
        let (id, project, bin) = match self.trash_of(project) {
            Ok(found) => found,
            Err(failure) => return answer.give(Err(failure)),
        };
        let is_returning = !self.restoring.is_empty() || self.rewinding.iter().any(|key| key.project == id);
        if is_returning || !self.expiring.insert(id.clone()) {
            let why = if is_returning { "something is on its way back" } else { EXPIRING };
            return answer.give(Err(Failure::new(why).hint("try again in a moment")));
        }
        let tasks: Vec<TaskId> =
            self.store.project(&id).into_iter().flat_map(|known| known.tasks.keys().copied()).collect();
        let (state, reporter) = (self.ground.state.clone(), self.ground.reporter.clone());
        let project_id = id.clone();
        tokio::spawn(async move {
            let expired = rpc::blocking(move || {
                let age = Duration::from_secs(params.older_than_seconds);
                let (expired, removals) = discarded::expire(&project, &bin, age, params.dry_run)?;
                for removal in &removals {
                    let is_wanted = tasks.contains(&TaskId(removal.task));
                    delete_removal(&state, &id, &bin, removal, is_wanted);
                }
                Ok(expired)
            });
            let expired = expired.await;
            reporter.report(Happening::TrashExpired { project: project_id, answer, expired }).await;
        });
    }

    pub(super) fn on_trash_expired(
        &mut self,
        id: &ProjectId,
        answer: Answer,
        expired: Result<Expired, Failure>,
    ) {
        self.expiring.remove(id);
        answer.give_as(expired);
    }

    /// Which tasks are finished, found out beside the loop.
    pub(super) fn spent(&mut self, project: Project, answer: Answer) {
        let id = match self.trash_of(project) {
            Ok((id, ..)) => id,
            Err(failure) => return answer.give(Err(failure)),
        };
        let ids = self.store.project(&id).into_iter().flat_map(|known| known.tasks.keys().copied());
        let keys: Vec<TaskKey> = ids.map(|task| TaskKey { project: id.clone(), task }).collect();
        let candidates: Vec<Candidate> = keys.iter().filter_map(|key| self.candidate(key)).collect();
        tokio::spawn(async move {
            let judged = || Ok(Spent { tasks: candidates.into_iter().map(Candidate::judged).collect() });
            answer.give_as(rpc::blocking(judged).await);
        });
    }

    fn candidate(&self, key: &TaskKey) -> Option<Candidate> {
        let task = self.store.task(key)?;
        let file = task.content.as_ref().map_err(|problem| format!("its file cannot be read: {problem}"));
        let status = file.map(|file| file.fields().status);
        let base = self.base_of(key);
        let is_orphaned = self.orphans.values().any(|orphan| super::boot::key_of(&orphan.meta) == *key);
        let stays = match status {
            Err(why) => Some(why),
            Ok(_) if self.elsewhere.contains_key(key) => Some("it runs on another host".to_owned()),
            Ok(_) if self.live_run(key).is_ok() => Some("its agent lives".to_owned()),
            Ok(_) if is_orphaned => Some("a process of an earlier run lives: agency orphans".to_owned()),
            Ok(_) if self.supervisor.occupation(key).is_busy() || self.chores.contains_key(key) => {
                Some("something is under way in it".to_owned())
            }
            Ok(TaskStatus::Draft) => Some("it is a draft".to_owned()),
            Ok(status @ (TaskStatus::Running | TaskStatus::Idle)) => {
                Some(format!("it is {}", status.as_str()))
            }
            Ok(_) => None,
        };
        let (id, slug) = (key.task.0, task.name.slug.as_str().to_owned());
        let workspace = self.workspace_of(key).ok();
        let merged_into = self.workspaces.get(key).merged_into;
        Some(Candidate { id, slug, status: status_word(self, key), stays, base, merged_into, workspace })
    }
}

fn status_word(world: &World, key: &TaskKey) -> TaskStatus {
    world.store.file(key).map_or(TaskStatus::Draft, |file| file.fields().status)
}

/// A task that may be finished.
struct Candidate {
    id: u64,
    slug: String,
    status: TaskStatus,
    /// Why it stays, if that is known without a look at its files.
    stays: Option<String>,
    base: Option<String>,
    /// If it was us who merged it.
    merged_into: Option<String>,
    workspace: Option<(Project, WorkspaceName)>,
}

impl Candidate {
    /// Blocking.
    fn judged(self) -> SpentTask {
        let (goes, reason) = match (&self.stays, &self.workspace) {
            (Some(why), _) => (false, why.clone()),
            (None, None) => (false, "its workspace cannot be named".to_owned()),
            (None, Some((project, name))) => self.judge(project, name),
        };
        SpentTask { id: self.id, slug: self.slug, goes, reason }
    }

    fn merged(&self) -> String {
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
            Err(err) => return (false, format!("its workspace cannot be looked at: {}", err.cause)),
        };
        let base = self.base.as_deref().unwrap_or("its base");
        match (state.presence, state.uncommitted.as_slice(), state.unmerged_commits) {
            (Presence::NotOurs, ..) => (false, format!("{} is not its workspace", state.path.display())),
            (_, [], 0) if self.status == TaskStatus::Merged => (true, self.merged()),
            (_, [], 0) => (true, format!("{word}, and all of its work is in {base}")),
            (_, [], 1) => (false, format!("1 commit is not in {base}")),
            (_, [], commits) => (false, format!("{commits} commits are not in {base}")),
            (_, files, _) => (false, format!("not committed: {}", named(files))),
        }
    }
}

fn named(files: &[std::path::PathBuf]) -> String {
    let mut names: Vec<String> =
        files.iter().take(NAMED_FILES).map(|file| file.display().to_string()).collect();
    if files.len() > NAMED_FILES {
        names.push(format!("and {} more", files.len() - NAMED_FILES));
    }
    names.join(", ")
}

/// Something on its way out of the trash.
#[expect(clippy::large_enum_variant, reason = "one at a time, on its way to a thread")]
enum Return {
    Task { removal: Removal, project: Project, was_cut_off: bool, state: StateDir },
    Files { key: TaskKey, project: Project, trashed: TrashEntry, shown: Discarded, lock: TurnLock },
}

impl Return {
    async fn go(self, id: ProjectId, answer: Answer) -> Happening {
        match self {
            Return::Task { removal, project, was_cut_off, state } => {
                let (looked, of) = (removal.clone(), id.clone());
                let restored =
                    rpc::blocking(move || brought_back(&state, &of, &project, &looked, was_cut_off));
                Happening::TaskRestored { project: id, removal, answer, restored: restored.await }
            }
            Return::Files { key, project, trashed, shown, lock } => {
                let _alone = lock.lock().await;
                let restored = rpc::blocking(move || {
                    let back = agency_workspace::restore(&project, &trashed);
                    if back.is_ok() {
                        keep_brought_back(&project, &trashed.workspace);
                    }
                    back.map(|workspace| workspace.warnings).map_err(|err| discarded::operation_failure(&err))
                });
                Happening::FilesRestored { key, shown, answer, restored: restored.await }
            }
        }
    }
}

/// Blocking. `is_wanted`: there is such a task again, and the runs are its own.
fn delete_removal(state: &StateDir, project: &ProjectId, bin: &Bin, removal: &Removal, is_wanted: bool) {
    let is_kept = bin.all().iter().any(|other| other.task == removal.task && other.id != removal.id);
    for (dir, meta) in runs_of(state, project, removal)
        .into_iter()
        .filter(|(dir, meta)| !is_wanted && !is_kept && meta.host == state.host() && !dir.pid_file().exists())
    {
        if let Err(cause) = std::fs::remove_dir_all(dir.path()) {
            tracing::warn!(run = %meta.run, %cause, "the journal of an expired task stays behind");
        }
    }
    if let Err(cause) = bin.delete(&removal.id) {
        tracing::warn!(entry = removal.id, %cause, "an expired entry stays behind");
    }
}

/// Blocking. The workspace is where it was, and this is what its task has done.
fn brought_back(
    state: &StateDir,
    id: &ProjectId,
    project: &Project,
    removal: &Removal,
    was_cut_off: bool,
) -> Result<Back, Failure> {
    let notes = discarded::bring_workspace_back(project, removal, was_cut_off)?;
    let runs = runs_of(state, id, removal).into_iter().map(|(_, meta)| meta).collect();
    Ok(Back { notes, runs })
}

/// Blocking. The oldest first.
fn runs_of(state: &StateDir, project: &ProjectId, removal: &Removal) -> Vec<(RunDir, RunMeta)> {
    let key = TaskKey { project: project.clone(), task: TaskId(removal.task) };
    let mut runs = run_meta::all(state);
    runs.retain(|(_, meta)| super::boot::key_of(meta) == key && meta.slug == removal.slug);
    runs
}
