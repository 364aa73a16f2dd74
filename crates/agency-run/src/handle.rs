//! The daemon's handle on one run that it follows, with typed senders for its commands.

use agency_api::{Bytes, ProcessIdentity};
use agency_core::evidence::{Change, DetectedState};
use tokio::sync::{mpsc, oneshot};

use crate::command::{ConversationCommand, RunCommand, TerminalCommand};

/// Input of viewers waits here while the keeper is busy. More than this is not typing.
const COMMANDS_WAITING: usize = 256;

/// A run that the daemon follows.
#[derive(Debug, Clone)]
pub struct RunHandle {
    /// Where commands go.
    pub commands: RunCommands,
    /// The keeper of the run.
    pub keeper: ProcessIdentity,
    /// The environment that the agent was launched with.
    pub environment: Vec<(Bytes, Bytes)>,
    /// The agent and its process tree were gone when the daemon found the keeper.
    pub gone: bool,
    /// The state that the journal showed when the daemon found it. The run reports each later change.
    pub standing: DetectedState,
    /// Changes of state that no daemon has seen, oldest first.
    pub missed: Vec<Change>,
}

impl RunHandle {
    /// Sends a command that every run understands.
    pub fn command(&self, command: RunCommand) {
        self.commands.post(command);
    }

    /// Where commands for a terminal go; `None` if the run has no terminal.
    pub fn terminal(&self) -> Option<&CommandSender<TerminalCommand>> {
        match &self.commands {
            RunCommands::Terminal(commands) => Some(commands),
            RunCommands::Conversation(_) => None,
        }
    }

    /// Where commands for a conversation go; `None` if the run has no conversation.
    pub fn conversation(&self) -> Option<&CommandSender<ConversationCommand>> {
        match &self.commands {
            RunCommands::Conversation(commands) => Some(commands),
            RunCommands::Terminal(_) => None,
        }
    }
}

/// Where the commands of a run go. A run has either a terminal or a conversation.
#[derive(Debug, Clone)]
pub enum RunCommands {
    /// A run with a terminal.
    Terminal(CommandSender<TerminalCommand>),
    /// A run with a conversation.
    Conversation(CommandSender<ConversationCommand>),
}

impl RunCommands {
    /// Sends a command that every run understands. Commands arrive in order unless the run is far behind.
    pub fn post(&self, command: RunCommand) {
        match self {
            RunCommands::Terminal(commands) => commands.post_any(Command::Run(command)),
            RunCommands::Conversation(commands) => commands.post_any(Command::Run(command)),
        }
    }

    /// Sends a command that every run understands, and waits while the run is behind.
    pub async fn send(&self, command: RunCommand) -> Result<(), RunEnded> {
        match self {
            RunCommands::Terminal(commands) => commands.send_any(Command::Run(command)).await,
            RunCommands::Conversation(commands) => commands.send_any(Command::Run(command)).await,
        }
    }
}

impl RunCommands {
    /// Waits until the run follows its keeper no longer.
    pub async fn closed(&self) {
        match self {
            RunCommands::Terminal(commands) => commands.0.closed().await,
            RunCommands::Conversation(commands) => commands.0.closed().await,
        }
    }

    /// Whether the run follows its keeper no longer.
    pub fn is_closed(&self) -> bool {
        match self {
            RunCommands::Terminal(commands) => commands.0.is_closed(),
            RunCommands::Conversation(commands) => commands.0.is_closed(),
        }
    }
}

/// The run has ended and takes no commands.
#[derive(Debug, thiserror::Error)]
#[error("the run has ended")]
pub struct RunEnded;

/// A command for every run, or one for this kind of run.
#[derive(Debug)]
pub(crate) enum Command<C> {
    Run(RunCommand),
    Own(C),
}

/// Sends commands of one kind to a run.
#[derive(Debug)]
pub struct CommandSender<C>(mpsc::Sender<Command<C>>);

impl<C> Clone for CommandSender<C> {
    fn clone(&self) -> Self {
        CommandSender(self.0.clone())
    }
}

impl<C: Send + 'static> CommandSender<C> {
    /// A sender and the run's end of the channel.
    pub(crate) fn channel() -> (CommandSender<C>, mpsc::Receiver<Command<C>>) {
        let (sender, inbox) = mpsc::channel(COMMANDS_WAITING);
        (CommandSender(sender), inbox)
    }

    /// Sends without waiting. Commands arrive in order unless the run is far behind.
    pub fn post(&self, command: C) {
        self.post_any(Command::Own(command));
    }

    /// Sends, and waits while the run is behind.
    pub async fn send(&self, command: C) -> Result<(), RunEnded> {
        self.send_any(Command::Own(command)).await
    }

    /// Sends a command with a reply channel, and waits for the reply.
    pub async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> C) -> Result<T, RunEnded> {
        let (answer, answered) = oneshot::channel();
        self.send(command(answer)).await?;
        answered.await.map_err(|_| RunEnded)
    }

    fn post_any(&self, command: Command<C>) {
        match self.0.try_send(command) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(command)) => {
                let commands = self.0.clone();
                // If the run ends meanwhile, no command matters any more.
                tokio::spawn(async move { drop(commands.send(command).await) });
            }
        }
    }

    async fn send_any(&self, command: Command<C>) -> Result<(), RunEnded> {
        self.0.send(command).await.map_err(|_| RunEnded)
    }
}

#[cfg(test)]
mod tests {
    use agency_core::agent_state::Timing;
    use agency_core::evidence::Detector;
    use std::time::Duration;

    use super::*;

    fn handle(commands: RunCommands) -> RunHandle {
        RunHandle {
            commands,
            keeper: ProcessIdentity { pid: 1, start_time: 1, boot_id: String::new() },
            environment: Vec::new(),
            gone: false,
            standing: Detector::new(Timing::default(), Duration::ZERO).standing(),
            missed: Vec::new(),
        }
    }

    #[test]
    fn a_run_takes_the_commands_of_its_kind_and_those_of_every_run() {
        let (sender, mut inbox) = CommandSender::channel();
        let handle = handle(RunCommands::Terminal(sender));
        assert!(handle.conversation().is_none());
        handle.command(RunCommand::Begin);
        handle.terminal().expect("a terminal").post(TerminalCommand::ReloadRules);
        assert!(matches!(inbox.try_recv(), Ok(Command::Run(RunCommand::Begin))));
        assert!(matches!(inbox.try_recv(), Ok(Command::Own(TerminalCommand::ReloadRules))));
    }

    #[tokio::test]
    async fn a_question_to_a_run_that_ends_is_an_error() {
        let (sender, inbox) = CommandSender::channel();
        let handle = handle(RunCommands::Conversation(sender));
        assert!(handle.terminal().is_none());
        drop(inbox);
        let conversation = handle.conversation().expect("a conversation");
        let asked = conversation.ask(|answer| ConversationCommand::ListApprovals { answer });
        assert!(asked.await.is_err());
        assert!(handle.commands.send(RunCommand::Dismiss).await.is_err());
    }
}
