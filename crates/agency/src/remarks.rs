//! Remarks that the user wrote into a diff, with the file and line that each remark is about.
//!
//! Every line that the user added to the diff belongs to a remark. Deleted lines of the diff mean nothing.

use agency_api::remark::{DiffSide, NewRemark};
use agency_core::patch::PatchReader;
use agency_core::remark::Side;

const HEADER: &str = "\
# Write each remark on new lines below the line that it is about. Save and quit:
# Agency sends all remarks to the agent in one message. Without remarks, it asks
# whether you accept the work. You may delete lines of the diff.
";

/// A remark may begin with this mark, which is removed.
const MARK: &str = ">>";

/// The text that the editor opens.
pub(crate) fn review_file(patch: &str) -> String {
    format!("{HEADER}\n{patch}")
}

/// The remarks that the user wrote into the file.
pub(crate) fn parse_remarks(patch: &str, edited: &str) -> Vec<NewRemark> {
    let unedited = review_file(patch);
    let original: Vec<&str> = unedited.lines().map(str::trim_end).collect();
    let mut remarks: Vec<NewRemark> = Vec::new();
    let (mut next, mut at, mut is_open) = (0, PatchReader::default(), false);
    for line in edited.lines().map(str::trim_end) {
        match original[next..].iter().position(|known| *known == line) {
            // An empty line that the user added is not an empty line further down in the diff.
            Some(skipped) if skipped == 0 || !line.is_empty() => {
                for line in &original[next..=next + skipped] {
                    at.read_line(line);
                }
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
                remarks.push(new_remark(&at, without_mark(line)));
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

fn new_remark(above: &PatchReader, text: &str) -> NewRemark {
    let last = above.last();
    NewRemark {
        file: above.file().map(str::to_owned),
        line: last.map(|last| last.line.number),
        side: match last.map(|last| last.side) {
            Some(Side::Old) => DiffSide::Old,
            Some(Side::New) | None => DiffSide::New,
        },
        quote: last.map(|last| last.line.text.clone()),
        text: text.to_owned(),
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

    fn remark(file: &str, line: u64, side: DiffSide, quote: &str, text: &str) -> NewRemark {
        let (file, quote) = (Some(file.to_owned()), Some(quote.to_owned()));
        NewRemark { file, line: Some(line), side, quote, text: text.to_owned() }
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
        let whole = NewRemark {
            file: None,
            line: None,
            side: DiffSide::New,
            quote: None,
            text: "Looks good on the whole.".to_owned(),
        };
        assert_eq!(
            found,
            [
                whole,
                remark("src/a.rs", 12, DiffSide::Old, "let b = 2;", "why did this go?"),
                remark("src/a.rs", 12, DiffSide::New, "let c = 3;", "a better name,\n\nplease"),
                remark("gone", 1, DiffSide::Old, "-- a line", "good riddance"),
            ]
        );
    }

    #[test]
    fn deleted_lines_of_the_diff_are_no_remarks() {
        let edited = "+let c = 3;\nshort it is\n";
        let found = parse_remarks(PATCH, edited);
        assert_eq!(found, [remark("src/a.rs", 12, DiffSide::New, "let c = 3;", "short it is")]);
    }
}
