//! The file `told` in a run's directory: the daemon has announced all events before this record of the journal.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Returns 0 if the daemon has announced nothing, or if the file cannot be read.
pub fn read(path: &Path) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// The daemon writes the mark after the announcement. A daemon that is killed in between announces an event twice,
/// which is better than never.
pub fn write(path: &Path, next_seq: u64) -> io::Result<()> {
    let file = File::options().create(true).write(true).truncate(false).open(path)?;
    // Overwrite in place, with a fixed length, so a daemon that is killed here leaves no empty file.
    file.write_all_at(format!("{next_seq:020}").as_bytes(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mark_counts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("told");
        assert_eq!(read(&path), 0);
        std::fs::write(&path, "7").unwrap();
        assert_eq!(read(&path), 7, "the format of older versions");
        for next_seq in [12, 100_000, 3] {
            write(&path, next_seq).unwrap();
            assert_eq!(read(&path), next_seq);
        }
    }
}
