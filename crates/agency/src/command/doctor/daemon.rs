//! Checks the daemon and what it knows: agents, orphans, journals of removed tasks.

use std::path::Path;

use agency_api::Failure;
use agency_api::method::{DaemonStatus, Nothing, NotifyChannels, ProjectTraces, ProjectTracesParams, Traces};
use agency_api::notify::{ChannelOutcome, ChannelState};
use agency_api::view;
use agency_client::Client;

use super::finding::{About, Finding};
use super::limits;
use crate::command::agents::{self, KnownAgent};
use crate::context::Context;
use crate::output::count;

/// A daemon reports what it found when it started, so the finding goes with the daemon.
const PROBLEM_FIX: &str = "check the disk; `agency daemon restart` looks again";

const OUR_VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) async fn check(context: &Context) -> Vec<Finding> {
    let mut daemon = match context.daemon().await {
        Ok(daemon) => daemon,
        Err(failure) => return vec![from_failure(About::Daemon, failure)],
    };
    let mut findings = Vec::new();
    match daemon.call(DaemonStatus, Nothing {}).await {
        Ok(view) => findings.extend(daemon_findings(&view, &context.state.keeper_copies())),
        Err(failure) => findings.push(from_failure(About::Daemon, failure)),
    }
    match daemon.call(ProjectTraces, ProjectTracesParams { without_work: true }).await {
        Ok(traces) => findings.extend(project_findings(&traces)),
        Err(failure) => findings.push(from_failure(About::Daemon, failure)),
    }
    // A daemon of another version may not know this method. There is a finding about the version already.
    if let Ok(found) = daemon.call(NotifyChannels, Nothing {}).await {
        findings.extend(channel_findings(&found.ways));
    }
    findings.extend(agent_findings(&mut daemon).await);
    findings
}

fn channel_findings(ways: &[ChannelState]) -> Vec<Finding> {
    let finding = |way: &ChannelState| match way.outcome {
        ChannelOutcome::Sent => Some(About::Notifications.fine(format!("{}: {}", way.way, way.detail))),
        ChannelOutcome::Unused => {
            Some(About::Notifications.fine(format!("{}: {}, not needed yet", way.way, way.detail)))
        }
        ChannelOutcome::Failed => {
            let words = format!("the last notification by {} failed: {}", way.way, way.detail);
            Some(About::Notifications.warning(words, "agency notify test"))
        }
        ChannelOutcome::Off => None,
    };
    let findings: Vec<Finding> = ways.iter().filter_map(finding).collect();
    match findings.is_empty() {
        true => vec![About::Notifications.note("Agency notifies you only in attached terminals")],
        false => findings,
    }
}

/// Turns a failure into a finding.
fn from_failure(about: About, failure: Failure) -> Finding {
    let words = std::iter::once(failure.message).chain(failure.causes).collect::<Vec<_>>().join(": ");
    about.broken(words, failure.hint.unwrap_or_else(|| "agency logs --daemon".to_owned()))
}

fn daemon_findings(view: &view::Daemon, keepers: &Path) -> Vec<Finding> {
    let mut findings = vec![version_finding(&view.version, view.pid)];
    findings.extend(view.room.iter().map(limits::limit_finding));
    let copies = std::fs::read_dir(keepers).into_iter().flatten().flatten();
    let names: Vec<String> = copies.map(|copy| copy.file_name().to_string_lossy().into_owned()).collect();
    let ours = format!("agency-keeper-{OUR_VERSION}-");
    let (current, older): (Vec<&String>, Vec<&String>) =
        names.iter().partition(|name| name.starts_with(&ours));
    findings.push(match current.is_empty() {
        false => About::Daemon.fine(format!("keeper {OUR_VERSION}, the version of this program")),
        true => About::Daemon
            .warning(format!("there is no keeper of version {OUR_VERSION}"), "agency daemon restart"),
    });
    if !older.is_empty() {
        let words = format!("{} of other versions; their agents keep running", count(older.len(), "keeper"));
        findings.push(About::Daemon.note(words));
    }
    findings.extend(view.problems.iter().map(|problem| About::Files.warning(problem.clone(), PROBLEM_FIX)));
    if view.orphans > 0 {
        let words = format!("{}: running agents that no task owns", count(view.orphans as usize, "orphan"));
        findings.push(About::Daemon.warning(words, "agency orphans"));
    }
    findings
}

fn version_finding(theirs: &str, pid: i32) -> Finding {
    match theirs == OUR_VERSION {
        true => About::Daemon.fine(format!("daemon {theirs}, pid {pid}")),
        false => About::Daemon.warning(
            format!("the daemon is version {theirs}, this program is {OUR_VERSION}"),
            "agency daemon restart        # agents keep running",
        ),
    }
}

fn project_findings(traces: &Traces) -> Vec<Finding> {
    let mut findings = Vec::new();
    for project in &traces.projects {
        if let Some(why) = &project.unreachable {
            let root = project.root.as_path().display();
            findings.push(About::Daemon.warning(
                format!("the project {root} cannot be opened: {why}"),
                "move it back to that place; its task files are kept until then",
            ));
        }
    }
    if !traces.forgotten_runs.is_empty() {
        let words =
            format!("journals of {} whose task was removed", count(traces.forgotten_runs.len(), "run"));
        findings.push(About::Files.note(words));
    }
    findings
}

async fn agent_findings(daemon: &mut Client) -> Vec<Finding> {
    let (agents, warnings) = match agents::list_agents(daemon, true).await {
        Ok(known) => known,
        Err(failure) => return vec![from_failure(About::Agents, failure)],
    };
    let mut findings: Vec<Finding> = agents.iter().map(agent_finding).collect();
    let only_shells = !agents.iter().any(|known| known.agent.installed && known.agent.name != "shell");
    if only_shells {
        findings.push(About::Agents.warning(
            "no coding agent is installed: tasks get a shell",
            "install one, such as Claude Code (`claude`) or Codex (`codex`), or add [agents.NAME] to config.toml",
        ));
    }
    findings.extend(warnings.into_iter().map(|warning| About::Agents.warning(warning, "agency agents")));
    findings
}

fn agent_finding(known: &KnownAgent) -> Finding {
    let agent = &known.agent;
    let version = known.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    match (agent.installed, agent.default) {
        (true, true) => About::Agents.fine(format!("{}{version}, the default", agent.display_name)),
        (true, false) => About::Agents.fine(format!("{}{version}", agent.display_name)),
        (false, true) => About::Agents.broken(
            format!("{} is the default agent and is not installed", agent.display_name),
            "install it, or set default_agent in config.toml",
        ),
        (false, false) => About::Agents.note(format!("{} is not installed", agent.display_name)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_daemon_of_another_version_is_a_warning_with_a_fix() {
        assert_eq!(version_finding(OUR_VERSION, 1).level, Level::Fine);
        let other = version_finding("0.0.9", 1);
        assert_eq!(other.level, Level::Warning);
        assert!(other.fix.is_some_and(|fix| fix.contains("agency daemon restart")));
    }
}
