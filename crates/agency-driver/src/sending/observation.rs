//! An observation of an agent's terminal at one moment, and what follows from it for sending.
//!
//! Decides nothing about orders; [`Active`](super::active::Active) does.

use std::time::Duration;

use agency_core::evidence::Why;
use agency_terminal::keys::Keystroke;

use super::unentered::TypedText;

/// Agents ignore keys that arrive right after a dialog has opened: the user may have meant them for something else.
/// Claude Code listens after 0.3 to 0.5 s.
const DIALOG_LISTENS_AFTER: Duration = Duration::from_millis(700);
/// Agents report a dialog before they draw it; Codex reports it a second earlier if the user has just typed. After
/// this time, a dialog that no screen rule recognises has been drawn.
const DIALOG_SHOWN_WITHIN: Duration = Duration::from_secs(2);
/// Agents report that they work before they clear their prompt.
const DRAFT_IS_GONE_WITHIN: Duration = Duration::from_millis(1500);
/// Agents need seconds to start, more if several start at once.
const YOUNG_FOR: Duration = Duration::from_secs(15);
/// Rows of the screen that a receipt shows: what a person would look at.
const ROWS_SHOWN: usize = 14;

/// The facts about the agent and its terminal at one moment.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// The moment of the observation.
    pub now: Duration,
    /// A dialog that the agent reports or that a screen rule recognises, in words. A menu may be open without it.
    pub dialog: Option<String>,
    /// The question of the dialog, in the agent's own words.
    pub question: Option<String>,
    /// Why the agent waits. `None` if it works or if its state is not known yet.
    pub why: Option<Why>,
    /// When the run began.
    pub began: Duration,
    /// When the agent's state last changed.
    pub state_since: Duration,
    /// A screen rule recognises the dialog, so it has been drawn.
    pub dialog_shown: bool,
    /// The program reads whole lines.
    pub reads_lines: bool,
    /// The kernel saw that the program does not read its terminal now.
    pub is_busy: bool,
    /// How the program uses its terminal.
    pub modes: TerminalModes,
    /// When the program last drew something.
    pub drawn_at: Duration,
    /// The work of the agent, if it works.
    pub works: Option<SeenWork>,
    /// When a probe found that no typed byte is waiting to be read.
    pub all_read_at: Option<Duration>,
    /// The text that an earlier send typed and did not enter.
    pub unentered: Option<TypedText>,
    /// The rows of the screen.
    pub rows: Vec<String>,
    /// Row and column of the cursor.
    pub cursor: (u16, u16),
}

/// How a program uses its terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TerminalModes {
    /// The terminal does not echo what is typed.
    pub hides_input: bool,
    /// The program draws the whole screen.
    pub full_screen: bool,
    /// The program draws on the alternate screen.
    pub alternate: bool,
    /// The cursor is visible, so it shows where typed text goes.
    pub cursor_visible: bool,
    /// The program understands bracketed pastes.
    pub bracketed_paste: bool,
    /// Arrow keys are sent in application mode.
    pub app_cursor: bool,
    /// The flags of kitty's keyboard protocol.
    pub kitty_flags: u8,
}

/// Evidence that the agent works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenWork {
    /// Since when.
    pub since: Duration,
    /// The evidence, in words.
    pub evidence: String,
    /// The agent or the kernel reports the work. Otherwise only the screen shows it, and that may be the message itself.
    pub is_reported: bool,
}

impl Observation {
    /// The dialog may not be drawn yet, or may not listen yet.
    pub(super) fn is_dialog_new(&self) -> bool {
        let age = self.now.saturating_sub(self.state_since);
        let old = if self.dialog_shown { DIALOG_LISTENS_AFTER } else { DIALOG_SHOWN_WITHIN };
        self.dialog.is_some() && age < old
    }

    /// The run began so recently that the program may still start.
    pub(super) fn is_young(&self) -> bool {
        self.now.saturating_sub(self.began) < YOUNG_FOR
    }

    /// A text that was entered a moment ago may still be drawn at the prompt.
    pub(super) fn is_draft_new(&self) -> bool {
        self.now.saturating_sub(self.state_since) < DRAFT_IS_GONE_WITHIN && self.draft().is_some()
    }

    /// Text at an agent's prompt that was not submitted: the user is typing, or the agent restored an interrupted
    /// message. Only where a prompt's mark is visible; text behind the cursor is the agent's own suggestion.
    pub(super) fn draft(&self) -> Option<String> {
        let row = self.before_cursor();
        let row = row.trim_start_matches(|c: char| c.is_whitespace() || "│┃▌".contains(c));
        let typed = row.strip_prefix(['❯', '›', '>'])?.trim();
        let is_some = self.modes.full_screen && typed.chars().any(char::is_alphanumeric);
        is_some.then(|| typed.to_owned())
    }

    /// Whether a line with its end may be written at once: the kernel passes it on as a line, so nothing can come between
    /// the text and its Enter. Programs that read keys take an Enter that comes with a text for a part of it.
    pub(super) fn takes_whole_lines(&self) -> bool {
        self.reads_lines && !self.modes.full_screen && !self.modes.bracketed_paste
    }

    /// Whether a full-screen program shows these letters somewhere, or says that something was pasted.
    pub(super) fn shows(&self, letters: &str) -> bool {
        let shown: String = self.rows.concat().chars().filter(|c| c.is_alphanumeric()).collect();
        shown.contains(letters) || shown.to_lowercase().contains("pasted")
    }

    pub(super) fn row_at_cursor(&self) -> String {
        self.rows.get(usize::from(self.cursor.0)).cloned().unwrap_or_default()
    }

    /// The text of the cursor's row before the cursor. A wide character counts as one, so it may reach a little further.
    pub(super) fn before_cursor(&self) -> String {
        self.row_at_cursor().chars().take(usize::from(self.cursor.1)).collect()
    }

    /// The last rows that are not blank.
    pub(super) fn last_rows(&self) -> String {
        let is_blank = |row: &str| row.trim().is_empty();
        let rows: Vec<&str> = self.rows.iter().map(String::as_str).filter(|row| !is_blank(row)).collect();
        rows[rows.len().saturating_sub(ROWS_SHOWN)..].join("\n")
    }

    pub(super) fn encode_key(&self, key: Keystroke) -> Vec<u8> {
        key.bytes(self.modes.app_cursor, self.modes.kitty_flags)
    }

    pub(super) fn encode_enter(&self) -> Vec<u8> {
        self.encode_key(Keystroke::ENTER)
    }
}
