//! A large `cat`: how quickly a holder takes what a program prints, and what that costs.

use std::path::Path;
use std::time::Instant;

use super::{Measure, PATIENCE};
use crate::figure::{Sample, Unit};
use crate::options::Sizes;
use crate::peer::Peer;
use crate::stage::Stage;

pub const MEASURE: Measure = Measure {
    name: "cat",
    title: "A large `cat`",
    applies: |_| true,
    is_once: false,
    run: |peer, sizes| [detached(peer, sizes), attached(peer, sizes)].concat(),
};

const END: &str = "@END-OF-CAT@";

fn detached(peer: &'static Peer, sizes: &Sizes) -> Vec<Sample> {
    if peer.is_bare() {
        // It knows no difference: somebody must read.
        return watched(peer, sizes, "detached");
    }
    let stage = Stage::set(peer, sizes);
    let (pause, printed) = (stage.pause("go"), stage.signal("printed"));
    stage.start("cat", &script(sizes, pause.path(), &printed.give()));
    stage.show("cat");
    let meter = stage.cpu();
    pause.release();
    let began = Instant::now();
    let wall = printed.wait(1, PATIENCE) - began;
    let spent = meter.spent();
    vec![
        Sample::seconds("detached, wall", wall),
        Sample::seconds("detached, CPU", spent.cpu),
        Sample::seconds("detached, until the holder rests", spent.rested - began),
    ]
}

fn attached(peer: &'static Peer, sizes: &Sizes) -> Vec<Sample> {
    watched(peer, sizes, "attached")
}

/// Somebody looks, all the time.
fn watched(peer: &'static Peer, sizes: &Sizes, how: &str) -> Vec<Sample> {
    let stage = Stage::set(peer, sizes);
    let (pause, printed) = (stage.pause("go"), stage.signal("printed"));
    stage.start("cat", &script(sizes, pause.path(), &printed.give()));
    let mut terminal = stage.attached("cat");
    let (meter, drawn_before) = (stage.cpu(), terminal.bytes);
    pause.release();
    let began = Instant::now();
    let wall = terminal.wait_for(END) - began;
    let drawn = (terminal.bytes - drawn_before) as f64 / 1024.0;
    terminal.settle();
    let cpu = meter.spent().cpu;
    terminal.leave();
    let mut samples = vec![Sample::seconds(format!("{how}, wall"), wall)];
    if !peer.is_bare() {
        samples.push(Sample::seconds(format!("{how}, CPU"), cpu));
        samples.push(Sample::new(format!("{how}, sent to the client"), Unit::Kilobytes, drawn));
    }
    samples
}

/// The end mark is put together by the shell, so that the script's own text never shows it.
fn script(sizes: &Sizes, pause: &Path, printed: &str) -> String {
    format!(
        "stty -echo\nread line <{}\ncat {}\n{printed}\nprintf '\\n@END-OF-%s@' CAT\nexec cat >/dev/null\n",
        pause.display(),
        sizes.log.display(),
    )
}
