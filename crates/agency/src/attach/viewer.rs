//! The loop of an attached client. Every event that it handles is a variant of one enum.

use std::time::Duration;

use agency_api::Failure;
use agency_api::keeper::Size;
use agency_api::pty::{self, AttachMode, ViewerNotice};
use agency_api::view::Task;
use agency_terminal::answers::{self, Answers};
use agency_terminal::keys::DetachKeys;
use agency_terminal::{Colours, Rgb};
use tokio::time::Instant;

use super::connection::{Connected, Drawn, Incoming, Outgoing, Received, SearchFailure, Target, Unsent};
use super::last_row;
use super::leave_keys::{Leave, LeaveKeys, Pressed};
use super::restore;
use super::signals::{SignalEvent, Signals};
use super::terminal::{PendingOutput, Terminal, TerminalEnd};
use super::title::{self, TitlePrefix};
use crate::caller;
use crate::context::Context;
use crate::terminal_notification::{TerminalNotification, environment_variable};

/// Keys that may wait here while there is no daemon. When more are typed, the terminal has to wait.
const MOST_UNSENT: usize = 8 << 20;

/// Output that may wait to be drawn. With more, the daemon has to wait; after a long wait it sends a new screen.
const MOST_PENDING_OUTPUT: usize = 1 << 20;

/// After an announced restart, another process starts the next daemon. After a crash, perhaps none does.
const RESTART_TAKES: Duration = Duration::from_secs(2);
const CRASH_TAKES: Duration = Duration::from_millis(100);

/// A terminal that answers does so within this time, even over ssh.
const ANSWERED_WITHIN: Duration = Duration::from_millis(500);

pub(super) enum End {
    Detached,
    /// The user goes on to the next task.
    Next,
    /// The user detached while another viewer had control.
    DetachedAsWatcher,
    Exited(String),
    /// The run ended while no daemon was running.
    EndedMeanwhile(Box<Task>),
    HungUp,
    Signal(u8),
    Lost(Failure),
}

pub(super) struct Ended {
    pub(super) end: End,
    pub(super) terminal: TerminalEnd,
    /// The agent tried to write to the clipboard.
    pub(super) denied_clipboard: bool,
}

pub(super) struct Viewer {
    context: Context,
    target: Target,
    name: String,
    keys: LeaveKeys,
    agents_title: TitlePrefix,
    colour_query: ColourQuery,
    /// When the held keys are passed on, if no more keys arrive.
    decide_at: Option<Instant>,
    terminal: Terminal,
    signals: Signals,
    incoming: Incoming,
    outgoing: Option<Outgoing>,
    unsent: Unsent,
    pending_output: PendingOutput,
    role: Role,
    shown: ScreenContent,
    denied_clipboard: bool,
}

/// The question to the terminal about its colours. The answers arrive among the keys.
struct ColourQuery {
    answers: Answers,
    asked_at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Types,
    Watches,
    /// The last row shows that another viewer types, and how to take over.
    WatchesWithOffer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScreenContent {
    /// The screen that the user had before attaching.
    Users,
    /// A screen from the previous daemon.
    Old,
    Live,
}

enum ViewerEvent {
    Signal(SignalEvent),
    Typed(Option<Vec<u8>>),
    KeyTimeout,
    Received(Received),
    Sent,
    Written,
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
        let name = super::target_name(&connected.task, target.shell.as_deref());
        let slug = connected.task.slug.clone();
        let role = if target.mode == AttachMode::ReadOnly { Role::Watches } else { Role::Types };
        let (incoming, outgoing) = connected.split();
        Viewer {
            context,
            target,
            name,
            keys: LeaveKeys::new(keys),
            agents_title: TitlePrefix::of(&slug),
            colour_query: ColourQuery { answers: Answers::default(), asked_at: Instant::now() },
            decide_at: None,
            terminal,
            signals,
            incoming,
            outgoing: Some(outgoing),
            unsent: Unsent::default(),
            pending_output: PendingOutput::default(),
            role,
            shown: ScreenContent::Users,
            denied_clipboard: false,
        }
    }

    pub(super) async fn run(mut self) -> Ended {
        self.pending_output.push(restore::ENTER.as_bytes());
        self.ask_for_colours();
        let end = loop {
            let event = self.next_event().await;
            if let Some(end) = self.handle(event) {
                break end;
            }
        };
        if !matches!(end, End::HungUp | End::Signal(_)) {
            self.await_answers().await;
        }
        // Draw the last output of an agent that exited. A user who detaches does not need the rest.
        let last = if let End::Exited(_) = end { self.pending_output } else { PendingOutput::default() };
        let last_row = match end {
            End::Detached | End::Next => last_row::find(&self.context, &self.target).await,
            _ => None,
        };
        // The terminal first: we must restore it whatever the daemon does.
        let terminal = self.terminal.leave(last, last_row).await;
        if let Some(outgoing) = self.outgoing {
            outgoing.finish(self.unsent).await;
        }
        Ended { end, terminal, denied_clipboard: self.denied_clipboard }
    }

    async fn next_event(&mut self) -> ViewerEvent {
        let typing_allowed = self.unsent.typed.len() < MOST_UNSENT;
        let receiving_allowed = self.pending_output.len() < MOST_PENDING_OUTPUT;
        tokio::select! {
            // Keys come before output, even if there is a lot of output.
            biased;
            signal = self.signals.next() => ViewerEvent::Signal(signal),
            typed = self.terminal.next_keys(), if typing_allowed => ViewerEvent::Typed(typed),
            () = sleep_until_some(self.decide_at) => ViewerEvent::KeyTimeout,
            () = send_unsent(self.outgoing.as_ref(), &mut self.unsent) => ViewerEvent::Sent,
            drawn = self.terminal.write(&mut self.pending_output) => match drawn {
                true => ViewerEvent::Written,
                false => ViewerEvent::TerminalGone,
            },
            received = self.incoming.next(), if receiving_allowed => ViewerEvent::Received(received),
        }
    }

    fn handle(&mut self, event: ViewerEvent) -> Option<End> {
        match event {
            ViewerEvent::Signal(signal) => self.on_signal(signal),
            ViewerEvent::Typed(Some(bytes)) => {
                let keys = self.without_answers(&bytes);
                let pressed = self.keys.feed(&keys);
                self.on_pressed(pressed)
            }
            ViewerEvent::KeyTimeout => {
                let keys = self.colour_query.answers.flush();
                let pressed = if keys.is_empty() { self.keys.flush() } else { self.keys.feed(&keys) };
                self.on_pressed(pressed)
            }
            ViewerEvent::Received(received) => self.on_received(received),
            ViewerEvent::Written => {
                self.unsent.drawn.on_written(self.pending_output.len());
                None
            }
            ViewerEvent::Sent => None,
            ViewerEvent::Typed(None) | ViewerEvent::TerminalGone => Some(End::HungUp),
        }
    }

    fn on_signal(&mut self, signal: SignalEvent) -> Option<End> {
        match signal {
            SignalEvent::Resized => self.unsent.size = caller::terminal_size(),
            SignalEvent::Continued => match self.terminal.retake() {
                // The shell has drawn on the screen meanwhile, so get a new screen.
                Ok(()) => self.search(Duration::ZERO),
                Err(_) => return Some(End::HungUp),
            },
            SignalEvent::End(number) => return Some(End::Signal(number)),
        }
        None
    }

    /// Asks the terminal for its colours; the daemon answers agents that ask for them. The first screen does not wait for
    /// the answer.
    fn ask_for_colours(&mut self) {
        // These terminals print a question that they do not understand.
        let understands = |term: String| !matches!(term.as_str(), "" | "dumb" | "linux");
        if std::env::var("TERM").is_ok_and(understands) {
            self.pending_output.push(answers::question().as_bytes());
            self.colour_query.answers = Answers::expected();
        }
    }

    fn without_answers(&mut self, bytes: &[u8]) -> Vec<u8> {
        let expected = self.colour_query.answers.are_expected();
        let keys = self.colour_query.answers.feed(bytes);
        if expected && !self.colour_query.answers.are_expected() {
            self.send_colours();
        }
        keys
    }

    /// Sends the colours of the terminal to the daemon, if they are known.
    fn send_colours(&mut self) {
        let colours = self.colour_query.answers.colours();
        if !self.colour_query.answers.are_expected() && *colours != Colours::default() {
            self.unsent.colours = Some(api_colours(colours));
        }
    }

    /// Waits for the terminal's answers. After we leave, the shell would read them as input.
    async fn await_answers(&mut self) {
        while self.colour_query.answers.are_expected() {
            let typed = tokio::time::timeout_at(
                self.colour_query.asked_at + ANSWERED_WITHIN,
                self.terminal.next_keys(),
            );
            match typed.await {
                Ok(Some(bytes)) => drop(self.colour_query.answers.feed(&bytes)),
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn on_pressed(&mut self, pressed: Pressed) -> Option<End> {
        let wait = self.colour_query.answers.pending().or(self.keys.pending());
        self.decide_at = wait.map(|wait| Instant::now() + wait);
        let may_take = self.target.mode != AttachMode::ReadOnly;
        match self.role {
            Role::Types => self.unsent.typed.extend_from_slice(&pressed.pass),
            Role::Watches | Role::WatchesWithOffer if may_take && !pressed.pass.is_empty() => {
                self.on_key_without_control(&pressed.pass)
            }
            Role::Watches | Role::WatchesWithOffer => {}
        }
        Some(match pressed.leave? {
            Leave::Next => End::Next,
            Leave::Detach if self.role != Role::Types && may_take => End::DetachedAsWatcher,
            Leave::Detach => End::Detached,
        })
    }

    /// The first key says that another viewer types. Then Enter takes over, and any other key goes on watching.
    fn on_key_without_control(&mut self, typed: &[u8]) {
        if self.role == Role::Watches {
            self.role = Role::WatchesWithOffer;
            self.draw_title();
            self.draw_last_row(&format!("[another viewer types in {}; Enter takes over]", self.name));
            return self.pending_output.push(b"\x07");
        }
        self.role = Role::Watches;
        match is_enter(typed) {
            true => self.take_control(),
            // A new screen removes the line.
            false => self.search(Duration::ZERO),
        }
    }

    fn take_control(&mut self) {
        self.target.mode = AttachMode::Take;
        self.connect_again(Duration::ZERO);
    }

    fn on_received(&mut self, received: Received) -> Option<End> {
        match received {
            Received::Bytes(bytes) => self.on_bytes(&bytes),
            Received::Notice(ViewerNotice::Control { yours }) => self.on_control(yours),
            Received::Notice(ViewerNotice::Exited { code }) => return Some(End::Exited(code)),
            Received::Notice(ViewerNotice::Clipboard { selection, data }) => {
                self.copy_to_clipboard(&selection, &data)
            }
            Received::Notice(ViewerNotice::ClipboardDenied) => self.denied_clipboard = true,
            Received::Notice(ViewerNotice::Attention { text, how }) => {
                self.pending_output
                    .push(&TerminalNotification::from_setting(&how, environment_variable).bytes(&text));
            }
            Received::Notice(ViewerNotice::DaemonLeaves) => self.search(RESTART_TAKES),
            Received::Notice(ViewerNotice::Unknown) => {}
            Received::Broken => self.search(CRASH_TAKES),
            Received::Found(connected) => self.on_found(*connected),
            Received::SearchFailure(failure) => return Some(end_after_search(failure)),
            Received::StillSearching => self.draw_searching(),
        }
        None
    }

    fn on_bytes(&mut self, bytes: &[u8]) {
        self.unsent.drawn.on_received(bytes);
        let before = std::mem::replace(&mut self.shown, ScreenContent::Live);
        if before == ScreenContent::Users {
            self.pending_output.push(&scroll_up_bytes());
        }
        let (until_title, rest) = bytes.split_at(title::title_position(bytes).unwrap_or(0));
        let (until_title, rest) = (self.agents_title.feed(until_title), self.agents_title.feed(rest));
        self.pending_output.push(&until_title);
        if !until_title.is_empty() {
            self.draw_title();
        }
        self.pending_output.push(&rest);
    }

    /// Writes to the terminal's clipboard. The checks make sure that the bytes do nothing else.
    fn copy_to_clipboard(&mut self, selection: &str, data: &str) {
        let is_selection = |byte: u8| matches!(byte, b'c' | b'p' | b'q' | b's' | b'0'..=b'7');
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
        let sound = !data.is_empty() && data.bytes().all(is_base64) && selection.bytes().all(is_selection);
        if sound && self.role == Role::Types {
            self.pending_output.push(format!("\x1b]52;{selection};{data}\x1b\\").as_bytes());
        }
    }

    fn on_control(&mut self, yours: bool) {
        let role = match (yours, self.target.mode) {
            (true, AttachMode::Control | AttachMode::Take) => Role::Types,
            (false, _) | (true, AttachMode::ReadOnly) => Role::Watches,
        };
        if role != self.role {
            self.role = role;
            if role == Role::Types {
                // The agent's terminal still has the size of the previous controller.
                self.unsent.size = caller::terminal_size();
            }
            self.draw_title();
        }
    }

    fn on_found(&mut self, mut connected: Connected) {
        // Another stream counts from its own beginning.
        self.unsent.drawn = Drawn::default();
        self.unsent.typed.splice(..0, std::mem::take(&mut connected.undelivered));
        self.agents_title = TitlePrefix::of(&connected.task.slug);
        let (incoming, outgoing) = connected.split();
        self.incoming = incoming;
        self.outgoing = Some(outgoing);
        self.shown = match self.shown {
            ScreenContent::Users => ScreenContent::Users,
            ScreenContent::Old | ScreenContent::Live => ScreenContent::Old,
        };
        // The size may have changed while we connected.
        self.unsent.size = caller::terminal_size();
        self.send_colours();
    }

    fn search(&mut self, patience: Duration) {
        // `--take` counts only once. A viewer that has taken control from us since keeps it.
        if self.target.mode == AttachMode::Take {
            self.target.mode = AttachMode::Control;
        }
        self.connect_again(patience);
    }

    fn connect_again(&mut self, patience: Duration) {
        let (context, target, old) = (self.context.clone(), self.target.clone(), self.outgoing.take());
        self.incoming = Incoming::search(context, target, patience, old);
    }

    /// We must not draw on the agent's screen. We may set the title while the agent has set none.
    fn draw_title(&mut self) {
        let role = match self.role {
            Role::Types => "",
            Role::Watches | Role::WatchesWithOffer => "watching, ",
        };
        let way_out = match self.keys.keys() {
            keys if keys.is_none() => "no detach key".to_owned(),
            keys => format!("{keys} detaches"),
        };
        let title = format!("\x1b]2;{} ({role}{way_out})\x1b\\", self.name);
        self.pending_output.push(title.as_bytes());
    }

    fn draw_searching(&mut self) {
        self.draw_last_row(&format!("[the daemon is gone, {} keeps running; reconnecting]", self.name));
    }

    /// The next screen overwrites it.
    fn draw_last_row(&mut self, text: &str) {
        let Size { cols, rows, .. } = caller::terminal_size().unwrap_or_default();
        // A full row would wrap and scroll the screen.
        let text: String = text.chars().take(usize::from(cols).saturating_sub(1)).collect();
        self.pending_output.push(format!("\x1b7\x1b[{rows};1H\x1b[0;7m{text}\x1b[0m\x1b[K\x1b8").as_bytes());
    }
}

/// In the classic encoding, or in kitty's.
fn is_enter(typed: &[u8]) -> bool {
    matches!(typed, [b'\r' | b'\n', ..]) || typed.starts_with(b"\x1b[13u") || typed.starts_with(b"\x1b[13;")
}

fn api_colours(colours: &Colours) -> pty::Colours {
    let rgb = |Rgb(r, g, b): Rgb| [r, g, b];
    pty::Colours {
        foreground: colours.foreground.map(rgb),
        background: colours.background.map(rgb),
        cursor: colours.cursor.map(rgb),
        palette: colours.palette.iter().map(|(index, colour)| (*index, rgb(*colour))).collect(),
    }
}

fn end_after_search(failure: SearchFailure) -> End {
    let ended = failure.run_has_ended();
    match failure.task {
        Some(task) if ended => End::EndedMeanwhile(task),
        _ => End::Lost(failure.failure),
    }
}

/// Line ends that move the user's screen into the scrollback of their terminal: as many as there are rows move exactly
/// the lines above the cursor away.
fn scroll_up_bytes() -> Vec<u8> {
    vec![b'\n'; usize::from(caller::terminal_size().unwrap_or_default().rows)]
}

async fn sleep_until_some(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn send_unsent(outgoing: Option<&Outgoing>, unsent: &mut Unsent) {
    match outgoing {
        Some(outgoing) if !unsent.is_empty() => outgoing.send(unsent).await,
        _ => std::future::pending().await,
    }
}
