//! The agents on a terminal that a run needs: they count, flood, listen and commit.
//!
//! Each writes what is true into a file outside of Agency's reach, so that the checks need not believe Agency.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::time::Duration;

use clap::{Args, ValueEnum};

#[derive(Clone, Debug, Args)]
pub struct Role {
    part: Part,
    /// The directory for the files with the truth
    truth: PathBuf,
    slug: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Part {
    /// One numbered line after another
    Count,
    /// Many numbered lines at a time
    Flood,
    /// Reads lines at a prompt
    Echo,
    /// Commits to git
    Git,
    /// Commits to jj
    Jj,
}

pub fn play(role: &Role) -> ExitCode {
    let played = match role.part {
        Part::Count => count(role, 1, Duration::from_millis(20)),
        Part::Flood => count(role, 300, Duration::from_millis(200)),
        Part::Echo => echo(role),
        Part::Git => commit(role, commit_to_git),
        Part::Jj => commit(role, commit_to_jj),
    };
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("agency-chaos: {err}");
            ExitCode::FAILURE
        }
    }
}

/// The line with this number, as a counting agent prints it.
pub fn numbered_line(number: u64) -> String {
    format!("line {number:010} of a counting agent that prints one after another")
}

/// The file in which the counting agent of this run says how many lines it has printed.
pub fn count_file(truth: &Path, run: &str) -> PathBuf {
    truth.join(format!("count-{run}"))
}

/// The lines that the listening agents of this task have read.
pub fn heard_file(truth: &Path, slug: &str) -> PathBuf {
    truth.join(format!("heard-{slug}"))
}

/// The commits that the agents of this task have made, and the file that each added.
pub fn commits_file(truth: &Path, slug: &str) -> PathBuf {
    truth.join(format!("commits-{slug}"))
}

fn count(role: &Role, burst: u64, pause: Duration) -> std::io::Result<()> {
    let run = std::env::var("AGENCY_RUN_ID").map_err(std::io::Error::other)?;
    let printed = File::create(count_file(&role.truth, &run))?;
    let mut out = std::io::stdout().lock();
    let mut number = 0;
    loop {
        let lines: String =
            (number + 1..=number + burst).map(|number| numbered_line(number) + "\n").collect();
        out.write_all(lines.as_bytes())?;
        out.flush()?;
        number += burst;
        printed.write_all_at(format!("{number:020}").as_bytes(), 0)?;
        std::thread::sleep(pause);
    }
}

fn echo(role: &Role) -> std::io::Result<()> {
    let mut heard = append_to(&heard_file(&role.truth, &role.slug))?;
    let mut input = std::io::stdin().lock();
    loop {
        print!("more> ");
        std::io::stdout().flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        heard.write_all(format!("{}\n", line.trim_end_matches('\n')).as_bytes())?;
        println!("got: {}", line.trim_end());
    }
}

/// Adds one file after another, and commits each.
fn commit(role: &Role, commit: fn(&str) -> std::io::Result<Option<String>>) -> std::io::Result<()> {
    let mut commits = append_to(&commits_file(&role.truth, &role.slug))?;
    let run = std::env::var("AGENCY_RUN_ID").map_err(std::io::Error::other)?;
    for number in 1_u64.. {
        let name = format!("{}-{run}-{number}.txt", role.slug);
        // The workspace may be on a disk that is full at the moment.
        if std::fs::write(&name, format!("{name}\n")).is_ok()
            && let Some(commit) = commit(&name)?
        {
            commits.write_all(format!("{commit} {name}\n").as_bytes())?;
            println!("committed {name}");
        }
        std::thread::sleep(Duration::from_millis(700));
    }
    Ok(())
}

/// `None`: git refused, for example because the disk is full or another command holds the index.
fn commit_to_git(name: &str) -> std::io::Result<Option<String>> {
    let is_done = run("git", &["add", name])?.status.success()
        && run("git", &["commit", "-q", "-m", name, "--", name])?.status.success();
    if !is_done {
        return Ok(None);
    }
    let head = run("git", &["log", "-1", "--format=%H", "--", name])?;
    Ok(Some(String::from_utf8_lossy(&head.stdout).trim().to_owned()).filter(|commit| !commit.is_empty()))
}

fn commit_to_jj(name: &str) -> std::io::Result<Option<String>> {
    if !run("jj", &["commit", "-q", "-m", name])?.status.success() {
        return Ok(None);
    }
    let shown = run("jj", &["log", "--no-graph", "--ignore-working-copy", "-r", "@-", "-T", "commit_id"])?;
    Ok(Some(String::from_utf8_lossy(&shown.stdout).trim().to_owned()).filter(|commit| !commit.is_empty()))
}

fn run(program: &str, args: &[&str]) -> std::io::Result<Output> {
    Command::new(program).args(args).output()
}

fn append_to(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}
