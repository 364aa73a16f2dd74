//! A large `cat`: how quickly a holder reads a program's output, and how much CPU that costs.

use std::path::Path;
use std::time::Instant;

use super::{Measure, PATIENCE};
use crate::figure::{Sample, Unit};
use crate::peer::Peer;
use crate::sizes::Sizes;
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
        // A bare terminal always needs a reader, so that both cases are the same.
        return measure_attached(peer, sizes, "detached");
    }
    let stage = Stage::new(peer, sizes);
    let (pause, printed) = (stage.pause("go"), stage.signal("printed"));
    stage.start("cat", &script(sizes, pause.path(), &printed.send_command()));
    stage.show("cat");
    let meter = stage.meter();
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
    measure_attached(peer, sizes, "attached")
}

/// With an attached client all the time.
fn measure_attached(peer: &'static Peer, sizes: &Sizes, how: &str) -> Vec<Sample> {
    let stage = Stage::new(peer, sizes);
    let (pause, printed) = (stage.pause("go"), stage.signal("printed"));
    stage.start("cat", &script(sizes, pause.path(), &printed.send_command()));
    let mut terminal = stage.attach_and_draw("cat");
    let (meter, drawn_before) = (stage.meter(), terminal.bytes);
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

/// The shell puts the end mark together, so that the text of the script does not contain it.
fn script(sizes: &Sizes, pause: &Path, printed: &str) -> String {
    format!(
        "stty -echo\nread line <{}\ncat {}\n{printed}\nprintf '\\n@END-OF-%s@' CAT\nexec cat >/dev/null\n",
        pause.display(),
        sizes.logs.large.display(),
    )
}
