//! Shows on a terminal what takes longer than a moment, and removes the text when it is done.

use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::time::{Duration, Instant};

use crate::output::{self, Colour, Paint};

/// Users do not notice a shorter wait.
const SHOWN_AFTER: Duration = Duration::from_millis(500);

const DRAWN_EVERY: Duration = Duration::from_secs(1);

/// Waits for the work and shows on standard error that it is in progress.
pub(crate) async fn during<T>(what: &str, work: impl Future<Output = T>) -> T {
    if output::is_quiet() || !io::stderr().is_terminal() {
        return work.await;
    }
    let mut work = pin!(work);
    let (begun, mut line) = (Instant::now(), ProgressLine { drawn: false });
    loop {
        let pause = if line.drawn { DRAWN_EVERY } else { SHOWN_AFTER };
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(pause) => line.draw(what, begun.elapsed()),
        }
    }
}

/// Prints a line that stays, above the progress text.
pub(crate) fn line(text: &str) {
    if output::is_quiet() {
        return;
    }
    let clear = if io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
    let text = Paint::for_stderr().paint(Colour::Faint, &output::printable(text));
    write(&format!("{clear}{text}\n"));
}

struct ProgressLine {
    drawn: bool,
}

impl ProgressLine {
    fn draw(&mut self, what: &str, since: Duration) {
        self.drawn = true;
        let text = match since.as_secs() {
            0 => format!("{what} …"),
            seconds => format!("{what} … {}", output::duration(seconds)),
        };
        write(&format!("\r{}\x1b[K", Paint::for_stderr().paint(Colour::Faint, &text)));
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.drawn {
            write("\r\x1b[K");
        }
    }
}

/// Ignores errors, because nothing depends on this output.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()).unwrap_or_default();
}
