//! Files with one JSON document per line, which are rotated when they are long.
//!
//! Invariant: a crash or a full disk damages only the line that was being written.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    /// A longer file is renamed, and replaces the older file beside it.
    rotate_at_bytes: u64,
}

impl JsonLines {
    pub fn at(path: PathBuf, rotate_at_bytes: u64) -> JsonLines {
        JsonLines { path, rotate_at_bytes }
    }

    /// Opens the file for each line: lines are rare, and hundreds of runs need the file descriptors.
    pub fn append(&self, line: &impl Serialize) -> io::Result<()> {
        let (mut file, mut len) = self.open()?;
        if len > self.rotate_at_bytes {
            std::fs::rename(&self.path, older_path(&self.path))?;
            (file, len) = self.open()?;
        }
        let mut bytes = if ends_in_partial_line(&file, len)? { vec![b'\n'] } else { Vec::new() };
        serde_json::to_writer(&mut bytes, line)?;
        bytes.push(b'\n');
        file.write_all(&bytes)
    }

    /// Returns all readable lines, oldest first.
    pub fn read<T: DeserializeOwned>(&self) -> io::Result<Vec<T>> {
        let mut lines = Vec::new();
        for path in [older_path(&self.path), self.path.clone()] {
            lines.extend(read_if_exists(&path)?.split(|byte| *byte == b'\n').filter_map(parse_line));
        }
        Ok(lines)
    }

    pub fn last<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        for path in [self.path.clone(), older_path(&self.path)] {
            if let Some(last) = read_if_exists(&path)?.rsplit(|byte| *byte == b'\n').find_map(parse_line) {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }

    fn open(&self) -> io::Result<(File, u64)> {
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&self.path)?;
        let len = file.metadata()?.len();
        Ok((file, len))
    }
}

fn older_path(path: &Path) -> PathBuf {
    path.with_extension("jsonl.1")
}

fn ends_in_partial_line(file: &File, len: u64) -> io::Result<bool> {
    let Some(last) = len.checked_sub(1) else { return Ok(false) };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte != *b"\n")
}

fn read_if_exists(path: &Path) -> io::Result<Vec<u8>> {
    match std::fs::read(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        content => content,
    }
}

fn parse_line<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rotate_at_bytes: u64) -> (tempfile::TempDir, JsonLines) {
        let dir = tempfile::tempdir().unwrap();
        let lines = JsonLines::at(dir.path().join("x.jsonl"), rotate_at_bytes);
        (dir, lines)
    }

    #[test]
    fn a_partial_line_damages_no_other() {
        let (_dir, lines) = lines(1 << 20);
        assert_eq!(lines.last::<u64>().unwrap(), None);
        lines.append(&1).unwrap();
        lines.open().unwrap().0.write_all(b"{\"half").unwrap();
        assert_eq!(lines.last::<u64>().unwrap(), Some(1));
        lines.append(&2).unwrap();
        lines.append(&3).unwrap();
        assert_eq!(lines.read::<u64>().unwrap(), [1, 2, 3]);
    }

    #[test]
    fn a_long_file_is_rotated_and_the_oldest_lines_go() {
        let (_dir, lines) = lines(19);
        (10..40).for_each(|number| lines.append(&number).unwrap());
        let kept = lines.read::<u64>().unwrap();
        assert!(kept.len() < 20 && kept.is_sorted() && kept.last() == Some(&39), "{kept:?}");
        assert_eq!(lines.last::<u64>().unwrap(), Some(39));
    }
}
