//! The bytes that type a text: one bracketed paste where the program understands pastes, otherwise keys.
//!
//! Does not press Enter at the end of the text.

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// The bytes to write for a text.
pub(super) fn encode_text(text: &[u8], bracketed_paste: bool) -> Vec<u8> {
    if bracketed_paste && !text.is_empty() {
        return [PASTE_BEGINS, &without(text, PASTE_ENDS), PASTE_ENDS].concat();
    }
    text.iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte }).collect()
}

/// A text or a part of it without the marks of its paste.
pub(super) fn without_marks(text: &[u8]) -> Vec<u8> {
    let text = text.strip_prefix(PASTE_BEGINS).unwrap_or(text);
    text.strip_suffix(PASTE_ENDS).unwrap_or(text).to_vec()
}

/// Removes a mark that would end the paste early and turn the rest of the text into keys.
fn without(text: &[u8], mark: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        match rest.strip_prefix(mark) {
            Some(after) => rest = after,
            None => {
                kept.push(*first);
                rest = tail;
            }
        }
    }
    // The bytes around a removed mark may form another one.
    if kept.len() == text.len() { kept } else { without(&kept, mark) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_its_paste() {
        let hostile = b"a\x1b[20\x1b[201~1~b";
        assert_eq!(encode_text(hostile, true), b"\x1b[200~ab\x1b[201~");
        assert_eq!(encode_text("é\n漢".as_bytes(), true), "\x1b[200~é\n漢\x1b[201~".as_bytes());
        assert_eq!(encode_text(b"one\ntwo", false), b"one\rtwo");
    }
}
