//! `task.explain`: explains the current state of an agent, or its state at a time in the past. `task.contradict`: the user says
//! that it is wrong.

use std::time::Duration;

use agency_api::method::{self, TaskContradictParams, TaskExplainParams};
use agency_api::view::{Belief, Contradiction, Corrections, Explanation};
use agency_api::{Failure, FailureCode};
use agency_core::evidence;
use agency_core::ids::TaskKey;
use agency_run::blocking::blocking;
use agency_run::command::{ContradictRequest, RunCommand, TerminalCommand};
use agency_run::explain;
use agency_run::explain::Explanation as StateExplanation;
use agency_run::handle::{CommandSender, RunCommands};
use agency_run::view::correction;
use agency_run::wrong_state_report::WrongStateReport;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::World;
use super::conversations::ask_run;
use super::router::{Later, Router};
use super::runs::is_conversation;

/// A run whose keeper is stopped does not answer. After this time the explanation uses its log alone.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

pub(super) fn register(router: &mut Router) {
    router.on(method::TaskExplain, World::explain);
    router.on(method::TaskContradict, World::contradict);
    router.on(method::CorrectionForget, World::forget_corrections);
}

impl World {
    fn explain(
        &mut self,
        (key, params): (TaskKey, TaskExplainParams),
    ) -> Result<Later<Explanation>, Failure> {
        let at = params.at;
        let time = at.as_deref().map(parse_time).transpose()?;
        let task = self.view(&key)?;
        let runs = self.runs.history.get(&key).map(Vec::as_slice).unwrap_or_default();
        let logs: Vec<_> = runs.iter().map(|meta| self.context.state.run(&meta.run.0).states()).collect();
        let run = runs.last().map(|meta| meta.run.0.clone());
        let is_terminal = runs.last().is_some_and(|meta| !is_conversation(meta));
        let past = runs.last().filter(|_| is_terminal && at.is_none()).map(|meta| &meta.program);
        let past = past.map(|program| self.context.memories.of(program));
        let live = self.live_run(&key).ok().map(|live| live.handle.commands.clone()).filter(|_| at.is_none());
        Ok(Later::new(async move {
            let now = match live {
                Some(commands) => timeout(ANSWERS_WITHIN, ask_witnesses(commands)).await.ok().flatten(),
                None => None,
            };
            let (mut state, before) = blocking(move || explain::history(&logs, time)).await?;
            let (witnesses, outlook, unentered, signs, memory) = match now {
                Some(StateExplanation { standing, witnesses, outlook, unentered, signs, memory }) => {
                    explain::update_evidence(&mut state, &standing);
                    (witnesses, outlook, unentered, signs, is_terminal.then_some(memory))
                }
                None => {
                    let signs = past.as_ref().map(explain::remembered_signs).unwrap_or_default();
                    (Vec::new(), Vec::new(), None, signs, past)
                }
            };
            let corrections = memory.iter().flat_map(|memory| &memory.corrections).map(correction).collect();
            let program = memory.map(|memory| memory.program).filter(|program| !program.is_empty());
            Ok(Explanation {
                task,
                at,
                run,
                state,
                witnesses,
                outlook,
                unentered,
                program,
                signs,
                corrections,
                before,
            })
        }))
    }

    /// Corrects the state of an agent in a terminal and writes a report.
    fn contradict(
        &mut self,
        (key, params): (TaskKey, TaskContradictParams),
    ) -> Result<Later<Contradiction>, Failure> {
        let wrong = params.wrong;
        let live = self.live_run(&key)?;
        let Some(commands) = live.handle.terminal().cloned() else { return Err(is_reported(&key)) };
        let dir = self.context.state.run(&live.meta.run.0);
        let (task, agent) = (live.meta.name(), live.meta.agent.clone());
        let state = self.context.state.clone();
        let terminals = self.live_terminals();
        Ok(Later::new(async move {
            let belief = match wrong {
                Belief::Working => evidence::Belief::Working,
                Belief::Waiting => evidence::Belief::Waiting,
            };
            let request = |answer| TerminalCommand::Contradict(ContradictRequest { wrong: belief, answer });
            let contradicted = ask_run(commands, request).await??;
            terminals.iter().for_each(|other| other.post(TerminalCommand::ReloadMemory));
            let program = contradicted.program.clone();
            let corrections = contradicted.corrections.iter().map(correction).collect();
            let report = blocking(move || {
                let (last, mut changes) = explain::history(&[dir.states()], None)?;
                changes.extend(last);
                let journal = dir.journal();
                WrongStateReport { task, agent, wrong, contradicted, journal, changes }.write(&state)
            });
            Ok(Contradiction { program, corrections, report: report.await?.as_path().into() })
        }))
    }

    fn forget_corrections(&mut self, key: TaskKey) -> Result<Later<Corrections>, Failure> {
        let runs = self.runs.history.get(&key).map(Vec::as_slice).unwrap_or_default();
        let started = runs.last().map(|meta| meta.program.clone()).unwrap_or_default();
        let live = self.live_run(&key).ok().map(|live| live.handle.commands.clone());
        let memories = self.context.memories.clone();
        let terminals = self.live_terminals();
        Ok(Later::new(async move {
            let now = match live {
                Some(commands) => timeout(ANSWERS_WITHIN, ask_witnesses(commands)).await.ok().flatten(),
                None => None,
            };
            // A shell may have started the program.
            let program =
                now.map(|now| now.memory.program).filter(|name| !name.is_empty()).unwrap_or(started);
            let of = program.clone();
            let forgotten = blocking(move || {
                memories.forget_corrections(&of).map_err(|err| {
                    Failure::new("the corrections cannot be forgotten")
                        .code(FailureCode::IoError)
                        .caused_by(&err)
                })
            });
            let corrections = forgotten.await?.iter().map(correction).collect();
            terminals.iter().for_each(|terminal| terminal.post(TerminalCommand::ReloadMemory));
            Ok(Corrections { program, corrections })
        }))
    }

    fn live_terminals(&self) -> Vec<CommandSender<TerminalCommand>> {
        self.runs.live.values().filter_map(|live| live.handle.terminal().cloned()).collect()
    }
}

fn is_reported(key: &TaskKey) -> Failure {
    Failure::new(format!("the state of task {} cannot be contradicted", key.task))
        .code(FailureCode::Unsupported)
        .because("its agent reports the state itself, through its protocol")
        .hint(format!("agency chat {} shows what it reports", key.task))
}

/// Asks a live run for its evidence. `None` if the run ends meanwhile: then its log is enough.
async fn ask_witnesses(commands: RunCommands) -> Option<StateExplanation> {
    let (answer, explanation) = oneshot::channel();
    commands.send(RunCommand::Explain { answer }).await.ok()?;
    explanation.await.ok()
}

pub(super) fn parse_time(time: &str) -> Result<jiff::Timestamp, Failure> {
    time.parse().map_err(|_| {
        Failure::new(format!("`{time}` is not a time"))
            .code(FailureCode::InvalidArgument)
            .hint("for example 2026-01-31T14:05:00Z, 14:05, or `10m` ago")
    })
}
