//! Everything that a run knows: the place, the tasks, the commands under way, and what went wrong.
//!
//! Decides nothing: `work.rs` and `fault.rs` act on it, `check.rs` judges it.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agency_testkit::{Process, Pty, Signal};
use serde_json::Value;

use crate::call::{Call, Ended};
use crate::figures::Figures;
use crate::lines::LineChecks;
use crate::site::Site;
use crate::subject::{Existence, Kind, Receipt, Subject, Text};

/// Only a command that hangs needs longer, on any machine.
pub const PATIENCE: Duration = Duration::from_secs(180);

pub struct World {
    pub site: Site,
    pub enabled: BTreeSet<&'static str>,
    pub subjects: Vec<Subject>,
    pub texts: Vec<Text>,
    pub flights: Vec<Flight>,
    pub viewers: Vec<Viewer>,
    pub lines: LineChecks,
    pub figures: Figures,
    pub violations: Vec<Violation>,
    log: StepLog,
}

/// A command under way, and those that follow it.
pub struct Flight {
    call: Call,
    project: usize,
    then: Then,
    rest: VecDeque<(Vec<String>, Then)>,
}

/// The action at the end of a command. The numbers are indexes of subjects and texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Nothing,
    Created(usize),
    Sent(usize),
    /// The subject is free again.
    Freed(usize),
    Merged(usize),
}

pub struct Viewer {
    pub terminal: Pty,
    pub reads: bool,
}

pub struct Violation {
    pub step: u64,
    pub expected: String,
    pub found: String,
}

struct StepLog {
    file: File,
    step: u64,
    begin: Instant,
    is_verbose: bool,
}

impl World {
    pub fn new(site: Site, enabled: BTreeSet<&'static str>, is_verbose: bool) -> Result<World, String> {
        let path = site.root().join("steps.log");
        let file = File::create(&path).map_err(|err| format!("cannot write {}: {err}", path.display()))?;
        Ok(World {
            site,
            enabled,
            subjects: Vec::new(),
            texts: Vec::new(),
            flights: Vec::new(),
            viewers: Vec::new(),
            lines: LineChecks::default(),
            figures: Figures::default(),
            violations: Vec::new(),
            log: StepLog { file, step: 0, begin: Instant::now(), is_verbose },
        })
    }

    pub fn begin_step(&mut self) -> u64 {
        self.log.step += 1;
        self.figures.add("steps", 1);
        self.log.step
    }

    pub fn note(&mut self, what: impl AsRef<str>) {
        self.log.write(what.as_ref());
    }

    pub fn violate(&mut self, expected: impl Into<String>, found: impl Into<String>) {
        let violation = Violation { step: self.log.step, expected: expected.into(), found: found.into() };
        self.note(format!("VIOLATION: expected: {}; found: {}", violation.expected, violation.found));
        self.figures.add("violations", 1);
        self.violations.push(violation);
    }

    /// Adds a task; `agency new` for it is under way afterwards.
    pub fn create(&mut self, kind: &'static Kind, project: usize) {
        let index = self.subjects.len();
        let subject = Subject::new(kind, project, index + 1);
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("agency-chaos"));
        let mut args: Vec<String> =
            ["new", &subject.slug, "--no-attach", "-m", "begin", "--driver", kind.driver]
                .map(str::to_owned)
                .into();
        let command = (kind.command)(&program, &self.site.truth(), &subject.slug);
        if !command.is_empty() {
            args.push("--".to_owned());
            args.extend(command);
        }
        self.subjects.push(subject);
        self.launch(project, VecDeque::from([(args, Then::Created(index))]));
    }

    /// Starts a text on its way to the subject, and returns its index.
    pub fn send(&mut self, index: usize, options: &[&str]) -> usize {
        let number = self.texts.len();
        let subject = &self.subjects[index];
        let token = format!("<t{number} {}>", subject.slug);
        let mut args: Vec<String> = ["send", &subject.slug, "--json"].map(str::to_owned).into();
        args.extend(options.iter().map(|option| (*option).to_owned()));
        args.push(token.clone());
        let project = subject.project;
        let is_excused = subject.may_change;
        self.texts.push(Text { token, subject: index, receipt: Receipt::Unknown, is_excused });
        self.figures.add("texts sent", 1);
        self.launch(project, VecDeque::from([(args, Then::Sent(number))]));
        number
    }

    /// Starts the first of these commands; each of the others follows the end of the one before.
    pub fn launch(&mut self, project: usize, mut commands: VecDeque<(Vec<String>, Then)>) {
        let Some((args, then)) = commands.pop_front() else { return };
        match self.start(project, &args) {
            Some(call) => self.flights.push(Flight { call, project, then, rest: commands }),
            None => self.land(then, None),
        }
    }

    fn start(&mut self, project: usize, args: &[String]) -> Option<Call> {
        self.figures.add("commands", 1);
        self.note(format!("start `agency {}`", args.join(" ")));
        match Call::start(self.site.agency(project, args)) {
            Ok(call) => Some(call),
            Err(err) => {
                self.note(format!("cannot run agency: {err}"));
                None
            }
        }
    }

    /// Runs one command to its end. `None`: it hangs, which is a violation.
    pub fn ask(&mut self, project: usize, args: &[&str]) -> Option<Ended> {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let ended = self.start(project, &args)?.wait(PATIENCE).ok().flatten();
        match &ended {
            Some(ended) => self.note(format!("end {}", ended.describe())),
            None => self.violate(
                format!("`agency {}` answers", args.join(" ")),
                format!("no answer in {PATIENCE:?}"),
            ),
        }
        ended
    }

    /// All tasks of all projects.
    pub fn listing(&mut self) -> Option<Value> {
        let ended = self.ask(0, &["ls", "--all", "--json"])?;
        if !ended.is_ok() {
            self.violate("`agency ls --all` answers", ended.describe());
            return None;
        }
        serde_json::from_str(&ended.stdout).ok()
    }

    /// Handles the commands that have ended, and reads the terminals of viewers.
    pub fn settle(&mut self) {
        for index in (0..self.flights.len()).rev() {
            let Ok(Some(ended)) = self.flights[index].call.poll() else { continue };
            let flight = self.flights.remove(index);
            self.note(format!("end {}", ended.describe()));
            self.figures.add("commands that failed", u64::from(!ended.is_ok()));
            self.land(flight.then, Some(ended));
            self.launch(flight.project, flight.rest);
        }
        for viewer in self.viewers.iter_mut().filter(|viewer| viewer.reads) {
            while viewer.terminal.take(Instant::now()).is_some() {}
        }
    }

    /// Waits until no command is under way; one that hangs is a violation.
    pub fn settle_all(&mut self) {
        while !self.flights.is_empty() {
            self.settle();
            std::thread::sleep(Duration::from_millis(5));
            let late = self.flights.iter().position(|flight| flight.call.age() > PATIENCE);
            if let Some(index) = late {
                let flight = self.flights.remove(index);
                self.violate(
                    format!("`agency {}` ends", flight.call.words()),
                    format!("no end after {PATIENCE:?}, without any fault under way"),
                );
                self.land(flight.then, None);
            }
        }
    }

    fn land(&mut self, then: Then, ended: Option<Ended>) {
        let is_ok = ended.as_ref().is_some_and(Ended::is_ok);
        match then {
            Then::Nothing => {}
            Then::Created(index) => {
                let subject = &mut self.subjects[index];
                subject.is_busy = false;
                if is_ok {
                    subject.existence = Existence::Certain;
                }
            }
            Then::Freed(index) => self.subjects[index].is_busy = false,
            Then::Merged(index) => {
                self.subjects[index].is_busy = false;
                self.subjects[index].is_merged |= is_ok;
                self.figures.add("merges", u64::from(is_ok));
            }
            Then::Sent(number) => self.land_text(number, ended),
        }
    }

    fn land_text(&mut self, number: usize, ended: Option<Ended>) {
        let receipt = ended.map_or(Receipt::Unknown, |ended| Receipt::parse(&ended.stdout));
        let text = &mut self.texts[number];
        text.receipt = receipt;
        text.is_excused |= self.subjects[text.subject].may_change;
        self.figures.add("texts delivered", u64::from(receipt == Receipt::Delivered));
        self.figures.add("texts queued", u64::from(receipt == Receipt::Queued));
    }

    /// From now on until the next check, the agent of this task may end or change.
    pub fn disturb(&mut self, index: usize) {
        self.subjects[index].may_change = true;
        self.texts.iter_mut().filter(|text| text.subject == index).for_each(|text| text.is_excused = true);
    }

    /// The indexes of subjects for which the condition holds.
    pub fn which(&self, is_wanted: impl Fn(&Subject) -> bool) -> Vec<usize> {
        (0..self.subjects.len()).filter(|index| is_wanted(&self.subjects[*index])).collect()
    }

    /// Kills every live daemon, and returns how many there were.
    pub fn kill_daemons(&mut self) -> usize {
        let daemons = self.site.census().daemons;
        daemons.iter().for_each(Process::kill);
        self.figures.add("daemons killed", daemons.len() as u64);
        self.note(format!("killed {} daemon(s)", daemons.len()));
        daemons.len()
    }

    /// Ends all viewers, so that none of them starts a daemon by itself.
    pub fn close_viewers(&mut self) {
        self.viewers.clear();
    }

    /// A random command under way.
    pub fn flight_process(&self, choice: u64) -> Option<Process> {
        let index = usize::try_from(choice).ok()?.checked_rem(self.flights.len())?;
        self.flights[index].call.process()
    }

    /// Sends SIGCONT to everything.
    pub fn wake_all(&self) {
        for process in self.site.census().processes() {
            process.signal(Signal::CONT);
        }
    }
}

impl StepLog {
    fn write(&mut self, what: &str) {
        let line = format!("{:9.3} step {:5} {what}\n", self.begin.elapsed().as_secs_f64(), self.step);
        if self.is_verbose {
            print!("{line}");
        }
        if let Err(err) = self.file.write_all(line.as_bytes()) {
            eprintln!("cannot write the log of steps: {err}");
        }
    }
}

/// The task in the output of `ls --json`.
pub fn find_task<'a>(listing: &'a Value, slug: &str) -> Option<&'a Value> {
    listing["tasks"].as_array()?.iter().find(|task| task["slug"] == slug)
}
