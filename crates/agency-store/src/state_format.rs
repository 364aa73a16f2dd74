//! The format of the state directory: `format.json` says which version of Agency wrote the directory last.
//!
//! A daemon that finds a higher format than it knows refuses to start and changes nothing. State without the file was
//! written before there was one, and every daemon adopts it. The file only protects against a downgrade: if it is lost
//! or cannot be read, the daemon reports that and writes it again.

use std::io;

use agency_api::paths::{StateDir, short_hash};
use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::bounded_read::{Links, read_bounded};

/// The format that this version writes, and the highest one that it reads.
///
/// Raise it if an older version would lose, misread or damage something in the new state: if a file moves, if a field
/// changes its meaning, or if an older daemon would delete what it does not know. New files and new optional fields
/// that an older version ignores do not raise it.
pub const CURRENT: u64 = 2;

/// `format.json`. Later versions may add fields, but never change these three.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Marker {
    format: u64,
    /// The version of Agency that wrote the file, for people.
    version: String,
    /// A digest of both: a spoiled digit must not look like a later format.
    check: String,
}

impl Marker {
    fn new(format: u64, version: &str) -> Marker {
        let check = short_hash(format!("{format} {version}").as_bytes());
        Marker { format, version: version.to_owned(), check }
    }

    fn is_whole(&self) -> bool {
        *self == Marker::new(self.format, &self.version)
    }
}

/// The state directory has a higher format than this version knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewerFormat {
    pub format: u64,
    /// For people, for example `Agency 1.2.0`.
    pub written_by: String,
}

/// Fails if the state directory has a higher format than this version knows. Writes nothing.
pub fn check(state: &StateDir) -> Result<(), NewerFormat> {
    match read(state) {
        Ok(Some(Marker { format, version, .. })) if format > CURRENT => {
            Err(NewerFormat { format, written_by: format!("Agency {version}") })
        }
        _ => Ok(()),
    }
}

/// Writes the format of this version, if the file does not have it yet. Only the daemon that holds the lock may call
/// this, after [`check`]. Returns what was wrong with the file.
pub fn mark(state: &StateDir, version: &str) -> Option<String> {
    let marker = Marker::new(CURRENT, version);
    let path = state.format();
    let problem = match read(state) {
        Ok(Some(found)) if found == marker => return None,
        Ok(_) => None,
        Err(cause) => Some(format!("{} could not be read: {cause}; it is written again", path.display())),
    };
    if let Some(problem) = &problem {
        tracing::warn!("{problem}");
    }
    let written = serde_json::to_vec_pretty(&marker)
        .map_err(io::Error::from)
        .and_then(|bytes| atomic::write(&path, &bytes));
    // The daemon must run on a full disk, too. The next daemon tries again.
    if let Err(cause) = written {
        tracing::warn!(%cause, path = %path.display(), "cannot write the format of the state directory");
    }
    problem
}

/// `None` if there is no file.
fn read(state: &StateDir) -> io::Result<Option<Marker>> {
    let bytes = match read_bounded(&state.format(), Links::Followed) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let marker: Marker = serde_json::from_slice(&bytes)?;
    match marker.is_whole() {
        true => Ok(Some(marker)),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "its digest does not fit")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> (tempfile::TempDir, StateDir) {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().to_path_buf());
        (dir, state)
    }

    fn content(state: &StateDir) -> String {
        std::fs::read_to_string(state.format()).unwrap()
    }

    #[test]
    fn state_without_a_format_is_adopted_and_marked() {
        let (_dir, state) = state();
        assert_eq!(check(&state), Ok(()));
        assert_eq!(mark(&state, "0.1.0"), None);
        let expected = "{\n  \"format\": 2,\n  \"version\": \"0.1.0\",\n  \"check\": \"b81fd88ff29c0276\"\n}";
        assert_eq!(content(&state), expected);
        assert_eq!(check(&state), Ok(()));
        assert_eq!(mark(&state, "0.2.0"), None);
        assert!(content(&state).contains("0.2.0"));
    }

    #[test]
    fn a_later_format_is_refused_and_stays() {
        let (_dir, state) = state();
        let check = Marker::new(3, "9.0.0").check;
        let text = format!(r#"{{"format": 3, "version": "9.0.0", "check": "{check}", "more": []}}"#);
        std::fs::write(state.format(), &text).unwrap();
        assert_eq!(
            super::check(&state),
            Err(NewerFormat { format: 3, written_by: "Agency 9.0.0".to_owned() })
        );
        assert_eq!(content(&state), text);
    }

    #[test]
    fn an_unreadable_file_stops_no_daemon_and_is_written_again() {
        let ours = serde_json::to_string(&Marker::new(2, "0.1.0")).unwrap();
        let (flipped, cut) = (ours.replace("\":2", "\":4"), &ours[..12]);
        for spoiled in [&b""[..], b"[]", b"\xff\xfe", br#"{"format": 3}"#, cut.as_bytes(), flipped.as_bytes()]
        {
            let (_dir, state) = state();
            std::fs::write(state.format(), spoiled).unwrap();
            assert_eq!(check(&state), Ok(()), "{spoiled:?}");
            let problem = mark(&state, "0.1.0").expect("reported");
            assert!(problem.contains("format.json could not be read"), "{problem}");
            assert_eq!(mark(&state, "0.1.0"), None, "{spoiled:?}");
        }
    }

    #[test]
    fn a_place_that_cannot_be_read_or_written_stops_no_daemon() {
        let (_dir, state) = state();
        std::fs::create_dir(state.format()).unwrap();
        assert_eq!(check(&state), Ok(()));
        assert!(mark(&state, "0.1.0").is_some());
    }
}
