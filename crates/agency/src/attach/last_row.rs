//! The last row of the agent's screen that is in use, so that the shell continues directly below it.

use std::time::Duration;

use agency_api::method::{PtyScreen, PtyScreenParams, ScreenDump, ShellScreen};
use agency_api::shell::ShellRef;
use agency_terminal::{Screen, Size};

use super::connection::Target;
use crate::caller;
use crate::context::Context;

/// The user waits for the prompt of the shell.
const ANSWERED_WITHIN: Duration = Duration::from_millis(500);

/// From 1. `None` if it is not known: the daemon does not answer, or the user's terminal shows another picture.
pub(super) async fn find(context: &Context, target: &Target) -> Option<u16> {
    let task = target.task.clone();
    let asked = async {
        let mut daemon = context.daemon().await.ok()?;
        match target.shell.clone() {
            Some(shell) => daemon.call(ShellScreen, ShellRef { task, shell }).await.ok(),
            None => daemon.call(PtyScreen, PtyScreenParams { task, at: None }).await.ok(),
        }
    };
    let dump = tokio::time::timeout(ANSWERED_WITHIN, asked).await.ok()??;
    let own = caller::terminal_size()?;
    let is_same = (own.cols, own.rows) == (dump.size.cols, dump.size.rows);
    (is_same && !dump.alternate).then(|| last_row(&dump))
}

fn last_row(dump: &ScreenDump) -> u16 {
    let mut screen = Screen::new(Size::cells(dump.size.cols, dump.size.rows), 0);
    screen.feed(&dump.ansi.0);
    let rows = screen.rows();
    let used = rows.iter().rposition(|row| !row.trim().is_empty()).map_or(0, |row| row + 1);
    u16::try_from(used).unwrap_or(dump.size.rows).max(dump.cursor.0 + 1)
}
