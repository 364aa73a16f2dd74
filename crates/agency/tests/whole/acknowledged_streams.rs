//! A viewer that says how much it has drawn: it never gets much more than that, and a fresh screen if it stays behind.

use std::sync::mpsc;
use std::time::Duration;

use agency_api::Bytes;
use agency_api::keeper::Size;
use agency_api::method::{PtyAttach, PtyAttachParams, TaskRef};
use agency_api::paths::StateDir;
use agency_api::pty::{AttachMode, ViewerRequest};
use agency_client::{Client, StreamSocket};
use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::Message;

use crate::stage::Stage;

/// The window, one queue of output, and the first screen.
const MOST_AHEAD: usize = 2 << 20;

async fn attach(stage: &Stage, acknowledges: bool) -> StreamSocket {
    let mut daemon = Client::connect(&StateDir::at(stage.state())).await.expect("a daemon");
    let params = PtyAttachParams {
        task: TaskRef { cwd: Bytes::from(stage.repo()), name: "one".to_owned() },
        shell: None,
        size: Size::default(),
        mode: AttachMode::Control,
        inside_run: None,
        ssh_auth_sock: None,
        screen_only: false,
        terminal: None,
        frames: false,
        acknowledges,
        overrides: Default::default(),
    };
    let answer = daemon.call(PtyAttach, params).await.expect("a stream");
    daemon.stream(&answer.stream).await.expect("a stream")
}

/// Reads all that the daemon sends, until the flood is over and everything that it sent has arrived.
async fn read_during(stream: &mut StreamSocket, over: &mpsc::Receiver<()>) -> Vec<u8> {
    let mut seen = Vec::new();
    loop {
        match tokio::time::timeout(Duration::from_millis(20), stream.next()).await {
            Ok(Some(Ok(Message::Binary(bytes)))) => seen.extend_from_slice(&bytes),
            Ok(Some(Ok(_))) => {}
            Ok(other) => panic!("the stream ended: {other:?}"),
            Err(_) if over.try_recv().is_ok() => return seen,
            Err(_) => {}
        }
    }
}

#[test]
fn a_viewer_that_draws_nothing_gets_a_window_and_then_a_fresh_screen() {
    let stage = Stage::new();
    stage.play("one", "ask go?; flood 16M; ask ready?");
    stage.wait_printed("one", "go?");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut stream = runtime.block_on(attach(&stage, true));
    let (sender, over) = mpsc::channel();
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| {
            stage.run(["send", "one", "go"]).ok();
            stage.wait_printed("one", "ready?");
            sender.send(()).expect("the reader waits");
        });
        runtime.block_on(read_during(&mut stream, &over))
    });
    assert!(seen.len() < MOST_AHEAD, "{} bytes, and none of them was acknowledged", seen.len());
    let shows = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("ready?");
    assert!(!shows(&seen), "the end of the flood waits");

    let fresh = runtime.block_on(async {
        let drawn = ViewerRequest::Processed { bytes: seen.len() as u64 };
        let text = serde_json::to_string(&drawn).expect("JSON");
        stream.send(Message::text(text)).await.expect("the daemon listens");
        let mut fresh = Vec::new();
        while !shows(&fresh) {
            if let Message::Binary(bytes) = stream.next().await.expect("more").expect("a message") {
                fresh.extend_from_slice(&bytes);
            }
        }
        fresh
    });
    assert!(fresh.len() < MOST_AHEAD, "a fresh screen, and not {} bytes of the past", fresh.len());
}
