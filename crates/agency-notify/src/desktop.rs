//! The desktop's own notifications, shown by the program that the system has for it.
//!
//! Speaking D-Bus ourselves would link some thirty crates and a second executor for one call; who has a desktop has
//! one of these programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use agency_api::environment::{Environment, find_program};

use super::program::{self, Complaints};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    NotifySend,
    /// Comes with systemd, and so with most desktops that lack the first.
    Busctl,
    Osascript,
}

impl Means {
    fn all() -> &'static [Means] {
        match cfg!(target_os = "macos") {
            true => &[Means::Osascript],
            false => &[Means::NotifySend, Means::Busctl],
        }
    }

    fn program(self) -> &'static str {
        match self {
            Means::NotifySend => "notify-send",
            Means::Busctl => "busctl",
            Means::Osascript => "osascript",
        }
    }

    /// Texts are arguments of their own everywhere, so that none of them is read as a command.
    fn arguments(self, title: &str, body: &str) -> Vec<String> {
        let escaped = escaped(body);
        let words: Vec<&str> = match self {
            Means::NotifySend => vec!["--app-name=Agency", "--", title, &escaped],
            Means::Busctl => vec![
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
            Means::Osascript => vec![
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
pub fn through() -> Result<String, String> {
    has_desktop()?;
    let (means, _) = found().ok_or_else(|| {
        let names: Vec<&str> = Means::all().iter().map(|means| means.program()).collect();
        format!("no {} in the daemon's PATH", names.join(" or "))
    })?;
    Ok(means.program().to_owned())
}

pub async fn show(title: &str, body: &str) -> Result<(), String> {
    let (means, path) = found().ok_or_else(|| "its program is gone".to_owned())?;
    let mut argv = vec![path.to_string_lossy().into_owned()];
    argv.extend(means.arguments(title, body));
    let env: Vec<(&str, OsString)> = bus().map(|address| (BUS, address)).into_iter().collect();
    program::run(&argv, &env, b"", Complaints::Told).await
}

const BUS: &str = "DBUS_SESSION_BUS_ADDRESS";

/// A Mac always has its desktop; elsewhere there must be a session bus.
fn has_desktop() -> Result<(), String> {
    match cfg!(target_os = "macos") || bus().is_some() {
        true => Ok(()),
        false => Err("the daemon sees no desktop: there is no session bus".to_owned()),
    }
}

/// That of whoever started the daemon; else the usual one, since that may have been somebody without a desktop, and
/// logins come and go.
fn bus() -> Option<OsString> {
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

fn found() -> Option<(Means, PathBuf)> {
    let path = std::env::var_os("PATH").map(|path| ("PATH".into(), path));
    let env: Environment = path.into_iter().collect();
    Means::all().iter().find_map(|means| Some((*means, find_program(means.program(), &env, Path::new("/"))?)))
}

/// Bodies may hold markup, and what agents say is none.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_say_is_neither_markup_nor_an_option_nor_a_command() {
        let arguments = Means::NotifySend.arguments("--help", "<b>rm</b> & go");
        assert_eq!(arguments, ["--app-name=Agency", "--", "--help", "&lt;b&gt;rm&lt;/b&gt; &amp; go"]);
        for means in [Means::Busctl, Means::Osascript] {
            let arguments = means.arguments("\" & quit", "b");
            let (end, title) = (arguments.iter().position(|word| word == "--"), "\" & quit");
            assert!(end.is_some() && end < arguments.iter().position(|word| word == title), "{arguments:?}");
        }
    }
}
