//! Removes from a program's raw output what must not reach a viewer's terminal.
//!
//! Passes everything except queries and clipboard writes, unchanged and only in complete units. The screen answers
//! queries once; a viewer's terminal that saw them would answer again. Broken units (half a character, half a
//! sequence) pass in the form in which the screen understood them: left open, they could join the text after a
//! dropped query and form a new one.

use crate::query::asks;
use crate::scan::{Kind, Scanner, StringKind, Unit};

/// The string terminator.
const ST: &[u8] = b"\x1b\\";

/// A filter for one stream of output to viewers.
#[derive(Clone, Debug, Default)]
pub struct ViewerFilter {
    scanner: Scanner,
    /// The rest of a clipboard write that was too long to be held must be dropped.
    dropping: bool,
}

impl ViewerFilter {
    /// A filter at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Continues from a screen's scanner: a unit that the scanner holds is shown once it is complete.
    pub(crate) fn going_on(scanner: Scanner) -> Self {
        Self { scanner, dropping: false }
    }

    /// Appends to `out` the part of `bytes`, and of bytes held back before, that may be shown.
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

    /// Whether the stream is between two units, so that other bytes may be written to the viewer.
    pub fn at_boundary(&self) -> bool {
        self.scanner.is_idle()
    }
}

/// Too long for a query, so only a clipboard write must be dropped; its number comes first.
fn pass_piece(raw: &[u8], first: bool, dropping: &mut bool, out: &mut Vec<u8>) {
    if first {
        *dropping = raw.starts_with(b"\x1b]") && asks(&Unit { kind: Kind::String(StringKind::Osc), raw });
    }
    if !*dropping {
        out.extend_from_slice(raw);
    }
}

/// The controls inside a dropped unit, which still act. Except ENQ, which is a query.
fn controls(unit: &Unit<'_>) -> impl Iterator<Item = u8> {
    unit.controls().filter(|control| *control != 0x05)
}

fn terminated(string: &[u8]) -> bool {
    string.ends_with(ST) || string.ends_with(b"\x07")
}

/// Removes C1 controls in UTF-8: in some terminals they start sequences and could form a query. Our screen
/// ignores them, so nothing is lost.
fn pass_text(text: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(text) {
        Ok(_) if !text.contains(&0xc2) => out.extend_from_slice(text),
        _ => {
            let text = String::from_utf8_lossy(text);
            out.extend(text.split(|c: char| c.is_control()).flat_map(str::bytes));
        }
    }
}
