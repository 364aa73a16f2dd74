//! Taking a task's work over into its base, and the base's new commits into a task.
//!
//! Both run git with the user's hooks, so both take their time: meanwhile nothing else begins in that workspace.
//! That a merge is under way is written down first, so a daemon that is killed leaves it to the next one to find
//! out what became of it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::time::Duration;

use agency_api::event::{ErrorEvent, MergeTakenBackEvent, MergedEvent, SyncedEvent};
use agency_api::method::Caller;
use agency_api::work::{MergeHow, MergeParams, Merged, SyncHow, SyncParams, Synced};
use agency_api::{Bytes, Failure};
use agency_core::evidence::Why;
use agency_core::ids::{ProjectId, TaskKey};
use agency_core::supervisor::{Event, Outcome, Refusal, Verdict};
use agency_core::task_status::TaskStatus;
use agency_run::environment;
use agency_store::clock;
use agency_workspace::{
    Environment, MergeMethod, MergeOutcome, MergeRequest, OperationCause, OperationError, Project,
    RecoveredMerge, ToolError, Vcs, WorkspaceName,
};
use tokio::task::JoinHandle;

use super::effects::refused;
use super::{Pending, World};
use crate::discarded::operation_failure;
use crate::happening::{Answer, Happening, Landed, TaskCall};
use crate::{chore, rpc};

/// A hook of the user's may take longer; the next daemon sees to that.
const ENDED_WITHIN: Duration = Duration::from_secs(10);

/// Of a commit for which nobody gave a message.
const LONGEST_SUBJECT: usize = 72;

const SHORT_COMMIT: usize = 10;

/// How the way out of a merge begins that left everything as it was.
const UNCHANGED: &str = "nothing was changed; ";

impl World {
    pub(super) fn merge(&mut self, task: TaskCall, params: MergeParams, answer: Answer) {
        let prepared = self.find(task).and_then(|key| {
            self.may_merge(&key)?;
            let place = self.land(&key, &params.caller, true)?;
            let (subject, base) = (self.subject(&key), self.base_of(&key));
            Ok((key, move || place.merge(&params, base, &subject)))
        });
        self.begin_landing(prepared, answer);
    }

    pub(super) fn sync(&mut self, task: TaskCall, params: SyncParams, answer: Answer) {
        let prepared = self.find(task).and_then(|key| {
            self.may_sync(&key)?;
            let place = self.land(&key, &params.caller, false)?;
            let base = self.base_of(&key);
            Ok((key, move || place.sync(base.as_deref(), params.how)))
        });
        self.begin_landing(prepared, answer);
    }

    fn begin_landing<W>(&mut self, prepared: Result<(TaskKey, W), Failure>, answer: Answer)
    where
        W: FnOnce() -> Result<Landed, Failure> + Send + 'static,
    {
        let (key, work) = match prepared {
            Ok(prepared) => prepared,
            Err(failure) => return answer.give(Err(failure)),
        };
        let (of, reporter) = (key.clone(), self.ground.reporter.clone());
        let task = tokio::spawn(async move {
            let outcome = rpc::blocking(work).await;
            reporter.report(Happening::Landed { key: of, answer, outcome }).await;
        });
        self.landings.insert(key, task);
    }

    /// Only what somebody has found good, and only while nobody works on it.
    fn may_merge(&self, key: &TaskKey) -> Result<(), Failure> {
        let refuse =
            |cause: String| Failure::new(format!("cannot merge task {}", self.name_of(key))).because(cause);
        let status = self.supervisor.status(key).unwrap_or(TaskStatus::Draft);
        let id = key.task;
        match status {
            TaskStatus::Completed | TaskStatus::Reviewed => {}
            TaskStatus::Merged => return Err(refuse("it is merged already".to_owned())),
            status => {
                let cause = format!("it is {status}, and only completed and reviewed tasks are merged");
                let way = format!(
                    "`agency complete {id}` says that its work is done, `agency review {id} --accept` that you have looked at it"
                );
                return Err(refuse(cause).hint(way));
            }
        }
        if self.supervisor.live_run(key).is_some() {
            return Err(refuse("its agent is still there".to_owned()).hint(format!("agency stop {id}")));
        }
        if self.queue.of(key).next().is_some() {
            let way =
                format!("`agency start {id}` brings it back to them, `agency queue drop {id}` drops them");
            return Err(refuse("remarks or texts are held that its agent has not seen".to_owned()).hint(way));
        }
        self.nothing_left_of(key)?;
        self.may_land(key)
    }

    /// An agent in the middle of its turn must not have its files changed under it.
    fn may_sync(&self, key: &TaskKey) -> Result<(), Failure> {
        if self.supervisor.status(key) == Some(TaskStatus::Merged) {
            return Err(Failure::new(format!("cannot sync task {}", self.name_of(key)))
                .because("it is merged, and that is final")
                .hint(format!("`agency new` begins another; `agency rm {}` removes this one", key.task)));
        }
        let live = self.supervisor.live_run(key).and_then(|run| self.runs.get(run));
        let rests = |(_, why)| why != Why::Permission;
        if live.is_some_and(|live| !live.standing.state.waiting().is_some_and(rests)) {
            return Err(Failure::new(format!("cannot sync task {}", self.name_of(key)))
                .because("its agent is at work in those files")
                .hint(format!("`agency wait {0}` until it has done, or `agency stop {0}`", key.task)));
        }
        self.may_land(key)
    }

    fn may_land(&self, key: &TaskKey) -> Result<(), Failure> {
        let doing = self.supervisor.occupation(key);
        if doing.is_busy() {
            return Err(Failure::new(format!("task {} is {doing}", key.task)).hint("try again in a moment"));
        }
        if let Some(host) = self.elsewhere.get(key) {
            return Err(
                Failure::new(format!("task {} runs on {host}", self.name_of(key))).hint("use `agency` there")
            );
        }
        self.not_being_removed(key)?;
        self.not_landing(key)
    }

    /// Nothing begins in a workspace whose work is on its way.
    pub(super) fn not_landing(&self, key: &TaskKey) -> Result<(), Failure> {
        match self.landings.contains_key(key) {
            true => Err(Failure::new(format!("task {} is being merged or synced", key.task))
                .hint("try again in a moment")),
            false => Ok(()),
        }
    }

    fn name_of(&self, key: &TaskKey) -> String {
        self.store.task(key).map_or_else(|| key.task.to_string(), |task| task.name.to_string())
    }

    /// Written down: what is started there from here on is ended by whoever comes after us.
    fn land(&mut self, key: &TaskKey, caller: &Caller, merging: bool) -> Result<Place, Failure> {
        let (project, name) = self.workspace_of(key)?;
        let run = self.workspace_run(key)?;
        let written = self.workspaces.change(key, |record| {
            record.run = Some(run.clone());
            record.at_work = true;
            record.merging = merging;
            record.syncing = !merging;
        });
        written.map_err(|err| {
            Failure::new("what is done with a workspace cannot be written down").caused_by(&err)
        })?;
        let has_agent = self.supervisor.live_run(key).is_some();
        Ok(Place { project, name, environment: environment_with(caller, &run), has_agent })
    }

    /// What a commit of a task's work is called when nobody says: its text's first line.
    fn subject(&self, key: &TaskKey) -> String {
        let body = self.store.file(key).map(|file| String::from_utf8_lossy(file.body()).into_owned());
        let first = body.unwrap_or_default();
        let first =
            first.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
        first.map_or_else(|| self.name_of(key), shortened)
    }

    pub(super) fn on_landed(&mut self, key: TaskKey, answer: Answer, outcome: Result<Landed, Failure>) {
        self.landings.remove(&key);
        self.rests(&key);
        self.look_at(&key.project);
        self.deliver_next(&key);
        match outcome {
            Ok(Landed::Merged { merged, committed }) => {
                self.announce_merged(&key, &merged);
                self.write_target(&key, &merged.into);
                let ticket = self.ticket(Pending::Merge { key: key.clone(), merged, committed, answer });
                self.decide(Event::Mark { key, ticket, verdict: Verdict::Merged });
            }
            Ok(Landed::Synced(synced)) => {
                self.strike_merging(&key);
                answer.give_as(self.synced(&key, synced));
            }
            Err(failure) => {
                self.strike_merging(&key);
                answer.give(Err(failure));
            }
        }
    }

    fn synced(&mut self, key: &TaskKey, synced: agency_workspace::Synced) -> Result<Synced, Failure> {
        if synced.commits > 0 {
            let agency_workspace::Synced { base, commits, before, after, trash_ref: _ } = synced.clone();
            self.announce(Some(key), None, SyncedEvent { base, commits, before, after });
        }
        let agency_workspace::Synced { base, commits, before, after, trash_ref: kept } = synced;
        Ok(Synced { task: self.view(key)?, base, commits, before, after, kept })
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

    /// The branch has moved; now the task says so too.
    pub(super) fn answer_merge(
        &mut self,
        key: &TaskKey,
        merged: agency_workspace::Merged,
        committed: Option<String>,
        answer: Answer,
        outcome: Result<Outcome, Refusal>,
    ) {
        let unwritten = self.failures.remove(key).map_or(Ok(()), Err);
        let said = outcome.map_err(refused).and(unwritten);
        let mut notes = self.earlier_cut_off(key);
        if said.is_ok() {
            self.strike_merging(key);
            self.mark_cut_off(key, None);
            self.look_at(&key.project);
        }
        let agency_workspace::Merged { into, before, after, checkout, notes: said_besides } = merged;
        notes.extend(said_besides);
        let words = format!("{into} has the work of task {}, but the task does not say so", key.task);
        answer.give_as(said.map_err(|cause| cause.within(words)).and_then(|()| {
            Ok(Merged {
                task: self.view(key)?,
                into,
                before,
                after,
                checkout: checkout.map(Bytes::from),
                committed,
                notes,
            })
        }));
    }

    fn earlier_cut_off(&self, key: &TaskKey) -> Vec<String> {
        let since = self.workspaces.get(key).merge_cut_off;
        let told = |since| format!("a merge before this one was cut off, and taken back: {since}");
        since.map(told).into_iter().collect()
    }

    fn write_target(&mut self, key: &TaskKey, into: &str) {
        if let Err(cause) = self.workspaces.change(key, |record| record.merged_into = Some(into.to_owned())) {
            tracing::warn!(task = %key, %cause, "where a task was merged is not kept");
        }
    }

    fn strike_merging(&mut self, key: &TaskKey) {
        let struck = self.workspaces.change(key, |record| {
            record.merging = false;
            record.syncing = false;
        });
        if let Err(cause) = struck {
            tracing::warn!(task = %key, %cause, "that a merge or a sync is over is not kept");
        }
    }

    /// Merges that a daemon before us did not live to see the end of: made whole or taken back, and the tasks follow.
    pub(super) async fn settle_merges(&mut self) {
        self.settle_syncs().await;
        let cut: Vec<TaskKey> =
            self.workspaces.all().filter(|(_, record)| record.merging).map(|(key, _)| key.clone()).collect();
        let mut recovered: HashMap<ProjectId, Vec<RecoveredMerge>> = HashMap::new();
        for key in cut {
            let Ok((project, name)) = self.workspace_of(&key) else { continue };
            // One look settles all merges of a project.
            let mut known = recovered.remove(&key.project).unwrap_or_default();
            let settled = rpc::blocking(move || {
                known.extend(
                    agency_workspace::recover_integrations(&project)
                        .map_err(|err| operation_failure(&err))?,
                );
                Ok((settled(&project, &name, &known)?, known))
            });
            match settled.await {
                Ok((settled, known)) => {
                    recovered.insert(key.project.clone(), known);
                    self.settle(key, settled);
                }
                // Left for the next try, by a merge or by a daemon.
                Err(failure) => {
                    tracing::error!(task = %key, cause = %failure, "a merge that was cut off cannot be settled");
                    let message = "a merge that was cut off cannot be settled";
                    self.announce(Some(&key), None, ErrorEvent::new(message, failure.to_string()));
                }
            }
        }
    }

    /// Nobody waits for what became of it: the workspace is as before, or synced.
    async fn settle_syncs(&mut self) {
        let cut: Vec<TaskKey> =
            self.workspaces.all().filter(|(_, record)| record.syncing).map(|(key, _)| key.clone()).collect();
        for key in cut {
            let Ok((project, _)) = self.workspace_of(&key) else { continue };
            let settled = rpc::blocking(move || {
                agency_workspace::recover_syncs(&project).map_err(|err| operation_failure(&err))
            });
            match settled.await {
                Ok(()) => self.strike_merging(&key),
                // Left for the next try, by a sync, a merge or a daemon.
                Err(failure) => {
                    tracing::error!(task = %key, cause = %failure, "a sync that was cut off cannot be settled");
                    let message = "a sync that was cut off cannot be settled";
                    self.announce(Some(&key), None, ErrorEvent::new(message, failure.to_string()));
                }
            }
        }
    }

    fn settle(&mut self, key: TaskKey, settled: Settled) {
        tracing::warn!(task = %key, ?settled, "a merge was cut off");
        match settled {
            Settled::Merged { into } => {
                let event = MergedEvent { into: into.clone(), cut_off: true, ..MergedEvent::default() };
                self.announce(Some(&key), None, event);
                if let Some(into) = into {
                    self.write_target(&key, &into);
                }
                let (answer, _) = tokio::sync::oneshot::channel();
                let ticket = self.ticket(Pending::Mark { key: key.clone(), answer: Answer(answer) });
                self.decide(Event::Mark { key: key.clone(), ticket, verdict: Verdict::Merged });
                self.mark_cut_off(&key, None);
            }
            Settled::TakenBack { kept } => {
                self.announce(Some(&key), None, MergeTakenBackEvent { kept });
                self.mark_cut_off(&key, Some(clock::timestamp()));
            }
        }
        self.strike_merging(&key);
    }

    /// Whoever asked for that merge was never answered: until the next one the task tells it.
    pub(super) fn mark_cut_off(&mut self, key: &TaskKey, since: Option<String>) {
        if let Err(cause) = self.workspaces.change(key, |record| record.merge_cut_off = since) {
            tracing::warn!(task = %key, %cause, "that a merge was cut off is not kept");
        }
    }

    /// The daemon leaves: what is on its way may arrive.
    pub(super) async fn await_landings(&mut self) {
        let landings: Vec<JoinHandle<()>> = self.landings.drain().map(|(_, task)| task).collect();
        let deadline = tokio::time::Instant::now() + ENDED_WITHIN;
        for task in landings {
            if tokio::time::timeout_at(deadline, task).await.is_err() {
                tracing::warn!("a merge or sync does not end; the next daemon will see to it");
            }
        }
    }
}

/// At the end of a word, if it must be.
fn shortened(line: &str) -> String {
    if line.chars().count() <= LONGEST_SUBJECT {
        return line.to_owned();
    }
    let cut: String = line.chars().take(LONGEST_SUBJECT - 1).collect();
    let whole = cut.rfind(char::is_whitespace).map_or(cut.as_str(), |at| &cut[..at]);
    format!("{}…", whole.trim_end())
}

/// Where work is taken from, with the environment of whoever asked.
struct Place {
    project: Project,
    name: WorkspaceName,
    environment: Environment,
    has_agent: bool,
}

impl Place {
    /// Blocking.
    fn merge(self, params: &MergeParams, base: Option<String>, subject: &str) -> Result<Landed, Failure> {
        let project = self.open()?;
        let message = params.message.as_deref();
        let request = MergeRequest {
            how: how(params.how),
            into: params.into.clone(),
            base,
            message: message.map(str::to_owned),
            title: Some(subject.to_owned()),
        };
        let committed = match params.commit {
            true => self.commit(&project, &request, params, message.unwrap_or(subject))?,
            false => None,
        };
        let merged = agency_workspace::merge(&project, &self.name, &request);
        let merged =
            merged.map_err(|err| but_committed(self.merge_failed(&err, params), committed.as_deref()))?;
        Ok(Landed::Merged { merged, committed })
    }

    /// Not for a merge of which it is known that it will be refused.
    fn commit(
        &self,
        project: &Project,
        request: &MergeRequest,
        params: &MergeParams,
        message: &str,
    ) -> Result<Option<String>, Failure> {
        let failed = |err: OperationError| self.merge_failed(&err, params);
        agency_workspace::check_merge(project, &self.name, request).map_err(failed)?;
        agency_workspace::commit_all(project, &self.name, message).map_err(failed)
    }

    /// Blocking.
    fn sync(self, base: Option<&str>, how: SyncHow) -> Result<Landed, Failure> {
        let (way, by) = match how {
            SyncHow::Rebase => (agency_workspace::SyncMethod::Rebase, MergeHow::Rebase),
            SyncHow::Merge => (agency_workspace::SyncMethod::Merge, MergeHow::Merge),
        };
        let synced = agency_workspace::sync(&self.open()?, &self.name, base, way);
        synced.map(Landed::Synced).map_err(|err| match &err.cause {
            OperationCause::Conflicts { with, .. } => {
                operation_failure(&err).hint(self.resolve_by_hand(with, by))
            }
            _ => operation_failure(&err),
        })
    }

    fn merge_failed(&self, error: &OperationError, params: &MergeParams) -> Failure {
        let (failure, name) = (operation_failure(error), &self.name);
        let into = params.into.as_ref().map(|into| format!(" --into {into}")).unwrap_or_default();
        let again = format!("agency merge {name}{}{into}", option(params.how));
        match &error.cause {
            OperationCause::HasWork(_) => failure
                .hint(format!("`{again} --commit` commits them first; `agency diff {name}` shows them")),
            OperationCause::NothingNew { .. } => {
                failure.hint(format!("if you merged it yourself: `agency rm {name}` loses nothing"))
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

    /// What really ends a conflict: the same in the workspace, where somebody can look at it.
    fn resolve_by_hand(&self, with: &str, how: MergeHow) -> String {
        let path = agency_workspace::workspace_path(&self.project, &self.name);
        let path = chore::shown(&[path.into_os_string()]);
        let command = match (self.project.vcs(), how) {
            (Vcs::Jj, MergeHow::Rebase) => {
                format!("jj rebase -s \"roots({with}..@ ~ ::default@)\" -d {with}")
            }
            (Vcs::Jj, _) => format!("jj new @ {with}"),
            (Vcs::Git | Vcs::Plain, MergeHow::Rebase) => format!("git rebase {with}"),
            (Vcs::Git | Vcs::Plain, _) => format!("git merge {with}"),
        };
        let (name, words) = (&self.name, format!("'{command}, resolve the conflicts and commit'"));
        let told = match self.has_agent {
            true => format!("agency send {name} {words}"),
            false => format!("agency send --queue {name} {words} && agency start {name}"),
        };
        format!(
            "{UNCHANGED}resolve it in the workspace and commit: cd {path} && {command}; or let the agent: {told}"
        )
    }

    /// The same project, with another environment.
    fn open(&self) -> Result<Project, Failure> {
        let (root, vcs) = (self.project.root(), self.project.vcs());
        Project::open_with(root, Some(vcs), self.environment.clone())
            .map_err(|err| Failure::from_error(&err, err.hint()))
    }
}

/// What did happen, if the merge did not.
fn but_committed(failure: Failure, commit: Option<&str>) -> Failure {
    let Some(commit) = commit else { return failure };
    let short = commit.get(..SHORT_COMMIT).unwrap_or(commit);
    let hint = failure.hint.as_deref().map(|hint| match hint.strip_prefix(UNCHANGED) {
        Some(way) => format!("only the commit was made; {way}"),
        None => hint.to_owned(),
    });
    Failure { hint, ..failure }.because(format!("its files are committed in the workspace: {short}"))
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

/// The caller's, or ours if it says nothing; and the name by which all that git starts is found again.
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

/// What became of a merge that was cut off.
#[derive(Debug, PartialEq)]
enum Settled {
    Merged {
        into: Option<String>,
    },
    /// Nothing has changed, or nothing any more; what was in the checkout is kept there.
    TakenBack {
        kept: Option<String>,
    },
}

/// Blocking. Where nothing was left to recover, the branch says it.
fn settled(
    project: &Project,
    name: &WorkspaceName,
    recovered: &[RecoveredMerge],
) -> Result<Settled, Failure> {
    if let Some(settled) = told(name, recovered) {
        return Ok(settled);
    }
    let is_merged = agency_workspace::is_merged(project, name).map_err(|err| operation_failure(&err))?;
    Ok(if is_merged { Settled::Merged { into: None } } else { Settled::TakenBack { kept: None } })
}

fn told(name: &WorkspaceName, recovered: &[RecoveredMerge]) -> Option<Settled> {
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
    fn what_was_recovered_decides_and_not_the_branch() {
        let name = |id| WorkspaceName::new(id, "fix").unwrap();
        let one = |id, outcome| RecoveredMerge { workspace: name(id), into: "main".to_owned(), outcome };
        let kept = Some("refs/agency/trash/2-fix-1".to_owned());
        let recovered =
            [one(1, MergeOutcome::Merged), one(2, MergeOutcome::RolledBack { trash_ref: kept.clone() })];
        assert_eq!(told(&name(1), &recovered), Some(Settled::Merged { into: Some("main".to_owned()) }));
        assert_eq!(told(&name(2), &recovered), Some(Settled::TakenBack { kept }));
        assert_eq!(told(&name(3), &recovered), None);
    }
}
