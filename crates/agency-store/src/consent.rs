//! The commands and settings in a repository's own files that need the user's consent.

use std::path::Path;

use agency_api::method::{Changes, Trust};
use agency_api::{Bytes, Failure};
use agency_core::config::{Key, Layer, Setting};
use agency_core::ids::{ProjectId, TaskId};

use crate::settings::{self, ConfigFile, SettingsFiles};
use crate::trust::{TrustBook, command_digest, digest};

/// Everything that needs consent. It is read once, so that the user agrees to exactly the shown content.
pub struct ConsentRequest {
    /// The commands and settings, for people.
    pub view: Trust,
    /// The digests that the user agrees to.
    pub digests: Vec<String>,
    /// The lines of the configuration.
    pub shown: Vec<String>,
}

impl ConsentRequest {
    /// Reads the project's own file. `strange`: commands in task files that no user typed on this machine.
    pub fn read(
        id: &ProjectId,
        root: &Path,
        files: &SettingsFiles,
        trust: &TrustBook,
        strange: &[(TaskId, Vec<String>)],
    ) -> Result<ConsentRequest, Failure> {
        let file = files.project(root)?;
        let lines = file.layer.clone().map(|layer| waiting(files, layer)).unwrap_or_default();
        let agreed = file.digest.as_ref().is_some_and(|digest| trust.trusts(id, digest));
        let trusted = (lines.is_empty() || agreed) && strange.is_empty();
        let shown: Vec<String> = lines.iter().map(|(_, line)| line.clone()).collect();
        let (runs, changes): (Vec<_>, Vec<_>) = lines.into_iter().partition(|(key, _)| key.runs_commands());
        let text = |lines: Vec<(Key, String)>| lines.into_iter().map(|(_, line)| line);
        let tasks = strange.iter().map(|(task, command)| format!("task {task} runs {command:?}"));
        let view = Trust {
            file: file.path.clone().into(),
            content: file.content.clone().map(Bytes),
            digest: None,
            commands: text(runs).chain(tasks).collect(),
            settings: text(changes).collect(),
            trusted,
            changes: trust.shown(id).filter(|_| !trusted).map(|before| compare_lines(before, &shown)),
        };
        let task_digests = strange.iter().map(|(_, command)| command_digest(command));
        let digests = file.digest.iter().cloned().chain(task_digests).collect();
        let digest = digest_of(&file, &view);
        Ok(ConsentRequest { view: Trust { digest, ..view }, digests, shown })
    }
}

/// The lines of a project's file that need consent. None if the file cannot be parsed.
pub fn lines_of(files: &SettingsFiles, root: &Path, content: &[u8]) -> Vec<String> {
    let layer = settings::parse(&settings::project_path(root), content).ok();
    let lines = layer.map(|layer| waiting(files, layer)).unwrap_or_default();
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The settings of a project's file that need consent, one line for each.
fn waiting(files: &SettingsFiles, layer: Layer) -> Vec<(Key, String)> {
    let user = files.user().ok().flatten();
    let sifted = layer.split_by_trust(user.as_ref().and_then(|file| file.layer.as_ref()));
    let line = |(key, setting): (Key, Setting)| {
        let line = format!("{key} = {}", setting.value);
        (key, line)
    };
    sifted.waiting.into_iter().map(line).collect()
}

/// One digest over everything that was shown, so that the user agrees to exactly that.
fn digest_of(file: &ConfigFile, view: &Trust) -> Option<String> {
    if view.commands.is_empty() && view.settings.is_empty() {
        return None;
    }
    let shown = format!("{:?}{:?}{:?}", file.digest, view.commands, view.settings);
    Some(digest(shown.as_bytes()))
}

fn compare_lines(before: &[String], now: &[String]) -> Changes {
    let without = |lines: &[String], others: &[String]| {
        lines.iter().filter(|line| !others.contains(line)).cloned().collect()
    };
    Changes { added: without(now, before), removed: without(before, now) }
}
