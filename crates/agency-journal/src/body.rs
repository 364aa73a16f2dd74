//! The content of a record: output, input, resize, exit and the rest.
//!
//! Knows nothing of bytes on disk: `codec` does.
//!
//! `Body` owns its bytes, for readers. `BodyRef` borrows them, so that a writer appends without a copy.

/// The stream that output came from. A PTY has one stream, pipes have two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// A pseudo-terminal.
    Terminal,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The author of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Typed by the controller of an attached terminal.
    User,
    /// Sent through the API.
    Send,
    /// The keeper's answer to a terminal query; the query ended at this output offset.
    Answer {
        /// The output offset at which the query ended.
        output_offset: u64,
    },
}

/// How the process ended, as the kernel reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    /// The exit code.
    Code(i32),
    /// The number of the signal that ended the process.
    Signal(i32),
    /// The status is lost.
    Unknown,
}

/// The signal that ended the process after a stop was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopSignal {
    /// SIGTERM or SIGHUP was enough.
    Term,
    /// SIGKILL was needed.
    Kill,
}

/// Why output is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GapCause {
    /// The disk was full. The keeper read the bytes from this offset on and dropped them.
    DiskFull,
    /// The keeper died. The output until the next keeper started is not known.
    KeeperLost,
    /// The oldest segments were deleted. The bytes are *before* this record's offset.
    Retention,
    /// The bytes on disk do not match their checksums.
    Corrupt,
}

/// The content of a record, with its own bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Output of the process.
    Output {
        /// The stream that it came from.
        stream: Stream,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Input to the process.
    Input {
        /// The author of the input.
        source: Source,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Input while the terminal was canonical with ECHO off. The journal stores only its length.
    HiddenInput {
        /// The author of the input.
        source: Source,
        /// The number of bytes.
        len: u64,
    },
    /// A new size of the terminal.
    Resize {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
        /// Width in pixels.
        x_pixels: u16,
        /// Height in pixels.
        y_pixels: u16,
    },
    /// The exit of the process. `stopped_by` is the signal that a requested stop needed, `None` without a
    /// request.
    Exit {
        /// How the process ended.
        status: ExitStatus,
        /// The signal that a requested stop needed; `None` without a request.
        stopped_by: Option<StopSignal>,
    },
    /// A note, opaque to the journal.
    Note {
        /// The kind of the note.
        tag: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Ties the record's monotonic time to the wall clock and to the time since boot, suspend included.
    Anchor {
        /// Wall clock, in nanoseconds since 1970.
        wall_unix_ns: i64,
        /// Time since boot, suspend included, in nanoseconds.
        boottime_ns: u64,
        /// The id of this boot of the machine.
        boot_id: [u8; 16],
    },
    /// Output that is missing.
    Gap {
        /// The number of missing bytes.
        output_bytes: u64,
        /// Why output is missing.
        cause: GapCause,
    },
    /// The state after record `at_seq`, opaque to the journal.
    Checkpoint {
        /// The last record that the state includes.
        at_seq: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A record of a newer version. Stored whole, and skipped by readers that do not know it.
    Unknown {
        /// The kind of the record.
        kind: u8,
        /// The flags of the record.
        flags: u8,
        /// The bytes.
        bytes: Vec<u8>,
    },
}

/// `Body` with borrowed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyRef<'a> {
    /// See [`Body::Output`].
    Output {
        /// The stream that it came from.
        stream: Stream,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// See [`Body::Input`].
    Input {
        /// The author of the input.
        source: Source,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// See [`Body::HiddenInput`].
    HiddenInput {
        /// The author of the input.
        source: Source,
        /// The number of bytes.
        len: u64,
    },
    /// See [`Body::Resize`].
    Resize {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
        /// Width in pixels.
        x_pixels: u16,
        /// Height in pixels.
        y_pixels: u16,
    },
    /// See [`Body::Exit`].
    Exit {
        /// How the process ended.
        status: ExitStatus,
        /// The signal that a requested stop needed; `None` without a request.
        stopped_by: Option<StopSignal>,
    },
    /// See [`Body::Note`].
    Note {
        /// The kind of the note.
        tag: &'a str,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// See [`Body::Anchor`].
    Anchor {
        /// Wall clock, in nanoseconds since 1970.
        wall_unix_ns: i64,
        /// Time since boot, suspend included, in nanoseconds.
        boottime_ns: u64,
        /// The id of this boot of the machine.
        boot_id: [u8; 16],
    },
    /// See [`Body::Gap`].
    Gap {
        /// The number of missing bytes.
        output_bytes: u64,
        /// Why output is missing.
        cause: GapCause,
    },
    /// See [`Body::Checkpoint`].
    Checkpoint {
        /// The last record that the state includes.
        at_seq: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// See [`Body::Unknown`].
    Unknown {
        /// The kind of the record.
        kind: u8,
        /// The flags of the record.
        flags: u8,
        /// The bytes.
        bytes: &'a [u8],
    },
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
    /// Returns the number of output bytes that this record accounts for. The offset of the next record is
    /// that much higher.
    pub fn output_advance(&self) -> u64 {
        match *self {
            BodyRef::Output { bytes, .. } => bytes.len() as u64,
            // These bytes were counted when they were written.
            BodyRef::Gap { cause: GapCause::Retention, .. } => 0,
            BodyRef::Gap { output_bytes, .. } => output_bytes,
            _ => 0,
        }
    }
}
