//! A flood of output; a test knows every byte in advance.

/// Numbered lines of 64 bytes; the last one is cut to reach the exact total.
#[derive(Clone, Debug)]
pub struct Flood {
    left: u64,
    number: u64,
}

const LINE_BYTES: usize = 64;

impl Flood {
    pub fn of(bytes: u64) -> Flood {
        Flood { left: bytes, number: 0 }
    }

    /// All of it at once.
    pub fn bytes(bytes: u64) -> Vec<u8> {
        Flood::of(bytes).flatten().collect()
    }
}

impl Iterator for Flood {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.left == 0 {
            return None;
        }
        self.number += 1;
        let mut line = format!("flood {:010} ", self.number).into_bytes();
        line.resize(LINE_BYTES - 1, b'a' + (self.number % 26) as u8);
        line.push(b'\n');
        line.truncate(usize::try_from(self.left).unwrap_or(LINE_BYTES));
        self.left -= line.len() as u64;
        Some(line)
    }
}
