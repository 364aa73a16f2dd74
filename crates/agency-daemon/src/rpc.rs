//! JSON-RPC requests made into calls, and their outcomes into answers.
//!
//! Opening a project runs git, so it happens here and not in the loop.

use std::ffi::OsString;
use std::path::Path;

use agency_api::config::Scope;
use agency_api::method::{
    self, Caller, Method, Nothing, ProjectRef, TaskNewParams, TaskRef, TaskStartParams,
};
use agency_api::rpc::{ErrorObject, INVALID_PARAMS, METHOD_NOT_FOUND, Request};
use agency_api::{Bytes, Failure};
use agency_core::agent::Driver;
use agency_core::ids::RunId;
use agency_core::supervisor::Verdict;
use agency_driver::conversation::AgentSetting;
use agency_run::plan::Wish;
use agency_run::talk::Wanted;
use agency_workspace::{Environment, Project, Vcs, WorkspaceName};
use serde_json::Value;

use crate::happening::{Call, NewTask, Reporter, TaskCall};
use crate::traces;

pub async fn answer(reporter: &Reporter, request: Request) -> Result<Value, ErrorObject> {
    let Request { method, params, .. } = request;
    let call = match method.as_str() {
        method::TaskNew::NAME => {
            Call::New(Box::new(new_task(reporter, params_of::<method::TaskNew>(params)?).await?))
        }
        method::TaskList::NAME => {
            let params = params_of::<method::TaskList>(params)?;
            let project = match params.cwd {
                Some(cwd) => Some(open(cwd, None, Environment::inherited()).await?),
                None => None,
            };
            Call::List { project }
        }
        method::DaemonStatus::NAME => Call::Status,
        method::DaemonStop::NAME => {
            let params = params_of::<method::DaemonStop>(params)?;
            Call::Stop { agents: params.agents, overrides: params.overrides }
        }
        method::TaskStart::NAME => {
            let params = params_of::<method::TaskStart>(params)?;
            let wish = wish(&params)?;
            Call::Start { task: task(params.task).await?, caller: params.caller, wish }
        }
        method::TaskRestart::NAME => {
            let params = params_of::<method::TaskRestart>(params)?;
            let wish = wish(&params)?;
            Call::Restart { task: task(params.task).await?, caller: params.caller, wish }
        }
        method::TaskSetup::NAME => {
            let params = params_of::<method::TaskSetup>(params)?;
            Call::Setup { task: task(params.task).await?, caller: params.caller }
        }
        method::TaskStop::NAME => Call::StopTask(task(params_of::<method::TaskStop>(params)?).await?),
        method::TaskIdle::NAME => Call::Idle(task(params_of::<method::TaskIdle>(params)?).await?),
        method::TaskComplete::NAME => {
            Call::Mark(task(params_of::<method::TaskComplete>(params)?).await?, Verdict::Completed)
        }
        method::TaskFail::NAME => {
            Call::Mark(task(params_of::<method::TaskFail>(params)?).await?, Verdict::Failed)
        }
        method::TaskDiff::NAME => {
            let params = params_of::<method::TaskDiff>(params)?;
            Call::Diff { task: task(params.task).await?, turn: params.turn, stat: params.stat }
        }
        method::TaskReview::NAME => {
            Call::Mark(task(params_of::<method::TaskReview>(params)?).await?, Verdict::Reviewed)
        }
        method::TaskMerge::NAME => {
            let params = params_of::<method::TaskMerge>(params)?;
            Call::Merge { task: task(params.task.clone()).await?, params: Box::new(params) }
        }
        method::TaskSync::NAME => {
            let params = params_of::<method::TaskSync>(params)?;
            Call::Sync { task: task(params.task.clone()).await?, params: Box::new(params) }
        }
        method::ConflictList::NAME => {
            Call::Conflicts { project: project(params_of::<method::ConflictList>(params)?).await? }
        }
        method::TaskRemove::NAME => {
            let params = params_of::<method::TaskRemove>(params)?;
            let (discard, reason, caller) = (params.discard, params.reason, params.caller);
            Call::Remove { task: task(params.task).await?, discard, reason, caller }
        }
        method::TaskSpent::NAME => {
            Call::Spent { project: project(params_of::<method::TaskSpent>(params)?).await? }
        }
        method::TrashList::NAME => {
            Call::TrashList { project: project(params_of::<method::TrashList>(params)?).await? }
        }
        method::TrashRestore::NAME => {
            let params = params_of::<method::TrashRestore>(params)?;
            let project = project(ProjectRef { cwd: params.cwd }).await?;
            Call::TrashRestore { project, id: params.id }
        }
        method::TrashExpire::NAME => {
            let params = params_of::<method::TrashExpire>(params)?;
            let project = project(ProjectRef { cwd: params.cwd.clone() }).await?;
            Call::TrashExpire { project, params }
        }
        method::TurnList::NAME => Call::Turns(task(params_of::<method::TurnList>(params)?).await?),
        method::TurnRestore::NAME => {
            let params = params_of::<method::TurnRestore>(params)?;
            Call::TurnRestore { task: task(params.task).await?, turn: params.turn }
        }
        method::TaskGet::NAME => Call::Get(task(params_of::<method::TaskGet>(params)?).await?),
        method::TaskExplain::NAME => {
            let params = params_of::<method::TaskExplain>(params)?;
            Call::Explain { task: task(params.task).await?, at: params.at }
        }
        method::TaskSend::NAME => {
            let params = params_of::<method::TaskSend>(params)?;
            Call::Send { task: task(params.task.clone()).await?, params: Box::new(params) }
        }
        method::ChatRead::NAME => {
            let params = params_of::<method::ChatRead>(params)?;
            let wanted = Wanted { since: params.since, before: params.before, limit: params.limit };
            Call::Chat { task: task(params.task).await?, wanted, wait: params.wait, looking: params.looking }
        }
        method::ChatSearch::NAME => {
            let params = params_of::<method::ChatSearch>(params)?;
            let task = match params.task {
                Some(named) => Some(task(named).await?),
                None => None,
            };
            let project = match params.cwd {
                Some(cwd) => Some(open(cwd, None, Environment::inherited()).await?),
                None => None,
            };
            Call::Search { task, project, words: params.words, limit: params.limit }
        }
        method::ApprovalList::NAME => {
            let params = params_of::<method::ApprovalList>(params)?;
            let task = match params.task {
                Some(named) => Some(task(named).await?),
                None => None,
            };
            Call::Approvals { task }
        }
        method::ApprovalLog::NAME => {
            let params = params_of::<method::ApprovalLog>(params)?;
            let task = match params.task {
                Some(named) => Some(task(named).await?),
                None => None,
            };
            Call::Decisions { task }
        }
        method::ApprovalAnswer::NAME => {
            let params = params_of::<method::ApprovalAnswer>(params)?;
            Call::AnswerApproval { task: task(params.task.clone()).await?, params: Box::new(params) }
        }
        method::ConnectionList::NAME => Call::Connections,
        method::ConnectionReconnect::NAME => {
            Call::Reconnect { name: params_of::<method::ConnectionReconnect>(params)?.name }
        }
        method::ConnectionSessions::NAME => {
            Call::AgentSessions { name: params_of::<method::ConnectionSessions>(params)?.name }
        }
        method::TaskInterrupt::NAME => {
            Call::Interrupt(task(params_of::<method::TaskInterrupt>(params)?).await?)
        }
        method::TaskModel::NAME => {
            let params = params_of::<method::TaskModel>(params)?;
            Call::Tune { task: task(params.task).await?, setting: AgentSetting::Model, wanted: params.name }
        }
        method::TaskMode::NAME => {
            let params = params_of::<method::TaskMode>(params)?;
            Call::Tune { task: task(params.task).await?, setting: AgentSetting::Mode, wanted: params.name }
        }
        method::QueueList::NAME => {
            let params = params_of::<method::QueueList>(params)?;
            let task = match params.task {
                Some(named) => Some(task(named).await?),
                None => None,
            };
            Call::QueueList { task }
        }
        method::QueueDrop::NAME => {
            let params = params_of::<method::QueueDrop>(params)?;
            Call::QueueDrop { task: task(params.task).await?, id: params.id }
        }
        method::TaskPlan::NAME => {
            let params = params_of::<method::TaskPlan>(params)?;
            Call::Plan {
                task: task(params.task).await?,
                message: params.message,
                overrides: params.overrides,
            }
        }
        method::PtyAttach::NAME => {
            let params = params_of::<method::PtyAttach>(params)?;
            Call::Attach { task: task(params.task.clone()).await?, params }
        }
        method::PtyScreen::NAME => Call::Screen(task(params_of::<method::PtyScreen>(params)?).await?),
        method::LogRead::NAME => {
            let params = params_of::<method::LogRead>(params)?;
            Call::Log { task: task(params.task).await?, form: params.form, follow: params.follow }
        }
        method::OrphanList::NAME => Call::Orphans,
        method::OrphanKill::NAME => {
            Call::OrphanKill { run: RunId(params_of::<method::OrphanKill>(params)?.run) }
        }
        method::OrphanAdopt::NAME => {
            Call::OrphanAdopt { run: RunId(params_of::<method::OrphanAdopt>(params)?.run) }
        }
        method::AgentList::NAME => {
            let params = params_of::<method::AgentList>(params)?;
            let project = match params.cwd {
                // Outside a project there are agents too.
                Some(cwd) => open(cwd, None, Environment::inherited()).await.ok(),
                None => None,
            };
            Call::Agents { project, path: params.path }
        }
        method::ProjectTraces::NAME => return Ok(as_value(traces::look(reporter).await?)?),
        method::ProjectErase::NAME => {
            let params = params_of::<method::ProjectErase>(params)?;
            return Ok(as_value(traces::erase(reporter, params).await?)?);
        }
        method::TrustShow::NAME => {
            Call::TrustShow { project: project(params_of::<method::TrustShow>(params)?).await? }
        }
        method::McpTerms::NAME => {
            let params = params_of::<method::McpTerms>(params)?;
            Call::McpTerms { project: project(ProjectRef { cwd: params.cwd }).await?, run: params.run }
        }
        method::McpPermit::NAME => {
            let params = params_of::<method::McpPermit>(params)?;
            let cwd = params.who.cwd.clone();
            Call::McpPermit { project: project(ProjectRef { cwd }).await?, params }
        }
        method::NotifyTest::NAME => Call::NotifyTest(params_of::<method::NotifyTest>(params)?),
        method::NotifyWays::NAME => Call::NotifyWays,
        method::TrustList::NAME => Call::TrustList,
        method::TrustAgree::NAME => {
            let params = params_of::<method::TrustAgree>(params)?;
            let project = project(ProjectRef { cwd: params.cwd }).await?;
            Call::TrustAgree { project, digest: params.digest, revoke: params.revoke }
        }
        method::ConfigShow::NAME => {
            let params = params_of::<method::ConfigShow>(params)?;
            Call::ConfigShow { project: perhaps(&params.cwd, Scope::User).await?, params }
        }
        method::ConfigSet::NAME => {
            let params = params_of::<method::ConfigSet>(params)?;
            Call::ConfigSet { project: perhaps(&params.cwd, params.scope).await?, params }
        }
        method::ConfigRead::NAME => {
            let params = params_of::<method::ConfigRead>(params)?;
            Call::ConfigRead { project: perhaps(&params.cwd, params.scope).await?, params }
        }
        method::ConfigWrite::NAME => {
            let params = params_of::<method::ConfigWrite>(params)?;
            Call::ConfigWrite { project: perhaps(&params.cwd, params.scope).await?, params }
        }
        // Subscribing is the connection's own business and never gets here.
        other => return Err(ErrorObject::new(METHOD_NOT_FOUND, format!("there is no method {other}"))),
    };
    Ok(reporter.call(call).await?)
}

fn as_value<T: serde::Serialize>(answer: T) -> Result<Value, Failure> {
    serde_json::to_value(answer).map_err(|err| Failure::new("an answer cannot be written").caused_by(&err))
}

pub fn params_of<M: Method>(params: Value) -> Result<M::Params, ErrorObject> {
    let params = if params.is_null() { serde_json::json!(Nothing {}) } else { params };
    serde_json::from_value(params)
        .map_err(|err| ErrorObject::new(INVALID_PARAMS, format!("the parameters of {}: {err}", M::NAME)))
}

fn wish(params: &TaskStartParams) -> Result<Wish, Failure> {
    let driver = params.driver.as_deref().map(str::parse::<Driver>).transpose();
    let driver = driver.map_err(|err| Failure::new(err.to_string()).hint("terminal, stream-json or acp"))?;
    Ok(Wish { driver, fresh: params.fresh, skip_setup: params.skip_setup })
}

async fn task(task: TaskRef) -> Result<TaskCall, Failure> {
    Ok(TaskCall { project: open(task.cwd, None, Environment::inherited()).await?, name: task.name })
}

async fn project(project: ProjectRef) -> Result<Project, Failure> {
    open(project.cwd, None, Environment::inherited()).await
}

/// The project around the caller. The user's own configuration can be seen to from anywhere.
async fn perhaps(cwd: &Bytes, scope: Scope) -> Result<Option<Project>, Failure> {
    match (open(cwd.clone(), None, Environment::inherited()).await, scope) {
        (Ok(project), _) => Ok(Some(project)),
        (Err(_), Scope::User) => Ok(None),
        (Err(failure), Scope::Project) => Err(failure),
    }
}

async fn new_task(reporter: &Reporter, params: TaskNewParams) -> Result<NewTask, Failure> {
    let vcs = params
        .vcs
        .as_deref()
        .map(str::parse::<Vcs>)
        .transpose()
        .map_err(|err| Failure::new(err.to_string()))?;
    let project = open(params.cwd.clone(), vcs, environment_of(&params.caller)).await?;
    let call = Call::NextName { project: project.clone(), slug: params.slug.clone() };
    let name: String = serde_json::from_value(reporter.call(call).await?).unwrap_or_default();
    blocking(move || {
        let (base, warning) = check(&project, &name, params.base_branch.as_deref())?;
        Ok(NewTask { project, params, base, warning })
    })
    .await
}

/// What the workspace would start from, and what it will not contain. Fails where making it would.
fn check(
    project: &Project,
    name: &str,
    base: Option<&str>,
) -> Result<(Option<String>, Option<String>), Failure> {
    let name: WorkspaceName =
        name.parse().map_err(|err: agency_workspace::NameError| Failure::new(err.to_string()))?;
    let base =
        agency_workspace::check(project, &name, base).map_err(|err| crate::world::workspace_failure(&err))?;
    if project.vcs() == Vcs::Plain {
        return Ok((None, None));
    }
    // Only worth a warning, so not worth a failure either.
    let dirty = agency_workspace::dirty_checkout(project).unwrap_or_default().len();
    let warning = match dirty {
        0 => None,
        1 => Some("1 file with uncommitted changes in your checkout is not in the workspace".to_string()),
        many => {
            Some(format!("{many} files with uncommitted changes in your checkout are not in the workspace"))
        }
    };
    Ok((base.map(|base| base.name), warning))
}

fn environment_of(caller: &Caller) -> Environment {
    let pairs = |(name, value): &(Bytes, Bytes)| -> (OsString, OsString) {
        (name.as_os_str().to_owned(), value.as_os_str().to_owned())
    };
    Environment::of(caller.env.iter().map(pairs))
}

async fn open(cwd: Bytes, vcs: Option<Vcs>, environment: Environment) -> Result<Project, Failure> {
    blocking(move || {
        let path: &Path = cwd.as_path();
        Project::open_with(path, vcs, environment).map_err(|err| Failure::from_error(&err, err.hint()))
    })
    .await
}

pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(cause) => Err(Failure::new("the request failed badly").caused_by(&cause)),
    }
}
