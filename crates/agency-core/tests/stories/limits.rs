//! How many agents may live at once.

use crate::script::check;

#[test]
fn one_more_than_the_limit_is_refused_and_nothing_is_made() {
    check(
        "
        given 1=running:a 2=running:b 3=running:c 4=running:d 5=running:e 6=running:f 7=running:g
        + 8=running:h 9=running:i 10=running:j 11=stopped
        1 start 11 #1 -> #1 refused: maximum number of agents reached (10)
        1 start 12 #2 new -> undo-task 12; #2 refused: maximum number of agents reached (10)
        1 start 12 #3 -> #3 refused: there is no task 12
    ",
    );
}

#[test]
fn sessions_on_a_shared_process_hold_no_slot() {
    check(
        "
        max 1
        given 1=running:a+session 2=stopped 3=stopped 4=stopped
        1 start 2 #1 session -> keeper 2 e1 asked
        2 start 3 #2 -> keeper 3 e2 asked
        3 start 4 #3 -> #3 refused: maximum number of agents reached (1)
        4 start 4 #4 session -> keeper 4 e3 asked
    ",
    );
}

#[test]
fn zero_is_no_limit() {
    let all: String = (1..=50).map(|task| format!(" {task}=running:r{task}")).collect();
    check(&format!(
        "
        max 0
        0 boot{all} 51=stopped ->
        1 start 51 #1 -> keeper 51 e1 asked
    "
    ));
}

#[test]
fn stopped_tasks_hold_no_slot_and_idle_ones_keep_theirs() {
    check(
        "
        max 1
        given 1=stopped 2=completed 3=draft 4=running@elsewhere
        1 start 1 #1 -> keeper 1 e1 asked
        2 ready 1 e1 a -> write 1 running; #1 started a
        3 idle 1 #2 -> write 1 idle; #2 idle
        4 start 2 #3 -> #3 refused: maximum number of agents reached (1)
        5 start 1 #4 -> write 1 running; #4 resumed a
        6 stop 1 #5 -> stop 1 a 2s
        7 start 2 #6 -> #6 refused: maximum number of agents reached (1)
        8 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; write 1 stopped; #5 stopped -15
        9 start 2 #7 -> keeper 2 e2 asked
    ",
    );
}

#[test]
fn two_starts_cannot_share_the_last_slot() {
    check(
        "
        max 1
        given 1=draft 2=draft
        1 start 1 #1 fresh -> make 1 e1
        1 start 2 #2 fresh -> #2 refused: maximum number of agents reached (1)
        1 start 1 #3 fresh ->
        2 not-made 1 e1 oops -> #1 refused: could not make the workspace of task 1: oops
        ; #3 refused: could not make the workspace of task 1: oops
        3 start 2 #4 fresh -> make 2 e2
    ",
    );
}

#[test]
fn a_cancelled_start_keeps_its_slot_until_no_process_can_result() {
    check(
        "
        max 1
        given 1=draft 2=draft
        1 start 1 #1 fresh -> make 1 e1
        2 stop 1 #2 -> #1 refused: the start of task 1 was cancelled
        3 start 2 #3 fresh -> make 2 e2
        3 start 1 #4 fresh -> #4 refused: maximum number of agents reached (1)
        4 made 2 e2 -> keeper 2 e3 asked
        5 stop 2 #5 -> #3 refused: the start of task 2 was cancelled
        6 made 1 e1 -> undo-workspace 1 e4
        6 start 1 #6 fresh -> #6 refused: maximum number of agents reached (1)
        7 not-ready 2 e3 oops -> undo-workspace 2 e5
        8 start 1 #7 fresh ->
        8 start 2 #8 fresh -> #8 refused: maximum number of agents reached (1)
        9 undone 1 e4 -> #2 start cancelled; make 1 e6
    ",
    );
}

#[test]
fn a_restart_needs_no_second_slot() {
    check(
        "
        max 1
        given 1=running:a 2=running:b
        1 restart 1 #1 -> stop 1 a 2s
        2 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; keeper 1 e1 restarted
        3 ready 1 e1 c -> #1 started c
    ",
    );
}
