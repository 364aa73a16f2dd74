//! The language of the stories: `seconds event -> effect; effect`.
//!
//! A line that starts with `->`, `;` or `+` goes on with the line above. `max` and `wait` set limits before the
//! story begins. Tasks are numbers, runs are letters, tickets are `#1`, epochs are `e1`.
//!
//! ```text
//! start 1 #1        the workspace is there     start 1 #1 fresh   it must be made
//! start 1 #1 new    so must the task           + grace=30 on-crash=3
//! made 1 e1         it is ready to work in     made 1 e1 raw      it has to be set up
//! boot 1=draft 2=running:a 3=running@elsewhere 4=running!b/1      a lives, b has ended with 1
//! exit 1 a -11      by itself                  exit 1 a term:0    because of our SIGTERM, saying 0
//! deadline -> 37    asks when a tick is due
//! ```

use std::time::Duration;

use agency_core::exit::{ExitCode, RunExit, StoppedBy};
use agency_core::ids::{Epoch, ProjectId, RunId, TaskId, TaskKey, Ticket};
use agency_core::restart::RestartPolicy;
use agency_core::supervisor::*;

pub(crate) fn check(story: &str) {
    let mut limits = Limits::default();
    let mut supervisor = None;
    for (line, expected) in lines(story) {
        if let Some(max) = line.strip_prefix("max ") {
            limits.max_agents = number(max) as u32;
            continue;
        }
        if let Some(wait) = line.strip_prefix("wait ") {
            limits.shutdown_timeout = Duration::from_secs(number(wait));
            continue;
        }
        let supervisor = supervisor.get_or_insert_with(|| Supervisor::new(limits));
        assert_eq!(happens(supervisor, &line), expected, "\nafter `{line}` in{story}");
    }
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

fn happens(supervisor: &mut Supervisor, line: &str) -> String {
    if line == "deadline" {
        return supervisor.deadline().map_or("none".into(), |due| due.as_secs().to_string());
    }
    let (seconds, event) = line.split_once(' ').expect("a time and an event");
    let effects = supervisor.handle(Duration::from_secs(number(seconds)), event_of(event));
    effects.iter().map(effect_told).collect::<Vec<_>>().join("; ")
}

fn event_of(text: &str) -> Event {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["boot", tasks @ ..] => Event::Booted { tasks: tasks.iter().map(|task| found(task)).collect() },
        ["seen", task] => Event::TaskSeen(found(task)),
        ["start", task, at, how @ ..] => Event::Start { key: key(task), ticket: ticket(at), plan: plan(how) },
        ["restart", task, at, how @ ..] => {
            Event::Restart { key: key(task), ticket: ticket(at), plan: plan(how) }
        }
        ["stop", task, at] => Event::Stop { key: key(task), ticket: ticket(at) },
        ["idle", task, at] => Event::Idle { key: key(task), ticket: ticket(at) },
        ["complete", task, at] => mark(task, at, Verdict::Completed),
        ["fail", task, at] => mark(task, at, Verdict::Failed),
        ["review", task, at] => mark(task, at, Verdict::Reviewed),
        ["merge", task, at] => mark(task, at, Verdict::Merged),
        ["rm", task, at] => Event::Remove { key: key(task), ticket: ticket(at) },
        ["adopt", task, id, at] => {
            Event::Adopt { key: key(task), ticket: ticket(at), run: run(id), terms: plan(&[]).terms }
        }
        ["shutdown", at] => Event::Shutdown { ticket: ticket(at) },
        ["tick"] => Event::Tick,
        ["set-up", task, at, how @ ..] => {
            Event::SetUp { key: key(task), ticket: ticket(at), plan: plan(how) }
        }
        ["made", task, at] => made(task, at, Readiness::Ready),
        ["made", task, at, "raw"] => made(task, at, Readiness::Raw),
        ["setup-done", task, at] => Event::SetupDone { key: key(task), epoch: epoch(at) },
        ["setup-failed", task, at, error @ ..] => {
            Event::SetupFailed { key: key(task), epoch: epoch(at), error: error.join(" ") }
        }
        ["not-made", task, at, error @ ..] => {
            Event::WorkspaceFailed { key: key(task), epoch: epoch(at), error: error.join(" ") }
        }
        ["undone", task, at] => Event::WorkspaceUndone { key: key(task), epoch: epoch(at) },
        ["ready", task, at, id] => Event::KeeperReady { key: key(task), epoch: epoch(at), run: run(id) },
        ["not-ready", task, at, error @ ..] => {
            Event::KeeperFailed { key: key(task), epoch: epoch(at), error: error.join(" ") }
        }
        ["exit", task, id, how] => Event::RunExited { key: key(task), run: run(id), exit: exit(how) },
        other => panic!("no such event: {other:?}"),
    }
}

fn made(task: &str, at: &str, readiness: Readiness) -> Event {
    Event::WorkspaceMade { key: key(task), epoch: epoch(at), readiness }
}

fn mark(task: &str, at: &str, verdict: Verdict) -> Event {
    Event::Mark { key: key(task), ticket: ticket(at), verdict }
}

fn found(text: &str) -> FoundTask {
    let (task, status) = text.split_once('=').expect("task=status");
    let terms = plan(&[]).terms;
    let (status, live) = if let Some(status) = status.strip_suffix("@elsewhere") {
        (status, FoundRun::Elsewhere)
    } else if let Some((status, end)) = status.split_once('!') {
        let (id, how) = end.split_once('/').expect("run/exit");
        (status, FoundRun::Ended { run: run(id), exit: exit(how) })
    } else if let Some((status, id)) = status.split_once(':') {
        (status, FoundRun::Live { run: run(id), terms })
    } else {
        (status, FoundRun::None)
    };
    FoundTask { key: key(task), status: status.parse().expect("a status"), run: live }
}

fn plan(how: &[&str]) -> StartPlan {
    let terms = RunTerms { stop_grace: Duration::from_secs(2), restart: RestartPolicy::Never };
    let mut plan = StartPlan { workspace: Workspace::Ready, task: Origin::Existing, terms };
    for word in how {
        match word.split_once('=').unwrap_or((word, "")) {
            ("fresh", _) => plan.workspace = Workspace::Missing,
            ("new", _) => (plan.workspace, plan.task) = (Workspace::Missing, Origin::MadeByThisCall),
            ("new-here", _) => plan.task = Origin::MadeByThisCall,
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
        None => RunExit::unasked(code(text)),
    }
}

fn effect_told(effect: &Effect) -> String {
    match effect {
        Effect::MakeWorkspace { key, epoch } => format!("make {} {epoch}", key.task),
        Effect::UndoWorkspace { key, epoch } => format!("undo-workspace {} {epoch}", key.task),
        Effect::SetUp { key, epoch } => format!("setup {} {epoch}", key.task),
        Effect::EndSetup { key, epoch } => format!("end-setup {} {epoch}", key.task),
        Effect::StartKeeper { key, epoch, resume, cause } => {
            let resume = if *resume { "again" } else { "first" };
            format!("keeper {} {epoch} {resume} {}", key.task, format!("{cause:?}").to_lowercase())
        }
        Effect::StopRun { key, run, grace } => format!("stop {} {run} {grace:?}", key.task),
        Effect::KillRun { key, run } => format!("kill {} {run}", key.task),
        Effect::DismissRun { key, run } => format!("dismiss {} {run}", key.task),
        Effect::WriteStatus { key, status } => format!("write {} {status}", key.task),
        Effect::WriteExit { key, run, exit } => {
            format!("write {} {run} exit {} raw {}", key.task, exit.code, exit.raw)
        }
        Effect::UndoTask { key } => format!("undo-task {}", key.task),
        Effect::Reply { ticket, outcome: Ok(outcome) } => format!("{ticket} {}", outcome_told(outcome)),
        Effect::Reply { ticket, outcome: Err(refusal) } => format!("{ticket} refused: {refusal}"),
        Effect::Report(notice) => format!("report {}", notice_told(notice)),
        Effect::Quit => "quit".into(),
    }
}

fn outcome_told(outcome: &Outcome) -> String {
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
            let left: Vec<String> = still_alive.iter().map(|key| key.task.to_string()).collect();
            format!("shut down, still alive: {}", left.join(" "))
        }
    }
}

fn notice_told(notice: &Notice) -> String {
    match notice {
        Notice::Crashed { key, run, exit } => format!("crashed {} {run} {}", key.task, exit.code),
        Notice::Restarting { key, attempt } => format!("restarting {} attempt {attempt}", key.task),
        Notice::RestartGivenUp { key, why } => format!("given up {}: {why}", key.task),
        Notice::RestartFailed { key, error } => format!("restart failed {}: {error}", key.task),
        Notice::WontDie { key, run } => format!("won't die {} {run}", key.task),
        Notice::DaemonResumeMarkStopped { marked_stopped, adopted, elsewhere } => {
            format!("marked stopped {marked_stopped}, adopted {adopted}, elsewhere {elsewhere}")
        }
    }
}

fn key(text: &str) -> TaskKey {
    TaskKey { project: ProjectId("p".into()), task: TaskId(number(text)) }
}

fn run(text: &str) -> RunId {
    RunId(text.into())
}

fn ticket(text: &str) -> Ticket {
    Ticket(number(text.strip_prefix('#').expect("a ticket")))
}

fn epoch(text: &str) -> Epoch {
    Epoch(number(text.strip_prefix('e').expect("an epoch")))
}

fn code(text: &str) -> ExitCode {
    text.parse().expect("an exit code")
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("not a number: {text}"))
}
