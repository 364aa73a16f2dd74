//! Cuts a stream of bytes into lines. A line that grows too long is dropped, so that memory stays bounded.

/// A tool's result may hold a whole file. A longer line is a mistake of the agent.
const LONGEST: usize = 64 << 20;

#[derive(Debug, Default)]
pub(crate) struct LineSplitter {
    held: Vec<u8>,
    /// The current line was too long: skip the rest of it.
    is_skipping: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SplitLine {
    Whole(Vec<u8>),
    /// The first bytes of the line, for people to read.
    TooLong(Vec<u8>),
}

impl SplitLine {
    pub(crate) fn whole(self) -> Option<Vec<u8>> {
        match self {
            SplitLine::Whole(line) => Some(line),
            SplitLine::TooLong(_) => None,
        }
    }
}

impl LineSplitter {
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<SplitLine> {
        let mut lines = Vec::new();
        let mut parts = bytes.split(|byte| *byte == b'\n');
        let last = parts.next_back().unwrap_or_default();
        for part in parts {
            self.hold(part, &mut lines);
            let line = std::mem::take(&mut self.held);
            if !std::mem::take(&mut self.is_skipping) {
                lines.push(SplitLine::Whole(line));
            }
        }
        self.hold(last, &mut lines);
        lines
    }

    /// Takes the bytes after the last end of line. For a stream that has ended.
    pub(crate) fn take_rest(&mut self) -> Option<Vec<u8>> {
        let rest = std::mem::take(&mut self.held);
        (!rest.is_empty()).then_some(rest)
    }

    /// Whether a line has begun and has no end yet.
    pub(crate) fn has_rest(&self) -> bool {
        !self.held.is_empty()
    }

    fn hold(&mut self, part: &[u8], lines: &mut Vec<SplitLine>) {
        if self.is_skipping {
            return;
        }
        self.held.extend_from_slice(part);
        if self.held.len() > LONGEST {
            let mut line = std::mem::take(&mut self.held);
            line.truncate(200);
            self.is_skipping = true;
            lines.push(SplitLine::TooLong(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_gives_the_same_lines() {
        let text = b"one\n\ntwo and more\nhalf";
        for cut in 0..text.len() {
            let mut lines = LineSplitter::default();
            let mut seen = lines.feed(&text[..cut]);
            seen.extend(lines.feed(&text[cut..]));
            let whole = |text: &str| SplitLine::Whole(text.as_bytes().to_vec());
            assert_eq!(seen, [whole("one"), whole(""), whole("two and more")], "cut at {cut}");
            assert_eq!(lines.take_rest().as_deref(), Some(&b"half"[..]));
        }
    }

    #[test]
    fn a_line_without_end_is_dropped_and_the_next_one_is_read() {
        let mut lines = LineSplitter::default();
        let chunk = vec![b'x'; 1 << 20];
        let mut seen = Vec::new();
        (0..70).for_each(|_| seen.extend(lines.feed(&chunk)));
        seen.extend(lines.feed(b"tail\nnext\n"));
        assert!(
            matches!(&seen[..], [SplitLine::TooLong(_), SplitLine::Whole(next)] if next == b"next"),
            "{}",
            seen.len()
        );
    }
}
