//! The daemon's handle on one run that it follows.

use agency_api::{Bytes, ProcessIdentity};
use agency_core::evidence::{Change, Standing};
use tokio::sync::mpsc;

use crate::command::RunCommand;

#[derive(Debug, Clone)]
pub struct RunHandle {
    pub commands: mpsc::Sender<RunCommand>,
    pub keeper: ProcessIdentity,
    pub environment: Vec<(Bytes, Bytes)>,
    /// The agent and its tree were gone when the keeper was found.
    pub gone: bool,
    /// What its journal said when it was found; news follow at each change.
    pub standing: Standing,
    /// What changed while no daemon looked, oldest first.
    pub missed: Vec<Change>,
}

impl RunHandle {
    /// Commands arrive in the order they were given unless the run is far behind.
    pub fn command(&self, command: RunCommand) {
        match self.commands.try_send(command) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
            Err(mpsc::error::TrySendError::Full(command)) => {
                let commands = self.commands.clone();
                // Closed meanwhile: the run is over, which no command can change.
                tokio::spawn(async move { drop(commands.send(command).await) });
            }
        }
    }
}
