//! The loop of an attached client: all that can happen to it is one enum.

use std::time::Duration;

use agency_api::Failure;
use agency_api::keeper::Size;
use agency_api::pty::{self, AttachMode, ViewerNotice};
use agency_api::view::Task;
use agency_terminal::answers::{self, Answers};
use agency_terminal::keys::{DetachKeys, Matcher, Typed};
use agency_terminal::{Colours, Rgb};
use tokio::time::Instant;

use super::link::{Connected, Heard, Hearing, Missed, Saying, Target, Unsaid};
use super::restore;
use super::signals::{Heeded, Signals};
use super::terminal::{Left, Terminal, Undrawn};
use super::title;
use crate::attention::{How, variable};
use crate::caller;
use crate::context::Context;

/// A paste of this size waits here while the daemon is away; then the terminal itself has to wait.
const MOST_UNSAID: usize = 8 << 20;

/// What is not drawn yet; then the daemon has to wait, and sends a fresh screen when it waited long.
const MOST_UNDRAWN: usize = 1 << 20;

/// A restart is announced and someone is at it; after a crash nobody may be.
const RESTART_TAKES: Duration = Duration::from_secs(2);
const CRASH_TAKES: Duration = Duration::from_millis(100);

/// A terminal that answers at all does so by then, also over ssh.
const ANSWERED_WITHIN: Duration = Duration::from_millis(500);

pub(super) enum End {
    Detached,
    /// Someone else types there.
    StoppedLooking,
    Exited(String),
    /// The run ended between two daemons.
    EndedMeanwhile(Box<Task>),
    HungUp,
    Signal(u8),
    Lost(Failure),
}

pub(super) struct Ended {
    pub(super) end: End,
    pub(super) left: Left,
    /// The agent wanted to write to the clipboard.
    pub(super) denied_clipboard: bool,
}

pub(super) struct Viewer {
    context: Context,
    target: Target,
    name: String,
    keys: DetachKeys,
    matcher: Matcher,
    /// What the terminal says of its colours comes among the keys.
    answers: Answers,
    asked_at: Instant,
    /// When held keys are decided without waiting for more.
    decide_at: Option<Instant>,
    terminal: Terminal,
    signals: Signals,
    hearing: Hearing,
    saying: Option<Saying>,
    unsaid: Unsaid,
    undrawn: Undrawn,
    role: Role,
    shown: Shown,
    denied_clipboard: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Types,
    Looks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// What the user had on the screen.
    Users,
    /// A screen of the daemon before.
    Old,
    Live,
}

enum Happened {
    Signal(Heeded),
    Typed(Option<Vec<u8>>),
    NothingMoreTyped,
    Heard(Heard),
    Said,
    Drawn,
    TerminalGone,
}

impl Viewer {
    pub(super) fn new(
        context: Context,
        target: Target,
        connected: Connected,
        keys: DetachKeys,
        terminal: Terminal,
        signals: Signals,
    ) -> Viewer {
        let name = super::task_name(&connected.task);
        let role = if target.mode == AttachMode::ReadOnly { Role::Looks } else { Role::Types };
        let (hearing, saying) = connected.split();
        Viewer {
            context,
            target,
            name,
            matcher: keys.matcher(),
            keys,
            answers: Answers::default(),
            asked_at: Instant::now(),
            decide_at: None,
            terminal,
            signals,
            hearing,
            saying: Some(saying),
            unsaid: Unsaid::default(),
            undrawn: Undrawn::default(),
            role,
            shown: Shown::Users,
            denied_clipboard: false,
        }
    }

    pub(super) async fn run(mut self) -> Ended {
        self.undrawn.push(restore::ENTER.as_bytes());
        self.ask_for_colours();
        let end = loop {
            let happened = self.next().await;
            if let Some(end) = self.handle(happened) {
                break end;
            }
        };
        if !matches!(end, End::HungUp | End::Signal(_)) {
            self.hear_answers_out().await;
        }
        // An agent's last words are worth waiting for; whoever leaves has seen enough.
        let last = if let End::Exited(_) = end { self.undrawn } else { Undrawn::default() };
        // The terminal first: it must be given back whatever the daemon does.
        let left = self.terminal.leave(last).await;
        if let Some(saying) = self.saying {
            saying.finish(self.unsaid).await;
        }
        Ended { end, left, denied_clipboard: self.denied_clipboard }
    }

    async fn next(&mut self) -> Happened {
        let typing_allowed = self.unsaid.typed.len() < MOST_UNSAID;
        let hearing_allowed = self.undrawn.len() < MOST_UNDRAWN;
        tokio::select! {
            // Keys before floods.
            biased;
            signal = self.signals.next() => Happened::Signal(signal),
            typed = self.terminal.typed(), if typing_allowed => Happened::Typed(typed),
            () = until(self.decide_at) => Happened::NothingMoreTyped,
            () = say(self.saying.as_ref(), &mut self.unsaid) => Happened::Said,
            drawn = self.terminal.draw(&mut self.undrawn) => match drawn {
                true => Happened::Drawn,
                false => Happened::TerminalGone,
            },
            heard = self.hearing.next(), if hearing_allowed => Happened::Heard(heard),
        }
    }

    fn handle(&mut self, happened: Happened) -> Option<End> {
        match happened {
            Happened::Signal(signal) => self.on_signal(signal),
            Happened::Typed(Some(bytes)) => {
                let keys = self.without_answers(&bytes);
                let typed = self.matcher.feed(&keys);
                self.on_typed(typed)
            }
            Happened::NothingMoreTyped => {
                let keys = self.answers.flush();
                let typed = if keys.is_empty() { self.matcher.flush() } else { self.matcher.feed(&keys) };
                self.on_typed(typed)
            }
            Happened::Heard(heard) => self.on_heard(heard),
            Happened::Said | Happened::Drawn => None,
            Happened::Typed(None) | Happened::TerminalGone => Some(End::HungUp),
        }
    }

    fn on_signal(&mut self, signal: Heeded) -> Option<End> {
        match signal {
            Heeded::Resized => self.unsaid.size = caller::terminal_size(),
            Heeded::Continued => match self.terminal.retake() {
                // Others have drawn on the screen since.
                Ok(()) => self.search(Duration::ZERO),
                Err(_) => return Some(End::HungUp),
            },
            Heeded::End(number) => return Some(End::Signal(number)),
        }
        None
    }

    /// Agents are told them when they ask. The first picture does not wait for that.
    fn ask_for_colours(&mut self) {
        // These two draw what they do not understand.
        let understands = |term: String| !matches!(term.as_str(), "" | "dumb" | "linux");
        if std::env::var("TERM").is_ok_and(understands) {
            self.undrawn.push(answers::question().as_bytes());
            self.answers = Answers::expected();
        }
    }

    fn without_answers(&mut self, bytes: &[u8]) -> Vec<u8> {
        let expected = self.answers.are_expected();
        let keys = self.answers.feed(bytes);
        if expected && !self.answers.are_expected() {
            self.say_colours();
        }
        keys
    }

    /// If they are known.
    fn say_colours(&mut self) {
        let colours = self.answers.colours();
        if !self.answers.are_expected() && *colours != Colours::default() {
            self.unsaid.colours = Some(wire_colours(colours));
        }
    }

    /// What is answered after we left would be typed into the shell.
    async fn hear_answers_out(&mut self) {
        while self.answers.are_expected() {
            let typed = tokio::time::timeout_at(self.asked_at + ANSWERED_WITHIN, self.terminal.typed());
            match typed.await {
                Ok(Some(bytes)) => drop(self.answers.feed(&bytes)),
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn on_typed(&mut self, typed: Typed) -> Option<End> {
        let wait = self.answers.pending().or(self.matcher.pending());
        self.decide_at = wait.map(|wait| Instant::now() + wait);
        if self.role == Role::Types {
            self.unsaid.typed.extend_from_slice(&typed.pass);
        }
        let end = match (self.role, self.target.mode) {
            (Role::Looks, AttachMode::Control | AttachMode::Take) => End::StoppedLooking,
            _ => End::Detached,
        };
        typed.detached.then_some(end)
    }

    fn on_heard(&mut self, heard: Heard) -> Option<End> {
        match heard {
            Heard::Bytes(bytes) => self.on_bytes(&bytes),
            Heard::Notice(ViewerNotice::Control { yours }) => self.on_control(yours),
            Heard::Notice(ViewerNotice::Exited { code }) => return Some(End::Exited(code)),
            Heard::Notice(ViewerNotice::Clipboard { selection, data }) => self.copy(&selection, &data),
            Heard::Notice(ViewerNotice::ClipboardDenied) => self.denied_clipboard = true,
            Heard::Notice(ViewerNotice::Attention { text, how }) => {
                self.undrawn.push(&How::of(&how, variable).bytes(&text));
            }
            Heard::Notice(ViewerNotice::DaemonLeaves) => self.search(RESTART_TAKES),
            Heard::Notice(ViewerNotice::Unknown) => {}
            Heard::Broken => self.search(CRASH_TAKES),
            Heard::Found(connected) => self.on_found(*connected),
            Heard::Missed(missed) => return Some(end_of_search(missed)),
            Heard::StillSearching => self.say_searching(),
        }
        None
    }

    fn on_bytes(&mut self, bytes: &[u8]) {
        let before = std::mem::replace(&mut self.shown, Shown::Live);
        if before == Shown::Users {
            self.undrawn.push(&scroll_away());
        }
        let (until_title, rest) = bytes.split_at(title::place_in(bytes).unwrap_or(0));
        self.undrawn.push(until_title);
        if !until_title.is_empty() {
            self.draw_title();
        }
        self.undrawn.push(rest);
    }

    /// To the terminal's clipboard, and nothing else to the terminal.
    fn copy(&mut self, selection: &str, data: &str) {
        let is_selection = |byte: u8| matches!(byte, b'c' | b'p' | b'q' | b's' | b'0'..=b'7');
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        let sound = !data.is_empty() && data.bytes().all(is_base64) && selection.bytes().all(is_selection);
        if sound && self.role == Role::Types {
            self.undrawn.push(format!("\x1b]52;{selection};{data}\x1b\\").as_bytes());
        }
    }

    fn on_control(&mut self, yours: bool) {
        let role = match (yours, self.target.mode) {
            (true, AttachMode::Control | AttachMode::Take) => Role::Types,
            (false, _) | (true, AttachMode::ReadOnly) => Role::Looks,
        };
        if role != self.role {
            self.role = role;
            if role == Role::Types {
                // The terminal still has the size of whoever typed before us.
                self.unsaid.size = caller::terminal_size();
            }
            self.draw_title();
        }
    }

    fn on_found(&mut self, mut connected: Connected) {
        self.unsaid.typed.splice(..0, std::mem::take(&mut connected.undelivered));
        let (hearing, saying) = connected.split();
        self.hearing = hearing;
        self.saying = Some(saying);
        self.shown = match self.shown {
            Shown::Users => Shown::Users,
            Shown::Old | Shown::Live => Shown::Old,
        };
        // It may have changed while the connection was made.
        self.unsaid.size = caller::terminal_size();
        self.say_colours();
    }

    fn search(&mut self, patience: Duration) {
        // Taking over was for the first time: whoever took over from us since keeps it.
        if self.target.mode == AttachMode::Take {
            self.target.mode = AttachMode::Control;
        }
        let (context, target, old) = (self.context.clone(), self.target.clone(), self.saying.take());
        self.hearing = Hearing::search(context, target, patience, old);
    }

    /// Nothing on the screen is ours to write on; the title is, while the agent has none.
    fn draw_title(&mut self) {
        let role = match self.role {
            Role::Types => "",
            Role::Looks => "watching, ",
        };
        let way_out = match self.keys.is_none() {
            true => "no detach key".to_owned(),
            false => format!("{} detaches", self.keys),
        };
        let title = format!("\x1b]2;{} ({role}{way_out})\x1b\\", self.name);
        self.undrawn.push(title.as_bytes());
    }

    /// In the last line, which the next screen draws over.
    fn say_searching(&mut self) {
        let Size { cols, rows, .. } = caller::terminal_size().unwrap_or_default();
        let text = format!("[the daemon is gone, {} keeps running; reconnecting]", self.name);
        // A line that is full would wrap, and scroll the screen.
        let text: String = text.chars().take(usize::from(cols).saturating_sub(1)).collect();
        self.undrawn.push(format!("\x1b7\x1b[{rows};1H\x1b[0;7m{text}\x1b[0m\x1b[K\x1b8").as_bytes());
    }
}

fn wire_colours(colours: &Colours) -> pty::Colours {
    let rgb = |Rgb(r, g, b): Rgb| [r, g, b];
    pty::Colours {
        foreground: colours.foreground.map(rgb),
        background: colours.background.map(rgb),
        cursor: colours.cursor.map(rgb),
        palette: colours.palette.iter().map(|(index, colour)| (*index, rgb(*colour))).collect(),
    }
}

fn end_of_search(missed: Missed) -> End {
    let ended = missed.run_has_ended();
    match missed.task {
        Some(task) if ended => End::EndedMeanwhile(task),
        _ => End::Lost(missed.failure),
    }
}

/// What the user had on the screen goes into the scrollback of their terminal: so many line ends,
/// from wherever the cursor is, move exactly the lines above it away.
fn scroll_away() -> Vec<u8> {
    vec![b'\n'; usize::from(caller::terminal_size().unwrap_or_default().rows)]
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn say(saying: Option<&Saying>, unsaid: &mut Unsaid) {
    match saying {
        Some(saying) if !unsaid.is_empty() => saying.say(unsaid).await,
        _ => std::future::pending().await,
    }
}
