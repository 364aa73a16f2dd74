//! Desktop notifications, shown by a program of the system.
//!
//! A D-Bus library would add about thirty crates and a second executor for one call. A machine with a desktop has one
//! of these programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use agency_api::environment::{Environment, find_program};

use super::program::{self, Stderr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DesktopTool {
    NotifySend,
    /// Part of systemd, so most desktops without `notify-send` have it.
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

    /// Every text is an argument of its own, so no program reads it as a command.
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

/// Returns the name of the program that shows notifications, or why there is none.
pub fn find_tool_name() -> Result<String, String> {
    check_desktop()?;
    let (tool, _) = find_tool().ok_or_else(|| {
        let names: Vec<&str> = DesktopTool::all().iter().map(|tool| tool.program()).collect();
        format!("no {} in the daemon's PATH", names.join(" or "))
    })?;
    Ok(tool.program().to_owned())
}

pub async fn show(title: &str, body: &str) -> Result<(), String> {
    let (tool, path) =
        find_tool().ok_or_else(|| "the program that shows notifications is gone".to_owned())?;
    let mut argv = vec![path.to_string_lossy().into_owned()];
    argv.extend(tool.arguments(title, body));
    let env: Vec<(&str, OsString)> = session_bus().map(|address| (BUS, address)).into_iter().collect();
    program::run(&argv, &env, b"", Stderr::Reported).await
}

const BUS: &str = "DBUS_SESSION_BUS_ADDRESS";

/// macOS always has a desktop. Other systems have one if there is a session bus.
fn check_desktop() -> Result<(), String> {
    match cfg!(target_os = "macos") || session_bus().is_some() {
        true => Ok(()),
        false => Err("the daemon sees no desktop: there is no session bus".to_owned()),
    }
}

/// Returns the session bus from the daemon's environment, or else the usual one: the daemon may have been started
/// outside a desktop session, and the user may have logged in later.
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

/// The desktop reads the body as markup; an agent's text is plain text.
fn escape_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_text_is_neither_markup_nor_an_option_nor_a_command() {
        let arguments = DesktopTool::NotifySend.arguments("--help", "<b>rm</b> & go");
        assert_eq!(arguments, ["--app-name=Agency", "--", "--help", "&lt;b&gt;rm&lt;/b&gt; &amp; go"]);
        for tool in [DesktopTool::Busctl, DesktopTool::Osascript] {
            let arguments = tool.arguments("\" & quit", "b");
            let (end, title) = (arguments.iter().position(|word| word == "--"), "\" & quit");
            assert!(end.is_some() && end < arguments.iter().position(|word| word == title), "{arguments:?}");
        }
    }
}
