//! Tells keys that submit something (Enter, Escape, Ctrl-C) or end a line from other input of a terminal.

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// Enter, Escape and Ctrl-C in kitty's keyboard protocol.
const KITTY_KEYS: [&[u8]; 3] = [b"\x1b[13u", b"\x1b[27u", b"\x1b[99;5u"];
/// Enter, Ctrl-C and Ctrl-U in kitty's keyboard protocol.
const KITTY_LINE_ENDS: [&[u8]; 3] = [b"\x1b[13u", b"\x1b[99;5u", b"\x1b[117;5u"];

/// Whether these keys submit a line or a choice. `None` if they are no keys: a terminal also reports its mouse and its
/// focus as input.
pub(crate) fn submits(bytes: &[u8]) -> Option<bool> {
    let is_report = bytes.starts_with(b"\x1b[<") || bytes == b"\x1b[I" || bytes == b"\x1b[O";
    if bytes.is_empty() || is_report {
        return None;
    }
    let outside = outside_paste(bytes);
    let enter = outside.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0x03));
    Some(enter || outside == b"\x1b" || KITTY_KEYS.contains(&outside.as_slice()))
}

/// Whether these keys enter or clear the line that was typed before them.
pub(crate) fn ends_line(bytes: &[u8]) -> bool {
    let outside = outside_paste(bytes);
    outside.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0x03 | 0x15))
        || KITTY_LINE_ENDS.contains(&outside.as_slice())
}

/// The ends of lines in a paste do not submit it.
fn outside_paste(bytes: &[u8]) -> Vec<u8> {
    match (find(bytes, PASTE_BEGINS), find(bytes, PASTE_ENDS)) {
        (Some(begin), Some(end)) if begin < end => {
            [&bytes[..begin], &bytes[end + PASTE_ENDS.len()..]].concat()
        }
        (Some(begin), None) => bytes[..begin].to_vec(),
        _ => bytes.to_vec(),
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_escape_and_ctrl_c_submit_and_pasted_lines_do_not() {
        for (keys, expected) in [
            ("y", Some(false)),
            ("make\r", Some(true)),
            ("\x03", Some(true)),
            ("\x1b", Some(true)),
            ("\x1b[A", Some(false)),
            ("\x1b[27u", Some(true)),
            ("\x1b[99;5u", Some(true)),
            ("\x1b[13;2u", Some(false)),
            ("\x1b[200~one\ntwo\x1b[201~", Some(false)),
            ("\x1b[200~one\ntwo\x1b[201~\r", Some(true)),
            ("\x1b[I", None),
            ("\x1b[<35;1;1M", None),
            ("", None),
        ] {
            assert_eq!(submits(keys.as_bytes()), expected, "{keys:?}");
        }
    }
}
