//! What the kernel knows of a program and its terminal: who is in front, and what it waits for.
//!
//! Certain for programs that read lines; full-screen programs wait for many things at once and tell nothing here.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::claim::{Activity, Why};

/// One look at the agent's processes and its terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// Lines are handed over whole.
    pub canonical: bool,
    /// What is typed is shown.
    pub echo: bool,
    pub foreground: Option<i32>,
    pub processes: Vec<ProbedProcess>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbedProcess {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    pub name: String,
    /// Dead, and nobody has asked how.
    pub ended: bool,
    pub waits: Waits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// For this terminal and nothing else.
    ForTerminal,
    /// For this terminal among other things.
    ForTerminalToo,
    /// For a terminal inside this one: of `script`, of `sudo`, of a multiplexer.
    ForInnerTerminal,
    /// For something else, or not at all.
    Otherwise,
    /// It could not be looked at.
    Hidden,
}

/// What was seen in the looks before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KernelWatch {
    foreground: Option<i32>,
    /// Whether lines were handed over whole at the last look.
    #[serde(default)]
    canonical: Option<bool>,
    /// Processes that were there while the agent waited: they are no sign of work.
    residents: BTreeSet<i32>,
    others: BTreeSet<i32>,
    /// Somebody reads a line that is shown: whether it is a shell.
    #[serde(default)]
    line_reader: Option<bool>,
    /// A shell is in front and waits for a line: whoever reports now has not been seen.
    #[serde(default)]
    shell_waits: bool,
    /// A line was entered since, so that what stands before the cursor now is the program's.
    #[serde(default)]
    entered: bool,
}

pub(super) struct Seen {
    pub(super) line: Option<Told>,
    pub(super) child: Option<Told>,
    /// Another group came to the front.
    pub(super) turn: Turn,
}

pub(super) struct Told {
    pub(super) activity: Activity,
    /// With the name of the process that it is about.
    pub(super) rule: String,
}

impl Told {
    fn of(activity: Activity, process: &ProbedProcess, does: &str) -> Told {
        Told { activity, rule: super::status::one_line(&format!("{} {does}", process.name)) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Same,
    /// The one before is still there, behind.
    Started,
    /// The one before is gone, and what it said with it.
    Ended,
}

impl KernelWatch {
    /// `at_cursor` is the text that stands right before the cursor.
    pub(super) fn look(&mut self, probe: &Probe, at_cursor: &str) -> Seen {
        let turn = self.turn(probe);
        self.foreground = probe.foreground;
        let root = root(probe);
        let alive = probe.processes.iter().filter(|process| !process.ended && Some(process.pid) != root);
        self.others = alive.map(|process| process.pid).collect();
        self.residents.retain(|pid| self.others.contains(pid));
        if !probe.canonical && self.canonical == Some(true) {
            self.residents.extend(with_it(probe));
        }
        self.canonical = Some(probe.canonical);
        self.line_reader = line_reader(probe).map(is_shell);
        self.shell_waits = probe.processes.iter().any(|process| {
            Some(process.group) == probe.foreground
                && process.waits == Waits::ForTerminal
                && is_shell(process)
        });
        Seen { line: line(probe, at_cursor), child: self.child(probe), turn }
    }

    pub(super) fn shell_waits(&self) -> bool {
        self.shell_waits
    }

    pub(super) fn on_input(&mut self, enter: bool) {
        self.entered = enter;
    }

    /// What it wants by what it has written since the line before: one that read, wrote and reads again may
    /// never have been seen in between.
    pub(super) fn wanted_anew(&self, at_cursor: &str) -> Option<Why> {
        self.line_reader.filter(|_| self.entered).map(|is_shell| wanted(is_shell, at_cursor))
    }

    /// Whoever is there while the agent waits will not be taken for work.
    pub(super) fn agent_waits(&mut self) {
        self.residents.clone_from(&self.others);
    }

    fn turn(&self, probe: &Probe) -> Turn {
        match (self.foreground, probe.foreground) {
            (Some(before), Some(now)) if before != now => {
                let lives = probe.processes.iter().any(|process| process.group == before && !process.ended);
                if lives { Turn::Started } else { Turn::Ended }
            }
            _ => Turn::Same,
        }
    }

    fn child(&self, probe: &Probe) -> Option<Told> {
        let mut at_work = self.others.difference(&self.residents);
        let process = at_work.find_map(|pid| {
            let process = probe.processes.iter().find(|process| process.pid == *pid)?;
            let idles = talks(probe, process) || process.waits == Waits::ForInnerTerminal;
            (!idles).then_some(process)
        })?;
        Some(Told::of(Activity::Working, process, "is at work"))
    }
}

/// Whoever is in front together with a program when that takes the keys for itself is a part of it: its launcher, its
/// servers. One to which it passes the keys on has a group of its own.
fn with_it(probe: &Probe) -> impl Iterator<Item = i32> {
    let in_front = |process: &&ProbedProcess| Some(process.group) == probe.foreground && !process.ended;
    probe.processes.iter().filter(in_front).map(|process| process.pid)
}

/// The agent itself: the one whose parent is not among them.
fn root(probe: &Probe) -> Option<i32> {
    let is_among = |pid: i32| probe.processes.iter().any(|process| process.pid == pid);
    probe.processes.iter().find(|process| !is_among(process.parent)).map(|process| process.pid)
}

/// It takes the keys, in the agent's place or beside it: an editor that a shell has started works for nobody, and what a
/// launcher has launched is the agent.
fn talks(probe: &Probe, process: &ProbedProcess) -> bool {
    let agent = root(probe).and_then(|root| probe.processes.iter().find(|process| process.pid == root));
    let in_place = agent.is_some_and(|agent| probe.foreground != Some(agent.group));
    let listens = matches!(process.waits, Waits::ForTerminal | Waits::ForTerminalToo);
    !probe.canonical && (in_place || listens) && probe.foreground == Some(process.group)
}

const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "ash"];

fn line(probe: &Probe, at_cursor: &str) -> Option<Told> {
    let group = probe.foreground?;
    let front: Vec<&ProbedProcess> =
        probe.processes.iter().filter(|process| process.group == group && !process.ended).collect();
    let first = front.first()?;
    let any = |waits: Waits| front.iter().find(|process| process.waits == waits);
    if let Some(reader) = any(Waits::ForTerminal) {
        let (why, does) = match (probe.canonical, probe.echo) {
            (true, false) => (Why::Question, "reads without echo"),
            (true, true) => (wanted(is_shell(reader), at_cursor), "reads the terminal"),
            // One key answers it, and a text would be a key and more.
            (false, _) if is_shell(reader) && asks(at_cursor) => (Why::Question, "reads keys"),
            (false, _) if is_shell(reader) || prompts(at_cursor) => (Why::Prompt, "reads keys"),
            // An editor, a pager, a menu.
            (false, _) => (Why::Unknown, "reads keys"),
        };
        return Some(Told::of(Activity::Waiting(why), reader, does));
    }
    if !probe.canonical {
        // A shell that takes keys edits a line, whatever else it listens to.
        let mut shells = front.iter().filter(|process| process.waits == Waits::ForTerminalToo);
        let shell = shells.find(|process| is_shell(process))?;
        return Some(Told::of(Activity::Waiting(Why::Prompt), shell, "reads keys"));
    }
    if any(Waits::Hidden).is_some() {
        // Another user's program, `sudo` say: with the echo off it can only be a password.
        let secret = Activity::Waiting(Why::Question);
        return (!probe.echo).then(|| Told::of(secret, first, "reads without echo"));
    }
    match any(Waits::ForTerminalToo) {
        Some(_) => None,
        None => {
            Some(Told::of(Activity::Working, front.last().unwrap_or(first), "does not read the terminal"))
        }
    }
}

fn line_reader(probe: &Probe) -> Option<&ProbedProcess> {
    let reads = |process: &&ProbedProcess| {
        Some(process.group) == probe.foreground && !process.ended && process.waits == Waits::ForTerminal
    };
    probe.processes.iter().find(reads).filter(|_| probe.canonical && probe.echo)
}

/// What it wrote before it read, on the same line, is a question; a prompt is none, and shells have more of them.
fn wanted(is_shell: bool, at_cursor: &str) -> Why {
    match at_cursor.trim() {
        "" => Why::Unknown,
        _ if is_shell && at_cursor.trim_end().ends_with(PROMPT_ENDS) => Why::Prompt,
        _ if prompts(at_cursor) => Why::Prompt,
        _ => Why::Question,
    }
}

const PROMPT_ENDS: [char; 5] = ['$', '#', '%', '>', '❯'];

/// `>`, `>>>`, `sqlite>`: nobody asks a question in less than a word.
fn prompts(at_cursor: &str) -> bool {
    let text = at_cursor.trim();
    text.ends_with(PROMPT_ENDS) && !text.contains(char::is_whitespace)
}

/// `Proceed? (y/n)`: no shell's own prompt ends so, without a sign of one before it.
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

    fn told(probe: &Probe, at_cursor: &str) -> Option<(Activity, String)> {
        line(probe, at_cursor).map(|told| (told.activity, told.rule))
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
            // It asks, or it waits for something else: both look alike.
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
            assert_eq!(told(&probe, at_cursor), expected, "{probe:?}");
        }
    }

    #[test]
    fn a_new_child_is_work_and_one_that_was_there_all_along_is_not() {
        let agent = || process(1, 1, "agent", Waits::ForTerminalToo);
        let server = || process(2, 2, "server", Waits::Otherwise);
        let tool = || process(3, 3, "bash", Waits::Otherwise);
        let mut watch = KernelWatch::default();
        assert!(watch.look(&probe("", 1, vec![agent(), server()]), "").child.is_some());
        watch.agent_waits();
        assert!(watch.look(&probe("", 1, vec![agent(), server()]), "").child.is_none());
        let seen = watch.look(&probe("", 1, vec![agent(), server(), tool()]), "");
        assert_eq!(seen.child.map(|told| told.rule).as_deref(), Some("bash is at work"));
        assert!(watch.look(&probe("", 1, vec![agent(), server()]), "").child.is_none());
    }

    #[test]
    fn who_takes_keys_in_a_shells_place_is_no_work_and_its_children_are() {
        let shell = || process(1, 1, "bash", Waits::Otherwise);
        let editor = || process(2, 2, "vim", Waits::ForTerminalToo);
        let tool = || process(3, 3, "make", Waits::Otherwise);
        let child = |probe| KernelWatch::default().look(&probe, "").child.map(|told| told.rule);
        assert_eq!(child(probe("", 2, vec![shell(), editor()])), None);
        assert_eq!(child(probe("", 2, vec![shell(), editor(), tool()])).as_deref(), Some("make is at work"));
        assert_eq!(child(probe("canonical", 2, vec![shell(), editor()])).as_deref(), Some("vim is at work"));
    }

    #[test]
    fn who_reads_a_terminal_inside_this_one_is_no_work() {
        let shell = || process(1, 1, "bash", Waits::Otherwise);
        let script = || process(2, 2, "script", Waits::ForTerminalToo);
        let child =
            |inner| KernelWatch::default().look(&probe("", 2, vec![shell(), script(), inner]), "").child;
        assert!(child(process(3, 3, "bash", Waits::ForInnerTerminal)).is_none());
        let told = child(process(3, 3, "sleep", Waits::Otherwise)).map(|told| told.rule);
        assert_eq!(told.as_deref(), Some("sleep is at work"));
        let launched = process(2, 1, "script", Waits::ForTerminalToo);
        let seen = KernelWatch::default().look(&probe("", 1, vec![shell(), launched]), "");
        assert!(seen.child.is_none(), "without job control, the group is the shell's");
    }

    #[test]
    fn who_was_there_when_a_program_took_the_keys_is_a_part_of_it() {
        let launcher = || process(1, 1, "node", Waits::Otherwise);
        let agent = || process(2, 1, "node", Waits::ForTerminalToo);
        let tool = || process(3, 1, "make", Waits::Otherwise);
        let mut watch = KernelWatch::default();
        watch.look(&probe("canonical echo", 1, vec![launcher(), agent()]), "");
        assert!(watch.look(&probe("", 1, vec![launcher(), agent()]), "").child.is_none());
        assert!(watch.look(&probe("", 1, vec![launcher(), agent(), tool()]), "").child.is_some());
        assert!(watch.look(&probe("", 1, vec![launcher(), agent()]), "").child.is_none());
        let relayed = process(4, 4, "sleep", Waits::Otherwise);
        watch.look(&probe("canonical echo", 1, vec![launcher(), agent()]), "");
        assert!(watch.look(&probe("", 1, vec![launcher(), agent(), relayed]), "").child.is_some());
    }

    #[test]
    fn a_program_that_came_and_went_takes_its_words_along() {
        let shell = || process(1, 1, "bash", Waits::ForTerminal);
        let mut watch = KernelWatch::default();
        assert_eq!(watch.look(&probe("", 1, vec![shell()]), "").turn, Turn::Same);
        let inner = process(2, 2, "claude", Waits::ForTerminalToo);
        assert_eq!(watch.look(&probe("", 2, vec![shell(), inner]), "").turn, Turn::Started);
        assert_eq!(watch.look(&probe("", 1, vec![shell()]), "").turn, Turn::Ended);
    }
}
