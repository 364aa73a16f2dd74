//! One journal record: its header, its checksum, its bytes on disk and in a frame.
//!
//! Knows nothing of files. Little endian:
//! mark u16 · kind u8 · flags u8 · payload length u32 · seq u64 · output offset u64 · at_ns u64 · crc32, then the payload.
//! The checksum covers the header before it and the payload.

use crate::body::{Body, BodyRef};
use crate::codec::kind;
use crate::payload::Payload;

/// No UTF-8 text contains the first byte, and a page of zeros contains neither.
const MARK: [u8; 2] = [0xf5, 0x9e];

/// The size of a record header.
pub const RECORD_HEADER_BYTES: usize = 36;
const CRC_AT: usize = RECORD_HEADER_BYTES - 4;

/// The longest payload. A damaged length must not make a reader wait for, or allocate, more than this. With
/// its own header and that of a frame a record stays within 64 MiB.
pub const MAX_PAYLOAD_BYTES: usize = (64 << 20) - 64;

/// One entry of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Counts every record of a run, from 1, without holes.
    pub seq: u64,
    /// The number of output bytes of the run before this record, over all streams.
    pub output_offset: u64,
    /// The time of CLOCK_MONOTONIC, in nanoseconds.
    pub at_ns: u64,
    /// The content.
    pub body: Body,
}

/// The result of decoding a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// The record, and the number of bytes that it took.
    Complete(Record, usize),
    /// A valid beginning: more bytes may complete it.
    Incomplete,
    /// Not a record. Try again `skip` (at least one) bytes further.
    Corrupt {
        /// The number of bytes to skip.
        skip: usize,
    },
}

impl Record {
    /// Appends the encoded record to `out`.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        encode_into(out, self.seq, self.output_offset, self.at_ns, &BodyRef::from(&self.body));
    }

    /// Decodes the record at the start of `bytes`.
    pub fn decode(bytes: &[u8]) -> Decoded {
        match parse(bytes) {
            Parsed::Complete(header) => {
                Decoded::Complete(header.record(&bytes[..header.encoded_len()]), header.encoded_len())
            }
            Parsed::Incomplete => Decoded::Incomplete,
            Parsed::Corrupt => Decoded::Corrupt { skip: next_mark(bytes) },
        }
    }

    /// Returns the output offset after this record.
    pub fn end_offset(&self) -> u64 {
        self.output_offset.saturating_add(BodyRef::from(&self.body).output_advance())
    }
}

pub(crate) fn encode_into(out: &mut Vec<u8>, seq: u64, output_offset: u64, at_ns: u64, body: &BodyRef<'_>) {
    let (kind, flags) = body.kind_and_flags();
    let start = out.len();
    // A longer payload than a length field can hold is longer than any reader accepts.
    let len = u32::try_from(body.payload_len()).unwrap_or(u32::MAX);
    out.reserve(RECORD_HEADER_BYTES + body.payload_len());
    out.extend_from_slice(&MARK);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&seq.to_le_bytes());
    out.extend_from_slice(&output_offset.to_le_bytes());
    out.extend_from_slice(&at_ns.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    body.encode_payload(out);
    let crc = checksum(&out[start..]);
    out[start + CRC_AT..start + RECORD_HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
}

fn checksum(record: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&record[..CRC_AT]);
    crc.update(&record[RECORD_HEADER_BYTES..]);
    crc.finalize()
}

/// The header of a record, before its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The kind of the body.
    pub kind: u8,
    /// Flags, whose meaning depends on the kind.
    pub flags: u8,
    /// The length of the payload in bytes.
    pub payload_len: usize,
    /// See [`Record::seq`].
    pub seq: u64,
    /// See [`Record::output_offset`].
    pub output_offset: u64,
    /// See [`Record::at_ns`].
    pub at_ns: u64,
    crc: u32,
}

impl RecordHeader {
    /// Reads the fields without checking the payload. They may be wrong.
    pub(crate) fn peek(bytes: &[u8]) -> Option<RecordHeader> {
        let mut fields = Payload::new(bytes);
        let mark: [u8; 2] = fields.array()?;
        let (kind, flags) = (fields.u8()?, fields.u8()?);
        let payload_len = fields.u32()? as usize;
        let (seq, output_offset, at_ns) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let header = RecordHeader { kind, flags, payload_len, seq, output_offset, at_ns, crc: fields.u32()? };
        (mark == MARK && payload_len <= MAX_PAYLOAD_BYTES).then_some(header)
    }

    /// Returns the length of header and payload.
    pub fn encoded_len(&self) -> usize {
        RECORD_HEADER_BYTES + self.payload_len
    }

    /// Whether the record is a checkpoint.
    pub fn is_checkpoint(&self) -> bool {
        self.kind == kind::CHECKPOINT
    }

    /// `encoded` is the whole record that begins with this header.
    pub(crate) fn record(&self, encoded: &[u8]) -> Record {
        let payload = encoded.get(RECORD_HEADER_BYTES..).unwrap_or_default();
        Record {
            seq: self.seq,
            output_offset: self.output_offset,
            at_ns: self.at_ns,
            body: Body::decode(self.kind, self.flags, payload),
        }
    }

    /// Returns the output offset after the record; `encoded` as in `record`.
    pub(crate) fn end_offset(&self, encoded: &[u8]) -> u64 {
        let advance = match self.kind {
            kind::OUTPUT => self.payload_len as u64,
            kind::GAP => BodyRef::from(&self.record(encoded).body).output_advance(),
            _ => 0,
        };
        self.output_offset.saturating_add(advance)
    }
}

pub(crate) enum Parsed {
    Complete(RecordHeader),
    Incomplete,
    Corrupt,
}

pub(crate) fn parse(bytes: &[u8]) -> Parsed {
    if bytes.len() < RECORD_HEADER_BYTES {
        let begun = bytes.len().min(MARK.len());
        return if bytes[..begun] == MARK[..begun] { Parsed::Incomplete } else { Parsed::Corrupt };
    }
    let Some(header) = RecordHeader::peek(bytes) else { return Parsed::Corrupt };
    match bytes.get(..header.encoded_len()) {
        None => Parsed::Incomplete,
        Some(whole) if checksum(whole) == header.crc => Parsed::Complete(header),
        Some(_) => Parsed::Corrupt,
    }
}

/// Returns the distance to the next mark after the first byte, or to the end.
pub(crate) fn next_mark(bytes: &[u8]) -> usize {
    let rest = bytes.get(1..).unwrap_or_default();
    1 + rest.iter().position(|byte| *byte == MARK[0]).unwrap_or(rest.len())
}

/// One record of a sequence of encoded ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded<'a> {
    /// The decoded header.
    pub header: RecordHeader,
    /// Header and payload, as they are in a file or a frame.
    pub bytes: &'a [u8],
}

impl Encoded<'_> {
    /// Decodes the payload.
    pub fn decode(&self) -> Record {
        self.header.record(self.bytes)
    }
}

/// Iterates over encoded records in a row. Ends at the first byte that is not a record.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    left: &'a [u8],
}

/// Splits bytes that this process has encoded or checked already: trusts lengths and computes no checksums.
pub fn records(encoded: &[u8]) -> Records<'_> {
    Records { left: encoded }
}

impl<'a> Iterator for Records<'a> {
    type Item = Encoded<'a>;

    fn next(&mut self) -> Option<Encoded<'a>> {
        let header = RecordHeader::peek(self.left)?;
        let (bytes, left) = self.left.split_at_checked(header.encoded_len())?;
        self.left = left;
        Some(Encoded { header, bytes })
    }
}
