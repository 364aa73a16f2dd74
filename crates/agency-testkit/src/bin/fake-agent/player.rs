//! Plays a script on a terminal (or on pipes, where modes and sizes do nothing).

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agency_testkit::Flood;
use rustix::termios::Termios;
use signal_hook::consts::SIGWINCH;
use signal_hook::iterator::Signals;

use crate::child;
use crate::ending::{crash, ignore_term, wait_forever};
use crate::input::{Ended, Input};
use crate::script::{ChildKind, Command, Step};
use crate::terminal;

/// Terminals answer within milliseconds, even on a busy machine; after this time there is no reply.
const REPLY_WITHIN: Duration = Duration::from_secs(3);

/// The exit code if the input ends while the script still reads.
const INPUT_ENDED: i32 = 3;

pub(crate) struct Player {
    args: Vec<String>,
    input: Input,
    ignores_term: bool,
    /// In raw mode the terminal does not add a `\r`, so the agent ends its lines with `\r\n`.
    is_raw: Arc<AtomicBool>,
}

impl Player {
    pub(crate) fn new(args: Vec<String>) -> Player {
        Player { args, input: Input::default(), ignores_term: false, is_raw: Arc::default() }
    }

    pub(crate) fn play(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Do(command) => {
                    if let Err(Ended) = self.perform(command) {
                        self.end_without_input();
                    }
                }
                Step::Loop(Some(times), steps) => (0..*times).for_each(|_| self.play(steps)),
                Step::Loop(None, steps) => loop {
                    self.play(steps);
                },
            }
        }
    }

    fn end_without_input(&self) -> ! {
        // An agent that ignores SIGHUP also runs on without its terminal.
        if self.ignores_term { wait_forever() } else { exit(INPUT_ENDED) }
    }

    fn perform(&mut self, command: &Command) -> Result<(), Ended> {
        match command {
            Command::Say(text) => self.say(text),
            Command::Print(bytes) => print(bytes),
            Command::Ask(prompt) => self.ask(prompt)?,
            Command::WaitFor(text) => self.input.until(text)?,
            Command::Sleep(time) => std::thread::sleep(*time),
            Command::Await(pipe) => self.wait_at(pipe),
            Command::IgnoreTerm => self.ignore_term(),
            Command::ForkChild(kind, name) => self.fork_child(*kind, name),
            Command::Crash(ending) => crash(*ending),
            Command::Exit(code) => exit(*code),
            Command::Flood(bytes) => flood(*bytes),
            Command::Env(name) => self.say(&std::env::var(name).unwrap_or_else(|_| "unset".into())),
            Command::Args => self.say_args(),
            Command::Cwd => self.say_cwd(),
            Command::Size => self.say(&terminal::size()),
            Command::OnWinch => self.on_winch(),
            Command::GetPass(prompt) => self.getpass(prompt)?,
            Command::Raw => self.go_raw(),
            Command::MarkFile(path) => self.mark(path),
            Command::Query(sequence) => self.query(sequence)?,
            Command::Menu(parts) => self.menu(parts)?,
            Command::Flush => terminal::flush(),
            Command::NoRead => wait_forever(),
        }
        Ok(())
    }

    fn say(&self, text: &str) {
        say(text, &self.is_raw);
    }

    fn ask(&mut self, prompt: &str) -> Result<(), Ended> {
        print(format!("{prompt} ").as_bytes());
        let line = self.input.line()?;
        self.say(&format!("got: {}", String::from_utf8_lossy(&line)));
        Ok(())
    }

    fn ignore_term(&mut self) {
        self.ignores_term = true;
        ignore_term();
    }

    fn wait_at(&self, pipe: &Path) {
        if let Err(err) = std::fs::read(pipe) {
            self.say(&format!("cannot wait at {}: {err}", pipe.display()));
        }
    }

    fn fork_child(&self, kind: ChildKind, name: &str) {
        match child::start(kind, name, self.ignores_term) {
            Ok(pid) => self.say(&format!("child {pid}")),
            Err(err) => self.say(&format!("no child: {err}")),
        }
    }

    fn say_args(&self) {
        for (at, arg) in self.args.iter().enumerate() {
            self.say(&format!("arg {}: {arg}", at + 1));
        }
    }

    fn say_cwd(&self) {
        match std::env::current_dir() {
            Ok(path) => self.say(&path.display().to_string()),
            Err(err) => self.say(&format!("no directory: {err}")),
        }
    }

    fn on_winch(&self) {
        let is_raw = self.is_raw.clone();
        match Signals::new([SIGWINCH]) {
            Ok(mut signals) => {
                std::thread::spawn(move || {
                    for _ in signals.forever() {
                        say(&format!("resized {}", terminal::size()), &is_raw);
                    }
                });
            }
            Err(err) => self.say(&format!("no SIGWINCH: {err}")),
        }
    }

    /// Turns ECHO off before it prints the prompt, so that a test may type as soon as it sees the prompt.
    fn getpass(&mut self, prompt: &str) -> Result<(), Ended> {
        let before = terminal::change(terminal::echo_off);
        print(format!("{prompt} ").as_bytes());
        let line = self.input.line();
        before.as_ref().map(terminal::set);
        self.say("");
        self.say(&format!("got secret of {}", line?.len()));
        Ok(())
    }

    fn menu(&mut self, parts: &[String]) -> Result<(), Ended> {
        let before = terminal::change(Termios::make_raw);
        let (question, choices) = parts.split_first().ok_or(Ended)?;
        let (mut marked, rows) = (0, choices.len());
        print(format!("\x1b[?25l{question}\r\n").as_bytes());
        loop {
            for (at, choice) in choices.iter().enumerate() {
                let mark = if at == marked { '❯' } else { ' ' };
                print(format!("\x1b[2K{mark} {choice}\r\n").as_bytes());
            }
            match self.input.key()?.as_slice() {
                b"\x1b[B" | b"j" => marked = (marked + 1) % rows,
                b"\x1b[A" | b"k" => marked = (marked + rows - 1) % rows,
                b"\r" => break,
                _ => {}
            }
            print(format!("\x1b[{rows}A").as_bytes());
        }
        print(format!("\x1b[{}A\x1b[J\x1b[?25h", rows + 1).as_bytes());
        before.as_ref().map(terminal::set);
        self.say(&format!("chose: {}", choices[marked]));
        Ok(())
    }

    fn go_raw(&mut self) {
        if terminal::change(Termios::make_raw).is_some() {
            self.is_raw.store(true, Ordering::SeqCst);
        }
    }

    fn mark(&self, path: &Path) {
        let file = OpenOptions::new().append(true).create(true).open(path);
        if let Err(err) = file.and_then(|mut file| writeln!(file, "{}", std::process::id())) {
            self.say(&format!("no mark in {}: {err}", path.display()));
        }
    }

    fn query(&mut self, sequence: &[u8]) -> Result<(), Ended> {
        let before = terminal::change(Termios::make_raw);
        print(sequence);
        let reply = self.input.reply(REPLY_WITHIN);
        before.as_ref().map(terminal::set);
        match reply? {
            Some(reply) => {
                let hex: String = reply.iter().map(|byte| format!("{byte:02x}")).collect();
                self.say(&format!("reply: {hex}"));
            }
            None => self.say("reply: none"),
        }
        Ok(())
    }
}

fn say(text: &str, is_raw: &AtomicBool) {
    let end = if is_raw.load(Ordering::SeqCst) { "\r\n" } else { "\n" };
    print(format!("{text}{end}").as_bytes());
}

fn print(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        // The terminal is closed. SIGHUP and the script decide whether that ends the agent.
    }
}

/// Prints in large pieces, as programs with much output do.
fn flood(bytes: u64) {
    let mut piece = Vec::new();
    for line in Flood::of(bytes) {
        piece.extend_from_slice(&line);
        if piece.len() >= 8192 {
            print(&piece);
            piece.clear();
        }
    }
    print(&piece);
}
