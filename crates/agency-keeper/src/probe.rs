//! Probes: what the kernel reports about the agent's processes and its terminal, and which part is journaled.
//!
//! The keeper does this, not the daemon, because under Yama only an ancestor may inspect a process.

use agency_api::keeper::{Probe, ProcessProbe};

use crate::platform::{self, Process};
use crate::port::Port;
use crate::tree::Tree;

/// The most processes in one journaled probe. A few show what a machine full of compilers does, and a day of
/// compilers must not fill the journal.
const MAX_NOTED: usize = 16;

/// A complete probe, for a peer that asks for one.
pub(crate) fn probe(port: &Port, tree: &Tree, others: &[i32]) -> Probe {
    let mut probe = probe_processes(port, &tree.processes(others));
    for process in &mut probe.processes {
        process.wchan = platform::wchan(process.pid);
    }
    probe
}

fn probe_processes(port: &Port, processes: &[Process]) -> Probe {
    let terminal = port.as_terminal();
    let device = terminal.map(|terminal| terminal.device());
    Probe {
        terminal: terminal.and_then(|terminal| terminal.probe()),
        processes: processes.iter().map(|process| platform::probe(process, device)).collect(),
        left_out: 0,
    }
}

/// A probe for the journal: it differs from the one before only if something happened.
pub(crate) fn probe_for_journal(port: &Port, tree: &Tree, others: &[i32]) -> Probe {
    let mut processes = tree.processes_nearby(others);
    processes.retain(|process| !process.has_ended());
    let left_out = processes.len().saturating_sub(MAX_NOTED);
    if left_out > 0 {
        let foreground = port.as_terminal().and_then(|terminal| terminal.foreground_group());
        processes.sort_by_key(|process| Some(process.group) != foreground);
        processes.truncate(MAX_NOTED);
    }
    let mut probe = probe_processes(port, &processes);
    probe.processes.iter_mut().for_each(drop_scheduler_state);
    Probe { left_out, ..probe }
}

/// Drops the scheduler state: a process that merely alternates between running and sleeping is not news unless
/// it sleeps on a terminal read.
fn drop_scheduler_state(process: &mut ProcessProbe) {
    let waits = process.at_terminal || process.watches_terminal == Some(true);
    process.state = match process.state.as_str() {
        "T" | "t" => "T",
        _ if waits => "S",
        _ => "",
    }
    .to_string();
    if !waits {
        (process.syscall, process.watches_terminal, process.timeout) = (None, None, false);
    }
}

/// Whether `new` shows a change. Only whether input is waiting counts, not how much.
pub(crate) fn differs(old: &Probe, new: &Probe) -> bool {
    let terminal_state = |probe: &Probe| {
        let terminal = probe.terminal.as_ref();
        terminal
            .map(|terminal| (terminal.canonical, terminal.echo, terminal.foreground_group, has_input(probe)))
    };
    let is_raw = new.terminal.as_ref().is_some_and(|terminal| !terminal.canonical);
    let same = |(old, new)| old == new || (is_raw && only_woke_up(old, new));
    let is_same_set = old.processes.len() == new.processes.len();
    terminal_state(old) != terminal_state(new)
        || !is_same_set
        || !old.processes.iter().zip(&new.processes).all(same)
}

/// Whether a raw-mode program only woke up. Such programs wake all the time, and what they do is visible.
fn only_woke_up(old: &ProcessProbe, new: &ProcessProbe) -> bool {
    let without_wait = |process: &ProcessProbe| ProcessProbe {
        state: String::new(),
        syscall: None,
        watches_terminal: None,
        timeout: false,
        ..process.clone()
    };
    old.watches_terminal == Some(true) && new.state != "T" && without_wait(old) == without_wait(new)
}

fn has_input(probe: &Probe) -> bool {
    probe.terminal.as_ref().is_some_and(|terminal| terminal.input_waiting.is_some_and(|count| count > 0))
}

/// The next thing that can happen, judging by a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// Nothing happens before a user types.
    AwaitsInput,
    /// A program in raw mode, which draws what it does.
    Raw,
    /// Anything, possibly without output.
    Open,
}

impl Outlook {
    pub(crate) fn of(probe: &Probe) -> Outlook {
        let Some(terminal) = &probe.terminal else { return Outlook::Open };
        let reads = |process: &ProcessProbe| {
            process.at_terminal && !process.timeout && Some(process.group) == terminal.foreground_group
        };
        // A process that is about to read waiting input does not wait for more.
        if !has_input(probe) && probe.processes.iter().any(reads) {
            return Outlook::AwaitsInput;
        }
        if terminal.canonical { Outlook::Open } else { Outlook::Raw }
    }
}

#[cfg(test)]
mod tests {
    use agency_api::keeper::TerminalProbe;

    use super::*;

    fn at_prompt() -> Probe {
        let shell = ProcessProbe {
            pid: 7,
            group: 7,
            state: "S".into(),
            syscall: Some((0, 0)),
            at_terminal: true,
            watches_terminal: Some(false),
            ..ProcessProbe::default()
        };
        let terminal =
            TerminalProbe { canonical: true, echo: true, foreground_group: Some(7), input_waiting: Some(0) };
        Probe { terminal: Some(terminal), processes: vec![shell], left_out: 0 }
    }

    #[test]
    fn running_and_sleeping_elsewhere_are_not_told_apart() {
        let mut notes = ["R", "S", "D"].map(|state| {
            let syscall = (state == "S").then_some((35, 1));
            ProcessProbe { state: state.into(), syscall, ..ProcessProbe::default() }
        });
        notes.iter_mut().for_each(drop_scheduler_state);
        assert!(notes.iter().all(|note| *note == notes[0]));
        let mut stopped = ProcessProbe { state: "T".into(), ..ProcessProbe::default() };
        drop_scheduler_state(&mut stopped);
        assert_eq!(stopped.state, "T");
    }

    #[test]
    fn more_typed_ahead_is_no_change_but_reading_it_is() {
        let typed = |count| {
            let mut probe = at_prompt();
            probe.terminal.as_mut().expect("it has a terminal").input_waiting = Some(count);
            probe
        };
        assert!(!differs(&typed(3), &typed(4)));
        assert!(differs(&typed(4), &typed(0)));
    }

    #[test]
    fn a_raw_program_that_wakes_up_has_not_changed() {
        let watching = |canonical, change: fn(&mut ProcessProbe)| {
            let mut probe = at_prompt();
            probe.terminal.as_mut().expect("it has a terminal").canonical = canonical;
            probe.processes[0].at_terminal = false;
            probe.processes[0].watches_terminal = Some(true);
            change(&mut probe.processes[0]);
            probe
        };
        let wakes = |process: &mut ProcessProbe| {
            (process.state, process.syscall, process.watches_terminal) = (String::new(), None, None);
        };
        assert!(!differs(&watching(false, |_| {}), &watching(false, wakes)));
        assert!(
            differs(&watching(false, wakes), &watching(false, |_| {})),
            "starting to watch the terminal is a change"
        );
        assert!(
            differs(&watching(true, |_| {}), &watching(true, wakes)),
            "in line mode, activity is only visible here"
        );
        assert!(differs(&watching(false, |_| {}), &watching(false, |it| it.state = "T".into())));
        assert!(differs(&watching(false, |_| {}), &watching(false, |it| it.at_terminal = true)));
        assert!(differs(&watching(false, |_| {}), &watching(false, |it| it.name = "less".into())));
    }

    #[test]
    fn only_a_foreground_read_without_a_timeout_awaits_input() {
        assert_eq!(Outlook::of(&at_prompt()), Outlook::AwaitsInput);
        let changed = |change: fn(&mut Probe)| {
            let mut probe = at_prompt();
            change(&mut probe);
            Outlook::of(&probe)
        };
        assert_eq!(changed(|probe| probe.processes[0].group = 8), Outlook::Open, "a background job");
        assert_eq!(changed(|probe| probe.processes[0].timeout = true), Outlook::Open);
        assert_eq!(changed(|probe| probe.processes[0].at_terminal = false), Outlook::Open);
        let raw = |probe: &mut Probe| {
            probe.processes.clear();
            probe.terminal.as_mut().expect("it has a terminal").canonical = false;
        };
        assert_eq!(changed(raw), Outlook::Raw);
    }
}
