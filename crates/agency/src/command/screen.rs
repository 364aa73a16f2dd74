//! `agency screen`: a task's screen as it is now.

use std::io::Write;
use std::process::ExitCode;

use agency_api::method::{PtyScreen, ScreenDump};
use serde_json::json;

use crate::cli::Screen;
use crate::context::Context;
use crate::output;
use crate::stop::Done;

pub(super) async fn screen(context: &Context, args: Screen) -> Done {
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

fn described(screen: &ScreenDump) -> serde_json::Value {
    json!({
        "size": screen.size,
        "cursor": { "row": screen.cursor.0, "column": screen.cursor.1 },
        "title": screen.title,
        "alternate": screen.alternate,
        "modes": screen.modes,
        "lines": screen.text.lines().collect::<Vec<_>>(),
    })
}
