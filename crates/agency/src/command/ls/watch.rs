//! `agency ls --watch`: the list, kept up to date by the daemon's updates.
//!
//! Asks the daemon for nothing while nothing changes. Wakes by itself only when an age on the screen changes, which is
//! rare, because ages below a minute are not counted.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use agency_api::desk::{Applied, Desk, DeskSubscribeParams};
use agency_api::method::{DeskRead, DeskSubscribe, Nothing, TaskListing};
use agency_api::view::{AgentState, Task};
use agency_api::{Bytes, Failure, FailureCode};
use agency_client::Client;
use tokio::time::Instant;

use super::Shown;
use crate::attach::signals::{SignalEvent, Signals};
use crate::context::{self, Context};
use crate::list_terminal::ListTerminal;
use crate::marks::Marks;
use crate::outcome::{self, CommandResult};
use crate::output::{Colour, Paint};
use crate::task_filter::TaskFilter;
use crate::task_table::{Look, cut_line};
use crate::task_words::{Ages, age_seconds};

/// Only while no daemon answers.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Ages of many tasks change at many moments. A reader needs no fresher ones.
const LEAST_SLEEP: Duration = Duration::from_secs(15);

pub(super) async fn watch(context: &Context, shown: Shown, filter: TaskFilter) -> CommandResult {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::new("cannot watch without a terminal")
            .code(FailureCode::NeedsTerminal)
            .because("standard input and standard output must both be terminals")
            .hint("`agency events --json` prints every change for a program")
            .into());
    }
    // A failure to reach the first daemon is shown as by `agency ls`.
    let (client, desk) = connect(context).await?;
    let signals = Signals::watch().map_err(|err| outcome::failed("cannot watch for signals", &err))?;
    let here = (!shown.all_projects).then(context::here).transpose()?;
    let terminal = ListTerminal::take().map_err(|err| outcome::failed("cannot use the terminal", &err))?;
    let mut list = WatchedList {
        context,
        shown,
        filter,
        here,
        terminal,
        signals,
        desk: Desk::default(),
        received: HashMap::new(),
        problem: None,
    };
    list.replace(desk);
    list.run(client).await
}

/// Subscribes first, so that no change between the two calls is missed.
async fn connect(context: &Context) -> Result<(Client, Desk), Failure> {
    let mut client = Client::connect_or_start(&context.state, &context.executable).await?;
    client.call(DeskSubscribe, DeskSubscribeParams::default()).await?;
    let desk = client.call(DeskRead, Nothing {}).await?;
    Ok((client, desk))
}

struct WatchedList<'a> {
    context: &'a Context,
    shown: Shown,
    filter: TaskFilter,
    /// Only tasks of the project of this directory are shown; `None`: of all projects.
    here: Option<Bytes>,
    terminal: ListTerminal,
    signals: Signals,
    desk: Desk,
    /// When each task arrived. Its ages are those of that moment.
    received: HashMap<(Bytes, u64), Instant>,
    /// Why the list may be out of date.
    problem: Option<String>,
}

/// How to go on after the user or the system did something.
enum Next {
    Continue,
    Leave(ExitCode),
}

impl WatchedList<'_> {
    async fn run(mut self, mut client: Client) -> CommandResult {
        loop {
            self.draw()?;
            let wake = self.next_age_change();
            let next = tokio::select! {
                update = client.next_desk_update() => match update {
                    Some(update) => self.update(&mut client, update).await,
                    None => Ok(false),
                },
                keys = self.terminal.next_keys() => match leaves(keys.as_deref()) {
                    true => return Ok(ExitCode::SUCCESS),
                    false => Ok(true),
                },
                signal = self.signals.next() => match self.on_signal(signal)? {
                    Next::Leave(code) => return Ok(code),
                    Next::Continue => Ok(true),
                },
                () = tokio::time::sleep_until(wake) => Ok(true),
            };
            match next {
                Ok(true) => {}
                Ok(false) => match self.reconnect("the daemon has ended").await? {
                    Ok(again) => client = again,
                    Err(code) => return Ok(code),
                },
                Err(failure) => match self.reconnect(&failure.message).await? {
                    Ok(again) => client = again,
                    Err(code) => return Ok(code),
                },
            }
        }
    }

    /// `false` if the connection broke.
    async fn update(
        &mut self,
        client: &mut Client,
        update: agency_api::desk::DeskUpdate,
    ) -> Result<bool, Failure> {
        if let agency_api::desk::DeskChange::Task(task) = &update.change {
            self.received.insert((task.project.clone(), task.id), Instant::now());
        }
        if self.desk.apply(update) == Applied::Gap {
            match client.call(DeskRead, Nothing {}).await {
                Ok(desk) => self.replace(desk),
                Err(_) if client.is_broken() => return Ok(false),
                Err(failure) => return Err(failure),
            }
        }
        Ok(true)
    }

    /// Tries until a daemon answers. The user can leave meanwhile: then the exit code is in `Err`.
    async fn reconnect(&mut self, why: &str) -> Result<Result<Client, ExitCode>, outcome::CommandError> {
        self.problem = Some(format!("{why}; reconnecting"));
        loop {
            self.draw()?;
            let context = self.context;
            let mut connecting = std::pin::pin!(connect(context));
            let connected = loop {
                tokio::select! {
                    connected = &mut connecting => break connected,
                    keys = self.terminal.next_keys() => if leaves(keys.as_deref()) {
                        return Ok(Err(ExitCode::SUCCESS));
                    },
                    signal = self.signals.next() => {
                        if let Next::Leave(code) = self.on_signal(signal)? {
                            return Ok(Err(code));
                        }
                        self.draw()?;
                    }
                }
            };
            match connected {
                Ok((client, desk)) => {
                    self.problem = None;
                    self.replace(desk);
                    return Ok(Ok(client));
                }
                Err(failure) => self.problem = Some(format!("{}; reconnecting", failure.message)),
            }
            self.draw()?;
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }

    fn replace(&mut self, desk: Desk) {
        let now = Instant::now();
        self.received = desk.tasks.iter().map(|task| ((task.project.clone(), task.id), now)).collect();
        self.desk = desk;
    }

    fn on_signal(&mut self, signal: SignalEvent) -> Result<Next, outcome::CommandError> {
        match signal {
            SignalEvent::Resized => self.terminal.forget_frame(),
            SignalEvent::Continued => self.terminal.retake()?,
            SignalEvent::End(number) => return Ok(Next::Leave(ExitCode::from(128 + number))),
        }
        Ok(Next::Continue)
    }

    /// The tasks to show, with the ages of this moment.
    fn tasks(&self) -> Vec<Task> {
        let is_here = |task: &&Task| {
            self.here.as_ref().is_none_or(|here| here.as_path().starts_with(task.project.as_path()))
        };
        let tasks = self.desk.tasks.iter().filter(is_here).filter(|task| self.filter.fits(task));
        tasks.map(|task| self.aged(task)).collect()
    }

    fn aged(&self, task: &Task) -> Task {
        let received = self.received.get(&(task.project.clone(), task.id));
        let passed = received.map_or(0, |received| received.elapsed().as_secs());
        let later = |age: Option<u64>| age.map(|age| age + passed);
        let mut task = Task {
            age_seconds: later(task.age_seconds),
            ended_seconds: later(task.ended_seconds),
            ..task.clone()
        };
        if let Some(
            AgentState::Starting { for_seconds }
            | AgentState::Running { for_seconds }
            | AgentState::NeedsInput { for_seconds, .. }
            | AgentState::Stale { for_seconds, .. },
        ) = &mut task.state
        {
            *for_seconds += passed;
        }
        task
    }

    /// When an age that is shown changes next.
    fn next_age_change(&self) -> Instant {
        let tasks = self.tasks();
        let ages = tasks.iter().flat_map(|task| [task.age_seconds, age_seconds(task)]).flatten();
        let soonest = ages.map(until_next_age).min().unwrap_or(Duration::from_secs(86_400));
        Instant::now() + soonest.max(LEAST_SLEEP)
    }

    fn draw(&mut self) -> std::io::Result<()> {
        let (columns, rows) = ListTerminal::size();
        let look = Look {
            paint: Paint::for_stdout(),
            marks: Marks::choose(&self.desk.marks, &self.context.options),
            width: Some(columns),
            all_projects: self.shown.all_projects,
            ages: Ages::Coarse,
        };
        let listing = TaskListing {
            tasks: self.tasks(),
            orphans: self.desk.orphans.clone(),
            warnings: self.desk.warnings.clone(),
            marks: self.desk.marks.clone(),
        };
        let mut lines = super::lines(&listing, &self.shown, look);
        lines.extend(listing.warnings.iter().map(|warning| cut_line(&format!("Warning: {warning}"), look)));
        let room = rows.saturating_sub(1);
        if lines.len() > room {
            let hidden = lines.len() - room.saturating_sub(1);
            lines.truncate(room.saturating_sub(1));
            lines.push(look.paint.paint(Colour::Faint, &cut_line(&format!("and {hidden} more lines"), look)));
        }
        let status = self.problem.as_deref().unwrap_or("q leaves");
        let colour = if self.problem.is_some() { Colour::Yellow } else { Colour::Faint };
        lines.push(look.paint.paint(colour, &cut_line(status, look)));
        self.terminal.draw(&lines)
    }
}

/// Whether the user wants to leave, or the terminal has gone.
fn leaves(keys: Option<&[u8]>) -> bool {
    // Ctrl-c sends a signal. Ctrl-d and ctrl-q leave everything else in Agency.
    keys.is_none_or(|keys| keys.iter().any(|key| matches!(key, b'q' | b'Q' | 0x03 | 0x04 | 0x11)))
}

/// How long until a coarse age looks different.
fn until_next_age(seconds: u64) -> Duration {
    let unit = match seconds {
        0..=3_599 => 60,
        3_600..=86_399 => 3_600,
        _ => 86_400,
    };
    Duration::from_secs(unit - seconds % unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_wakes_only_when_an_age_looks_different() {
        let until = |seconds| until_next_age(seconds).as_secs();
        assert_eq!([until(0), until(59), until(60), until(3_599)], [60, 1, 60, 1]);
        assert_eq!([until(3_600), until(86_399), until(90_000)], [3_600, 1, 82_800]);
    }

    #[test]
    fn q_and_the_end_of_the_terminal_leave() {
        assert!(leaves(None) && leaves(Some(b"q")) && leaves(Some(b"\x11")));
        assert!(!leaves(Some(b"x\x1b[A")));
    }
}
