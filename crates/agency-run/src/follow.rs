//! Begins to follow a run: through its keeper, through a session on a connection, or once its keeper answers.

use agency_api::{Failure, ProcessIdentity};
use agency_core::agent::Driver;
use agency_core::agent_state::Timing;
use agency_core::evidence::Detector;
use agency_core::exit::{ExitCode, RunExit};
use agency_store::clock;
use tokio::sync::{mpsc, oneshot};

use crate::command::RunCommand;
use crate::connection::ConnectionCommand;
use crate::conversation_task::ConversationTask;
use crate::handle::RunHandle;
use crate::keeper_link::KeeperLink;
use crate::keeper_socket::KeeperSocketError;
use crate::report::{RunReport, RunReporter};
use crate::run_context::RunContext;
use crate::terminal_task::TerminalTask;

const COMMANDS_WAITING: usize = 256;

/// Connects to the keeper, folds its journal on a thread that may block, then follows it.
pub async fn follow_run(context: RunContext, reporter: RunReporter) -> Result<RunHandle, KeeperSocketError> {
    Ok(follow_link(KeeperLink::connect(context).await?, reporter).await)
}

/// Takes a place at a connection.
pub async fn follow_session(
    connection: &mpsc::Sender<ConnectionCommand>,
    context: RunContext,
    reporter: RunReporter,
    is_adopted: bool,
) -> Result<RunHandle, Failure> {
    let (answer, told) = oneshot::channel();
    let gone = || Failure::new("the connection is gone");
    let sit = ConnectionCommand::OpenSession {
        run: context.id.clone(),
        dir: context.dir.clone(),
        is_adopted,
        answer,
    };
    connection.send(sit).await.map_err(|_| gone())?;
    let stream = told.await.map_err(|_| gone())??;
    let link = KeeperLink::over_session(context, stream).await;
    let link = link.map_err(|err| Failure::new("the connection does not answer").caused_by(&err))?;
    Ok(follow_link(link, reporter).await)
}

pub async fn follow_link(link: KeeperLink, reporter: RunReporter) -> RunHandle {
    if link.context.driver != Driver::Terminal {
        return follow_conversation(link, reporter).await;
    }
    let mut task = TerminalTask::begin(link, reporter).await;
    let (commands, mut inbox) = mpsc::channel(COMMANDS_WAITING);
    let handle = task.handle(commands);
    tokio::spawn(async move {
        // Nobody wants it followed after all: the keeper goes on without us.
        if let Some(RunCommand::Begin) = inbox.recv().await {
            task.live(inbox).await;
        }
    });
    handle
}

async fn follow_conversation(link: KeeperLink, reporter: RunReporter) -> RunHandle {
    let mut task = ConversationTask::begin(link, reporter).await;
    let (commands, mut inbox) = mpsc::channel(COMMANDS_WAITING);
    let handle = task.handle(commands);
    tokio::spawn(async move {
        if let Some(RunCommand::Begin) = inbox.recv().await {
            task.live(inbox).await;
        }
    });
    handle
}

/// Follows a keeper that lives but does not answer now, stopped or swapped out, as soon as it does.
pub fn follow_later(context: RunContext, keeper: ProcessIdentity, reporter: RunReporter) -> RunHandle {
    let (commands, mut inbox) = mpsc::channel(COMMANDS_WAITING);
    let handle = RunHandle {
        commands,
        keeper: keeper.clone(),
        environment: Vec::new(),
        gone: false,
        standing: Detector::new(Timing::default(), clock::now()).standing(),
        missed: Vec::new(),
    };
    tokio::spawn(async move {
        if let Some(RunCommand::Begin) = inbox.recv().await {
            match KeeperLink::connect_patiently(context, &keeper).await {
                Ok(link) => {
                    reporter.report(RunReport::Reached { environment: link.environment.clone() }).await;
                    if link.context.driver != Driver::Terminal {
                        return ConversationTask::begin(link, reporter).await.live(inbox).await;
                    }
                    let mut task = TerminalTask::begin(link, reporter).await;
                    task.catch_up().await;
                    task.live(inbox).await;
                }
                Err(cause) => {
                    tracing::error!(run = %reporter.run, %cause, "the keeper ended before it answered");
                    let exit = RunExit::unasked(ExitCode::Unknown);
                    reporter.report(RunReport::Over { exit, ended: Vec::new() }).await;
                }
            }
        }
    });
    handle
}
