//! The hook command that agents run on events: leaves one note with the keeper and exits.
//!
//! Not part of the keeper's process. An agent must never wait for the hook, fail because of it or see its output:
//! the hook exits within `PATIENCE`, prints nothing and always succeeds.

use std::io::{self, BufReader, Read, Write};
use std::net::Shutdown;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use agency_api::keeper::{Frame, HOOK_TAG, HookNote, OLDEST_VERSION, SOCKET_VARIABLE, ToKeeper, VERSION};
use serde::Deserialize;
use serde_json::Value;

/// Agents wait until their hooks exit.
const PATIENCE: Duration = Duration::from_millis(900);
/// Hook input may contain whole files. We skip them without storing them, so this limits time, not memory.
const MAX_INPUT_BYTES: u64 = 16 << 20;
const MAX_CHARS: usize = 300;

/// Runs the hook command.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let (finished, wait) = mpsc::channel();
    // A separate thread, because a blocked `connect` cannot be cancelled.
    let working = std::thread::Builder::new().spawn(move || {
        leave_note().ok();
        finished.send(()).ok();
    });
    if working.is_ok() {
        wait.recv_timeout(PATIENCE).ok();
    }
    ExitCode::SUCCESS
}

fn leave_note() -> io::Result<()> {
    let mut input = BufReader::new(io::stdin().lock().take(MAX_INPUT_BYTES));
    let note = read_note(&mut input);
    if note.is_err() {
        // Read the rest, so that the agent does not get a broken pipe while it writes.
        io::copy(&mut input, &mut io::sink())?;
    }
    let socket = std::env::var_os(SOCKET_VARIABLE)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the environment names no keeper socket"))?;
    send(Path::new(&socket), &note?)
}

/// The fields of an agent's hook input that we keep.
#[derive(Deserialize)]
struct HookInput {
    hook_event_name: String,
    session_id: Option<Value>,
    tool_name: Option<Value>,
    notification_type: Option<Value>,
    message: Option<Value>,
}

/// Reads one JSON object and ignores anything after it.
fn read_note(input: &mut impl Read) -> io::Result<HookNote> {
    let input = HookInput::deserialize(&mut serde_json::Deserializer::from_reader(input))?;
    Ok(HookNote {
        event: shorten(&input.hook_event_name),
        session_id: text_of(input.session_id),
        tool: text_of(input.tool_name),
        kind: text_of(input.notification_type),
        message: text_of(input.message),
    })
}

/// `None` for a value that is not a string.
fn text_of(value: Option<Value>) -> Option<String> {
    value.as_ref().and_then(Value::as_str).map(shorten)
}

fn shorten(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}

/// Returns when the keeper has stored the note: the keeper closes its end after it has served our last frame.
fn send(socket: &Path, note: &HookNote) -> io::Result<()> {
    let (min, max) = (OLDEST_VERSION, VERSION);
    let hello = ToKeeper::Hello { min, max, epoch: 0, peer: "hook".to_string(), lifeline: false };
    let mut bytes = Frame::control(&hello)?.encoded();
    Frame::Note { tag: HOOK_TAG.to_string(), bytes: serde_json::to_vec(note)? }.encode_into(&mut bytes);
    let mut stream = agency_api::socket::connect(socket)?;
    stream.write_all(&bytes)?;
    stream.shutdown(Shutdown::Write)?;
    io::copy(&mut stream, &mut io::sink())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduced(json: &str) -> Option<String> {
        let note = read_note(&mut json.as_bytes()).ok()?;
        Some(serde_json::to_string(&note).unwrap())
    }

    #[test]
    fn only_the_known_fields_are_kept() {
        let json = r#"{"session_id":"s","transcript_path":"/t","cwd":"/","hook_event_name":"PermissionRequest",
            "tool_name":"Bash","tool_input":{"command":"rm"},"prompt":"secret","message":7}"#;
        let note = r#"{"event":"PermissionRequest","session_id":"s","tool":"Bash"}"#;
        assert_eq!(reduced(json).as_deref(), Some(note));
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let message = "ä".repeat(1000);
        let json = format!(
            r#"{{"hook_event_name":"Notification","notification_type":"idle_prompt","message":"{message}"}}"#
        );
        let note = read_note(&mut json.as_bytes()).unwrap();
        assert_eq!((note.kind.as_deref(), note.message), (Some("idle_prompt"), Some("ä".repeat(300))));
    }

    #[test]
    fn garbage_is_no_note() {
        for garbage in ["", "{", "[]", "null", "{}", r#"{"hook_event_name":3}"#, "\u{0}\u{1}"] {
            assert_eq!(reduced(garbage), None, "{garbage:?}");
        }
        let more = r#"{"hook_event_name":"Stop"} and more"#;
        assert_eq!(reduced(more).as_deref(), Some(r#"{"event":"Stop"}"#));
    }
}
