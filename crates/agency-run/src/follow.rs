//! Begins to follow a run: through its keeper, through a session on a connection, or once its keeper answers.

use agency_api::{Failure, FailureCode, ProcessIdentity};
use agency_core::agent::Driver;
use agency_core::exit::{ExitCode, RunExit};
use tokio::sync::{mpsc, oneshot};

use crate::command::RunCommand;
use crate::connection::ConnectionCommand;
use crate::conversation_task::ConversationTask;
use crate::follower::{self, RunTask};
use crate::handle::{Command, CommandSender, RunHandle};
use crate::keeper_link::KeeperLink;
use crate::keeper_socket::KeeperSocketError;
use crate::report::{RunReport, RunReporter};
use crate::run_context::RunContext;
use crate::state_log::last_known_state;
use crate::terminal_task::TerminalTask;

/// Connects to the keeper, folds its journal on a blocking thread, then follows it.
pub async fn follow_run(context: RunContext, reporter: RunReporter) -> Result<RunHandle, KeeperSocketError> {
    Ok(follow_link(KeeperLink::connect(context).await?, reporter).await)
}

/// Opens a session on a connection and follows it. `is_adopted`: the session was there under an earlier daemon.
pub async fn follow_session(
    connection: &mpsc::Sender<ConnectionCommand>,
    context: RunContext,
    reporter: RunReporter,
    is_adopted: bool,
) -> Result<RunHandle, Failure> {
    let (answer, opened) = oneshot::channel();
    let gone = || Failure::new("the connection is gone").code(FailureCode::ConnectionFailed);
    let (run, dir) = (context.id.clone(), context.dir.clone());
    let open = ConnectionCommand::OpenSession { run, dir, is_adopted, answer };
    connection.send(open).await.map_err(|_| gone())?;
    let stream = opened.await.map_err(|_| gone())??;
    let link = KeeperLink::over_session(context, stream).await;
    let link = link.map_err(|err| {
        Failure::new("the connection does not answer").code(FailureCode::ConnectionFailed).caused_by(&err)
    })?;
    Ok(follow_link(link, reporter).await)
}

/// Follows a keeper that is connected already.
pub async fn follow_link(link: KeeperLink, reporter: RunReporter) -> RunHandle {
    match link.context.driver {
        Driver::Terminal => follow_as::<TerminalTask>(link, reporter).await,
        Driver::StreamJson | Driver::Acp => follow_as::<ConversationTask>(link, reporter).await,
    }
}

async fn follow_as<T: RunTask>(link: KeeperLink, reporter: RunReporter) -> RunHandle {
    let mut task = T::open(link, reporter).await;
    let (commands, mut inbox) = CommandSender::channel();
    let handle = follower::handle_of(&mut task, commands);
    tokio::spawn(async move {
        // If the daemon drops the handle instead, the keeper goes on without a follower.
        if let Some(Command::Run(RunCommand::Begin)) = inbox.recv().await {
            follower::run(task, inbox).await;
        }
    });
    handle
}

/// Follows a live keeper that does not answer now, because it is stopped or swapped out, as soon as it does.
pub fn follow_later(context: RunContext, keeper: ProcessIdentity, reporter: RunReporter) -> RunHandle {
    match context.driver {
        Driver::Terminal => follow_later_as::<TerminalTask>(context, keeper, reporter),
        Driver::StreamJson | Driver::Acp => follow_later_as::<ConversationTask>(context, keeper, reporter),
    }
}

fn follow_later_as<T: RunTask>(
    context: RunContext,
    keeper: ProcessIdentity,
    reporter: RunReporter,
) -> RunHandle {
    let (commands, mut inbox) = CommandSender::channel();
    let handle = RunHandle {
        commands: T::commands(commands),
        keeper: keeper.clone(),
        environment: Vec::new(),
        gone: false,
        standing: last_known_state(&context.dir),
        missed: Vec::new(),
    };
    tokio::spawn(async move {
        if let Some(Command::Run(RunCommand::Begin)) = inbox.recv().await {
            match KeeperLink::connect_patiently(context, &keeper).await {
                Ok(link) => {
                    let environment = link.environment.clone();
                    reporter.report(RunReport::Reached { environment }).await;
                    follower::run(T::open(link, reporter).await, inbox).await;
                }
                Err(cause) => {
                    tracing::error!(run = %reporter.run, %cause, "the keeper ended before it answered");
                    let exit = RunExit::by_itself(ExitCode::Unknown);
                    reporter.report(RunReport::Over { exit, ended: Vec::new() }).await;
                }
            }
        }
    });
    handle
}
