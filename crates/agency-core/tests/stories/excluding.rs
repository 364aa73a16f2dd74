//! Operations on a task's files: which may run beside an agent, and what waits for them.
//!
//! The full table of what excludes what is in `matrix`.

use crate::script::check;

#[test]
fn nothing_begins_in_a_workspace_whose_work_is_being_merged() {
    check(
        "
        given 1=completed
        1 begin merge 1 -> begun
        is 1 -> being merged
        2 begin merge 1 -> refused: task 1 is being merged
        2 begin sync 1 -> refused: task 1 is being merged
        2 start 1 #1 -> #1 refused: task 1 is being merged
        2 set-up 1 #2 -> #2 refused: task 1 is being merged
        2 rm 1 #3 -> #3 refused: task 1 is being merged
        2 review 1 #4 -> write 1 reviewed; #4 marked reviewed
        3 finish merge 1 ->
        4 merged 1 #5 -> write 1 merged; #5 marked merged
        5 rm 1 #6 -> #6 ready to remove
    ",
    );
}

#[test]
fn a_merge_is_refused_while_the_agent_lives() {
    check(
        "
        given 1=completed:a
        1 begin merge 1 at-rest -> refused: the agent of task 1 is still running
        2 stop 1 #1 -> stop 1 a 2s
        2 begin merge 1 -> refused: the agent of task 1 is still running
        3 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; #1 stopped -15
        4 begin merge 1 -> begun
    ",
    );
}

#[test]
fn files_change_under_a_live_agent_only_while_it_waits_for_input() {
    for operation in ["sync", "restore-turn", "restore-files"] {
        check(&format!(
            "
            given 1=running:a
            1 begin {operation} 1 -> refused: the agent of task 1 is at work
            2 begin {operation} 1 at-rest -> begun
            3 stop 1 #1 -> stop 1 a 2s
            4 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; write 1 stopped; #1 stopped -15
            5 start 1 #2 -> #2 refused: {}
            6 finish {operation} 1 ->
            7 start 1 #3 -> keeper 1 e1 asked
        ",
            match operation {
                "sync" => "task 1 is being synced",
                "restore-turn" => "task 1 is being restored to an earlier turn",
                _ => "task 1 is being restored from the trash",
            }
        ));
    }
}

#[test]
fn an_agent_that_crashes_during_a_sync_starts_again_after_it() {
    check(
        "
        given 1=started:a on-crash=3
        1 begin sync 1 at-rest -> begun
        2 exit 1 a 1 -> write 1 a exit 1 raw 1; dismiss 1 a; report crashed 1 a 1
        ; report restarting 1 attempt 1
        3 idle 1 #2 -> #2 refused: task 1 is restarting
        4 finish sync 1 -> keeper 1 e1 crash
        5 ready 1 e1 b ->
        is 1 -> running
    ",
    );
}

#[test]
fn a_restart_that_waits_for_a_sync_can_be_stopped_and_ends_with_the_daemon() {
    check(
        "
        given 1=started:a on-crash=3
        1 begin sync 1 at-rest -> begun
        2 exit 1 a 1 -> write 1 a exit 1 raw 1; dismiss 1 a; report crashed 1 a 1
        ; report restarting 1 attempt 1
        3 stop 1 #2 -> write 1 stopped; #2 start cancelled
        4 finish sync 1 ->
        is 1 -> free
    ",
    );
    check(
        "
        given 1=started:a on-crash=3
        1 begin sync 1 at-rest -> begun
        2 exit 1 a 1 -> write 1 a exit 1 raw 1; dismiss 1 a; report crashed 1 a 1
        ; report restarting 1 attempt 1
        3 shutdown #2 -> write 1 stopped; #2 shut down; quit
    ",
    );
}

#[test]
fn nothing_begins_while_the_daemon_shuts_down() {
    check(
        "
        given 1=stopped 2=running:a
        1 shutdown #1 -> stop 2 a 2s
        2 begin sync 1 -> refused: the daemon is shutting down
    ",
    );
}

#[test]
fn an_operation_that_is_not_under_way_cannot_end_another() {
    check(
        "
        given 1=completed
        1 begin merge 1 -> begun
        2 finish sync 1 ->
        is 1 -> being merged
        3 finish merge 1 ->
        is 1 -> free
    ",
    );
}

#[test]
fn a_process_of_an_earlier_run_keeps_agents_and_merges_away() {
    check(
        "
        given 1=completed
        1 orphan 1 z ->
        2 start 1 #1 -> #1 refused: task 1 still has a process of an earlier run, z
        2 begin merge 1 -> refused: task 1 still has a process of an earlier run, z
        3 no-orphan z ->
        4 begin merge 1 -> begun
    ",
    );
}

#[test]
fn a_task_with_a_process_of_an_earlier_run_is_neither_removed_nor_set_up() {
    check(
        "
        given 1=stopped
        1 orphan 1 z ->
        2 rm 1 #1 -> #1 refused: task 1 still has a process of an earlier run, z
        2 discard 1 #2 -> #2 refused: task 1 still has a process of an earlier run, z
        2 set-up 1 #3 fresh -> #3 refused: task 1 still has a process of an earlier run, z
        3 no-orphan z ->
        4 rm 1 #4 -> #4 ready to remove
    ",
    );
}

/// The process may be writing the same files. A task that comes out of the trash gets a new workspace, in which no
/// process can be yet.
#[test]
fn files_do_not_change_under_a_process_of_an_earlier_run() {
    check(
        "
        given 1=completed
        1 orphan 1 z ->
        2 begin sync 1 -> refused: task 1 still has a process of an earlier run, z
        2 begin restore-turn 1 -> refused: task 1 still has a process of an earlier run, z
        2 begin restore-files 1 -> refused: task 1 still has a process of an earlier run, z
        is 1 -> held by a process of an earlier run
        3 no-orphan z ->
        4 begin sync 1 -> begun
        5 orphan 7 y ->
        6 begin restore-task 7 -> begun
    ",
    );
}

#[test]
fn nothing_comes_out_of_a_trash_that_is_being_emptied() {
    check(
        "
        given 1=stopped
        1 empty-trash -> begun
        1 empty-trash -> refused: the trash of this project is being emptied
        2 begin restore-task 7 -> refused: the trash of this project is being emptied
        2 begin restore-files 1 -> refused: the trash of this project is being emptied
        2 begin restore-turn 1 -> begun
        3 emptied ->
        3 empty-trash -> refused: a restore from the trash of this project is in progress
        4 finish restore-turn 1 ->
        5 begin restore-task 7 -> begun
        5 begin restore-task 7 -> refused: task 7 is being restored from the trash
        5 empty-trash -> refused: a restore from the trash of this project is in progress
        6 finish restore-task 7 ->
        7 empty-trash -> begun
    ",
    );
}

#[test]
fn one_snapshot_at_a_time_and_a_turn_that_ends_meanwhile_is_not_forgotten() {
    check(
        "
        given 1=running:a
        1 turn-ended 1 -> snapshot
        2 turn-ended 1 ->
        3 turn-kept 1 -> once more
        3 turn-ended 1 -> snapshot
        4 turn-kept 1 ->
        5 discard 1 #1 -> stop 1 a 2s
        6 turn-ended 1 ->
    ",
    );
}

#[test]
fn a_merge_that_finishes_the_task_stops_its_agent_and_marks_its_work_completed() {
    check(
        "
        given 1=running:a
        1 begin finish 1 -> refused: the agent of task 1 is at work
        2 begin finish 1 at-rest -> begun
        2 stop 1 #1 -> stop 1 a 2s
        3 start 1 #2 -> #2 refused: task 1 is being merged
        4 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; write 1 stopped; #1 stopped -15
        5 start 1 #3 -> #3 refused: task 1 is being merged
        6 finish finish 1 ->
        7 merged 1 #4 -> write 1 completed; write 1 merged; #4 marked merged
    ",
    );
}

#[test]
fn no_merge_marks_work_that_failed_or_never_began() {
    check(
        "
        given 1=failed
        given 2=draft
        1 merged 1 #1 -> #1 refused: task 1 cannot go from failed to merged
        1 merged 2 #2 -> #2 refused: task 2 cannot go from draft to merged
    ",
    );
}
