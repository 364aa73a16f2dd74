//! Keystroke echo: from a key on a client's terminal until the program's answer is drawn there.

use std::time::{Duration, Instant};

use agency_testkit::Rng;

use super::{Measure, PATIENCE};
use crate::figure::{Sample, quantile};
use crate::options::Sizes;
use crate::peer::Peer;
use crate::stage::Stage;
use crate::terminal::Terminal;

pub const MEASURE: Measure =
    Measure { name: "echo", title: "Keystroke echo", applies: |_| true, is_once: false, run };

/// Signs that no client draws by itself.
const KEYS: &[u8] = b"#%&^_|=~";
const LINE: usize = 60;
const WARM_UP: usize = 50;
const LOST_AFTER: Duration = Duration::from_secs(2);

fn run(peer: &'static Peer, sizes: &Sizes) -> Vec<Sample> {
    let stage = Stage::set(peer, sizes);
    let mut terminal = begin(&stage);
    let times = times(&mut terminal, sizes.keys);
    terminal.leave();
    samples(&times, "")
}

/// A program that answers every key with itself, and a client attached to it.
pub fn begin(stage: &Stage) -> Terminal {
    let ready = stage.signal("ready");
    stage.start("echo", &format!("stty raw -echo\n{}\nexec cat\n", ready.give()));
    let terminal = stage.attached("echo");
    ready.wait(1, PATIENCE);
    terminal
}

/// Seconds, of each key. Pauses between keys are uneven, so that no timer of a peer falls in step with them.
pub fn times(terminal: &mut Terminal, count: usize) -> Vec<f64> {
    let mut rng = Rng::seeded(3);
    let mut times = Vec::with_capacity(count);
    for number in 0..count + WARM_UP.min(count) {
        let time = press(terminal, KEYS[number % KEYS.len()]);
        if number >= WARM_UP.min(count) {
            times.push(time.as_secs_f64());
        }
        if number % LINE == LINE - 1 {
            terminal.press(b"\r\n");
            drain(terminal, Duration::from_millis(20));
        }
        drain(terminal, Duration::from_micros(rng.between(1500, 4500)));
    }
    times
}

fn press(terminal: &mut Terminal, key: u8) -> Duration {
    assert!(terminal.is_taken(), "the client gave the terminal back");
    let began = Instant::now();
    terminal.press(&[key]);
    while let Some(output) = terminal.read(began + LOST_AFTER) {
        if output.contains(&key) {
            return began.elapsed();
        }
    }
    panic!("key {:?} was not echoed within {LOST_AFTER:?}", char::from(key));
}

/// Reads away what still comes, for so long.
fn drain(terminal: &mut Terminal, pause: Duration) {
    let deadline = Instant::now() + pause;
    while terminal.read(deadline).is_some() {}
}

pub fn samples(times: &[f64], beside: &str) -> Vec<Sample> {
    let sample = |name: &str, share: f64| {
        let time = Duration::from_secs_f64(quantile(times, share));
        Sample::seconds(format!("{name}{beside}"), time)
    };
    vec![sample("p50", 0.5), sample("p99", 0.99)]
}
