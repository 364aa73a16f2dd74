//! Finds the end of a reply to a terminal query.

const ESC: u8 = 0x1b;

/// The length of the control sequence or text at the start; `None` while it is incomplete.
pub(crate) fn whole_len(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [] | [ESC] => None,
        [ESC, b'[', parameters @ ..] => {
            parameters.iter().position(|byte| (0x40..=0x7e).contains(byte)).map(|end| end + 3)
        }
        // OSC, DCS and APC end with BEL or ST.
        [ESC, b']' | b'P' | b'_', ..] => string_end(bytes),
        [ESC, _, ..] => Some(2),
        _ => Some(bytes.iter().position(|byte| *byte == ESC).unwrap_or(bytes.len())),
    }
}

fn string_end(bytes: &[u8]) -> Option<usize> {
    let bell = bytes.iter().position(|byte| *byte == 0x07).map(|at| at + 1);
    let st = bytes.windows(2).skip(2).position(|pair| pair == [ESC, b'\\']).map(|at| at + 4);
    match (bell, st) {
        (Some(bell), Some(st)) => Some(bell.min(st)),
        (bell, st) => bell.or(st),
    }
}

#[cfg(test)]
mod tests {
    use super::whole_len;

    #[test]
    fn a_reply_is_whole_at_its_last_byte_and_not_before() {
        for reply in [
            &b"\x1b[24;80R"[..],
            b"\x1b[?62;22c",
            b"\x1b]11;rgb:0/0/0\x1b\\",
            b"\x1b]4;1\x07",
            b"\x1bP1$r0m\x1b\\",
        ] {
            for cut in 0..reply.len() {
                assert_eq!(whole_len(&reply[..cut]), None, "{reply:?} cut at {cut}");
            }
            assert_eq!(whole_len(&[reply, b"rest"].concat()), Some(reply.len()));
        }
    }
}
