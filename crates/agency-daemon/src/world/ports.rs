//! The ports that a workspace owns.
//!
//! Not here: how free ports are found (see `agency_store::ports`), and where they are recorded (see `agency_store::workspace_record`).

use agency_api::{Failure, FailureCode};
use agency_core::config::WorkspaceConfig;
use agency_core::ids::TaskKey;
use agency_core::tokens::Ports;
use agency_store::ports;

use super::World;

impl World {
    /// Makes sure that the task's workspace has ports, and notes for the user what is wrong with them.
    pub(super) fn reserve_ports(&mut self, key: &TaskKey) {
        match self.give_ports(key) {
            Ok(Some(given)) => self.note_busy_ports(key, &given),
            Ok(None) => self.note_missing_ports(key),
            Err(cause) => tracing::warn!(task = %key, %cause, "a workspace has no ports"),
        }
    }

    /// The ports of the task's workspace, chosen now if it has none.
    pub(super) fn give_ports(&mut self, key: &TaskKey) -> Result<Option<Ports>, Failure> {
        let config = self.settings_of_setup(key)?.config.workspace;
        let given = self.workspaces.records.ports(key, config.port_base, config.ports);
        given.map_err(|err| {
            Failure::new("cannot write down a workspace's ports").code(FailureCode::IoError).caused_by(&err)
        })
    }

    /// The workspace keeps its ports, because files and programs may know them already. The user should look.
    fn note_busy_ports(&mut self, key: &TaskKey, given: &Ports) {
        let row = (0..given.count).map(|nth| given.first.saturating_add(nth));
        let busy: Vec<String> =
            row.filter(|port| !ports::is_free(*port)).map(|port| port.to_string()).collect();
        if !busy.is_empty() {
            let words = format!("in use by another program, though given to task {}", key.task);
            self.add_notes(
                key,
                vec![format!("port {} {words}: `ss -ltnp` shows whose it is", busy.join(", "))],
            );
        }
    }

    fn note_missing_ports(&mut self, key: &TaskKey) {
        let Ok(settings) = self.settings_of_setup(key) else { return };
        let WorkspaceConfig { ports, port_base, .. } = settings.config.workspace;
        if ports > 0 {
            self.add_notes(key, vec![format!("there are no {ports} free ports from {port_base} on")]);
        }
    }
}
