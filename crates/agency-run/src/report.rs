//! The reports of runs and connections, and the sink that takes them to the daemon's loop.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agency_api::event::EventData;
use agency_api::keeper::Ended;
use agency_api::{Bytes, ProcessIdentity};
use agency_core::conversation::Approval;
use agency_core::evidence::{Change, Evidence};
use agency_core::exit::RunExit;
use agency_core::ids::RunId;

/// One report to the daemon's loop.
#[derive(Debug)]
pub enum Report {
    /// Something happened to a run.
    Run {
        /// The run.
        run: RunId,
        /// The event.
        report: RunReport,
    },
    /// Something happened to the process of a connection.
    Connection {
        /// The connection.
        name: String,
        /// The attempt that started the process.
        attempt: u64,
        /// The event.
        report: ConnectionReport,
    },
}

/// A report about a run.
#[derive(Debug)]
pub enum RunReport {
    /// The state has changed.
    State(Box<Change>),
    /// The state is the same, but other evidence decides it now, or the evidence has another detail.
    Evidence(Box<Evidence>),
    /// The agent names the session that it is in.
    Session(String),
    /// The agent does not have the session that it was to resume.
    SessionLost,
    /// There is another reason, or none any more, why the user should look at the agent's mode.
    ModeWarning(Option<String>),
    /// The number of attached viewers has changed.
    Viewers(usize),
    /// New events of the conversation.
    ConversationEvents {
        /// The events, each with its time on the journal's clock.
        events: Vec<(Duration, EventData)>,
        /// The first record that the follower has not folded.
        next_seq: u64,
    },
    /// The agent asks for an approval. The daemon checks the user's rules first.
    ApprovalRequested(Box<Approval>),
    /// The agent has exited, the follower has folded its output, and its process tree is gone.
    Over {
        /// How it exited.
        exit: RunExit,
        /// The processes that were ended with it.
        ended: Vec<Ended>,
    },
    /// The keeper was killed and another one holds the run now.
    Rescued {
        /// The new keeper.
        keeper: ProcessIdentity,
    },
    /// A keeper that did not answer when the daemon found it answers now.
    Reached {
        /// The environment that the agent was launched with.
        environment: Vec<(Bytes, Bytes)>,
    },
    /// The keeper cannot write the journal, or it can again.
    Journal {
        /// Why it cannot; absent if it can.
        cause: Option<String>,
    },
}

/// A report about the process of a connection.
#[derive(Debug)]
pub enum ConnectionReport {
    /// The process runs.
    Spawned,
    /// The process could not be started.
    SpawnFailed {
        /// Its program does not exist.
        not_found: bool,
        /// Why.
        cause: String,
    },
    /// The agent has answered `initialize`.
    Greeted {
        /// The agent's own name and version.
        name: Option<String>,
        /// The agent can resume a session of another process.
        resumes: bool,
    },
    /// The agent has refused `initialize`.
    HandshakeFailed {
        /// Why.
        cause: String,
    },
    /// The process closed its pipes, or ended.
    Lost {
        /// Why.
        cause: String,
    },
    /// Nothing is left of the process.
    Gone,
    /// The number of open sessions has changed.
    Sessions(usize),
}

/// Resolves once the loop has taken a report.
pub type Taken = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Takes reports to the daemon's loop, in order. A report waits while the loop is behind.
#[derive(Clone)]
pub struct ReportSink(Arc<dyn Fn(Report) -> Taken + Send + Sync>);

impl ReportSink {
    /// A sink that calls a function for each report.
    pub fn new(take: impl Fn(Report) -> Taken + Send + Sync + 'static) -> ReportSink {
        ReportSink(Arc::new(take))
    }

    /// Resolves once the loop has taken the report.
    pub async fn report(&self, report: Report) {
        (self.0)(report).await;
    }
}

/// Sends the reports of one run.
pub struct RunReporter {
    /// Where the reports go.
    pub sink: ReportSink,
    /// The run.
    pub run: RunId,
}

impl RunReporter {
    /// Resolves once the loop has taken the report.
    pub async fn report(&self, report: RunReport) {
        self.sink.report(Report::Run { run: self.run.clone(), report }).await;
    }
}
