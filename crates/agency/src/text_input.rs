//! Texts for agents, from the words of the command line or from standard input.

use std::ffi::{OsStr, OsString};
use std::io::Read;

use agency_api::{Bytes, Failure, FailureCode};

/// A keeper accepts at most 1 MiB at once, including the bytes that mark a paste.
pub(crate) const LONGEST_MESSAGE: usize = (1 << 20) - 1024;

/// A longer text of a task belongs in a file of the repository.
pub(crate) const LONGEST_TEXT: u64 = 16 << 20;

pub(crate) fn join_words(words: &[OsString]) -> Bytes {
    words.join(OsStr::new(" ")).into()
}

pub(crate) fn check_length(text: &Bytes) -> Result<(), Failure> {
    if text.0.len() <= LONGEST_MESSAGE {
        return Ok(());
    }
    Err(Failure::new(format!("the message is too long to type ({} bytes)", text.0.len()))
        .code(FailureCode::InvalidArgument)
        .because("a terminal takes at most 1 MiB at once")
        .hint("put it in a file and tell the agent to read that file"))
}

/// Reads standard input to its end. Fails if there are more than `limit` bytes.
pub(crate) fn read_stdin(limit: u64) -> Result<Vec<u8>, Failure> {
    let cannot_read =
        || Failure::new("cannot read the message from standard input").code(FailureCode::IoError);
    let mut text = Vec::new();
    std::io::stdin()
        .lock()
        .take(limit + 1)
        .read_to_end(&mut text)
        .map_err(|err| cannot_read().caused_by(&err))?;
    if text.len() as u64 > limit {
        return Err(Failure::new(format!(
            "the message on standard input is longer than {} MiB",
            limit >> 20
        ))
        .code(FailureCode::InvalidArgument)
        .hint("put it in a file in the repository and name that file in a short message"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn words_are_joined_byte_for_byte() {
        let odd = OsStr::from_bytes(b"\xff").to_owned();
        assert_eq!(join_words(&["cargo test".into(), odd]).0, b"cargo test \xff");
        assert_eq!(join_words(&["".into()]).0, b"");
    }

    #[test]
    fn a_text_that_no_keeper_accepts_is_refused_with_a_hint() {
        assert!(check_length(&Bytes(vec![b'x'; LONGEST_MESSAGE])).is_ok());
        let failure = check_length(&Bytes(vec![b'x'; 1 << 20])).expect_err("refused");
        assert_eq!(failure.message, "the message is too long to type (1048576 bytes)");
        assert!(failure.hint.is_some_and(|hint| hint.contains("in a file")));
    }
}
