//! `agency model` and `agency mode`: show or change a setting of an agent.

use std::process::ExitCode;

use agency_api::Failure;
use agency_api::chat::{Setting, SettingParams};
use agency_api::method::{TaskMode, TaskModel};
use agency_client::Client;

use crate::cli::SettingArgs;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output::{self, printable};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Model,
    Mode,
}

impl Which {
    pub(super) fn word(self) -> &'static str {
        match self {
            Which::Model => "model",
            Which::Mode => "mode",
        }
    }

    pub(super) async fn call(self, daemon: &mut Client, params: SettingParams) -> Result<Setting, Failure> {
        match self {
            Which::Model => daemon.call(TaskModel, params).await,
            Which::Mode => daemon.call(TaskMode, params).await,
        }
    }
}

pub(super) async fn setting(context: &Context, which: Which, args: SettingArgs) -> CommandResult {
    let task = context.task(&args.name.task)?;
    let is_change = args.to.is_some();
    let params = SettingParams { task, name: args.to };
    let setting = which.call(&mut context.daemon().await?, params).await?;
    match args.json {
        true => output::json(&setting)?,
        false if is_change => output::line(&printable(&current_text(which, &setting)))?,
        false => setting_lines(which, &setting).iter().try_for_each(|line| output::line(&printable(line)))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// `mode: plan`
pub(super) fn current_text(which: Which, setting: &Setting) -> String {
    let current = setting.current.as_deref().unwrap_or("not reported yet");
    format!("{}: {current}", which.word())
}

/// The current value, then every value that the agent offers.
pub(super) fn setting_lines(which: Which, setting: &Setting) -> Vec<String> {
    let width = setting.offered.iter().map(|offer| offer.id.chars().count()).max().unwrap_or(0);
    let offered = setting.offered.iter().map(|offer| {
        let mark = if setting.current.as_ref() == Some(&offer.id) { "*" } else { " " };
        let name = if offer.name == offer.id { "" } else { offer.name.as_str() };
        format!("{mark} {:<width$}  {name}", offer.id).trim_end().to_owned()
    });
    std::iter::once(current_text(which, setting)).chain(offered).collect()
}
