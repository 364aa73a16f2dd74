//! A setup or teardown that is under way, as the loop holds it.

use agency_api::event::SetupPhase;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A setup or teardown that is under way.
pub(super) struct SetupRun {
    pub(super) phase: SetupPhase,
    pub(super) stop: watch::Sender<bool>,
    /// Counts the pieces of output. Readers that follow the log wait for it to change.
    pub(super) printed: watch::Sender<u64>,
    pub(super) asked_by: Vec<String>,
    pub(super) task: JoinHandle<()>,
}

impl SetupRun {
    pub(super) fn new(
        phase: SetupPhase,
        stop: watch::Sender<bool>,
        watch: Option<String>,
        task: JoinHandle<()>,
    ) -> SetupRun {
        let (printed, _) = watch::channel(0);
        SetupRun { phase, stop, printed, asked_by: watch.into_iter().collect(), task }
    }

    /// Asks the commands to end. The run reports its end as always.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }
}
