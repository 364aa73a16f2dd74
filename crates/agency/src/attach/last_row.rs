//! The last row of the agent's screen that is in use, so that the shell continues directly below it.

use std::time::Duration;

use agency_api::method::{PtyScreen, ScreenDump, TaskRef};
use agency_terminal::{Screen, Size};

use crate::caller;
use crate::context::Context;

/// The user waits for the prompt of the shell.
const ANSWERED_WITHIN: Duration = Duration::from_millis(500);

/// From 1. `None` if it is not known: the daemon does not answer, or the user's terminal shows another picture.
pub(super) async fn find(context: &Context, task: &TaskRef) -> Option<u16> {
    let asked = async { context.daemon().await.ok()?.call(PtyScreen, task.clone()).await.ok() };
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
