//! `agency doctor`: what is missing or wrong on this machine, each with the way to mend it.
//!
//! Looks and changes nothing, except that a daemon is started if none runs: whether that works is a
//! question too.

mod finding;
mod host;
mod household;
mod limits;
mod places;
mod programs;

use std::process::ExitCode;

use serde::Serialize;

use crate::cli::Doctor;
use crate::context::Context;
use crate::output::{self, Colour, Paint, printable};
use crate::stop::{Done, Stop};

use finding::{Finding, Level};

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Report {
    findings: Vec<Finding>,
}

pub(super) async fn doctor(context: &Context, args: Doctor) -> Done {
    // First, because it makes the places that are looked at next.
    let mut findings = household::look(context).await;
    findings.extend(places::look(&context.state));
    findings.extend(limits::look());
    findings.extend(host::look());
    findings.extend(programs::look().await);
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

fn print(report: &Report) -> Result<(), Stop> {
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
