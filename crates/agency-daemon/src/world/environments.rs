//! The environment of commands in a workspace, and the values of the tokens in their words.

use std::ffi::OsString;

use agency_api::Failure;
use agency_api::method::Caller;
use agency_core::config::Config;
use agency_core::ids::TaskKey;
use agency_core::tokens::Tokens;
use agency_run::environment::{self, Environment};

use super::World;
use super::tasks::{no_task, store_failure};

impl World {
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
