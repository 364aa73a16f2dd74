//! The daemon asked through its API, where the command line would show less.

use agency_api::method::{Method, PtyScreen, ScreenDump, TaskRef};
use agency_api::paths::StateDir;
use agency_api::{Bytes, Failure};
use agency_client::Client;

use crate::stage::Stage;

/// A call to the daemon that runs.
fn call<M: Method>(stage: &Stage, method: M, params: M::Params) -> Result<M::Result, Failure> {
    let state = StateDir::at(stage.state());
    runtime().block_on(async { Client::connect(&state).await?.call(method, params).await })
}

/// The screen of a task's live run, and the exact state behind it.
#[track_caller]
pub fn screen(stage: &Stage, slug: &str) -> ScreenDump {
    ask_for_screen(stage, slug).unwrap_or_else(|failure| panic!("{slug}: {failure}"))
}

/// `None` if it has no live run, or none any more.
pub fn try_screen(stage: &Stage, slug: &str) -> Option<ScreenDump> {
    ask_for_screen(stage, slug).ok()
}

fn ask_for_screen(stage: &Stage, slug: &str) -> Result<ScreenDump, Failure> {
    call(stage, PtyScreen, TaskRef { cwd: Bytes::from(stage.repo()), name: slug.to_owned() })
}

/// One connection for many calls.
pub struct Line {
    runtime: tokio::runtime::Runtime,
    daemon: Client,
}

impl Line {
    pub fn open(stage: &Stage) -> Line {
        let runtime = runtime();
        let daemon = runtime.block_on(Client::connect(&StateDir::at(stage.state())));
        Line { runtime, daemon: daemon.unwrap_or_else(|failure| panic!("{failure}")) }
    }

    /// The answer to a call that is not refused.
    #[track_caller]
    pub fn call<M: Method>(&mut self, method: M, params: M::Params) -> M::Result {
        let answer = self.runtime.block_on(self.daemon.call(method, params));
        answer.unwrap_or_else(|failure| panic!("{}: {failure}", M::NAME))
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}
