//! `agency config`: the configuration in force, where it comes from, and changing it.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agency_api::config::{
    Changed, Entry, FileParams, Origin, Overrides, Scope, SetParams, ShowParams, Shown, WriteParams,
};
use agency_api::method::{ConfigRead, ConfigSet, ConfigShow, ConfigWrite};
use agency_api::paths::create_private;
use agency_api::{Bytes, Failure, FailureCode};
use agency_client::Client;
use serde::Serialize;

use super::prompt;
use crate::ask::{Otherwise, ask, can_ask};
use crate::cli::{Config, ConfigCommand};
use crate::context::{self, Context};
use crate::output::{self, Colour, Paint, printable};
use crate::stop::{Done, Stop, failed, with_hint};

/// What the keys are, for editors; a test keeps it true.
const SCHEMA: &str = include_str!("../../../../docs/schema/config.json");

/// What a file that is not there yet begins with in the editor.
const TEMPLATE: &str = "\
# Agency's configuration. `agency config` lists the keys and their values.
";

pub(super) async fn config(context: &Context, args: Config) -> Done {
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

async fn list(context: &Context, show_origin: bool, json: bool) -> Done {
    let shown = show(context, &mut context.daemon().await?, None).await?;
    if json {
        output::json(&shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (rules, keys): (Vec<_>, Vec<_>) = shown.settings.iter().partition(|entry| is_rule(&entry.key));
    let keys = keys.into_iter().map(|entry| (line_of(entry), Some(entry)));
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
    // Beyond this a column of origins would leave the screen.
    let width = width.min(48);
    format!("{line:<width$}  {}", Paint::for_stdout().paint(Colour::Faint, &origin))
}

/// A line of TOML; a comment for what is not set.
fn line_of(entry: &Entry) -> String {
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
    /// As its type is: text, a number, yes or no, a list.
    value: serde_json::Value,
}

async fn get(context: &Context, key: String, json: bool) -> Done {
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
        // The text itself, which is what a script wants.
        (false, Some(text)) => output::line(text)?,
        (false, None) => output::line(&entry.toml)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn change(context: &Context, scope: Scope, key: String, words: Option<Vec<String>>) -> Done {
    let mut daemon = context.daemon().await?;
    let params = SetParams { cwd: context::here()?, scope, key: key.clone(), words };
    let changed = daemon.call(ConfigSet, params).await?;
    report(&changed)?;
    let shown = show(context, &mut daemon, Some(key)).await?;
    if let Some(entry) = shown.settings.first().filter(|entry| stands_elsewhere(&entry.origin, &changed)) {
        let text =
            format!("the value in use here is {}, from {}", line_of(entry), origin_text(&entry.origin));
        output::note(&printable(&text));
    }
    Ok(ExitCode::SUCCESS)
}

fn stands_elsewhere(origin: &Origin, changed: &Changed) -> bool {
    match origin {
        Origin::User { file, .. } | Origin::Project { file, .. } => *file != changed.file,
        Origin::Environment { .. } | Origin::Option => true,
        Origin::Default => false,
    }
}

fn report(changed: &Changed) -> Result<(), Stop> {
    let file = printable(&changed.file.as_path().display().to_string());
    output::line(&format!("{} {file}", if changed.changed { "written:" } else { "unchanged:" }))?;
    changed.notes.iter().for_each(|note| output::note(&printable(note)));
    Ok(())
}

async fn path(context: &Context, scope: Scope) -> Done {
    let params = FileParams { cwd: context::here()?, scope };
    let read = context.daemon().await?.call(ConfigRead, params).await?;
    output::line(&read.file.as_path().display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

async fn edit(context: &Context, scope: Scope) -> Done {
    let mut daemon = context.daemon().await?;
    let read = daemon.call(ConfigRead, FileParams { cwd: context::here()?, scope }).await?;
    let before = read.content.map(|content| content.0);
    let begin = before.clone().unwrap_or_else(|| TEMPLATE.into());
    // A copy is edited, so that what does not parse is never in force.
    let copy = Copy::new(&context.state.root().join("drafts"), &begin)
        .map_err(|err| failed("cannot create a file for the editor", &err))?;
    loop {
        edited(&copy.path).await?;
        let content = std::fs::read(&copy.path).map_err(|err| failed("cannot read the edited file", &err))?;
        if content == begin {
            output::line("nothing changed")?;
            return copy.forget();
        }
        let (cwd, before, content) = (context::here()?, before.clone().map(Bytes), Bytes(content));
        match daemon.call(ConfigWrite, WriteParams { cwd, scope, before, content }).await {
            Ok(changed) => {
                report(&changed)?;
                return copy.forget();
            }
            Err(failure) => again(failure, &copy.path)?,
        }
    }
}

async fn edited(copy: &Path) -> Result<(), Failure> {
    prompt::edit(copy).await.map_err(|failure| Failure {
        message: "the editor failed, so nothing was changed".to_owned(),
        hint: Some("set $VISUAL or $EDITOR".to_owned()),
        ..failure
    })
}

/// Whether to open the editor once more; if not, the text is kept.
fn again(failure: Failure, copy: &Path) -> Result<(), Stop> {
    let kept = format!("your text is saved in {}", copy.display());
    if !can_ask() {
        return Err(with_hint(failure, &format!("nothing was changed; {kept}")).into());
    }
    output::print_failure(&failure);
    match ask("Edit it again?", Otherwise::Yes, &kept)? {
        true => Ok(()),
        false => Err(Failure::new("nothing was changed").code(FailureCode::Cancelled).hint(kept).into()),
    }
}

/// The file in the editor.
struct Copy {
    path: PathBuf,
}

impl Copy {
    fn new(drafts: &Path, content: &[u8]) -> io::Result<Copy> {
        create_private(drafts)?;
        for number in 1.. {
            let path = drafts.join(format!("config.{number}.toml"));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(mut file) => return file.write_all(content).map(|()| Copy { path }),
                Err(err) if err.kind() == io::ErrorKind::AlreadyExists => {}
                Err(err) => return Err(err),
            }
        }
        unreachable!("numbers do not end")
    }

    fn forget(self) -> Done {
        if let Err(err) = std::fs::remove_file(&self.path) {
            output::warning(&format!("cannot delete {}: {err}", self.path.display()));
        }
        Ok(ExitCode::SUCCESS)
    }
}
