//! Removals: nothing may live in a workspace that goes.

use crate::script::check;

#[test]
fn what_rests_can_go_at_once() {
    check(
        "
        0 boot 1=merged ->
        1 rm 1 #1 -> #1 ready to remove
        2 rm 1 #2 -> #2 refused: there is no task 1
    ",
    );
}

#[test]
fn what_lives_is_stopped_first() {
    check(
        "
        0 boot 1=running:a ->
        1 rm 1 #1 -> stop 1 a 2s
        1 start 1 #2 -> #2 refused: task 1 is being removed
        1 rm 1 #3 -> #3 refused: task 1 is being removed
        1 stop 1 #4 ->
        2 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; write 1 stopped; #4 stopped -15; #1 ready to remove
        3 start 1 #5 -> #5 refused: there is no task 1
    ",
    );
}

#[test]
fn what_is_about_to_live_is_cancelled_first() {
    check(
        "
        0 boot 1=draft 2=stopped ->
        1 start 1 #1 fresh -> make 1 e1
        2 rm 1 #2 -> #1 refused: the start of task 1 was cancelled
        3 made 1 e1 -> undo-workspace 1 e2
        4 undone 1 e2 -> #2 ready to remove

        5 start 2 #3 -> keeper 2 e3 again asked
        5 rm 2 #4 -> #3 refused: the start of task 2 was cancelled
        6 ready 2 e3 a -> stop 2 a 2s
        7 exit 2 a term:0 -> write 2 a exit -15 raw 0; dismiss 2 a; #4 ready to remove
    ",
    );
}

#[test]
fn a_removal_takes_the_place_of_a_start_that_waits() {
    check(
        "
        0 boot 1=running:a ->
        1 restart 1 #1 -> stop 1 a 2s
        2 rm 1 #2 -> #1 refused: the start of task 1 was cancelled
        3 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; write 1 stopped; #2 ready to remove
    ",
    );
}

#[test]
fn what_could_not_be_removed_after_all_is_seen_again() {
    check(
        "
        0 boot 1=stopped ->
        1 rm 1 #1 -> #1 ready to remove
        2 seen 1=stopped ->
        3 start 1 #2 -> keeper 1 e1 again asked
    ",
    );
}
