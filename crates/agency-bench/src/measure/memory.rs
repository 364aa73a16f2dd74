//! The cost of idle sessions: memory and CPU at several numbers of sessions, and the memory of scrollback.

use agency_testkit::Pause;

use super::{Measure, PATIENCE};
use crate::figure::{Sample, Unit};
use crate::holders;
use crate::peer::{AGENCY, Peer};
use crate::sizes::Sizes;
use crate::stage::Stage;

pub const MEASURE: Measure = Measure {
    name: "memory",
    title: "Memory, and CPU when idle",
    applies: |peer| !peer.is_bare(),
    is_once: true,
    run: |peer, sizes| {
        let mut samples = idle(peer, sizes);
        if peer.redraws {
            samples.extend(scrollback(peer, sizes));
        }
        samples
    },
};

fn idle(peer: &'static Peer, sizes: &Sizes) -> Vec<Sample> {
    let stage = Stage::new(peer, sizes);
    let ready = stage.signal("ready");
    let body = format!("{}\nexec cat >/dev/null\n", ready.send_command());
    let mut sessions = 0..;
    let mut samples = Vec::new();
    for &count in &sizes.sessions {
        while sessions.start < count {
            sessions.next().into_iter().for_each(|number| stage.start(&format!("idle{number}"), &body));
            ready.wait(1, PATIENCE);
        }
        samples.extend(measure_idle(&stage, count, sizes));
    }
    if let (AGENCY, Some(count)) = (peer.name, sizes.sessions.last()) {
        samples.extend(measure_stale(&stage, *count, sizes));
    }
    samples
}

/// Once all agents are stale, the daemon has nothing left to do.
fn measure_stale(stage: &Stage, count: usize, sizes: &Sizes) -> Vec<Sample> {
    std::thread::sleep(sizes.times.until_stale);
    let idle = holders::idle(&stage.holders(), sizes.times.idle);
    let wakeups = idle.wakeups_per_second * 10.0;
    vec![
        Sample::new(format!("idle CPU at {count}, all stale"), Unit::Percent, idle.cpu_percent),
        Sample::new(format!("wake-ups in 10 s at {count}, all stale"), Unit::Count, wakeups),
    ]
}

fn measure_idle(stage: &Stage, count: usize, sizes: &Sizes) -> Vec<Sample> {
    stage.meter();
    let holders = stage.holders();
    let idle = holders::idle(&holders, sizes.times.idle);
    let mut samples = vec![
        Sample::new(format!("PSS at {count}"), Unit::Kilobytes, holders::pss_kb(&holders)),
        Sample::new(format!("idle CPU at {count}"), Unit::Percent, idle.cpu_percent),
        Sample::new(format!("wake-ups in 10 s at {count}"), Unit::Count, idle.wakeups_per_second * 10.0),
    ];
    if stage.peer.name == AGENCY {
        let (keepers, daemon) = (stage.keepers(), stage.sealed.daemon());
        let keeper = holders::pss_kb(&keepers) / keepers.len().max(1) as f64;
        samples.push(Sample::new(format!("PSS of a keeper at {count}"), Unit::Kilobytes, keeper));
        let daemon = daemon.map_or(f64::NAN, |daemon| holders::pss_kb(&[daemon]));
        samples.push(Sample::new(format!("PSS of the daemon at {count}"), Unit::Kilobytes, daemon));
    }
    samples
}

/// How much memory the holders gain when sessions fill their scrollback.
fn scrollback(peer: &'static Peer, sizes: &Sizes) -> Vec<Sample> {
    let stage = Stage::new(peer, sizes);
    let printed = stage.signal("printed");
    let pauses: Vec<Pause> =
        (0..sizes.full_sessions).map(|number| stage.pause(&format!("go-{number}"))).collect();
    for (number, pause) in pauses.iter().enumerate() {
        let (pause, log) = (pause.path().display(), sizes.logs.lines.display());
        let body =
            format!("read line <{pause}\ncat {log}\n{}\nexec cat >/dev/null\n", printed.send_command());
        stage.start(&format!("full{number}"), &body);
        stage.show(&format!("full{number}"));
    }
    let pss = || {
        stage.meter();
        holders::pss_kb(&stage.holders())
    };
    let fill = |pauses: &[Pause]| {
        pauses.iter().for_each(Pause::release);
        printed.wait(pauses.len(), PATIENCE);
    };
    let empty = pss();
    fill(&pauses[..1]);
    let first = pss() - empty;
    fill(&pauses[1..]);
    let each = (pss() - empty) / pauses.len() as f64;
    vec![
        Sample::new("PSS of 10 000 lines, one session", Unit::Kilobytes, first),
        Sample::new("PSS of 10 000 lines", Unit::Kilobytes, each),
    ]
}
