//! The kernel's view of the terminal: which process group is in the foreground, and what its processes wait for.
//!
//! Certain for programs that read lines. Full-screen programs wait for many things at once, so this says nothing about them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::field::Field;
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
    /// For input of this terminal and for a timer, as editors do.
    ForTerminalOrTimer,
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
    /// If a process reads keys and waits for nothing else: whether it is a shell.
    #[serde(default)]
    key_reader: Option<bool>,
    /// A shell in the foreground waits for a line. If a program reports now, no probe has seen it.
    #[serde(default)]
    shell_waits: bool,
    /// The user's last key. If there was none, or it was Enter, the text before the cursor is the program's.
    #[serde(default)]
    last_key: LastKey,
    /// The foreground program read keys and then whole lines again, as line editors do for the time of their prompt.
    #[serde(default)]
    switches: bool,
    /// Whether only shells are in the foreground.
    #[serde(default)]
    shell_in_front: bool,
    /// The names of the programs in the foreground.
    #[serde(default)]
    front: Vec<String>,
    /// The names of all processes of the last probe.
    #[serde(default)]
    names: BTreeMap<i32, String>,
    /// The foreground program showed a prompt and read keys behind it.
    #[serde(default)]
    has_asked: bool,
    /// The foreground program that waits for the terminal among other things, if that is all that is known.
    #[serde(default)]
    listener: Option<String>,
    /// The listener waits for nothing else than the terminal and a timer, and no other process works.
    #[serde(default)]
    waits_alone: bool,
    /// The last probe showed whether the foreground program reads the terminal.
    #[serde(default)]
    has_line_claim: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum LastKey {
    #[default]
    None,
    Enter,
    Other,
}

/// The claim of the terminal's mode and of the text at the cursor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ModeClaim {
    pub(super) activity: Activity,
    pub(super) rule: String,
    /// It rests on the text alone.
    pub(super) is_guess: bool,
    /// It rests on a field of the screen.
    #[serde(default)]
    pub(super) is_field: bool,
    /// It rests on a screen that does not change.
    #[serde(default)]
    pub(super) is_rest: bool,
}

/// The text around the cursor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CursorView<'a> {
    /// The text right before the cursor.
    pub(super) before: &'a str,
    /// The nearest row with text above the cursor.
    pub(super) above: &'a str,
    /// The program controls the whole terminal, so the text at the cursor may be anything.
    pub(super) full_screen: bool,
    /// A field that means something now.
    pub(super) field: Option<Field>,
    /// The program draws without being asked to.
    pub(super) is_restless: bool,
}

pub(super) struct KernelView {
    pub(super) line: Option<KernelClaim>,
    pub(super) child: Option<KernelClaim>,
    /// Whether another process group came to the foreground.
    pub(super) foreground: ForegroundChange,
    /// The foreground program read keys before, and does not now.
    pub(super) left_keys: bool,
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
        self.switches = match foreground {
            ForegroundChange::Same => self.switches || self.canonical == Some(false) && probe.canonical,
            ForegroundChange::Started | ForegroundChange::Ended => false,
        };
        self.has_asked &= foreground == ForegroundChange::Same;
        self.shell_in_front = is_shell_in_front(probe);
        let front = foreground_pids(probe).collect::<Vec<_>>();
        let in_front = probe.processes.iter().filter(|process| front.contains(&process.pid));
        self.front = in_front.map(|process| process.name.clone()).collect();
        let root = root(probe);
        let alive = probe.processes.iter().filter(|process| !process.ended && Some(process.pid) != root);
        self.others = alive.map(|process| process.pid).collect();
        let names: BTreeMap<i32, String> =
            probe.processes.iter().map(|process| (process.pid, process.name.clone())).collect();
        // A process that runs another program now may work.
        let is_same = |pid: &i32| self.names.get(pid).is_none_or(|name| names.get(pid) == Some(name));
        self.residents.retain(|pid| self.others.contains(pid) && is_same(pid));
        self.names = names;
        if !probe.canonical && self.canonical == Some(true) {
            self.residents.extend(foreground_pids(probe));
        }
        let left_keys =
            foreground == ForegroundChange::Same && self.canonical == Some(false) && probe.canonical;
        self.canonical = Some(probe.canonical);
        self.line_reader = reader(probe).filter(|_| probe.canonical && probe.echo).map(is_shell);
        self.key_reader = reader(probe).filter(|_| !probe.canonical).map(is_shell);
        self.shell_waits = probe.processes.iter().any(|process| {
            Some(process.group) == probe.foreground
                && process.waits == Waits::ForTerminal
                && is_shell(process)
        });
        let line = line(probe, at_cursor);
        self.has_line_claim = line.is_some();
        let listens = |process: &&ProbedProcess| {
            Some(process.group) == probe.foreground && !process.ended && listens_too(process.waits)
        };
        let listener = probe.processes.iter().find(listens).filter(|_| line.is_none());
        self.listener = listener.map(|process| process.name.clone());
        let child = self.child(probe);
        self.waits_alone =
            child.is_none() && listener.is_some_and(|process| process.waits == Waits::ForTerminalOrTimer);
        KernelView { line, child, foreground, left_keys }
    }

    /// The claim of the terminal's mode and of the text at the cursor, for a line program that waits for the terminal among
    /// other things. Line editors read keys only while their prompt is open, and other programs that ask leave the cursor behind
    /// their question.
    pub(super) fn mode_claim(&self, cursor: CursorView<'_>) -> Option<ModeClaim> {
        // A program may read its keys in another thread than the one that the probe sees.
        let reader = self.front.first().filter(|_| cursor.field.is_some() && !self.has_line_claim);
        let name = self.listener.as_ref().or(reader)?;
        if let (Some(field), Some(false)) = (cursor.field, self.canonical)
            && (cursor.full_screen || !ends_a_question(cursor.before))
        {
            return Some(field_claim(name, field));
        }
        if cursor.full_screen || self.listener.is_none() {
            return self.rest_claim(cursor);
        }
        let has_asked = ends_a_question(cursor.before);
        let waits = Activity::Waiting(match has_asked && !prompts(cursor.before) {
            true => Why::Question,
            false => reason(false, cursor.before),
        });
        let is_silent = cursor.before.trim().is_empty() && !asks_above(cursor.above);
        let (activity, does) = match (self.canonical?, self.switches) {
            (false, true) => (waits, "reads keys, as at its prompts before"),
            (true, true) => (Activity::Working, "does not read keys, as it does at its prompts"),
            (false, false) if has_asked => (waits, "reads keys behind its prompt"),
            (true, false) if has_asked => (waits, "stopped behind its question"),
            (true, false) if is_silent => (Activity::Working, "has asked nothing"),
            (false, false) if is_silent && self.has_asked => (Activity::Working, "has left its prompt"),
            (false | true, false) => return None,
        };
        let rule = super::status::one_line(&format!("{name} {does}"));
        Some(ModeClaim { activity, rule, is_guess: !self.switches, is_field: false, is_rest: false })
    }

    /// The claim of a full-screen program that can only do something if a key or its timer wakes it. It would draw what it does.
    fn rest_claim(&self, cursor: CursorView<'_>) -> Option<ModeClaim> {
        let name = self.listener.as_ref().filter(|_| self.waits_alone && !cursor.is_restless)?;
        let rule = super::status::one_line(&format!("{name} waits for keys, and its screen rests"));
        let activity = Activity::Waiting(key_reason(false, cursor.before));
        Some(ModeClaim { activity, rule, is_guess: true, is_field: false, is_rest: true })
    }

    /// Whether the foreground program can only be woken by a key or a timer.
    pub(super) fn waits_alone(&self) -> bool {
        self.waits_alone
    }

    /// Whether the terminal passes on whole lines, as far as it is known.
    pub(super) fn takes_lines(&self) -> bool {
        self.canonical == Some(true)
    }

    /// The foreground program waits behind its prompt. From now on, a cursor without text before it means that it works.
    pub(super) fn on_prompt(&mut self) {
        self.has_asked = true;
    }

    pub(super) fn shell_waits(&self) -> bool {
        self.shell_waits
    }

    /// Whether the text before the cursor may end with what the user typed.
    pub(super) fn is_typing(&self) -> bool {
        self.last_key == LastKey::Other
    }

    pub(super) fn on_input(&mut self, enter: bool) {
        self.last_key = if enter { LastKey::Enter } else { LastKey::Other };
    }

    /// The new reason to wait, from the text that the program wrote after the last line. A program that reads, writes and
    /// reads again may do so between two probes. Before the first key, a question may come later than the probe that saw the
    /// program read, if the reason was unknown until then.
    pub(super) fn new_reason(&self, at_cursor: &str, claimed: Activity) -> Option<Why> {
        let line = self.line_reader.map(|is_shell| reason(is_shell, at_cursor));
        let keys = self.key_reader.map(|is_shell| key_reason(is_shell, at_cursor));
        let why = line.or(keys)?;
        let is_new = match self.last_key {
            LastKey::Enter => true,
            LastKey::None => claimed == Activity::Waiting(Why::Unknown) && why != Why::Unknown,
            LastKey::Other => false,
        };
        is_new.then_some(why)
    }

    /// The names of the programs in the foreground.
    pub(super) fn front(&self) -> &[String] {
        &self.front
    }

    /// Whether only shells are in the foreground.
    pub(super) fn is_shell_in_front(&self) -> bool {
        self.shell_in_front
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
            let idles = talks(probe, process)
                || process.waits == Waits::ForInnerTerminal
                || is_detached(probe, process);
            (!idles).then_some(process)
        })?;
        Some(KernelClaim::of(Activity::Working, process, "is at work"))
    }
}

/// The claim of a program that reads keys and shows where it takes them.
fn field_claim(name: &str, field: Field) -> ModeClaim {
    let (why, does) = match field {
        Field::InputBox => (Why::Prompt, "reads keys and shows an input box"),
        Field::Question => (Why::Question, "reads keys and shows an open question"),
    };
    let rule = super::status::one_line(&format!("{name} {does}"));
    ModeClaim { activity: Activity::Waiting(why), rule, is_guess: true, is_field: true, is_rest: false }
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
    let listens = process.waits == Waits::ForTerminal || listens_too(process.waits);
    !probe.canonical && (in_place || listens) && probe.foreground == Some(process.group)
}

/// Whether the process waits for the terminal among other things.
fn listens_too(waits: Waits) -> bool {
    matches!(waits, Waits::ForTerminalToo | Waits::ForTerminalOrTimer)
}

/// Whether the process left the agent: its parent ended. A server that the agent started for later is no work for the user.
fn is_detached(probe: &Probe, process: &ProbedProcess) -> bool {
    let is_among = |pid: i32| probe.processes.iter().any(|process| process.pid == pid);
    Some(process.pid) != root(probe) && !is_among(process.parent)
}

fn is_shell_in_front(probe: &Probe) -> bool {
    let mut front = foreground_pids(probe).peekable();
    let is_shell_pid =
        |pid: i32| probe.processes.iter().any(|process| process.pid == pid && is_shell(process));
    front.peek().is_some() && front.all(is_shell_pid)
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
            (false, _) => (key_reason(is_shell(reader), at_cursor), "reads keys"),
        };
        return Some(KernelClaim::of(Activity::Waiting(why), reader, does));
    }
    if !probe.canonical {
        // A shell that reads keys edits a line, whatever else it waits for.
        let mut shells = front.iter().filter(|process| listens_too(process.waits));
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

/// The process in the foreground that waits for the terminal and nothing else.
fn reader(probe: &Probe) -> Option<&ProbedProcess> {
    let reads = |process: &&ProbedProcess| {
        Some(process.group) == probe.foreground && !process.ended && process.waits == Waits::ForTerminal
    };
    probe.processes.iter().find(reads)
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

/// The reason why a program reads keys, from the text before the cursor. `Unknown`: an editor, a pager, a menu.
fn key_reason(is_shell: bool, at_cursor: &str) -> Why {
    match (is_shell, asks(at_cursor)) {
        // One key answers this question; a whole text would send more keys.
        (true, true) => Why::Question,
        (true, false) => Why::Prompt,
        (false, _) if prompts(at_cursor) => Why::Prompt,
        // Pagers show `:` and `(END)`.
        (false, true) if at_cursor.split_whitespace().count() > 1 => Why::Question,
        (false, _) => Why::Unknown,
    }
}

const PROMPT_ENDS: [char; 5] = ['$', '#', '%', '>', '❯'];

/// Whether the text is a prompt such as `>`, `>>>`, `sqlite>`, `(gdb)`: a single word with the sign of a prompt at the end, or in
/// parentheses.
fn prompts(at_cursor: &str) -> bool {
    let text = at_cursor.trim();
    let in_parentheses = text.starts_with('(') && text.ends_with(')');
    (text.ends_with(PROMPT_ENDS) || in_parentheses) && !text.contains(char::is_whitespace) || counts(text)
}

/// Whether the text is a prompt with a counter or a name in brackets: `In [1]:`, `[3] pry(main)>`, `db [(none)]>`.
fn counts(text: &str) -> bool {
    let mut words = text.trim_end_matches([':', '>']).split_whitespace();
    let (Some(first), Some(second), None) = (words.next(), words.next(), words.next()) else { return false };
    let in_brackets = |word: &str| word.starts_with('[') && word.ends_with(']');
    let is_number = |word: &str| word.trim_matches(['[', ']']).chars().all(|c| c.is_ascii_digit());
    let ends = text.ends_with(':') && is_number(second) || text.ends_with('>');
    ends && (in_brackets(first) && !text.ends_with(':') || in_brackets(second))
}

/// Whether the text is a question such as `Proceed? (y/n)`. A shell's own prompt has a prompt sign before such an end.
fn asks(at_cursor: &str) -> bool {
    at_cursor.trim_end().ends_with(['?', ':', ')', ']']) && !at_cursor.contains(PROMPT_ENDS)
}

/// Whether a program that wrote this text and stopped there waits for an answer: `Name: `, `Go on? (y/n) `, `db> `, `In [1]: `.
/// A progress ends with some of the same signs: `50%`, `[####   ]`, `(3/5)`, `====>`.
fn ends_a_question(text: &str) -> bool {
    let text = text.trim();
    let Some(end) = text.chars().last() else { return false };
    let before = text.strip_suffix(end).unwrap_or_default();
    match end {
        '%' => !before.trim_end().ends_with(|c: char| c.is_ascii_digit()),
        '#' | '>' => !before.ends_with(['#', '-', '=']) || before.trim().is_empty(),
        ')' | ']' => is_choice_of(before, if end == ')' { '(' } else { '[' }),
        _ => PROMPT_ENDS.contains(&end) || "?:›»λ".contains(end),
    }
}

/// Whether the text behind the last `open` is a part of a question: choices, a default, a name. Not a count, a size or a bar.
fn is_choice_of(text: &str, open: char) -> bool {
    const UNITS: [&str; 11] = ["%", "s", "ms", "m", "b", "kb", "mb", "gb", "kib", "mib", "gib"];
    let Some((_, inside)) = text.rsplit_once(open) else { return false };
    let is_number =
        |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || ".,".contains(c));
    let is_count = inside.split_once('/').is_some_and(|(part, all)| is_number(part) && is_number(all));
    let number = inside.trim_end_matches(|c: char| c.is_alphabetic() || c == '%');
    let unit = inside[number.len()..].to_lowercase();
    let is_size = is_number(number.trim()) && UNITS.contains(&unit.as_str());
    inside.contains(char::is_alphanumeric) && !is_count && !is_size
}

/// Whether a row above an empty row of the cursor is a question that is answered there.
fn asks_above(text: &str) -> bool {
    let text = text.trim();
    text.ends_with(['?', ':']) || text.ends_with([')', ']']) && ends_a_question(text) && text.contains('/')
}

fn is_shell(process: &ProbedProcess) -> bool {
    is_shell_name(&process.name)
}

/// Whether a program of this name is a shell.
pub fn is_shell_name(name: &str) -> bool {
    SHELLS.contains(&name.trim_start_matches('-'))
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

    #[test]
    fn a_progress_and_a_counted_step_are_no_question() {
        for text in [
            "Name: ",
            "Go on? (y/n) ",
            "db> ",
            "In [1]: ",
            "Choose [1-3]",
            "version: (1.0.0) ",
            "Pick (1/2/3) ",
            "(gdb) ",
            "~ % ",
            "root# ",
            ">",
        ] {
            assert!(ends_a_question(text), "{text}");
        }
        for text in ["Building 50%", "[####      ]", "(3/5)", "Downloading (12 MB)", "=====>", "######", ""] {
            assert!(!ends_a_question(text), "{text}");
        }
    }

    #[test]
    fn a_prompt_may_have_a_counter_or_a_name_in_brackets() {
        for text in ["In [1]: ", "[3] pry(main)>", "db [(none)]> ", "(gdb) ", "sqlite> "] {
            assert!(prompts(text), "{text}");
        }
        for text in ["Which host?", "Your name:", "Choose [1-3]:", "Size [small]:"] {
            assert!(!prompts(text), "{text}");
        }
    }
}
