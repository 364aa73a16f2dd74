//! The keeper's loop: serves signals, peers, input, output and deadlines, one after another.
//!
//! It serves signals, peers and input before output, and reads output in portions, so that a flood of output
//! cannot starve them. It uses no threads, and no timer while nothing is due.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use agency_api::Bytes;
use agency_api::keeper::{CLOSED_TAG, Ended, FromKeeper, PROBE_TAG, Probe};
use agency_journal::{BodyRef, ExitStatus, StopSignal, Stream};
use rustix::event::PollFlags;
use rustix::process::{WaitOptions, wait};

use crate::child;
use crate::input::InputQueue;
use crate::life::{Exit, Life};
use crate::peers::Peers;
use crate::pidfile::PidFile;
use crate::platform::Watch;
use crate::poll_set::{PollSet, Ready, Source};
use crate::port::{Port, ReadResult, WriteResult};
use crate::probe::{self, Outlook};
use crate::probe_schedule::ProbeSchedule;
use crate::run_journal::RunJournal;
use crate::run_lock;
use crate::signals::{SignalRequests, Signals};
use crate::socket::Socket;
use crate::tree::{Termination, Tree};

/// The largest output record; a terminal returns 4 KB per read.
const OUTPUT_BYTES: usize = 64 << 10;
/// How long the agent's remaining processes have after TERM and HUP.
const GRACE_AFTER_EXIT: Duration = Duration::from_secs(2);
/// After this long without output, the keeper returns the memory that a flood needed.
const RELEASE_MEMORY_AFTER: Duration = Duration::from_secs(1);
/// The echo of a key usually follows at once. PollSet this long lets one message carry both, so the daemon
/// wakes only once.
const ECHO_WITHIN: Duration = Duration::from_millis(1);

pub(crate) struct Keeper {
    pub(crate) run_id: String,
    /// Whose run it is. Only daemons understand it.
    pub(crate) owner: Option<serde_json::Value>,
    pub(crate) env: Vec<(Bytes, Bytes)>,
    pub(crate) linger: Duration,
    pub(crate) signals: Signals,
    pub(crate) socket: Socket,
    pub(crate) port: Port,
    pub(crate) journal: RunJournal,
    pub(crate) peers: Peers,
    pub(crate) tree: Tree,
    pub(crate) pid_file: PidFile,
    /// Set for an agent that is not our child.
    pub(crate) watch: Option<Watch>,
    pub(crate) state: KeeperState,
    /// Keeps the run locked until the keeper exits.
    pub(crate) lock: OwnedFd,
}

/// The part of the keeper that changes while it runs.
pub(crate) struct KeeperState {
    pub(crate) life: Life,
    pub(crate) termination: Option<Termination>,
    pub(crate) stop_requested: bool,
    pub(crate) input: InputQueue,
    pub(crate) close_input: bool,
    /// Exit as soon as the process tree is gone.
    pub(crate) exit_when_gone: bool,
    pub(crate) dismissed: bool,
    pub(crate) buffer: Vec<u8>,
    pub(crate) release_memory_at: Option<Instant>,
    pub(crate) probe_schedule: ProbeSchedule,
    /// The last probe that was written to the journal.
    pub(crate) last_noted: Option<Probe>,
}

impl KeeperState {
    pub(crate) fn new() -> KeeperState {
        let now = Instant::now();
        KeeperState {
            life: Life::Alive,
            termination: None,
            stop_requested: false,
            input: InputQueue::default(),
            close_input: false,
            exit_when_gone: false,
            dismissed: false,
            buffer: Vec::new(),
            // The launch needed memory too; return it in the same way as after a flood.
            release_memory_at: Some(now + RELEASE_MEMORY_AFTER),
            probe_schedule: ProbeSchedule::started(now),
            last_noted: None,
        }
    }
}

impl Keeper {
    pub(crate) fn run(mut self) {
        while !self.is_over() {
            let ready = self.wait();
            self.serve_signals();
            if ready.connection {
                self.socket.accept_into(&mut self.peers);
            }
            for peer in ready.readable_peers {
                self.serve_peer(peer);
            }
            for peer in ready.writable_peers {
                self.peers.send_pending(peer, self.journal.dir());
                // A peer that lagged needed memory, possibly for longer than the agent printed.
                self.state.release_memory_at = Some(Instant::now() + RELEASE_MEMORY_AFTER);
            }
            self.feed_input();
            for stream in ready.output {
                self.read_output(stream);
            }
            if ready.watch {
                self.on_watched_exit();
            }
            self.tick(Instant::now());
            self.peers.forget_closed();
        }
        self.shut_down();
    }

    /// A keeper whose journal lacks records stays until the disk takes them, unless a signal ends it.
    fn is_over(&self) -> bool {
        let is_done = self.state.dismissed || self.state.life.is_over(Instant::now());
        let may_leave = is_done && !self.journal.owes_records();
        self.state.life.is_gone() && (self.state.exit_when_gone || may_leave)
    }

    fn wait(&self) -> Ready {
        let mut poll_set = PollSet::default();
        poll_set.add(Source::Signals, self.signals.as_fd(), PollFlags::IN);
        if let Some(listener) = self.socket.listener() {
            poll_set.add(Source::Listener, listener.as_fd(), PollFlags::IN);
        }
        if let Some(watch) = self.watch.as_ref().filter(|_| self.state.life.is_alive()) {
            poll_set.add(Source::Watch, watch.as_fd(), PollFlags::IN);
        }
        self.wait_for_agent(&mut poll_set);
        self.wait_for_peers(&mut poll_set);
        let pending: Vec<u64> = self.peers.with_pending_frames().collect();
        let deadline = if pending.is_empty() { self.deadline() } else { Some(Instant::now()) };
        let mut ready = poll_set.wait_until(deadline);
        ready.readable_peers.extend(pending);
        ready
    }

    fn wait_for_agent<'a>(&'a self, poll_set: &mut PollSet<'a>) {
        for (stream, fd) in self.port.readable() {
            poll_set.add(Source::Output(stream), fd, PollFlags::IN);
        }
        if let Some(fd) = self.port.writable().filter(|_| !self.state.input.is_empty()) {
            poll_set.add(Source::Input, fd, PollFlags::OUT);
        }
    }

    fn wait_for_peers<'a>(&'a self, poll_set: &mut PollSet<'a>) {
        for peer in self.peers.iter() {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, peer.wants_to_read());
            flags.set(PollFlags::OUT, peer.wants_to_write(self.peers.journal_next()));
            poll_set.add(Source::Peer(peer.id), peer.as_fd(), flags);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let termination = self.state.termination.as_ref().filter(|_| !self.state.life.is_gone());
        let all = [
            // The end of the run's life is no deadline while the journal is; it would only keep the loop awake.
            self.state
                .life
                .deadline()
                .filter(|_| !(self.state.life.is_gone() && self.journal.owes_records())),
            termination.map(Termination::deadline),
            self.journal.deadline(),
            self.socket.deadline(),
            self.peers.deadline(),
            self.state.release_memory_at,
            self.probe_deadline(),
        ];
        all.into_iter().flatten().min()
    }

    /// When the next probe is due. Only terminals need probes, since reads on pipes are visible by themselves,
    /// and only while the agent is alive.
    fn probe_deadline(&self) -> Option<Instant> {
        let can_probe = self.state.life.is_alive() && self.port.as_terminal().is_some();
        self.state.probe_schedule.deadline().filter(|_| can_probe)
    }

    fn serve_signals(&mut self) {
        let SignalRequests { reap, end, rebind } = self.signals.take();
        if reap {
            self.reap();
        }
        if end {
            self.state.exit_when_gone = true;
            self.stop(GRACE_AFTER_EXIT);
        }
        if rebind {
            self.rebind();
        }
    }

    /// Collects the status of every child that ended: the agent and orphans that we adopted.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let is_agent =
                self.tree.child.as_ref().is_some_and(|child| child.pid == pid.as_raw_nonzero().get());
            // A rescued agent is not our child, so an adopted orphan may have the same pid.
            if is_agent && self.watch.is_none() {
                self.on_agent_exit(child::exit_status(status.as_raw()));
            }
        }
    }

    fn on_watched_exit(&mut self) {
        let status = self.watch.as_ref().and_then(Watch::wait_status);
        self.on_agent_exit(status.map_or(ExitStatus::Unknown, child::exit_status));
    }

    fn on_agent_exit(&mut self, status: ExitStatus) {
        let asked = self.state.stop_requested.then(|| match (&self.state.termination, &self.tree.child) {
            // KILL may also have been sent to an agent that had just died of TERM.
            (Some(termination), Some(child)) if termination.has_killed(child) && is_kill(status) => {
                StopSignal::Kill
            }
            _ => StopSignal::Term,
        });
        self.state.life.on_exit(Exit { status, asked }, Instant::now());
        self.port.on_agent_exit();
        self.refuse_input("the agent has exited");
    }

    pub(crate) fn stop(&mut self, grace: Duration) {
        let now = Instant::now();
        self.state.stop_requested |= self.state.life.is_alive();
        self.end_tree(now, grace);
    }

    fn end_tree(&mut self, now: Instant, grace: Duration) {
        match &mut self.state.termination {
            Some(termination) => termination.kill_by(now + grace),
            none => {
                let has_terminal = self.port.as_terminal().is_some();
                *none = Some(Termination::started(now, grace, has_terminal));
            }
        }
    }

    /// Binds the socket again after it or its directory was deleted.
    fn rebind(&mut self) {
        // If this fails, the daemon can ask again; the agent is not affected.
        if self.socket.rebind().is_ok() {
            self.pid_file.write(Path::new(PID_FILE)).ok();
            // A directory that was made again is another one: lock it, and continue the journal in it.
            if let Ok(lock) = run_lock::lock_run() {
                self.lock = lock;
            }
            self.journal.continue_after_damage();
        }
    }

    fn feed_input(&mut self) {
        if self.state.input.is_empty() && !self.state.close_input {
            return;
        }
        self.peers.delay_messages();
        self.write_input();
        let now = Instant::now();
        self.peers.send_by(now + ECHO_WITHIN);
        self.state.release_memory_at = Some(now + RELEASE_MEMORY_AFTER);
    }

    /// Writes queued input as far as the agent accepts it, and records it in the same order.
    fn write_input(&mut self) {
        while let Some((source, bytes)) = self.state.input.front() {
            let is_hidden = self.port.as_terminal().is_some_and(|terminal| terminal.hides_input());
            let count = match self.port.write(bytes) {
                WriteResult::Bytes(count) => count,
                WriteResult::Full => return,
                WriteResult::Closed => return self.refuse_input("the agent has closed its input"),
            };
            let body = match (bytes.get(..count), is_hidden) {
                (Some(bytes), false) => BodyRef::Input { source, bytes },
                _ => BodyRef::HiddenInput { source, len: count as u64 },
            };
            self.journal.record(body, &mut self.peers);
            self.state.probe_schedule.on_activity(Instant::now());
            if let Some(receipt) = self.state.input.advance(count) {
                self.peers.confirm_input(receipt);
            }
        }
        if std::mem::take(&mut self.state.close_input) {
            self.port.close_input();
        }
    }

    fn refuse_input(&mut self, reason: &str) {
        for receipt in self.state.input.take_refused() {
            self.peers.refuse_input(receipt, reason);
        }
    }

    fn read_output(&mut self, stream: Stream) {
        let mut buffer = std::mem::take(&mut self.state.buffer);
        buffer.clear();
        buffer.reserve_exact(OUTPUT_BYTES);
        match self.port.read(stream, &mut buffer) {
            ReadResult::Bytes(_) => {
                self.journal.record(BodyRef::Output { stream, bytes: &buffer }, &mut self.peers);
                let now = Instant::now();
                self.state.life.on_output(now);
                self.state.probe_schedule.on_activity(now);
                self.state.release_memory_at = Some(now + RELEASE_MEMORY_AFTER);
            }
            ReadResult::Empty => {}
            ReadResult::Closed => self.on_output_closed(stream),
        }
        self.state.buffer = buffer;
    }

    /// If the agent itself cannot be watched, the close of its terminal shows that it ended.
    fn on_output_closed(&mut self, stream: Stream) {
        if stream == Stream::Stdout {
            self.journal.record(BodyRef::Note { tag: CLOSED_TAG, bytes: b"" }, &mut self.peers);
        }
        let is_unwatched = self.tree.run_id_to_search.is_some() && self.watch.is_none();
        if is_unwatched && self.port.is_drained() {
            self.on_agent_exit(ExitStatus::Unknown);
        }
    }

    fn tick(&mut self, now: Instant) {
        self.peers.tick(now);
        self.journal.tick(now, &mut self.peers);
        if let Some(Exit { status, asked }) = self.state.life.take_due_exit(self.port.is_drained(), now) {
            self.journal.record(BodyRef::Exit { status, stopped_by: asked }, &mut self.peers);
            self.end_tree(now, GRACE_AFTER_EXIT);
        }
        if !self.state.life.is_gone()
            && self.state.termination.as_ref().is_some_and(|end| end.deadline() <= now)
        {
            self.sweep(now);
        }
        if self.state.release_memory_at.is_some_and(|at| at <= now) {
            self.release_memory();
        }
        if self.probe_deadline().is_some_and(|at| at <= now) {
            self.note_probe(now);
        }
    }

    /// Probes the processes and the terminal, and journals the result if it changed.
    fn note_probe(&mut self, now: Instant) {
        let probe = probe::probe_for_journal(&self.port, &self.tree, &self.peers.daemon_pids());
        let has_changed =
            self.state.last_noted.as_ref().is_none_or(|last_noted| probe::differs(last_noted, &probe));
        self.state.probe_schedule.on_probe(now, Outlook::of(&probe), has_changed);
        // A process that reads may have asked a moment ago. Its question belongs before the probe in the journal.
        self.read_output(Stream::Terminal);
        // A probe needs more memory than an idle keeper uses.
        self.state.release_memory_at = self.state.release_memory_at.or(Some(now + RELEASE_MEMORY_AFTER));
        if let Some(json) = serde_json::to_vec(&probe).ok().filter(|_| has_changed) {
            self.journal.record(BodyRef::Note { tag: PROBE_TAG, bytes: &json }, &mut self.peers);
            // If the disk was full, the next probe counts as changed too, so it is written then.
            self.state.last_noted = self.journal.trouble().is_none().then_some(probe);
        }
    }

    /// A reader that starts here has not seen earlier probes, so write the next one even if it is unchanged.
    pub(crate) fn repeat_probe_note(&mut self) {
        self.state.last_noted = None;
        self.state.probe_schedule.on_activity(Instant::now());
    }

    fn sweep(&mut self, now: Instant) {
        let others = self.peers.daemon_pids();
        let Some(termination) = &mut self.state.termination else { return };
        let is_any_left = termination.sweep(now, &self.tree, &others);
        self.reap();
        // One scan can miss processes whose parents die during it, so check again before the tree counts as gone.
        if !is_any_left && self.state.life == Life::Ending && !self.sweep_again(&others) {
            self.on_tree_gone(now);
        }
    }

    fn sweep_again(&mut self, others: &[i32]) -> bool {
        let is_ours = self.tree.run_id_to_search.is_none();
        if is_ours && matches!(wait(WaitOptions::NOHANG), Err(rustix::io::Errno::CHILD)) {
            return false;
        }
        let now = Instant::now();
        self.state.termination.as_mut().is_some_and(|termination| termination.sweep(now, &self.tree, others))
    }

    fn on_tree_gone(&mut self, now: Instant) {
        self.state.life.on_tree_ended(now + self.linger);
        self.peers.send_to_all_at_end(&self.gone_message());
    }

    pub(crate) fn gone_message(&self) -> FromKeeper {
        FromKeeper::Gone { ended: self.ended_processes() }
    }

    pub(crate) fn ended_processes(&self) -> Vec<Ended> {
        self.state.termination.as_ref().map(Termination::ended_processes).unwrap_or_default()
    }

    /// Returns the memory that a flood of output needed.
    fn release_memory(&mut self) {
        self.state.release_memory_at = None;
        self.state.buffer = Vec::new();
        self.peers.release_memory();
        self.journal.release_memory();
        trim_heap();
    }

    fn shut_down(mut self) {
        self.journal.write_owed_before_exit(&mut self.peers);
        for peer in self.peers.iter().map(|peer| peer.id).collect::<Vec<_>>() {
            self.peers.send_pending(peer, self.journal.dir());
        }
        // No client is left to receive an error; the daemon recognises files of a keeper that is gone.
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
fn trim_heap() {
    // SAFETY: no arguments to get wrong; it only returns unused pages to the kernel.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn trim_heap() {}
