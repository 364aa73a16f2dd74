//! The life of a connection: stories, and a simulated world in which anything can happen at any moment.

use std::collections::BTreeSet;
use std::time::Duration;

use agency_core::connection::{Connection, Effect, Event, Status};
use agency_core::ids::{Epoch, Ticket};
use proptest::prelude::*;

/// Lines of `seconds event -> effects`. Tickets are `#1`, epochs are `e1`; `deadline -> seconds` asks when a tick is due.
fn check(story: &str) {
    let mut connection = Connection::new("Claude Code");
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (event, expected) =
            line.split_once("->").map_or((line, ""), |(event, effects)| (event.trim(), effects.trim()));
        let effects = match event {
            "deadline" => {
                connection.deadline().map_or("none".to_owned(), |due| due.as_secs_f64().to_string())
            }
            _ => {
                let (seconds, event) = event.split_once(' ').expect("a time and an event");
                let now = Duration::from_secs_f64(seconds.parse().expect("seconds"));
                let effects = connection.on(read(event), now);
                effects.iter().map(describe).collect::<Vec<_>>().join("; ")
            }
        };
        assert_eq!(effects, expected, "\nafter `{event}` in{story}");
    }
}

fn read(text: &str) -> Event {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let number = || rest.trim_start_matches(['#', 'e']).parse().expect("a number");
    let (ticket, epoch) = (|| Ticket(number()), || Epoch(number()));
    match word {
        "ensure" => Event::Ensure { ticket: ticket() },
        "reconnect" => Event::Reconnect { ticket: ticket() },
        "cancel" => Event::Cancel { ticket: ticket() },
        "shutdown" => Event::Shutdown { ticket: ticket() },
        "adopted" => Event::Adopted { greeted: rest == "greeted" },
        "spawned" => Event::Spawned { epoch: epoch() },
        "missing" => Event::SpawnFailed { epoch: epoch(), not_found: true, cause: String::new() },
        "initialized" => Event::Initialized { epoch: epoch() },
        "refused" => Event::HandshakeFailed { epoch: epoch(), cause: "no".into() },
        "lost" => Event::Lost { epoch: epoch(), cause: "broken pipe".into() },
        "gone" => Event::Gone { epoch: epoch() },
        "tick" => Event::Tick,
        other => panic!("{other}"),
    }
}

fn describe(effect: &Effect) -> String {
    match effect {
        Effect::Spawn { epoch } => format!("spawn e{}", epoch.0),
        Effect::End { epoch } => format!("end e{}", epoch.0),
        Effect::Announce { status } => status.to_string(),
        Effect::Fail(error) => format!("fail `{error}`"),
        Effect::Answer { ticket, answer: Ok(()) } => format!("#{} ok", ticket.0),
        Effect::Answer { ticket, answer: Err(error) } => format!("#{} `{error}`", ticket.0),
    }
}

#[test]
fn callers_join_an_attempt_in_progress_and_get_a_live_connection_at_once() {
    check(
        "
        0 ensure #1 -> starting; spawn e1
        0.1 ensure #2 ->
        0.2 spawned e1 ->
        0.3 ensure #3 ->
        1 initialized e1 -> connected; #1 ok; #2 ok; #3 ok
        2 ensure #4 -> #4 ok
        deadline -> none
        ",
    );
}

#[test]
fn a_handshake_ends_when_the_last_caller_cancels_and_the_next_caller_starts_another() {
    check(
        "
        0 ensure #1 -> starting; spawn e1
        0.1 ensure #2 ->
        0.2 spawned e1 ->
        1 cancel #1 ->
        2 cancel #2 -> end e1
        3 ensure #3 ->
        4 gone e1 -> spawn e2
        5 cancel #3 ->
        6 spawned e2 -> end e2
        7 gone e2 -> idle
        8 ensure #4 -> starting; spawn e3
        9 spawned e3 ->
        10 initialized e3 -> connected; #4 ok
        11 cancel #4 ->
        deadline -> none
        ",
    );
}

#[test]
fn a_first_attempt_that_fails_is_not_retried() {
    check(
        "
        0 ensure #1 -> starting; spawn e1
        1 missing e1 -> fail `Could not start Claude Code. Check that it's installed.`; #1 `Could not start Claude Code. Check that it's installed.`; disconnected
        deadline -> none
        2 ensure #2 -> starting; spawn e2
        2 spawned e2 ->
        3 refused e2 -> fail `Could not connect to Claude Code`; #2 `Could not connect to Claude Code`; disconnected; end e2
        3 ensure #3 ->
        4 gone e2 -> starting; spawn e3
        4 spawned e3 ->
        5 lost e3 -> fail `Could not connect to Claude Code`; #3 `Could not connect to Claude Code`; disconnected; end e3
        5 gone e3 ->
        deadline -> none
        ",
    );
}

#[test]
fn a_lost_connection_is_retried_after_one_two_four_eight_and_sixteen_seconds_and_then_given_up() {
    check(
        "
        0 adopted greeted -> connected
        10 lost e1 -> disconnected; fail `Lost the connection to Claude Code`; reconnecting; end e1
        10 lost e1 ->
        10 gone e1 ->
        deadline -> 11
        10.9 tick ->
        11 tick -> spawn e2
        11 spawned e2 ->
        11.5 lost e2 -> fail `Could not connect to Claude Code`; end e2
        12 gone e2 ->
        deadline -> 13.5
        13.5 tick -> spawn e3
        14 missing e3 -> fail `Could not start Claude Code. Check that it's installed.`
        deadline -> 18
        18 tick -> spawn e4
        18 missing e4 -> fail `Could not start Claude Code. Check that it's installed.`
        deadline -> 26
        26 tick -> spawn e5
        26 missing e5 -> fail `Could not start Claude Code. Check that it's installed.`
        deadline -> 42
        42 tick -> spawn e6
        42 missing e6 -> fail `Could not start Claude Code. Check that it's installed.`; disconnected
        deadline -> none
        ",
    );
}

#[test]
fn a_caller_does_not_wait_for_the_next_retry() {
    check(
        "
        0 adopted greeted -> connected
        1 gone e1 -> disconnected; fail `Lost the connection to Claude Code`; reconnecting
        deadline -> 2
        1.1 ensure #1 -> spawn e2
        1.2 tick ->
        1.2 spawned e2 ->
        1.3 initialized e2 -> connected; #1 ok
        2 lost e2 -> disconnected; fail `Lost the connection to Claude Code`; reconnecting; end e2
        2.1 ensure #2 ->
        9 gone e2 -> spawn e3
        9 missing e3 -> fail `Could not start Claude Code. Check that it's installed.`; #2 `Could not start Claude Code. Check that it's installed.`
        deadline -> 11
        ",
    );
}

#[test]
fn the_next_process_waits_for_the_end_of_a_slow_one() {
    check(
        "
        0 adopted greeted -> connected
        1 lost e1 -> disconnected; fail `Lost the connection to Claude Code`; reconnecting; end e1
        3 tick ->
        6 gone e1 -> spawn e2
        ",
    );
}

#[test]
fn a_reconnect_makes_a_new_process_in_every_state() {
    check(
        "
        0 reconnect #1 -> reconnecting; starting; spawn e1
        0 spawned e1 ->
        1 initialized e1 -> connected; #1 ok
        2 reconnect #2 -> reconnecting; end e1
        2 lost e1 ->
        3 gone e1 -> starting; spawn e2
        3 initialized e1 ->
        3 reconnect #3 -> reconnecting
        4 spawned e2 -> end e2
        4 gone e2 -> starting; spawn e3
        4 spawned e3 ->
        5 initialized e3 -> connected; #2 ok; #3 ok
        6 gone e3 -> disconnected; fail `Lost the connection to Claude Code`; reconnecting
        6 reconnect #4 -> reconnecting; starting; spawn e4
        deadline -> 66
        7 missing e4 -> fail `Could not start Claude Code. Check that it's installed.`; #4 `Could not start Claude Code. Check that it's installed.`; disconnected
        deadline -> none
        ",
    );
}

#[test]
fn a_greeting_without_an_answer_fails() {
    check(
        "
        0 ensure #1 -> starting; spawn e1
        5 spawned e1 ->
        64 tick ->
        65 tick -> fail `Could not connect to Claude Code`; #1 `Could not connect to Claude Code`; disconnected; end e1
        65 initialized e1 ->
        66 gone e1 ->
        ",
    );
}

#[test]
fn a_shutdown_leaves_no_process_in_any_state() {
    check("0 shutdown #1 -> #1 ok");
    check(
        "
        0 ensure #1 -> starting; spawn e1
        1 shutdown #2 -> #1 `The connection to Claude Code is being shut down`
        1 ensure #3 -> #3 `The connection to Claude Code is being shut down`
        1 reconnect #4 -> #4 `The connection to Claude Code is being shut down`
        2 spawned e1 -> end e1
        2 shutdown #5 ->
        3 gone e1 -> idle; #2 ok; #5 ok
        ",
    );
    check(
        "
        0 ensure #1 -> starting; spawn e1
        1 shutdown #2 -> #1 `The connection to Claude Code is being shut down`
        2 missing e1 -> idle; #2 ok
        ",
    );
    check(
        "
        0 adopted greeted -> connected
        1 shutdown #1 -> end e1
        1 lost e1 ->
        2 gone e1 -> idle; #1 ok
        3 ensure #2 -> starting; spawn e2
        ",
    );
    check(
        "
        0 adopted greeted -> connected
        1 gone e1 -> disconnected; fail `Lost the connection to Claude Code`; reconnecting
        1 shutdown #1 -> idle; #1 ok
        deadline -> none
        ",
    );
}

#[test]
fn a_process_that_was_found_before_it_answered_the_greeting_gets_time_to_answer() {
    check(
        "
        0 adopted -> starting
        0 ensure #1 ->
        1 initialized e1 -> connected; #1 ok
        ",
    );
}

#[test]
fn an_agent_that_connects_and_dies_again_and_again_is_given_up() {
    let mut connection = Connection::new("X");
    let mut now = Duration::from_secs(1000);
    connection.on(Event::Adopted { greeted: true }, now);
    let mut lives = 0;
    while let Some(epoch) = connection.epoch() {
        lives += 1;
        connection.on(Event::Gone { epoch }, now);
        let Some(due) = connection.deadline() else { break };
        now = due;
        connection.on(Event::Tick, now);
        let epoch = connection.epoch().expect("a process");
        connection.on(Event::Spawned { epoch }, now);
        connection.on(Event::Initialized { epoch }, now);
        assert_eq!(connection.retry(), None, "connected is connected");
    }
    assert_eq!((lives, connection.status()), (11, Status::Disconnected));
    let effects = connection.on(Event::Ensure { ticket: Ticket(1) }, now);
    assert!(effects.contains(&Effect::Announce { status: Status::Starting }), "a caller may try again");
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Ensure,
    Reconnect,
    Shutdown,
    Spawn {
        works: bool,
    },
    Initialize,
    Refuse,
    Break,
    Die,
    /// Something about a process of old.
    Stale(u8),
    Wait(u16),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::Ensure),
        1 => Just(Act::Reconnect),
        1 => Just(Act::Shutdown),
        5 => any::<bool>().prop_map(|works| Act::Spawn { works }),
        3 => Just(Act::Initialize),
        1 => Just(Act::Refuse),
        2 => Just(Act::Break),
        3 => Just(Act::Die),
        2 => any::<u8>().prop_map(Act::Stale),
        3 => any::<u16>().prop_map(Act::Wait),
    ]
}

/// A connection, and the processes that it started.
struct World {
    connection: Connection,
    now: Duration,
    /// The connection ordered it, and it neither lives nor has failed.
    pending: Option<Epoch>,
    alive: Option<Epoch>,
    /// The connection ordered its end.
    ending: bool,
    open: BTreeSet<Ticket>,
    next_ticket: u64,
    last_epoch: u64,
}

impl World {
    fn new() -> World {
        World {
            connection: Connection::new("X"),
            now: Duration::ZERO,
            pending: None,
            alive: None,
            ending: false,
            open: BTreeSet::new(),
            next_ticket: 1,
            last_epoch: 0,
        }
    }

    fn ticket(&mut self) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.open.insert(ticket);
        ticket
    }

    fn on(&mut self, event: Event) {
        for effect in self.connection.on(event, self.now) {
            match effect {
                Effect::Spawn { epoch } => {
                    assert_eq!((self.pending, self.alive), (None, None), "never two processes");
                    assert!(epoch.0 > self.last_epoch, "every process has its own epoch");
                    (self.pending, self.last_epoch, self.ending) = (Some(epoch), epoch.0, false);
                }
                Effect::End { epoch } => {
                    assert_eq!(self.alive, Some(epoch), "only a live process is ended");
                    assert!(!std::mem::replace(&mut self.ending, true), "once");
                }
                Effect::Answer { ticket, .. } => assert!(self.open.remove(&ticket), "answered once"),
                Effect::Announce { .. } | Effect::Fail(_) => {}
            }
        }
        let is_connected = self.connection.status() == Status::Connected;
        assert!(!is_connected || self.alive.is_some() || self.ending, "connected to something");
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Ensure => {
                let ticket = self.ticket();
                self.on(Event::Ensure { ticket });
            }
            Act::Reconnect => {
                let ticket = self.ticket();
                self.on(Event::Reconnect { ticket });
            }
            Act::Shutdown => {
                let ticket = self.ticket();
                self.on(Event::Shutdown { ticket });
            }
            Act::Spawn { works } => match self.pending.take() {
                Some(epoch) if works => {
                    self.alive = Some(epoch);
                    self.on(Event::Spawned { epoch });
                }
                Some(epoch) => self.on(Event::SpawnFailed { epoch, not_found: true, cause: String::new() }),
                None => {}
            },
            Act::Initialize => self.report_live(|epoch| Event::Initialized { epoch }),
            Act::Refuse => self.report_live(|epoch| Event::HandshakeFailed { epoch, cause: String::new() }),
            Act::Break => self.report_live(|epoch| Event::Lost { epoch, cause: String::new() }),
            Act::Die => {
                if let Some(epoch) = self.alive.take() {
                    self.on(Event::Gone { epoch });
                }
            }
            Act::Stale(which) => self.report_stale(which),
            Act::Wait(millis) => {
                self.now += Duration::from_millis(u64::from(millis));
                self.on(Event::Tick);
            }
        }
    }

    fn report_live(&mut self, event: impl FnOnce(Epoch) -> Event) {
        if let Some(epoch) = self.alive {
            self.on(event(epoch));
        }
    }

    fn report_stale(&mut self, which: u8) {
        let gone = self.last_epoch.checked_sub(1).filter(|epoch| *epoch > 0).map(Epoch);
        let Some(epoch) = gone else { return };
        let before = (self.connection.status(), self.connection.epoch(), self.connection.deadline());
        self.on(match which % 5 {
            0 => Event::Spawned { epoch },
            1 => Event::SpawnFailed { epoch, not_found: false, cause: String::new() },
            2 => Event::Initialized { epoch },
            3 => Event::Lost { epoch, cause: String::new() },
            _ => Event::Gone { epoch },
        });
        let after = (self.connection.status(), self.connection.epoch(), self.connection.deadline());
        assert_eq!(before, after, "a report about another process changes nothing");
    }

    /// After a shutdown every caller has an answer, and no process is left.
    fn check_shutdown(&mut self) {
        self.act(Act::Shutdown);
        self.act(Act::Spawn { works: true });
        if self.alive.is_some() {
            assert!(self.ending, "the connection ends a live process");
        }
        self.act(Act::Die);
        assert_eq!((self.pending, self.alive), (None, None));
        assert_eq!((self.connection.status(), self.connection.deadline()), (Status::Idle, None));
        assert_eq!(self.open, BTreeSet::new(), "every caller has an answer");
    }

    /// If every process starts and answers, every caller gets an answer without a further request.
    fn check_answers(&mut self) {
        for _ in 0..20 {
            self.act(Act::Spawn { works: true });
            if self.ending {
                self.act(Act::Die);
            } else {
                self.act(Act::Initialize);
            }
            if let Some(due) = self.connection.deadline() {
                self.now = self.now.max(due);
                self.on(Event::Tick);
            }
        }
        assert_eq!(self.open, BTreeSet::new(), "every caller has an answer");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn there_are_never_two_processes_and_a_shutdown_leaves_none(acts in prop::collection::vec(act(), 0..80)) {
        let mut world = World::new();
        acts.into_iter().for_each(|act| world.act(act));
        world.check_shutdown();
    }

    #[test]
    fn every_caller_gets_an_answer_if_processes_answer(acts in prop::collection::vec(act(), 0..80)) {
        let mut world = World::new();
        acts.into_iter().for_each(|act| world.act(act));
        world.check_answers();
    }
}
