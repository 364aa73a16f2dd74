//! A diff that a person has written remarks into, read back as remarks with the places they speak of.
//!
//! Whatever line was added to the diff is a remark; lines that were taken out of it are none.

const HEADER: &str = "\
# Write each remark on new lines below the line that it is about. Save and quit:
# Agency sends all remarks to the agent in one message. Without remarks, it asks
# whether you accept the work. You may delete lines of the diff.
";

/// Takes away the mark that remarks may begin with.
const MARK: &str = ">>";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    /// Absent: about all of it.
    pub(crate) place: Option<Place>,
    pub(crate) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: String,
    /// In the file as it is now, or, for a line that was removed, as it was.
    pub(crate) line: Option<u64>,
    /// The line of the diff above the remark.
    pub(crate) quote: Option<String>,
}

/// What the editor begins with.
pub(crate) fn sheet(patch: &str) -> String {
    format!("{HEADER}\n{patch}")
}

/// What was written into it.
pub(crate) fn remarks(patch: &str, edited: &str) -> Vec<Remark> {
    let begun = sheet(patch);
    let original: Vec<&str> = begun.lines().map(str::trim_end).collect();
    let mut remarks: Vec<Remark> = Vec::new();
    let (mut next, mut at, mut is_open) = (0, Reader::default(), false);
    for line in edited.lines().map(str::trim_end) {
        match original[next..].iter().position(|known| *known == line) {
            // An empty line of one's own is not the one that stands in the diff somewhere below.
            Some(skipped) if skipped == 0 || !line.is_empty() => {
                original[next..=next + skipped].iter().for_each(|line| at.pass(line));
                next += skipped + 1;
                is_open = false;
            }
            _ if is_open => {
                if let Some(last) = remarks.last_mut() {
                    last.text.push('\n');
                    last.text.push_str(unmarked(line));
                }
            }
            _ if line.is_empty() => {}
            _ => {
                remarks.push(Remark { place: at.place(), text: unmarked(line).to_owned() });
                is_open = true;
            }
        }
    }
    remarks.iter_mut().for_each(|remark| remark.text = remark.text.trim().to_owned());
    remarks.retain(|remark| !remark.text.is_empty());
    remarks
}

fn unmarked(line: &str) -> &str {
    line.strip_prefix(MARK).map_or(line, |rest| rest.strip_prefix(' ').unwrap_or(rest))
}

/// All of them, as one message to the agent.
pub(crate) fn message(remarks: &[Remark]) -> String {
    let mut out = String::from("I have reviewed your work. Please address these remarks:\n");
    for remark in remarks {
        out.push('\n');
        match &remark.place {
            None => out.push_str("About the whole change:\n"),
            Some(Place { file, line, quote }) => {
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

/// Where in the files a reader of the diff is.
#[derive(Debug, Default)]
struct Reader {
    file: Option<String>,
    /// The numbers of the next lines, before and after; none outside of a hunk.
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

impl Reader {
    fn pass(&mut self, line: &str) {
        match self.hunk.as_mut().filter(|hunk| hunk.old_left + hunk.new_left > 0) {
            Some(hunk) => {
                if let Some(number) = hunk.pass(line) {
                    self.last = Some((number, line.to_owned()));
                }
            }
            None => self.pass_head(line),
        }
    }

    fn pass_head(&mut self, line: &str) {
        if let Some(names) = line.strip_prefix("diff --git ") {
            self.file = names.split_once(" b/").map(|(_, name)| name.to_owned());
            (self.hunk, self.last) = (None, None);
        } else if let Some(name) = line.strip_prefix("+++ b/") {
            self.file = Some(name.to_owned());
        } else if let Some(hunk) = Hunk::begin(line) {
            (self.hunk, self.last) = (Some(hunk), None);
        }
    }

    fn place(&self) -> Option<Place> {
        let file = self.file.clone()?;
        let (line, quote) = self.last.clone().unzip();
        Some(Place { file, line, quote })
    }
}

impl Hunk {
    /// `@@ -1,2 +3,4 @@`
    fn begin(line: &str) -> Option<Hunk> {
        let ranges = line.strip_prefix("@@ -")?.split_once(" @@")?.0;
        let (old, new) = ranges.split_once(" +")?;
        let range = |range: &str| {
            let (begin, count) = range.split_once(',').unwrap_or((range, "1"));
            Some((begin.parse::<u64>().ok()?, count.parse::<u64>().ok()?))
        };
        let ((old, old_left), (new, new_left)) = (range(old)?, range(new)?);
        Some(Hunk { old, new, old_left, new_left })
    }

    /// The number of the line that was passed.
    fn pass(&mut self, line: &str) -> Option<u64> {
        let (is_old, is_new) = match line.as_bytes().first() {
            Some(b'+') => (false, true),
            Some(b'-') => (true, false),
            Some(b'\\') => return None,
            // A line of both; an empty one has lost its blank.
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

    /// The sheet with lines put in behind one that ends so.
    fn with(inserted: &[(&str, &str)]) -> String {
        let mut out = String::new();
        for line in sheet(PATCH).lines() {
            out.push_str(line);
            out.push('\n');
            for (_, text) in inserted.iter().filter(|(after, _)| line.ends_with(after)) {
                out.push_str(text);
            }
        }
        out
    }

    fn place(file: &str, line: u64, quote: &str) -> Option<Place> {
        Some(Place { file: file.into(), line: Some(line), quote: Some(quote.into()) })
    }

    #[test]
    fn nothing_written_is_no_remark() {
        assert_eq!(remarks(PATCH, &sheet(PATCH)), []);
        assert_eq!(remarks(PATCH, &with(&[("let c = 3;", "\n\n")])), []);
        assert_eq!(remarks(PATCH, ""), []);
    }

    #[test]
    fn remarks_know_the_file_and_the_line_above_them() {
        let edited = with(&[
            ("lines of the diff.", "Looks good on the whole.\n"),
            ("let b = 2;", ">> why did this go?\n"),
            ("let c = 3;", "a better name,\n\nplease\n"),
            ("-- a line", "good riddance\n"),
        ]);
        let found = remarks(PATCH, &edited);
        let texts: Vec<&str> = found.iter().map(|remark| remark.text.as_str()).collect();
        assert_eq!(
            texts,
            ["Looks good on the whole.", "why did this go?", "a better name,\n\nplease", "good riddance"]
        );
        let places: Vec<_> = found.into_iter().map(|remark| remark.place).collect();
        assert_eq!(
            places,
            [
                None,
                place("src/a.rs", 12, "-let b = 2;"),
                place("src/a.rs", 12, "+let c = 3;"),
                place("gone", 1, "--- a line"),
            ]
        );
    }

    #[test]
    fn what_was_taken_out_of_the_diff_is_no_remark() {
        let edited = "+let c = 3;\nshort it is\n";
        let found = remarks(PATCH, edited);
        assert_eq!(
            found,
            [Remark { place: place("src/a.rs", 12, "+let c = 3;"), text: "short it is".into() }]
        );
    }

    #[test]
    fn one_message_holds_them_all() {
        let edited = with(&[("lines of the diff.", "Well done.\n"), ("let c = 3;", "a better name\n")]);
        assert_eq!(
            message(&remarks(PATCH, &edited)),
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
