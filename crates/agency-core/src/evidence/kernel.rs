//! The kernel's view of the terminal: which process group is in the foreground, and what its processes wait for.
//!
//! Certain for programs that read lines. Full-screen programs wait for many things at once, so this says nothing about them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::activity::{Activity, Why};

/// One look at the agent's processes and its terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// The terminal passes on whole lines (canonical mode).
    pub canonical: bool,
    /// The terminal shows typed text.
    pub echo: bool,
    /// The process group in the foreground.
    pub foreground: Option<i32>,
    /// The agent and its descendants.
    pub processes: Vec<ProbedProcess>,
}

/// One process of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbedProcess {
    /// Its id.
    pub pid: i32,
    /// The id of its parent.
    pub parent: i32,
    /// Its process group.
    pub group: i32,
    /// Its short name.
    pub name: String,
    /// It has ended, and its parent has not read its exit status.
    pub ended: bool,
    /// The thing that it waits for.
    pub waits: Waits,
}

/// The thing that a process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// For input of this terminal and nothing else.
    ForTerminal,
    /// For input of this terminal, among other things.
    ForTerminalToo,
    /// For input of a terminal inside this one: of `script`, `sudo` or a multiplexer.
    ForInnerTerminal,
    /// For something else, or it does not wait.
    Otherwise,
    /// The keeper may not look at it.
    Hidden,
}

/// The results of earlier probes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KernelWatch {
    foreground: Option<i32>,
    /// Whether the terminal was in canonical mode at the last probe.
    #[serde(default)]
    canonical: Option<bool>,
    /// Processes that lived while the agent waited. They are no sign of work.
    residents: BTreeSet<i32>,
    others: BTreeSet<i32>,
    /// If a process reads a line with echo: whether it is a shell.
    #[serde(default)]
    line_reader: Option<bool>,
    /// A shell in the foreground waits for a line. If a program reports now, no probe has seen it.
    #[serde(default)]
    shell_waits: bool,
    /// The user entered a line since then, so the text before the cursor is the program's.
    #[serde(default)]
    entered: bool,
}

pub(super) struct KernelView {
    pub(super) line: Option<KernelClaim>,
    pub(super) child: Option<KernelClaim>,
    /// Whether another process group came to the foreground.
    pub(super) foreground: ForegroundChange,
}

pub(super) struct KernelClaim {
    pub(super) activity: Activity,
    /// Contains the name of the process.
    pub(super) rule: String,
}

impl KernelClaim {
    fn of(activity: Activity, process: &ProbedProcess, does: &str) -> KernelClaim {
        KernelClaim { activity, rule: super::status::one_line(&format!("{} {does}", process.name)) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForegroundChange {
    Same,
    /// Another group, and the one before still lives.
    Started,
    /// Another group, and the one before is gone, with all its claims.
    Ended,
}

impl KernelWatch {
    /// Takes in a probe. `at_cursor` is the text right before the cursor.
    pub(super) fn read_probe(&mut self, probe: &Probe, at_cursor: &str) -> KernelView {
        let foreground = self.foreground_change(probe);
        self.foreground = probe.foreground;
        let root = root(probe);
        let alive = probe.processes.iter().filter(|process| !process.ended && Some(process.pid) != root);
        self.others = alive.map(|process| process.pid).collect();
        self.residents.retain(|pid| self.others.contains(pid));
        if !probe.canonical && self.canonical == Some(true) {
            self.residents.extend(foreground_pids(probe));
        }
        self.canonical = Some(probe.canonical);
        self.line_reader = line_reader(probe).map(is_shell);
        self.shell_waits = probe.processes.iter().any(|process| {
            Some(process.group) == probe.foreground
                && process.waits == Waits::ForTerminal
                && is_shell(process)
        });
        KernelView { line: line(probe, at_cursor), child: self.child(probe), foreground }
    }

    pub(super) fn shell_waits(&self) -> bool {
        self.shell_waits
    }

    pub(super) fn on_input(&mut self, enter: bool) {
        self.entered = enter;
    }

    /// The new reason to wait, from the text that the program wrote after the last line. A program that reads, writes and
    /// reads again may do so between two probes.
    pub(super) fn new_reason(&self, at_cursor: &str) -> Option<Why> {
        self.line_reader.filter(|_| self.entered).map(|is_shell| reason(is_shell, at_cursor))
    }

    /// The agent waits now, so the processes that live now are no sign of work later.
    pub(super) fn record_residents(&mut self) {
        self.residents.clone_from(&self.others);
    }

    fn foreground_change(&self, probe: &Probe) -> ForegroundChange {
        match (self.foreground, probe.foreground) {
            (Some(before), Some(now)) if before != now => {
                let lives = probe.processes.iter().any(|process| process.group == before && !process.ended);
                if lives { ForegroundChange::Started } else { ForegroundChange::Ended }
            }
            _ => ForegroundChange::Same,
        }
    }

    fn child(&self, probe: &Probe) -> Option<KernelClaim> {
        let mut at_work = self.others.difference(&self.residents);
        let process = at_work.find_map(|pid| {
            let process = probe.processes.iter().find(|process| process.pid == *pid)?;
            let idles = talks(probe, process) || process.waits == Waits::ForInnerTerminal;
            (!idles).then_some(process)
        })?;
        Some(KernelClaim::of(Activity::Working, process, "is at work"))
    }
}

/// The processes of the foreground group. When a program switches to reading keys, these are a part of it: its launcher, its
/// servers. A program to which it passes the keys on has a group of its own.
fn foreground_pids(probe: &Probe) -> impl Iterator<Item = i32> {
    let in_front = |process: &&ProbedProcess| Some(process.group) == probe.foreground && !process.ended;
    probe.processes.iter().filter(in_front).map(|process| process.pid)
}

/// The agent itself: the process whose parent is not in the probe.
fn root(probe: &Probe) -> Option<i32> {
    let is_among = |pid: i32| probe.processes.iter().any(|process| process.pid == pid);
    probe.processes.iter().find(|process| !is_among(process.parent)).map(|process| process.pid)
}

/// Whether the process reads the keys instead of the agent or together with it. An editor that a shell started does not work
/// for the user, and the program that a launcher started is the agent.
fn talks(probe: &Probe, process: &ProbedProcess) -> bool {
    let agent = root(probe).and_then(|root| probe.processes.iter().find(|process| process.pid == root));
    let in_place = agent.is_some_and(|agent| probe.foreground != Some(agent.group));
    let listens = matches!(process.waits, Waits::ForTerminal | Waits::ForTerminalToo);
    !probe.canonical && (in_place || listens) && probe.foreground == Some(process.group)
}

const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "ash"];

fn line(probe: &Probe, at_cursor: &str) -> Option<KernelClaim> {
    let group = probe.foreground?;
    let front: Vec<&ProbedProcess> =
        probe.processes.iter().filter(|process| process.group == group && !process.ended).collect();
    let first = front.first()?;
    let any = |waits: Waits| front.iter().find(|process| process.waits == waits);
    if let Some(reader) = any(Waits::ForTerminal) {
        let (why, does) = match (probe.canonical, probe.echo) {
            (true, false) => (Why::Question, "reads without echo"),
            (true, true) => (reason(is_shell(reader), at_cursor), "reads the terminal"),
            // One key answers this question; a whole text would send more keys.
            (false, _) if is_shell(reader) && asks(at_cursor) => (Why::Question, "reads keys"),
            (false, _) if is_shell(reader) || prompts(at_cursor) => (Why::Prompt, "reads keys"),
            // An editor, a pager, a menu.
            (false, _) => (Why::Unknown, "reads keys"),
        };
        return Some(KernelClaim::of(Activity::Waiting(why), reader, does));
    }
    if !probe.canonical {
        // A shell that reads keys edits a line, whatever else it waits for.
        let mut shells = front.iter().filter(|process| process.waits == Waits::ForTerminalToo);
        let shell = shells.find(|process| is_shell(process))?;
        return Some(KernelClaim::of(Activity::Waiting(Why::Prompt), shell, "reads keys"));
    }
    if any(Waits::Hidden).is_some() {
        // A program of another user, such as `sudo`. Without echo it can only ask for a password.
        let secret = Activity::Waiting(Why::Question);
        return (!probe.echo).then(|| KernelClaim::of(secret, first, "reads without echo"));
    }
    match any(Waits::ForTerminalToo) {
        Some(_) => None,
        None => Some(KernelClaim::of(
            Activity::Working,
            front.last().unwrap_or(first),
            "does not read the terminal",
        )),
    }
}

fn line_reader(probe: &Probe) -> Option<&ProbedProcess> {
    let reads = |process: &&ProbedProcess| {
        Some(process.group) == probe.foreground && !process.ended && process.waits == Waits::ForTerminal
    };
    probe.processes.iter().find(reads).filter(|_| probe.canonical && probe.echo)
}

/// The reason to wait, from the text that the program wrote on the line before it read. Text is a question, unless it looks
/// like a prompt; shells have more kinds of prompts.
fn reason(is_shell: bool, at_cursor: &str) -> Why {
    match at_cursor.trim() {
        "" => Why::Unknown,
        _ if is_shell && at_cursor.trim_end().ends_with(PROMPT_ENDS) => Why::Prompt,
        _ if prompts(at_cursor) => Why::Prompt,
        _ => Why::Question,
    }
}

const PROMPT_ENDS: [char; 5] = ['$', '#', '%', '>', '❯'];

/// Whether the text is a prompt such as `>`, `>>>`, `sqlite>`: a single word with the sign of a prompt at the end.
fn prompts(at_cursor: &str) -> bool {
    let text = at_cursor.trim();
    text.ends_with(PROMPT_ENDS) && !text.contains(char::is_whitespace)
}

/// Whether the text is a question such as `Proceed? (y/n)`. A shell's own prompt has a prompt sign before such an end.
fn asks(at_cursor: &str) -> bool {
    at_cursor.trim_end().ends_with(['?', ':', ')', ']']) && !at_cursor.contains(PROMPT_ENDS)
}

fn is_shell(process: &ProbedProcess) -> bool {
    SHELLS.contains(&process.name.trim_start_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, group: i32, name: &str, waits: Waits) -> ProbedProcess {
        let parent = if pid == 1 { 0 } else { 1 };
        ProbedProcess { pid, parent, group, name: name.to_owned(), ended: false, waits }
    }

    fn probe(modes: &str, foreground: i32, processes: Vec<ProbedProcess>) -> Probe {
        let (canonical, echo) = (modes.contains("canonical"), modes.contains("echo"));
        Probe { canonical, echo, foreground: Some(foreground), processes }
    }

    fn claim_of(probe: &Probe, at_cursor: &str) -> Option<(Activity, String)> {
        line(probe, at_cursor).map(|claim| (claim.activity, claim.rule))
    }

    #[test]
    fn line_programs_are_seen_to_read_or_to_work() {
        use Waits::*;
        let shell = || process(1, 1, "bash", Otherwise);
        let waiting = Activity::Waiting;
        let bash = |waits| vec![process(1, 1, "bash", waits)];
        let front = |name, waits| vec![shell(), process(2, 2, name, waits)];
        for (probe, at_cursor, expected) in [
            (probe("", 1, bash(ForTerminal)), "$ ", Some((waiting(Why::Prompt), "bash reads keys"))),
            (probe("", 1, bash(ForTerminal)), "➜ ", Some((waiting(Why::Prompt), "bash reads keys"))),
            (probe("", 1, bash(ForTerminal)), "$ echo (a)", Some((waiting(Why::Prompt), "bash reads keys"))),
            (
                probe("", 1, bash(ForTerminal)),
                "Go? (y/n) ",
                Some((waiting(Why::Question), "bash reads keys")),
            ),
            (
                probe("canonical echo", 1, vec![process(1, 1, "sh", ForTerminal)]),
                "# ",
                Some((waiting(Why::Prompt), "sh reads the terminal")),
            ),
            (
                probe("canonical echo", 1, bash(ForTerminal)),
                "Go on? ",
                Some((waiting(Why::Question), "bash reads the terminal")),
            ),
            (
                probe("canonical echo", 2, front("sqlite3", ForTerminal)),
                "sqlite> ",
                Some((waiting(Why::Prompt), "sqlite3 reads the terminal")),
            ),
            (
                probe("canonical echo", 2, front("cat", ForTerminal)),
                "",
                Some((waiting(Why::Unknown), "cat reads the terminal")),
            ),
            (
                probe("canonical", 2, front("python3", ForTerminal)),
                "Password: ",
                Some((waiting(Why::Question), "python3 reads without echo")),
            ),
            (
                probe("canonical", 2, front("sudo", Hidden)),
                "",
                Some((waiting(Why::Question), "sudo reads without echo")),
            ),
            (probe("canonical echo", 2, front("sudo", Hidden)), "", None),
            (
                probe("canonical echo", 2, front("cc1", Otherwise)),
                "",
                Some((Activity::Working, "cc1 does not read the terminal")),
            ),
            // It asks, or it waits for something else; the kernel cannot tell.
            (probe("canonical echo", 2, front("node", ForTerminalToo)), "", None),
            (probe("", 2, front("claude", ForTerminalToo)), "", None),
            (
                probe("", 1, vec![process(1, 1, "fish", ForTerminalToo)]),
                "> ",
                Some((waiting(Why::Prompt), "fish reads keys")),
            ),
            (
                probe("", 1, vec![process(1, 1, "bash", ForTerminal), process(2, 2, "make", Otherwise)]),
                "$ ",
                Some((waiting(Why::Prompt), "bash reads keys")),
            ),
            (
                probe("canonical echo", 2, front("aider", ForTerminal)),
                "> ",
                Some((waiting(Why::Prompt), "aider reads the terminal")),
            ),
            (
                probe("", 2, front("sqlite3", ForTerminal)),
                "sqlite> ",
                Some((waiting(Why::Prompt), "sqlite3 reads keys")),
            ),
            (
                probe("", 2, front("vim", ForTerminal)),
                "of the text",
                Some((waiting(Why::Unknown), "vim reads keys")),
            ),
            (probe("canonical echo", 9, vec![shell()]), "", None),
        ] {
            let expected = expected.map(|(activity, rule)| (activity, rule.to_owned()));
            assert_eq!(claim_of(&probe, at_cursor), expected, "{probe:?}");
        }
    }

    #[test]
    fn a_new_child_is_work_and_one_that_was_there_all_along_is_not() {
        let agent = || process(1, 1, "agent", Waits::ForTerminalToo);
        let server = || process(2, 2, "server", Waits::Otherwise);
        let tool = || process(3, 3, "bash", Waits::Otherwise);
        let mut watch = KernelWatch::default();
        assert!(watch.read_probe(&probe("", 1, vec![agent(), server()]), "").child.is_some());
        watch.record_residents();
        assert!(watch.read_probe(&probe("", 1, vec![agent(), server()]), "").child.is_none());
        let seen = watch.read_probe(&probe("", 1, vec![agent(), server(), tool()]), "");
        assert_eq!(seen.child.map(|claim| claim.rule).as_deref(), Some("bash is at work"));
        assert!(watch.read_probe(&probe("", 1, vec![agent(), server()]), "").child.is_none());
    }

    #[test]
    fn who_takes_keys_in_a_shells_place_is_no_work_and_its_children_are() {
        let shell = || process(1, 1, "bash", Waits::Otherwise);
        let editor = || process(2, 2, "vim", Waits::ForTerminalToo);
        let tool = || process(3, 3, "make", Waits::Otherwise);
        let child = |probe| KernelWatch::default().read_probe(&probe, "").child.map(|claim| claim.rule);
        assert_eq!(child(probe("", 2, vec![shell(), editor()])), None);
        assert_eq!(child(probe("", 2, vec![shell(), editor(), tool()])).as_deref(), Some("make is at work"));
        assert_eq!(child(probe("canonical", 2, vec![shell(), editor()])).as_deref(), Some("vim is at work"));
    }

    #[test]
    fn who_reads_a_terminal_inside_this_one_is_no_work() {
        let shell = || process(1, 1, "bash", Waits::Otherwise);
        let script = || process(2, 2, "script", Waits::ForTerminalToo);
        let child = |inner| {
            KernelWatch::default().read_probe(&probe("", 2, vec![shell(), script(), inner]), "").child
        };
        assert!(child(process(3, 3, "bash", Waits::ForInnerTerminal)).is_none());
        let rule = child(process(3, 3, "sleep", Waits::Otherwise)).map(|claim| claim.rule);
        assert_eq!(rule.as_deref(), Some("sleep is at work"));
        let launched = process(2, 1, "script", Waits::ForTerminalToo);
        let seen = KernelWatch::default().read_probe(&probe("", 1, vec![shell(), launched]), "");
        assert!(seen.child.is_none(), "without job control, the group is the shell's");
    }

    #[test]
    fn processes_of_the_group_that_switched_to_keys_are_a_part_of_the_program() {
        let launcher = || process(1, 1, "node", Waits::Otherwise);
        let agent = || process(2, 1, "node", Waits::ForTerminalToo);
        let tool = || process(3, 1, "make", Waits::Otherwise);
        let mut watch = KernelWatch::default();
        watch.read_probe(&probe("canonical echo", 1, vec![launcher(), agent()]), "");
        assert!(watch.read_probe(&probe("", 1, vec![launcher(), agent()]), "").child.is_none());
        assert!(watch.read_probe(&probe("", 1, vec![launcher(), agent(), tool()]), "").child.is_some());
        assert!(watch.read_probe(&probe("", 1, vec![launcher(), agent()]), "").child.is_none());
        let relayed = process(4, 4, "sleep", Waits::Otherwise);
        watch.read_probe(&probe("canonical echo", 1, vec![launcher(), agent()]), "");
        assert!(watch.read_probe(&probe("", 1, vec![launcher(), agent(), relayed]), "").child.is_some());
    }

    #[test]
    fn a_program_that_ended_takes_its_claims_along() {
        let shell = || process(1, 1, "bash", Waits::ForTerminal);
        let mut watch = KernelWatch::default();
        assert_eq!(watch.read_probe(&probe("", 1, vec![shell()]), "").foreground, ForegroundChange::Same);
        let inner = process(2, 2, "claude", Waits::ForTerminalToo);
        assert_eq!(
            watch.read_probe(&probe("", 2, vec![shell(), inner]), "").foreground,
            ForegroundChange::Started
        );
        assert_eq!(watch.read_probe(&probe("", 1, vec![shell()]), "").foreground, ForegroundChange::Ended);
    }
}
