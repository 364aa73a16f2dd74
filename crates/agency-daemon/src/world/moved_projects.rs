//! Projects that the user has moved: what the state directory keeps of a project follows it to its new place.
//!
//! The trash, ports, queued messages and runs belong to the work and go with it. Consent does not: the user agreed to
//! commands at one place (see `consent`). A task whose agent is running is followed after its agent has ended; until then
//! `missing_workspaces` lists it.

use std::collections::BTreeSet;
use std::io;

use agency_core::ids::{ProjectId, TaskId, TaskKey};
use agency_core::supervisor::Occupation;
use agency_run::run_meta;
use agency_store::store::FormerPlace;

use super::World;
use super::runs::key_of;

impl World {
    /// The project was just opened. Brings what was kept at places where it was before.
    pub(super) fn follow_move(&mut self, id: &ProjectId) {
        for former in self.store.former_places(id) {
            if let Err(cause) = self.take_over(&former, id) {
                let root = former.root.display();
                tracing::warn!(%cause, %root, "a part of a moved project stays at its former place");
            }
        }
    }

    fn take_over(&mut self, former: &FormerPlace, id: &ProjectId) -> io::Result<()> {
        self.store.continue_ids(former, id);
        self.bring_orphans(former, id);
        let of = |project: &ProjectId, task: TaskId| TaskKey { project: project.clone(), task };
        let left = self.store.tasks_left(former);
        let known = self.store.project(&former.id).into_iter().flat_map(|known| known.tasks.keys().copied());
        let queued = self.queue.all().map(|waiting| waiting.key()).filter(|key| key.project == former.id);
        let tasks: BTreeSet<TaskId> =
            left.iter().copied().chain(known).chain(queued.map(|key| key.task)).collect();
        let (used, free): (BTreeSet<TaskId>, BTreeSet<TaskId>) =
            tasks.into_iter().partition(|task| self.is_used(&of(&former.id, *task)));
        for task in &free {
            let (from, to) = (of(&former.id, *task), of(id, *task));
            self.store.bring_trash(former, id, *task)?;
            self.workspaces.records.follow_move(&from, &to)?;
            self.queue.follow_move(&from, &to)?;
        }
        if used.is_empty() {
            self.bring_runs(former, id, |_| true);
            tracing::info!(root = %former.root.display(), "the project was moved; all that was kept of it is at its new place");
            return self.store.forget_place(former, id);
        }
        // Looking at all runs takes long, so only a task that was brought now is worth it.
        if free.intersection(&left).next().is_some() {
            self.bring_runs(former, id, |task| free.contains(&task));
        }
        Ok(())
    }

    fn is_used(&self, key: &TaskKey) -> bool {
        self.supervisor.occupation(key) != Occupation::Free
    }

    /// A daemon that booted after the move could not open the project, so live agents of the project are orphans.
    /// `return_orphans` gives them to their tasks at the new place.
    fn bring_orphans(&mut self, former: &FormerPlace, id: &ProjectId) {
        let Some(root) = self.store.project(id).map(|known| known.root().to_path_buf()) else { return };
        for orphan in self.runs.orphans.values_mut() {
            let Some(meta) = orphan.meta.as_mut().filter(|meta| meta.root == former.root) else { continue };
            meta.root.clone_from(&root);
            if let Err(cause) = meta.write(&self.context.state.run(&meta.run.0)) {
                tracing::warn!(run = %meta.run, %cause, "cannot record the new place of a live run");
            }
            if meta.shell.is_none() {
                self.supervisor.remove_orphan(&orphan.run);
                self.supervisor.add_orphan(key_of(meta), orphan.run.clone());
            }
        }
    }

    /// The runs of these tasks know their project by its root.
    fn bring_runs(&mut self, former: &FormerPlace, id: &ProjectId, is_meant: impl Fn(TaskId) -> bool) {
        let Some(root) = self.store.project(id).map(|known| known.root().to_path_buf()) else { return };
        let mut runs = run_meta::all(&self.context.state);
        let host = self.context.state.host();
        runs.retain(|(_, meta)| meta.host == host && meta.root == former.root && is_meant(TaskId(meta.task)));
        for (dir, mut meta) in runs {
            meta.root.clone_from(&root);
            if let Err(cause) = meta.write(&dir) {
                tracing::warn!(run = %meta.run, %cause, "a run of a moved project is not known at its new place");
                continue;
            }
            let key = TaskKey { project: id.clone(), task: TaskId(meta.task) };
            self.runs.history.remove(&TaskKey { project: former.id.clone(), task: key.task });
            let is_owned = self.store.task(&key).is_some_and(|task| task.name.slug.as_str() == meta.slug);
            if meta.shell.is_some() {
                self.runs.shells.move_past(&former.id, &key, meta);
            } else if is_owned {
                self.runs.history.entry(key.clone()).or_default().push(meta);
                self.touch_index(&key);
            }
        }
    }
}
