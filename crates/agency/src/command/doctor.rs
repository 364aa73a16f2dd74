//! `agency doctor`: checks this machine and suggests a fix for each problem.
//!
//! Changes nothing, except that it starts a daemon if none is running, because that has to work too.

mod daemon;
mod directories;
mod finding;
mod host;
mod limits;
mod programs;

use std::process::ExitCode;

use serde::Serialize;

use crate::cli::Doctor;
use crate::context::Context;
use crate::outcome::{CommandError, CommandResult};
use crate::output::{self, Colour, Paint, printable};

use finding::{Finding, Level};

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Report {
    findings: Vec<Finding>,
}

pub(super) async fn doctor(context: &Context, args: Doctor) -> CommandResult {
    // First, because the daemon creates the directories that are checked next.
    let mut findings = daemon::check(context).await;
    findings.extend(directories::check(&context.state));
    findings.extend(limits::check());
    findings.extend(host::check());
    findings.extend(programs::check().await);
    findings.sort_by_key(|finding| finding.about);
    let report = Report { findings };
    match args.json {
        true => output::json(&report)?,
        false => print(&report)?,
    }
    Ok(match report.findings.iter().any(|finding| finding.level == Level::Broken) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn print(report: &Report) -> Result<(), CommandError> {
    let paint = Paint::for_stdout();
    let mut about = None;
    for finding in &report.findings {
        if about != Some(finding.about) {
            output::line(&paint.paint(Colour::Faint, finding.about.heading()))?;
            about = Some(finding.about);
        }
        let (mark, colour) = finding.level.mark();
        let what = output::wrapped(&printable(&finding.what), 7);
        output::line(&format!("  {} {what}", paint.paint(colour, mark)))?;
        if let Some(fix) = &finding.fix {
            let fix = output::wrapped(&format!("fix: {}", printable(fix)), 7);
            output::line(&format!("       {}", paint.paint(Colour::Cyan, &fix)))?;
        }
    }
    output::line(&format!("\n{}", summary(&report.findings)))?;
    Ok(())
}

fn summary(findings: &[Finding]) -> String {
    let number = |level| findings.iter().filter(|finding| finding.level == level).count();
    match (number(Level::Broken), number(Level::Warning)) {
        (0, 0) => "Nothing is wrong.".to_owned(),
        (0, warnings) => format!("Nothing is broken; {}.", output::count(warnings, "warning")),
        (broken, 0) => format!("{} broken.", broken),
        (broken, warnings) => format!("{broken} broken, {}.", output::count(warnings, "warning")),
    }
}
