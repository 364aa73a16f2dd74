//! Several floods at once, and keystroke echo beside an endless flood.

use std::time::{Duration, Instant};

use super::{Measure, PATIENCE, echo};
use crate::figure::Sample;
use crate::peer::Peer;
use crate::sizes::Sizes;
use crate::stage::Stage;

pub const MEASURE: Measure = Measure {
    name: "floods",
    title: "Several floods at once",
    applies: |_| true,
    is_once: false,
    run: |peer, sizes| {
        if peer.is_bare() {
            return vec![bare(peer, sizes)];
        }
        [together(peer, sizes), beside(peer, sizes)].concat()
    },
};

/// Each a quarter of the large `cat`.
const FLOODS: usize = 4;
const WALL: &str = "4 at once, wall";

fn together(peer: &'static Peer, sizes: &Sizes) -> Vec<Sample> {
    let stage = Stage::new(peer, sizes);
    let printed = stage.signal("printed");
    let pauses: Vec<_> = (0..FLOODS).map(|number| stage.pause(&format!("go-{number}"))).collect();
    for (number, pause) in pauses.iter().enumerate() {
        let (pause, log) = (pause.path().display(), sizes.logs.quarter.display());
        let body =
            format!("read line <{pause}\ncat {log}\n{}\nexec cat >/dev/null\n", printed.send_command());
        stage.start(&format!("flood{number}"), &body);
        stage.show(&format!("flood{number}"));
    }
    let meter = stage.meter();
    let began = Instant::now();
    pauses.iter().for_each(agency_testkit::Pause::release);
    let wall = printed.wait(FLOODS, PATIENCE) - began;
    vec![Sample::seconds(WALL, wall), Sample::seconds("4 at once, CPU", meter.spent().cpu)]
}

/// The lower bound: a thread of this program reads each flood.
fn bare(peer: &'static Peer, sizes: &Sizes) -> Sample {
    let stage = Stage::new(peer, sizes);
    let body =
        format!("cat {}\nprintf '@END-%s@' FLOOD\nexec cat >/dev/null\n", sizes.logs.quarter.display());
    let names: Vec<String> = (0..FLOODS).map(|number| format!("flood{number}")).collect();
    let watch = |name: &String| {
        let mut terminal = stage.open(name, &body);
        let end = terminal.wait_for("@END-FLOOD@");
        terminal.leave();
        end
    };
    let began = Instant::now();
    let ends = std::thread::scope(|scope| {
        let watchers: Vec<_> = names.iter().map(|name| scope.spawn(|| watch(name))).collect();
        watchers.into_iter().map(|watcher| watcher.join().expect("a watcher sees the end")).max()
    });
    Sample::seconds(WALL, ends.map_or(Duration::ZERO, |end| end - began))
}

fn beside(peer: &'static Peer, sizes: &Sizes) -> Vec<Sample> {
    let stage = Stage::new(peer, sizes);
    let flows = stage.signal("flows");
    let body = format!("{}\nwhile :; do cat {}; done\n", flows.send_command(), sizes.logs.quarter.display());
    stage.start("flood", &body);
    flows.wait(1, PATIENCE);
    let mut terminal = echo::begin(&stage);
    let times = echo::times(&mut terminal, sizes.keys);
    terminal.leave();
    echo::samples(&times, " of echo beside an endless flood")
}
