//! The payload bytes of every kind of body.
//!
//! Knows nothing of headers and checksums. Small fields come first, then the bulk bytes, unchanged. A kind
//! that this version does not know becomes `Unknown`.

use crate::body::{Body, BodyRef, ExitStatus, GapCause, Source, StopSignal, Stream};
use crate::payload::Payload;

pub(crate) mod kind {
    // 0 is never used: a page of zeros must not look like a record.
    pub(crate) const OUTPUT: u8 = 1;
    pub(crate) const INPUT: u8 = 2;
    pub(crate) const HIDDEN_INPUT: u8 = 3;
    pub(crate) const RESIZE: u8 = 4;
    pub(crate) const EXIT: u8 = 5;
    pub(crate) const NOTE: u8 = 6;
    pub(crate) const ANCHOR: u8 = 7;
    pub(crate) const GAP: u8 = 8;
    pub(crate) const CHECKPOINT: u8 = 9;
}

impl BodyRef<'_> {
    pub(crate) fn kind_and_flags(&self) -> (u8, u8) {
        match *self {
            BodyRef::Output { stream, .. } => (kind::OUTPUT, stream.code()),
            BodyRef::Input { source, .. } => (kind::INPUT, source.code()),
            BodyRef::HiddenInput { source, .. } => (kind::HIDDEN_INPUT, source.code()),
            BodyRef::Resize { .. } => (kind::RESIZE, 0),
            BodyRef::Exit { status, stopped_by } => {
                (kind::EXIT, status.code() | stop_signal_code(stopped_by) << 4)
            }
            BodyRef::Note { .. } => (kind::NOTE, 0),
            BodyRef::Anchor { .. } => (kind::ANCHOR, 0),
            BodyRef::Gap { cause, .. } => (kind::GAP, cause.code()),
            BodyRef::Checkpoint { .. } => (kind::CHECKPOINT, 0),
            BodyRef::Unknown { kind, flags, .. } => (kind, flags),
        }
    }

    /// Returns the bulk bytes, which are stored unchanged at the end of the payload.
    pub(crate) fn bulk(&self) -> &[u8] {
        match self {
            BodyRef::Output { bytes, .. }
            | BodyRef::Input { bytes, .. }
            | BodyRef::Note { bytes, .. }
            | BodyRef::Checkpoint { bytes, .. }
            | BodyRef::Unknown { bytes, .. } => bytes,
            BodyRef::HiddenInput { .. }
            | BodyRef::Resize { .. }
            | BodyRef::Exit { .. }
            | BodyRef::Anchor { .. }
            | BodyRef::Gap { .. } => &[],
        }
    }

    pub(crate) fn payload_len(&self) -> usize {
        let fields = match self {
            BodyRef::Output { .. } | BodyRef::Unknown { .. } => 0,
            BodyRef::Input { source, .. } => source.encoded_len(),
            BodyRef::HiddenInput { source, .. } => source.encoded_len() + 8,
            BodyRef::Exit { .. } => 4,
            BodyRef::Resize { .. } | BodyRef::Gap { .. } | BodyRef::Checkpoint { .. } => 8,
            BodyRef::Note { tag, .. } => 8 + tag.len(),
            BodyRef::Anchor { .. } => 32,
        };
        fields + self.bulk().len()
    }

    pub(crate) fn encode_payload(&self, out: &mut Vec<u8>) {
        self.encode_fields(out);
        out.extend_from_slice(self.bulk());
    }

    fn encode_fields(&self, out: &mut Vec<u8>) {
        match *self {
            BodyRef::Output { .. } | BodyRef::Unknown { .. } => {}
            BodyRef::Input { source, .. } => source.encode(out),
            BodyRef::HiddenInput { source, len } => {
                source.encode(out);
                out.extend_from_slice(&len.to_le_bytes());
            }
            BodyRef::Resize { cols, rows, x_pixels, y_pixels } => {
                for side in [cols, rows, x_pixels, y_pixels] {
                    out.extend_from_slice(&side.to_le_bytes());
                }
            }
            BodyRef::Exit { status, .. } => out.extend_from_slice(&status.number().to_le_bytes()),
            BodyRef::Note { tag, .. } => {
                out.extend_from_slice(&(tag.len() as u64).to_le_bytes());
                out.extend_from_slice(tag.as_bytes());
            }
            BodyRef::Anchor { wall_unix_ns, boottime_ns, boot_id } => {
                out.extend_from_slice(&wall_unix_ns.to_le_bytes());
                out.extend_from_slice(&boottime_ns.to_le_bytes());
                out.extend_from_slice(&boot_id);
            }
            BodyRef::Gap { output_bytes, .. } => out.extend_from_slice(&output_bytes.to_le_bytes()),
            BodyRef::Checkpoint { at_seq, .. } => out.extend_from_slice(&at_seq.to_le_bytes()),
        }
    }
}

impl Body {
    /// Decodes a payload. One that does not fit its kind comes from a newer version and becomes `Unknown`.
    pub(crate) fn decode(kind: u8, flags: u8, payload: &[u8]) -> Body {
        Body::decode_known(kind, flags, Payload::new(payload)).unwrap_or_else(|| Body::Unknown {
            kind,
            flags,
            bytes: payload.to_vec(),
        })
    }

    /// Newer versions may add fields at the end of a payload without bulk bytes. Unknown ones are skipped.
    fn decode_known(kind: u8, flags: u8, mut payload: Payload<'_>) -> Option<Body> {
        Some(match kind {
            kind::OUTPUT => Body::Output { stream: Stream::from_code(flags)?, bytes: payload.rest() },
            kind::INPUT => {
                Body::Input { source: Source::decode(flags, &mut payload)?, bytes: payload.rest() }
            }
            kind::HIDDEN_INPUT => {
                Body::HiddenInput { source: Source::decode(flags, &mut payload)?, len: payload.u64()? }
            }
            kind::RESIZE => Body::Resize {
                cols: payload.u16()?,
                rows: payload.u16()?,
                x_pixels: payload.u16()?,
                y_pixels: payload.u16()?,
            },
            kind::EXIT => Body::Exit {
                status: ExitStatus::from_code(flags & 0xf, payload.i32()?)?,
                stopped_by: stop_signal_from_code(flags >> 4)?,
            },
            kind::NOTE => {
                let tag_len = payload.u64()?;
                Body::Note { tag: payload.text(tag_len)?, bytes: payload.rest() }
            }
            kind::ANCHOR => Body::Anchor {
                wall_unix_ns: payload.i64()?,
                boottime_ns: payload.u64()?,
                boot_id: payload.array()?,
            },
            kind::GAP => Body::Gap { output_bytes: payload.u64()?, cause: GapCause::from_code(flags)? },
            kind::CHECKPOINT => Body::Checkpoint { at_seq: payload.u64()?, bytes: payload.rest() },
            _ => return None,
        })
    }
}

impl Stream {
    fn code(self) -> u8 {
        match self {
            Stream::Terminal => 0,
            Stream::Stdout => 1,
            Stream::Stderr => 2,
        }
    }

    fn from_code(code: u8) -> Option<Stream> {
        [Stream::Terminal, Stream::Stdout, Stream::Stderr].into_iter().find(|stream| stream.code() == code)
    }
}

impl Source {
    fn code(self) -> u8 {
        match self {
            Source::User => 0,
            Source::Send => 1,
            Source::Answer { .. } => 2,
        }
    }

    fn encoded_len(self) -> usize {
        if matches!(self, Source::Answer { .. }) { 8 } else { 0 }
    }

    fn encode(self, out: &mut Vec<u8>) {
        if let Source::Answer { output_offset } = self {
            out.extend_from_slice(&output_offset.to_le_bytes());
        }
    }

    fn decode(code: u8, payload: &mut Payload<'_>) -> Option<Source> {
        match code {
            0 => Some(Source::User),
            1 => Some(Source::Send),
            2 => Some(Source::Answer { output_offset: payload.u64()? }),
            _ => None,
        }
    }
}

impl ExitStatus {
    fn code(self) -> u8 {
        match self {
            ExitStatus::Code(_) => 0,
            ExitStatus::Signal(_) => 1,
            ExitStatus::Unknown => 2,
        }
    }

    fn number(self) -> i32 {
        match self {
            ExitStatus::Code(number) | ExitStatus::Signal(number) => number,
            ExitStatus::Unknown => 0,
        }
    }

    fn from_code(code: u8, number: i32) -> Option<ExitStatus> {
        match code {
            0 => Some(ExitStatus::Code(number)),
            1 => Some(ExitStatus::Signal(number)),
            2 => Some(ExitStatus::Unknown),
            _ => None,
        }
    }
}

fn stop_signal_code(stopped_by: Option<StopSignal>) -> u8 {
    match stopped_by {
        None => 0,
        Some(StopSignal::Term) => 1,
        Some(StopSignal::Kill) => 2,
    }
}

/// The outer `Option` is `None` for a code that this version does not know.
fn stop_signal_from_code(code: u8) -> Option<Option<StopSignal>> {
    [None, Some(StopSignal::Term), Some(StopSignal::Kill)]
        .into_iter()
        .find(|signal| stop_signal_code(*signal) == code)
}

impl GapCause {
    fn code(self) -> u8 {
        match self {
            GapCause::DiskFull => 0,
            GapCause::KeeperLost => 1,
            GapCause::Retention => 2,
            GapCause::Corrupt => 3,
        }
    }

    fn from_code(code: u8) -> Option<GapCause> {
        [GapCause::DiskFull, GapCause::KeeperLost, GapCause::Retention, GapCause::Corrupt]
            .into_iter()
            .find(|cause| cause.code() == code)
    }
}
