//! The desk: one call that reads everything, the changes that follow, and `agency ls --watch`, which shows them.

use agency_api::desk::{Applied, Desk, DeskChange, DeskSubscribeParams};
use agency_api::method::{DeskRead, DeskSubscribe, Nothing};

use crate::api::ApiConnection;
use crate::conversations::{new_conversation, wait_approval};
use crate::stage::Stage;
use crate::state_log::NO_SILENCE;

/// A client that keeps a desk up to date.
struct Follower {
    connection: ApiConnection,
    desk: Desk,
}

impl Follower {
    fn begin(stage: &Stage) -> Follower {
        let mut connection = ApiConnection::open(stage);
        let desk = connection.call(DeskRead, Nothing {});
        let since = Some(desk.seq);
        let mut follower = Follower { connection, desk };
        let start = follower.connection.call(DeskSubscribe, DeskSubscribeParams { since });
        assert!(!start.gap, "{start:?}");
        for update in start.updates {
            assert_ne!(follower.desk.apply(update), Applied::Gap);
        }
        follower
    }

    /// Applies updates until the desk fits, and returns the kinds of changes on the way.
    #[track_caller]
    fn wait(&mut self, what: &str, fits: impl Fn(&Desk) -> bool) -> Vec<&'static str> {
        let mut kinds = Vec::new();
        while !fits(&self.desk) {
            let update = self.connection.next_desk_update(what);
            kinds.push(match &update.change {
                DeskChange::Task(_) => "task",
                DeskChange::TaskGone(_) => "gone",
                DeskChange::Approvals(_) => "approvals",
                DeskChange::Queue(_) => "queue",
                DeskChange::Costs(_) => "costs",
                _ => "other",
            });
            assert_ne!(self.desk.apply(update), Applied::Gap, "{what}");
        }
        kinds
    }
}

fn headline(desk: &Desk, slug: &str) -> String {
    let task = desk.tasks.iter().find(|task| task.slug == slug);
    task.map(|task| task.headline.clone()).unwrap_or_default()
}

#[test]
fn the_updates_lead_to_the_same_desk_as_reading_it_again() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("asks", "ask ready?; say thanks; raw; no-read");
    stage.wait_task("asks", "asks", |task| task["headline"] == "asks");
    let mut follower = Follower::begin(&stage);
    assert_eq!(headline(&follower.desk, "asks"), "asks");

    stage.run(["send", "asks", "go"]).ok();
    follower.wait("the agent works", |desk| headline(desk, "asks") == "working");
    let kinds = {
        stage.run(["send", "asks", "--queue", "and then this"]).ok();
        follower.wait("a message is queued", |desk| desk.queue.len() == 1)
    };
    assert!(kinds.contains(&"queue"), "{kinds:?}");
    stage.run(["new", "idea", "--draft", "-m", "x"]).ok();
    follower.wait("a draft is new", |desk| headline(desk, "idea") == "draft");
    stage.run(["rm", "idea"]).ok();
    let kinds = follower.wait("the draft is gone", |desk| headline(desk, "idea").is_empty());
    assert!(kinds.contains(&"gone"), "{kinds:?}");
    stage.run(["stop", "asks"]).ok();
    follower.wait("it is stopped", |desk| headline(desk, "asks") == "stopped");

    let read = follower.connection.call(DeskRead, Nothing {});
    let seq = read.seq;
    follower.wait("all updates", |desk| desk.seq >= seq);
    assert_eq!(follower.desk.changes_to(&read), []);
}

#[test]
fn approvals_and_costs_are_part_of_the_desk() {
    let stage = Stage::new();
    new_conversation(&stage, "talk", "go", "prompt; say Hm.; tool Bash ls; say Thanks.; end");
    wait_approval(&stage, "talk");
    let mut follower = Follower::begin(&stage);
    assert_eq!(follower.desk.approvals.len(), 1, "{:?}", follower.desk.approvals);
    stage.run(["approve", "talk"]).ok();
    follower.wait("the approval is answered", |desk| desk.approvals.is_empty());
    follower.wait("the turn has ended", |desk| headline(desk, "talk") == "done");
    let costs = stage.run(["cost", "--json"]).json();
    let tokens = costs["tasks"][0]["output_tokens"].as_u64().expect("a number");
    follower.wait("its cost", |desk| desk.costs.iter().any(|cost| cost.usage.output_tokens == tokens));
}

#[test]
fn a_subscriber_that_comes_from_another_daemon_has_to_read_the_desk_again() {
    let stage = Stage::new();
    stage.run(["new", "idea", "--draft", "-m", "x"]).ok();
    let before = ApiConnection::open(&stage).call(DeskRead, Nothing {});
    stage.kill_daemon();
    stage.listing();
    let mut connection = ApiConnection::open(&stage);
    let since = Some(before.seq);
    assert!(connection.call(DeskSubscribe, DeskSubscribeParams { since }).gap);
    let read = connection.call(DeskRead, Nothing {});
    assert!(read.seq > before.seq, "{} {}", before.seq, read.seq);
    let since = Some(read.seq);
    let start = connection.call(DeskSubscribe, DeskSubscribeParams { since });
    assert_eq!((start.seq, start.updates.len(), start.gap), (read.seq, 0, false));
}

#[test]
fn the_watched_list_shows_every_change_and_survives_the_daemon() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("first", "ask ready?");
    let mut terminal = stage.on_terminal(["ls", "--watch"]);
    terminal.wait_for("\x1b[?1049h");
    terminal.wait_for("asks");
    terminal.wait_for("q leaves");
    stage.play("second", "raw; say busy; no-read");
    terminal.wait_for("second");
    terminal.wait_for("working");
    stage.run(["stop", "second"]).ok();
    terminal.wait_for("stopped");

    stage.kill_daemon();
    terminal.wait_for("reconnecting");
    terminal.wait_for("q leaves");
    stage.run(["new", "third", "--draft", "-m", "x"]).ok();
    terminal.wait_for("third");

    terminal.resize(30, 4);
    terminal.wait_for("and ");
    terminal.wait_for(" more lines");
    terminal.send("q");
    assert!(terminal.wait_exit().success(), "{terminal}");
    assert!(terminal.output().ends_with(b"\x1b[?25h\x1b[?1049l"), "{terminal}");
    let refusal = stage.refused(&["ls", "--watch"]);
    assert!(refusal.starts_with("Error: cannot watch without a terminal\n"), "{refusal}");
}

#[test]
fn an_interrupt_leaves_the_watched_list() {
    let stage = Stage::new();
    stage.run(["new", "idea", "--draft", "-m", "x"]).ok();
    let mut terminal = stage.on_terminal(["ls", "--watch", "--all"]);
    terminal.wait_for("q leaves");
    terminal.send("\x03");
    assert_eq!(terminal.wait_exit().code(), Some(130), "{terminal}");
    assert!(terminal.echoes(), "the terminal is as it was before");
}
