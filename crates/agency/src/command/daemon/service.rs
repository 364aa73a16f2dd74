//! `agency daemon install`: writes a service file for the daemon, for systemd or launchd.
//!
//! Does not enable the service: the user decides what runs at login.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agency_api::{Failure, FailureCode};

use crate::context::Context;
use crate::installed_files;
use crate::outcome::CommandResult;
use crate::output;

/// The names of the service.
const UNIT: &str = "agency.service";
const LABEL: &str = "agency.daemon";

/// The service manager does not know these variables, so the service file sets them.
const VARIABLES: [&str; 2] = ["XDG_STATE_HOME", "XDG_CONFIG_HOME"];

#[derive(Debug, PartialEq, Eq)]
struct Service {
    path: PathBuf,
    text: String,
    enable: Vec<String>,
    disable: Vec<String>,
    /// Links that the service manager makes. They are broken without the file.
    links: Vec<PathBuf>,
}

pub(in crate::command) fn install(context: &Context, print: bool) -> CommandResult {
    let service = Service::for_this_system(&context.executable)?;
    if print {
        output::line(service.text.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    write(&service).map_err(|err| cannot_write(&service.path).caused_by(&err))?;
    installed_files::remember(&context.state, std::slice::from_ref(&service.path))?;
    output::line(&format!("{} written. To use it:", service.path.display()))?;
    service.enable.iter().try_for_each(|command| output::line(&format!("  {command}")))?;
    Ok(ExitCode::SUCCESS)
}

pub(in crate::command) fn uninstall(context: &Context) -> CommandResult {
    let service = Service::for_this_system(&context.executable)?;
    match fs::remove_file(&service.path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => {
            output::line(&format!("nothing to remove: {} does not exist", service.path.display()))?;
            return Ok(ExitCode::SUCCESS);
        }
        removed => removed.map_err(|err| cannot_write(&service.path).caused_by(&err))?,
    }
    for link in service.links.iter().filter(|link| link.symlink_metadata().is_ok()) {
        fs::remove_file(link).map_err(|err| cannot_write(link).caused_by(&err))?;
    }
    output::line(&format!("{} removed. Agents keep running. To tell the system:", service.path.display()))?;
    service.disable.iter().try_for_each(|command| output::line(&format!("  {command}")))?;
    Ok(ExitCode::SUCCESS)
}

/// The files of the service that exist.
pub(in crate::command) fn files(executable: &Path) -> Vec<PathBuf> {
    let Ok(service) = Service::for_this_system(executable) else { return Vec::new() };
    let files = service.links.into_iter().chain([service.path]);
    files.filter(|path| path.symlink_metadata().is_ok()).collect()
}

fn write(service: &Service) -> io::Result<()> {
    fs::create_dir_all(service.path.parent().unwrap_or(Path::new("/")))?;
    fs::write(&service.path, &service.text)
}

fn cannot_write(path: &Path) -> Failure {
    Failure::new(format!("cannot write {}", path.display()))
        .code(FailureCode::IoError)
        .hint("`agency daemon install --print` prints the file")
}

impl Service {
    fn for_this_system(executable: &Path) -> Result<Service, Failure> {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let home = home.ok_or_else(|| {
            Failure::new("cannot find the directory of services: HOME is not set")
                .code(FailureCode::InvalidConfig)
        })?;
        let variables = absolute_variables(|name| std::env::var_os(name));
        Ok(match cfg!(target_os = "macos") {
            true => Service::launchd(&home, executable, &variables),
            false => Service::systemd(&home, executable, &variables),
        })
    }

    fn systemd(home: &Path, executable: &Path, variables: &[(String, OsString)]) -> Service {
        let config = variables.iter().find(|(name, _)| name == "XDG_CONFIG_HOME").map(|(_, dir)| dir.into());
        let units = config.unwrap_or_else(|| home.join(".config")).join("systemd/user");
        Service {
            path: units.join(UNIT),
            text: unit(executable, variables),
            enable: vec![
                "systemctl --user daemon-reload".to_owned(),
                format!("systemctl --user enable --now {UNIT}"),
                "loginctl enable-linger        # keep running when you log out".to_owned(),
            ],
            disable: vec!["systemctl --user daemon-reload".to_owned()],
            links: vec![units.join("default.target.wants").join(UNIT)],
        }
    }

    fn launchd(home: &Path, executable: &Path, variables: &[(String, OsString)]) -> Service {
        let path = home.join("Library/LaunchAgents").join(format!("{LABEL}.plist"));
        Service {
            enable: vec![format!("launchctl bootstrap gui/$UID '{}'", path.display())],
            disable: vec![format!("launchctl bootout gui/$UID/{LABEL}")],
            text: plist(executable, variables),
            path,
            links: Vec::new(),
        }
    }
}

/// The variables with absolute paths. Agency ignores relative ones everywhere.
fn absolute_variables(value_of: impl Fn(&str) -> Option<OsString>) -> Vec<(String, OsString)> {
    let set = |name: &&str| Some(((*name).to_owned(), value_of(name)?));
    VARIABLES.iter().filter_map(set).filter(|(_, value)| Path::new(value).is_absolute()).collect()
}

fn unit(executable: &Path, variables: &[(String, OsString)]) -> String {
    let line = |(name, value): &(String, OsString)| {
        format!("Environment={}\n", quoted(&format!("{name}={}", value.to_string_lossy())))
    };
    let environment: String = variables.iter().map(line).collect();
    format!(
        "\
# Written by `agency daemon install`.
[Unit]
Description=Agency: keeps coding agents running side by side

[Service]
ExecStart={} daemon run
{environment}# Agents outlive the daemon: systemd signals only the daemon, with a signal that leaves agents running.
KillMode=process
KillSignal=SIGHUP
Restart=on-failure

[Install]
WantedBy=default.target
",
        quoted(&executable.to_string_lossy().replace('$', "$$"))
    )
}

/// Quotes for systemd: `%` begins a specifier, a backslash an escape. `$` has a meaning in commands only.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    match escaped.contains([' ', '\t', '\'', '"', ';']) {
        true => format!("\"{escaped}\""),
        false => escaped,
    }
}

fn plist(executable: &Path, variables: &[(String, OsString)]) -> String {
    let entry = |(name, value): &(String, OsString)| {
        format!("    <key>{}</key><string>{}</string>\n", xml(name), xml(&value.to_string_lossy()))
    };
    let environment: String = variables.iter().map(entry).collect();
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by `agency daemon install`. -->
<plist version="1.0">
<dict>
  <key>Label</key><string>{LABEL}</string>
  <key>ProgramArguments</key>
  <array><string>{}</string><string>daemon</string><string>run</string></array>
  <key>EnvironmentVariables</key>
  <dict>
{environment}  </dict>
  <key>RunAtLoad</key><true/>
  <!-- Agents outlive the daemon. -->
  <key>AbandonProcessGroup</key><true/>
</dict>
</plist>
"#,
        xml(&executable.to_string_lossy())
    )
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_leaves_agents_running_and_sets_the_directories() {
        let state = [("XDG_STATE_HOME".to_owned(), OsString::from("/my state"))];
        let service = Service::systemd(Path::new("/home/me"), Path::new("/opt/100%/agency"), &state);
        assert_eq!(service.path, Path::new("/home/me/.config/systemd/user/agency.service"));
        for line in [
            "ExecStart=/opt/100%%/agency daemon run\n",
            "Environment=\"XDG_STATE_HOME=/my state\"\n",
            "KillMode=process\n",
            "KillSignal=SIGHUP\n",
        ] {
            assert!(service.text.contains(line), "{line} in {}", service.text);
        }
    }

    #[test]
    fn a_dollar_is_doubled_in_commands_only() {
        let state = [("XDG_STATE_HOME".to_owned(), OsString::from("/my$state"))];
        let text = unit(Path::new("/opt/a$b/agency"), &state);
        assert!(text.contains("ExecStart=/opt/a$$b/agency daemon run\n"), "{text}");
        assert!(text.contains("Environment=XDG_STATE_HOME=/my$state\n"), "{text}");
    }

    #[test]
    fn a_relative_path_is_ignored() {
        let set = absolute_variables(|name| {
            Some(if name == "XDG_STATE_HOME" { "/state" } else { "config" }.into())
        });
        assert_eq!(set, [("XDG_STATE_HOME".to_owned(), OsString::from("/state"))]);
        assert_eq!(absolute_variables(|_| Some(OsString::new())), []);
    }

    #[test]
    fn a_plist_leaves_agents_running() {
        let service = Service::launchd(Path::new("/Users/me"), Path::new("/a&b/agency"), &[]);
        assert_eq!(service.path, Path::new("/Users/me/Library/LaunchAgents/agency.daemon.plist"));
        assert!(service.text.contains("<string>/a&amp;b/agency</string>"), "{}", service.text);
        assert!(service.text.contains("<key>AbandonProcessGroup</key><true/>"), "{}", service.text);
    }
}
