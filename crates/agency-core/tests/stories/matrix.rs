//! Each operation, begun while a task is in the middle of each occupation.
//!
//! The test brings a supervisor into each occupation and records what happens. The table of core must agree. A request
//! that joins gets the same reply as the request before it; one that follows begins after the end of what is under way.

use std::collections::BTreeMap;

use agency_core::supervisor::{AgentActivity, Occupation, Operation, Permit};

use crate::script::{Story, key, operation};

/// B begins, J joins, F follows, R begins if the agent is at rest, W waits in the queue, - is refused.
const MATRIX: &str = "
                 free
                 | set-up
                 | | starting
                 | | | restarting
                 | | | | live
                 | | | | | stopping
                 | | | | | | cancelling
                 | | | | | | | cleaning-up
                 | | | | | | | | merging
                 | | | | | | | | | syncing
                 | | | | | | | | | | restoring-turn
                 | | | | | | | | | | | restoring
                 | | | | | | | | | | | | removing
                 | | | | | | | | | | | | | tearing-down
                 | | | | | | | | | | | | | | unsettled
                 | | | | | | | | | | | | | | | orphaned
                 | | | | | | | | | | | | | | | | elsewhere
start            B J J J J F F F - - - - - - - - -
restart          B J J J F F F F - - - - - - - - -
set-up           B - - - - - - - - - - - - - - - -
stop             - B B B B J J - B B B B J B - B -
idle             B - - - B - - - B B B B - - - B -
mark             B - - - B B B B B B B B - - - B -
adopt            B - - - J - - - - - - - - - - B -
send             - - - B B B - - W W W W - - - B -
merge            B - - - - - - - - - - - - - - - -
finish           B - - - R B - - - - - - - - - - -
sync             B - - - R - - - - - - - - - - - -
restore-turn     B - - - R - - - - - - - - - - - -
restore-files    B - - - R - - - - - - - - - - - -
restore-task     B - - - - - - - - - - - - - - B -
rm               B F F F - - F F - - - - - - - - -
discard          B F F F F F F F - - - - - - - - -
tear-down        - - - - - - - - - - - - B - - B -
finish-removal   B - - - - - - - - - - - - - B B -
keep-turn        B B B B B B B B B B B B - - - B -
open-shell       B B - B B - - - B B B - - - - B B
write-file       B B - B B B - - - - - - - - - B B
";

/// How a task gets into each occupation, in the order of the columns.
const WAYS: [&str; 17] = [
    "given 1=stopped",
    "given 1=stopped | 1 start 1 #1 fresh | 2 made 1 e1 raw",
    "given 1=stopped | 1 start 1 #1 fresh",
    "given 1=stopped | 1 restart 1 #1 fresh",
    "given 1=running:a",
    "given 1=running:a | 1 stop 1 #1",
    "given 1=stopped | 1 start 1 #1 fresh | 2 stop 1 #2",
    "given 1=stopped | 1 start 1 #1 fresh | 2 made 1 e1 | 3 not-ready 1 e2 oops",
    "given 1=stopped | given 1=merging",
    "given 1=running:a | given 1=syncing",
    "given 1=running:a | given 1=restoring-turn",
    "given 1=restoring",
    "given 1=stopped | 1 rm 1 #1",
    "given 1=stopped | 1 rm 1 #1 | 2 begin tear-down 1",
    "given 1=stopped | 1 rm 1 #1 | 2 unsettled 1",
    "given 1=stopped | 1 orphan 1 z",
    "given 1=running@elsewhere",
];

fn brought_into(way: &str) -> Story {
    let mut story = Story::new();
    for line in way.split(" | ") {
        story.tell(line);
    }
    story
}

fn rows() -> impl Iterator<Item = (&'static str, Vec<char>)> {
    let rows = MATRIX.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()));
    rows.map(|row| {
        let mut words = row.split_whitespace();
        let name = words.next().expect("a name");
        (name, words.map(|cell| cell.chars().next().expect("a letter")).collect())
    })
}

#[test]
fn the_ways_lead_to_the_occupations() {
    for (way, occupation) in WAYS.iter().zip(Occupation::ALL) {
        assert_eq!(brought_into(way).supervisor.occupation(&key("1")), occupation, "{way}");
    }
}

#[test]
fn the_table_of_core_is_this_one() {
    assert_eq!(rows().count(), Operation::ALL.len());
    for (name, cells) in rows() {
        for (cell, occupation) in cells.into_iter().zip(Occupation::ALL) {
            let letter = match operation(name).permit(occupation) {
                Permit::Begins => 'B',
                Permit::Joins => 'J',
                Permit::Follows => 'F',
                Permit::IfAtRest => 'R',
                Permit::Waits => 'W',
                Permit::Refused => '-',
            };
            assert_eq!(letter, cell, "{name} while {occupation:?}");
        }
    }
}

/// The event that requests an operation, if an event does.
fn event(name: &str) -> Option<&'static str> {
    Some(match name {
        "start" => "9 start 1 #9",
        "restart" => "9 restart 1 #9",
        "set-up" => "9 set-up 1 #9",
        "stop" => "9 stop 1 #9",
        "rm" => "9 rm 1 #9",
        "discard" => "9 discard 1 #9",
        "adopt" => "9 adopt 1 a #9",
        _ => return None,
    })
}

#[test]
fn a_refusal_of_the_table_changes_nothing() {
    for (name, cells) in rows() {
        for ((way, occupation), cell) in WAYS.iter().zip(Occupation::ALL).zip(cells.clone()) {
            // The task is free apart from its orphan, and both must permit the operation.
            let cell = if occupation == Occupation::Orphaned && cells[0] == '-' { '-' } else { cell };
            let mut story = brought_into(way);
            let told = match event(name) {
                Some(event) => story.tell(event),
                None => tell_begin(&mut story, name, AgentActivity::AtWork),
            };
            let is_refused = told.contains("#9 refused: ") || told.starts_with("refused: ");
            // Only the daemon can carry out this stop, or there is no agent to stop during a merge.
            let is_daemons = name == "stop" && story.supervisor.live_run(&key("1")).is_none();
            match cell {
                '-' | 'W' | 'R' => {
                    assert!(is_refused, "{name} while {occupation:?}: {told}");
                    assert_eq!(story.supervisor.occupation(&key("1")), occupation, "{name} changed it");
                }
                _ => assert!(!is_refused || is_daemons, "{name} while {occupation:?}: {told}"),
            }
        }
    }
}

#[test]
fn an_agent_at_rest_lets_its_files_change() {
    for (name, cells) in rows().filter(|(_, cells)| cells.contains(&'R')) {
        for ((way, occupation), _) in
            WAYS.iter().zip(Occupation::ALL).zip(cells).filter(|(_, cell)| *cell == 'R')
        {
            let told = tell_begin(&mut brought_into(way), name, AgentActivity::AtRest);
            assert_eq!(told, "begun", "{name} while {occupation:?}");
        }
    }
}

fn tell_begin(story: &mut Story, name: &str, agent: AgentActivity) -> String {
    match story.supervisor.begin(&key("1"), operation(name), agent) {
        Ok(()) => "begun".into(),
        Err(refusal) => format!("refused: {refusal}"),
    }
}

/// The cells with this letter whose operation an event requests: its name, the event, and the way into the occupation.
fn requests(letter: char) -> Vec<(&'static str, &'static str, &'static str)> {
    let mut found = Vec::new();
    for (name, cells) in rows() {
        let ways = WAYS.into_iter().zip(cells).filter(|(_, cell)| *cell == letter);
        found.extend(ways.filter_map(|(way, _)| Some((name, event(name)?, way))));
    }
    // The daemon carries out the stop of a task that is being removed: it ends the teardown.
    found.retain(|(name, _, way)| (*name, *way) != ("stop", WAYS[12]));
    found
}

#[test]
fn a_request_that_joins_gets_the_reply_of_the_one_before_it() {
    let requests = requests('J');
    assert!(requests.len() >= 10, "{requests:?}");
    for (name, event, way) in requests {
        let mut play = Play::begun(way);
        let open = play.open_ticket();
        let at_once = play.tell(event);
        play.finish();
        let joined = play.replies.get("#9").unwrap_or_else(|| panic!("{name} after {way}: no reply"));
        assert!(!joined.starts_with("refused"), "{name} after {way}: {joined}");
        match open {
            Some(open) => assert_eq!(play.replies.get(&open), Some(joined), "{name} after {way}"),
            // Everything that it asks for is there.
            None => assert_eq!(at_once, format!("#9 {joined}"), "{name} after {way}"),
        }
    }
}

#[test]
fn a_request_that_follows_begins_after_the_end_of_the_one_before_it() {
    let requests = requests('F');
    assert!(requests.len() >= 15, "{requests:?}");
    for (name, event, way) in requests {
        let mut play = Play::begun(way);
        let told = play.tell(event);
        let begins = ["make ", "keeper ", "setup ", "#9 "];
        let has_begun = told.split("; ").any(|effect| begins.iter().any(|begin| effect.starts_with(begin)));
        assert!(!has_begun, "{name} after {way} does not wait: {told}");
        assert!(!play.owed.is_empty(), "{name} after {way} waits for nothing");
        play.finish();
        let expected = if ["rm", "discard"].contains(&name) { "ready to remove" } else { "started b" };
        assert_eq!(play.replies.get("#9").map(String::as_str), Some(expected), "{name} after {way}");
    }
}

/// A story in which the daemon carries out every effect, one after another.
struct Play {
    story: Story,
    /// The answers that the daemon still owes, by epoch or run.
    owed: BTreeMap<String, String>,
    /// The requests so far, and the replies, by ticket.
    tickets: Vec<String>,
    replies: BTreeMap<String, String>,
}

impl Play {
    fn begun(way: &str) -> Play {
        let story = Story::new();
        let mut play = Play { story, owed: BTreeMap::new(), tickets: Vec::new(), replies: BTreeMap::new() };
        for line in way.split(" | ") {
            play.tell(line);
        }
        play
    }

    fn tell(&mut self, line: &str) -> String {
        self.tickets.extend(line.split(' ').filter(|word| word.starts_with('#')).map(str::to_owned));
        self.owed.retain(|of, _| !line.split(' ').any(|word| word == of));
        let told = self.story.tell(line);
        for effect in told.split("; ") {
            self.take(effect);
        }
        told
    }

    fn take(&mut self, effect: &str) {
        let words: Vec<&str> = effect.split(' ').collect();
        let (of, answer) = match words.as_slice() {
            ["make", task, epoch] => (epoch, format!("made {task} {epoch}")),
            ["setup", task, epoch] => (epoch, format!("setup-done {task} {epoch}")),
            ["end-setup", task, epoch] => (epoch, format!("setup-failed {task} {epoch} killed")),
            ["undo-workspace", task, epoch] => (epoch, format!("undone {task} {epoch}")),
            ["keeper", task, epoch, _] => (epoch, format!("ready {task} {epoch} b")),
            ["stop", task, run, _] => (run, format!("exit {task} {run} term:0")),
            [ticket, reply @ ..] if ticket.starts_with('#') => {
                let earlier = self.replies.insert((*ticket).to_owned(), reply.join(" "));
                assert_eq!(earlier, None, "{ticket} got two replies");
                return;
            }
            _ => return,
        };
        self.owed.insert((*of).to_owned(), format!("10 {answer}"));
    }

    /// The last request without a reply.
    fn open_ticket(&self) -> Option<String> {
        self.tickets.iter().rfind(|ticket| !self.replies.contains_key(*ticket)).cloned()
    }

    fn finish(&mut self) {
        while let Some(answer) = self.owed.values().next().cloned() {
            self.tell(&answer);
        }
    }
}
