//! Files that git converts when it reads or writes them: filters, line endings, `ident`, encodings.
//!
//! Finds those that git would not give back byte for byte. Files under git-lfs are left to git-lfs, which
//! stores their bytes itself.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::git::Git;
use crate::index_entries::{IndexEntry, join_paths};
use crate::temp_index::TempIndex;
use crate::tool::{ToolError, text};

/// The attributes of one file: name and value.
type Attributes = HashMap<String, String>;

/// A file that git converts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConvertedFile {
    pub(crate) path: PathBuf,
    /// Whether git writes the same bytes again.
    pub(crate) comes_back: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Conversion {
    None,
    /// Line endings change when git reads a file, and stay when it writes one. The file gets shorter, so one
    /// of the same size is not changed.
    OnlyShortens,
    Any,
}

/// The settings that decide about line endings where no attribute does.
struct LineEndings {
    autocrlf: Option<String>,
    writes_crlf: bool,
}

impl LineEndings {
    fn read(git: &Git) -> Result<Self, ToolError> {
        let setting = |key: &str| Ok(git.read_optional(&["config", "--get", key])?.map(text));
        let autocrlf = setting("core.autocrlf")?.filter(|value| value != "false");
        let eol = setting("core.eol")?;
        let is_true = autocrlf.as_deref().is_some_and(|value| value != "input");
        let writes_crlf = is_true || (autocrlf.is_none() && eol.is_some_and(|eol| eol == "crlf"));
        Ok(Self { autocrlf, writes_crlf })
    }

    fn conversion(&self, attributes: &Attributes) -> Conversion {
        let value = |name: &str| attributes.get(name).map(String::as_str);
        let is_given =
            |name: &str| value(name).is_some_and(|value| value != "unset" && value != "unspecified");
        match value("filter") {
            Some("lfs") => return Conversion::None,
            _ if is_given("filter") || is_given("ident") || is_given("working-tree-encoding") => {
                return Conversion::Any;
            }
            _ => {}
        }
        let is_text = value("text").or(value("crlf"));
        let is_converted = match is_text {
            Some("unset") => false,
            Some("unspecified") | None => is_given("eol") || self.autocrlf.is_some(),
            Some(_) => true,
        };
        let writes_crlf = match value("eol") {
            Some("crlf") => true,
            Some("lf") => false,
            _ => self.writes_crlf && value("crlf") != Some("input"),
        };
        match (is_converted, writes_crlf) {
            (false, _) => Conversion::None,
            (true, false) => Conversion::OnlyShortens,
            (true, true) => Conversion::Any,
        }
    }
}

/// Lists the files of the index that git converts, and whether they come back. `sizes` are the sizes on the
/// disk.
pub(crate) fn converted_files(
    temp_index: &TempIndex,
    root: &Path,
    entries: &[IndexEntry],
    sizes: &HashMap<&Path, u64>,
) -> Result<Vec<ConvertedFile>, ToolError> {
    let git = temp_index.git();
    let files: Vec<&IndexEntry> =
        entries.iter().filter(|entry| entry.is_file() && sizes.contains_key(&*entry.path)).collect();
    let attributes = attributes(git, &files)?;
    let line_endings = LineEndings::read(git)?;
    if attributes.is_empty() && line_endings.autocrlf.is_none() {
        return Ok(Vec::new());
    }
    let none = Attributes::new();
    let conversion =
        |entry: &IndexEntry| line_endings.conversion(attributes.get(&entry.path).unwrap_or(&none));
    let (shorter, others): (Vec<&IndexEntry>, Vec<&IndexEntry>) = files
        .into_iter()
        .filter(|entry| conversion(entry) != Conversion::None)
        .partition(|entry| conversion(entry) == Conversion::OnlyShortens);
    let mut converted = compare_checked_out(temp_index, root, &others)?;
    let stored = stored_sizes(git, &shorter)?;
    let changed = shorter.iter().filter(|entry| sizes.get(&*entry.path) != stored.get(&entry.id));
    converted.extend(changed.map(|entry| ConvertedFile { path: entry.path.clone(), comes_back: false }));
    Ok(converted)
}

fn attributes(git: &Git, files: &[&IndexEntry]) -> Result<HashMap<PathBuf, Attributes>, ToolError> {
    let input = join_paths(files.iter().map(|entry| &*entry.path));
    let listed = git.read_with_input(&["check-attr", "-z", "--stdin", "-a"], &input)?;
    let mut found: HashMap<PathBuf, Attributes> = HashMap::new();
    let mut fields = listed.split(|byte| *byte == 0);
    while let (Some(path), Some(name), Some(value)) = (fields.next(), fields.next(), fields.next()) {
        let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
        let path = crate::temp_index::parse_paths(path).pop().unwrap_or_default();
        found.entry(path).or_default().insert(text(name), text(value));
    }
    Ok(found)
}

/// Returns the sizes of these objects.
fn stored_sizes(git: &Git, files: &[&IndexEntry]) -> Result<HashMap<String, u64>, ToolError> {
    if files.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: String = files.iter().map(|entry| format!("{}\n", entry.id)).collect();
    let args = ["cat-file", "--batch-check=%(objectname) %(objectsize)", "--buffer"];
    let listed = git.read_with_input(&args, ids.as_bytes())?;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    let parse =
        |line: &str| line.split_once(' ').and_then(|(id, size)| Some((id.to_owned(), size.parse().ok()?)));
    Ok(listed.lines().filter_map(parse).collect())
}

/// Lets git write these files elsewhere, and compares them with those of the workspace.
fn compare_checked_out(
    temp_index: &TempIndex,
    root: &Path,
    files: &[&IndexEntry],
) -> Result<Vec<ConvertedFile>, ToolError> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let aside = tempfile::Builder::new().prefix("written-").tempdir_in(temp_index.dir());
    let aside = aside.map_err(|source| ToolError::Start { command: "git checkout-index".into(), source })?;
    let mut prefix = std::ffi::OsString::from("--prefix=");
    prefix.push(aside.path());
    prefix.push("/");
    let args = ["checkout-index".as_ref(), "--quiet".as_ref(), "-z".as_ref(), "--stdin".as_ref(), &*prefix];
    let input = join_paths(files.iter().map(|entry| &*entry.path));
    match temp_index.git().change_with_input(&args, &input) {
        // A filter failed: its file is missing, and so does not come back.
        Ok(()) | Err(ToolError::Failed { .. }) => {}
        Err(err) => return Err(err),
    }
    let compare = |path: &Path| has_same_bytes(&aside.path().join(path), &root.join(path)).unwrap_or(false);
    let compared = files.iter().map(|entry| &entry.path);
    Ok(compared.map(|path| ConvertedFile { path: path.clone(), comes_back: compare(path) }).collect())
}

fn has_same_bytes(one: &Path, other: &Path) -> io::Result<bool> {
    if fs::symlink_metadata(one)?.len() != fs::symlink_metadata(other)?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::new(File::open(one)?), BufReader::new(File::open(other)?));
    let (mut left, mut right) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let (read, other_read) = (fill(&mut one, &mut left)?, fill(&mut other, &mut right)?);
        if left[..read] != right[..other_read] {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut full = 0;
    while full < buffer.len() {
        match from.read(&mut buffer[full..])? {
            0 => break,
            read => full += read,
        }
    }
    Ok(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversion(line_endings: &LineEndings, attributes: &[(&str, &str)]) -> Conversion {
        let attributes = attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        line_endings.conversion(&attributes.collect())
    }

    #[test]
    fn attributes_and_settings_decide_about_the_conversion() {
        let unset = LineEndings { autocrlf: None, writes_crlf: false };
        for (attributes, expected) in [
            (&[][..], Conversion::None),
            (&[("binary", "set"), ("text", "unset")], Conversion::None),
            (&[("filter", "lfs"), ("text", "unset")], Conversion::None),
            (&[("text", "auto")], Conversion::OnlyShortens),
            (&[("text", "set"), ("eol", "lf")], Conversion::OnlyShortens),
            (&[("text", "auto"), ("eol", "crlf")], Conversion::Any),
            (&[("crlf", "set")], Conversion::OnlyShortens),
            (&[("filter", "strip")], Conversion::Any),
            (&[("ident", "set")], Conversion::Any),
            (&[("working-tree-encoding", "UTF-16")], Conversion::Any),
        ] {
            assert_eq!(conversion(&unset, attributes), expected, "{attributes:?}");
        }
        let windows = LineEndings { autocrlf: Some("true".into()), writes_crlf: true };
        assert_eq!(conversion(&windows, &[]), Conversion::Any);
        assert_eq!(conversion(&windows, &[("text", "unset")]), Conversion::None);
        let input = LineEndings { autocrlf: Some("input".into()), writes_crlf: false };
        assert_eq!(conversion(&input, &[]), Conversion::OnlyShortens);
    }
}
