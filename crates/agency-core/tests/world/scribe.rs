//! Writes down what a supervisor is asked, in the language of the stories, so that a history can be pasted as one.
//!
//! Not here: the effects. The script of the stories adds them when it reads the lines.

use std::fmt::Write;
use std::time::Duration;

use agency_core::Time;
use agency_core::exit::{ExitCode, RunExit};
use agency_core::ids::{RunId, TaskKey};
use agency_core::restart::RestartPolicy;
use agency_core::supervisor::*;

use crate::script;

/// No line of a printed story is longer, if it can be folded.
const LINE_WIDTH: usize = 110;

/// The lines of every daemon, one after the other.
#[derive(Default)]
pub(crate) struct Scribe {
    daemons: Vec<Vec<String>>,
    /// Runs in the order of their names: a, b, c.
    runs: Vec<RunId>,
}

impl Scribe {
    pub(crate) fn daemon_boots(&mut self, limits: Limits) {
        let wait = limits.shutdown_timeout.as_secs();
        self.daemons.push(vec![format!("max {}", limits.max_agents), format!("wait {wait}")]);
        self.runs.clear();
    }

    pub(crate) fn write(&mut self, now: Time, words: &str) {
        let line = format!("{} {}", seconds(now), words.trim_end());
        self.daemons.last_mut().expect("a daemon boots first").push(line);
    }

    pub(crate) fn write_event(&mut self, now: Time, event: &Event) {
        let words = self.words(event);
        self.write(now, &words);
    }

    /// The story of the last daemon, with the effects that follow from each line.
    pub(crate) fn story(&self) -> String {
        let mut told = script::Story::new();
        let mut story = String::new();
        for line in self.daemons.last().into_iter().flatten() {
            let effects = told.tell(line);
            let has_effects = !line.starts_with("max ") && !line.starts_with("wait ");
            let whole = if has_effects { format!("{line} -> {effects}") } else { line.clone() };
            fold(&mut story, whole.trim_end());
        }
        story
    }

    pub(crate) fn daemons(&self) -> usize {
        self.daemons.len()
    }

    /// The name of a run in the story.
    pub(crate) fn run(&mut self, run: &RunId) -> String {
        let known = self.runs.iter().position(|known| known == run);
        let at = known.unwrap_or_else(|| {
            self.runs.push(run.clone());
            self.runs.len() - 1
        });
        match u8::try_from(at).ok().filter(|at| *at < 26) {
            Some(at) => char::from(b'a' + at).to_string(),
            None => format!("run{at}"),
        }
    }

    fn words(&mut self, event: &Event) -> String {
        match event {
            Event::Booted { tasks } => {
                tasks.iter().fold("boot".into(), |line, task| format!("{line} {}", self.found(task)))
            }
            Event::TaskSeen(task) => format!("seen {}", self.found(task)),
            Event::Start { key, ticket, plan } => format!("start {} {ticket} {}", show(key), way(plan)),
            Event::Restart { key, ticket, plan } => format!("restart {} {ticket} {}", show(key), way(plan)),
            Event::SetUp { key, ticket, plan } => format!("set-up {} {ticket} {}", show(key), way(plan)),
            Event::Stop { key, ticket } => format!("stop {} {ticket}", show(key)),
            Event::Idle { key, ticket } => format!("idle {} {ticket}", show(key)),
            Event::Mark { key, ticket, verdict } => {
                let word = match verdict {
                    Verdict::Completed => "complete",
                    Verdict::Failed => "fail",
                    Verdict::Reviewed => "review",
                    Verdict::Merged => "merged",
                    Verdict::MergeTakenBack => "taken-back",
                };
                format!("{word} {} {ticket}", show(key))
            }
            Event::Remove { key, ticket, discard } => {
                format!("{} {} {ticket}", if *discard { "discard" } else { "rm" }, show(key))
            }
            Event::Adopt { key, ticket, run, terms } => {
                format!("adopt {} {} {ticket} {}", show(key), self.run(run), words_of(terms).join(" "))
            }
            Event::Shutdown { ticket } => format!("shutdown {ticket}"),
            Event::WorkspaceMade { key, epoch, made_by, readiness } => {
                let word = if *made_by == MadeBy::ThisStart { "made" } else { "found" };
                let raw = if *readiness == Readiness::Raw { " raw" } else { "" };
                format!("{word} {} {epoch}{raw}", show(key))
            }
            Event::WorkspaceFailed { key, epoch, error } => {
                format!("not-made {} {epoch} {error}", show(key))
            }
            Event::WorkspaceUndone { key, epoch } => format!("undone {} {epoch}", show(key)),
            Event::SetupDone { key, epoch } => format!("setup-done {} {epoch}", show(key)),
            Event::SetupFailed { key, epoch, error } => {
                format!("setup-failed {} {epoch} {error}", show(key))
            }
            Event::KeeperReady { key, epoch, run } => {
                format!("ready {} {epoch} {}", show(key), self.run(run))
            }
            Event::KeeperFailed { key, epoch, error } => format!("not-ready {} {epoch} {error}", show(key)),
            Event::RunExited { key, run, exit } => {
                format!("exit {} {} {}", show(key), self.run(run), end(exit))
            }
            Event::Finished { key, operation } => format!("finish {} {}", word(*operation), show(key)),
            Event::Tick => "tick".into(),
        }
    }

    fn found(&mut self, found: &FoundTask) -> String {
        let task = format!("{}={}", show(&found.key), found.status);
        match &found.run {
            FoundRun::None => task,
            FoundRun::Live { run, terms } => {
                let words: String = words_of(terms).iter().map(|word| format!("+{word}")).collect();
                format!("{task}:{}{words}", self.run(run))
            }
            FoundRun::Ended { run, exit } => format!("{task}!{}/{}", self.run(run), end(exit)),
            FoundRun::Elsewhere => format!("{task}@elsewhere"),
        }
    }
}

/// Breaks a line before an effect. The script reads it as one line.
fn fold(story: &mut String, line: &str) {
    let mut width = 0;
    for (at, part) in line.split("; ").enumerate() {
        let is_new = at > 0 && width + part.len() > LINE_WIDTH;
        let glue = match (at, is_new) {
            (0, _) => "",
            (_, true) => "\n; ",
            (_, false) => "; ",
        };
        width = if is_new { part.len() } else { width + part.len() + 2 };
        write!(story, "{glue}{part}").expect("a string takes every text");
    }
    story.push('\n');
}

fn seconds(time: Time) -> String {
    match time.subsec_nanos() {
        0 => time.as_secs().to_string(),
        _ => format!("{:.3}", time.as_secs_f64()),
    }
}

pub(crate) fn show(key: &TaskKey) -> String {
    script::show_key(key)
}

pub(crate) fn word(operation: Operation) -> &'static str {
    script::OPERATIONS.iter().find(|(_, known)| *known == operation).map(|(word, _)| *word).expect("a word")
}

/// The workspace is never taken for granted: a line of its own tells what comes of it.
fn way(plan: &StartPlan) -> String {
    let origin = match plan.task {
        Origin::Existing => "fresh",
        Origin::MadeByThisCall => "new",
    };
    [vec![origin.to_owned()], words_of(&plan.terms)].concat().join(" ")
}

/// The terms that differ from those that the script assumes.
fn words_of(terms: &RunTerms) -> Vec<String> {
    let mut words = Vec::new();
    if terms.stop_grace != Duration::from_secs(2) {
        words.push(format!("grace={}", terms.stop_grace.as_secs()));
    }
    if let RestartPolicy::OnCrash { max_restarts } = terms.restart {
        words.push(format!("on-crash={max_restarts}"));
    }
    words
}

fn end(exit: &RunExit) -> String {
    match (exit.requested, exit.code) {
        (false, _) => exit.raw.to_string(),
        (true, ExitCode::Signal(9)) => format!("kill:{}", exit.raw),
        (true, _) => format!("term:{}", exit.raw),
    }
}
