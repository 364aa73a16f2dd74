//! The language of the stories: `seconds event -> effect; effect`.
//!
//! A line that starts with `->`, `;` or `+` goes on with the line above. `max` and `wait` set limits before the
//! story begins. Tasks are numbers, runs are letters, tickets are `#1`. Epochs are `e1`, `e2`, … in the order in
//! which the story shows them.
//!
//! ```text
//! given 1=running:a 2=draft          the daemon booted and found these, which led to nothing
//! given 1=started:a on-crash=3       an earlier start led to run a
//! given 1=merging                    the daemon is in the middle of this operation
//! start 1 #1        its workspace is there     start 1 #1 fresh   it must be made
//! start 1 #1 new    so must the task           + grace=30 on-crash=3
//! made 1 e1         this start made it         made 1 e1 raw      and it has to be set up
//! found 1 e1        it was there before        found 1 e1 raw     and it has to be set up
//! boot 1=draft 2=running:a 3=running@elsewhere 4=running!b/1      a lives, b has ended with 1
//! exit 1 a -11      by itself                  exit 1 a term:0    because of our SIGTERM, and it says 0
//! begin sync 1      an operation of the daemon's; the agent works
//! begin sync 1 at-rest                         the agent waits for input
//! finish sync 1     it is over
//! discard 1 #1      removes it, also if its agent is running; `rm 1 #1` does not
//! is 1 -> starting  asks what the task is in the middle of
//! deadline -> 37    asks when a tick is due
//! ```
//!
//! Times may have fractions, `q2` is a task of a second project, and a run that is found may have terms:
//! `1=running:a+grace=30`. The simulated world prints such stories when it breaks a law.

use std::collections::BTreeSet;
use std::time::Duration;

use agency_core::exit::{ExitCode, RunExit, StoppedBy};
use agency_core::ids::{Epoch, ProjectId, RunId, TaskId, TaskKey, Ticket};
use agency_core::restart::RestartPolicy;
use agency_core::supervisor::*;

/// Tells a story and compares each line with what is expected of it.
pub(crate) fn check(story: &str) {
    let mut told = Story::new();
    for (line, expected) in lines(story) {
        assert_eq!(told.tell(&line), expected, "\nafter `{line}` in{story}");
    }
}

/// A supervisor and what the script needs to speak with it.
pub(crate) struct Story {
    limits: Limits,
    pub(crate) supervisor: Supervisor,
    has_begun: bool,
    /// The epochs that the story has shown: `e1` is the first.
    epochs: Vec<Epoch>,
    /// Tasks whose workspace is there: the script answers for git.
    with_workspace: BTreeSet<TaskKey>,
}

impl Story {
    pub(crate) fn new() -> Story {
        let limits = Limits::default();
        Story {
            limits,
            supervisor: Supervisor::new(limits),
            has_begun: false,
            epochs: Vec::new(),
            with_workspace: BTreeSet::new(),
        }
    }

    /// The effects of one line.
    pub(crate) fn tell(&mut self, line: &str) -> String {
        if let Some(max) = line.strip_prefix("max ") {
            self.limits.max_agents = number(max) as u32;
            return String::new();
        }
        if let Some(wait) = line.strip_prefix("wait ") {
            self.limits.shutdown_timeout = Duration::from_secs(number(wait));
            return String::new();
        }
        if !self.has_begun {
            self.has_begun = true;
            self.supervisor = Supervisor::new(self.limits);
        }
        if let Some(tasks) = line.strip_prefix("given ") {
            self.give(tasks);
            return String::new();
        }
        if let Some(task) = line.strip_prefix("is ") {
            return self.supervisor.occupation(&key(task)).to_string();
        }
        if line == "deadline" {
            return self.supervisor.deadline().map_or("none".into(), |due| due.as_secs().to_string());
        }
        let (seconds, event) = line.split_once(' ').expect("a time and an event");
        self.happen(Duration::from_secs_f64(seconds.parse().expect("seconds")), event)
    }

    /// Puts tasks into a state without telling how they came there.
    fn give(&mut self, words: &str) {
        let words: Vec<&str> = words.split_whitespace().collect();
        let (tasks, how): (Vec<&str>, Vec<&str>) =
            words.into_iter().partition(|word| word.starts_with(|first: char| first.is_ascii_digit()));
        for word in tasks {
            let (task, state) = word.split_once('=').expect("task=state");
            if let Some(run) = state.strip_prefix("started:") {
                self.give_run(task, run, &how);
            } else if let Some(operation) = operation_under_way(state) {
                let begun = self.supervisor.begin(&key(task), operation, AgentActivity::AtRest);
                begun.expect("a task in which the operation can begin");
            } else {
                let tasks = vec![found(word)];
                let effects = self.supervisor.handle(Duration::ZERO, Event::Booted { tasks });
                assert_eq!(effects, [], "`given {word}` leads to something: use `boot`");
            }
        }
    }

    fn give_run(&mut self, task: &str, id: &str, how: &[&str]) {
        self.give(&format!("{task}=stopped"));
        self.with_workspace.insert(key(task));
        let start = Event::Start { key: key(task), ticket: Ticket(0), plan: plan(how) };
        let effects = self.handle(Duration::ZERO, start);
        let Some(Effect::StartKeeper { epoch, .. }) = effects.last() else {
            panic!("no keeper is started: {effects:?}")
        };
        let ready = Event::KeeperReady { key: key(task), epoch: *epoch, run: run(id) };
        self.handle(Duration::ZERO, ready);
    }

    fn happen(&mut self, now: Duration, text: &str) -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["begin", word, task, rest @ ..] => {
                let agent = match rest {
                    ["at-rest"] => AgentActivity::AtRest,
                    _ => AgentActivity::AtWork,
                };
                match self.supervisor.begin(&key(task), operation(word), agent) {
                    Ok(()) => "begun".into(),
                    Err(refusal) => format!("refused: {refusal}"),
                }
            }
            ["orphan", task, id] => {
                self.supervisor.add_orphan(key(task), run(id));
                String::new()
            }
            ["no-orphan", id] => {
                self.supervisor.remove_orphan(&run(id));
                String::new()
            }
            ["unsettled", task] => {
                self.supervisor.leave_unsettled(&key(task));
                String::new()
            }
            ["empty-trash", rest @ ..] => match self.supervisor.begin_emptying(&project(rest)) {
                Ok(()) => "begun".into(),
                Err(refusal) => format!("refused: {refusal}"),
            },
            ["emptied", rest @ ..] => {
                self.supervisor.end_emptying(&project(rest));
                String::new()
            }
            ["turn-ended", task] => match self.supervisor.begin_snapshot(&key(task)) {
                true => "snapshot".into(),
                false => String::new(),
            },
            ["turn-kept", task] => match self.supervisor.end_snapshot(&key(task)) {
                true => "once more".into(),
                false => String::new(),
            },
            words => {
                let event = self.event_of(words);
                let effects = self.handle(now, event);
                effects.iter().map(|effect| self.show_effect(effect)).collect::<Vec<_>>().join("; ")
            }
        }
    }

    /// Where a workspace is there, the answer to `MakeWorkspace` comes at once.
    fn handle(&mut self, now: Duration, event: Event) -> Vec<Effect> {
        let mut effects = self.supervisor.handle(now, event);
        let made = effects.iter().position(
            |effect| matches!(effect, Effect::MakeWorkspace { key, .. } if self.with_workspace.contains(key)),
        );
        if let Some(at) = made
            && let Effect::MakeWorkspace { key, epoch } = effects.remove(at)
        {
            let (made_by, readiness) = (MadeBy::Earlier, Readiness::Ready);
            effects.extend(self.handle(now, Event::WorkspaceMade { key, epoch, made_by, readiness }));
        }
        effects
    }

    fn start(&mut self, task: &str, how: &[&str]) -> StartPlan {
        match how.iter().any(|word| ["fresh", "new"].contains(word)) {
            true => self.with_workspace.remove(&key(task)),
            false => self.with_workspace.insert(key(task)),
        };
        plan(how)
    }

    fn event_of(&mut self, words: &[&str]) -> Event {
        match words {
            ["boot", tasks @ ..] => Event::Booted { tasks: tasks.iter().map(|task| found(task)).collect() },
            ["seen", task] => Event::TaskSeen(found(task)),
            ["start", task, at, how @ ..] => {
                Event::Start { key: key(task), ticket: ticket(at), plan: self.start(task, how) }
            }
            ["restart", task, at, how @ ..] => {
                Event::Restart { key: key(task), ticket: ticket(at), plan: self.start(task, how) }
            }
            ["stop", task, at] => Event::Stop { key: key(task), ticket: ticket(at) },
            ["idle", task, at] => Event::Idle { key: key(task), ticket: ticket(at) },
            ["complete", task, at] => mark(task, at, Verdict::Completed),
            ["fail", task, at] => mark(task, at, Verdict::Failed),
            ["review", task, at] => mark(task, at, Verdict::Reviewed),
            ["merged", task, at] => mark(task, at, Verdict::Merged),
            ["taken-back", task, at] => mark(task, at, Verdict::MergeTakenBack),
            ["rm", task, at] => Event::Remove { key: key(task), ticket: ticket(at), discard: false },
            ["discard", task, at] => Event::Remove { key: key(task), ticket: ticket(at), discard: true },
            ["finish", word, task] => Event::Finished { key: key(task), operation: operation(word) },
            ["adopt", task, id, at, how @ ..] => {
                Event::Adopt { key: key(task), ticket: ticket(at), run: run(id), terms: plan(how).terms }
            }
            ["shutdown", at] => Event::Shutdown { ticket: ticket(at) },
            ["tick"] => Event::Tick,
            ["set-up", task, at, how @ ..] => {
                Event::SetUp { key: key(task), ticket: ticket(at), plan: self.start(task, how) }
            }
            ["made", task, at] => self.made(task, at, MadeBy::ThisStart, Readiness::Ready),
            ["made", task, at, "raw"] => self.made(task, at, MadeBy::ThisStart, Readiness::Raw),
            ["found", task, at] => self.made(task, at, MadeBy::Earlier, Readiness::Ready),
            ["found", task, at, "raw"] => self.made(task, at, MadeBy::Earlier, Readiness::Raw),
            ["setup-done", task, at] => Event::SetupDone { key: key(task), epoch: self.epoch(at) },
            ["setup-failed", task, at, error @ ..] => {
                Event::SetupFailed { key: key(task), epoch: self.epoch(at), error: error.join(" ") }
            }
            ["not-made", task, at, error @ ..] => {
                Event::WorkspaceFailed { key: key(task), epoch: self.epoch(at), error: error.join(" ") }
            }
            ["undone", task, at] => Event::WorkspaceUndone { key: key(task), epoch: self.epoch(at) },
            ["ready", task, at, id] => {
                Event::KeeperReady { key: key(task), epoch: self.epoch(at), run: run(id) }
            }
            ["not-ready", task, at, error @ ..] => {
                Event::KeeperFailed { key: key(task), epoch: self.epoch(at), error: error.join(" ") }
            }
            ["exit", task, id, how] => Event::RunExited { key: key(task), run: run(id), exit: exit(how) },
            other => panic!("no such event: {other:?}"),
        }
    }

    fn made(&self, task: &str, at: &str, made_by: MadeBy, readiness: Readiness) -> Event {
        Event::WorkspaceMade { key: key(task), epoch: self.epoch(at), made_by, readiness }
    }

    /// An epoch that the story has not shown is one that the supervisor does not wait for.
    fn epoch(&self, text: &str) -> Epoch {
        let shown = number(text.strip_prefix('e').expect("an epoch"));
        self.epochs.get(shown as usize - 1).copied().unwrap_or(Epoch(1_000_000 + shown))
    }

    fn show_epoch(&mut self, epoch: Epoch) -> String {
        if !self.epochs.contains(&epoch) {
            self.epochs.push(epoch);
        }
        let place = self.epochs.iter().position(|shown| *shown == epoch).expect("it is there");
        format!("e{}", place + 1)
    }

    fn show_effect(&mut self, effect: &Effect) -> String {
        match effect {
            Effect::MakeWorkspace { key, epoch } => {
                format!("make {} {}", show_key(key), self.show_epoch(*epoch))
            }
            Effect::UndoWorkspace { key, epoch } => {
                format!("undo-workspace {} {}", show_key(key), self.show_epoch(*epoch))
            }
            Effect::SetUp { key, epoch } => format!("setup {} {}", show_key(key), self.show_epoch(*epoch)),
            Effect::EndSetup { key, epoch } => {
                format!("end-setup {} {}", show_key(key), self.show_epoch(*epoch))
            }
            Effect::StartKeeper { key, epoch, cause } => {
                let cause = format!("{cause:?}").to_lowercase();
                format!("keeper {} {} {cause}", show_key(key), self.show_epoch(*epoch))
            }
            Effect::StopRun { key, run, grace } => format!("stop {} {run} {grace:?}", show_key(key)),
            Effect::KillRun { key, run } => format!("kill {} {run}", show_key(key)),
            Effect::DismissRun { key, run } => format!("dismiss {} {run}", show_key(key)),
            Effect::WriteStatus { key, status } => format!("write {} {status}", show_key(key)),
            Effect::WriteExit { key, run, exit } => {
                format!("write {} {run} exit {} raw {}", show_key(key), exit.code, exit.raw)
            }
            Effect::UndoTask { key } => format!("undo-task {}", show_key(key)),
            Effect::Reply { ticket, outcome: Ok(outcome) } => format!("{ticket} {}", show_outcome(outcome)),
            Effect::Reply { ticket, outcome: Err(refusal) } => format!("{ticket} refused: {refusal}"),
            Effect::Report(notice) => format!("report {}", show_notice(notice)),
            Effect::Quit => "quit".into(),
        }
    }
}

/// The operation that the daemon is in the middle of, for `given 1=merging`.
fn operation_under_way(state: &str) -> Option<Operation> {
    match state {
        "merging" => Some(Operation::Merge),
        "syncing" => Some(Operation::Sync),
        "restoring-turn" => Some(Operation::RestoreTurn),
        "restoring" => Some(Operation::RestoreTask),
        _ => None,
    }
}

/// The words for operations.
pub(crate) const OPERATIONS: [(&str, Operation); Operation::ALL.len()] = [
    ("start", Operation::Start),
    ("restart", Operation::Restart),
    ("set-up", Operation::SetUp),
    ("stop", Operation::Stop),
    ("idle", Operation::Pause),
    ("mark", Operation::Mark),
    ("adopt", Operation::Adopt),
    ("send", Operation::Send),
    ("merge", Operation::Merge),
    ("finish", Operation::Finish),
    ("sync", Operation::Sync),
    ("restore-turn", Operation::RestoreTurn),
    ("restore-files", Operation::RestoreFiles),
    ("restore-task", Operation::RestoreTask),
    ("rm", Operation::Remove),
    ("discard", Operation::Discard),
    ("tear-down", Operation::TearDown),
    ("finish-removal", Operation::FinishRemoval),
    ("keep-turn", Operation::KeepTurn),
    ("open-shell", Operation::OpenShell),
    ("write-file", Operation::WriteFile),
];

pub(crate) fn operation(word: &str) -> Operation {
    let known = OPERATIONS.iter().find(|(known, _)| *known == word);
    known.unwrap_or_else(|| panic!("no such operation: {word}")).1
}

fn lines(story: &str) -> Vec<(String, String)> {
    let mut whole: Vec<String> = Vec::new();
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match whole.last_mut() {
            Some(above) if line.starts_with([';', '+', '-']) => {
                let glue = if line.starts_with(';') { "" } else { " " };
                above.push_str(&format!("{glue}{}", line.trim_start_matches("+ ")));
            }
            Some(_) | None => whole.push(line.to_owned()),
        }
    }
    whole.iter().map(|line| line.split_once("->").unwrap_or((line, ""))).map(trimmed).collect()
}

fn trimmed((event, effects): (&str, &str)) -> (String, String) {
    (event.trim().to_owned(), effects.trim().to_owned())
}

fn mark(task: &str, at: &str, verdict: Verdict) -> Event {
    Event::Mark { key: key(task), ticket: ticket(at), verdict }
}

fn found(text: &str) -> FoundTask {
    let (task, status) = text.split_once('=').expect("task=status");
    let (status, live) = if let Some(status) = status.strip_suffix("@elsewhere") {
        (status, FoundRun::Elsewhere)
    } else if let Some((status, end)) = status.split_once('!') {
        let (id, how) = end.split_once('/').expect("run/exit");
        (status, FoundRun::Ended { run: run(id), exit: exit(how) })
    } else if let Some((status, live)) = status.split_once(':') {
        let mut words = live.split('+');
        let id = words.next().expect("a run");
        (status, FoundRun::Live { run: run(id), terms: plan(&words.collect::<Vec<_>>()).terms })
    } else {
        (status, FoundRun::None)
    };
    FoundTask { key: key(task), status: status.parse().expect("a status"), run: live }
}

fn plan(how: &[&str]) -> StartPlan {
    let (stop_grace, restart) = (Duration::from_secs(2), RestartPolicy::Never);
    let terms = RunTerms { stop_grace, restart, takes_slot: true };
    let mut plan = StartPlan { task: Origin::Existing, terms };
    for word in how {
        match word.split_once('=').unwrap_or((word, "")) {
            // The workspace is not there: the story says what comes of making it.
            ("fresh", _) => {}
            // A session on a process that tasks share.
            ("session", _) => plan.terms.takes_slot = false,
            ("new" | "new-here", _) => plan.task = Origin::MadeByThisCall,
            ("grace", seconds) => plan.terms.stop_grace = Duration::from_secs(number(seconds)),
            ("on-crash", max) => {
                plan.terms.restart = RestartPolicy::OnCrash { max_restarts: number(max) as u32 }
            }
            other => panic!("no such way to start: {other:?}"),
        }
    }
    plan
}

fn exit(text: &str) -> RunExit {
    match text.split_once(':') {
        Some(("term", raw)) => RunExit::stopped(StoppedBy::Term, code(raw)),
        Some(("kill", raw)) => RunExit::stopped(StoppedBy::Kill, code(raw)),
        Some(other) => panic!("no such end: {other:?}"),
        None => RunExit::by_itself(code(text)),
    }
}

fn show_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Started { run } => format!("started {run}"),
        Outcome::Resumed { run } => format!("resumed {run}"),
        Outcome::AlreadyRunning { run } => format!("already running {run}"),
        Outcome::Stopped { exit } => format!("stopped {}", exit.code),
        Outcome::StartCancelled => "start cancelled".into(),
        Outcome::SetUp => "set up".into(),
        Outcome::Idle => "idle".into(),
        Outcome::Marked(status) => format!("marked {status}"),
        Outcome::Adopted { run } => format!("adopted {run}"),
        Outcome::ReadyToRemove => "ready to remove".into(),
        Outcome::ShutDown { still_alive } if still_alive.is_empty() => "shut down".into(),
        Outcome::ShutDown { still_alive } => {
            let left: Vec<String> = still_alive.iter().map(show_key).collect();
            format!("shut down, still alive: {}", left.join(" "))
        }
    }
}

fn show_notice(notice: &Notice) -> String {
    match notice {
        Notice::Crashed { key, run, exit } => format!("crashed {} {run} {}", show_key(key), exit.code),
        Notice::Restarting { key, attempt } => format!("restarting {} attempt {attempt}", show_key(key)),
        Notice::RestartGivenUp { key, why } => format!("given up {}: {why}", show_key(key)),
        Notice::RestartFailed { key, error } => format!("restart failed {}: {error}", show_key(key)),
        Notice::WontDie { key, run } => format!("won't die {} {run}", show_key(key)),
        Notice::DaemonResumeMarkStopped { marked_stopped, adopted, elsewhere } => {
            format!("marked stopped {marked_stopped}, adopted {adopted}, elsewhere {elsewhere}")
        }
    }
}

/// `7` is a task of the project p, `q7` one of the project q.
pub(crate) fn key(text: &str) -> TaskKey {
    let (project, task) = match text.strip_prefix('q') {
        Some(task) => ("q", task),
        None => ("p", text),
    };
    TaskKey { project: ProjectId(project.into()), task: TaskId(number(task)) }
}

pub(crate) fn show_key(key: &TaskKey) -> String {
    match key.project.0.as_str() {
        "p" => key.task.to_string(),
        project => format!("{project}{}", key.task),
    }
}

fn project(words: &[&str]) -> ProjectId {
    ProjectId(words.first().copied().unwrap_or("p").into())
}

fn run(text: &str) -> RunId {
    RunId(text.into())
}

fn ticket(text: &str) -> Ticket {
    Ticket(number(text.strip_prefix('#').expect("a ticket")))
}

fn code(text: &str) -> ExitCode {
    text.parse().expect("an exit code")
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("not a number: {text}"))
}
