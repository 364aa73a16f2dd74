//! Reads a patch line by line and knows the current file and line.
//!
//! Not here: how a patch is made or applied.

use crate::remark::{NumberedLine, Side};

/// Reads a patch line by line.
#[derive(Debug, Default)]
pub struct PatchReader {
    file: Option<String>,
    /// The numbers of the next lines in the old and the new file; `None` outside a hunk.
    hunk: Option<Hunk>,
    last: Option<PatchLine>,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchLine {
    /// The side of the line. A line of both files is on the new side.
    pub side: Side,
    /// The number and the text of the line in the file of that side.
    pub line: NumberedLine,
}

#[derive(Debug)]
struct Hunk {
    old: u64,
    new: u64,
    old_left: u64,
    new_left: u64,
}

/// The lines that a patch removes from a file, with their numbers in the old file. `file` is the new name of the file.
pub fn removed_lines(patch: &str, file: &str) -> Vec<NumberedLine> {
    let mut reader = PatchReader::default();
    let mut removed = Vec::new();
    for line in patch.lines() {
        let read = reader.read_line(line).filter(|read| read.side == Side::Old).map(|read| read.line.clone());
        if let (Some(read), Some(current)) = (read, reader.file())
            && current == file
        {
            removed.push(read);
        }
    }
    removed
}

impl PatchReader {
    /// Reads one line of the patch and returns it if it is a line of a file.
    pub fn read_line(&mut self, line: &str) -> Option<&PatchLine> {
        match self.hunk.as_mut().filter(|hunk| hunk.old_left + hunk.new_left > 0) {
            Some(hunk) => {
                let read = hunk.read_line(line)?;
                Some(self.last.insert(read))
            }
            None => {
                self.read_header(line);
                None
            }
        }
    }

    /// The new name of the file whose part was read last.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// The line of this hunk that was read last.
    pub fn last(&self) -> Option<&PatchLine> {
        self.last.as_ref()
    }

    fn read_header(&mut self, line: &str) {
        if let Some(names) = line.strip_prefix("diff --git ") {
            self.file = names.split_once(" b/").map(|(_, name)| name.to_owned());
            (self.hunk, self.last) = (None, None);
        } else if let Some(name) = line.strip_prefix("+++ b/") {
            self.file = Some(name.to_owned());
        } else if let Some(hunk) = Hunk::parse(line) {
            (self.hunk, self.last) = (Some(hunk), None);
        }
    }
}

impl Hunk {
    /// `@@ -1,2 +3,4 @@`
    fn parse(line: &str) -> Option<Hunk> {
        let ranges = line.strip_prefix("@@ -")?.split_once(" @@")?.0;
        let (old, new) = ranges.split_once(" +")?;
        let range = |range: &str| {
            let (begin, count) = range.split_once(',').unwrap_or((range, "1"));
            Some((begin.parse::<u64>().ok()?, count.parse::<u64>().ok()?))
        };
        let ((old, old_left), (new, new_left)) = (range(old)?, range(new)?);
        Some(Hunk { old, new, old_left, new_left })
    }

    fn read_line(&mut self, line: &str) -> Option<PatchLine> {
        let (is_old, is_new) = match line.as_bytes().first() {
            Some(b'+') => (false, true),
            Some(b'-') => (true, false),
            Some(b'\\') => return None,
            // A line of both files. An editor may have removed the blank of an empty one.
            _ => (true, true),
        };
        let (side, number) = if is_new { (Side::New, self.new) } else { (Side::Old, self.old) };
        if is_old {
            (self.old, self.old_left) = (self.old + 1, self.old_left.saturating_sub(1));
        }
        if is_new {
            (self.new, self.new_left) = (self.new + 1, self.new_left.saturating_sub(1));
        }
        let text = line.get(1..).unwrap_or_default().to_owned();
        Some(PatchLine { side, line: NumberedLine { number, text } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "\
diff --git a/src/old.rs b/src/a.rs
--- a/src/old.rs
+++ b/src/a.rs
@@ -10,4 +10,3 @@ fn main() {
 let a = 1;

-let b = 2;
--- let c = 3;
+let d = 4;
@@ -30 +29,0 @@
-let z = 9;
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-a line
";

    #[test]
    fn removed_lines_have_their_old_numbers() {
        let removed = |file| {
            let lines = removed_lines(PATCH, file).into_iter();
            lines.map(|line| (line.number, line.text)).collect::<Vec<_>>()
        };
        let line = |number, text: &str| (number, text.to_owned());
        assert_eq!(
            removed("src/a.rs"),
            [line(12, "let b = 2;"), line(13, "-- let c = 3;"), line(30, "let z = 9;")]
        );
        assert_eq!(removed("gone"), [line(1, "a line")]);
        assert_eq!(removed("src/old.rs"), []);
    }
}
