//! Tasks that are found at boot, edited by the user, or adopted.

use crate::script::check;

#[test]
fn boot_spawns_nothing_adopts_live_runs_and_marks_the_other_tasks_stopped() {
    check(
        "
        0 boot 1=draft 2=running 3=idle 4=running:a 5=idle:b 6=completed:c 7=running@elsewhere 8=stopped
        -> write 2 stopped; write 3 stopped; report marked stopped 2, adopted 3, elsewhere 1
        1 start 4 #1 -> #1 already running a
        1 start 5 #2 -> write 5 running; #2 resumed b
        1 exit 6 c 0 -> write 6 c exit 0 raw 0; dismiss 6 c
        1 start 2 #3 -> keeper 2 e1 asked
        deadline -> none
    ",
    );
}

#[test]
fn a_run_that_ended_without_a_daemon_is_recorded_and_not_restarted() {
    check(
        "
        0 boot 1=running!a/1 2=completed!b/0 3=idle!c/term:0
        -> write 1 a exit 1 raw 1; dismiss 1 a; report crashed 1 a 1; write 1 stopped
        ; write 2 b exit 0 raw 0; dismiss 2 b
        ; write 3 c exit -15 raw 0; dismiss 3 c; write 3 stopped
        ; report marked stopped 2, adopted 0, elsewhere 0
    ",
    );
}

#[test]
fn a_live_run_is_adopted_with_the_status_its_task_had() {
    for status in ["draft", "stopped", "failed", "reviewed", "merged"] {
        check(&format!(
            "
            given 1={status}:a
            1 stop 1 #1 -> stop 1 a 2s
            2 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; #1 stopped -15
        "
        ));
    }
}

#[test]
fn a_task_of_another_host_is_shown_and_never_changed() {
    check(
        "
        given 1=running@elsewhere
        1 start 1 #1 -> #1 refused: task 1 runs on another host
        1 stop 1 #2 -> #2 refused: task 1 runs on another host
        1 restart 1 #3 -> #3 refused: task 1 runs on another host
        1 idle 1 #4 -> #4 refused: task 1 runs on another host
        1 complete 1 #5 -> #5 refused: task 1 runs on another host
        1 rm 1 #6 -> #6 refused: task 1 runs on another host
        1 adopt 1 a #7 -> #7 refused: task 1 runs on another host
        2 seen 1=idle@elsewhere ->
        3 seen 1=idle -> write 1 stopped
        4 start 1 #8 -> keeper 1 e1 asked
        5 seen 1=running@elsewhere ->
        6 ready 1 e1 a -> #8 started a
    ",
    );
}

#[test]
fn a_file_edited_by_hand_is_picked_up() {
    check(
        "
        given 1=stopped 2=running:b
        1 seen 1=merged ->
        2 start 1 #1 -> #1 refused: task 1 cannot go from merged to running
        3 seen 1=running -> write 1 stopped
        4 seen 2=completed ->
        5 exit 2 b 0 -> write 2 b exit 0 raw 0; dismiss 2 b
        6 seen 3=draft ->
        7 start 3 #2 fresh -> make 3 e1
        8 seen 4=idle:d ->
        9 start 4 #3 -> write 4 running; #3 resumed d
    ",
    );
}

#[test]
fn an_orphan_is_adopted_by_its_task() {
    check(
        "
        given 1=stopped 2=completed 3=running:c
        1 adopt 1 a #1 -> write 1 running; #1 adopted a
        1 adopt 1 a #2 -> #2 adopted a
        2 adopt 2 b #3 -> #3 adopted b
        3 adopt 3 z #4 -> #4 refused: task 3 already has a run, c
        4 stop 1 #5 -> stop 1 a 2s
        4 adopt 1 z #6 -> #6 refused: task 1 is stopping
        5 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; write 1 stopped; #5 stopped -15
    ",
    );
}
