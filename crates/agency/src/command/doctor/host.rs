//! Checks the machine: /proc, the init process, logout, terminal and locale.

use std::path::Path;

use super::finding::{About, Finding};

pub(super) fn check() -> Vec<Finding> {
    [proc(Path::new("/proc")), pid_one(), linger(), terminal(), locale()].into_iter().flatten().collect()
}

/// Keepers on Linux find the processes of an agent in /proc.
fn proc(proc: &Path) -> Option<Finding> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    Some(match proc.join("self/stat").exists() {
        true => About::Machine.fine("/proc is mounted"),
        false => About::Machine.broken(
            "/proc is not mounted: without it Agency cannot recognize processes, and starts no agent",
            "mount -t proc proc /proc",
        ),
    })
}

/// In a container the first process is often not an init, so processes whose parent has ended stay as zombies.
fn pid_one() -> Option<Finding> {
    let name = std::fs::read_to_string("/proc/1/comm").ok()?;
    let name = name.trim();
    let init = [
        "systemd",
        "init",
        "tini",
        "dumb-init",
        "docker-init",
        "catatonit",
        "s6-svscan",
        "launchd",
        "runit",
        "openrc-init",
    ];
    if init.contains(&name) {
        return None;
    }
    Some(About::Machine.note(format!(
        "process 1 is `{name}`, as in a container: agents end with the container; `docker run --init` avoids zombies"
    )))
}

/// Without lingering, systemd stops a user's services at logout.
fn linger() -> Option<Finding> {
    if !Path::new("/run/systemd/system").is_dir() {
        return None;
    }
    let user =
        std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok().filter(|user| !user.is_empty())?;
    Some(match Path::new("/var/lib/systemd/linger").join(&user).exists() {
        true => About::Machine.fine(format!("systemd keeps {user}'s services running after logout")),
        false => About::Machine.warning(
            format!("systemd may stop {user}'s agents at logout: lingering is off"),
            "loginctl enable-linger",
        ),
    })
}

fn terminal() -> Option<Finding> {
    let term = std::env::var("TERM").unwrap_or_default();
    match term.as_str() {
        "" => Some(About::Machine.note("TERM is not set: attaching needs a terminal")),
        "dumb" => Some(
            About::Machine
                .warning("TERM is dumb: an attached terminal will look wrong", "export TERM=xterm-256color"),
        ),
        term => Some(About::Machine.fine(format!("TERM {term}"))),
    }
}

fn locale() -> Option<Finding> {
    let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).unwrap_or_default();
    Some(match is_utf8(&locale) {
        true => About::Machine.fine(format!("locale {locale}")),
        false if locale.is_empty() => About::Machine.note("no locale is set; agents get LANG=C.UTF-8"),
        false => About::Machine.warning(
            format!("the locale {locale} is not UTF-8: agents print `_` or `?` for many characters"),
            "export LANG=C.UTF-8",
        ),
    })
}

fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_machine_without_proc_is_broken() {
        if cfg!(target_os = "linux") {
            let level = |path: &str| proc(Path::new(path)).map(|finding| finding.level);
            assert_eq!(level("/no/such/directory"), Some(Level::Broken));
        }
    }

    #[test]
    fn the_encoding_is_read_from_the_locale() {
        assert!(is_utf8("en_US.UTF-8") && is_utf8("C.utf8"));
        assert!(!is_utf8("C") && !is_utf8("de_DE.ISO-8859-1") && !is_utf8(""));
    }
}
