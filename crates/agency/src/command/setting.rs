//! `agency model` and `agency mode`: what an agent is set to, shown and changed.

use std::process::ExitCode;

use agency_api::Failure;
use agency_api::chat::{Setting, SettingParams};
use agency_api::method::{TaskMode, TaskModel};
use agency_client::Client;

use crate::cli::SettingArgs;
use crate::context::Context;
use crate::output::{self, printable};
use crate::stop::Done;

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

pub(super) async fn setting(context: &Context, which: Which, args: SettingArgs) -> Done {
    let task = context.task(&args.name.task)?;
    let is_change = args.to.is_some();
    let params = SettingParams { task, name: args.to };
    let told = which.call(&mut context.daemon().await?, params).await?;
    match args.json {
        true => output::json(&told)?,
        false if is_change => output::line(&printable(&current(which, &told)))?,
        false => shown(which, &told).iter().try_for_each(|line| output::line(&printable(line)))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// `mode: plan`
pub(super) fn current(which: Which, told: &Setting) -> String {
    let current = told.current.as_deref().unwrap_or("not reported yet");
    format!("{}: {current}", which.word())
}

/// What it is, and what it could be.
pub(super) fn shown(which: Which, told: &Setting) -> Vec<String> {
    let width = told.offered.iter().map(|offer| offer.id.chars().count()).max().unwrap_or(0);
    let offered = told.offered.iter().map(|offer| {
        let mark = if told.current.as_ref() == Some(&offer.id) { "*" } else { " " };
        let name = if offer.name == offer.id { "" } else { offer.name.as_str() };
        format!("{mark} {:<width$}  {name}", offer.id).trim_end().to_owned()
    });
    std::iter::once(current(which, told)).chain(offered).collect()
}
