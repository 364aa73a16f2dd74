//! Peers: the current daemon, an older daemon, guests, and garbage.

use std::io::Write;
use std::time::Duration;

use agency_api::keeper::{Frame, FromKeeper, MAX_FRAME_BYTES, ToKeeper};
use agency_journal::{Body, ExitStatus};

use crate::harness::{Event, Run};

#[test]
fn garbage_closes_one_connection_and_nothing_else() {
    let run = Run::of(&["cat"]);
    let mut daemon = run.daemon();
    let frames: [&[u8]; 6] = [
        &[0; 64],
        &[255; 64],
        b"GET / HTTP/1.1\r\n\r\n",
        &[2, 0, 0, 0, 0, b'{'],
        &Frame::Record(vec![1, 2, 3]).encoded(),
        &Frame::control(&serde_json::json!({"type": "hello", "min": "one"})).expect("json").encoded(),
    ];
    for garbage in frames {
        let mut stranger = run.connect();
        stranger.stream.write_all(garbage).expect("sent");
        stranger.wait_for_close();
        let mut rival = run.connect();
        rival.hello(1);
        rival.stream.write_all(garbage).expect("sent");
        rival.wait_for_close();
    }
    daemon.type_in(1, b"still here\n");
    daemon.wait_for_text("still here");
}

/// Complete frames around random bytes, so that the code behind the length check is reached too.
#[test]
fn random_frames_from_a_daemon_do_no_harm() {
    let run = Run::of(&["cat"]);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    for _ in 0..300 {
        let mut client = run.connect();
        client.hello(1);
        let len = 1 + next() % 60;
        let mut frame = (len as u32).to_le_bytes().to_vec();
        // Any kind of frame except input, which would correctly reach the agent.
        frame.push([0, 1, 3, 4, 5, 255][next() as usize % 6]);
        frame.extend((1..len).map(|_| next() as u8));
        client.stream.write_all(&frame).expect("sent");
    }
    let mut daemon = run.daemon();
    daemon.type_in(1, b"unharmed\n");
    daemon.wait_for_text("unharmed\r\nunharmed");
}

#[test]
fn a_frame_that_is_too_large_closes_the_connection() {
    let run = Run::of(&["cat"]);
    let mut guest = run.connect();
    guest.hello(0);
    guest.stream.write_all(&(2_u32 << 20).to_le_bytes()).expect("sent");
    guest.wait_for_close();
    let mut daemon = run.connect();
    daemon.hello(1);
    daemon.stream.write_all(&(MAX_FRAME_BYTES as u32 + 1).to_le_bytes()).expect("sent");
    daemon.wait_for_close();
    run.connect().hello(1);
}

#[test]
fn a_newer_daemon_fences_off_the_older_one() {
    let run = Run::of(&["cat"]);
    let (mut old, mut guest) = (run.connect(), run.connect());
    old.hello(4);
    guest.hello(0);
    let mut new = run.connect();
    new.hello(5);
    old.wait_for_close();
    guest.probe();
    let mut late = run.connect();
    late.send_message(&ToKeeper::Hello { min: 1, max: 1, epoch: 4, peer: "old".into(), lifeline: false });
    assert_eq!(late.refused(), "a newer daemon (epoch 5) has taken over");
    late.wait_for_close();
    let mut same = run.connect();
    same.hello(5);
    new.probe();
}

#[test]
fn versions_are_negotiated_or_refused() {
    let run = Run::of(&["cat"]);
    let hello = |min, max| ToKeeper::Hello { min, max, epoch: 0, peer: "test".into(), lifeline: false };
    for (min, max) in [(1, 1), (1, 3), (0, 9)] {
        let mut client = run.connect();
        client.send_message(&hello(min, max));
        assert_eq!(client.welcome().version, 1, "{min} to {max}");
    }
    for (min, max) in [(2, 3), (0, 0), (3, 1)] {
        let mut client = run.connect();
        client.send_message(&hello(min, max));
        let reason = client.refused();
        assert_eq!(
            reason,
            format!("this keeper supports versions 1 to 1, the caller supports {min} to {max}")
        );
        client.wait_for_close();
    }
}

#[test]
fn a_message_of_a_later_version_is_refused_and_the_connection_stays() {
    let run = Run::of(&["cat"]);
    let mut daemon = run.connect();
    daemon.hello(1);
    daemon.send(&Frame::control(&serde_json::json!({"type": "dance", "steps": 3})).expect("json"));
    assert_eq!(daemon.refused(), "this keeper does not know that message");
    daemon.probe();
}

#[test]
fn a_peer_that_does_not_say_hello_is_refused() {
    let run = Run::of(&["cat"]);
    let mut client = run.connect();
    client.send_message(&ToKeeper::Probe { id: 1 });
    assert_eq!(client.refused(), "the first message must be hello");
    client.wait_for_close();
}

#[test]
fn a_guest_may_probe_and_leave_notes_only() {
    let run = Run::of(&["cat"]);
    let mut guest = run.connect();
    guest.send_message(&ToKeeper::Hello { min: 1, max: 1, epoch: 0, peer: "hook".into(), lifeline: true });
    assert!(!guest.welcome().lifeline, "no terminal for guests");
    guest.follow(1);
    for message in [
        ToKeeper::Stop { grace_ms: 0 },
        ToKeeper::Environment { id: 1 },
        ToKeeper::Resize { size: Default::default() },
        ToKeeper::CloseInput,
        ToKeeper::Dismiss,
    ] {
        guest.send_message(&message);
        assert_eq!(guest.refused(), "only a daemon may ask for that", "{message:?}");
    }
    guest.input(3, b"rm -rf\n");
    guest.wait("a refusal", |event| {
        matches!(event, Event::Said(FromKeeper::InputRefused { id: 3, .. })).then_some(())
    });
    guest.send(&Frame::Note { tag: "hook".into(), bytes: b"done".to_vec() });
    guest.wait("its note", |event| match event {
        Event::Record(record) => {
            matches!(&record.body, Body::Note { bytes, .. } if bytes == b"done").then_some(())
        }
        _ => None,
    });
    assert_eq!(guest.text(), "");
}

#[test]
fn a_note_is_stored_even_if_its_writer_does_not_wait() {
    let run = Run::of(&["cat"]);
    let mut daemon = run.daemon();
    let mut hook = run.connect();
    hook.send_message(&ToKeeper::Hello { min: 1, max: 1, epoch: 0, peer: "hook".into(), lifeline: false });
    hook.send(&Frame::Note { tag: "hook".into(), bytes: b"quick".to_vec() });
    drop(hook);
    daemon.wait("the note", |event| match event {
        Event::Record(record) => {
            matches!(&record.body, Body::Note { bytes, .. } if bytes == b"quick").then_some(())
        }
        _ => None,
    });
}

#[test]
fn idle_guests_cannot_keep_the_daemon_out() {
    let run = Run::of(&["cat"]);
    let guests: Vec<_> = (0..100).map(|_| run.connect()).collect();
    let mut daemon = run.daemon();
    daemon.type_in(1, b"in\n");
    daemon.wait_for_text("in\r\nin");
    drop(guests);
}

/// Fifty megabytes of output with a client that never reads: the agent does not wait for it, and it needs little memory.
#[test]
fn a_client_that_never_reads_does_not_block_others() {
    let run = Run::script("head -c 50000000 /dev/zero | tr '\\0' x; echo; echo done; cat");
    let mut deaf = run.connect();
    deaf.hello(1);
    deaf.follow(1);
    let mut daemon = run.daemon();
    let mut length = 0;
    let mut peak_kb = 0;
    while length < 50_000_000 {
        length += daemon.wait("output", |event| match event {
            Event::Record(record) => match &record.body {
                Body::Output { bytes, .. } => Some(bytes.len()),
                _ => None,
            },
            _ => None,
        });
        daemon.records.clear();
        peak_kb = peak_kb.max(private_kb(run.keeper.pid));
    }
    assert!(peak_kb < 4096, "{peak_kb} KB");
    daemon.type_in(1, b"quick\n");
    daemon.wait_for_text("quick");
    // When the client finally reads, it gets all of it.
    let mut seen = 0;
    while seen < 50_000_000 {
        seen += deaf.wait("output", |event| match event {
            Event::Record(record) => match &record.body {
                Body::Output { bytes, .. } => Some(bytes.len()),
                _ => None,
            },
            _ => None,
        });
        deaf.records.clear();
    }
}

fn private_kb(pid: i32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("alive");
    let dirty = rollup.lines().find_map(|line| line.strip_prefix("Private_Dirty:")).expect("a number");
    dirty.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn a_late_follower_gets_everything_in_order_and_the_end_last() {
    let run = Run::with(&["sh", "-c", "seq 1 100000; exit 9"], |spec| spec.segment_bytes = 64 << 10);
    let mut first = run.daemon();
    assert_eq!(first.wait_for_exit().0, ExitStatus::Code(9));
    first.wait_for_gone();
    let mut late = run.connect();
    let welcome = late.hello(1);
    assert!(welcome.gone);
    assert_eq!(welcome.oldest_seq, 1);
    late.follow(1);
    late.wait_for_gone();
    let seqs: Vec<u64> = late.records.iter().map(|record| record.seq).collect();
    assert_eq!(seqs, (1..seqs.len() as u64 + 1).collect::<Vec<_>>());
    assert_eq!(late.output, first.output);
    let mut middle = run.connect();
    middle.hello(1);
    middle.follow(5);
    middle.wait_for_gone();
    assert_eq!(middle.records.first().map(|record| record.seq), Some(5));
}

#[test]
fn the_end_is_sent_after_the_exit_and_to_the_peer_that_asked_for_the_stop() {
    let run = Run::of(&["cat"]);
    let (mut bystander, mut stopper) = (run.connect(), run.connect());
    bystander.hello(1);
    stopper.hello(1);
    stopper.stop(Duration::from_secs(5));
    stopper.wait_for_gone();
    bystander.probe();
    assert!(!bystander.messages.iter().any(|messages| matches!(messages, FromKeeper::Gone { .. })));
    bystander.follow(1);
    bystander.wait_for_gone();
    assert!(bystander.records.iter().any(|record| matches!(record.body, Body::Exit { .. })));
    bystander.stop(Duration::ZERO);
    bystander.wait_for_gone();
}

#[test]
fn a_follower_of_deleted_records_gets_a_gap() {
    let run = Run::with(&["sh", "-c", "seq 1 100000; cat"], |spec| {
        (spec.segment_bytes, spec.max_journal_bytes) = (64 << 10, Some(200 << 10));
    });
    let mut live = run.daemon();
    live.wait_for_text("100000\r\n");
    let mut late = run.connect();
    let welcome = late.hello(1);
    assert!(welcome.oldest_seq > 1);
    late.follow(1);
    late.wait_for_text("100000\r\n");
    let first = late.records.first().expect("a record");
    assert!(matches!(first.body, Body::Gap { output_bytes: 1.., .. }), "{first:?}");
    assert_eq!(late.records[1].seq, welcome.oldest_seq);
    assert_eq!(first.output_offset, late.records[1].output_offset);
}

#[test]
fn compressed_segments_are_left_to_the_daemon() {
    let run = Run::with(&["sh", "-c", "seq 1 50000; cat"], |spec| spec.segment_bytes = 64 << 10);
    let mut live = run.daemon();
    live.wait_for_text("50000\r\n");
    let sealed = agency_journal::sealed_segments(&run.path("j")).expect("a journal");
    assert!(sealed.len() > 2, "{sealed:?}");
    for segment in &sealed[..2] {
        // The keeper does not look inside.
        agency_journal::seal(segment, |raw| Ok(raw.to_vec())).expect("sealed");
    }
    let mut late = run.connect();
    let welcome = late.hello(1);
    late.follow(1);
    late.wait_for_text("50000\r\n");
    let messages = |message: &FromKeeper| match message {
        FromKeeper::Sealed { from_seq, until_seq } => Some((*from_seq, *until_seq)),
        _ => None,
    };
    let messages: Vec<_> = late.messages.iter().filter_map(messages).collect();
    assert_eq!(messages.first().map(|first| first.0), Some(1));
    assert_eq!(messages.last().map(|last| last.1), Some(welcome.oldest_seq));
    assert_eq!(late.records.first().map(|record| record.seq), Some(welcome.oldest_seq));
}

#[test]
fn a_peer_that_sends_thousands_of_requests_does_not_delay_others() {
    let run = Run::of(&["cat"]);
    let mut daemon = run.daemon();
    let mut busy = run.connect();
    busy.hello(0);
    let mut questions = Vec::new();
    for id in 0..2000 {
        Frame::control(&ToKeeper::Probe { id }).expect("json").encode_into(&mut questions);
    }
    let mut writer = busy.stream.try_clone().expect("a second handle");
    let asking = std::thread::spawn(move || writer.write_all(&questions).expect("the keeper reads on"));
    daemon.type_in(1, b"in between\n");
    daemon.wait_for_text("in between\r\nin between");
    for wanted in 0..2000 {
        busy.wait("the next answer", |event| match event {
            Event::Said(FromKeeper::Probe { id, .. }) => (*id == wanted).then_some(()),
            _ => None,
        });
    }
    asking.join().expect("all questions are sent");
}

#[test]
fn a_follower_that_asks_for_more_than_there_is_gets_what_comes_next() {
    let run = Run::of(&["cat"]);
    let mut daemon = run.connect();
    daemon.hello(1);
    daemon.follow(u64::MAX);
    daemon.type_in(1, b"new\n");
    daemon.wait_for_text("new");
}

#[test]
fn input_is_served_in_the_middle_of_a_flood() {
    let run = Run::of(&["yes"]);
    let mut daemon = run.daemon();
    daemon.wait_for_text("y\r\ny\r\n");
    daemon.input(1, b"\x03");
    assert_eq!(daemon.wait_for_exit(), (ExitStatus::Signal(2), None));
    let run = Run::of(&["yes"]);
    let mut daemon = run.daemon();
    daemon.wait_for_text("y\r\ny\r\n");
    daemon.stop(Duration::from_secs(10));
    assert_eq!(daemon.wait_for_exit().0, ExitStatus::Signal(15));
}
