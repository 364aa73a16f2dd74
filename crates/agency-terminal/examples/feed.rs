//! Measures a screen: the speed of `feed`, the memory of five screens with ten thousand lines, and the time of
//! redraws, dumps and texts. With `--only-feed` it feeds 100 MB and prints nothing, for tools that count time or
//! instructions from outside.

use std::hint::black_box;
use std::time::{Duration, Instant};

use agency_terminal::{Screen, Size};

const SIZE: Size = Size { cols: 132, rows: 50, x_pixels: 0, y_pixels: 0 };
const SCROLLBACK: usize = 10_000;
const CHUNK: usize = 64 * 1024;

fn main() {
    let log = log_of(10_000_000);
    if std::env::args().any(|arg| arg == "--only-feed") {
        return (0..10).for_each(|_| drop(black_box(fed(&log))));
    }
    memory(&log);
    speed(&log);
    readings(&log);
}

/// A coloured log like that of a build, the same in every run.
fn log_of(bytes: usize) -> Vec<u8> {
    let mut dice = Dice(7);
    let letters =
        |dice: &mut Dice| (0..2 + dice.roll(9)).map(|_| (b'a' + dice.roll(26) as u8) as char).collect();
    let words: Vec<String> = (0..2000).map(|_| letters(&mut dice)).collect();
    let mut out = Vec::with_capacity(bytes + 200);
    while out.len() < bytes {
        let count = 3 + dice.roll(16);
        let line: Vec<&str> = (0..count).map(|_| words[dice.roll(words.len())].as_str()).collect();
        let line = line.join(" ");
        let line = match dice.roll(100) {
            0..30 => format!("\x1b[1;32m   Compiling\x1b[0m {line}"),
            30..40 => format!("\x1b[38;5;208mwarning\x1b[0m: \x1b[1m{line}\x1b[0m"),
            40..45 => format!("✓ {line} → 日本語"),
            _ => line,
        };
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out
}

fn memory(log: &[u8]) {
    let before = resident_kb();
    let lines = log.split_inclusive(|byte| *byte == b'\n').take(SCROLLBACK + 60);
    let part: Vec<u8> = lines.flatten().copied().collect();
    let screens: Vec<Screen> = (0..5).map(|_| fed(&part)).collect();
    let kb = resident_kb().saturating_sub(before);
    println!("memory      five screens of {SCROLLBACK} lines: {kb} KB, one: {} KB", kb / 5);
    drop(black_box(screens));
}

fn fed(bytes: &[u8]) -> Screen {
    let mut screen = Screen::new(SIZE, SCROLLBACK);
    bytes.chunks(CHUNK).for_each(|chunk| drop(screen.feed(chunk)));
    screen
}

fn speed(log: &[u8]) {
    let best = best_of(7, || drop(black_box(fed(log))));
    println!("feed        {:.0} MB/s", log.len() as f64 / best.as_secs_f64() / 1e6);
    let piece = &log[..2_000_000];
    let best = best_of(5, || {
        let mut screen = Screen::new(SIZE, SCROLLBACK);
        piece.chunks(100).for_each(|chunk| drop(screen.feed(chunk)));
    });
    println!("feed by 100 {:.0} MB/s", piece.len() as f64 / best.as_secs_f64() / 1e6);
}

fn readings(log: &[u8]) {
    let mut screen = fed(log);
    let dump = screen.dump();
    println!("dump        {:?}, {} KB", best_of(9, || drop(black_box(screen.dump()))), dump.len() / 1024);
    println!("restore     {:?}", best_of(9, || drop(black_box(Screen::restore(&dump)))));
    println!("redraw all  {:?}", best_of(9, || drop(black_box(screen.redraw(true)))));
    println!("redraw      {:?}", best_of(9, || drop(black_box(screen.redraw(false)))));
    println!("text        {:?}", best_of(9, || drop(black_box(screen.text()))));
    let mut narrow = false;
    let resize = best_of(9, || {
        narrow = !narrow;
        screen.resize(Size { cols: if narrow { 100 } else { 132 }, ..SIZE });
    });
    println!("resize      {resize:?}");
    println!("redraw all  {:?} after resizes", best_of(9, || drop(black_box(screen.redraw(true)))));
}

fn best_of(times: usize, mut act: impl FnMut()) -> Duration {
    let timed = |_| {
        let start = Instant::now();
        act();
        start.elapsed()
    };
    (0..times).map(timed).min().unwrap_or_default()
}

fn resident_kb() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).unwrap_or(0)
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }
}
