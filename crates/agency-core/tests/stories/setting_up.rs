//! Setups: between the workspace and the agent, and what follows when they fail or are cancelled.

use crate::script::check;

#[test]
fn a_raw_workspace_is_set_up_before_the_agent_starts() {
    check(
        "
        given 1=draft
        1 start 1 #1 new -> make 1 e1
        2 made 1 e1 raw -> setup 1 e2
        2 start 1 #2 ->
        2 complete 1 #3 -> #3 refused: task 1 cannot go from draft to completed
        3 setup-done 1 e2 -> keeper 1 e3 asked
        4 ready 1 e3 a -> write 1 running; #1 started a; #2 started a
    ",
    );
}

#[test]
fn a_setup_that_fails_keeps_the_workspace_and_the_task() {
    check(
        "
        1 start 1 #1 new -> make 1 e1
        2 made 1 e1 raw -> setup 1 e2
        3 setup-failed 1 e2 npm ended with 1
        -> #1 refused: could not set up the workspace of task 1: npm ended with 1
        4 start 1 #2 fresh -> make 1 e3
        5 made 1 e3 raw -> setup 1 e4
        6 setup-done 1 e4 -> keeper 1 e5 asked
        7 not-ready 1 e5 no such program
        -> #2 refused: could not start the agent of task 1: no such program
    ",
    );
}

#[test]
fn a_failed_start_keeps_the_workspace_that_was_set_up() {
    check(
        "
        1 start 1 #1 new -> make 1 e1
        2 made 1 e1 raw -> setup 1 e2
        3 setup-done 1 e2 -> keeper 1 e3 asked
        4 not-ready 1 e3 no -> #1 refused: could not start the agent of task 1: no
    ",
    );
}

#[test]
fn a_stop_ends_the_setup_and_waits_for_its_end() {
    for over in ["setup-done 1 e2", "setup-failed 1 e2 killed"] {
        check(&format!(
            "
            given 1=stopped
            1 start 1 #1 fresh -> make 1 e1
            2 made 1 e1 raw -> setup 1 e2
            3 stop 1 #2 -> #1 refused: the start of task 1 was cancelled; end-setup 1 e2
            4 stop 1 #3 ->
            5 {over} -> #2 start cancelled; #3 start cancelled
            6 {over} ->
        "
        ));
    }
}

#[test]
fn a_start_after_a_stop_begins_the_setup_again() {
    check(
        "
        given 1=stopped
        1 start 1 #1 fresh -> make 1 e1
        2 made 1 e1 raw -> setup 1 e2
        3 stop 1 #2 -> #1 refused: the start of task 1 was cancelled; end-setup 1 e2
        3 start 1 #3 fresh ->
        4 setup-failed 1 e2 killed -> #2 start cancelled; setup 1 e3
        5 setup-done 1 e3 -> keeper 1 e4 asked
        6 ready 1 e4 a -> write 1 running; #3 started a
    ",
    );
}

#[test]
fn a_removal_ends_the_setup_first() {
    check(
        "
        given 1=stopped
        1 start 1 #1 fresh -> make 1 e1
        2 made 1 e1 raw -> setup 1 e2
        3 rm 1 #2 -> #1 refused: the start of task 1 was cancelled; end-setup 1 e2
        4 setup-failed 1 e2 killed -> #2 ready to remove
    ",
    );
}

#[test]
fn a_shutdown_ends_setups_too() {
    check(
        "
        given 1=stopped
        1 start 1 #1 fresh -> make 1 e1
        2 made 1 e1 raw -> setup 1 e2
        3 shutdown #2 -> #1 refused: the daemon is shutting down; end-setup 1 e2
        4 setup-failed 1 e2 killed -> #2 shut down; quit
    ",
    );
}

#[test]
fn a_setup_alone_starts_nothing_and_needs_no_slot() {
    check(
        "
        max 1
        given 1=stopped 2=running:a
        1 set-up 1 #1 fresh -> make 1 e1
        2 made 1 e1 raw -> setup 1 e2
        2 set-up 1 #2 fresh -> #2 refused: task 1 is being set up
        2 start 1 #3 fresh -> #3 refused: maximum number of agents reached (1)
        3 setup-done 1 e2 -> #1 set up
        4 set-up 2 #4 fresh -> #4 refused: task 2 already has a run, a
        5 set-up 1 #5 -> #5 set up
    ",
    );
}

#[test]
fn a_start_during_a_setup_alone_goes_on_to_the_agent() {
    check(
        "
        given 1=stopped
        1 set-up 1 #1 fresh -> make 1 e1
        2 made 1 e1 raw -> setup 1 e2
        2 start 1 #2 fresh ->
        3 setup-done 1 e2 -> keeper 1 e3 asked
        4 ready 1 e3 a -> write 1 running; #1 started a; #2 started a
    ",
    );
}
