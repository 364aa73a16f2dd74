//! Converts a keeper's probe to the detector's evidence.

use agency_api::keeper::{Probe, ProcessProbe};
use agency_core::evidence::{self, ProbedProcess, Waits};

/// `None` if the run has no terminal.
pub fn to_evidence(probe: Probe) -> Option<evidence::Probe> {
    let terminal = probe.terminal?;
    let process = |probed: ProcessProbe| process(probed, terminal.canonical);
    Some(evidence::Probe {
        canonical: terminal.canonical,
        echo: terminal.echo,
        foreground: terminal.foreground_group,
        processes: probe.processes.into_iter().map(process).collect(),
    })
}

fn process(process: ProcessProbe, canonical: bool) -> ProbedProcess {
    ProbedProcess {
        waits: waits(&process, canonical),
        pid: process.pid,
        parent: process.parent,
        group: process.group,
        ended: process.state == "Z" || process.state == "X",
        name: process.name,
    }
}

fn waits(process: &ProcessProbe, canonical: bool) -> Waits {
    match () {
        // A full-screen program with a timer looks for keys between two ticks, also while it works.
        () if process.at_terminal && process.timeout && !canonical => Waits::ForTerminalOrTimer,
        () if process.at_terminal => Waits::ForTerminal,
        () if process.watches_terminal == Some(true) => Waits::ForTerminalToo,
        () if process.at_inner_terminal => Waits::ForInnerTerminal,
        () if process.hidden => Waits::Hidden,
        () => Waits::Otherwise,
    }
}

#[cfg(test)]
mod tests {
    use agency_api::keeper::TerminalProbe;

    use super::*;

    #[test]
    fn a_program_with_a_timer_does_not_count_as_waiting() {
        let reader =
            ProcessProbe { pid: 7, group: 7, at_terminal: true, timeout: true, ..Default::default() };
        for (canonical, expected) in [(false, Waits::ForTerminalOrTimer), (true, Waits::ForTerminal)] {
            let terminal = TerminalProbe { canonical, foreground_group: Some(7), ..Default::default() };
            let probe = Probe { terminal: Some(terminal), processes: vec![reader.clone()], left_out: 0 };
            assert_eq!(to_evidence(probe).expect("a terminal").processes[0].waits, expected);
        }
    }
}
