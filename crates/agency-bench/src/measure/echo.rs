//! Keystroke echo: the time from a key on a client's terminal until the client draws the program's answer.

use std::time::{Duration, Instant};

use agency_testkit::Rng;

use super::{Measure, PATIENCE};
use crate::figure::{Sample, quantile};
use crate::peer::Peer;
use crate::sizes::Sizes;
use crate::stage::Stage;
use crate::terminal::Terminal;

pub const MEASURE: Measure =
    Measure { name: "echo", title: "Keystroke echo", applies: |_| true, is_once: false, run };

/// Characters that no client draws by itself.
const KEYS: &[u8] = b"#%&^_|=~";
const LINE: usize = 60;
const WARM_UP: usize = 50;
const LOST_AFTER: Duration = Duration::from_secs(2);

fn run(peer: &'static Peer, sizes: &Sizes) -> Vec<Sample> {
    let stage = Stage::new(peer, sizes);
    let mut terminal = begin(&stage);
    let times = times(&mut terminal, sizes.keys);
    terminal.leave();
    samples(&times, "")
}

/// Starts a program that echoes every key, and attaches a client.
pub fn begin(stage: &Stage) -> Terminal {
    let ready = stage.signal("ready");
    stage.start("echo", &format!("stty raw -echo\n{}\nexec cat\n", ready.send_command()));
    let terminal = stage.attach_and_draw("echo");
    ready.wait(1, PATIENCE);
    terminal
}

/// Seconds for each key. The pauses between keys vary, so that they do not match a timer of a peer.
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

/// Reads and drops output for this time.
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
