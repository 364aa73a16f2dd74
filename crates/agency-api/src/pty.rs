//! The terminal stream of a viewer: a WebSocket at `/stream/{token}`.
//!
//! Binary messages are terminal bytes, both ways. Text messages are these, as JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keeper::Size;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttachMode {
    /// Types and sizes if nobody else does, looks otherwise.
    Control,
    /// Types and sizes; whoever did so before looks from now on.
    Take,
    ReadOnly,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ViewerRequest {
    Resize {
        size: Size,
    },
    /// What the viewer's terminal says of its colours.
    Colours(Colours),
    #[serde(other)]
    Unknown,
}

/// Red, green and blue, as far as they are known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Colours {
    pub foreground: Option<[u8; 3]>,
    pub background: Option<[u8; 3]>,
    pub cursor: Option<[u8; 3]>,
    /// By number.
    pub palette: Vec<(u8, [u8; 3])>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ViewerNotice {
    /// Whether this viewer types and sizes; sent first, and at each change.
    Control { yours: bool },
    /// The run ended; the stream closes after this.
    Exited { code: String },
    /// The agent writes to the clipboard, which the user allowed: letters of selections, and Base64.
    Clipboard { selection: String, data: String },
    /// The agent wanted to write to the clipboard, which the user did not allow.
    ClipboardDenied,
    /// An agent that is not on this screen needs its user: a line for the terminal to tell, and how, in the
    /// words of `notify.terminal`.
    Attention { text: String, how: String },
    /// The daemon leaves and another takes its place: attach again.
    DaemonLeaves,
    #[serde(other)]
    Unknown,
}
