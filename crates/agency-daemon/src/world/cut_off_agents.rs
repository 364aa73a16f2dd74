//! Agents that ended although no caller asked for it: `agency start --all` brings them back.
//!
//! Not here: restarts after a crash (see the supervisor).

use agency_api::Failure;
use agency_api::method::{self, CutOffTasks, Nothing};
use agency_core::exit::{ExitCode, RunExit};
use agency_core::ids::TaskKey;
use agency_core::task_status::TaskStatus;

use super::World;
use super::router::Router;

pub(super) fn register(router: &mut Router) {
    router.on(method::TaskCutOff, World::cut_off_tasks);
}

impl World {
    fn cut_off_tasks(&mut self, _: Nothing) -> Result<CutOffTasks, Failure> {
        let records = self.workspaces.records.all();
        let marked: Vec<TaskKey> =
            records.filter(|(_, record)| record.agent_cut_off).map(|(key, _)| key.clone()).collect();
        let is_stopped = |key: &&TaskKey| self.supervisor.status(key) == Some(TaskStatus::Stopped);
        let tasks = marked.iter().filter(is_stopped).map(|key| self.view(key)).collect::<Result<_, _>>()?;
        Ok(CutOffTasks { tasks })
    }

    /// The daemon ends all agents. Their tasks ran until now.
    pub(super) fn mark_live_agents_cut_off(&mut self) {
        let live: Vec<TaskKey> = self.supervisor.live_runs().map(|(key, _)| key.clone()).collect();
        live.iter().for_each(|key| self.mark_agent_cut_off(key, true));
    }

    pub(super) fn on_agent_ended(&mut self, key: &TaskKey, exit: RunExit) {
        if is_cut_off(exit) {
            self.mark_agent_cut_off(key, true);
        }
    }

    pub(super) fn mark_agent_cut_off(&mut self, key: &TaskKey, is_cut_off: bool) {
        if self.workspaces.records.get(key).agent_cut_off == is_cut_off {
            return;
        }
        if let Err(cause) = self.workspaces.records.change(key, |record| record.agent_cut_off = is_cut_off) {
            tracing::warn!(task = %key, %cause, "cannot record whether an agent was cut off");
        }
    }
}

/// A program that exits by itself has a code. A reboot leaves a signal, or no trace at all.
fn is_cut_off(exit: RunExit) -> bool {
    !exit.requested && matches!(exit.code, ExitCode::Signal(_) | ExitCode::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_exits_by_itself_or_on_request_is_not_cut_off() {
        let exit = |code, requested| RunExit { code, raw: code, requested };
        assert!(is_cut_off(exit(ExitCode::Unknown, false)) && is_cut_off(exit(ExitCode::Signal(9), false)));
        assert!(!is_cut_off(exit(ExitCode::Code(0), false)) && !is_cut_off(exit(ExitCode::Code(1), false)));
        assert!(!is_cut_off(exit(ExitCode::Signal(15), true)));
    }
}
