//! A coloured log such as builds and test runs print; the floods consist of it.
//!
//! The same size always gives the same bytes, so that two runs measure the same work.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use agency_testkit::Rng;

/// The log repeats a block of this size, which is too large for any cache of a peer.
const BLOCK_BYTES: usize = 8 << 20;

const WORDS: [&str; 24] = [
    "request",
    "worker",
    "cache",
    "finished",
    "in",
    "after",
    "retry",
    "queue",
    "of",
    "module",
    "src/main.rs",
    "connection",
    "from",
    "10.0.3.7",
    "tests",
    "passed",
    "with",
    "target/debug",
    "0x7ffd2a",
    "index",
    "the",
    "parser",
    "built",
    "tokens",
];

/// Lines that end in a newline, as programs print them.
pub fn lines(count: usize) -> Vec<u8> {
    let mut rng = Rng::seeded(7);
    let mut text = Vec::new();
    (0..count).for_each(|_| line(&mut rng, &mut text));
    text
}

/// Whole lines, about this many bytes.
pub fn write(path: &Path, bytes: usize) -> io::Result<()> {
    let block = block(bytes.min(BLOCK_BYTES));
    let mut file = BufWriter::new(File::create(path)?);
    for _ in 0..bytes.div_ceil(block.len()) {
        file.write_all(&block)?;
    }
    file.flush()
}

fn block(bytes: usize) -> Vec<u8> {
    let mut rng = Rng::seeded(7);
    let mut text = Vec::with_capacity(bytes + 256);
    while text.len() < bytes.max(1) {
        line(&mut rng, &mut text);
    }
    text
}

/// One line in three is plain; the others use the colours of common programs, a few with wide characters.
fn line(rng: &mut Rng, text: &mut Vec<u8>) {
    let prose = prose(rng);
    let number = rng.below(1 << 20);
    let line = match rng.below(20) {
        0..=6 => prose,
        7..=11 => format!("\x1b[1;32m   Compiling\x1b[0m {prose} v0.{number}"),
        12..=14 => format!("\x1b[2m{number:>8}\x1b[0m \x1b[34mINFO\x1b[0m {prose}"),
        15 | 16 => format!("\x1b[38;5;{}mwarning\x1b[0m\x1b[1m: {prose}\x1b[0m", 200 + number % 16),
        17 => format!("\x1b[38;2;230;120;{}m{prose}\x1b[0m \x1b[7m {number} \x1b[27m", 40 + number % 4 * 50),
        18 => format!("\x1b[32m✓\x1b[0m {prose} → 日本語 {number}"),
        _ => format!("\x1b[1;31merror[E{:04}]\x1b[0m: {prose} 🚀", number % 1000),
    };
    text.extend_from_slice(line.as_bytes());
    text.push(b'\n');
}

fn prose(rng: &mut Rng) -> String {
    let words: Vec<&str> = (0..rng.between(3, 16)).map(|_| *rng.pick(&WORDS)).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_size_gives_the_same_lines() {
        assert_eq!(lines(500), lines(500));
        assert_eq!(lines(500).iter().filter(|byte| **byte == b'\n').count(), 500);
    }

    #[test]
    fn a_file_has_the_given_length_and_ends_with_a_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        write(file.path(), 100_000).unwrap();
        let text = std::fs::read(file.path()).unwrap();
        assert!((100_000..100_500).contains(&text.len()), "{}", text.len());
        assert!(text.ends_with(b"\n"));
        assert!(std::str::from_utf8(&text).is_ok());
    }

    #[test]
    fn no_line_contains_the_first_sign_of_a_mark() {
        assert!(!lines(5000).contains(&b'@'));
    }
}
