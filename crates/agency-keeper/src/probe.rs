//! What the kernel says of the agent and its terminal at this moment, and how much of it is worth a note.
//!
//! Asked of the keeper because only an ancestor may look into a process under Yama.

use agency_api::keeper::{Probe, ProcessProbe};

use crate::platform::{self, Process};
use crate::port::Port;
use crate::tree::Tree;

/// A note names no more processes than this: what a machine full of compilers does is told by a few of them, and a
/// day of compilers must not fill the journal.
const MAX_NOTED: usize = 16;

/// All there is to know, for who asks.
pub(crate) fn probe(port: &Port, tree: &Tree, others: &[i32]) -> Probe {
    let mut probe = probe_of(port, &tree.processes(others));
    for process in &mut probe.processes {
        process.wchan = platform::wchan(process.pid);
    }
    probe
}

fn probe_of(port: &Port, processes: &[Process]) -> Probe {
    let terminal = port.as_terminal();
    let device = terminal.map(|terminal| terminal.device());
    Probe {
        terminal: terminal.and_then(|terminal| terminal.probe()),
        processes: processes.iter().map(|process| platform::probe(process, device)).collect(),
        left_out: 0,
    }
}

/// What is worth a note: nothing in it changes unless something happens.
pub(crate) fn noteworthy(port: &Port, tree: &Tree, others: &[i32]) -> Probe {
    let mut processes = tree.processes_nearby(others);
    processes.retain(|process| !process.has_ended());
    let left_out = processes.len().saturating_sub(MAX_NOTED);
    if left_out > 0 {
        let foreground = port.as_terminal().and_then(|terminal| terminal.foreground_group());
        processes.sort_by_key(|process| Some(process.group) != foreground);
        processes.truncate(MAX_NOTED);
    }
    let mut probe = probe_of(port, &processes);
    probe.processes.iter_mut().for_each(leave_out_noise);
    Probe { left_out, ..probe }
}

/// Who runs at one look and sleeps at the next has told nothing by either, unless it sleeps at the terminal.
fn leave_out_noise(process: &mut ProcessProbe) {
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

/// Whether `new` tells anything that `old` did not. How much is typed ahead does not matter, only whether something is.
pub(crate) fn differs(old: &Probe, new: &Probe) -> bool {
    let told = |probe: &Probe| {
        let terminal = probe.terminal.as_ref();
        terminal
            .map(|terminal| (terminal.canonical, terminal.echo, terminal.foreground_group, has_input(probe)))
    };
    let is_raw = new.terminal.as_ref().is_some_and(|terminal| !terminal.canonical);
    let same = |(old, new)| old == new || (is_raw && only_wakes(old, new));
    let is_same_set = old.processes.len() == new.processes.len();
    told(old) != told(new) || !is_same_set || !old.processes.iter().zip(&new.processes).all(same)
}

/// A program that draws its own screen and watches several things wakes all the time, and shows what it does.
fn only_wakes(old: &ProcessProbe, new: &ProcessProbe) -> bool {
    let besides = |process: &ProcessProbe| ProcessProbe {
        state: String::new(),
        syscall: None,
        watches_terminal: None,
        timeout: false,
        ..process.clone()
    };
    old.watches_terminal == Some(true) && new.state != "T" && besides(old) == besides(new)
}

fn has_input(probe: &Probe) -> bool {
    probe.terminal.as_ref().is_some_and(|terminal| terminal.input_waiting.is_some_and(|count| count > 0))
}

/// How the things that were seen can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outlook {
    /// Somebody must type before anything happens.
    AwaitsInput,
    /// A program that draws its own screen: what it does, it shows.
    Raw,
    /// Anything, and without a word.
    Open,
}

impl Outlook {
    pub(crate) fn of(probe: &Probe) -> Outlook {
        let Some(terminal) = &probe.terminal else { return Outlook::Open };
        let reads = |process: &ProcessProbe| {
            process.at_terminal && !process.timeout && Some(process.group) == terminal.foreground_group
        };
        // One that is about to read what was typed does not wait for more.
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
    fn running_or_sleeping_elsewhere_is_all_the_same() {
        let mut notes = ["R", "S", "D"].map(|state| {
            let syscall = (state == "S").then_some((35, 1));
            ProcessProbe { state: state.into(), syscall, ..ProcessProbe::default() }
        });
        notes.iter_mut().for_each(leave_out_noise);
        assert!(notes.iter().all(|note| *note == notes[0]));
        let mut stopped = ProcessProbe { state: "T".into(), ..ProcessProbe::default() };
        leave_out_noise(&mut stopped);
        assert_eq!(stopped.state, "T");
    }

    #[test]
    fn more_typed_ahead_tells_nothing_new_but_that_it_was_read_does() {
        let typed = |count| {
            let mut probe = at_prompt();
            probe.terminal.as_mut().expect("it has one").input_waiting = Some(count);
            probe
        };
        assert!(!differs(&typed(3), &typed(4)));
        assert!(differs(&typed(4), &typed(0)));
    }

    #[test]
    fn a_program_with_its_own_screen_may_wake_but_not_change() {
        let watching = |canonical, change: fn(&mut ProcessProbe)| {
            let mut probe = at_prompt();
            probe.terminal.as_mut().expect("it has one").canonical = canonical;
            probe.processes[0].at_terminal = false;
            probe.processes[0].watches_terminal = Some(true);
            change(&mut probe.processes[0]);
            probe
        };
        let wakes = |process: &mut ProcessProbe| {
            (process.state, process.syscall, process.watches_terminal) = (String::new(), None, None);
        };
        assert!(!differs(&watching(false, |_| {}), &watching(false, wakes)));
        assert!(differs(&watching(false, wakes), &watching(false, |_| {})), "that it watches is news");
        assert!(differs(&watching(true, |_| {}), &watching(true, wakes)), "line programs work in silence");
        assert!(differs(&watching(false, |_| {}), &watching(false, |it| it.state = "T".into())));
        assert!(differs(&watching(false, |_| {}), &watching(false, |it| it.at_terminal = true)));
        assert!(differs(&watching(false, |_| {}), &watching(false, |it| it.name = "less".into())));
    }

    #[test]
    fn only_a_read_in_the_foreground_without_a_timeout_waits_for_ever() {
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
            probe.terminal.as_mut().expect("it has one").canonical = false;
        };
        assert_eq!(changed(raw), Outlook::Raw);
    }
}
