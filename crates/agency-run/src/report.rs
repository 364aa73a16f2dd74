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
    Run { run: RunId, report: RunReport },
    /// Something happened to the process of a connection.
    Connection { name: String, attempt: u64, report: ConnectionReport },
}

/// A report about a run.
#[derive(Debug)]
pub enum RunReport {
    State(Box<Change>),
    /// The state is the same, but other evidence decides it now, or the evidence has another detail.
    Evidence(Box<Evidence>),
    /// The agent names the session that it is in.
    Session(String),
    /// The agent does not have the session that it was to resume.
    SessionLost,
    /// How many viewers are attached now.
    Viewers(usize),
    /// New events of the conversation before `next_seq`, each with its time on the journal's clock.
    ConversationEvents {
        events: Vec<(Duration, EventData)>,
        next_seq: u64,
    },
    /// The agent asks for an approval. The daemon checks the user's rules first.
    ApprovalRequested(Box<Approval>),
    /// The agent has exited, the follower has folded its output, and its process tree is gone.
    Over {
        exit: RunExit,
        ended: Vec<Ended>,
    },
    /// The keeper was killed and another one holds the run now.
    Rescued {
        keeper: ProcessIdentity,
    },
    /// A keeper that did not answer when the daemon found it answers now.
    Reached {
        environment: Vec<(Bytes, Bytes)>,
    },
    /// The keeper cannot write the journal; without a cause: it can again.
    Journal {
        cause: Option<String>,
    },
}

/// A report about the process of a connection.
#[derive(Debug)]
pub enum ConnectionReport {
    Spawned,
    SpawnFailed {
        not_found: bool,
        cause: String,
    },
    Greeted {
        name: Option<String>,
        /// The agent can resume a session of another process.
        resumes: bool,
    },
    HandshakeFailed {
        cause: String,
    },
    /// The process closed its pipes, or ended.
    Lost {
        cause: String,
    },
    /// Nothing is left of the process.
    Gone,
    /// So many tasks have a session on the connection.
    Sessions(usize),
}

/// Resolves once the loop has taken a report.
pub type Taken = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Takes reports to the daemon's loop, in order. A report waits while the loop is behind.
#[derive(Clone)]
pub struct ReportSink(Arc<dyn Fn(Report) -> Taken + Send + Sync>);

impl ReportSink {
    pub fn new(take: impl Fn(Report) -> Taken + Send + Sync + 'static) -> ReportSink {
        ReportSink(Arc::new(take))
    }

    pub async fn report(&self, report: Report) {
        (self.0)(report).await;
    }
}

/// Sends the reports of one run.
pub struct RunReporter {
    pub sink: ReportSink,
    pub run: RunId,
}

impl RunReporter {
    pub async fn report(&self, report: RunReport) {
        self.sink.report(Report::Run { run: self.run.clone(), report }).await;
    }
}
