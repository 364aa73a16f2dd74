//! An agent's life: it starts, prints, gets input, and ends with the right status.

use std::time::Duration;

use agency_api::keeper::{Frame, FromKeeper, Size, ToKeeper};
use agency_journal::{Body, ExitStatus, Source, StopSignal, Stream};

use crate::harness::{Event, Run, on_pipes};

#[test]
fn a_program_prints_and_exits_and_the_keeper_exits_when_dismissed() {
    let run = Run::script("echo hello; exit 3");
    let mut daemon = run.daemon();
    assert_eq!(daemon.wait_for_exit(), (ExitStatus::Code(3), None));
    assert_eq!(daemon.wait_for_gone(), []);
    assert_eq!(daemon.text(), "hello\r\n");
    assert_eq!(run.journal(), daemon.records, "followers get exactly what is written");
    daemon.send_message(&ToKeeper::Dismiss);
    run.wait_for_keeper();
    assert!(!run.path("k").exists() && !run.path("pid").exists(), "socket and pid file are gone");
    assert!(run.path("j").exists(), "the journal stays");
}

#[test]
fn a_keeper_that_is_not_dismissed_exits_by_itself() {
    let run = Run::with(&["true"], |spec| spec.linger_ms = 50);
    run.wait_for_keeper();
    assert!(matches!(
        run.journal().last().map(|last| &last.body),
        Some(Body::Exit { status: ExitStatus::Code(0), .. })
    ));
}

#[test]
fn a_keeper_is_not_dismissed_while_its_agent_lives() {
    let run = Run::of(&["cat"]);
    let mut daemon = run.daemon();
    daemon.send_message(&ToKeeper::Dismiss);
    assert_eq!(daemon.refused(), "the agent has not gone yet");
    daemon.type_in(1, b"still here\n");
    daemon.wait_for_text("still here\r\nstill here\r\n");
}

#[test]
fn a_death_by_signal_is_reported_as_that_signal() {
    let run = Run::script("kill -SEGV $$");
    assert_eq!(run.daemon().wait_for_exit(), (ExitStatus::Signal(11), None));
}

#[test]
fn all_output_comes_before_the_exit() {
    let run = Run::script("head -c 1000000 /dev/zero | tr '\\0' x; echo last words; exit 4");
    let mut daemon = run.daemon();
    assert_eq!(daemon.wait_for_exit(), (ExitStatus::Code(4), None));
    assert_eq!(daemon.output.len(), 1_000_000 + "last words\r\n".len());
    assert!(daemon.text().ends_with("last words\r\n"));
}

#[test]
fn a_background_process_that_holds_the_terminal_does_not_hold_up_the_exit() {
    let run = Run::script("sleep 1000 & echo $!; exit 5");
    let mut daemon = run.daemon();
    assert_eq!(daemon.wait_for_exit(), (ExitStatus::Code(5), None));
    daemon.wait_for_gone();
    let sleeper = daemon.text().trim().parse().expect("a pid");
    assert!(!crate::harness::is_alive(sleeper), "the keeper has ended it");
}

#[test]
fn what_is_typed_is_echoed_and_recorded_in_order() {
    let run = Run::of(&["cat"]);
    let mut daemon = run.daemon();
    daemon.type_in(1, b"one\n");
    daemon.wait_for_text("one\r\none\r\n");
    daemon.send(&Frame::Input {
        source: agency_api::keeper::InputSource::Answer { output_offset: 9 },
        id: 2,
        bytes: b"two\n".to_vec(),
    });
    daemon.wait_for_text("two\r\ntwo\r\n");
    let typed = |record: agency_journal::Record| match record.body {
        Body::Input { source, bytes } => Some((source, bytes)),
        _ => None,
    };
    let typed: Vec<_> = run.journal().into_iter().filter_map(typed).collect();
    assert_eq!(
        typed,
        [(Source::User, b"one\n".to_vec()), (Source::Answer { output_offset: 9 }, b"two\n".to_vec())]
    );
    daemon.type_in(3, b"\x04");
    assert_eq!(daemon.wait_for_exit(), (ExitStatus::Code(0), None));
}

#[test]
fn more_input_than_a_terminal_takes_arrives_whole() {
    // In raw mode, so that the terminal neither echoes nor truncates long lines.
    let run = Run::script("stty raw -echo; echo ready; head -c 300000 | cksum");
    let mut daemon = run.daemon();
    daemon.wait_for_text("ready");
    let text: Vec<u8> = (0..300_000_u32).map(|n| b'a' + (n % 23) as u8).collect();
    daemon.type_in(1, &text);
    assert_eq!(daemon.wait_for_exit().0, ExitStatus::Code(0));
    let mut typed = Vec::new();
    for record in run.journal() {
        if let Body::Input { bytes, .. } = record.body {
            typed.extend(bytes);
        }
    }
    assert_eq!(typed, text, "the journal holds every byte once");
    assert!(daemon.text().contains(&format!("{} 300000", cksum(&text))), "{}", daemon.text());
}

fn cksum(bytes: &[u8]) -> String {
    let mut child = std::process::Command::new("cksum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("cksum");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), bytes).expect("it reads");
    let output = child.wait_with_output().expect("it ends").stdout;
    String::from_utf8_lossy(&output).split_whitespace().next().expect("a sum").to_string()
}

#[test]
fn input_that_nobody_reads_is_refused_once_the_queue_is_full() {
    let run = Run::script("stty raw -echo; echo ready; exec sleep 1000");
    let mut daemon = run.daemon();
    daemon.wait_for_text("ready");
    daemon.input(1, &vec![b'x'; 1 << 20]);
    daemon.input(2, &vec![b'x'; 1 << 20]);
    daemon.wait("a refusal", |event| {
        matches!(event, Event::Said(FromKeeper::InputRefused { id: 2, .. })).then_some(())
    });
    daemon.stop(Duration::ZERO);
    daemon.wait("the rest to be refused", |event| {
        matches!(event, Event::Said(FromKeeper::InputRefused { id: 1, .. })).then_some(())
    });
}

#[test]
fn a_password_is_recorded_as_a_length_only() {
    let run =
        Run::script("stty -echo; echo Password:; read secret; stty echo; echo got $secret | tr a-z A-Z; cat");
    let mut daemon = run.daemon();
    daemon.wait_for_text("Password:");
    daemon.type_in(1, b"xyzzy\n");
    daemon.wait_for_text("GOT XYZZY");
    daemon.type_in(2, b"seen\n");
    daemon.wait_for_text("seen");
    let bodies: Vec<Body> = run.journal().into_iter().map(|record| record.body).collect();
    assert!(bodies.contains(&Body::HiddenInput { source: Source::User, len: 6 }));
    assert!(bodies.contains(&Body::Input { source: Source::User, bytes: b"seen\n".to_vec() }));
    let files = std::fs::read(run.path("j").join("00000001.aj")).expect("a segment");
    assert!(!files.windows(5).any(|window| window == b"xyzzy"), "the secret is in no file");
}

#[test]
fn a_resize_reaches_the_program_and_the_journal() {
    let run = Run::script("trap 'stty size' WINCH; stty size; while :; do sleep 0.01; done");
    let mut daemon = run.daemon();
    daemon.wait_for_text("24 80");
    let size = Size { cols: 132, rows: 50, x_pixels: 1320, y_pixels: 1000 };
    daemon.send_message(&ToKeeper::Resize { size });
    daemon.wait_for_text("50 132");
    let resizes = |record: agency_journal::Record| match record.body {
        Body::Resize { cols, rows, x_pixels, y_pixels } => Some((cols, rows, x_pixels, y_pixels)),
        _ => None,
    };
    let resizes: Vec<_> = run.journal().into_iter().filter_map(resizes).collect();
    assert_eq!(resizes, [(80, 24, 0, 0), (132, 50, 1320, 1000)], "the first size is there too");
}

#[test]
fn a_polite_program_ends_at_term_and_a_rude_one_at_kill() {
    for (script, status, asked) in [
        ("echo up; exec sleep 1000", ExitStatus::Signal(15), StopSignal::Term),
        ("trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done", ExitStatus::Code(7), StopSignal::Term),
        ("trap '' TERM; echo up; while :; do sleep 0.01; done", ExitStatus::Signal(1), StopSignal::Term),
        ("trap '' TERM HUP; echo up; while :; do sleep 0.01; done", ExitStatus::Signal(9), StopSignal::Kill),
    ] {
        let run = Run::script(script);
        let mut daemon = run.daemon();
        daemon.wait_for_text("up");
        daemon.stop(Duration::from_millis(400));
        assert_eq!(daemon.wait_for_exit(), (status, Some(asked)), "{script}");
        daemon.wait_for_gone();
    }
}

#[test]
fn a_second_stop_can_only_be_quicker() {
    let run = Run::script("trap '' TERM HUP; echo up; while :; do sleep 0.01; done");
    let mut daemon = run.daemon();
    daemon.wait_for_text("up");
    daemon.stop(Duration::from_secs(3600));
    daemon.stop(Duration::ZERO);
    assert_eq!(daemon.wait_for_exit(), (ExitStatus::Signal(9), Some(StopSignal::Kill)));
}

#[test]
fn pipes_keep_their_streams_apart_and_their_input_can_end() {
    let run = Run::with(&["sh", "-c", "echo out; echo err >&2; cat; exit 6"], |spec| {
        *spec = on_pipes(spec.clone());
    });
    let mut daemon = run.daemon();
    daemon.type_in(1, b"typed");
    daemon.send_message(&ToKeeper::Resize { size: Size::default() });
    assert_eq!(daemon.refused(), "pipes have no size");
    daemon.send_message(&ToKeeper::CloseInput);
    assert_eq!(daemon.wait_for_exit(), (ExitStatus::Code(6), None));
    let of = |wanted: Stream| {
        let bytes = |record: &agency_journal::Record| match &record.body {
            Body::Output { stream, bytes } if *stream == wanted => Some(bytes.clone()),
            _ => None,
        };
        daemon.records.iter().filter_map(bytes).flatten().collect::<Vec<u8>>()
    };
    assert_eq!((of(Stream::Stdout), of(Stream::Stderr)), (b"out\ntyped".to_vec(), b"err\n".to_vec()));
}

#[test]
fn the_environment_is_held_in_memory_and_in_no_file() {
    let run = Run::script("echo $SECRET | wc -c; cat");
    let mut daemon = run.daemon();
    daemon.wait_for_text("14");
    daemon.send_message(&ToKeeper::Environment { id: 8 });
    let env = daemon.wait("the environment", |event| match event {
        Event::Said(FromKeeper::Environment { id: 8, env }) => Some(env.clone()),
        _ => None,
    });
    assert_eq!(env, crate::harness::environment(&crate::harness::run_id(run.dir.path())));
    for file in [run.path("pid"), run.path("j").join("00000001.aj")] {
        let bytes = std::fs::read(&file).expect("a file");
        assert!(!bytes.windows(13).any(|window| window == b"never on disk"), "{}", file.display());
    }
}

#[test]
fn the_agent_starts_as_from_a_fresh_login() {
    let script = "ulimit -n; stty -a | grep -o iutf8; ls /proc/self/fd | tr '\\n' ' '; grep -E 'Sig(Ign|Blk)' /proc/self/status; tty";
    let run = Run::with(&["sh", "-c", script], |spec| spec.open_files = Some((256, 512)));
    let mut daemon = run.daemon();
    daemon.wait_for_exit();
    let text = daemon.text();
    assert!(text.starts_with("256\r\niutf8\r\n0 1 2 3 "), "only ls itself has a fourth descriptor: {text}");
    for name in ["SigBlk:", "SigIgn:"] {
        let mask =
            text.split_once(name).and_then(|(_, rest)| rest.split_whitespace().next()).expect("a mask");
        // libc reserves signals 32 and 33; no program can change them.
        let mask = u64::from_str_radix(mask, 16).expect("hex") & !(0b11 << 31);
        assert_eq!(mask, 0, "{text}");
    }
    assert!(text.contains("/dev/pts/"), "{text}");
}

#[test]
fn checkpoints_and_notes_are_recorded_as_they_are() {
    let run = Run::of(&["cat"]);
    let mut daemon = run.daemon();
    daemon.send(&Frame::Checkpoint { at_seq: 2, bytes: vec![7; 100_000] });
    daemon.send(&Frame::Note { tag: "hook".into(), bytes: b"{}".to_vec() });
    daemon.wait("the note", |event| match event {
        Event::Record(record) => {
            matches!(&record.body, Body::Note { tag, bytes } if tag == "hook" && bytes == b"{}").then_some(())
        }
        _ => None,
    });
    let checkpoint = Body::Checkpoint { at_seq: 2, bytes: vec![7; 100_000] };
    assert!(run.journal().iter().any(|record| record.body == checkpoint));
}
