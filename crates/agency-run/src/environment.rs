//! The environment of an agent: the caller's, without what belongs to the caller's terminal, and with our own variables.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use agency_api::Bytes;
pub use agency_api::environment::{Environment, find_program, from_wire, path_directories, to_wire};
use agency_api::paths::RunDir;

use crate::limits;

/// The id of the run. A rescue finds the processes of the run by it.
pub const RUN_ID: &str = "AGENCY_RUN_ID";
/// The name of the terminal, in terminals beside an agent.
pub const SHELL_NAME: &str = "AGENCY_SHELL";
/// The daemon's socket.
pub const SOCKET: &str = "AGENCY_SOCKET";
/// The file with a prompt that is too long for the command line.
pub const PROMPT_FILE: &str = "AGENCY_PROMPT_FILE";

/// Variables that describe the terminal or the agent that the caller runs in, not the new agent's.
const REMOVED: &[&str] = &[
    "TMUX",
    "TMUX_PANE",
    "STY",
    "WINDOW",
    "WINDOWID",
    "ZELLIJ",
    "TERMINFO",
    "TERMCAP",
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "COLUMNS",
    "LINES",
    "OLDPWD",
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
];
const REMOVED_PREFIXES: &[&str] =
    &["TERM_PROGRAM", "KITTY_", "AGENCY_", "ITERM_", "WEZTERM_", "GHOSTTY_", "VTE_", "ZELLIJ_", "ALACRITTY_"];

/// The part of the caller's environment that an agent gets, with our terminal's variables.
pub fn from_caller(caller: &[(Bytes, Bytes)]) -> Environment {
    let kept = caller.iter().filter(|(name, _)| !is_removed(name.as_os_str()));
    let mut env: Environment =
        kept.map(|(name, value)| (name.as_os_str().to_owned(), value.as_os_str().to_owned())).collect();
    env.insert("TERM".into(), "xterm-256color".into());
    env.insert("COLORTERM".into(), "truecolor".into());
    if !speaks_utf8(&env) {
        // Without UTF-8, agents print `_` for every glyph.
        env.insert("LANG".into(), "C.UTF-8".into());
        env.remove(OsStr::new("LC_ALL"));
        env.remove(OsStr::new("LC_CTYPE"));
    }
    env
}

fn is_removed(name: &OsStr) -> bool {
    let name = name.as_bytes();
    REMOVED.iter().any(|removed| removed.as_bytes() == name)
        || REMOVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
}

/// The first of these variables that is set decides, as in every C library.
fn speaks_utf8(env: &Environment) -> bool {
    let decisive = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|name| env.get(OsStr::new(name)))
        .find(|value| !value.is_empty());
    decisive.is_some_and(|value| {
        let value = value.to_string_lossy().to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// Replaces the ssh agent's socket by a link that the daemon can update: each login of the user has another socket.
pub fn link_ssh_agent(env: &mut Environment, run_dir: &RunDir) -> std::io::Result<()> {
    let Some(target) = env.get(OsStr::new("SSH_AUTH_SOCK")).filter(|target| !target.is_empty()) else {
        return Ok(());
    };
    let link = refresh_ssh_link(run_dir, target)?;
    env.insert("SSH_AUTH_SOCK".into(), link.into());
    Ok(())
}

/// Makes the run's link point to the socket.
pub fn refresh_ssh_link(run_dir: &RunDir, target: &OsStr) -> std::io::Result<PathBuf> {
    let link = run_dir.path().join("ssh");
    if Path::new(target) == link {
        // The caller is inside this run.
        return Ok(link);
    }
    let fresh = run_dir.path().join("ssh.new");
    if fresh.symlink_metadata().is_ok() {
        std::fs::remove_file(&fresh)?;
    }
    std::os::unix::fs::symlink(target, &fresh)?;
    std::fs::rename(&fresh, &link)?;
    Ok(link)
}

/// Removes variables that exec does not take. Returns their names; the values may be secret.
pub fn drop_long_variables(env: &mut Environment) -> Vec<String> {
    let mut dropped = Vec::new();
    env.retain(|name, value| {
        let fits = name.len() + value.len() <= limits::LONGEST_EXEC_VALUE;
        if !fits {
            dropped.push(name.to_string_lossy().into_owned());
        }
        fits
    });
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Environment {
        from_caller(
            &pairs.iter().map(|(name, value)| (Bytes::from(*name), Bytes::from(*value))).collect::<Vec<_>>(),
        )
    }

    fn get<'a>(env: &'a Environment, name: &str) -> Option<&'a str> {
        env.get(OsStr::new(name)).and_then(|value| value.to_str())
    }

    #[test]
    fn variables_of_the_callers_terminal_are_removed() {
        let env = env(&[
            ("TMUX", "x"),
            ("KITTY_PID", "1"),
            ("TERM_PROGRAM_VERSION", "3"),
            ("CLAUDECODE", "1"),
            ("AGENCY_RUN_ID", "r"),
            ("AGENCY_TASK_ID", "4"),
            ("EDITOR", "vim"),
            ("TERM", "dumb"),
        ]);
        for gone in
            ["TMUX", "KITTY_PID", "TERM_PROGRAM_VERSION", "CLAUDECODE", "AGENCY_RUN_ID", "AGENCY_TASK_ID"]
        {
            assert_eq!(get(&env, gone), None, "{gone}");
        }
        assert_eq!(get(&env, "EDITOR"), Some("vim"));
        assert_eq!(get(&env, "TERM"), Some("xterm-256color"));
        assert_eq!(get(&env, "COLORTERM"), Some("truecolor"));
    }

    #[test]
    fn a_utf8_locale_stays_and_another_one_is_replaced() {
        assert_eq!(get(&env(&[("LANG", "de_DE.UTF-8")]), "LANG"), Some("de_DE.UTF-8"));
        assert_eq!(get(&env(&[("LC_ALL", "en_GB.utf8"), ("LANG", "C")]), "LANG"), Some("C"));
        assert_eq!(get(&env(&[]), "LANG"), Some("C.UTF-8"));
        let posix = env(&[("LC_ALL", "POSIX"), ("LANG", "de_DE.UTF-8")]);
        assert_eq!((get(&posix, "LANG"), get(&posix, "LC_ALL")), (Some("C.UTF-8"), None));
    }

    #[test]
    fn bytes_that_are_not_text_arrive_as_they_are() {
        let odd = Bytes(vec![0xff, 0x41]);
        let env = from_caller(&[(Bytes::from("ODD"), odd.clone())]);
        assert_eq!(to_wire(env).into_iter().find(|(name, _)| *name == Bytes::from("ODD")).unwrap().1, odd);
    }
}
