//! The terminal stream of a viewer: a WebSocket at `/stream/{token}`.
//!
//! Binary messages are terminal bytes, in both directions. Text messages are these types, as JSON.
//!
//! A viewer that acknowledges says from time to time how much it has drawn. The daemon never sends much more than that, and a
//! viewer that stays behind gets a fresh screen instead of everything that it has missed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::keeper::Size;

/// The role that an attached client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttachMode {
    /// Become the controller, or a viewer if there is a controller already.
    Control,
    /// Become the controller. The controller before becomes a viewer.
    Take,
    /// Be a viewer.
    ReadOnly,
}

/// A message of a viewer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ViewerRequest {
    /// The viewer's terminal has this size now.
    Resize {
        /// The new size.
        size: Size,
    },
    /// The viewer's terminal reports its colours.
    Colours(Colours),
    /// The viewer has drawn this much. Only of a viewer that said `acknowledges` when it attached.
    Processed {
        /// The number of bytes in binary messages that the viewer has drawn since the stream began.
        bytes: u64,
    },
    /// A message that this version does not know.
    #[serde(other)]
    Unknown,
}

/// The colours of a terminal as red, green and blue. Unknown ones are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Colours {
    /// The colour of text.
    pub foreground: Option<[u8; 3]>,
    /// The colour behind text.
    pub background: Option<[u8; 3]>,
    /// The colour of the cursor.
    pub cursor: Option<[u8; 3]>,
    /// Numbered colours, each with its number.
    pub palette: Vec<(u8, [u8; 3])>,
}

/// A message to a viewer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ViewerNotice {
    /// Whether this client is the controller. Sent first, and at each change.
    Control {
        /// True if this client types and sets the size.
        yours: bool,
    },
    /// The run ended. The stream closes after this message.
    Exited {
        /// The exit code.
        code: String,
    },
    /// The agent writes to the clipboard, and the user allows that.
    Clipboard {
        /// The letters of the selections, as in OSC 52.
        selection: String,
        /// The text, in Base64.
        data: String,
    },
    /// The agent wanted to write to the clipboard, and the user does not allow that.
    ClipboardDenied,
    /// An agent that is not on this screen needs the user.
    Attention {
        /// One line for the terminal to show.
        text: String,
        /// How to show it: a word of `notify.terminal`.
        how: String,
    },
    /// The daemon leaves and another one takes its place: attach again.
    DaemonLeaves,
    /// A message that this version does not know.
    #[serde(other)]
    Unknown,
}
