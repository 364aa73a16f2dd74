//! What the kernel says of the agent and its terminal at this moment.
//!
//! Asked of the keeper because only an ancestor may look into a process under Yama.

use agency_api::keeper::Probe;

use crate::platform;
use crate::port::Port;
use crate::tree::Tree;

pub(crate) fn probe(port: &Port, tree: &Tree, others: &[i32]) -> Probe {
    let terminal = port.as_terminal();
    let device = terminal.map(|terminal| terminal.device());
    let processes = tree.processes(others);
    Probe {
        terminal: terminal.and_then(|terminal| terminal.probe()),
        processes: processes.iter().map(|process| platform::probe(process, device)).collect(),
    }
}
