//! `task.explain`: explains the current state of an agent, or its state at a time in the past.

use std::time::Duration;

use agency_api::method::{self, TaskExplainParams};
use agency_api::view::Explanation;
use agency_api::{Failure, FailureCode};
use agency_core::ids::TaskKey;
use agency_run::blocking::blocking;
use agency_run::command::RunCommand;
use agency_run::explain;
use agency_run::explain::Explanation as StateExplanation;
use agency_run::handle::RunCommands;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::World;
use super::router::{Later, Router};

/// A run whose keeper is stopped does not answer. After this time the explanation uses its log alone.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

pub(super) fn register(router: &mut Router) {
    router.on(method::TaskExplain, World::explain);
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
        let live = self.live_run(&key).ok().map(|live| live.handle.commands.clone()).filter(|_| at.is_none());
        Ok(Later::new(async move {
            let now = match live {
                Some(commands) => timeout(ANSWERS_WITHIN, ask_witnesses(commands)).await.ok().flatten(),
                None => None,
            };
            let (mut state, before) = blocking(move || explain::history(&logs, time)).await?;
            let (witnesses, outlook, unentered) = match now {
                Some(StateExplanation { standing, witnesses, outlook, unentered }) => {
                    explain::update_evidence(&mut state, &standing);
                    (witnesses, outlook, unentered)
                }
                None => Default::default(),
            };
            Ok(Explanation { task, at, run, state, witnesses, outlook, unentered, before })
        }))
    }
}

/// Asks a live run for its evidence. `None` if the run ends meanwhile: then its log is enough.
async fn ask_witnesses(commands: RunCommands) -> Option<StateExplanation> {
    let (answer, explanation) = oneshot::channel();
    commands.send(RunCommand::Explain { answer }).await.ok()?;
    explanation.await.ok()
}

fn parse_time(time: &str) -> Result<jiff::Timestamp, Failure> {
    time.parse().map_err(|_| {
        Failure::new(format!("`{time}` is not a time"))
            .code(FailureCode::InvalidArgument)
            .hint("for example 2026-01-31T14:05:00Z, 14:05, or `10m` ago")
    })
}
