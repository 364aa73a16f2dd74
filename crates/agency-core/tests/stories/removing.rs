//! Removals: nothing may live in a workspace that goes.

use crate::script::check;

#[test]
fn a_task_at_rest_can_be_removed_at_once() {
    check(
        "
        given 1=merged
        1 rm 1 #1 -> #1 ready to remove
        2 rm 1 #2 -> #2 refused: task 1 is being removed
        2 stop 1 #3 -> #3 refused: task 1 is being removed
        3 finish rm 1 ->
        4 rm 1 #4 -> #4 refused: there is no task 1
    ",
    );
}

#[test]
fn a_removal_stops_a_live_agent_first() {
    check(
        "
        given 1=running:a
        1 discard 1 #1 -> stop 1 a 2s
        1 start 1 #2 -> #2 refused: task 1 is being removed
        1 discard 1 #3 -> #3 refused: task 1 is being removed
        1 stop 1 #4 ->
        2 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; write 1 stopped; #4 stopped -15; #1 ready to remove
        3 start 1 #5 -> #5 refused: task 1 is being removed
        4 finish discard 1 ->
        5 start 1 #6 -> #6 refused: there is no task 1
    ",
    );
}

#[test]
fn a_removal_cancels_a_start_first() {
    check(
        "
        given 1=draft 2=stopped
        1 start 1 #1 fresh -> make 1 e1
        2 discard 1 #2 -> #1 refused: the start of task 1 was cancelled
        3 made 1 e1 -> undo-workspace 1 e2
        4 undone 1 e2 -> #2 ready to remove

        5 start 2 #3 -> keeper 2 e3 asked
        5 discard 2 #4 -> #3 refused: the start of task 2 was cancelled
        6 ready 2 e3 a -> stop 2 a 2s
        7 exit 2 a term:0 -> write 2 a exit -15 raw 0; dismiss 2 a; #4 ready to remove
    ",
    );
}

#[test]
fn a_removal_takes_the_place_of_a_start_that_waits() {
    check(
        "
        given 1=running:a
        1 restart 1 #1 -> stop 1 a 2s
        2 discard 1 #2 -> #1 refused: the start of task 1 was cancelled
        3 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; write 1 stopped; #2 ready to remove
    ",
    );
}

#[test]
fn a_task_that_could_not_be_removed_is_known_again() {
    check(
        "
        given 1=stopped
        1 rm 1 #1 -> #1 ready to remove
        2 seen 1=stopped ->
        2 start 1 #2 -> #2 refused: task 1 is being removed
        3 finish rm 1 ->
        4 seen 1=stopped ->
        5 start 1 #3 -> keeper 1 e1 asked
    ",
    );
}

#[test]
fn a_removal_without_discard_is_refused_while_the_agent_lives() {
    check(
        "
        given 1=running:a
        1 rm 1 #1 -> #1 refused: the agent of task 1 is still running
        2 stop 1 #2 -> stop 1 a 2s
        2 rm 1 #3 -> #3 refused: the agent of task 1 is still running
        3 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; write 1 stopped; #2 stopped -15
        4 rm 1 #4 -> #4 ready to remove
    ",
    );
}

#[test]
fn a_teardown_is_a_part_of_the_removal_and_can_be_stopped() {
    check(
        "
        given 1=stopped
        1 begin tear-down 1 -> refused: task 1 is free
        2 rm 1 #1 -> #1 ready to remove
        3 begin tear-down 1 -> begun
        4 start 1 #2 -> #2 refused: task 1 is being removed
        5 finish rm 1 ->
        is 1 -> free
    ",
    );
}

#[test]
fn a_removal_that_was_cut_off_and_cannot_be_finished_lets_nothing_begin() {
    check(
        "
        1 begin finish-removal 1 -> begun
        2 seen 1=stopped ->
        3 unsettled 1 ->
        4 start 1 #1 -> #1 refused: the removal of task 1 was interrupted
        4 rm 1 #2 -> #2 refused: the removal of task 1 was interrupted
        4 begin sync 1 -> refused: the removal of task 1 was interrupted
        5 begin finish-removal 1 -> begun
        6 finish finish-removal 1 ->
        7 seen 1=stopped ->
        8 start 1 #3 -> keeper 1 e1 asked
    ",
    );
}
