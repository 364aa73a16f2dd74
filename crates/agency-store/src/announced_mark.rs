//! `told` in a run's directory: what happened before this record of its journal has been told.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// 0: nothing of it, or nobody knows.
pub fn read(path: &Path) -> u64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Once it has been told: who is killed in between tells it again, which is better than never.
pub fn write(path: &Path, next_seq: u64) -> io::Result<()> {
    let file = File::options().create(true).write(true).truncate(false).open(path)?;
    // In place and always as long, so that a daemon that is killed here leaves no empty file.
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
        assert_eq!(read(&path), 7, "as older versions wrote it");
        for next_seq in [12, 100_000, 3] {
            write(&path, next_seq).unwrap();
            assert_eq!(read(&path), next_seq);
        }
    }
}
