//! What was typed into a terminal: text on its way, or something that is sent off.

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// Enter, Escape and Ctrl-C for programs that asked for keys without doubt.
const IN_KITTYS_WAY: [&[u8]; 3] = [b"\x1b[13u", b"\x1b[27u", b"\x1b[99;5u"];

/// Whether these keys send a line or a choice off; `None` if nobody pressed a key (a terminal also reports its
/// mouse and its focus as input).
pub(crate) fn sends_off(bytes: &[u8]) -> Option<bool> {
    let is_report = bytes.starts_with(b"\x1b[<") || bytes == b"\x1b[I" || bytes == b"\x1b[O";
    if bytes.is_empty() || is_report {
        return None;
    }
    // Lines of a paste are not sent off, they are pasted.
    let outside = match (find(bytes, PASTE_BEGINS), find(bytes, PASTE_ENDS)) {
        (Some(begin), Some(end)) if begin < end => {
            [&bytes[..begin], &bytes[end + PASTE_ENDS.len()..]].concat()
        }
        (Some(begin), None) => bytes[..begin].to_vec(),
        _ => bytes.to_vec(),
    };
    let enter = outside.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0x03));
    Some(enter || outside == b"\x1b" || IN_KITTYS_WAY.contains(&outside.as_slice()))
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enter_escape_and_ctrl_c_send_off_and_pasted_lines_do_not() {
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
            assert_eq!(sends_off(keys.as_bytes()), expected, "{keys:?}");
        }
    }
}
