//! What a keeper's probe says, in the detector's words.

use agency_api::keeper::{Probe, ProcessProbe};
use agency_core::evidence::{self, ProbedProcess, Waits};

/// `None` where there is no terminal.
pub fn seen(probe: Probe) -> Option<evidence::Probe> {
    let terminal = probe.terminal?;
    Some(evidence::Probe {
        canonical: terminal.canonical,
        echo: terminal.echo,
        foreground: terminal.foreground_group,
        processes: probe.processes.into_iter().map(process).collect(),
    })
}

fn process(process: ProcessProbe) -> ProbedProcess {
    ProbedProcess {
        waits: waits(&process),
        pid: process.pid,
        parent: process.parent,
        group: process.group,
        ended: process.state == "Z" || process.state == "X",
        name: process.name,
    }
}

fn waits(process: &ProcessProbe) -> Waits {
    match () {
        () if process.at_terminal => Waits::ForTerminal,
        () if process.watches_terminal == Some(true) => Waits::ForTerminalToo,
        () if process.hidden => Waits::Hidden,
        () => Waits::Otherwise,
    }
}
