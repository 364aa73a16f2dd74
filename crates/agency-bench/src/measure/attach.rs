//! Attaching to a session with a long scrollback: the time from the start of the client until the screen is drawn.

use std::time::{Duration, Instant};

use super::{Measure, PATIENCE};
use crate::figure::{Sample, Unit, quantile};
use crate::peer::{AGENCY, Peer};
use crate::sizes::Sizes;
use crate::stage::Stage;
use crate::terminal::{ROWS, contains};

pub const MEASURE: Measure = Measure {
    name: "attach",
    title: "Attach with a long scrollback",
    applies: |peer| peer.redraws,
    is_once: false,
    run,
};

/// On the last line of the screen.
const LAST: &str = "@LAST-LINE@";

/// The first clients give the session its size and warm the caches.
const WARM_UP: usize = 2;

/// The pause between two clients, so that no peer draws for one while it detaches the other.
const PAUSE: Duration = Duration::from_millis(100);

fn run(peer: &'static Peer, sizes: &Sizes) -> Vec<Sample> {
    let stage = Stage::new(peer, sizes);
    let filled = stage.signal("filled");
    stage.start("attach", &script(sizes.lines, &filled.send_command()));
    filled.wait(1, PATIENCE);
    let views: Vec<View> = (0..sizes.attaches + WARM_UP).map(|_| view(&stage, sizes)).collect();
    samples(&stage, &views[WARM_UP..])
}

struct View {
    drawn: Duration,
    /// Until an old, a middle and the newest line above the screen have come.
    scrollback: Option<Duration>,
    bytes: u64,
}

/// Attaches a client, waits until it has drawn everything, and closes it.
fn view(stage: &Stage, sizes: &Sizes) -> View {
    let began = Instant::now();
    let mut terminal = stage.attach("attach");
    let mut deadline = began + PATIENCE;
    let (mut tail, mut drawn, mut above) = (Vec::new(), None, landmarks(sizes.lines));
    let mut scrollback = None;
    while let Some(output) = terminal.read(deadline) {
        let at = began.elapsed();
        tail.extend_from_slice(&output);
        if drawn.is_none() && contains(&tail, LAST.as_bytes()) {
            drawn = Some(at);
        }
        above.retain(|line| !contains(&tail, line.as_bytes()));
        scrollback = scrollback.or(above.is_empty().then_some(at));
        tail.drain(..tail.len().saturating_sub(64));
        deadline = if drawn.is_some() { Instant::now() + sizes.times.quiet } else { deadline };
    }
    let bytes = terminal.bytes;
    terminal.leave();
    std::thread::sleep(PAUSE);
    View { drawn: drawn.expect("the client draws the last line"), scrollback, bytes }
}

/// Lines above the screen that a complete scrollback contains.
fn landmarks(lines: usize) -> Vec<String> {
    let newest = lines.saturating_sub(usize::from(ROWS) + 5);
    [lines / 4, lines / 2, newest].map(|number| format!("@{number:06} ")).to_vec()
}

fn script(lines: usize, filled: &str) -> String {
    format!(
        "stty -echo\nseq -f '@%06.0f a line of scrollback, coloured \x1b[32mgreen\x1b[0m and plain' 1 {lines}\n\
         printf '@LAST-%s@' LINE\n{filled}\nexec cat >/dev/null\n"
    )
}

fn samples(stage: &Stage, views: &[View]) -> Vec<Sample> {
    let median = |times: Vec<f64>| quantile(&times, 0.5);
    let drawn = median(views.iter().map(|view| view.drawn.as_secs_f64()).collect());
    let bytes = median(views.iter().map(|view| view.bytes as f64 / 1024.0).collect());
    let mut samples = vec![
        Sample::new("until the screen is drawn", Unit::Seconds, drawn),
        Sample::new("sent to the client", Unit::Kilobytes, bytes),
    ];
    if stage.peer.name == AGENCY {
        let times = views.iter().map(|view| view.scrollback.expect("Agency sends the scrollback"));
        let scrollback = median(times.map(|time| time.as_secs_f64()).collect());
        samples.insert(1, Sample::new("until the scrollback is there", Unit::Seconds, scrollback));
    }
    samples
}
