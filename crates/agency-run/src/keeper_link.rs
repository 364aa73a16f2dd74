//! The daemon's link to one keeper, and how to regain it: by connecting again, or by starting another keeper for the same
//! terminal.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use agency_api::keeper::{Ended, Frame, FromKeeper, LaunchSpec, Start, ToKeeper};
use agency_api::{Bytes, ProcessIdentity};
use agency_core::exit::{ExitCode, RunExit};
use agency_journal::{Decoded, Record};
use agency_keeper::pidfile::PidFile;
use agency_keeper::platform;
use agency_terminal::Size;
use rustix::process::Signal;

use crate::fold::{self, Fold};
use crate::keeper_process;
use crate::keeper_socket::{Frames, KeeperSocket, KeeperSocketError};
use crate::launch::{LaunchError, start_keeper};
use crate::limits;
use crate::run_context::RunContext;
use crate::view::api_size;

/// A keeper whose socket was deleted binds it again within milliseconds of the signal.
const REBIND_WITHIN: Duration = Duration::from_secs(3);

/// Between two attempts to reach a keeper that lives but does not answer.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The daemon's end of a keeper, or of a session, which speaks the same protocol.
pub struct KeeperLink {
    pub(crate) context: RunContext,
    pub(crate) frames: Frames,
    pub(crate) keeper: ProcessIdentity,
    pub(crate) child: Option<ProcessIdentity>,
    /// In memory only.
    pub(crate) environment: Vec<(Bytes, Bytes)>,
    /// Set once the agent and its process tree are gone: the processes that were ended with the agent.
    pub(crate) gone: Option<Vec<Ended>>,
    /// Where the journal ended when the keeper said that the agent is gone.
    pub(crate) next_seq_at_gone: u64,
    /// There is no keeper and there will be none.
    pub(crate) is_lost: bool,
    pub(crate) journal_trouble: Option<String>,
    lifeline: Option<OwnedFd>,
}

/// One thing that a keeper has sent.
pub(crate) enum KeeperOutput {
    Record(Record),
    Message(FromKeeper),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RegainError {
    #[error("the keeper is dead and the daemon holds no copy of its terminal")]
    NoLifeline,
    #[error("cannot start another keeper for the run")]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Socket(#[from] KeeperSocketError),
}

impl KeeperLink {
    /// Connects to the keeper of a run.
    pub async fn connect(context: RunContext) -> Result<KeeperLink, KeeperSocketError> {
        let (context, socket) = blocking(move || {
            let socket = connect(&context);
            (context, socket)
        })
        .await?;
        KeeperLink::new(context, socket?)
    }

    /// Over one end of a session on a connection.
    pub(crate) async fn over_session(
        context: RunContext,
        stream: UnixStream,
    ) -> Result<KeeperLink, KeeperSocketError> {
        let epoch = context.epoch.get();
        let socket = blocking(move || KeeperSocket::over(stream, epoch)).await??;
        KeeperLink::new(context, socket)
    }

    /// Tries for as long as the keeper lives.
    pub(crate) async fn connect_patiently(
        context: RunContext,
        keeper: &ProcessIdentity,
    ) -> Result<KeeperLink, KeeperSocketError> {
        let mut pause = FIRST_PAUSE;
        loop {
            match KeeperLink::connect(context.clone()).await {
                Err(cause) if platform::is_alive(keeper) => {
                    tracing::debug!(run = %context.id, %cause, "the keeper does not answer yet");
                }
                outcome => return outcome,
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Writes the pid file again if it is lost. The keeper itself knows which processes it names.
    pub fn restore_pid_file(&self) {
        let path = self.context.dir.pid_file();
        if let Ok(Some(_)) = PidFile::read(&path) {
            return;
        }
        let pid_file = PidFile { keeper: self.keeper.clone(), child: self.child.clone() };
        if let Err(cause) = pid_file.write(&path) {
            tracing::warn!(run = %self.context.id, %cause, "cannot write the pid file again");
        }
    }

    fn new(context: RunContext, mut socket: KeeperSocket) -> Result<KeeperLink, KeeperSocketError> {
        let welcome = socket.welcome.clone();
        Ok(KeeperLink {
            keeper: welcome.keeper,
            child: welcome.child,
            gone: welcome.gone.then_some(welcome.ended),
            next_seq_at_gone: welcome.next_seq,
            environment: std::mem::take(&mut socket.environment),
            lifeline: socket.lifeline.take(),
            journal_trouble: socket.journal_trouble.take(),
            frames: socket.into_frames()?,
            is_lost: false,
            context,
        })
    }

    pub(crate) async fn follow(&mut self, from_seq: u64) -> io::Result<()> {
        self.frames.send_message(&ToKeeper::Follow { from_seq }).await
    }

    pub(crate) async fn resize(&mut self, size: Size) -> io::Result<()> {
        self.frames.send_message(&ToKeeper::Resize { size: api_size(size) }).await
    }

    /// Ends the agent: SIGTERM, then SIGKILL after the grace.
    pub(crate) async fn stop(&mut self, grace: Duration) -> io::Result<()> {
        self.frames.send_message(&ToKeeper::Stop { grace_ms: grace.as_millis() as u64 }).await
    }

    pub(crate) fn mark_gone(&mut self, ended: Vec<Ended>, next_seq: u64) {
        self.gone = Some(ended);
        self.next_seq_at_gone = next_seq;
    }

    /// The next record or message among the bytes that have arrived.
    pub(crate) fn next_output(&mut self) -> io::Result<Option<KeeperOutput>> {
        while let Some(frame) = self.frames.take()? {
            match frame {
                Frame::Record(bytes) => match Record::decode(&bytes) {
                    Decoded::Complete(record, _) => return Ok(Some(KeeperOutput::Record(record))),
                    other => {
                        let what = format!("invalid record from the keeper: {other:?}");
                        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                    }
                },
                Frame::Control(json) => match serde_json::from_slice(&json) {
                    Ok(message) => return Ok(Some(KeeperOutput::Message(message))),
                    Err(cause) => {
                        tracing::warn!(run = %self.context.id, %cause, "invalid message from the keeper");
                    }
                },
                Frame::Input { .. } | Frame::Checkpoint { .. } | Frame::Note { .. } => {}
            }
        }
        Ok(None)
    }

    /// Reads records that were compressed before the keeper could send them. `None` if they cannot be read: another
    /// attempt would fail too, and the records after them are still useful.
    pub(crate) async fn read_sealed(&self, from_seq: u64, until_seq: u64) -> io::Result<Option<Vec<Record>>> {
        let journal = self.context.dir.journal();
        let read = blocking(move || fold::records(&journal, from_seq, until_seq)).await?;
        Ok(read
            .inspect_err(|cause| {
                tracing::error!(run = %self.context.id, %cause, from_seq, until_seq, "cannot read sealed records");
            })
            .ok())
    }

    /// How the run ended, once the follower has folded its exit and everything before it, and the process tree is gone.
    pub(crate) fn exit(&self, folded: Option<RunExit>, next_seq: u64) -> Option<RunExit> {
        self.gone.as_ref()?;
        let has_caught_up = next_seq >= self.next_seq_at_gone;
        // A journal without an exit lost it, for example on a full disk.
        folded.or(has_caught_up.then_some(RunExit::by_itself(ExitCode::Unknown)))
    }

    /// Folds the journal as it is now.
    pub(crate) async fn rebuild(&self) -> Fold {
        let (journal, settings) = (self.context.dir.journal(), self.context.settings());
        let fresh = settings.clone();
        let rebuilt = blocking(move || Fold::rebuild(&journal, settings)).await;
        match rebuilt.and_then(|fold| fold) {
            Ok(fold) => fold,
            Err(cause) => {
                tracing::error!(run = %self.context.id, %cause, "cannot read the journal; the screen starts empty");
                Fold::fresh(fresh)
            }
        }
    }

    /// Connects again. Returns `true` if a new keeper replaces one that was killed.
    pub(crate) async fn regain(&mut self) -> Result<bool, RegainError> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.regain_once().await {
                Ok((socket, replaced)) => {
                    *self = KeeperLink::new(self.context.clone(), socket)?;
                    return Ok(replaced);
                }
                // Nothing is left to connect to.
                Err(RegainError::NoLifeline) => return Err(RegainError::NoLifeline),
                Err(cause) if !self.is_any_process_alive() => return Err(cause),
                // A socket closes before its process has ended, and a stopped keeper answers later.
                Err(cause) => {
                    tracing::debug!(run = %self.context.id, %cause, "the keeper is not regained yet")
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn regain_once(&self) -> Result<(KeeperSocket, bool), RegainError> {
        if self.context.is_session {
            // The connection has ended the session; there is no socket to connect to.
            return Err(RegainError::NoLifeline);
        }
        let context = self.context.clone();
        let (keeper, child, env) = (self.keeper.clone(), self.child.clone(), self.environment.clone());
        let lifeline = self.lifeline.as_ref().map(OwnedFd::try_clone).transpose();
        let lifeline = lifeline.map_err(KeeperSocketError::from)?;
        blocking(move || {
            // A new keeper may hold the run already: the parent of a killed keeper starts one.
            if let Some(holding) = keeper_process::find(&context.dir) {
                return Ok((connect(&context)?, holding != keeper));
            }
            let master = lifeline.ok_or(RegainError::NoLifeline)?;
            let spec = rescue_spec(&context, child, env);
            start_keeper(&context.keeper_binary, &spec, None, Some(master.as_fd()))?;
            Ok((connect(&context)?, true))
        })
        .await
        .map_err(KeeperSocketError::from)?
    }

    /// While the keeper or the agent lives, the run is not over, even if the daemon cannot reach it.
    fn is_any_process_alive(&self) -> bool {
        platform::is_alive(&self.keeper) || self.child.as_ref().is_some_and(platform::is_alive)
    }
}

/// Connects, and asks a keeper whose socket was deleted to bind it again.
fn connect(context: &RunContext) -> Result<KeeperSocket, KeeperSocketError> {
    let first = KeeperSocket::connect(&context.dir, &context.epoch);
    let Err(KeeperSocketError::Io(_)) = &first else { return first };
    let Some(keeper) = keeper_process::find(&context.dir) else { return first };
    if !matches!(platform::signal_if_same(&keeper, Signal::USR1), Ok(true)) {
        return first;
    }
    let deadline = std::time::Instant::now() + REBIND_WITHIN;
    loop {
        match KeeperSocket::connect(&context.dir, &context.epoch) {
            // A keeper that was exiting when it got the signal binds nothing.
            Err(KeeperSocketError::Io(_))
                if std::time::Instant::now() < deadline && platform::is_alive(&keeper) =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

fn rescue_spec(context: &RunContext, child: Option<ProcessIdentity>, env: Vec<(Bytes, Bytes)>) -> LaunchSpec {
    LaunchSpec {
        run_id: context.id.0.clone(),
        name: context.name.clone(),
        run_dir: context.dir.path().into(),
        start: Start::Rescue { child, env },
        segment_bytes: limits::SEGMENT_BYTES,
        max_journal_bytes: Some(limits::TERMINAL_JOURNAL_BYTES),
        open_files: context.open_files,
        linger_ms: limits::KEEPER_LINGERS.as_millis() as u64,
        spare: context.spare.clone(),
        owner: context.owner.clone(),
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}
