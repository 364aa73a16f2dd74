//! A keeper under test: started as the daemon starts it, with a client that speaks the daemon's protocol.
//!
//! Waits for frames with a deadline and never sleeps.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio as Piped};
use std::time::{Duration, Instant};

use agency_api::keeper::{
    Ended, Frame, FromKeeper, InputSource, LaunchAnswer, LaunchSpec, Probe, ProcessProbe, Size, Start, Stdio,
    ToKeeper, Welcome,
};
use agency_api::{Bytes, ProcessIdentity};
use agency_journal::{Body, Decoded, ExitStatus, Reader, Record, StopSignal};
use agency_keeper::platform::{self, Watch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::Signal;

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn spec(dir: &Path, argv: &[&str]) -> LaunchSpec {
    LaunchSpec {
        run_id: run_id(dir),
        name: "1-test".into(),
        run_dir: Bytes::from(dir),
        start: Start::Spawn {
            argv: argv.iter().map(|arg| Bytes::from(*arg)).collect(),
            env: environment(&run_id(dir)),
            cwd: "/".into(),
            stdio: Stdio::Pty { size: Size::default() },
        },
        segment_bytes: 8 << 20,
        max_journal_bytes: Some(256 << 20),
        open_files: None,
        linger_ms: 60_000,
        spare: Vec::new(),
        owner: None,
    }
}

/// Unique per test, so that a search by run id cannot find another test's processes.
pub(crate) fn run_id(dir: &Path) -> String {
    agency_api::paths::short_hash(dir.as_os_str().as_encoded_bytes())[..10].to_string()
}

pub(crate) fn environment(run_id: &str) -> Vec<(Bytes, Bytes)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    vec![
        ("PATH".into(), path.into()),
        ("TERM".into(), "xterm-256color".into()),
        ("AGENCY_RUN_ID".into(), run_id.into()),
        ("SECRET".into(), "never on disk".into()),
    ]
}

pub(crate) fn on_pipes(mut spec: LaunchSpec) -> LaunchSpec {
    if let Start::Spawn { stdio, .. } = &mut spec.start {
        *stdio = Stdio::Pipes;
    }
    spec
}

pub(crate) struct Run {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) keeper: ProcessIdentity,
    pub(crate) child: ProcessIdentity,
}

impl Run {
    /// A program in a terminal of 80 × 24.
    pub(crate) fn of(argv: &[&str]) -> Run {
        Run::with(argv, |_| {})
    }

    /// A shell script in such a terminal.
    pub(crate) fn script(text: &str) -> Run {
        Run::of(&["sh", "-c", text])
    }

    pub(crate) fn with(argv: &[&str], change: impl FnOnce(&mut LaunchSpec)) -> Run {
        let dir = private_dir();
        let mut spec = spec(dir.path(), argv);
        change(&mut spec);
        match launch(&spec, Setup::default()) {
            LaunchAnswer::Ready { keeper, child } => Run { dir, keeper, child },
            LaunchAnswer::Failed { what, errno } => panic!("cannot {what}: errno {errno}"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn connect(&self) -> Client {
        Client::to(self.dir.path())
    }

    /// A daemon that follows from the first record on.
    pub(crate) fn daemon(&self) -> Client {
        let mut client = self.connect();
        client.hello(1);
        client.follow(1);
        client
    }

    /// Everything the journal's files hold.
    pub(crate) fn journal(&self) -> Vec<Record> {
        journal(&self.path("j"))
    }

    /// The keeper's parent, which holds the terminal too.
    pub(crate) fn holder(&self) -> ProcessIdentity {
        let keeper = platform::process(self.keeper.pid).expect("it lives");
        let parent = platform::process(keeper.parent).expect("it lives");
        assert_eq!(parent.name, "agency-holder");
        parent.identity()
    }

    /// Waits until the keeper itself has exited.
    pub(crate) fn wait_for_keeper(&self) {
        wait_for_end(&self.keeper);
    }
}

impl Drop for Run {
    /// Ends the keeper, so that no test leaves a process behind.
    fn drop(&mut self) {
        if platform::signal_if_same(&self.keeper, Signal::CONT).unwrap_or(false) {
            platform::signal_if_same(&self.keeper, Signal::TERM).expect("the keeper is ours");
            wait_for_end(&self.keeper);
        }
    }
}

/// The probe in this record, if it is one.
pub(crate) fn probe_in(record: &Record) -> Option<Probe> {
    match &record.body {
        Body::Note { tag, bytes } if tag == "probe" => Some(serde_json::from_slice(bytes).expect("a probe")),
        _ => None,
    }
}

pub(crate) fn process_named<'a>(probe: &'a Probe, name: &str) -> Option<&'a ProcessProbe> {
    probe.processes.iter().find(|process| process.name == name)
}

pub(crate) fn journal(dir: &Path) -> Vec<Record> {
    let mut reader = Reader::open(dir, |_| panic!("nothing here is compressed")).expect("a journal");
    std::iter::from_fn(|| reader.next().expect("readable")).collect()
}

pub(crate) fn private_dir() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("agency-keeper-").tempdir().expect("a directory")
}

pub(crate) fn is_alive(pid: i32) -> bool {
    platform::process(pid).is_some_and(|process| !process.has_ended())
}

pub(crate) fn wait_for_end(identity: &ProcessIdentity) {
    let Some(watch) = Watch::open(identity).expect("a pidfd") else { return };
    let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    let ended = poll(&mut [PollFd::from_borrowed_fd(watch.as_fd(), PollFlags::IN)], Some(&patience));
    assert_eq!(ended, Ok(1), "process {} does not end", identity.pid);
}

/// How a test changes the start of its keeper.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) checkpoint: Option<Frame>,
    pub(crate) rescue_master: Option<OwnedFd>,
    /// Run as this user and group. Works only as root.
    pub(crate) user: Option<u32>,
    pub(crate) binary: Option<PathBuf>,
}

pub(crate) fn keeper_binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_agency-keeper"))
}

pub(crate) fn launch(spec: &LaunchSpec, setup: Setup) -> LaunchAnswer {
    let mut command = Command::new(setup.binary.unwrap_or_else(keeper_binary));
    command.arg0(format!("agency-keeper: {} {}", spec.name, spec.run_id)).env_clear();
    command.stdin(Piped::piped()).stdout(Piped::piped()).stderr(Piped::inherit());
    if let Some(user) = setup.user {
        command.uid(user).gid(user);
    }
    if let Some(master) = setup.rescue_master {
        pass_as_descriptor_3(&mut command, master);
    }
    let mut starting = command.spawn().expect("the keeper's binary");
    let mut stdin = starting.stdin.take().expect("piped");
    stdin.write_all(&Frame::control(spec).expect("json").encoded()).expect("it reads");
    if let Some(checkpoint) = setup.checkpoint {
        stdin.write_all(&checkpoint.encoded()).expect("it reads");
    }
    drop(stdin);
    let mut line = String::new();
    let mut stdout = BufReader::new(starting.stdout.take().expect("piped"));
    stdout.read_line(&mut line).expect("an answer");
    let answer = serde_json::from_str(&line).unwrap_or_else(|err| panic!("{err}: {line:?}"));
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).expect("it lets go of our pipe");
    assert!(rest.is_empty(), "one line and no more");
    starting.wait().expect("the first process");
    answer
}

#[allow(unsafe_code)]
fn pass_as_descriptor_3(command: &mut Command, master: OwnedFd) {
    // SAFETY: one dup2 between fork and exec.
    unsafe {
        command.pre_exec(move || match libc::dup2(master.as_raw_fd(), 3) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => {
                // If it already was 3, dup2 did not clear its CLOEXEC flag.
                libc::fcntl(3, libc::F_SETFD, 0);
                Ok(())
            }
        });
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    Said(FromKeeper),
    Record(Record),
    Closed,
}

pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    buffer: Vec<u8>,
    /// Descriptors that were received.
    pub(crate) descriptors: Vec<OwnedFd>,
    pub(crate) records: Vec<Record>,
    pub(crate) output: Vec<u8>,
    pub(crate) messages: Vec<FromKeeper>,
}

impl Client {
    pub(crate) fn to(dir: &Path) -> Client {
        let stream = agency_api::socket::connect(&dir.join("k")).expect("a socket");
        Client {
            stream,
            buffer: Vec::new(),
            descriptors: Vec::new(),
            records: Vec::new(),
            output: Vec::new(),
            messages: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, frame: &Frame) {
        self.stream.write_all(&frame.encoded()).expect("the keeper reads");
    }

    pub(crate) fn send_message(&mut self, message: &ToKeeper) {
        self.send(&Frame::control(message).expect("json"));
    }

    pub(crate) fn hello(&mut self, epoch: u64) -> Welcome {
        self.send_message(&ToKeeper::Hello { min: 1, max: 1, epoch, peer: "test".into(), lifeline: false });
        self.welcome()
    }

    pub(crate) fn hello_with_lifeline(&mut self, epoch: u64) -> (Welcome, OwnedFd) {
        self.send_message(&ToKeeper::Hello { min: 1, max: 1, epoch, peer: "test".into(), lifeline: true });
        let welcome = self.welcome();
        assert!(welcome.lifeline);
        (welcome, self.descriptors.pop().expect("the master came along"))
    }

    pub(crate) fn welcome(&mut self) -> Welcome {
        self.wait("a welcome", |event| match event {
            Event::Said(FromKeeper::Welcome(welcome)) => Some(welcome.clone()),
            _ => None,
        })
    }

    pub(crate) fn refused(&mut self) -> String {
        self.wait("a refusal", |event| match event {
            Event::Said(FromKeeper::Refused { reason }) => Some(reason.clone()),
            _ => None,
        })
    }

    pub(crate) fn follow(&mut self, from_seq: u64) {
        self.send_message(&ToKeeper::Follow { from_seq });
    }

    pub(crate) fn stop(&mut self, grace: Duration) {
        self.send_message(&ToKeeper::Stop { grace_ms: grace.as_millis() as u64 });
    }

    pub(crate) fn input(&mut self, id: u64, bytes: &[u8]) {
        self.send(&Frame::Input { source: InputSource::User, id, bytes: bytes.to_vec() });
    }

    /// Types, and waits until the agent has taken all of it.
    pub(crate) fn type_in(&mut self, id: u64, bytes: &[u8]) {
        self.input(id, bytes);
        self.wait("the input to be taken", |event| {
            (*event == Event::Said(FromKeeper::InputTaken { id })).then_some(())
        });
    }

    pub(crate) fn probe(&mut self) -> Probe {
        self.send_message(&ToKeeper::Probe { id: 5 });
        self.wait("a probe", |event| match event {
            Event::Said(FromKeeper::Probe { id: 5, probe }) => Some(probe.clone()),
            _ => None,
        })
    }

    /// Probes again and again until the result is as wanted.
    pub(crate) fn probe_until(&mut self, what: &str, is_wanted: impl Fn(&Probe) -> bool) -> Probe {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let probe = self.probe();
            if is_wanted(&probe) {
                return probe;
            }
            assert!(Instant::now() < deadline, "never {what}: {probe:#?}");
        }
    }

    /// The next journaled probe that is as wanted.
    pub(crate) fn wait_for_probe_note(&mut self, what: &str, is_wanted: impl Fn(&Probe) -> bool) -> Probe {
        self.wait(what, |event| match event {
            Event::Record(record) => probe_in(record).filter(|probe| is_wanted(probe)),
            _ => None,
        })
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// The end of the text, for messages.
    fn last_text(&self) -> String {
        String::from_utf8_lossy(&self.output[self.output.len().saturating_sub(300)..]).into_owned()
    }

    pub(crate) fn wait_for_text(&mut self, needle: &str) {
        let deadline = Instant::now() + PATIENCE;
        let mut searched = 0;
        loop {
            let unsearched = &self.output[searched..];
            if unsearched.windows(needle.len()).any(|window| window == needle.as_bytes()) {
                return;
            }
            searched = self.output.len().saturating_sub(needle.len());
            match self.next(deadline) {
                Some(Event::Closed) | None => panic!("no {needle:?} in {:?}", self.last_text()),
                Some(_) => {}
            }
        }
    }

    pub(crate) fn wait_for_exit(&mut self) -> (ExitStatus, Option<StopSignal>) {
        self.wait("the exit", |event| match event {
            Event::Record(Record { body: Body::Exit { status, stopped_by: asked }, .. }) => {
                Some((*status, *asked))
            }
            _ => None,
        })
    }

    pub(crate) fn wait_for_gone(&mut self) -> Vec<Ended> {
        self.wait("the tree to be gone", |event| match event {
            Event::Said(FromKeeper::Gone { ended }) => Some(ended.clone()),
            _ => None,
        })
    }

    pub(crate) fn wait_for_close(&mut self) {
        self.wait("the connection to be closed", |event| (*event == Event::Closed).then_some(()));
    }

    /// The next event for which `wanted` returns a value.
    pub(crate) fn wait<T>(&mut self, what: &str, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let event = self.next(deadline);
            match event.as_ref().map(|event| (wanted(event), event)) {
                Some((Some(found), _)) => return found,
                Some((None, Event::Closed)) => {
                    panic!("closed while waiting for {what}; received {:?}", self.messages)
                }
                Some((None, _)) => {}
                None => {
                    panic!(
                        "waited too long for {what}; received {:?}, text {:?}",
                        self.messages,
                        self.last_text()
                    )
                }
            }
        }
    }

    /// `None` if the deadline passes first.
    pub(crate) fn next(&mut self, deadline: Instant) -> Option<Event> {
        loop {
            if let Some((frame, used)) = Frame::decode(&self.buffer).expect("a keeper sends whole frames") {
                self.buffer.drain(..used);
                return Some(self.keep(frame));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            match poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], Some(&timeout)) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(err) => panic!("{err}"),
            }
            if self.receive() == 0 {
                return Some(Event::Closed);
            }
        }
    }

    fn receive(&mut self) -> usize {
        let mut bytes = vec![0; 256 << 10];
        let mut room = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut beside = RecvAncillaryBuffer::new(&mut room);
        let mut parts = [std::io::IoSliceMut::new(&mut bytes)];
        let received = recvmsg(&self.stream, &mut parts, &mut beside, RecvFlags::CMSG_CLOEXEC);
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors);
            }
        }
        // A connection that is cut before our bytes are read is reset, not closed.
        let count = received.map_or(0, |message| message.bytes);
        self.buffer.extend_from_slice(&bytes[..count]);
        count
    }

    fn keep(&mut self, frame: Frame) -> Event {
        match frame {
            Frame::Control(json) => {
                let message: FromKeeper = serde_json::from_slice(&json).expect("a message");
                self.messages.push(message.clone());
                Event::Said(message)
            }
            Frame::Record(encoded) => {
                let Decoded::Complete(record, used) = Record::decode(&encoded) else {
                    panic!("a whole record")
                };
                assert_eq!(used, encoded.len());
                if let Body::Output { bytes, .. } = &record.body {
                    self.output.extend_from_slice(bytes);
                }
                self.records.push(record.clone());
                Event::Record(record)
            }
            other => panic!("a keeper does not send {other:?}"),
        }
    }
}
