//! The environment of commands in a workspace, and the values of the tokens in their words.

use std::ffi::OsString;

use agency_api::method::{self, Caller, Plan, TaskPlanParams};
use agency_api::{Bytes, Failure};
use agency_core::config::Config;
use agency_core::ids::TaskKey;
use agency_core::tokens::Tokens;
use agency_run::environment::{self, Environment};
use agency_run::{limits, plan};

use super::World;
use super::router::Router;
use super::tasks::{no_task, store_failure};

pub(super) fn register(router: &mut Router) {
    router.on(method::TaskPlan, World::plan_command);
}

impl World {
    /// A command that the caller runs in the workspace of a task, with its environment.
    fn plan_command(&mut self, (key, params): (TaskKey, TaskPlanParams)) -> Result<Plan, Failure> {
        let TaskPlanParams { message, overrides, .. } = params;
        let cwd = self.workspace_to_enter(&key)?;
        self.give_ports(&key)?;
        let tokens = self.tokens_of(&key, message.as_ref().map(|message| message.as_os_str().to_owned()))?;
        let file = self.store.file(&key).map_err(store_failure)?;
        let settings = self.settings_with(Some(&key.project), &overrides)?;
        let opener = settings.config.workspace.opener.as_deref().unwrap_or_default();
        let opener = tokens.expand(opener).into_iter().map(Bytes::from).collect();
        let argv = match message {
            None => Vec::new(),
            Some(_) => {
                let agent = settings.config.agents.find(file.fields().agent.as_deref().unwrap_or_default());
                let action = agent.and_then(|agent| agent.run_action()).map_err(plan::agent_failure)?;
                tokens.expand(action).into_iter().map(Bytes::from).collect()
            }
        };
        let (short, long): (Vec<_>, Vec<_>) =
            tokens.exported().into_iter().partition(|(_, value)| value.len() <= limits::LONGEST_EXEC_VALUE);
        let mut env: Vec<(Bytes, Bytes)> =
            short.into_iter().map(|(name, value)| (name.as_str().into(), Bytes::from(value))).collect();
        if !long.is_empty() {
            // exec does not take values that are this long. The command can read them in the task file.
            let path = self.store.task(&key).map(|task| task.path.clone()).unwrap_or_default();
            env.push((environment::PROMPT_FILE.into(), path.into()));
        }
        Ok(Plan { task: self.view(&key)?, cwd: cwd.into(), argv, env, opener })
    }

    /// The values of the tokens in a task's commands.
    pub(super) fn tokens_of(&self, key: &TaskKey, message: Option<OsString>) -> Result<Tokens, Failure> {
        let (project, workspace) = self.workspace_of(key)?;
        let file = self.store.file(key).map_err(store_failure)?;
        let task = self.store.task(key).map(|task| task.name.clone());
        let name = task.ok_or_else(|| no_task(key))?;
        Ok(Tokens {
            task_id: name.id,
            slug: name.slug,
            body: file.body().to_vec(),
            project_root: project.root().to_path_buf(),
            worktree: agency_workspace::workspace_path(&project, &workspace),
            session_id: file.fields().session_id.clone(),
            message,
            ports: self.workspaces.records.get(key).ports(),
        })
    }

    /// The caller's environment, and on top of it the variables that are configured for the task's agent.
    pub(super) fn environment_for(&self, key: &TaskKey, caller: &Caller) -> Environment {
        let mut env = match caller.env.is_empty() {
            // A caller that sends no environment gets the daemon's: without PATH no program would be found.
            true => {
                let own = std::env::vars_os().map(|(name, value)| (name.into(), value.into()));
                environment::from_caller(&own.collect::<Vec<_>>())
            }
            false => environment::from_caller(&caller.env),
        };
        let settings = self.settings_with(Some(&key.project), &caller.overrides).ok();
        let agent = self.store.file(key).ok().and_then(|file| file.fields().agent.clone());
        let of_agent = |config: &Config| Some(config.agents.find(&agent?).ok()?.env.clone());
        let configured = settings.and_then(|settings| of_agent(&settings.config)).unwrap_or_default();
        env.extend(configured.into_iter().map(|(name, value)| (name.into(), value.into())));
        env
    }
}
