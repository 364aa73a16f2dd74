//! Stops and restarts of live runs, of runs that are starting, and of runs that do not end.

use crate::script::check;

#[test]
fn a_stop_is_answered_when_the_process_is_gone_and_the_status_written() {
    check(
        "
        given 1=running:a
        1 stop 1 #1 -> stop 1 a 2s
        2 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; write 1 stopped; #1 stopped -15
        deadline -> none
        3 stop 1 #2 -> #2 refused: task 1 is not running: it is stopped
    ",
    );
}

#[test]
fn a_run_that_needed_sigkill_reports_it() {
    check(
        "
        given 1=idle:a
        1 stop 1 #1 -> stop 1 a 2s
        3 exit 1 a kill:-9 -> write 1 a exit -9 raw -9; dismiss 1 a; write 1 stopped; #1 stopped -9
    ",
    );
}

#[test]
fn a_stop_that_crosses_a_crash_is_still_a_stop() {
    check(
        "
        given 1=started:a on-crash=3
        1 stop 1 #2 -> stop 1 a 2s
        1 exit 1 a 1 -> write 1 a exit -15 raw 1; dismiss 1 a; write 1 stopped; #2 stopped -15
    ",
    );
}

#[test]
fn stops_join() {
    check(
        "
        given 1=running:a
        1 stop 1 #1 -> stop 1 a 2s
        1 stop 1 #2 ->
        2 exit 1 a term:-15 -> write 1 a exit -15 raw -15; dismiss 1 a; write 1 stopped
        ; #1 stopped -15; #2 stopped -15
        3 exit 1 a term:-15 -> dismiss 1 a
    ",
    );
}

#[test]
fn only_a_live_agent_can_be_stopped() {
    for status in ["draft", "stopped", "completed", "failed", "reviewed", "merged"] {
        check(&format!(
            "
            given 1={status}
            1 stop 1 #1 -> #1 refused: task 1 is not running: it is {status}
        "
        ));
    }
}

#[test]
fn a_stop_cancels_a_workspace_in_the_making_and_keeps_the_draft() {
    check(
        "
        0 start 1 #1 new -> make 1 e1
        1 stop 1 #2 -> #1 refused: the start of task 1 was cancelled
        2 made 1 e1 -> undo-workspace 1 e2
        3 undone 1 e2 -> #2 start cancelled
        4 start 1 #3 fresh -> make 1 e3
        5 stop 1 #4 -> #3 refused: the start of task 1 was cancelled
        6 not-made 1 e3 disk full -> #4 start cancelled
    ",
    );
}

#[test]
fn a_stop_cancels_a_keeper_on_its_way_and_ends_it_when_it_comes() {
    check(
        "
        given 1=draft
        0 start 1 #1 fresh -> make 1 e1
        1 made 1 e1 -> keeper 1 e2 asked
        2 stop 1 #2 -> #1 refused: the start of task 1 was cancelled
        2 stop 1 #3 ->
        3 ready 1 e2 a -> stop 1 a 2s
        4 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; #2 stopped -15; #3 stopped -15
        5 start 1 #4 -> keeper 1 e3 asked
    ",
    );
}

#[test]
fn a_cancelled_keeper_that_never_comes_leaves_nothing() {
    check(
        "
        given 1=draft 2=stopped
        0 start 1 #1 fresh -> make 1 e1
        1 made 1 e1 -> keeper 1 e2 asked
        2 stop 1 #2 -> #1 refused: the start of task 1 was cancelled
        3 not-ready 1 e2 too slow -> undo-workspace 1 e3
        3 stop 1 #3 -> #3 refused: task 1 is not running: it is draft
        4 undone 1 e3 -> #2 start cancelled

        5 start 2 #4 -> keeper 2 e4 asked
        5 stop 2 #5 -> #4 refused: the start of task 2 was cancelled
        6 not-ready 2 e4 too slow -> #5 start cancelled
    ",
    );
}

#[test]
fn a_cancelled_keeper_that_came_and_went_at_once_is_written_down() {
    check(
        "
        given 1=stopped
        0 start 1 #1 -> keeper 1 e1 asked
        1 stop 1 #2 -> #1 refused: the start of task 1 was cancelled
        1 exit 1 a 0 ->
        2 ready 1 e1 a -> stop 1 a 2s; write 1 a exit -15 raw 0; dismiss 1 a; #2 stopped -15
    ",
    );
}

#[test]
fn a_start_after_a_cancelled_one_waits_so_that_there_are_never_two() {
    check(
        "
        given 1=draft
        0 start 1 #1 fresh -> make 1 e1
        1 made 1 e1 -> keeper 1 e2 asked
        2 stop 1 #2 -> #1 refused: the start of task 1 was cancelled
        2 start 1 #3 ->
        3 ready 1 e2 a -> stop 1 a 2s
        4 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; #2 stopped -15; keeper 1 e3 asked
        5 ready 1 e3 b -> write 1 running; #3 started b
    ",
    );
}

#[test]
fn a_start_after_a_cancelled_one_takes_over_its_workspace_and_its_duties() {
    check(
        "
        given 1=draft
        0 start 1 #1 fresh -> make 1 e1
        1 stop 1 #2 -> #1 refused: the start of task 1 was cancelled
        1 start 1 #3 fresh ->
        2 made 1 e1 -> #2 start cancelled; keeper 1 e2 asked
        3 stop 1 #4 -> #3 refused: the start of task 1 was cancelled
        3 start 1 #5 fresh ->
        4 not-ready 1 e2 no such program -> #4 start cancelled; keeper 1 e3 asked
        5 not-ready 1 e3 no such program -> undo-workspace 1 e4
        6 undone 1 e4 -> #5 refused: could not start the agent of task 1: no such program
    ",
    );
}

#[test]
fn a_start_after_a_cancelled_one_retries_the_failed_step() {
    check(
        "
        given 1=draft
        0 start 1 #1 fresh -> make 1 e1
        1 stop 1 #2 -> #1 refused: the start of task 1 was cancelled
        1 start 1 #3 fresh ->
        2 not-made 1 e1 disk full -> #2 start cancelled; make 1 e2
    ",
    );
}

#[test]
fn a_stop_during_the_cleaning_up_cancels_the_start_that_waits_for_it() {
    check(
        "
        given 1=draft
        0 start 1 #1 fresh -> make 1 e1
        1 made 1 e1 -> keeper 1 e2 asked
        2 not-ready 1 e2 oops -> undo-workspace 1 e3
        2 start 1 #2 fresh ->
        2 stop 1 #3 -> #2 refused: the start of task 1 was cancelled
        3 undone 1 e3 -> #1 refused: could not start the agent of task 1: oops; #3 start cancelled
    ",
    );
}

#[test]
fn a_restart_waits_until_the_old_process_is_gone() {
    check(
        "
        given 1=running:a
        1 restart 1 #1 -> stop 1 a 2s
        3 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; keeper 1 e1 restarted
        4 ready 1 e1 b -> #1 started b
    ",
    );
}

#[test]
fn a_restart_without_a_live_agent_is_a_start() {
    check(
        "
        given 1=stopped
        1 restart 1 #1 -> keeper 1 e1 restarted
        2 ready 1 e1 a -> write 1 running; #1 started a
    ",
    );
}

#[test]
fn a_restart_that_fails_half_way_leaves_the_task_stopped() {
    check(
        "
        given 1=idle:a
        1 restart 1 #1 fresh -> stop 1 a 2s
        3 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; make 1 e1
        4 not-made 1 e1 disk full -> write 1 stopped; #1 refused: could not make the workspace of task 1: disk full
    ",
    );
}

#[test]
fn a_task_is_called_stopped_as_soon_as_its_restart_has_failed() {
    check(
        "
        given 1=running:a
        1 restart 1 #1 fresh -> stop 1 a 2s
        3 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; make 1 e1
        4 made 1 e1 -> keeper 1 e2 restarted
        5 not-ready 1 e2 oops -> write 1 stopped; undo-workspace 1 e3
        6 stop 1 #2 -> #2 refused: task 1 is not running: it is stopped
        7 undone 1 e3 -> #1 refused: could not start the agent of task 1: oops
    ",
    );
}

#[test]
fn a_restart_makes_a_task_running_that_a_user_had_marked_done() {
    check(
        "
        given 1=completed:a
        1 restart 1 #1 -> stop 1 a 2s
        3 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; keeper 1 e1 restarted
        4 ready 1 e1 b -> write 1 running; #1 started b
    ",
    );
}

#[test]
fn a_start_while_stopping_follows_the_stop() {
    check(
        "
        given 1=running:a
        1 stop 1 #1 -> stop 1 a 2s
        1 start 1 #2 ->
        1 restart 1 #3 ->
        2 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; #1 stopped -15; keeper 1 e1 asked
        3 ready 1 e1 b -> #2 started b; #3 started b
    ",
    );
}

#[test]
fn a_stop_during_a_restart_leaves_it_stopped() {
    check(
        "
        given 1=running:a 2=running:x
        1 restart 1 #1 -> stop 1 a 2s
        1 stop 1 #2 -> #1 refused: the start of task 1 was cancelled
        2 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; write 1 stopped; #2 stopped -15

        3 restart 2 #3 -> stop 2 x 2s
        4 exit 2 x term:0 -> write 2 x exit -15 raw 0; dismiss 2 x; keeper 2 e1 restarted
        5 stop 2 #4 -> #3 refused: the start of task 2 was cancelled
        6 not-ready 2 e1 oops -> write 2 stopped; #4 start cancelled
    ",
    );
}

#[test]
fn a_keeper_that_missed_the_stop_gets_one_kill() {
    check(
        "
        given 1=running:a
        1 stop 1 #1 -> stop 1 a 2s
        deadline -> 8
        7 tick ->
        8 tick -> kill 1 a
        deadline -> 18
        9 tick ->
        9 exit 1 a kill:-9 -> write 1 a exit -9 raw -9; dismiss 1 a; write 1 stopped; #1 stopped -9
        deadline -> none
    ",
    );
}

#[test]
fn a_run_that_survives_sigkill_counts_as_live_and_may_be_stopped_again() {
    check(
        "
        given 1=running:a
        1 restart 1 #1 -> stop 1 a 2s
        8 tick -> kill 1 a
        9 stop 1 #2 -> #1 refused: the start of task 1 was cancelled
        9 start 1 #3 ->
        18 tick -> report won't die 1 a; #3 refused: run a of task 1 does not end
        ; #2 refused: run a of task 1 does not end
        deadline -> none
        19 start 1 #4 -> #4 already running a
        20 stop 1 #5 -> stop 1 a 2s
        21 exit 1 a kill:-9 -> write 1 a exit -9 raw -9; dismiss 1 a; write 1 stopped; #5 stopped -9
    ",
    );
}
