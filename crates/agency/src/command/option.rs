//! `agency option`: shows or changes the options of an agent's session.

use std::process::ExitCode;

use agency_api::chat::{AgentOption, OptionParams};
use agency_api::method::TaskOption;

use crate::cli::OptionArgs;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output::{self, printable};

pub(super) async fn option(context: &Context, args: OptionArgs) -> CommandResult {
    let task = context.task(&args.name.task)?;
    let is_change = args.value.is_some();
    let params = OptionParams { task, option: args.option, value: args.value };
    let listed = context.daemon().await?.call(TaskOption, params).await?;
    if args.json {
        output::json(&listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    for option in &listed.options {
        let lines = if is_change { vec![current_text(option)] } else { option_lines(option) };
        lines.iter().try_for_each(|line| output::line(&printable(line)))?;
    }
    if listed.options.is_empty() {
        output::note("the agent offers no options");
    }
    Ok(ExitCode::SUCCESS)
}

/// `effort: high`
pub(super) fn current_text(option: &AgentOption) -> String {
    format!("{}: {}", option.id, option.current.as_deref().unwrap_or("not reported yet"))
}

/// The current value and the effect of the option, then every value that the agent offers.
pub(super) fn option_lines(option: &AgentOption) -> Vec<String> {
    let is_name_known = option.name.eq_ignore_ascii_case(&option.id);
    let name = (!is_name_known).then(|| option.name.clone());
    let about: Vec<String> = name.into_iter().chain(option.description.clone()).collect();
    let about = if about.is_empty() { String::new() } else { format!("  ({})", about.join(": ")) };
    let width = option.offered.iter().map(|offer| offer.id.chars().count()).max().unwrap_or(0);
    let offered = option.offered.iter().map(|offer| {
        let mark = if option.current.as_ref() == Some(&offer.id) { "*" } else { " " };
        let name = if offer.name == offer.id { "" } else { offer.name.as_str() };
        format!("{mark} {:<width$}  {name}", offer.id).trim_end().to_owned()
    });
    std::iter::once(format!("{}{about}", current_text(option))).chain(offered).collect()
}
