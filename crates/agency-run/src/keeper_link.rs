//! The daemon's hold on one keeper: the link, the lifeline, and how to get it back.

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

use crate::fold::Fold;
use crate::keeper_socket::{Frames, KeeperSocket, KeeperSocketError};
use crate::launch::{LaunchError, start_keeper};
use crate::limits;
use crate::run_context::RunContext;
use crate::view::api_size;

/// A keeper that lost its socket binds it anew within milliseconds of being asked.
const REBIND_WITHIN: Duration = Duration::from_secs(3);

/// Between two attempts to get hold of a keeper that is there but does not answer.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

pub struct KeeperLink {
    pub context: RunContext,
    pub frames: Frames,
    pub keeper: ProcessIdentity,
    pub child: Option<ProcessIdentity>,
    /// In memory only.
    pub environment: Vec<(Bytes, Bytes)>,
    /// Processes that were ended with the agent, once it and its tree are gone.
    pub gone: Option<Vec<Ended>>,
    /// When it is gone, its last record comes before this one.
    pub next_seq_at_gone: u64,
    /// There is no keeper any more and there will be none.
    pub left: bool,
    pub journal_trouble: Option<String>,
    lifeline: Option<OwnedFd>,
}

/// What a keeper has to say.
pub enum KeeperOutput {
    Record(Record),
    Message(FromKeeper),
}

#[derive(Debug, thiserror::Error)]
pub enum RegainError {
    #[error("the keeper is dead and its terminal with it")]
    NoLifeline,
    #[error("cannot put another keeper in its place")]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Socket(#[from] KeeperSocketError),
}

impl KeeperLink {
    pub async fn connect(context: RunContext) -> Result<KeeperLink, KeeperSocketError> {
        let (context, link) = blocking(move || {
            let link = connect(&context);
            (context, link)
        })
        .await?;
        KeeperLink::new(context, link?)
    }

    /// On a place at a connection, which speaks as a keeper does.
    pub async fn over_session(
        context: RunContext,
        stream: UnixStream,
    ) -> Result<KeeperLink, KeeperSocketError> {
        let epoch = context.epoch;
        let link = blocking(move || KeeperSocket::over(stream, epoch)).await??;
        KeeperLink::new(context, link)
    }

    /// Tries for as long as the keeper lives.
    pub async fn connect_patiently(
        context: RunContext,
        keeper: &ProcessIdentity,
    ) -> Result<KeeperLink, KeeperSocketError> {
        let mut pause = FIRST_PAUSE;
        loop {
            match KeeperLink::connect(context.clone()).await {
                Err(cause) if platform::is_alive(keeper) => {
                    tracing::debug!(run = %context.id, %cause, "the keeper does not answer yet");
                }
                settled => return settled,
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn new(context: RunContext, mut link: KeeperSocket) -> Result<KeeperLink, KeeperSocketError> {
        let welcome = link.welcome.clone();
        Ok(KeeperLink {
            keeper: welcome.keeper,
            child: welcome.child,
            gone: welcome.gone.then_some(welcome.ended),
            next_seq_at_gone: welcome.next_seq,
            environment: std::mem::take(&mut link.environment),
            lifeline: link.lifeline.take(),
            journal_trouble: link.journal_trouble.take(),
            frames: link.into_frames()?,
            left: false,
            context,
        })
    }

    pub async fn follow(&mut self, from_seq: u64) -> io::Result<()> {
        self.frames.say(&ToKeeper::Follow { from_seq }).await
    }

    pub async fn resize(&mut self, size: Size) -> io::Result<()> {
        self.frames.resize(api_size(size)).await
    }

    pub fn mark_gone(&mut self, ended: Vec<Ended>, next_seq: u64) {
        self.gone = Some(ended);
        self.next_seq_at_gone = next_seq;
    }

    /// The next thing among those that have come.
    pub fn next_output(&mut self) -> io::Result<Option<KeeperOutput>> {
        while let Some(frame) = self.frames.take()? {
            match frame {
                Frame::Record(bytes) => match Record::decode(&bytes) {
                    Decoded::Complete(record, _) => return Ok(Some(KeeperOutput::Record(record))),
                    other => {
                        return Err(io::Error::new(
                            io::ErrorKind::InvalidData,
                            format!("a record: {other:?}"),
                        ));
                    }
                },
                Frame::Control(json) => match serde_json::from_slice(&json) {
                    Ok(message) => return Ok(Some(KeeperOutput::Message(message))),
                    Err(cause) => tracing::warn!(run = %self.context.id, %cause, "a message makes no sense"),
                },
                Frame::Input { .. } | Frame::Checkpoint { .. } | Frame::Note { .. } => {}
            }
        }
        Ok(None)
    }

    /// Records that were compressed before the keeper could send them. `None` if they cannot be read: asking again
    /// would give the same answer, and what comes after them is still worth seeing.
    pub async fn sealed(&self, from_seq: u64, until_seq: u64) -> io::Result<Option<Vec<Record>>> {
        let journal = self.context.dir.journal();
        let read = blocking(move || crate::fold::records(&journal, from_seq, until_seq)).await?;
        Ok(read
            .inspect_err(|cause| {
                tracing::error!(run = %self.context.id, %cause, from_seq, until_seq, "records are lost");
            })
            .ok())
    }

    /// How the run ended, once its exit and all before it have been folded and the tree is gone.
    pub fn exit(&self, folded: Option<RunExit>, next_seq: u64) -> Option<RunExit> {
        self.gone.as_ref()?;
        let caught_up = next_seq >= self.next_seq_at_gone;
        // A journal that has none lost it, on a full disk say.
        folded.or(caught_up.then_some(RunExit::unasked(ExitCode::Unknown)))
    }

    /// The journal as it stands, folded.
    pub async fn rebuild(&self) -> Fold {
        let (journal, settings) = (self.context.dir.journal(), self.context.settings());
        let fresh = settings.clone();
        let rebuilt = blocking(move || Fold::rebuild(&journal, settings)).await;
        match rebuilt.and_then(|fold| fold) {
            Ok(fold) => fold,
            Err(cause) => {
                tracing::error!(run = %self.context.id, %cause, "the journal cannot be read; the screen starts empty");
                Fold::fresh(fresh)
            }
        }
    }

    /// Connects again; through a new keeper if the old one was killed, which is what `true` says.
    pub async fn regain(&mut self) -> Result<bool, RegainError> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.regain_once().await {
                Ok((link, replaced)) => {
                    *self = KeeperLink::new(self.context.clone(), link)?;
                    return Ok(replaced);
                }
                // Nothing is left to get hold of.
                Err(RegainError::NoLifeline) => return Err(RegainError::NoLifeline),
                Err(cause) if !self.is_anyone_there() => return Err(cause),
                // A socket closes before its process has ended, and a stopped keeper answers later.
                Err(cause) => tracing::debug!(run = %self.context.id, %cause, "not regained yet"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn regain_once(&self) -> Result<(KeeperSocket, bool), RegainError> {
        if self.context.is_session {
            // Its connection has let go of it; there is no socket to find it by.
            return Err(RegainError::NoLifeline);
        }
        let context = self.context.clone();
        let (keeper, child, env) = (self.keeper.clone(), self.child.clone(), self.environment.clone());
        let lifeline =
            self.lifeline.as_ref().map(OwnedFd::try_clone).transpose().map_err(KeeperSocketError::from)?;
        blocking(move || {
            if platform::is_alive(&keeper) {
                return Ok((connect(&context)?, false));
            }
            let master = lifeline.ok_or(RegainError::NoLifeline)?;
            let spec = rescue_spec(&context, child, env);
            start_keeper(&context.keeper_binary, &spec, None, Some(master.as_fd()))?;
            Ok((connect(&context)?, true))
        })
        .await
        .map_err(KeeperSocketError::from)?
    }

    /// A run whose keeper or agent lives is not over, whatever we cannot reach.
    fn is_anyone_there(&self) -> bool {
        platform::is_alive(&self.keeper) || self.child.as_ref().is_some_and(platform::is_alive)
    }
}

/// A keeper whose socket was deleted is asked to bind it anew.
fn connect(context: &RunContext) -> Result<KeeperSocket, KeeperSocketError> {
    let first = KeeperSocket::connect(&context.dir, context.epoch);
    let Err(KeeperSocketError::Io(_)) = &first else { return first };
    let Ok(Some(PidFile { keeper, .. })) = PidFile::read(&context.dir.pid_file()) else { return first };
    if !matches!(platform::signal_if_same(&keeper, Signal::USR1), Ok(true)) {
        return first;
    }
    let deadline = std::time::Instant::now() + REBIND_WITHIN;
    loop {
        match KeeperSocket::connect(&context.dir, context.epoch) {
            // One that was dying when it was asked binds nothing any more.
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
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)
}
