//! Where runs and connections report what happens to them.

use std::pin::Pin;
use std::sync::Arc;

use agency_core::ids::RunId;

use crate::run::RunNews;
use crate::switchboard::WireNews;

/// One report to the daemon's loop.
#[derive(Debug)]
pub enum Report {
    /// Something happened to a run.
    Run { run: RunId, news: RunNews },
    /// Something happened to the process of a connection.
    Connection { name: String, attempt: u64, news: WireNews },
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
