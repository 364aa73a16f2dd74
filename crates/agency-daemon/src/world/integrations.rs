//! Merges and syncs: a task's work goes into its base, or the base's new commits come into the task's workspace.
//!
//! Both run git with the user's hooks and may take long, so they run beside the loop, and the task is occupied
//! meanwhile. The daemon records an integration before it begins. If the daemon is killed, the next one finds out what
//! became of it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::time::{Duration, Instant};

use agency_api::event::{ErrorEvent, MergeTakenBackEvent, MergedEvent, SyncedEvent};
use agency_api::method::Caller;
use agency_api::work::{
    MergeHow, MergeObstacle, MergeParams, MergeStep, Merged, SyncHow, SyncParams, Synced,
};
use agency_api::{Bytes, Failure, FailureCode, method};
use agency_core::ids::{ProjectId, TaskId, TaskKey};
use agency_core::supervisor::{Event, Operation, Outcome, Refusal, Verdict};
use agency_core::task_status::TaskStatus;
use agency_run::blocking::blocking;
use agency_run::environment;
use agency_server::Reply;
use agency_store::clock;
use agency_work::failure::AsFailure;
use agency_work::setup_commands::format_command;
use agency_workspace::{
    Environment, MergeMethod, MergeOutcome, MergeRequest, OperationCause, OperationError, Project,
    RecoveredMerge, TakenBack, ToolError, UndoneMerge, Vcs, WorkspaceName,
};
use tokio::task::JoinHandle;

use super::loop_event::{FinishedMerge, InspectedMerge, IntegrationEvent, LoopEvent};
use super::operations::Current;
use super::router::Router;
use super::{Pending, World};

/// A hook of the user's may take longer. The next daemon settles that integration.
const ENDED_WITHIN: Duration = Duration::from_secs(10);

/// For a commit for which the caller gives no message.
const LONGEST_SUBJECT: usize = 72;

const SHORT_COMMIT: usize = 10;

/// The beginning of every hint after a merge that changed nothing.
const UNCHANGED: &str = "nothing was changed; ";

pub(super) fn register(router: &mut Router) {
    router.on_reply(method::TaskSync, World::sync);
}

impl World {
    pub(super) fn on_integration(&mut self, event: IntegrationEvent) {
        match event {
            IntegrationEvent::MergeInspected { key, params, requester, inspected } => {
                self.on_merge_inspected(key, params, requester, inspected)
            }
            IntegrationEvent::MergeOver { key, reply, outcome } => self.on_merge_over(key, reply, outcome),
            IntegrationEvent::SyncOver { key, reply, outcome } => self.on_sync_over(&key, reply, outcome),
            IntegrationEvent::MergeUndone { key, entry, reply, undone } => {
                self.on_merge_undone(&key, entry, reply, undone)
            }
        }
    }

    fn sync(&mut self, (key, params): (TaskKey, SyncParams), reply: Reply<Synced>) {
        let allowed =
            self.check_status_for_sync(&key).and_then(|()| self.begin_operation(&key, Operation::Sync));
        let cannot = format!("cannot sync task {}", self.name_of(&key));
        let begun = allowed.map_err(|failure| failure.within(cannot)).and_then(|()| {
            let recorded = self.record_integration(&key, &params.caller, Operation::Sync);
            recorded.inspect_err(|_| self.finish_operation(&key, Operation::Sync))
        });
        let integration = match begun {
            Ok(integration) => integration,
            Err(failure) => return reply.send(Err(failure)),
        };
        let base = self.base_of(&key);
        let work = move || integration.sync(base.as_deref(), params.how);
        self.integrate(key, work, |key, outcome| IntegrationEvent::SyncOver { key, reply, outcome });
    }

    /// Runs the merge or sync beside the loop. `over` makes the event that reports its outcome.
    fn integrate<T: Send + 'static>(
        &mut self,
        key: TaskKey,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
        over: impl FnOnce(TaskKey, Result<T, Failure>) -> IntegrationEvent + Send + 'static,
    ) {
        let (of, reporter) = (key.clone(), self.context.reporter.clone());
        let task = tokio::spawn(async move {
            let outcome = blocking(work).await;
            reporter.report(LoopEvent::Integration(Box::new(over(of, outcome)))).await;
        });
        self.set_current(&key, Some(Current::Integrating(task)));
    }

    /// Occupies the task, then records what is about to happen to its workspace.
    pub(super) fn begin_integration(
        &mut self,
        key: &TaskKey,
        params: &MergeParams,
        operation: Operation,
    ) -> Result<Integration, Failure> {
        let cannot = format!("cannot merge task {}", self.name_of(key));
        let begun = match params.interrupt {
            true => self.begin_operation_at_rest(key, operation),
            false => self.begin_operation(key, operation),
        };
        begun.map_err(|failure| failure.within(cannot))?;
        let recorded = self.record_integration(key, &params.caller, operation);
        recorded.inspect_err(|_| self.finish_operation(key, operation))
    }

    pub(super) fn carry_out_merge(
        &mut self,
        key: TaskKey,
        integration: Integration,
        params: MergeParams,
        reply: Reply<Merged>,
    ) {
        let (subject, base) = (self.subject(&key), self.base_of(&key));
        let work = move || integration.merge(&params, base, &subject);
        self.integrate(key, work, |key, outcome| IntegrationEvent::MergeOver { key, reply, outcome });
    }

    fn check_status_for_sync(&self, key: &TaskKey) -> Result<(), Failure> {
        match self.supervisor.status(key) {
            Some(TaskStatus::Merged) => {
                Err(Failure::new("it is already merged").code(FailureCode::WrongStatus).hint(format!(
                    "start new work with `agency new`; `agency rm {}` removes this task",
                    key.task
                )))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn name_of(&self, key: &TaskKey) -> String {
        self.store.task(key).map_or_else(|| key.task.to_string(), |task| task.name.to_string())
    }

    /// From now on the next daemon ends every process that git or a hook starts there, if this daemon is killed.
    pub(super) fn record_integration(
        &mut self,
        key: &TaskKey,
        caller: &Caller,
        operation: Operation,
    ) -> Result<Integration, Failure> {
        let run = self.workspace_run(key)?;
        let merging = operation != Operation::Sync;
        let written = self.workspaces.records.change(key, |record| {
            record.run = Some(run.clone());
            record.at_work = true;
            record.merging = merging;
            record.syncing = !merging;
        });
        written.map_err(|err| {
            Failure::new("cannot record what happens to the workspace")
                .code(FailureCode::IoError)
                .caused_by(&err)
        })?;
        self.integration_of(key, caller)
    }

    pub(super) fn integration_of(&mut self, key: &TaskKey, caller: &Caller) -> Result<Integration, Failure> {
        let (project, name) = self.workspace_of(key)?;
        let environment = environment_with(caller, &self.workspace_run(key)?);
        let has_agent = self.supervisor.live_run(key).is_some();
        Ok(Integration { project, name, environment, has_agent, is_agent_stopped: false })
    }

    /// The first line of the task's text: the subject of a commit for which the caller gives no message.
    pub(super) fn subject(&self, key: &TaskKey) -> String {
        let body = self.store.file(key).map(|file| String::from_utf8_lossy(file.body()).into_owned());
        let first = body.unwrap_or_default();
        let first =
            first.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
        first.map_or_else(|| self.name_of(key), shorten)
    }

    pub(super) fn on_merge_over(
        &mut self,
        key: TaskKey,
        reply: Reply<Merged>,
        outcome: Result<FinishedMerge, Failure>,
    ) {
        self.finish_integration(&key, Operation::Merge);
        match outcome {
            Ok(merge) => {
                self.announce_merged(&key, &merge.merged);
                self.write_target(&key, &merge.merged.into);
                let ticket = self.ticket(Pending::Merge { key: key.clone(), merge, reply });
                self.decide(Event::Mark { key, ticket, verdict: Verdict::Merged });
            }
            Err(failure) => {
                self.strike_integration(&key);
                reply.send(Err(failure));
            }
        }
    }

    pub(super) fn on_sync_over(
        &mut self,
        key: &TaskKey,
        reply: Reply<Synced>,
        outcome: Result<agency_workspace::Synced, Failure>,
    ) {
        self.finish_integration(key, Operation::Sync);
        self.strike_integration(key);
        reply.send(outcome.and_then(|synced| {
            self.announce_synced(key, &synced);
            let agency_workspace::Synced { base, commits, before, after, trash_ref: kept } = synced;
            Ok(Synced { task: self.view(key)?, base, commits, before, after, kept })
        }));
    }

    pub(super) fn finish_integration(&mut self, key: &TaskKey, operation: Operation) {
        self.record_no_commands(key);
        self.finish_operation(key, operation);
        self.plan_conflict_scan(&key.project);
    }

    fn announce_synced(&mut self, key: &TaskKey, synced: &agency_workspace::Synced) {
        if synced.commits > 0 {
            let agency_workspace::Synced { base, commits, before, after, trash_ref: _ } = synced.clone();
            self.announce(Some(key), None, SyncedEvent { base, commits, before, after });
        }
    }

    fn announce_merged(&mut self, key: &TaskKey, merged: &agency_workspace::Merged) {
        let event = MergedEvent {
            into: Some(merged.into.clone()),
            before: Some(merged.before.clone()),
            after: Some(merged.after.clone()),
            cut_off: false,
        };
        self.announce(Some(key), None, event);
    }

    /// The base has the work, and the supervisor has marked the task as merged or refused to.
    pub(super) fn answer_merge(
        &mut self,
        key: &TaskKey,
        merge: FinishedMerge,
        reply: Reply<Merged>,
        outcome: Result<Outcome, Refusal>,
    ) {
        let FinishedMerge { merged, committed, stopped } = merge;
        let unwritten = self.starts.failures.remove(key).map_or(Ok(()), Err);
        let marked = outcome.map_err(|refusal| self.refusal_failure(refusal)).and(unwritten);
        let mut notes = self.earlier_cut_off(key);
        if marked.is_ok() {
            self.strike_integration(key);
            self.mark_cut_off(key, None);
            self.plan_conflict_scan(&key.project);
        }
        let agency_workspace::Merged { into, before, after, checkout, notes: of_merge } = merged;
        notes.extend(of_merge);
        let words = format!("{into} has the work of task {}, but the task is not marked as merged", key.task);
        reply.send(marked.map_err(|cause| cause.within(words)).and_then(|()| {
            Ok(Merged {
                task: self.view(key)?,
                into,
                before,
                after,
                checkout: checkout.map(Bytes::from),
                committed,
                stopped,
                notes,
            })
        }));
    }

    fn earlier_cut_off(&self, key: &TaskKey) -> Vec<String> {
        let since = self.workspaces.records.get(key).merge_cut_off;
        let note = |since| format!("an earlier merge was interrupted, and Agency undid it: {since}");
        since.map(note).into_iter().collect()
    }

    fn write_target(&mut self, key: &TaskKey, into: &str) {
        self.workspaces.merged_at.insert(key.clone(), Instant::now());
        if let Err(cause) =
            self.workspaces.records.change(key, |record| record.merged_into = Some(into.to_owned()))
        {
            tracing::warn!(task = %key, %cause, "cannot record where a task was merged");
        }
    }

    /// Tasks whose merge the user undid are not merged any more.
    pub(super) fn take_merges_back(&mut self, project: &ProjectId, taken_back: &TakenBack) {
        for name in &taken_back.workspaces {
            let Ok(task) = name.task_id().parse() else { continue };
            let key = TaskKey { project: project.clone(), task: TaskId(task) };
            let is_its = self.workspace_of(&key).is_ok_and(|(_, own)| own == *name);
            // The check may have begun before a new merge of the same task ended.
            let is_newer =
                self.workspaces.merged_at.get(&key).is_some_and(|at| Some(*at) >= taken_back.checked_at);
            if is_its && !is_newer && self.supervisor.status(&key) == Some(TaskStatus::Merged) {
                self.take_merge_back(key);
            }
        }
    }

    pub(super) fn take_merge_back(&mut self, key: TaskKey) {
        tracing::warn!(task = %key, "the target of a merge no longer has it; the task is not merged any more");
        self.announce(Some(&key), None, MergeTakenBackEvent { kept: None });
        if let Err(cause) = self.workspaces.records.change(&key, |record| record.merged_into = None) {
            tracing::warn!(task = %key, %cause, "cannot record that a merge was undone");
        }
        let ticket = self.ticket(Pending::Mark { key: key.clone(), reply: Reply::without_caller() });
        self.decide(Event::Mark { key, ticket, verdict: Verdict::MergeTakenBack });
    }

    /// Records that a restore begins: if this daemon is killed, the next one completes it.
    pub(super) fn record_restore(&mut self, key: &TaskKey) -> Result<(), Failure> {
        if self.store.task(key).is_none() {
            return Ok(());
        }
        let written = self.workspaces.records.change(key, |record| record.syncing = true);
        written.map_err(|err| {
            Failure::new("cannot record what happens to the workspace")
                .code(FailureCode::IoError)
                .caused_by(&err)
        })
    }

    /// Strikes the merge, the sync or the restore out of the workspace's record.
    pub(super) fn strike_integration(&mut self, key: &TaskKey) {
        let struck = self.workspaces.records.change(key, |record| {
            record.merging = false;
            record.syncing = false;
        });
        if let Err(cause) = struck {
            tracing::warn!(task = %key, %cause, "cannot record that a merge or a sync is over");
        }
    }

    /// Finishes or undoes every merge and sync that an earlier daemon had begun when it was killed, and marks the tasks.
    pub(super) async fn settle_integrations(&mut self) {
        self.settle_syncs().await;
        let cut: Vec<TaskKey> = self
            .workspaces
            .records
            .all()
            .filter(|(_, record)| record.merging)
            .map(|(key, _)| key.clone())
            .collect();
        let mut recovered: HashMap<ProjectId, Vec<RecoveredMerge>> = HashMap::new();
        for key in cut {
            let Ok((project, name)) = self.workspace_of(&key) else { continue };
            // One call recovers all merges of a project.
            let mut known = recovered.remove(&key.project).unwrap_or_default();
            let settled = blocking(move || {
                known.extend(
                    agency_workspace::recover_integrations(&project).map_err(|err| err.as_failure())?,
                );
                Ok((find_outcome(&project, &name, &known)?, known))
            });
            match settled.await {
                Ok((settled, known)) => {
                    recovered.insert(key.project.clone(), known);
                    self.settle_merge(key, settled);
                }
                // The next merge or the next daemon tries again.
                Err(failure) => {
                    tracing::error!(task = %key, cause = %failure, "cannot finish or undo an interrupted merge");
                    let message = "cannot finish or undo an interrupted merge";
                    self.announce(Some(&key), None, ErrorEvent::new(message, failure.to_string()));
                }
            }
        }
    }

    /// No caller waits for the outcome: the workspace is as before, or synced.
    async fn settle_syncs(&mut self) {
        let cut: Vec<TaskKey> = self
            .workspaces
            .records
            .all()
            .filter(|(_, record)| record.syncing)
            .map(|(key, _)| key.clone())
            .collect();
        for key in cut {
            let Ok((project, _)) = self.workspace_of(&key) else { continue };
            let settled =
                blocking(move || agency_workspace::recover_syncs(&project).map_err(|err| err.as_failure()));
            match settled.await {
                Ok(()) => self.strike_integration(&key),
                // The next sync, merge or daemon tries again.
                Err(failure) => {
                    tracing::error!(task = %key, cause = %failure, "cannot finish or undo an interrupted sync");
                    let message = "cannot finish or undo an interrupted sync";
                    self.announce(Some(&key), None, ErrorEvent::new(message, failure.to_string()));
                }
            }
        }
    }

    fn settle_merge(&mut self, key: TaskKey, settled: Settled) {
        tracing::warn!(task = %key, ?settled, "a merge was interrupted");
        match settled {
            Settled::Merged { into } => {
                let event = MergedEvent { into: into.clone(), cut_off: true, ..MergedEvent::default() };
                self.announce(Some(&key), None, event);
                if let Some(into) = into {
                    self.write_target(&key, &into);
                }
                let ticket = self.ticket(Pending::Mark { key: key.clone(), reply: Reply::without_caller() });
                self.decide(Event::Mark { key: key.clone(), ticket, verdict: Verdict::Merged });
                self.mark_cut_off(&key, None);
            }
            Settled::TakenBack { kept } => {
                self.announce(Some(&key), None, MergeTakenBackEvent { kept });
                self.mark_cut_off(&key, Some(clock::timestamp()));
            }
        }
        self.strike_integration(&key);
    }

    /// The caller of that merge got no answer, so the task shows until the next merge that it was cut off.
    pub(super) fn mark_cut_off(&mut self, key: &TaskKey, since: Option<String>) {
        if let Err(cause) = self.workspaces.records.change(key, |record| record.merge_cut_off = since) {
            tracing::warn!(task = %key, %cause, "cannot record that a merge was interrupted");
        }
    }
}

/// The daemon leaves, and gives merges and syncs some time to end.
pub(super) async fn await_integrations(tasks: Vec<JoinHandle<()>>) {
    let deadline = tokio::time::Instant::now() + ENDED_WITHIN;
    for task in tasks {
        if tokio::time::timeout_at(deadline, task).await.is_err() {
            tracing::warn!("a merge or a sync does not end; the next daemon will settle it");
        }
    }
}

/// Cuts a long line, at the end of a word where possible.
fn shorten(line: &str) -> String {
    if line.chars().count() <= LONGEST_SUBJECT {
        return line.to_owned();
    }
    let cut: String = line.chars().take(LONGEST_SUBJECT - 1).collect();
    let whole = cut.rfind(char::is_whitespace).map_or(cut.as_str(), |at| &cut[..at]);
    format!("{}…", whole.trim_end())
}

/// A merge or a sync, with the environment of its caller.
pub(super) struct Integration {
    project: Project,
    name: WorkspaceName,
    environment: Environment,
    has_agent: bool,
    /// This merge has stopped the agent.
    is_agent_stopped: bool,
}

impl Integration {
    /// The same merge, after it has stopped the agent.
    pub(super) fn after_stop(self) -> Self {
        Integration { has_agent: false, is_agent_stopped: true, ..self }
    }

    /// Blocking. Everything that git or jj has against the merge.
    pub(super) fn inspect(
        &self,
        params: &MergeParams,
        base: Option<String>,
        subject: &str,
    ) -> Result<InspectedMerge, Failure> {
        let request = merge_request(params, base, subject);
        let inspection = agency_workspace::inspect_merge(&self.open()?, &self.name, &request);
        let uncommitted = inspection.uncommitted.map(|work| MergeObstacle {
            code: FailureCode::UncommittedWork,
            text: work.to_string(),
            step: Some(MergeStep::Commit),
            hint: None,
        });
        let refusals = inspection.refusals.iter().map(|refusal| self.obstacle(refusal, params));
        let obstacles = uncommitted.into_iter().chain(refusals).collect();
        Ok(InspectedMerge { into: inspection.into, obstacles })
    }

    /// Blocking.
    pub(super) fn undo_merge(&self) -> Result<UndoneMerge, Failure> {
        agency_workspace::undo_merge(&self.open()?, &self.name).map_err(|err| err.as_failure())
    }

    fn obstacle(&self, refusal: &OperationError, params: &MergeParams) -> MergeObstacle {
        let Failure { code, message, causes, hint } = self.merge_failed(refusal, params);
        let text = if causes.is_empty() { message } else { causes.join(": ") };
        MergeObstacle { code, text, step: None, hint }
    }

    /// Blocking.
    fn merge(
        self,
        params: &MergeParams,
        base: Option<String>,
        subject: &str,
    ) -> Result<FinishedMerge, Failure> {
        let request = merge_request(params, base, subject);
        let committed = match params.commit {
            true => self.commit(&request, params, params.message.as_deref().unwrap_or(subject)),
            false => Ok(None),
        };
        let stopped = self.is_agent_stopped;
        let committed = committed.map_err(|failure| mention_steps(failure, stopped, None))?;
        let merged = agency_workspace::merge(&self.open()?, &self.name, &request)
            .map_err(|err| mention_steps(self.merge_failed(&err, params), stopped, committed.as_deref()))?;
        Ok(FinishedMerge { merged, committed, stopped })
    }

    /// Commits the files in the workspace, but not if the merge would be refused anyway.
    fn commit(
        &self,
        request: &MergeRequest,
        params: &MergeParams,
        message: &str,
    ) -> Result<Option<String>, Failure> {
        let (project, failed) = (self.open()?, |err: OperationError| self.merge_failed(&err, params));
        agency_workspace::check_merge(&project, &self.name, request).map_err(failed)?;
        agency_workspace::commit_all(&project, &self.name, message).map_err(failed)
    }

    /// Blocking.
    fn sync(self, base: Option<&str>, how: SyncHow) -> Result<agency_workspace::Synced, Failure> {
        let (way, by) = match how {
            SyncHow::Rebase => (agency_workspace::SyncMethod::Rebase, MergeHow::Rebase),
            SyncHow::Merge => (agency_workspace::SyncMethod::Merge, MergeHow::Merge),
        };
        let synced = agency_workspace::sync(&self.open()?, &self.name, base, way);
        synced.map_err(|err| match &err.cause {
            OperationCause::Conflicts { with, .. } => err.as_failure().hint(self.resolve_by_hand(with, by)),
            _ => err.as_failure(),
        })
    }

    fn merge_failed(&self, error: &OperationError, params: &MergeParams) -> Failure {
        let (failure, name) = (error.as_failure(), &self.name);
        let again = merge_command(name.as_str(), params);
        match &error.cause {
            OperationCause::HasWork(work) => {
                let them = work.pronoun();
                failure.hint(format!(
                    "`{again} --commit` commits {them} first; `agency diff {name}` shows {them}"
                ))
            }
            OperationCause::NothingNew { .. } => {
                failure.hint(format!("remove it with `agency rm {}`", name.task_id()))
            }
            OperationCause::Conflicts { with, .. } => {
                failure.hint(format!("{}; then `{again}` again", self.resolve_by_hand(with, params.how)))
            }
            OperationCause::Git(ToolError::Failed { .. }) if failure.hint.is_none() => {
                failure.hint(format!("{UNCHANGED}git or a hook of yours refused it, for the reason above"))
            }
            _ => failure,
        }
    }

    /// How to resolve a conflict: run the same merge or rebase in the workspace, where the user can see it.
    fn resolve_by_hand(&self, with: &str, how: MergeHow) -> String {
        let path = agency_workspace::workspace_path(&self.project, &self.name);
        let path = format_command(&[path.into_os_string()]);
        let command = match (self.project.vcs(), how) {
            (Vcs::Jj, MergeHow::Rebase) => {
                format!("jj rebase -s \"roots({with}..@ ~ ::default@)\" -d {with}")
            }
            (Vcs::Jj, _) => format!("jj new @ {with}"),
            (Vcs::Git | Vcs::Plain, MergeHow::Rebase) => format!("git rebase {with}"),
            (Vcs::Git | Vcs::Plain, _) => format!("git merge {with}"),
        };
        let (name, words) = (&self.name, format!("'{command}, resolve the conflicts and commit'"));
        let message = match self.has_agent {
            true => format!("agency send {name} {words}"),
            false => format!("agency send --queue {name} {words} && agency start {name}"),
        };
        format!(
            "{UNCHANGED}resolve it in the workspace and commit: cd {path} && {command}; or let the agent: {message}"
        )
    }

    /// The same project, with the caller's environment.
    fn open(&self) -> Result<Project, Failure> {
        let (root, vcs) = (self.project.root(), self.project.vcs());
        Project::open_with(root, Some(vcs), self.environment.clone()).map_err(|err| err.as_failure())
    }
}

/// The merge failed, but steps before it were taken: say so.
fn mention_steps(failure: Failure, stopped: bool, commit: Option<&str>) -> Failure {
    let done = match (stopped, commit.is_some()) {
        (false, false) => return failure,
        (true, false) => "only its agent was stopped",
        (false, true) => "only the commit was made",
        (true, true) => "only its agent was stopped and the commit was made",
    };
    let hint = failure.hint.as_deref().map(|hint| match hint.strip_prefix(UNCHANGED) {
        Some(way) => format!("{done}; {way}"),
        None => hint.to_owned(),
    });
    let failure = Failure { hint, ..failure };
    let failure = match stopped {
        true => failure.because("its agent was stopped before the merge"),
        false => failure,
    };
    let Some(commit) = commit else { return failure };
    let short = commit.get(..SHORT_COMMIT).unwrap_or(commit);
    failure.because(format!("its files are committed in the workspace: {short}"))
}

fn merge_request(params: &MergeParams, base: Option<String>, subject: &str) -> MergeRequest {
    MergeRequest {
        how: how(params.how),
        into: params.into.clone(),
        base,
        message: params.message.clone(),
        title: Some(subject.to_owned()),
    }
}

/// The same merge, as a command.
pub(super) fn merge_command(name: &str, params: &MergeParams) -> String {
    let into = params.into.as_ref().map(|into| format!(" --into {into}")).unwrap_or_default();
    format!("agency merge {name}{}{into}", option(params.how))
}

fn option(how: MergeHow) -> &'static str {
    match how {
        MergeHow::Merge => "",
        MergeHow::Squash => " --squash",
        MergeHow::Rebase => " --rebase",
        MergeHow::FastForward => " --ff",
    }
}

fn how(how: MergeHow) -> MergeMethod {
    match how {
        MergeHow::Merge => MergeMethod::Merge,
        MergeHow::Squash => MergeMethod::Squash,
        MergeHow::Rebase => MergeMethod::Rebase,
        MergeHow::FastForward => MergeMethod::FastForward,
    }
}

/// The caller's environment, or the daemon's if the caller sends none. `AGENCY_RUN_ID` marks every process that git
/// starts.
fn environment_with(caller: &Caller, run: &str) -> Environment {
    let mut variables: Vec<(OsString, OsString)> = match caller.env.is_empty() {
        true => std::env::vars_os().collect(),
        false => {
            let pairs = caller.env.iter();
            pairs.map(|(name, value)| (name.as_os_str().to_owned(), value.as_os_str().to_owned())).collect()
        }
    };
    variables.retain(|(name, _)| name != environment::RUN_ID);
    variables.push((environment::RUN_ID.into(), run.into()));
    Environment::of(variables)
}

/// The outcome of a merge that was cut off.
#[derive(Debug, PartialEq)]
enum Settled {
    Merged {
        into: Option<String>,
    },
    /// The base is as before. `kept` is the hidden ref of files that were in the base's checkout.
    TakenBack {
        kept: Option<String>,
    },
}

/// Blocking. If there was nothing to recover, the branch shows whether the merge was done.
fn find_outcome(
    project: &Project,
    name: &WorkspaceName,
    recovered: &[RecoveredMerge],
) -> Result<Settled, Failure> {
    if let Some(settled) = recovered_outcome(name, recovered) {
        return Ok(settled);
    }
    let is_merged = agency_workspace::is_merged(project, name).map_err(|err| err.as_failure())?;
    Ok(if is_merged { Settled::Merged { into: None } } else { Settled::TakenBack { kept: None } })
}

fn recovered_outcome(name: &WorkspaceName, recovered: &[RecoveredMerge]) -> Option<Settled> {
    let own = recovered.iter().find(|one| one.workspace == *name)?;
    Some(match &own.outcome {
        MergeOutcome::Merged => Settled::Merged { into: Some(own.into.clone()) },
        MergeOutcome::RolledBack { trash_ref: kept } => Settled::TakenBack { kept: kept.clone() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recovered_outcome_decides_and_not_the_branch() {
        let name = |id| WorkspaceName::new(id, "fix").unwrap();
        let one = |id, outcome| RecoveredMerge { workspace: name(id), into: "main".to_owned(), outcome };
        let kept = Some("refs/agency/trash/2-fix-1".to_owned());
        let recovered =
            [one(1, MergeOutcome::Merged), one(2, MergeOutcome::RolledBack { trash_ref: kept.clone() })];
        assert_eq!(
            recovered_outcome(&name(1), &recovered),
            Some(Settled::Merged { into: Some("main".to_owned()) })
        );
        assert_eq!(recovered_outcome(&name(2), &recovered), Some(Settled::TakenBack { kept }));
        assert_eq!(recovered_outcome(&name(3), &recovered), None);
    }
}
