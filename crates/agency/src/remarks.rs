//! Remarks that the user wrote into a diff, with the file and line that each remark is about.
//!
//! Every line that the user added to the diff belongs to a remark. Deleted lines of the diff mean nothing.

const HEADER: &str = "\
# Write each remark on new lines below the line that it is about. Save and quit:
# Agency sends all remarks to the agent in one message. Without remarks, it asks
# whether you accept the work. You may delete lines of the diff.
";

/// A remark may begin with this mark, which is removed.
const MARK: &str = ">>";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    /// `None`: the remark is about the whole change.
    pub(crate) position: Option<DiffPosition>,
    pub(crate) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiffPosition {
    pub(crate) file: String,
    /// The number in the new file, or in the old file for a removed line.
    pub(crate) line: Option<u64>,
    /// The line of the diff above the remark.
    pub(crate) quote: Option<String>,
}

/// The text that the editor opens.
pub(crate) fn review_file(patch: &str) -> String {
    format!("{HEADER}\n{patch}")
}

/// The remarks that the user wrote into the file.
pub(crate) fn parse_remarks(patch: &str, edited: &str) -> Vec<Remark> {
    let unedited = review_file(patch);
    let original: Vec<&str> = unedited.lines().map(str::trim_end).collect();
    let mut remarks: Vec<Remark> = Vec::new();
    let (mut next, mut at, mut is_open) = (0, DiffReader::default(), false);
    for line in edited.lines().map(str::trim_end) {
        match original[next..].iter().position(|known| *known == line) {
            // An empty line that the user added is not an empty line further down in the diff.
            Some(skipped) if skipped == 0 || !line.is_empty() => {
                original[next..=next + skipped].iter().for_each(|line| at.read_line(line));
                next += skipped + 1;
                is_open = false;
            }
            _ if is_open => {
                if let Some(last) = remarks.last_mut() {
                    last.text.push('\n');
                    last.text.push_str(without_mark(line));
                }
            }
            _ if line.is_empty() => {}
            _ => {
                remarks.push(Remark { position: at.position(), text: without_mark(line).to_owned() });
                is_open = true;
            }
        }
    }
    remarks.iter_mut().for_each(|remark| remark.text = remark.text.trim().to_owned());
    remarks.retain(|remark| !remark.text.is_empty());
    remarks
}

fn without_mark(line: &str) -> &str {
    line.strip_prefix(MARK).map_or(line, |rest| rest.strip_prefix(' ').unwrap_or(rest))
}

/// One message to the agent with all remarks.
pub(crate) fn format_message(remarks: &[Remark]) -> String {
    let mut out = String::from("I have reviewed your work. Please address these remarks:\n");
    for remark in remarks {
        out.push('\n');
        match &remark.position {
            None => out.push_str("About the whole change:\n"),
            Some(DiffPosition { file, line, quote }) => {
                let line = line.map(|line| format!(":{line}")).unwrap_or_default();
                out.push_str(&format!("{file}{line}\n"));
                quote.iter().for_each(|quote| out.push_str(&format!("> {quote}\n")));
            }
        }
        out.push_str(&remark.text);
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

/// Reads a diff line by line and knows the current file and line.
#[derive(Debug, Default)]
struct DiffReader {
    file: Option<String>,
    /// The numbers of the next lines in the old and the new file; `None` outside a hunk.
    hunk: Option<Hunk>,
    last: Option<(u64, String)>,
}

#[derive(Debug)]
struct Hunk {
    old: u64,
    new: u64,
    old_left: u64,
    new_left: u64,
}

impl DiffReader {
    fn read_line(&mut self, line: &str) {
        match self.hunk.as_mut().filter(|hunk| hunk.old_left + hunk.new_left > 0) {
            Some(hunk) => {
                if let Some(number) = hunk.read_line(line) {
                    self.last = Some((number, line.to_owned()));
                }
            }
            None => self.read_header(line),
        }
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

    fn position(&self) -> Option<DiffPosition> {
        let file = self.file.clone()?;
        let (line, quote) = self.last.clone().unzip();
        Some(DiffPosition { file, line, quote })
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

    /// Reads one line and returns its number.
    fn read_line(&mut self, line: &str) -> Option<u64> {
        let (is_old, is_new) = match line.as_bytes().first() {
            Some(b'+') => (false, true),
            Some(b'-') => (true, false),
            Some(b'\\') => return None,
            // A line of both files. An editor may have removed the blank of an empty one.
            _ => (true, true),
        };
        let number = if is_new { self.new } else { self.old };
        if is_old {
            (self.old, self.old_left) = (self.old + 1, self.old_left.saturating_sub(1));
        }
        if is_new {
            (self.new, self.new_left) = (self.new + 1, self.new_left.saturating_sub(1));
        }
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "\
diff --git a/src/a.rs b/src/a.rs
index 1..2 100644
--- a/src/a.rs
+++ b/src/a.rs
@@ -10,4 +10,4 @@ fn main() {
 let a = 1;
 
-let b = 2;
+let c = 3;
 let d = 4;
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
--- a line
";

    /// The review file, with texts inserted after the lines that end with the given words.
    fn insert(inserted: &[(&str, &str)]) -> String {
        let mut out = String::new();
        for line in review_file(PATCH).lines() {
            out.push_str(line);
            out.push('\n');
            for (_, text) in inserted.iter().filter(|(after, _)| line.ends_with(after)) {
                out.push_str(text);
            }
        }
        out
    }

    fn position(file: &str, line: u64, quote: &str) -> Option<DiffPosition> {
        Some(DiffPosition { file: file.into(), line: Some(line), quote: Some(quote.into()) })
    }

    #[test]
    fn a_file_without_additions_has_no_remarks() {
        assert_eq!(parse_remarks(PATCH, &review_file(PATCH)), []);
        assert_eq!(parse_remarks(PATCH, &insert(&[("let c = 3;", "\n\n")])), []);
        assert_eq!(parse_remarks(PATCH, ""), []);
    }

    #[test]
    fn remarks_know_the_file_and_the_line_above_them() {
        let edited = insert(&[
            ("lines of the diff.", "Looks good on the whole.\n"),
            ("let b = 2;", ">> why did this go?\n"),
            ("let c = 3;", "a better name,\n\nplease\n"),
            ("-- a line", "good riddance\n"),
        ]);
        let found = parse_remarks(PATCH, &edited);
        let texts: Vec<&str> = found.iter().map(|remark| remark.text.as_str()).collect();
        assert_eq!(
            texts,
            ["Looks good on the whole.", "why did this go?", "a better name,\n\nplease", "good riddance"]
        );
        let positions: Vec<_> = found.into_iter().map(|remark| remark.position).collect();
        assert_eq!(
            positions,
            [
                None,
                position("src/a.rs", 12, "-let b = 2;"),
                position("src/a.rs", 12, "+let c = 3;"),
                position("gone", 1, "--- a line"),
            ]
        );
    }

    #[test]
    fn deleted_lines_of_the_diff_are_no_remarks() {
        let edited = "+let c = 3;\nshort it is\n";
        let found = parse_remarks(PATCH, edited);
        assert_eq!(
            found,
            [Remark { position: position("src/a.rs", 12, "+let c = 3;"), text: "short it is".into() }]
        );
    }

    #[test]
    fn one_message_has_all_remarks() {
        let edited = insert(&[("lines of the diff.", "Well done.\n"), ("let c = 3;", "a better name\n")]);
        assert_eq!(
            format_message(&parse_remarks(PATCH, &edited)),
            "\
I have reviewed your work. Please address these remarks:

About the whole change:
Well done.

src/a.rs:12
> +let c = 3;
a better name"
        );
    }
}
