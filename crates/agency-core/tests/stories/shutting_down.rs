//! The end of the daemon that ends the agents too.

use crate::script::check;

#[test]
fn a_daemon_without_agents_quits_at_once() {
    check(
        "
        given 1=stopped 2=running@elsewhere
        1 shutdown #1 -> #1 shut down; quit
        deadline -> none
        2 shutdown #2 -> #2 shut down
        2 start 1 #3 -> #3 refused: the daemon is shutting down
    ",
    );
}

#[test]
fn all_agents_are_asked_in_parallel_and_the_daemon_quits_after_the_last() {
    check(
        "
        given 1=running:a 2=idle:b 3=completed:c
        1 shutdown #1 -> stop 1 a 2s; stop 2 b 2s; stop 3 c 2s
        2 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; write 1 stopped
        2 exit 3 c 1 -> write 3 c exit -15 raw 1; dismiss 3 c
        2 shutdown #2 ->
        3 exit 2 b kill:-9 -> write 2 b exit -9 raw -9; dismiss 2 b; write 2 stopped
        ; #1 shut down; #2 shut down; quit
    ",
    );
}

#[test]
fn the_limit_over_all_cuts_long_graces_short() {
    check(
        "
        wait 30
        given 1=stopped 2=running:b
        0 start 1 #1 grace=600 -> keeper 1 e1 asked
        0 ready 1 e1 a -> write 1 running; #1 started a
        1 shutdown #2 -> stop 1 a 600s; stop 2 b 2s
        deadline -> 8
        8 tick -> kill 2 b
        9 exit 2 b kill:-9 -> write 2 b exit -9 raw -9; dismiss 2 b; write 2 stopped
        deadline -> 31
        31 tick -> kill 1 a
        deadline -> 41
        31 tick ->
        32 exit 1 a kill:-9 -> write 1 a exit -9 raw -9; dismiss 1 a; write 1 stopped; #2 shut down; quit
    ",
    );
}

#[test]
fn a_run_that_survives_sigkill_does_not_delay_the_shutdown_and_is_not_stopped() {
    check(
        "
        wait 30
        given 1=running:a
        0 stop 1 #1 -> stop 1 a 2s
        1 shutdown #2 ->
        7 tick -> kill 1 a
        deadline -> 31
        31 tick -> report won't die 1 a; #1 refused: run a of task 1 does not end
        ; #2 shut down, still alive: 1; quit
    ",
    );
}

#[test]
fn starts_in_progress_are_cancelled_and_their_processes_are_ended() {
    check(
        "
        given 1=draft 2=stopped 3=stopped
        0 start 1 #1 fresh -> make 1 e1
        0 start 2 #2 -> keeper 2 e2 asked
        0 start 3 #3 -> keeper 3 e3 asked
        1 shutdown #4 -> #1 refused: the daemon is shutting down; #2 refused: the daemon is shutting down
        ; #3 refused: the daemon is shutting down
        2 made 1 e1 -> undo-workspace 1 e4
        3 ready 2 e2 a -> stop 2 a 2s
        4 undone 1 e4 ->
        5 not-ready 3 e3 oops ->
        6 exit 2 a term:0 -> write 2 a exit -15 raw 0; dismiss 2 a; #4 shut down; quit
    ",
    );
}

#[test]
fn a_keeper_that_comes_in_overtime_is_killed() {
    check(
        "
        wait 30
        given 1=stopped 2=stopped
        0 start 1 #1 -> keeper 1 e1 asked
        0 start 2 #2 -> keeper 2 e2 asked
        1 shutdown #3 -> #1 refused: the daemon is shutting down; #2 refused: the daemon is shutting down
        31 tick ->
        32 ready 1 e1 a -> kill 1 a
        33 exit 1 a kill:-9 -> write 1 a exit -9 raw -9; dismiss 1 a
        41 tick -> #3 shut down; quit
        42 ready 2 e2 b -> kill 2 b
    ",
    );
}

#[test]
fn a_run_that_is_killed_at_the_last_moment_has_its_time_to_die() {
    check(
        "
        wait 30
        given 1=stopped
        0 start 1 #1 -> keeper 1 e1 asked
        1 shutdown #2 -> #1 refused: the daemon is shutting down
        31 tick ->
        deadline -> 41
        41 ready 1 e1 a -> kill 1 a
        deadline -> 51
        42 exit 1 a kill:-9 -> write 1 a exit -9 raw -9; dismiss 1 a; #2 shut down; quit
    ",
    );
}

#[test]
fn nothing_new_begins_and_nothing_crashed_comes_back() {
    check(
        "
        given 1=stopped 2=running:b 3=running:c
        0 start 1 #1 on-crash=3 -> keeper 1 e1 asked
        0 ready 1 e1 a -> write 1 running; #1 started a
        1 restart 2 #2 -> stop 2 b 2s
        1 discard 3 #3 -> stop 3 c 2s
        2 shutdown #4 -> stop 1 a 2s; #2 refused: the daemon is shutting down
        ; #3 refused: the daemon is shutting down
        3 start 9 #5 new -> undo-task 9; #5 refused: the daemon is shutting down
        3 start 1 #6 -> #6 refused: the daemon is shutting down
        3 stop 2 #7 -> #7 refused: the daemon is shutting down
        3 complete 2 #8 -> #8 refused: the daemon is shutting down
        4 exit 2 b term:0 -> write 2 b exit -15 raw 0; dismiss 2 b; write 2 stopped
        4 exit 3 c term:0 -> write 3 c exit -15 raw 0; dismiss 3 c; write 3 stopped
        4 exit 1 a 1 -> write 1 a exit -15 raw 1; dismiss 1 a; write 1 stopped; #4 shut down; quit
    ",
    );
}

#[test]
fn a_live_run_that_turns_up_meanwhile_is_ended_too() {
    check(
        "
        wait 30
        given 1=running:a
        1 shutdown #1 -> stop 1 a 2s
        2 seen 2=running:b -> stop 2 b 2s
        3 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; write 1 stopped
        4 exit 2 b 1 -> write 2 b exit -15 raw 1; dismiss 2 b; write 2 stopped; #1 shut down; quit
    ",
    );
}

#[test]
fn every_caller_gets_an_answer_even_if_the_daemon_reports_nothing() {
    check(
        "
        wait 30
        given 1=draft 2=draft
        0 start 1 #1 fresh -> make 1 e1
        0 stop 1 #2 -> #1 refused: the start of task 1 was cancelled
        0 start 2 #3 new -> make 2 e2
        0 made 2 e2 -> keeper 2 e3 asked
        0 not-ready 2 e3 oops -> undo-workspace 2 e4
        1 shutdown #4 ->
        31 tick ->
        41 tick -> #2 refused: the daemon is shutting down; #3 refused: could not start the agent of task 2: oops
        ; #4 shut down; quit
    ",
    );
}
