//! A stream of bytes cut into lines, however it arrives; a line without end is given up, not kept.

/// A tool's result may hold a whole file; beyond this it is an accident.
const LONGEST: usize = 64 << 20;

#[derive(Debug, Default)]
pub(crate) struct Lines {
    held: Vec<u8>,
    /// The line was too long: the rest of it is passed over.
    skipping: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Whole(Vec<u8>),
    /// Its first bytes, for people.
    TooLong(Vec<u8>),
}

impl Lines {
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut parts = bytes.split(|byte| *byte == b'\n');
        let last = parts.next_back().unwrap_or_default();
        for part in parts {
            self.hold(part, &mut lines);
            let line = std::mem::take(&mut self.held);
            if !std::mem::take(&mut self.skipping) {
                lines.push(Line::Whole(line));
            }
        }
        self.hold(last, &mut lines);
        lines
    }

    /// What came after the last end of line, when nothing more will come.
    pub(crate) fn rest(&mut self) -> Option<Vec<u8>> {
        let rest = std::mem::take(&mut self.held);
        (!rest.is_empty()).then_some(rest)
    }

    /// A line has begun and has no end yet.
    pub(crate) fn has_rest(&self) -> bool {
        !self.held.is_empty()
    }

    fn hold(&mut self, part: &[u8], lines: &mut Vec<Line>) {
        if self.skipping {
            return;
        }
        self.held.extend_from_slice(part);
        if self.held.len() > LONGEST {
            let mut line = std::mem::take(&mut self.held);
            line.truncate(200);
            self.skipping = true;
            lines.push(Line::TooLong(line));
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
            let mut lines = Lines::default();
            let mut seen = lines.feed(&text[..cut]);
            seen.extend(lines.feed(&text[cut..]));
            let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
            assert_eq!(seen, [whole("one"), whole(""), whole("two and more")], "cut at {cut}");
            assert_eq!(lines.rest().as_deref(), Some(&b"half"[..]));
        }
    }

    #[test]
    fn a_line_without_end_is_given_up_and_the_next_one_is_read() {
        let mut lines = Lines::default();
        let chunk = vec![b'x'; 1 << 20];
        let mut seen = Vec::new();
        (0..70).for_each(|_| seen.extend(lines.feed(&chunk)));
        seen.extend(lines.feed(b"tail\nnext\n"));
        assert!(
            matches!(&seen[..], [Line::TooLong(_), Line::Whole(next)] if next == b"next"),
            "{}",
            seen.len()
        );
    }
}
