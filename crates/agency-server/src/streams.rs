//! Streams that the loop has promised to callers, until each caller opens the WebSocket of its stream.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Mutex;

use agency_run::command::TerminalCommand;
use agency_run::handle::CommandSender;
use agency_run::logs::LogRequest;
use agency_run::viewers::ViewerOptions;
use tokio::sync::watch;

/// A caller opens its stream at once. Of more streams than this the oldest was never opened, and is dropped.
const MAX_WAITING: usize = 64;

/// A stream that a caller may open.
#[derive(Debug)]
pub enum Promised {
    /// The terminal of a live run.
    Viewer {
        /// The run.
        run: CommandSender<TerminalCommand>,
        /// The options of the viewer.
        view: ViewerOptions,
    },
    /// The output of a run.
    Log(LogRequest),
    /// The output of a setup.
    SetupLog {
        /// The file.
        path: PathBuf,
        /// Changes with each new piece of output; `None` if the caller wants only the output so far.
        grows: Option<watch::Receiver<u64>>,
    },
}

/// The promised streams that were not opened yet.
#[derive(Debug, Default)]
pub struct Streams {
    waiting: Mutex<VecDeque<(String, Promised)>>,
}

impl Streams {
    /// Returns the token with which the caller opens the stream, once.
    pub fn promise(&self, promised: Promised) -> io::Result<String> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|err| io::Error::other(err.to_string()))?;
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut waiting = self.lock();
        if waiting.len() == MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back((token.clone(), promised));
        Ok(token)
    }

    /// The stream of this token. A token can be used once.
    pub(crate) fn redeem(&self, token: &str) -> Option<Promised> {
        let mut waiting = self.lock();
        let at = waiting.iter().position(|(known, _)| known == token)?;
        waiting.remove(at).map(|(_, promised)| promised)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(String, Promised)>> {
        self.waiting.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
