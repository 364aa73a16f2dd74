//! Upgrades and downgrades: state and keepers of earlier versions are adopted, and state of a later version is refused and
//! stays as it is.
//!
//! `tests/fixtures/ea2e115` is the state that the oldest supported version left. A keeper of that version speaks like one of
//! today, but for the words that [`OldKeeper`] changes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;

use agency_api::keeper::{Frame, newer_epoch};
use agency_api::paths::{StateDir, project_id, short_hash};
use agency_testkit::{CommandOutput, Process};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde_json::{Value, json};

use crate::conversations::{chat, new_conversation, wait_said};
use crate::stage::{SOON, Stage};

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/ea2e115");
const ACP_AGENT: &str = "[agents.fake]\nacp = [\"fake-agent\", \"--acp\", \"\"]\n";

/// A stage with the state and the repository of the fixture.
struct OldState {
    stage: Stage,
    /// Placeholders, and what they stand for here.
    replaced: [(&'static str, String); 4],
}

impl OldState {
    fn unpack() -> OldState {
        let stage = Stage::with_config(ACP_AGENT);
        let place = stage.root().canonicalize().expect("a directory");
        let host = StateDir::at(stage.state()).host().to_owned();
        let replaced = [
            ("@PLACE@", place.to_str().expect("text").to_owned()),
            ("@PROJECT@", project_id(&place.join("repo"))),
            ("@HOST@", host),
            ("@HOST_NAME@", "here".to_owned()),
        ];
        let old = OldState { stage, replaced };
        old.unpack_repository();
        old.copy(&Path::new(FIXTURE).join("tasks"), &old.stage.repo().join(".agency/tasks"));
        old.copy(&Path::new(FIXTURE).join("state"), &old.stage.state());
        old
    }

    fn unpack_repository(&self) {
        let repo = self.stage.repo();
        fs::remove_dir_all(&repo).and_then(|()| fs::create_dir(&repo)).expect("ours");
        let git = |args: &[&str]| self.stage.git(&repo, args);
        let bundle = format!("{FIXTURE}/repo.bundle");
        git(&["init", "--quiet", "--initial-branch", "main"]);
        git(&["fetch", "--quiet", "--update-head-ok", &bundle, "+refs/*:refs/*"]);
        git(&["reset", "--quiet", "--hard"]);
        fs::write(repo.join(".git/info/exclude"), "/.agency/\n").expect("room");
        for branch in git(&["branch", "--list", "agency/*", "--format=%(refname:short)"]).lines() {
            let path = branch.replace("agency/", ".agency/worktrees/");
            git(&["worktree", "add", "--quiet", &path, branch]);
        }
    }

    /// Copies a directory, and replaces the placeholders.
    fn copy(&self, from: &Path, to: &Path) {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(to).expect("room");
        for entry in fs::read_dir(from).expect("a directory of the fixture") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("text").to_owned();
            let target = if name == "PROJECT" { to.join(&self.replaced[1].1) } else { to.join(name) };
            if path.is_dir() {
                self.copy(&path, &target);
                continue;
            }
            let bytes = fs::read(&path).expect("a file of the fixture");
            let replaced = match String::from_utf8(bytes) {
                Ok(text) => self.replace(text).into_bytes(),
                Err(binary) => binary.into_bytes(),
            };
            fs::write(target, replaced).expect("room");
        }
    }

    fn replace(&self, text: String) -> String {
        self.replaced.iter().fold(text, |text, (placeholder, value)| text.replace(placeholder, value))
    }
}

#[test]
fn state_of_the_oldest_supported_version_is_adopted() {
    let OldState { stage, .. } = OldState::unpack();
    let listing = stage.listing();
    let tasks = listing["tasks"].as_array().expect("tasks").iter();
    let statuses: BTreeMap<&str, &str> =
        tasks.filter_map(|task| Some((task["slug"].as_str()?, task["status"].as_str()?))).collect();
    let expected = [
        ("halted", "stopped"),
        ("merged", "merged"),
        ("screen", "stopped"),
        ("session", "stopped"),
        ("stream", "stopped"),
    ];
    assert_eq!(statuses, BTreeMap::from(expected), "{listing}");
    assert_eq!((&listing["orphans"], &listing["warnings"]), (&json!([]), &json!([])));
    let marker: Value =
        serde_json::from_slice(&fs::read(stage.state().join("format.json")).expect("written")).expect("JSON");
    assert_eq!(marker["format"], 2);
    assert_eq!(stage.task("halted")["port"], 20_030);
    // Journals, turns, events and the queue.
    assert!(stage.logs("screen").contains("ready?") && stage.logs("merged").contains("ready?"));
    for slug in ["stream", "session", "halted"] {
        assert!(chat(&stage, slug).contains("echo: hello"), "{slug}");
    }
    assert!(stage.run(["search", "hello"]).ok().contains("2-stream"));
    assert_eq!(stage.run(["queue", "--json"]).json()["queued"][0]["text"], "later");
    stage.run(["undo", "--turn", "halted", "1"]).ok();
    assert_eq!(fs::read_to_string(stage.worktree("4-halted").join("h")).expect("restored"), "part\n");
    // The trash.
    assert_eq!(stage.run(["undo"]).ok(), "restored 5-gone (stopped)\n");
    assert_eq!(fs::read_to_string(stage.worktree("5-gone").join("g")).expect("restored"), "lost\n");
    assert!(stage.logs("gone").contains("ready?"), "its runs are known again");
    // Consent, sessions and the next id. The queued message goes to the agent as soon as it runs.
    for slug in ["screen", "stream", "session", "halted", "gone"] {
        stage.run(["start", slug]).ok();
    }
    wait_said(&stage, "halted", "echo: later");
    stage.wait_printed("gone", "ready?");
    assert_eq!(stage.play("next", "ask ready?")["id"], 7);
    stage.run(["daemon", "stop", "--agents"]).ok();
    assert!(stage.keepers().is_empty());
}

/// Stands between the daemon and a keeper of today, and changes what a keeper of ea2e115 said in other words.
struct OldKeeper {
    /// The keeper's own socket.
    socket: PathBuf,
}

impl OldKeeper {
    /// Takes the place of the keeper's socket in this directory of a run or a connection.
    fn begin(directory: &Path) {
        let (public, socket) = (directory.join("k"), directory.join("k-own"));
        fs::rename(&public, &socket).expect("a keeper has a socket");
        let listener = UnixListener::bind(&public).expect("the name is free");
        thread::spawn(move || {
            for daemon in listener.incoming().flatten() {
                let keeper = OldKeeper { socket: socket.clone() };
                thread::spawn(move || keeper.serve(daemon));
            }
        });
    }

    /// Ends when one side hangs up. An error is the same for the other side.
    fn serve(&self, daemon: UnixStream) {
        let Ok(keeper) = UnixStream::connect(&self.socket) else { return };
        let (Ok(mut from_daemon), Ok(mut to_keeper)) = (daemon.try_clone(), keeper.try_clone()) else {
            return;
        };
        let requests = thread::spawn(move || {
            drop(io::copy(&mut from_daemon, &mut to_keeper));
            drop(to_keeper.shutdown(Shutdown::Both));
        });
        drop(translate_all(keeper, &daemon));
        drop(daemon.shutdown(Shutdown::Both));
        drop(requests.join());
    }
}

fn translate_all(keeper: UnixStream, daemon: &UnixStream) -> io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let terminal = receive(&keeper, &mut buffer)?;
        let mut terminal = terminal.as_ref();
        while let Some((frame, used)) = Frame::decode(&buffer).map_err(io::Error::other)? {
            buffer.drain(..used);
            send(daemon, &translate(frame).encoded(), terminal.take())?;
        }
    }
}

/// Receives bytes, and the PTY master that may come with them. The end of the stream is an error.
fn receive(keeper: &UnixStream, buffer: &mut Vec<u8>) -> io::Result<Option<OwnedFd>> {
    let mut bytes = [0; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [io::IoSliceMut::new(&mut bytes)];
    let count = recvmsg(keeper, slices, &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes;
    let terminal = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    buffer.extend_from_slice(&bytes[..count]);
    if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(terminal) }
}

/// Sends the first byte together with the PTY master.
fn send(mut daemon: &UnixStream, bytes: &[u8], terminal: Option<&OwnedFd>) -> io::Result<()> {
    let Some(terminal) = terminal else { return daemon.write_all(bytes) };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [terminal.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(daemon, &[IoSlice::new(&bytes[..1])], &mut control, SendFlags::empty())?;
    daemon.write_all(&bytes[1..])
}

fn translate(frame: Frame) -> Frame {
    let Frame::Control(bytes) = &frame else { return frame };
    let mut message: Value = serde_json::from_slice(bytes).expect("a control frame is JSON");
    match message["type"].as_str() {
        Some("welcome") => {
            let fields = message.as_object_mut().expect("an object");
            fields.remove("owner");
            fields.remove("epoch");
        }
        Some("refused") => {
            let seen = message["reason"].as_str().and_then(newer_epoch).expect("the only refusal here");
            message["reason"] = json!(format!("a newer daemon ({seen}) has been here"));
        }
        _ => return frame,
    }
    Frame::Control(serde_json::to_vec(&message).expect("JSON"))
}

fn agents(stage: &Stage) -> Vec<Process> {
    let mut found = stage.processes();
    found.retain(|process| process.name() == "fake-agent");
    found.sort_by_key(|process| process.pid);
    found
}

#[test]
fn live_agents_of_the_oldest_supported_keeper_are_adopted_even_without_epoch_and_run_file() {
    let stage = Stage::with_config(ACP_AGENT);
    stage.play("screen", "loop; ask ready?; end");
    new_conversation(&stage, "stream", "hello", "");
    stage.run(["new", "session", "--no-attach", "--driver", "acp", "-m", "hello"]).ok();
    stage.wait_printed("screen", "ready?");
    wait_said(&stage, "stream", "echo: hello");
    wait_said(&stage, "session", "echo: hello");
    let before = agents(&stage);
    assert_eq!(before.len(), 3);
    let run = stage.keeper("screen").run;
    // The keepers have seen a daemon with a higher epoch than the file will say.
    stage.kill_daemon();
    stage.wait_task("session", "is live", |task| task["run"].is_string());
    stage.kill_daemon();
    for keepers in ["r", "w"] {
        for entry in fs::read_dir(stage.state().join(keepers)).expect("a directory").flatten() {
            // A session has no keeper of its own.
            if entry.path().join("k").exists() {
                OldKeeper::begin(&entry.path());
            }
        }
    }
    // Such a keeper neither says whose run it holds nor which epoch it has seen, unless it refuses a daemon.
    fs::remove_file(stage.state().join("r").join(run).join("run.json")).expect("a run has its file");
    fs::write(stage.state().join("epoch"), "0\n").expect("room");
    for slug in ["screen", "stream", "session"] {
        stage.wait_task(slug, "is live", |task| task["status"] == "running" && task["run"].is_string());
    }
    assert_eq!(agents(&stage), before, "no agent is lost or doubled");
    assert_eq!(stage.listing()["orphans"], json!([]));
    stage.run(["send", "screen", "one"]).ok();
    stage.wait_printed("screen", "got: one");
    for slug in ["stream", "session"] {
        stage.run(["send", slug, "--queue", "two"]).ok();
        wait_said(&stage, slug, "echo: two");
    }
    for slug in ["screen", "stream", "session"] {
        stage.run(["stop", slug]).ok();
    }
    stage.run(["daemon", "stop", "--agents"]).ok();
    stage.eventually("no agent is left", SOON, || agents(&stage).is_empty().then_some(()));
}

/// Every file below a directory, with its content and its times.
fn contents(directory: &Path) -> BTreeMap<PathBuf, (Vec<u8>, i64, i64)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let (path, meta) = (entry.path(), entry.metadata().expect("metadata"));
        if meta.is_dir() {
            found.extend(contents(&path));
        }
        let bytes = if meta.is_file() { fs::read(&path).expect("a file") } else { Vec::new() };
        found.insert(path, (bytes, meta.mtime(), meta.mtime_nsec()));
    }
    found
}

#[test]
fn state_of_a_later_version_is_refused_and_stays_as_it_is() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    stage.wait_printed("one", "ready?");
    let agent = stage.agent("one");
    stage.kill_daemon();
    let marker = stage.state().join("format.json");
    let ours = fs::read(&marker).expect("the daemon says its format");
    let newer = json!({ "format": 3, "version": "9.1.0", "check": short_hash(b"3 9.1.0"), "unknown": true });
    fs::write(&marker, newer.to_string()).expect("room");
    let before = contents(&stage.state());
    for args in [&["ls"][..], &["stop", "one"], &["daemon", "start"], &["daemon", "run"]] {
        let mut agency = stage.agency(args);
        agency.env("AGENCY_LOG", "debug");
        let ran = CommandOutput::of(agency, b"");
        assert_eq!(ran.code, 1, "{ran}");
        let state = stage.state();
        for words in [
            state.to_str().expect("text"),
            "format 3",
            "Agency 9.1.0",
            "formats up to 2",
            "Hint: use Agency 9.1.0",
        ] {
            assert!(ran.stderr.contains(words), "{args:?} says {words:?}: {ran}");
        }
    }
    let failure = stage.run(["ls", "--json"]);
    let document: Value = serde_json::from_str(&failure.stdout).expect("JSON");
    assert_eq!((failure.code, &document["error"]["code"]), (1, &json!("no_daemon")));
    assert_eq!(contents(&stage.state()), before, "nothing changed");
    assert!(agent.is_alive());
    fs::write(&marker, ours).expect("room");
    assert_eq!(stage.status("one"), "running");
    stage.run(["send", "one", "hello"]).ok();
    stage.wait_printed("one", "got: hello");
    stage.run(["stop", "one"]).ok();
    assert!(!agent.is_alive());
}
