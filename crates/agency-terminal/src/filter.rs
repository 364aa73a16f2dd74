//! What of a program's raw output may reach a viewer's terminal.
//!
//! Everything but queries and clipboard writes, byte for byte and never in half units. Queries are
//! answered by the screen, once; a viewer's terminal that saw them would answer again. What is broken
//! (half a character, half a sequence) passes as the screen understood it: left open, it could join
//! what follows a dropped query and become a new one.

use crate::query::asks;
use crate::scan::{Kind, Scanner, StringKind, Unit};

/// Ends a string.
const ST: &[u8] = b"\x1b\\";

#[derive(Clone, Debug, Default)]
pub struct ViewerFilter {
    scanner: Scanner,
    /// A clipboard write too long to be held is on its way past.
    dropping: bool,
}

impl ViewerFilter {
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on where a screen's own scanner stands: what that one holds is shown once it is whole.
    pub(crate) fn going_on(scanner: Scanner) -> Self {
        Self { scanner, dropping: false }
    }

    /// Appends to `out` what may be shown of `bytes`, and of what was held back before.
    pub fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let dropping = &mut self.dropping;
        self.scanner.feed(bytes, |unit| match unit.kind {
            Kind::Piece { first, last } => {
                pass_piece(unit.raw, first, dropping, out);
                if last && !*dropping && !terminated(unit.raw) {
                    out.extend_from_slice(ST);
                }
            }
            Kind::Text => pass_text(unit.raw, out),
            Kind::Aborted => out.extend(controls(&unit)),
            _ if asks(&unit) => out.extend(controls(&unit)),
            Kind::String(_) if !terminated(unit.raw) => {
                out.extend_from_slice(unit.raw);
                out.extend_from_slice(ST);
            }
            _ => out.extend_from_slice(unit.raw),
        });
    }

    /// Between two units: other bytes may be written to the viewer here.
    pub fn at_boundary(&self) -> bool {
        self.scanner.is_idle()
    }
}

/// Too long for a query. What is left to fear is a clipboard, and its number stands in front.
fn pass_piece(raw: &[u8], first: bool, dropping: &mut bool, out: &mut Vec<u8>) {
    if first {
        *dropping = raw.starts_with(b"\x1b]") && asks(&Unit { kind: Kind::String(StringKind::Osc), raw });
    }
    if !*dropping {
        out.extend_from_slice(raw);
    }
}

/// Of a unit that is not passed, the controls in it still act. Not ENQ, which asks.
fn controls(unit: &Unit<'_>) -> impl Iterator<Item = u8> {
    unit.controls().filter(|control| *control != 0x05)
}

fn terminated(string: &[u8]) -> bool {
    string.ends_with(ST) || string.ends_with(b"\x07")
}

/// C1 controls written in UTF-8 start sequences in some terminals, and so could ask. To our screen they
/// are nothing, so nothing is lost.
fn pass_text(text: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(text) {
        Ok(_) if !text.contains(&0xc2) => out.extend_from_slice(text),
        _ => {
            let text = String::from_utf8_lossy(text);
            out.extend(text.split(|c: char| c.is_control()).flat_map(str::bytes));
        }
    }
}
