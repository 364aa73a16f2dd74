//! The keeper's protocol: frames on a byte stream.
//!
//! The stream may lead to another host, so nothing here assumes shared files or a local pid;
//! passing the PTY master as a descriptor is an extra that both ends must offer.
//!
//! Invariant: fields and messages are only ever added. A newer daemon speaks to keepers two
//! versions back, because a keeper lives as long as its agent.

use std::io;

use serde::{Deserialize, Serialize};

use crate::{Bytes, ProcessIdentity};

/// The newest version this build speaks, and the oldest it still understands.
pub const VERSION: u16 = 1;
pub const OLDEST_VERSION: u16 = 1;

/// Larger frames are garbage: a checkpoint of a full scrollback stays well below.
pub const MAX_FRAME_BYTES: usize = 64 << 20;

/// The descriptor on which a rescuing keeper finds the PTY master.
pub const RESCUE_FD: i32 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// JSON of [`ToKeeper`], [`FromKeeper`] or [`LaunchSpec`].
    Control(Vec<u8>),
    /// One encoded journal record. Sequence number 0: it could not be written (see [`FromKeeper::Journal`]),
    /// is only shown, and a gap record will stand for it.
    Record(Vec<u8>),
    Input {
        source: InputSource,
        id: u64,
        bytes: Vec<u8>,
    },
    Checkpoint {
        at_seq: u64,
        bytes: Vec<u8>,
    },
    Note {
        tag: String,
        bytes: Vec<u8>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputSource {
    User,
    Send,
    Answer { output_offset: u64 },
}

const CONTROL: u8 = 0;
/// Public because the keeper puts this header in front of records without copying them.
pub const RECORD: u8 = 1;
const INPUT: u8 = 2;
const CHECKPOINT: u8 = 3;
const NOTE: u8 = 4;

impl Frame {
    pub fn control<T: Serialize>(message: &T) -> io::Result<Frame> {
        Ok(Frame::Control(serde_json::to_vec(message)?))
    }

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

    pub fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out
    }

    /// The first whole frame of `buffer` and how many bytes it took; `None` when more must come.
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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of {0} bytes")]
    Length(usize),
    #[error("unknown frame kind {0}")]
    Kind(u8),
    #[error("unknown input source {0}")]
    Source(u8),
    #[error("a frame that ends too soon")]
    Short,
    #[error("a note whose tag is not text")]
    Tag,
}

/// What a new keeper reads from its standard input: this, as a control frame, then optionally one
/// checkpoint frame, which becomes the first state of the run's journal. It reads to the end of the
/// stream, so whoever writes must close it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchSpec {
    pub run_id: String,
    /// What `ps` shows: `1-fix-login`.
    pub name: String,
    /// Where socket, pid file and journal live; made by the daemon, 0700.
    pub run_dir: Bytes,
    pub start: Start,
    pub segment_bytes: u64,
    /// The journal's size at which its oldest segments go; `None` keeps all.
    pub max_journal_bytes: Option<u64>,
    /// The user's own (soft, hard) limit of open files, given back to the child.
    #[serde(default)]
    pub open_files: Option<(u64, u64)>,
    /// How long a keeper whose agent ended waits to be dismissed before it leaves by itself.
    pub linger_ms: u64,
    /// Names of processes that stay when the tree is ended.
    #[serde(default)]
    pub spare: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Start {
    Spawn {
        argv: Vec<Bytes>,
        env: Vec<(Bytes, Bytes)>,
        cwd: Bytes,
        stdio: Stdio,
    },
    /// Takes over a run whose keeper was killed; the PTY master is on [`RESCUE_FD`].
    Rescue {
        child: Option<ProcessIdentity>,
        env: Vec<(Bytes, Bytes)>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Stdio {
    Pty { size: Size },
    Pipes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Size {
    pub cols: u16,
    pub rows: u16,
    #[serde(default)]
    pub x_pixels: u16,
    #[serde(default)]
    pub y_pixels: u16,
}

impl Default for Size {
    fn default() -> Self {
        Size { cols: 80, rows: 24, x_pixels: 0, y_pixels: 0 }
    }
}

/// The one JSON line a new keeper writes to its standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchAnswer {
    /// A rescue that found the terminal but no agent on it answers with a child whose pid is 0.
    Ready { keeper: ProcessIdentity, child: ProcessIdentity },
    /// `what` names the step (`exec sh`, `open a terminal`), `errno` the kernel's word on it.
    Failed { what: String, errno: i32 },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToKeeper {
    /// Always first. A higher `epoch` fences off connections of lower ones.
    Hello {
        min: u16,
        max: u16,
        epoch: u64,
        peer: String,
        /// Asks for a duplicate of the PTY master beside the welcome.
        lifeline: bool,
    },
    /// Send every record from `from_seq` on, then the live ones.
    Follow {
        from_seq: u64,
    },
    Resize {
        size: Size,
    },
    /// TERM and HUP to the whole tree, KILL after the grace. Answered by [`FromKeeper::Gone`].
    Stop {
        grace_ms: u64,
    },
    Probe {
        id: u64,
    },
    /// Asks for the launch environment, for a restart.
    Environment {
        id: u64,
    },
    /// Ends the agent's input once all that was sent before has been taken. Only pipes can; refused on a terminal.
    CloseInput,
    /// The exit has been seen and nothing more is wanted. Refused while the agent lives.
    Dismiss,
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromKeeper {
    Welcome(Welcome),
    Refused {
        reason: String,
    },
    /// All of the input frame `id` has been handed to the agent.
    InputTaken {
        id: u64,
    },
    InputRefused {
        id: u64,
        reason: String,
    },
    Probe {
        id: u64,
        probe: Probe,
    },
    Environment {
        id: u64,
        env: Vec<(Bytes, Bytes)>,
    },
    /// The records from `from_seq` up to but not including `until_seq` are in segments that were compressed:
    /// whoever compressed them reads them itself. What comes after them follows.
    Sealed {
        from_seq: u64,
        until_seq: u64,
    },
    /// The agent has exited (its Exit record came before this) and its tree is gone. Told to who follows,
    /// after the last record, and to who asked for the stop; to others once they follow.
    Gone {
        ended: Vec<Ended>,
    },
    /// The journal cannot be written (`cause`), or can again (`None`).
    Journal {
        cause: Option<String>,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    pub version: u16,
    /// The keeper's build, for people.
    pub build: String,
    pub run_id: String,
    pub keeper: ProcessIdentity,
    pub child: Option<ProcessIdentity>,
    /// The oldest record it can still send, and the one it will write next.
    pub oldest_seq: u64,
    pub next_seq: u64,
    /// The agent has exited and its tree is gone.
    pub gone: bool,
    /// A duplicate of the PTY master comes with this frame.
    pub lifeline: bool,
    #[serde(default)]
    pub ended: Vec<Ended>,
}

/// A process outside the agent's own group that was ended with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ended {
    pub pid: i32,
    pub name: String,
    pub killed: bool,
}

/// The tag of notes that the keeper writes by itself: JSON of a [`Probe`], whenever it tells something else than the
/// last one. There is no `wchan` in them, no process that has ended, and `state`, `syscall` and `timeout` only where
/// they tell something: `T` of who is stopped, `S` and the call of who waits for the terminal. In raw mode, that a program
/// which watches several things is awake for a moment is no news.
pub const PROBE_TAG: &str = "probe";

/// The tag of the note that the agent has closed its standard output, whatever else it still does. Pipes only.
pub const CLOSED_TAG: &str = "closed";

/// The tag of notes that an agent's hooks leave: JSON of a [`HookNote`].
pub const HOOK_TAG: &str = "hook";

/// Where a hook finds the keeper's socket.
pub const SOCKET_VARIABLE: &str = "AGENCY_KEEPER_SOCKET";

/// What is kept of a hook: that something happened, never what was asked, done or written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookNote {
    /// `PermissionRequest`, `Stop`…
    pub event: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Of a notification: `permission_prompt`, `idle_prompt`…
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What the agent tells its user, cut at 300 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What the kernel says of the agent and its terminal right now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    pub terminal: Option<TerminalProbe>,
    /// Parents before their children.
    pub processes: Vec<ProcessProbe>,
    /// So many more were there; only in notes, where those of the foreground group go first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalProbe {
    pub canonical: bool,
    pub echo: bool,
    pub foreground_group: Option<i32>,
    /// Bytes that were typed and that nobody has read yet; in canonical mode those of whole lines only, an end
    /// of file (^D) included as none. `None` where the keeper cannot ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_waiting: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessProbe {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    pub name: String,
    /// `R`, `S`, `D`, `T`, `Z`… as procfs says it.
    pub state: String,
    /// When it began, in the kernel's ticks since boot: tells it from an earlier process of the same pid.
    #[serde(default)]
    pub start_time: u64,
    /// The kernel function it sleeps in, where an ancestor may know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wchan: Option<String>,
    /// System call number and its first argument (a descriptor for reads), of the main thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub syscall: Option<(i64, u64)>,
    /// It waits to read from the agent's terminal and for nothing else.
    #[serde(default, skip_serializing_if = "is_false")]
    pub at_terminal: bool,
    /// It waits for several things, and to read from the agent's terminal is among them. `None`: not known, because
    /// it runs, waits for another thread, or may not be looked into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watches_terminal: Option<bool>,
    /// It waits to read from another terminal and for nothing else: one that a program in this one made.
    #[serde(default, skip_serializing_if = "is_false")]
    pub at_inner_terminal: bool,
    /// It may not be looked into: another user's, or a system without the means.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hidden: bool,
    /// It waits no longer than a time that it set: a program that ticks.
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
