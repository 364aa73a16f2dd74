//! Claude Code's hooks for one launch: they report to the keeper, and the user's own files stay as they are.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use agency_api::paths::RunDir;
use serde_json::{Map, Value, json};

/// The events that show whether the agent works, waits or has ended.
const EVENTS: [&str; 9] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "Notification",
    "PostToolUse",
    "Stop",
    "StopFailure",
    "SessionEnd",
];

/// A hook takes milliseconds; one that hangs must not delay the agent.
const TIMEOUT_SECONDS: u64 = 5;

/// Adds the hooks to a command that runs Claude Code, unless the command has settings of its own.
pub fn inject(argv: &mut Vec<OsString>, run_dir: &RunDir, keeper: &Path) -> io::Result<()> {
    let is_claude =
        argv.first().is_some_and(|program| Path::new(program).file_name() == Some(OsStr::new("claude")));
    let has_own = argv.iter().any(|word| word.to_string_lossy().starts_with("--settings"));
    if !is_claude || has_own {
        return Ok(());
    }
    let path = write(run_dir, keeper)?;
    argv.splice(1..1, ["--settings".into(), path.into()]);
    Ok(())
}

fn write(run_dir: &RunDir, keeper: &Path) -> io::Result<PathBuf> {
    let path = run_dir.path().join("hooks.json");
    agency_store::atomic::write(&path, &serde_json::to_vec_pretty(&settings(keeper))?)?;
    Ok(path)
}

fn settings(keeper: &Path) -> Value {
    let command = format!("{} hook", quoted(&keeper.to_string_lossy()));
    let hook = json!([{ "hooks": [{ "type": "command", "command": command, "timeout": TIMEOUT_SECONDS }] }]);
    let hooks: Map<String, Value> = EVENTS.iter().map(|event| ((*event).to_owned(), hook.clone())).collect();
    json!({ "hooks": hooks })
}

/// Quotes a word for the shell that runs hooks.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn injected(argv: &[&str]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let mut argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        inject(&mut argv, &RunDir(dir.path().to_path_buf()), Path::new("/opt/it's/agency-keeper")).unwrap();
        let place = dir.path().display().to_string();
        argv.iter().map(|word| word.to_string_lossy().replace(&place, "RUN")).collect()
    }

    #[test]
    fn claude_is_launched_with_hooks_and_others_are_left_alone() {
        assert_eq!(
            injected(&["claude", "--", "fix it"]),
            ["claude", "--settings", "RUN/hooks.json", "--", "fix it"]
        );
        assert_eq!(injected(&["/usr/bin/claude"])[1], "--settings");
        assert_eq!(injected(&["codex", "x"]), ["codex", "x"]);
        assert_eq!(injected(&["claude", "--settings=mine.json"]), ["claude", "--settings=mine.json"]);
        assert_eq!(injected(&[]), [""; 0]);
    }

    #[test]
    fn a_hook_is_a_command_for_a_shell() {
        let settings = settings(Path::new("/opt/it's/agency-keeper"));
        let hook = &settings["hooks"]["PermissionRequest"][0]["hooks"][0];
        assert_eq!(hook["command"], "'/opt/it'\\''s/agency-keeper' hook");
    }
}
