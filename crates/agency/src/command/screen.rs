//! `agency screen`: prints the current screen of a task, its last one, or an earlier one.

use std::io::Write;
use std::process::ExitCode;

use agency_api::keeper::Size;
use agency_api::method::{PtyScreen, PtyScreenParams, ScreenDump, ShellScreen};
use agency_api::shell::ShellRef;
use serde::Serialize;
use serde_json::Value;

use crate::cli::Screen;
use crate::context::Context;
use crate::moment;
use crate::outcome::CommandResult;
use crate::output;

pub(super) async fn screen(context: &Context, args: Screen) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let screen = match context.terminal(&args.name.task)? {
        (task, Some(shell)) => daemon.call(ShellScreen, ShellRef { task, shell }).await?,
        (task, None) => {
            let params = PtyScreenParams { task, at: args.at.map(|at| at.to_string()) };
            daemon.call(PtyScreen, params).await?
        }
    };
    if args.json {
        output::json(&described(&screen))?;
    } else {
        let bytes = if args.ansi { screen.ansi.0.as_slice() } else { screen.text.as_bytes() };
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()?;
        past_note(&screen, args.at.is_some()).iter().for_each(|note| output::note(note));
    }
    Ok(ExitCode::SUCCESS)
}

/// A screen of the past looks like a live one, so a note tells them apart.
fn past_note(screen: &ScreenDump, was_asked_for: bool) -> Option<String> {
    let drawn_at = moment::format_local(screen.time.as_deref()?);
    Some(match was_asked_for {
        true => format!("the agent drew this screen at {drawn_at}"),
        false => format!("the agent has ended; it drew this screen last, at {drawn_at}"),
    })
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
    /// For a screen of the past: when it was last drawn, in RFC 3339, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<&'a str>,
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
        time: screen.time.as_deref(),
    }
}
