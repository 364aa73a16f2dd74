//! A word about what takes longer than a moment, on a terminal; gone when it is done.

use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::time::{Duration, Instant};

use crate::output::{self, Colour, Paint};

/// People take anything shorter for at once.
const SAID_AFTER: Duration = Duration::from_millis(500);

const DRAWN_EVERY: Duration = Duration::from_secs(1);

/// Waits for the work, and says on standard error that it is under way.
pub(crate) async fn during<T>(what: &str, work: impl Future<Output = T>) -> T {
    if output::is_quiet() || !io::stderr().is_terminal() {
        return work.await;
    }
    let mut work = pin!(work);
    let (begun, mut line) = (Instant::now(), Line { drawn: false });
    loop {
        let pause = if line.drawn { DRAWN_EVERY } else { SAID_AFTER };
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(pause) => line.draw(what, begun.elapsed()),
        }
    }
}

/// A line that stays, above the word about what goes on.
pub(crate) fn line(text: &str) {
    if output::is_quiet() {
        return;
    }
    let clear = if io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
    let text = Paint::for_stderr().paint(Colour::Faint, &output::printable(text));
    write(&format!("{clear}{text}\n"));
}

struct Line {
    drawn: bool,
}

impl Line {
    fn draw(&mut self, what: &str, since: Duration) {
        self.drawn = true;
        let text = match since.as_secs() {
            0 => format!("{what} …"),
            seconds => format!("{what} … {}", output::duration(seconds)),
        };
        write(&format!("\r{}\x1b[K", Paint::for_stderr().paint(Colour::Faint, &text)));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.drawn {
            write("\r\x1b[K");
        }
    }
}

/// Nothing depends on it being seen.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()).unwrap_or_default();
}
