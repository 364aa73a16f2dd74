//! The files that a removal deletes and Agency cannot restore.
//!
//! Only counted and named here: `remove` refuses what must not be lost.

use std::path::PathBuf;

use crate::disk::DiskKind;
use crate::error::shown;
use crate::ignored::IgnoredFiles;

/// The files that a removal deletes and Agency cannot restore.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lost {
    /// The number of ignored files.
    pub ignored_files: u64,
    /// Their size.
    pub ignored_bytes: u64,
    /// Pipes, sockets and devices, and files that cannot be read.
    pub unsaved: Vec<PathBuf>,
}

impl Lost {
    pub(crate) fn of(ignored: &IgnoredFiles, are_ignored_saved: bool, unsaved: Vec<PathBuf>) -> Self {
        let mut lost = Self { unsaved, ..Self::default() };
        if are_ignored_saved {
            lost.unsaved.extend(ignored.of_kind(DiskKind::Special).map(|entry| entry.path.clone()));
        } else {
            let files = ignored.disk.entries.iter();
            for entry in files.filter(|entry| !matches!(entry.kind, DiskKind::Directory { .. })) {
                lost.ignored_files += 1;
                lost.ignored_bytes += if entry.kind == DiskKind::File { entry.size } else { 0 };
            }
        }
        lost.unsaved.extend(ignored.disk.unreadable.iter().map(|(path, _)| path.clone()));
        lost.unsaved.sort();
        lost
    }

    /// Returns a sentence for each kind of loss, for the user.
    pub fn sentences(&self) -> Vec<String> {
        let bytes = format_bytes(self.ignored_bytes);
        let ignored = match self.ignored_files {
            0 => None,
            1 => Some(format!("1 ignored file ({bytes}) cannot be restored later")),
            files => Some(format!("{files} ignored files ({bytes}) cannot be restored later")),
        };
        let unsaved = (!self.unsaved.is_empty())
            .then(|| format!("these cannot be saved or restored: {}", shown(&self.unsaved)));
        ignored.into_iter().chain(unsaved).collect()
    }
}

fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "kB", "MB", "GB", "TB"];
    let (mut rest, mut unit) = (bytes, 0);
    let mut tenths = 0;
    while rest >= 1000 && unit + 1 < UNITS.len() {
        tenths = rest % 1000 / 100;
        rest /= 1000;
        unit += 1;
    }
    match unit {
        0 if bytes == 1 => "1 byte".to_owned(),
        0 => format!("{rest} bytes"),
        unit => format!("{rest}.{tenths} {}", UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_counted_in_sentences() {
        assert!(Lost::default().sentences().is_empty());
        let lost = Lost { ignored_files: 1, ignored_bytes: 1, unsaved: vec!["pipe".into()] };
        let expected =
            ["1 ignored file (1 byte) cannot be restored later", "these cannot be saved or restored: pipe"];
        assert_eq!(lost.sentences(), expected);
        let lost = Lost { ignored_files: 2, ignored_bytes: 12_345_678, ..Lost::default() };
        assert_eq!(lost.sentences(), ["2 ignored files (12.3 MB) cannot be restored later"]);
        assert_eq!(format_bytes(999), "999 bytes");
    }
}
