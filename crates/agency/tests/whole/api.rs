//! Calls of the daemon's API, for what the command line does not show.

use agency_api::desk::DeskUpdate;
use agency_api::method::{Method, PtyScreen, PtyScreenParams, ScreenDump, TaskRef};
use agency_api::paths::StateDir;
use agency_api::{Bytes, Failure};
use agency_client::Client;

use crate::stage::{SOON, Stage};

/// Calls the running daemon.
fn call<M: Method>(stage: &Stage, method: M, params: M::Params) -> Result<M::Result, Failure> {
    let state = StateDir::at(stage.state());
    runtime().block_on(async { Client::connect(&state).await?.call(method, params).await })
}

/// The screen of a task's live run, and the exact state behind it.
#[track_caller]
pub fn screen(stage: &Stage, slug: &str) -> ScreenDump {
    request_screen(stage, slug).unwrap_or_else(|failure| panic!("{slug}: {failure}"))
}

/// `None` if the task has no live run.
pub fn try_screen(stage: &Stage, slug: &str) -> Option<ScreenDump> {
    request_screen(stage, slug).ok()
}

fn request_screen(stage: &Stage, slug: &str) -> Result<ScreenDump, Failure> {
    let task = TaskRef { cwd: Bytes::from(stage.repo()), name: slug.to_owned() };
    call(stage, PtyScreen, PtyScreenParams { task, at: None })
}

/// One connection for many calls.
pub struct ApiConnection {
    runtime: tokio::runtime::Runtime,
    daemon: Client,
}

impl ApiConnection {
    pub fn open(stage: &Stage) -> ApiConnection {
        let runtime = runtime();
        let daemon = runtime.block_on(Client::connect(&StateDir::at(stage.state())));
        ApiConnection { runtime, daemon: daemon.unwrap_or_else(|failure| panic!("{failure}")) }
    }

    /// The answer; panics if the daemon refuses the call.
    #[track_caller]
    pub fn call<M: Method>(&mut self, method: M, params: M::Params) -> M::Result {
        let answer = self.runtime.block_on(self.daemon.call(method, params));
        answer.unwrap_or_else(|failure| panic!("{}: {failure}", M::NAME))
    }
}

impl ApiConnection {
    /// The next change of the desk. Panics if none comes.
    #[track_caller]
    pub fn next_desk_update(&mut self, what: &str) -> DeskUpdate {
        let next = async { tokio::time::timeout(SOON, self.daemon.next_desk_update()).await };
        let next = self.runtime.block_on(next).unwrap_or_else(|_| panic!("no update: {what}"));
        next.unwrap_or_else(|| panic!("the daemon has gone: {what}"))
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}
