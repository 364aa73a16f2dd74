//! Starts: the first, the next, the second at once, and those that fail.

use crate::script::check;

#[test]
fn a_first_start_makes_the_workspace_then_the_process_and_writes_the_status_last() {
    check(
        "
        given 1=draft
        1 start 1 #1 fresh -> make 1 e1
        2 made 1 e1 -> keeper 1 e2 asked
        3 ready 1 e2 a -> write 1 running; #1 started a
        deadline -> none
    ",
    );
}

#[test]
fn every_later_start_finds_the_workspace_and_may_resume() {
    for status in ["stopped", "failed", "completed", "reviewed"] {
        check(&format!(
            "
            given 1={status}
            1 start 1 #1 -> keeper 1 e1 asked
            2 ready 1 e1 a -> write 1 running; #1 started a
        "
        ));
    }
}

#[test]
fn merged_is_final() {
    check(
        "
        given 1=merged
        1 start 1 #1 -> #1 refused: task 1 cannot go from merged to running
        1 restart 1 #2 -> #2 refused: task 1 cannot go from merged to running
    ",
    );
}

#[test]
fn a_start_on_a_running_task_changes_nothing() {
    check(
        "
        given 1=running:a
        1 start 1 #1 -> #1 already running a
    ",
    );
}

#[test]
fn a_start_on_a_live_task_makes_it_running_without_a_second_process() {
    for status in ["idle", "draft", "stopped", "completed", "failed", "reviewed"] {
        check(&format!(
            "
            given 1={status}:a
            1 start 1 #1 -> write 1 running; #1 resumed a
        "
        ));
    }
}

#[test]
fn a_start_while_starting_joins_and_gets_the_same_answer() {
    check(
        "
        given 1=draft 2=draft
        1 start 1 #1 fresh -> make 1 e1
        1 start 1 #2 fresh ->
        2 made 1 e1 -> keeper 1 e2 asked
        2 restart 1 #3 ->
        3 ready 1 e2 a -> write 1 running; #1 started a; #2 started a; #3 started a

        4 start 2 #4 fresh -> make 2 e3
        4 start 2 #5 fresh ->
        5 not-made 2 e3 disk full -> #4 refused: could not make the workspace of task 2: disk full
        ; #5 refused: could not make the workspace of task 2: disk full
    ",
    );
}

#[test]
fn a_workspace_that_cannot_be_made_spawns_nothing() {
    check(
        "
        given 1=draft
        1 start 1 #1 fresh -> make 1 e1
        2 not-made 1 e1 disk full -> #1 refused: could not make the workspace of task 1: disk full
        3 start 1 #2 fresh -> make 1 e2
    ",
    );
}

#[test]
fn a_spawn_that_fails_removes_the_workspace_it_made_before_it_answers() {
    check(
        "
        given 1=draft
        1 start 1 #1 fresh -> make 1 e1
        2 made 1 e1 -> keeper 1 e2 asked
        3 not-ready 1 e2 no such program -> undo-workspace 1 e3
        4 undone 1 e3 -> #1 refused: could not start the agent of task 1: no such program
        5 start 1 #2 fresh -> make 1 e4
    ",
    );
}

#[test]
fn a_spawn_that_fails_keeps_a_workspace_that_existed() {
    check(
        "
        given 1=stopped
        1 start 1 #1 -> keeper 1 e1 asked
        2 not-ready 1 e1 no such program -> #1 refused: could not start the agent of task 1: no such program
    ",
    );
}

#[test]
fn a_workspace_that_was_found_stays_when_its_start_fails_or_is_cancelled() {
    check(
        "
        given 1=draft
        1 start 1 #1 fresh -> make 1 e1
        2 found 1 e1 -> keeper 1 e2 asked
        3 not-ready 1 e2 no such program -> #1 refused: could not start the agent of task 1: no such program
        4 start 1 #2 fresh -> make 1 e3
        5 stop 1 #3 -> #2 refused: the start of task 1 was cancelled
        6 found 1 e3 -> #3 start cancelled
        7 start 1 #4 fresh -> make 1 e4
        8 found 1 e4 -> keeper 1 e5 asked
        9 stop 1 #5 -> #4 refused: the start of task 1 was cancelled
        10 not-ready 1 e5 too slow -> #5 start cancelled
    ",
    );
}

#[test]
fn a_new_task_whose_start_fails_is_removed() {
    check(
        "
        0 start 1 #1 new -> make 1 e1
        1 made 1 e1 -> keeper 1 e2 asked
        2 not-ready 1 e2 no such program -> undo-workspace 1 e3
        2 start 1 #2 fresh -> #2 refused: task 1 is being removed
        2 stop 1 #3 -> #3 refused: task 1 is not running: it is draft
        2 rm 1 #4 -> #4 refused: task 1 is being removed
        3 undone 1 e3 -> undo-task 1; #1 refused: could not start the agent of task 1: no such program
        4 start 1 #5 -> #5 refused: there is no task 1

        5 start 2 #6 new -> make 2 e4
        6 not-made 2 e4 disk full -> undo-task 2; #6 refused: could not make the workspace of task 2: disk full
        7 start 3 #7 new-here -> keeper 3 e5 asked
        8 not-ready 3 e5 gone -> undo-task 3; #7 refused: could not start the agent of task 3: gone
    ",
    );
}

#[test]
fn a_start_during_the_cleaning_up_waits_for_it_and_makes_the_workspace_again() {
    check(
        "
        given 1=draft
        1 start 1 #1 fresh -> make 1 e1
        2 made 1 e1 -> keeper 1 e2 asked
        3 not-ready 1 e2 out of memory -> undo-workspace 1 e3
        3 start 1 #2 fresh ->
        4 undone 1 e3 -> #1 refused: could not start the agent of task 1: out of memory; make 1 e4
        5 made 1 e4 -> keeper 1 e5 asked
        6 ready 1 e5 a -> write 1 running; #2 started a
    ",
    );
}

#[test]
fn an_agent_that_dies_before_its_keeper_is_announced_is_not_taken_for_alive() {
    check(
        "
        given 1=stopped
        1 start 1 #1 -> keeper 1 e1 asked
        2 exit 1 a 1 ->
        3 ready 1 e1 a -> write 1 running; #1 started a; write 1 a exit 1 raw 1; dismiss 1 a
        ; report crashed 1 a 1; write 1 stopped
        4 start 1 #2 -> keeper 1 e2 asked
    ",
    );
}

#[test]
fn answers_to_old_orders_are_ignored() {
    check(
        "
        given 1=draft
        1 start 1 #1 fresh -> make 1 e1
        2 made 1 e1 -> keeper 1 e2 asked
        2 made 1 e1 ->
        2 not-made 1 e1 too late ->
        3 ready 1 e2 a -> write 1 running; #1 started a
        3 ready 1 e2 a ->
        3 not-ready 1 e2 too late ->
        3 undone 1 e1 ->
        4 exit 1 z 0 -> dismiss 1 z
        5 made 9 e1 ->
        5 exit 9 z 0 -> dismiss 9 z
    ",
    );
}

#[test]
fn an_answer_from_an_earlier_attempt_does_not_pass_for_one_from_this() {
    check(
        "
        given 1=draft 2=running:a
        1 start 1 #1 fresh -> make 1 e1
        2 not-made 1 e1 oops -> #1 refused: could not make the workspace of task 1: oops
        3 start 1 #2 fresh -> make 1 e2
        3 made 1 e1 ->
        3 not-made 1 e1 oops ->
        4 made 1 e2 -> keeper 1 e3 asked
        5 not-ready 1 e3 oops -> undo-workspace 1 e4
        6 undone 1 e4 -> #2 refused: could not start the agent of task 1: oops
        7 start 1 #3 fresh -> make 1 e5
        8 made 1 e5 -> keeper 1 e6 asked
        8 not-ready 1 e3 oops ->
        9 stop 1 #4 -> #3 refused: the start of task 1 was cancelled
        9 not-ready 1 e3 oops ->
        10 not-ready 1 e6 oops -> undo-workspace 1 e7
        10 undone 1 e4 ->
        11 undone 1 e7 -> #4 start cancelled

        20 restart 2 #5 -> stop 2 a 2s
        20 exit 2 z 0 -> dismiss 2 z
        21 exit 2 a term:0 -> write 2 a exit -15 raw 0; dismiss 2 a; keeper 2 e8 restarted
        21 ready 2 e2 y -> stop 2 y 2s
        21 exit 2 a term:0 ->
        22 ready 2 e8 b -> #5 started b; dismiss 2 a
    ",
    );
}

#[test]
fn a_keeper_that_no_start_expects_is_stopped() {
    check(
        "
        given 1=stopped 2=running:b
        1 ready 1 e7 z -> stop 1 z 2s
        2 exit 1 z term:0 -> dismiss 1 z
        3 ready 2 e7 y -> stop 2 y 2s
        4 ready 9 e7 x -> stop 9 x 2s
    ",
    );
}

#[test]
fn requests_for_an_unknown_task_are_refused() {
    check(
        "
        0 start 7 #1 -> #1 refused: there is no task 7
        0 restart 7 #2 -> #2 refused: there is no task 7
        0 stop 7 #3 -> #3 refused: there is no task 7
        0 idle 7 #4 -> #4 refused: there is no task 7
        0 complete 7 #5 -> #5 refused: there is no task 7
        0 rm 7 #6 -> #6 refused: there is no task 7
        0 adopt 7 a #7 -> #7 refused: there is no task 7
    ",
    );
}

#[test]
fn a_file_edited_to_merged_during_its_start_keeps_its_status() {
    check(
        "
        given 1=stopped
        1 start 1 #1 -> keeper 1 e1 asked
        2 seen 1=merged ->
        3 ready 1 e1 a -> #1 started a
        4 exit 1 a 0 -> write 1 a exit 0 raw 0; dismiss 1 a
    ",
    );
}
