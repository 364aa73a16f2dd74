//! `agency screen`: prints the current screen of a task.

use std::io::Write;
use std::process::ExitCode;

use agency_api::keeper::Size;
use agency_api::method::{PtyScreen, ScreenDump};
use serde::Serialize;
use serde_json::Value;

use crate::cli::Screen;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output;

pub(super) async fn screen(context: &Context, args: Screen) -> CommandResult {
    let task = context.task(&args.name.task)?;
    let screen = context.daemon().await?.call(PtyScreen, task).await?;
    if args.json {
        output::json(&described(&screen))?;
    } else {
        let bytes = if args.ansi { screen.ansi.0.as_slice() } else { screen.text.as_bytes() };
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A screen as JSON: its text and its state.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Described<'a> {
    size: Size,
    cursor: Cursor,
    title: &'a str,
    /// The program shows the alternate screen, as editors do.
    alternate: bool,
    /// The terminal modes that are set, by name.
    modes: &'a Value,
    /// Scrollback and screen.
    lines: Vec<&'a str>,
}

/// Counted from 0.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Cursor {
    row: u16,
    column: u16,
}

fn described(screen: &ScreenDump) -> Described<'_> {
    Described {
        size: screen.size,
        cursor: Cursor { row: screen.cursor.0, column: screen.cursor.1 },
        title: &screen.title,
        alternate: screen.alternate,
        modes: &screen.modes,
        lines: screen.text.lines().collect(),
    }
}
