//! The loop: everything that can happen to a keeper happens here, one thing after another.
//!
//! Signals, peers and input are served before output, and output in portions, so that a flood starves
//! nobody. No threads, no timers while nothing is due.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use agency_api::Bytes;
use agency_api::keeper::{CLOSED_TAG, Ended, FromKeeper, PROBE_TAG, Probe};
use agency_journal::{Asked, BodyRef, ExitStatus, Stream};
use rustix::event::PollFlags;
use rustix::process::{WaitOptions, wait};

use crate::child;
use crate::clients::Clients;
use crate::input::InputQueue;
use crate::ledger::Ledger;
use crate::life::{Exit, Life};
use crate::looks::Looks;
use crate::pidfile::PidFile;
use crate::platform::Watch;
use crate::port::{Port, Read, Write};
use crate::probe::{self, Outlook};
use crate::signals::{self, Signals};
use crate::socket::Socket;
use crate::tree::{Ending, Tree};
use crate::wake::{Source, Waiting, Woken};

/// One record of output at most; a terminal gives 4 KB at a time.
const OUTPUT_BYTES: usize = 64 << 10;
/// What an agent leaves behind has this long after TERM and HUP.
const GRACE_AFTER_EXIT: Duration = Duration::from_secs(2);
/// Memory that a flood needed is given back when it has been quiet for so long.
const RELAX_AFTER: Duration = Duration::from_secs(1);
/// A key is mostly answered by an echo right away: word of both wakes the daemon once.
const ECHO_WITHIN: Duration = Duration::from_millis(1);

pub(crate) struct Hold {
    pub(crate) run_id: String,
    pub(crate) env: Vec<(Bytes, Bytes)>,
    pub(crate) linger: Duration,
    pub(crate) signals: Signals,
    pub(crate) socket: Socket,
    pub(crate) port: Port,
    pub(crate) ledger: Ledger,
    pub(crate) clients: Clients,
    pub(crate) tree: Tree,
    pub(crate) pid_file: PidFile,
    /// Of an agent that is not our child.
    pub(crate) watch: Option<Watch>,
    pub(crate) state: State,
    /// Held until we leave.
    pub(crate) _lock: OwnedFd,
}

/// What changes while it runs.
pub(crate) struct State {
    pub(crate) life: Life,
    pub(crate) ending: Option<Ending>,
    pub(crate) stop_asked: bool,
    pub(crate) input: InputQueue,
    pub(crate) close_input: bool,
    /// Leaves as soon as the tree is gone.
    pub(crate) hurry: bool,
    pub(crate) dismissed: bool,
    pub(crate) buffer: Vec<u8>,
    pub(crate) relax_at: Option<Instant>,
    pub(crate) looks: Looks,
    /// What the last note said of the processes and the terminal.
    pub(crate) noted: Option<Probe>,
}

impl State {
    pub(crate) fn new() -> State {
        let now = Instant::now();
        State {
            life: Life::Alive,
            ending: None,
            stop_asked: false,
            input: InputQueue::default(),
            close_input: false,
            hurry: false,
            dismissed: false,
            buffer: Vec::new(),
            // What the launch needed is given back like what a flood needed.
            relax_at: Some(now + RELAX_AFTER),
            looks: Looks::begun(now),
            noted: None,
        }
    }
}

impl Hold {
    pub(crate) fn run(mut self) {
        while !self.is_over() {
            let woken = self.wait();
            self.serve_signals();
            if woken.connection {
                self.socket.accept_into(&mut self.clients);
            }
            for peer in woken.heard {
                self.hear(peer);
            }
            for peer in woken.may_speak {
                self.clients.speak(peer, self.ledger.dir());
                // One that lagged needed room, and may need it longer than the agent printed.
                self.state.relax_at = Some(Instant::now() + RELAX_AFTER);
            }
            self.feed_input();
            for stream in woken.output {
                self.read_output(stream);
            }
            if woken.watch {
                self.watched_exit();
            }
            self.tick(Instant::now());
            self.clients.forget_closed();
        }
        self.leave();
    }

    fn is_over(&self) -> bool {
        let gone = self.state.life.is_gone();
        gone && (self.state.hurry || self.state.dismissed || self.state.life.is_over(Instant::now()))
    }

    fn wait(&self) -> Woken {
        let mut waiting = Waiting::default();
        waiting.on(Source::Signals, self.signals.as_fd(), PollFlags::IN);
        if let Some(listener) = self.socket.listener() {
            waiting.on(Source::Listener, listener.as_fd(), PollFlags::IN);
        }
        if let Some(watch) = self.watch.as_ref().filter(|_| self.state.life.is_alive()) {
            waiting.on(Source::Watch, watch.as_fd(), PollFlags::IN);
        }
        self.wait_for_agent(&mut waiting);
        self.wait_for_peers(&mut waiting);
        let turns: Vec<u64> = self.clients.waiting().collect();
        let deadline = if turns.is_empty() { self.deadline() } else { Some(Instant::now()) };
        let mut woken = waiting.until(deadline);
        woken.heard.extend(turns);
        woken
    }

    fn wait_for_agent<'a>(&'a self, waiting: &mut Waiting<'a>) {
        for (stream, fd) in self.port.readable() {
            waiting.on(Source::Output(stream), fd, PollFlags::IN);
        }
        if let Some(fd) = self.port.writable().filter(|_| !self.state.input.is_empty()) {
            waiting.on(Source::Input, fd, PollFlags::OUT);
        }
    }

    fn wait_for_peers<'a>(&'a self, waiting: &mut Waiting<'a>) {
        for peer in self.clients.iter() {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, peer.wants_to_hear());
            flags.set(PollFlags::OUT, peer.wants_to_say(self.clients.journal_next()));
            waiting.on(Source::Peer(peer.id), peer.as_fd(), flags);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let ending = self.state.ending.as_ref().filter(|_| !self.state.life.is_gone());
        let all = [
            self.state.life.deadline(),
            ending.map(Ending::deadline),
            self.ledger.deadline(),
            self.socket.deadline(),
            self.clients.deadline(),
            self.state.relax_at,
            self.look_at(),
        ];
        all.into_iter().flatten().min()
    }

    /// Pipes tell by themselves when they are read; nothing is to be learned of an agent that has exited.
    fn look_at(&self) -> Option<Instant> {
        let tells = self.state.life.is_alive() && self.port.as_terminal().is_some();
        self.state.looks.deadline().filter(|_| tells)
    }

    fn serve_signals(&mut self) {
        let signals::Asked { reap, end, bind_anew } = self.signals.take();
        if reap {
            self.reap();
        }
        if end {
            self.state.hurry = true;
            self.stop(GRACE_AFTER_EXIT);
        }
        if bind_anew {
            self.bind_anew();
        }
    }

    /// Takes the status of every child that ended: the agent's own and those of orphans we adopted.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let is_agent =
                self.tree.child.as_ref().is_some_and(|child| child.pid == pid.as_raw_nonzero().get());
            // A rescued agent is not our child, so its number can come back as an orphan's.
            if is_agent && self.watch.is_none() {
                self.agent_exited(child::exit_status(status.as_raw()));
            }
        }
    }

    fn watched_exit(&mut self) {
        let status = self.watch.as_ref().and_then(Watch::wait_status);
        self.agent_exited(status.map_or(ExitStatus::Unknown, child::exit_status));
    }

    fn agent_exited(&mut self, status: ExitStatus) {
        let asked = self.state.stop_asked.then(|| match (&self.state.ending, &self.tree.child) {
            // KILL also reaches one that just died of TERM.
            (Some(ending), Some(child)) if ending.has_killed(child) && is_kill(status) => Asked::Kill,
            _ => Asked::Term,
        });
        self.state.life.exited(Exit { status, asked }, Instant::now());
        self.port.agent_exited();
        self.refuse_input("the agent has exited");
    }

    pub(crate) fn stop(&mut self, grace: Duration) {
        let now = Instant::now();
        self.state.stop_asked |= self.state.life.is_alive();
        self.end_tree(now, grace);
    }

    fn end_tree(&mut self, now: Instant, grace: Duration) {
        match &mut self.state.ending {
            Some(ending) => ending.kill_by(now + grace),
            none => *none = Some(Ending::begun(now, grace)),
        }
    }

    /// Somebody deleted our socket, or the directory that it was in.
    fn bind_anew(&mut self) {
        // What cannot be bound now can be asked for again; the agent is no worse off.
        if self.socket.bind_anew().is_ok() {
            self.pid_file.write(Path::new(PID_FILE)).ok();
        }
    }

    fn feed_input(&mut self) {
        if self.state.input.is_empty() && !self.state.close_input {
            return;
        }
        self.clients.hold_back();
        self.write_input();
        let now = Instant::now();
        self.clients.send_by(now + ECHO_WITHIN);
        self.state.relax_at = Some(now + RELAX_AFTER);
    }

    /// Writes queued input as far as the agent takes it, and records it in that order.
    fn write_input(&mut self) {
        while let Some((source, bytes)) = self.state.input.front() {
            let is_hidden = self.port.as_terminal().is_some_and(|terminal| terminal.hides_input());
            let count = match self.port.write(bytes) {
                Write::Bytes(count) => count,
                Write::Full => return,
                Write::Closed => return self.refuse_input("the agent has closed its input"),
            };
            let body = match (bytes.get(..count), is_hidden) {
                (Some(bytes), false) => BodyRef::Input { source, bytes },
                _ => BodyRef::HiddenInput { source, len: count as u64 },
            };
            self.ledger.record(body, &mut self.clients);
            self.state.looks.stirred(Instant::now());
            if let Some(receipt) = self.state.input.advance(count) {
                self.clients.confirm_input(receipt);
            }
        }
        if std::mem::take(&mut self.state.close_input) {
            self.port.close_input();
        }
    }

    fn refuse_input(&mut self, reason: &str) {
        for receipt in self.state.input.give_up() {
            self.clients.refuse_input(receipt, reason);
        }
    }

    fn read_output(&mut self, stream: Stream) {
        let mut buffer = std::mem::take(&mut self.state.buffer);
        buffer.clear();
        buffer.reserve_exact(OUTPUT_BYTES);
        match self.port.read(stream, &mut buffer) {
            Read::Bytes(_) => {
                self.ledger.record(BodyRef::Output { stream, bytes: &buffer }, &mut self.clients);
                let now = Instant::now();
                self.state.life.saw_output(now);
                self.state.looks.stirred(now);
                self.state.relax_at = Some(now + RELAX_AFTER);
            }
            Read::Dry => {}
            Read::Closed => self.port_closed(stream),
        }
        self.state.buffer = buffer;
    }

    /// Where the agent itself cannot be watched, the last one to leave its terminal tells of its end.
    fn port_closed(&mut self, stream: Stream) {
        if stream == Stream::Stdout {
            self.ledger.record(BodyRef::Note { tag: CLOSED_TAG, bytes: b"" }, &mut self.clients);
        }
        let is_unwatched = self.tree.run_id_to_search.is_some() && self.watch.is_none();
        if is_unwatched && self.port.is_drained() {
            self.agent_exited(ExitStatus::Unknown);
        }
    }

    fn tick(&mut self, now: Instant) {
        self.clients.tick(now);
        self.ledger.tick(now, &mut self.clients);
        if let Some(Exit { status, asked }) = self.state.life.due_exit(self.port.is_drained(), now) {
            self.ledger.record(BodyRef::Exit { status, asked }, &mut self.clients);
            self.end_tree(now, GRACE_AFTER_EXIT);
        }
        if !self.state.life.is_gone() && self.state.ending.as_ref().is_some_and(|end| end.deadline() <= now) {
            self.sweep(now);
        }
        if self.state.relax_at.is_some_and(|at| at <= now) {
            self.relax();
        }
        if self.look_at().is_some_and(|at| at <= now) {
            self.look(now);
        }
    }

    /// Notes what the kernel says, if that is news.
    fn look(&mut self, now: Instant) {
        let probe = probe::noteworthy(&self.port, &self.tree, &self.clients.daemon_pids());
        let is_news = self.state.noted.as_ref().is_none_or(|noted| probe::differs(noted, &probe));
        self.state.looks.looked(now, Outlook::of(&probe), is_news);
        // A look needs more memory than a keeper has while it is idle.
        self.state.relax_at = self.state.relax_at.or(Some(now + RELAX_AFTER));
        if let Some(json) = serde_json::to_vec(&probe).ok().filter(|_| is_news) {
            self.ledger.record(BodyRef::Note { tag: PROBE_TAG, bytes: &json }, &mut self.clients);
            // What a full disk did not take is news at the next look as well.
            self.state.noted = self.ledger.trouble().is_none().then_some(probe);
        }
    }

    /// Who begins to read here does not know what was noted before.
    pub(crate) fn note_again(&mut self) {
        self.state.noted = None;
        self.state.looks.stirred(Instant::now());
    }

    fn sweep(&mut self, now: Instant) {
        let others = self.clients.daemon_pids();
        let Some(ending) = &mut self.state.ending else { return };
        let anyone = ending.sweep(now, &self.tree, &others);
        self.reap();
        // Processes can slip through one look while their parents die; with no children there is nobody to.
        if !anyone && self.state.life == Life::Ending && !self.anyone_left(&others) {
            self.gone(now);
        }
    }

    fn anyone_left(&mut self, others: &[i32]) -> bool {
        let is_ours = self.tree.run_id_to_search.is_none();
        if is_ours && matches!(wait(WaitOptions::NOHANG), Err(rustix::io::Errno::CHILD)) {
            return false;
        }
        let now = Instant::now();
        self.state.ending.as_mut().is_some_and(|ending| ending.sweep(now, &self.tree, others))
    }

    fn gone(&mut self, now: Instant) {
        self.state.life.tree_ended(now + self.linger);
        self.clients.tell_all_at_the_end(&self.gone_message());
    }

    pub(crate) fn gone_message(&self) -> FromKeeper {
        FromKeeper::Gone { ended: self.ended() }
    }

    pub(crate) fn ended(&self) -> Vec<Ended> {
        self.state.ending.as_ref().map(Ending::ended).unwrap_or_default()
    }

    /// Gives back what a flood needed.
    fn relax(&mut self) {
        self.state.relax_at = None;
        self.state.buffer = Vec::new();
        self.clients.relax();
        self.ledger.relax();
        give_back_memory();
    }

    fn leave(mut self) {
        self.ledger.try_once_more(&mut self.clients);
        for peer in self.clients.iter().map(|peer| peer.id).collect::<Vec<_>>() {
            self.clients.speak(peer, self.ledger.dir());
        }
        // Nobody is left to be told; the daemon finds a file of a keeper that is not there.
        self.socket.remove().ok();
        self.pid_file.remove(Path::new(PID_FILE)).ok();
    }
}

fn is_kill(status: ExitStatus) -> bool {
    matches!(status, ExitStatus::Signal(libc::SIGKILL) | ExitStatus::Unknown)
}

pub(crate) const PID_FILE: &str = "pid";

#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
fn give_back_memory() {
    // SAFETY: no arguments to get wrong; it only returns unused pages to the kernel.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn give_back_memory() {}
