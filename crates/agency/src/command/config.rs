//! `agency config`: shows the configuration, where each value comes from, and changes it.

use std::path::Path;
use std::process::ExitCode;

use agency_api::config::{
    Changed, Entry, FileParams, Origin, Overrides, Scope, SetParams, ShowParams, Shown, WriteParams,
};
use agency_api::method::{ConfigRead, ConfigSet, ConfigShow, ConfigWrite};
use agency_api::{Bytes, Failure, FailureCode};
use agency_client::Client;
use serde::Serialize;

use crate::ask::{DefaultAnswer, ask, can_ask};
use crate::cli::{Config, ConfigCommand};
use crate::context::{self, Context};
use crate::draft::Draft;
use crate::outcome::{CommandError, CommandResult, with_hint};
use crate::output::{self, Colour, Paint, printable};

/// The schema of the keys, for editors. A test compares it with the definitions.
const SCHEMA: &str = include_str!("../../../../docs/schema/config.json");

/// The first content of a new file in the editor.
const TEMPLATE: &str = "\
# Agency's configuration. `agency config` lists the keys and their values.
";

pub(super) async fn config(context: &Context, args: Config) -> CommandResult {
    match args.command {
        None => list(context, args.show_origin, args.json).await,
        Some(ConfigCommand::Get { key, json }) => get(context, key, json).await,
        Some(ConfigCommand::Set { key, words, project }) => {
            change(context, scope(project), key, Some(words)).await
        }
        Some(ConfigCommand::Unset { key, project }) => change(context, scope(project), key, None).await,
        Some(ConfigCommand::Edit { project }) => edit(context, scope(project)).await,
        Some(ConfigCommand::Path { project }) => path(context, scope(project)).await,
        Some(ConfigCommand::Schema) => {
            output::line(SCHEMA.trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn scope(project: bool) -> Scope {
    if project { Scope::Project } else { Scope::User }
}

async fn show(context: &Context, daemon: &mut Client, key: Option<String>) -> Result<Shown, Failure> {
    let overrides = Overrides::from_process(&context.options);
    daemon.call(ConfigShow, ShowParams { cwd: context::here()?, key, overrides }).await
}

async fn list(context: &Context, show_origin: bool, json: bool) -> CommandResult {
    let shown = show(context, &mut context.daemon().await?, None).await?;
    if json {
        output::json(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (rules, keys): (Vec<_>, Vec<_>) = shown.settings.iter().partition(|entry| is_rule(&entry.key));
    let keys = keys.into_iter().map(|entry| (toml_line(entry), Some(entry)));
    let rules: Vec<_> = rules.into_iter().map(|entry| (format!("  {},", entry.toml), Some(entry))).collect();
    let (begin, end) = (("approve = [".to_owned(), None), ("]".to_owned(), None));
    let around = !rules.is_empty();
    let begin = around.then_some(begin).into_iter();
    let lines: Vec<_> = keys.chain(begin).chain(rules).chain(around.then_some(end)).collect();
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    for (line, entry) in &lines {
        let line = printable(line);
        match entry.filter(|_| show_origin) {
            Some(entry) => output::line(&with_origin(&line, entry, width))?,
            None => output::line(&line)?,
        }
    }
    shown.warnings.iter().for_each(|warning| output::warning(warning));
    Ok(ExitCode::SUCCESS)
}

fn is_rule(key: &str) -> bool {
    key.starts_with("approve[")
}

fn with_origin(line: &str, entry: &Entry, width: usize) -> String {
    let origin = printable(&format!("# {}", origin_text(&entry.origin)));
    // A column of origins further to the right would leave the screen.
    let width = width.min(48);
    format!("{line:<width$}  {}", Paint::for_stdout().paint(Colour::Faint, &origin))
}

/// A line of TOML; a comment for a key without a value.
fn toml_line(entry: &Entry) -> String {
    match entry.toml.is_empty() {
        true => format!("# {} is not set", entry.key),
        false => format!("{} = {}", entry.key, entry.toml),
    }
}

fn origin_text(origin: &Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::User { file, line } | Origin::Project { file, line } => {
            format!("{}:{line}", file.as_path().display())
        }
        Origin::Environment { variable } => format!("${variable}"),
        Origin::Option => "--config".to_owned(),
    }
}

/// One value, as `--json` prints it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Got {
    key: String,
    /// Text, a number, true or false, or a list.
    value: serde_json::Value,
}

async fn get(context: &Context, key: String, json: bool) -> CommandResult {
    let shown = show(context, &mut context.daemon().await?, Some(key.clone())).await?;
    shown.warnings.iter().for_each(|warning| output::warning(warning));
    let entry = shown.settings.into_iter().find(|entry| !entry.value.is_null());
    let Some(entry) = entry else {
        let failure = Failure::new(format!("`{key}` is not set")).code(FailureCode::ConfigNotSet);
        let set = format!("agency config set {key} VALUE");
        return Err(failure.hint(if is_rule(&key) { "agency config edit".to_owned() } else { set }).into());
    };
    match (json, entry.value.as_str()) {
        (true, _) => output::json(&Got { key: entry.key, value: entry.value })?,
        // Without quotes, for scripts.
        (false, Some(text)) => output::line(text)?,
        (false, None) => output::line(&entry.toml)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn change(context: &Context, scope: Scope, key: String, words: Option<Vec<String>>) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let params = SetParams { cwd: context::here()?, scope, key: key.clone(), words };
    let changed = daemon.call(ConfigSet, params).await?;
    report(&changed)?;
    let shown = show(context, &mut daemon, Some(key)).await?;
    if let Some(entry) = shown.settings.first().filter(|entry| is_set_elsewhere(&entry.origin, &changed)) {
        let text =
            format!("the value in use here is {}, from {}", toml_line(entry), origin_text(&entry.origin));
        output::note(&printable(&text));
    }
    Ok(ExitCode::SUCCESS)
}

fn is_set_elsewhere(origin: &Origin, changed: &Changed) -> bool {
    match origin {
        Origin::User { file, .. } | Origin::Project { file, .. } => *file != changed.file,
        Origin::Environment { .. } | Origin::Option => true,
        Origin::Default => false,
    }
}

fn report(changed: &Changed) -> Result<(), CommandError> {
    let file = printable(&changed.file.as_path().display().to_string());
    output::line(&format!("{} {file}", if changed.changed { "written:" } else { "unchanged:" }))?;
    changed.notes.iter().for_each(|note| output::note(&printable(note)));
    Ok(())
}

async fn path(context: &Context, scope: Scope) -> CommandResult {
    let params = FileParams { cwd: context::here()?, scope };
    let read = context.daemon().await?.call(ConfigRead, params).await?;
    output::line(&read.file.as_path().display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

async fn edit(context: &Context, scope: Scope) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let read = daemon.call(ConfigRead, FileParams { cwd: context::here()?, scope }).await?;
    let before = read.content.map(|content| content.0);
    let original = before.clone().unwrap_or_else(|| TEMPLATE.into());
    // The user edits a copy, so that a file with errors is never in use.
    let copy = Draft::create(&context.state, "config", "toml", &original)?;
    loop {
        copy.edit().await.map_err(|failure| Failure {
            message: "the editor failed, so nothing was changed".to_owned(),
            ..failure
        })?;
        let content = copy.read()?;
        if content == original {
            output::line("nothing changed")?;
            break;
        }
        let (cwd, before, content) = (context::here()?, before.clone().map(Bytes), Bytes(content));
        match daemon.call(ConfigWrite, WriteParams { cwd, scope, before, content }).await {
            Ok(changed) => {
                report(&changed)?;
                break;
            }
            Err(failure) => ask_to_edit_again(failure, copy.path())?,
        }
    }
    copy.delete();
    Ok(ExitCode::SUCCESS)
}

/// Asks whether to open the editor once more. If not, the copy stays.
fn ask_to_edit_again(failure: Failure, copy: &Path) -> Result<(), CommandError> {
    let saved = format!("your text is saved in {}", copy.display());
    if !can_ask() {
        return Err(with_hint(failure, &format!("nothing was changed; {saved}")).into());
    }
    output::print_failure(&failure);
    match ask("Edit it again?", DefaultAnswer::Yes, &saved)? {
        true => Ok(()),
        false => Err(Failure::new("nothing was changed").code(FailureCode::Cancelled).hint(saved).into()),
    }
}
