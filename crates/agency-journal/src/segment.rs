//! The files of a journal: their names, their headers, which are raw and which are sealed.
//!
//! Knows nothing of records. A header tells the first seq and output offset of its segment:
//! magic · version u32 · number u32 · first seq u64 · first output offset u64 · crc32.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::payload::Payload;

const MAGIC: [u8; 8] = *b"agencyj\n";
const VERSION: u32 = 1;
pub(crate) const SEGMENT_HEADER_BYTES: usize = 36;

/// Returns the bytes of a sealed segment, as `seal` gave them to its compressor.
pub type Unseal = fn(&Path) -> io::Result<Vec<u8>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) number: u32,
    pub(crate) first_seq: u64,
    pub(crate) first_offset: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SEGMENT_HEADER_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.first_seq.to_le_bytes());
        out.extend_from_slice(&self.first_offset.to_le_bytes());
        let crc = crc32fast::hash(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// Returns `Ok(None)` for a short or damaged header. The records after it may still be good.
    pub(crate) fn decode(bytes: &[u8]) -> io::Result<Option<SegmentHeader>> {
        let Some(bytes) = bytes.get(..SEGMENT_HEADER_BYTES) else { return Ok(None) };
        let (fields, crc) = bytes.split_at(SEGMENT_HEADER_BYTES - 4);
        if crc32fast::hash(fields).to_le_bytes() != crc {
            return Ok(None);
        }
        match Self::decode_fields(fields) {
            Some((version, _)) if version > VERSION => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("journal version {version} is newer than this program knows ({VERSION})"),
            )),
            decoded => Ok(decoded.map(|(_, header)| header)),
        }
    }

    fn decode_fields(bytes: &[u8]) -> Option<(u32, SegmentHeader)> {
        let mut fields = Payload::new(bytes);
        let magic: [u8; 8] = fields.array()?;
        let (version, number) = (fields.u32()?, fields.u32()?);
        let header = SegmentHeader { number, first_seq: fields.u64()?, first_offset: fields.u64()? };
        (magic == MAGIC).then_some((version, header))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
    pub(crate) is_sealed: bool,
}

impl Segment {
    pub(crate) fn raw(dir: &Path, number: u32) -> Segment {
        Segment { number, path: dir.join(format!("{number:08}.aj")), is_sealed: false }
    }

    fn from_path(path: PathBuf) -> Option<Segment> {
        let name = path.file_name()?.to_str()?;
        let (digits, suffix) = name.split_once('.')?;
        let is_sealed = match suffix {
            "aj" => false,
            "aj.zst" => true,
            _ => return None,
        };
        let number = digits.parse().ok().filter(|number| *number > 0)?;
        (digits.len() >= 8).then_some(Segment { number, path, is_sealed })
    }

    /// Returns the path that a raw segment gets when the daemon seals it.
    pub(crate) fn as_sealed(&self) -> Segment {
        Segment { path: self.path.with_extension("aj.zst"), is_sealed: true, ..*self }
    }

    /// Returns the bytes of a sealed segment, or `None` if it is gone. A damaged one gives no bytes, so that
    /// its records appear as a gap and later ones can still be read.
    pub(crate) fn unsealed(&self, unseal: Unseal) -> io::Result<Option<Vec<u8>>> {
        use io::ErrorKind::{InvalidData, NotFound, Other, UnexpectedEof};
        match unseal(&self.path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(err) if err.kind() == NotFound && !self.path.exists() => Ok(None),
            Err(err) if matches!(err.kind(), InvalidData | Other | UnexpectedEof) => Ok(Some(Vec::new())),
            Err(err) => Err(err),
        }
    }

    pub(crate) fn header(&self) -> io::Result<Option<SegmentHeader>> {
        let mut start = Vec::new();
        let want = FRONT_BYTES + SEGMENT_HEADER_BYTES;
        File::open(&self.path)?.take(want as u64).read_to_end(&mut start)?;
        SegmentHeader::decode(start.strip_prefix(&FRONT[..]).unwrap_or(&start))
    }
}

/// Lists the segments, oldest first. While the daemon seals a segment both forms exist for a moment: the raw
/// one counts.
pub(crate) fn list(dir: &Path) -> io::Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(dir)? {
        segments.extend(Segment::from_path(entry?.path()));
    }
    segments.sort_by_key(|segment| (segment.number, segment.is_sealed));
    segments.dedup_by_key(|segment| segment.number);
    Ok(segments)
}

/// Lists raw segments that will never be written to again, oldest first: the daemon may `seal` them.
pub fn sealed_segments(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut segments = list(dir)?;
    segments.pop();
    Ok(segments.into_iter().filter(|segment| !segment.is_sealed).map(|segment| segment.path).collect())
}

/// A zstd skippable frame that holds the segment header. The file stays an ordinary .zst, and the keeper,
/// which cannot decompress, still learns where the segment begins.
const FRONT: [u8; FRONT_BYTES] = [0x50, 0x2a, 0x4d, 0x18, SEGMENT_HEADER_BYTES as u8, 0, 0, 0];
const FRONT_BYTES: usize = 8;

/// Replaces a raw segment by its compressed form. `compress` makes one zstd frame.
pub fn seal(path: &Path, compress: impl FnOnce(&[u8]) -> io::Result<Vec<u8>>) -> io::Result<PathBuf> {
    let raw = fs::read(path)?;
    let sealed_path = path.with_extension("aj.zst");
    let unfinished = path.with_extension("aj.zst.tmp");
    let mut sealed = Vec::new();
    if let Some(header) = raw.get(..SEGMENT_HEADER_BYTES) {
        sealed.extend_from_slice(&FRONT);
        sealed.extend_from_slice(header);
    }
    sealed.extend_from_slice(&compress(&raw)?);
    write_private(&unfinished, &sealed)?;
    fs::rename(&unfinished, &sealed_path)?;
    match fs::remove_file(path) {
        Ok(()) => Ok(sealed_path),
        Err(err) => {
            // Retention has deleted the raw file (or it cannot be removed): the segment must not exist in
            // another form.
            fs::remove_file(&sealed_path)?;
            Err(err)
        }
    }
}

/// Writes and syncs, because the caller deletes the raw segment right after.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
