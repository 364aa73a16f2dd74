//! `agency man`: shows or installs the manual, made from the same definitions as the help.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use agency_api::paths::StateDir;
use agency_api::{Failure, FailureCode};
use clap::{Command, CommandFactory};
use clap_mangen::Man as Page;

use crate::cli::{Cli, Man};
use crate::context::Context;
use crate::installed_files;
use crate::outcome::{CommandError, CommandResult};
use crate::output;

pub(super) fn man(context: &Context, args: &Man) -> CommandResult {
    if let Some(dir) = &args.install {
        return install(&context.state, dir);
    }
    let page = render(find_page(&args.command)?)?;
    if !(std::io::stdout().is_terminal() && open_in_man(&page)) {
        std::io::stdout().lock().write_all(&page)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Every command with the full name of its page: `agency-daemon-stop`.
fn pages() -> Vec<(String, Command)> {
    fn walk(command: &Command, pages: &mut Vec<(String, Command)>) {
        command.get_subcommands().filter(|below| !below.is_hide_set()).for_each(|below| walk(below, pages));
        let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
        pages.push((name, command.clone()));
    }
    let mut root = Cli::command();
    root.build();
    let mut pages = Vec::new();
    walk(&root, &mut pages);
    pages
}

fn find_page(words: &[String]) -> Result<(String, Command), Failure> {
    let name =
        std::iter::once("agency").chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join("-");
    pages().into_iter().find(|(known, _)| *known == name).ok_or_else(|| {
        Failure::new(format!("there is no command `agency {}`", words.join(" ")))
            .code(FailureCode::InvalidArgument)
            .hint("`agency help --all` lists all commands")
    })
}

fn render((name, command): (String, Command)) -> Result<Vec<u8>, CommandError> {
    let is_root = name == command.get_name();
    let page = Page::new(command)
        .title(name.to_uppercase())
        .section("1")
        .manual("Agency")
        .source(concat!("agency ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    let written = if is_root { render_root(&page, &mut text) } else { page.render(&mut text) };
    written.map_err(|err| crate::outcome::failed("cannot write the page", &err))?;
    Ok(text)
}

/// Omits clap's own list of commands. The text after the options lists them in groups.
fn render_root(page: &Page, text: &mut Vec<u8>) -> std::io::Result<()> {
    page.render_title(text)?;
    page.render_name_section(text)?;
    page.render_synopsis_section(text)?;
    page.render_description_section(text)?;
    page.render_extra_section(text)?;
    page.render_version_section(text)
}

/// Shows the page with `man`. Returns whether that worked.
fn open_in_man(page: &[u8]) -> bool {
    let man = std::process::Command::new("man")
        .args(["-l", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut man) = man else { return false };
    // The write fails if the user quits early, which is no error.
    let written = man.stdin.take().map(|mut stdin| stdin.write_all(page));
    let ended = man.wait();
    written.is_some() && ended.is_ok_and(|status| status.success())
}

fn install(state: &StateDir, dir: &Path) -> CommandResult {
    let section = dir.join("man1");
    let cannot = |path: &Path, err: &std::io::Error| {
        Failure::new(format!("cannot write {}", path.display()))
            .code(FailureCode::IoError)
            .caused_by(err)
            .hint("name a directory of your own: agency man --install ~/.local/share/man")
    };
    fs::create_dir_all(&section).map_err(|err| cannot(&section, &err))?;
    let mut written: Vec<PathBuf> = Vec::new();
    for page in pages() {
        let path = section.join(format!("{}.1", page.0));
        fs::write(&path, render(page)?).map_err(|err| cannot(&path, &err))?;
        written.push(path);
    }
    installed_files::remember(state, &written)?;
    output::line(&format!("{} written to {}", output::count(written.len(), "page"), section.display()))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_under_its_full_name() {
        let names: Vec<String> = pages().into_iter().map(|(name, _)| name).collect();
        for name in ["agency", "agency-new", "agency-daemon-stop", "agency-orphans-kill"] {
            assert!(names.iter().any(|known| known == name), "{name} in {names:?}");
        }
        assert!(!names.iter().any(|name| name.ends_with("daemon-run")), "hidden commands have no page");
    }

    #[test]
    fn a_page_has_synopsis_options_and_examples() {
        let page = render(find_page(&["new".to_owned()]).expect("a page")).expect("rendered");
        let page = String::from_utf8(page).expect("text");
        for part in [".TH AGENCY-NEW 1", ".SH SYNOPSIS", ".SH OPTIONS", "Examples:"] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
