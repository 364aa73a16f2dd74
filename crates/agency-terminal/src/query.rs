//! Recognises units that make a terminal answer, or that touch the clipboard.
//!
//! Does not answer them; `reply` does, once, whether or not there are viewers.

use crate::csi::Csi;
use crate::scan::{Kind, StringKind, Unit};

/// OSC numbers whose text may be a question mark without being a query.
const FREE_TEXT: [&[u8]; 9] = [b"0", b"1", b"2", b"7", b"8", b"9", b"133", b"633", b"777"];

/// Whether a viewer's terminal must not see this unit: it would answer too, or change the clipboard.
pub(crate) fn asks(unit: &Unit<'_>) -> bool {
    match unit.kind {
        // ENQ asks for the answerback message.
        Kind::Control => unit.raw == [0x05],
        // DECID.
        Kind::Escape => unit.body().last() == Some(&b'Z'),
        Kind::Csi => Csi::parse(unit.body()).is_some_and(|csi| csi_asks(&csi)),
        Kind::String(kind) => string_asks(kind, unit.body()),
        Kind::Text | Kind::Aborted | Kind::Piece { .. } => false,
    }
}

fn csi_asks(csi: &Csi) -> bool {
    match (csi.prefix, csi.intermediate, csi.last) {
        // DA1, DA2, DA3.
        (0 | b'>' | b'=', 0, b'c') => true,
        // DSR and CPR; `CSI > n` sets a keyboard option instead.
        (0 | b'?', 0, b'n') => true,
        // DECREQTPARM, XTVERSION, kitty keyboard, XTQMODKEYS, XTSMGRAPHICS.
        (0, 0, b'x') | (b'>', 0, b'q') | (b'?', 0, b'u' | b'm' | b'S') => true,
        // DECRQM.
        (0 | b'?', b'$', b'p') => true,
        // DECRQTSR, DECRQPSR, DECRQUPSS, DECRQCRA, DECRQDE, DECRQLP.
        (0, b'$', b'u' | b'w') | (0, b'&', b'u') | (0, b'*', b'y') => true,
        (0, b'"', b'v') | (0, b'\'', b'|') => true,
        // XTREPORTCOLORS, XTTITLEPOS, XTREPORTSGR.
        (0, b'#', b'R' | b'S' | b'|') => true,
        // Window reports; the other operations draw or store.
        (0, 0, b't') => matches!(csi.get(0), 11 | 13..=16 | 18..=21),
        _ => false,
    }
}

fn string_asks(kind: StringKind, body: &[u8]) -> bool {
    match kind {
        StringKind::Osc => osc_asks(body),
        // DECRQSS and XTGETTCAP.
        StringKind::Dcs => body.starts_with(b"$q") || body.starts_with(b"+q"),
        // The kitty graphics protocol asks with `a=q`.
        StringKind::Apc => {
            let control = body.split(|byte| *byte == b';').next().unwrap_or(body);
            control
                .strip_prefix(b"G")
                .is_some_and(|keys| keys.split(|byte| *byte == b',').any(|key| key == b"a=q"))
        }
        StringKind::Pm | StringKind::Sos => false,
    }
}

fn osc_asks(body: &[u8]) -> bool {
    let mut fields = body.split(|byte| *byte == b';');
    let number = fields.next().unwrap_or_default();
    let mut rest = fields;
    match number {
        // Reading and writing the clipboard needs consent.
        b"52" | b"5522" => true,
        // kitty's colour query is `key=?`, its notification query `p=?`.
        b"21" => rest.any(|field| field.ends_with(b"=?")),
        b"99" => rest.next().unwrap_or_default().split(|byte| *byte == b':').any(|key| key == b"p=?"),
        b"1337" => {
            let verb = rest.next().unwrap_or_default();
            [&b"Report"[..], b"RequestUpload", b"Capabilities"].iter().any(|asked| verb.starts_with(asked))
        }
        // Pointer shapes can be queried by name.
        b"22" => rest.next().unwrap_or_default().starts_with(b"?"),
        _ => !FREE_TEXT.contains(&number) && rest.any(|field| field == b"?"),
    }
}
