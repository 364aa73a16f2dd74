//! What a record says: output, input, resize, exit and the rest.
//!
//! Knows nothing of bytes on disk: `codec` has those.
//!
//! `Body` owns its bytes (what a reader gets); `BodyRef` borrows them (what a writer appends without a copy).

/// Where output came from. A PTY has one stream, pipes have two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    Terminal,
    Stdout,
    Stderr,
}

/// Who wrote the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Typed by the controller of an attached terminal.
    User,
    /// Sent through the API.
    Send,
    /// Our answer to a terminal query; the query ended at this output offset.
    Answer { output_offset: u64 },
}

/// How the process ended, as the kernel told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
    /// Nobody can tell any more.
    Unknown,
}

/// What our own stop needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopSignal {
    Term,
    Kill,
}

/// Why output is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GapCause {
    /// The disk took no more; the bytes from this offset on were read and dropped.
    DiskFull,
    /// The keeper died; what was printed until the next one came is not known.
    KeeperLost,
    /// The oldest segments were deleted; the bytes lie *before* this record's offset.
    Retention,
    /// The bytes on disk do not match their checksums.
    Corrupt,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    Output {
        stream: Stream,
        bytes: Vec<u8>,
    },
    Input {
        source: Source,
        bytes: Vec<u8>,
    },
    /// Typed while the terminal was canonical with ECHO off: the length is all that is kept.
    HiddenInput {
        source: Source,
        len: u64,
    },
    Resize {
        cols: u16,
        rows: u16,
        x_pixels: u16,
        y_pixels: u16,
    },
    /// `stopped_by`: the signal that our own stop needed, `None` if nobody asked.
    Exit {
        status: ExitStatus,
        stopped_by: Option<StopSignal>,
    },
    /// Opaque to the journal.
    Note {
        tag: String,
        bytes: Vec<u8>,
    },
    /// Ties the record's monotonic time to the wall clock and to the time since boot, suspend included.
    Anchor {
        wall_unix_ns: i64,
        boottime_ns: u64,
        boot_id: [u8; 16],
    },
    Gap {
        output_bytes: u64,
        cause: GapCause,
    },
    /// The state after record `at_seq`; opaque to the journal.
    Checkpoint {
        at_seq: u64,
        bytes: Vec<u8>,
    },
    /// Written by a newer version. Kept whole, skipped by readers that do not know it.
    Unknown {
        kind: u8,
        flags: u8,
        bytes: Vec<u8>,
    },
}

/// `Body` with borrowed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyRef<'a> {
    Output { stream: Stream, bytes: &'a [u8] },
    Input { source: Source, bytes: &'a [u8] },
    HiddenInput { source: Source, len: u64 },
    Resize { cols: u16, rows: u16, x_pixels: u16, y_pixels: u16 },
    Exit { status: ExitStatus, stopped_by: Option<StopSignal> },
    Note { tag: &'a str, bytes: &'a [u8] },
    Anchor { wall_unix_ns: i64, boottime_ns: u64, boot_id: [u8; 16] },
    Gap { output_bytes: u64, cause: GapCause },
    Checkpoint { at_seq: u64, bytes: &'a [u8] },
    Unknown { kind: u8, flags: u8, bytes: &'a [u8] },
}

impl<'a> From<&'a Body> for BodyRef<'a> {
    fn from(body: &'a Body) -> Self {
        match body {
            Body::Output { stream, bytes } => BodyRef::Output { stream: *stream, bytes },
            Body::Input { source, bytes } => BodyRef::Input { source: *source, bytes },
            Body::HiddenInput { source, len } => BodyRef::HiddenInput { source: *source, len: *len },
            Body::Resize { cols, rows, x_pixels, y_pixels } => {
                BodyRef::Resize { cols: *cols, rows: *rows, x_pixels: *x_pixels, y_pixels: *y_pixels }
            }
            Body::Exit { status, stopped_by } => BodyRef::Exit { status: *status, stopped_by: *stopped_by },
            Body::Note { tag, bytes } => BodyRef::Note { tag, bytes },
            Body::Anchor { wall_unix_ns, boottime_ns, boot_id } => {
                BodyRef::Anchor { wall_unix_ns: *wall_unix_ns, boottime_ns: *boottime_ns, boot_id: *boot_id }
            }
            Body::Gap { output_bytes, cause } => BodyRef::Gap { output_bytes: *output_bytes, cause: *cause },
            Body::Checkpoint { at_seq, bytes } => BodyRef::Checkpoint { at_seq: *at_seq, bytes },
            Body::Unknown { kind, flags, bytes } => BodyRef::Unknown { kind: *kind, flags: *flags, bytes },
        }
    }
}

impl BodyRef<'_> {
    /// How many bytes of output this record stands for: the next one's offset is that much higher.
    pub fn output_advance(&self) -> u64 {
        match *self {
            BodyRef::Output { bytes, .. } => bytes.len() as u64,
            // Those bytes were counted when they were written.
            BodyRef::Gap { cause: GapCause::Retention, .. } => 0,
            BodyRef::Gap { output_bytes, .. } => output_bytes,
            _ => 0,
        }
    }
}
