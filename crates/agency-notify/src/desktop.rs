//! The desktop's own notifications, shown by the program that the system has for it.
//!
//! Speaking D-Bus ourselves would link some thirty crates and a second executor for one call; who has a desktop has
//! one of these programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use agency_api::environment::{Environment, find_program};

use super::program::{self, Stderr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DesktopTool {
    NotifySend,
    /// Comes with systemd, and so with most desktops that lack the first.
    Busctl,
    Osascript,
}

impl DesktopTool {
    fn all() -> &'static [DesktopTool] {
        match cfg!(target_os = "macos") {
            true => &[DesktopTool::Osascript],
            false => &[DesktopTool::NotifySend, DesktopTool::Busctl],
        }
    }

    fn program(self) -> &'static str {
        match self {
            DesktopTool::NotifySend => "notify-send",
            DesktopTool::Busctl => "busctl",
            DesktopTool::Osascript => "osascript",
        }
    }

    /// Texts are arguments of their own everywhere, so that none of them is read as a command.
    fn arguments(self, title: &str, body: &str) -> Vec<String> {
        let escaped = escape_markup(body);
        let words: Vec<&str> = match self {
            DesktopTool::NotifySend => vec!["--app-name=Agency", "--", title, &escaped],
            DesktopTool::Busctl => vec![
                "--user",
                "--",
                "call",
                "org.freedesktop.Notifications",
                "/org/freedesktop/Notifications",
                "org.freedesktop.Notifications",
                "Notify",
                "susssasa{sv}i",
                "Agency",
                "0",
                "",
                title,
                &escaped,
                "0",
                "0",
                "-1",
            ],
            DesktopTool::Osascript => vec![
                "-e",
                "on run argv",
                "-e",
                "display notification (item 2 of argv) with title (item 1 of argv)",
                "-e",
                "end run",
                "--",
                title,
                body,
            ],
        };
        words.into_iter().map(str::to_owned).collect()
    }
}

/// The program that would show it, or why none can.
pub fn find_tool_name() -> Result<String, String> {
    check_desktop()?;
    let (tool, _) = find_tool().ok_or_else(|| {
        let names: Vec<&str> = DesktopTool::all().iter().map(|tool| tool.program()).collect();
        format!("no {} in the daemon's PATH", names.join(" or "))
    })?;
    Ok(tool.program().to_owned())
}

pub async fn show(title: &str, body: &str) -> Result<(), String> {
    let (tool, path) = find_tool().ok_or_else(|| "its program is gone".to_owned())?;
    let mut argv = vec![path.to_string_lossy().into_owned()];
    argv.extend(tool.arguments(title, body));
    let env: Vec<(&str, OsString)> = session_bus().map(|address| (BUS, address)).into_iter().collect();
    program::run(&argv, &env, b"", Stderr::Reported).await
}

const BUS: &str = "DBUS_SESSION_BUS_ADDRESS";

/// A Mac always has its desktop; elsewhere there must be a session bus.
fn check_desktop() -> Result<(), String> {
    match cfg!(target_os = "macos") || session_bus().is_some() {
        true => Ok(()),
        false => Err("the daemon sees no desktop: there is no session bus".to_owned()),
    }
}

/// That of whoever started the daemon; else the usual one, since that may have been somebody without a desktop, and
/// logins come and go.
fn session_bus() -> Option<OsString> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let usual = || {
        let id = rustix::process::getuid().as_raw();
        let dir =
            set("XDG_RUNTIME_DIR").map_or_else(|| PathBuf::from(format!("/run/user/{id}")), PathBuf::from);
        let socket = Some(dir.join("bus")).filter(|socket| socket.exists())?;
        let mut address = OsString::from("unix:path=");
        address.push(socket);
        Some(address)
    };
    set(BUS).or_else(usual)
}

fn find_tool() -> Option<(DesktopTool, PathBuf)> {
    let path = std::env::var_os("PATH").map(|path| ("PATH".into(), path));
    let env: Environment = path.into_iter().collect();
    DesktopTool::all()
        .iter()
        .find_map(|tool| Some((*tool, find_program(tool.program(), &env, Path::new("/"))?)))
}

/// Bodies may hold markup, and what agents say is none.
fn escape_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_say_is_neither_markup_nor_an_option_nor_a_command() {
        let arguments = DesktopTool::NotifySend.arguments("--help", "<b>rm</b> & go");
        assert_eq!(arguments, ["--app-name=Agency", "--", "--help", "&lt;b&gt;rm&lt;/b&gt; &amp; go"]);
        for tool in [DesktopTool::Busctl, DesktopTool::Osascript] {
            let arguments = tool.arguments("\" & quit", "b");
            let (end, title) = (arguments.iter().position(|word| word == "--"), "\" & quit");
            assert!(end.is_some() && end < arguments.iter().position(|word| word == title), "{arguments:?}");
        }
    }
}
