//! The keeper's protocol: frames on a byte stream.
//!
//! The stream may lead to another host, so nothing here assumes shared files or a local pid. Passing the PTY master as
//! a descriptor is an extra that both ends must offer.
//!
//! Invariant: fields and messages are only ever added. A newer daemon understands keepers two versions back, because a
//! keeper lives as long as its agent.

use std::io;

use serde::{Deserialize, Serialize};

use crate::{Bytes, ProcessIdentity};

/// The newest version that this build speaks.
pub const VERSION: u16 = 1;
/// The oldest version that this build understands.
pub const OLDEST_VERSION: u16 = 1;

/// A larger frame is an error: a checkpoint of a full scrollback is much smaller.
pub const MAX_FRAME_BYTES: usize = 64 << 20;

/// The descriptor on which a rescuing keeper finds the PTY master.
pub const RESCUE_FD: i32 = 3;

/// One frame of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// JSON of [`ToKeeper`], [`FromKeeper`] or [`LaunchSpec`].
    Control(Vec<u8>),
    /// One encoded journal record. With sequence number 0 the keeper could not write it (see [`FromKeeper::Journal`]):
    /// a follower shows it, and the journal will have a gap record instead.
    Record(Vec<u8>),
    /// Bytes for the agent.
    Input {
        /// Where the bytes come from.
        source: InputSource,
        /// The id that [`FromKeeper::InputTaken`] repeats.
        id: u64,
        /// The bytes to write.
        bytes: Vec<u8>,
    },
    /// A screen from which a reader of the journal can continue.
    Checkpoint {
        /// The checkpoint is the state after this record.
        at_seq: u64,
        /// The checkpoint, as the driver encodes it.
        bytes: Vec<u8>,
    },
    /// A note for the journal.
    Note {
        /// The kind of note.
        tag: String,
        /// The content of the note.
        bytes: Vec<u8>,
    },
}

/// Where input for the agent comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputSource {
    /// A person typed it.
    User,
    /// `agency send` or the queue.
    Send,
    /// The terminal's answer to a query of the agent.
    Answer {
        /// The end of the output record that has the query.
        output_offset: u64,
    },
}

const CONTROL: u8 = 0;
/// The kind byte of [`Frame::Record`]. Public because the keeper writes this header in front of records without copying
/// them.
pub const RECORD: u8 = 1;
const INPUT: u8 = 2;
const CHECKPOINT: u8 = 3;
const NOTE: u8 = 4;

impl Frame {
    /// A control frame with this message.
    pub fn control<T: Serialize>(message: &T) -> io::Result<Frame> {
        Ok(Frame::Control(serde_json::to_vec(message)?))
    }

    /// Appends the encoded frame.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        match self {
            Frame::Control(json) => put(out, CONTROL, &[json]),
            Frame::Record(record) => put(out, RECORD, &[record]),
            Frame::Input { source, id, bytes } => {
                let (source, offset) = match source {
                    InputSource::User => (0, 0),
                    InputSource::Send => (1, 0),
                    InputSource::Answer { output_offset } => (2, *output_offset),
                };
                put(out, INPUT, &[&[source], &offset.to_le_bytes(), &id.to_le_bytes(), bytes]);
            }
            Frame::Checkpoint { at_seq, bytes } => put(out, CHECKPOINT, &[&at_seq.to_le_bytes(), bytes]),
            Frame::Note { tag, bytes } => {
                let tag = &tag.as_bytes()[..tag.len().min(u8::MAX as usize)];
                put(out, NOTE, &[&[tag.len() as u8], tag, bytes]);
            }
        }
        let len = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&len.to_le_bytes());
    }

    /// The encoded frame.
    pub fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out
    }

    /// The first whole frame of `buffer` and its length in bytes. `None` if the frame is not complete.
    pub fn decode(buffer: &[u8]) -> Result<Option<(Frame, usize)>, FrameError> {
        let Some(header) = buffer.first_chunk::<4>() else { return Ok(None) };
        let len = u32::from_le_bytes(*header) as usize;
        if len == 0 || len > MAX_FRAME_BYTES {
            return Err(FrameError::Length(len));
        }
        match buffer.get(4..4 + len) {
            Some(body) => Ok(Some((Frame::from_body(body[0], &body[1..])?, 4 + len))),
            None => Ok(None),
        }
    }

    fn from_body(kind: u8, mut rest: &[u8]) -> Result<Frame, FrameError> {
        match kind {
            CONTROL => Ok(Frame::Control(rest.to_vec())),
            RECORD => Ok(Frame::Record(rest.to_vec())),
            INPUT => {
                let [source] = take(&mut rest)?;
                let output_offset = u64::from_le_bytes(take(&mut rest)?);
                let id = u64::from_le_bytes(take(&mut rest)?);
                let source = match source {
                    0 => InputSource::User,
                    1 => InputSource::Send,
                    2 => InputSource::Answer { output_offset },
                    other => return Err(FrameError::Source(other)),
                };
                Ok(Frame::Input { source, id, bytes: rest.to_vec() })
            }
            CHECKPOINT => {
                let at_seq = u64::from_le_bytes(take(&mut rest)?);
                Ok(Frame::Checkpoint { at_seq, bytes: rest.to_vec() })
            }
            NOTE => {
                let [len] = take(&mut rest)?;
                let (tag, bytes) = rest.split_at_checked(len as usize).ok_or(FrameError::Short)?;
                let tag = String::from_utf8(tag.to_vec()).map_err(|_| FrameError::Tag)?;
                Ok(Frame::Note { tag, bytes: bytes.to_vec() })
            }
            other => Err(FrameError::Kind(other)),
        }
    }
}

fn put(out: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    out.push(kind);
    for part in parts {
        out.extend_from_slice(part);
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], FrameError> {
    let (head, tail) = rest.split_first_chunk::<N>().ok_or(FrameError::Short)?;
    *rest = tail;
    Ok(*head)
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length is zero or too large.
    #[error("a frame of {0} bytes")]
    Length(usize),
    /// The kind byte is unknown.
    #[error("unknown frame kind {0}")]
    Kind(u8),
    /// The source of an input frame is unknown.
    #[error("unknown input source {0}")]
    Source(u8),
    /// The frame lacks a part.
    #[error("a frame that ends too soon")]
    Short,
    /// The tag of a note is not UTF-8.
    #[error("a note whose tag is not text")]
    Tag,
}

/// The order to start a run. A new keeper reads it from its standard input as a control frame. One checkpoint frame may
/// follow: the run's journal begins with it. The keeper reads to the end of the stream, so the writer must close it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// The id of the run.
    pub run_id: String,
    /// The name that `ps` shows, for example `1-fix-login`.
    pub name: String,
    /// The directory of the socket, the pid file and the journal. The daemon makes it, with mode 0700.
    pub run_dir: Bytes,
    /// Whether to start an agent or to take over a running one.
    pub start: Start,
    /// The size at which the keeper begins a new segment of the journal.
    pub segment_bytes: u64,
    /// The size of the journal above which the keeper deletes the oldest segments. `None` keeps all.
    pub max_journal_bytes: Option<u64>,
    /// The user's own soft and hard limit of open files. The keeper gives it back to the agent.
    #[serde(default)]
    pub open_files: Option<(u64, u64)>,
    /// How long the keeper waits for [`ToKeeper::Dismiss`] after its agent ended, before it leaves by itself.
    pub linger_ms: u64,
    /// Names of processes that the keeper does not end with the tree.
    #[serde(default)]
    pub spare: Vec<String>,
    /// Whose run it is: the content of `run.json` or `wire.json`. The keeper only repeats it in its welcome, so that a
    /// daemon can write a lost file again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<serde_json::Value>,
}

/// How a keeper gets its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Start {
    /// Start the agent.
    Spawn {
        /// The program and its arguments.
        argv: Vec<Bytes>,
        /// The whole environment.
        env: Vec<(Bytes, Bytes)>,
        /// The directory that the agent starts in.
        cwd: Bytes,
        /// A terminal or pipes.
        stdio: Stdio,
    },
    /// Take over a run whose keeper was killed. The PTY master is on [`RESCUE_FD`].
    Rescue {
        /// The agent's process, if the daemon knows it.
        child: Option<ProcessIdentity>,
        /// The environment of the launch.
        env: Vec<(Bytes, Bytes)>,
    },
}

/// The standard streams of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Stdio {
    /// A terminal.
    Pty {
        /// The size of the terminal.
        size: Size,
    },
    /// Pipes.
    Pipes,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Size {
    /// The number of columns.
    pub cols: u16,
    /// The number of rows.
    pub rows: u16,
    /// The width in pixels, 0 if unknown.
    #[serde(default)]
    pub x_pixels: u16,
    /// The height in pixels, 0 if unknown.
    #[serde(default)]
    pub y_pixels: u16,
}

impl Default for Size {
    fn default() -> Self {
        Size { cols: 80, rows: 24, x_pixels: 0, y_pixels: 0 }
    }
}

/// The one line of JSON that a new keeper writes to its standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchAnswer {
    /// The agent runs.
    Ready {
        /// The keeper's own process.
        keeper: ProcessIdentity,
        /// The agent's process. Its pid is 0 if a rescue found the terminal but no agent on it.
        child: ProcessIdentity,
    },
    /// A step of the launch failed.
    Failed {
        /// The step, for example `exec sh` or `open a terminal`.
        what: String,
        /// The error of the kernel.
        errno: i32,
    },
}

/// A message to a keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToKeeper {
    /// The first message. The keeper refuses connections with a lower `epoch` from then on.
    Hello {
        /// The oldest version that the peer understands.
        min: u16,
        /// The newest version that the peer understands.
        max: u16,
        /// The epoch of the daemon.
        epoch: u64,
        /// The name of the peer, for people.
        peer: String,
        /// Whether the peer wants a duplicate of the PTY master with the welcome.
        lifeline: bool,
    },
    /// Send every record from `from_seq` on, and then new ones as they come.
    Follow {
        /// The first record to send.
        from_seq: u64,
    },
    /// Change the size of the terminal.
    Resize {
        /// The new size.
        size: Size,
    },
    /// Send TERM and HUP to the whole tree, and KILL after the grace. The keeper answers with [`FromKeeper::Gone`].
    Stop {
        /// How long to wait before KILL.
        grace_ms: u64,
    },
    /// Send a probe.
    Probe {
        /// The id that the answer repeats.
        id: u64,
    },
    /// Send the environment of the launch, for a restart.
    Environment {
        /// The id that the answer repeats.
        id: u64,
    },
    /// Close the agent's input once the agent has taken all earlier input. Refused on a terminal.
    CloseInput,
    /// Leave: the peer has seen the exit. Refused while the agent lives.
    Dismiss,
    /// A message of a later version.
    #[serde(other)]
    Unknown,
}

/// A message of a keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromKeeper {
    /// The answer to [`ToKeeper::Hello`].
    Welcome(Welcome),
    /// The keeper refuses the peer's last message.
    Refused {
        /// Why.
        reason: String,
    },
    /// The agent has taken all of an input frame.
    InputTaken {
        /// The id of the frame.
        id: u64,
    },
    /// The keeper refuses an input frame.
    InputRefused {
        /// The id of the frame.
        id: u64,
        /// Why.
        reason: String,
    },
    /// The answer to [`ToKeeper::Probe`].
    Probe {
        /// The id of the request.
        id: u64,
        /// The probe.
        probe: Probe,
    },
    /// The answer to [`ToKeeper::Environment`].
    Environment {
        /// The id of the request.
        id: u64,
        /// The environment of the launch.
        env: Vec<(Bytes, Bytes)>,
    },
    /// These records are in compressed segments, which the daemon reads itself. The keeper sends the records after them.
    Sealed {
        /// The first of the records.
        from_seq: u64,
        /// The first record after them.
        until_seq: u64,
    },
    /// The agent has exited (its Exit record came before) and its tree is gone. The keeper sends this to followers after
    /// the last record and to the peer that requested the stop; other peers get it when they start following.
    Gone {
        /// Processes outside the agent's own group that the keeper ended.
        ended: Vec<Ended>,
    },
    /// The keeper cannot write the journal, or can write it again.
    Journal {
        /// Why it cannot. `None` if it can again.
        cause: Option<String>,
    },
    /// A message of a later version.
    #[serde(other)]
    Unknown,
}

/// The keeper's description of itself, for a new peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The version that both will speak.
    pub version: u16,
    /// The keeper's build, for people.
    pub build: String,
    /// The id of the run.
    pub run_id: String,
    /// The keeper's own process.
    pub keeper: ProcessIdentity,
    /// The agent's process.
    pub child: Option<ProcessIdentity>,
    /// The oldest record that the keeper can send.
    pub oldest_seq: u64,
    /// The next record that the keeper will write.
    pub next_seq: u64,
    /// The agent has exited and its tree is gone.
    pub gone: bool,
    /// A duplicate of the PTY master comes with this frame.
    pub lifeline: bool,
    /// Processes outside the agent's own group that the keeper ended.
    #[serde(default)]
    pub ended: Vec<Ended>,
    /// Whose run it is, as [`LaunchSpec::owner`] said. Older keepers do not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<serde_json::Value>,
    /// The highest epoch of a daemon that the keeper has accepted. Older keepers do not say it.
    #[serde(default)]
    pub epoch: u64,
}

/// The reason with which a keeper refuses a daemon whose epoch is lower than that of a daemon before.
pub fn newer_daemon_reason(newer_epoch: u64) -> String {
    format!("{NEWER_DAEMON}{newer_epoch}) has taken over")
}

/// The epoch in a [`newer_daemon_reason`]. `None` for every other reason.
pub fn newer_epoch(reason: &str) -> Option<u64> {
    let rest = reason.strip_prefix(NEWER_DAEMON).or_else(|| reason.strip_prefix(FIRST_NEWER_DAEMON))?;
    let (digits, _) = rest.split_once(')')?;
    digits.parse().ok()
}

/// A daemon finds the epoch behind these words.
const NEWER_DAEMON: &str = "a newer daemon (epoch ";

/// The first keepers said "a newer daemon (12) has been here". Such keepers may still live.
const FIRST_NEWER_DAEMON: &str = "a newer daemon (";

/// A process outside the agent's own group that the keeper ended with the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ended {
    /// The process id.
    pub pid: i32,
    /// The name of the process.
    pub name: String,
    /// Whether it ended only by SIGKILL.
    pub killed: bool,
}

/// The tag of notes that the keeper writes by itself: JSON of a [`Probe`], whenever it differs from the last one.
///
/// These probes have no `wchan` and no process that has ended. They have `state`, `syscall` and `timeout` only for a
/// process that is stopped (`T`) or that waits for the terminal (`S` and its call). In raw mode a short wake-up of a
/// program that watches several descriptors does not count as a difference.
pub const PROBE_TAG: &str = "probe";

/// The tag of the note that the agent has closed its standard output. The agent may still run. Pipes only.
pub const CLOSED_TAG: &str = "closed";

/// The tag of notes that an agent's hooks write: JSON of a [`HookNote`].
pub const HOOK_TAG: &str = "hook";

/// The environment variable with the path of the keeper's socket, for hooks.
pub const SOCKET_VARIABLE: &str = "AGENCY_KEEPER_SOCKET";

/// The parts of a hook report that the journal keeps: that something happened, but no prompts, commands or texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookNote {
    /// The hook's event: `PermissionRequest`, `Stop`…
    pub event: String,
    /// The agent's own id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The name of the tool, if the event is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The kind of a notification: `permission_prompt`, `idle_prompt`…
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The agent's message to the user, cut at 300 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The state of the agent's processes and its terminal at one moment, from the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// The terminal. Absent for an agent on pipes.
    pub terminal: Option<TerminalProbe>,
    /// The processes of the tree, parents before their children.
    pub processes: Vec<ProcessProbe>,
    /// The number of processes that a note leaves out. A note lists those of the foreground group first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

/// The state of a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalProbe {
    /// Whether programs read whole lines.
    pub canonical: bool,
    /// Whether the terminal echoes what is typed.
    pub echo: bool,
    /// The process group in the foreground.
    pub foreground_group: Option<i32>,
    /// Typed bytes that no program has read. In canonical mode the kernel counts whole lines only, and an end of file (^D)
    /// as no byte. `None` if the keeper cannot ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_waiting: Option<u64>,
}

/// The state of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessProbe {
    /// The process id.
    pub pid: i32,
    /// The process id of the parent.
    pub parent: i32,
    /// The process group.
    pub group: i32,
    /// The session of the kernel.
    pub session: i32,
    /// The name of the program.
    pub name: String,
    /// The scheduler state as procfs has it: `R`, `S`, `D`, `T`, `Z`…
    pub state: String,
    /// When the process began, in ticks of the kernel since boot. It distinguishes processes with the same pid.
    #[serde(default)]
    pub start_time: u64,
    /// The kernel function that the process sleeps in, if the keeper may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wchan: Option<String>,
    /// The system call of the main thread: its number and its first argument, which is a descriptor for reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall: Option<(i64, u64)>,
    /// Whether the process waits only to read from the agent's terminal.
    #[serde(default, skip_serializing_if = "is_false")]
    pub at_terminal: bool,
    /// Whether the process waits for several descriptors and the agent's terminal is one of them. `None` if the keeper does
    /// not know: the process runs, waits for another thread, or belongs to another user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watches_terminal: Option<bool>,
    /// Whether the process waits only to read from another terminal, which a program in this one made.
    #[serde(default, skip_serializing_if = "is_false")]
    pub at_inner_terminal: bool,
    /// Whether the keeper cannot inspect the process: it belongs to another user, or the system does not support it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// Whether the process waits with a timeout, as a program does that draws at intervals.
    #[serde(default, skip_serializing_if = "is_false")]
    pub timeout: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &usize) -> bool {
    *value == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        vec![
            Frame::control(&ToKeeper::Follow { from_seq: 7 }).unwrap(),
            Frame::Record(vec![1, 2, 3]),
            Frame::Input {
                source: InputSource::Answer { output_offset: 9 },
                id: 4,
                bytes: b"\x1b[0n".to_vec(),
            },
            Frame::Checkpoint { at_seq: 12, bytes: vec![0; 300] },
            Frame::Note { tag: "hook".into(), bytes: b"{}".to_vec() },
        ]
    }

    #[test]
    fn frames_survive_any_cut_of_the_stream() {
        let mut stream = Vec::new();
        frames().iter().for_each(|frame| frame.encode_into(&mut stream));
        for cut in 0..stream.len() {
            let (mut buffer, mut seen) = (Vec::new(), Vec::new());
            for part in [&stream[..cut], &stream[cut..]] {
                buffer.extend_from_slice(part);
                while let Some((frame, used)) = Frame::decode(&buffer).unwrap() {
                    seen.push(frame);
                    buffer.drain(..used);
                }
            }
            assert_eq!(seen, frames(), "cut at {cut}");
        }
    }

    #[test]
    fn garbage_is_an_error_and_never_a_panic() {
        assert_eq!(Frame::decode(&[0, 0, 0, 0]), Err(FrameError::Length(0)));
        assert_eq!(Frame::decode(&[1, 0, 0, 0, 99]), Err(FrameError::Kind(99)));
        assert_eq!(Frame::decode(&[2, 0, 0, 0, INPUT, 0]), Err(FrameError::Short));
        assert_eq!(Frame::decode(&[255; 8]), Err(FrameError::Length(u32::MAX as usize)));
        assert_eq!(Frame::decode(&[3, 0, 0, 0, NOTE, 9, 1]), Err(FrameError::Short));
    }

    #[test]
    fn a_refusal_names_the_epoch_that_a_daemon_must_exceed() {
        assert_eq!(newer_daemon_reason(12), "a newer daemon (epoch 12) has taken over");
        assert_eq!(newer_epoch(&newer_daemon_reason(12)), Some(12));
        assert_eq!(newer_epoch("a newer daemon (12) has been here"), Some(12), "the words of older keepers");
        assert_eq!(newer_epoch("the first message must be hello"), None);
    }

    #[test]
    fn a_message_of_a_later_version_is_unknown_and_not_fatal() {
        let later: ToKeeper = serde_json::from_str(r#"{"type":"dance","id":1}"#).unwrap();
        assert_eq!(later, ToKeeper::Unknown);
        let hello: ToKeeper = serde_json::from_str(
            r#"{"type":"hello","min":1,"max":9,"epoch":1,"peer":"x","lifeline":false,"new":1}"#,
        )
        .unwrap();
        assert!(matches!(hello, ToKeeper::Hello { max: 9, .. }));
    }
}
