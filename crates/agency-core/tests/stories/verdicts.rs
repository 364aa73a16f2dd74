//! Marks that users give a task: idle, completed, failed, reviewed.

use crate::script::check;

#[test]
fn only_a_running_task_can_be_idle() {
    check(
        "
        given 1=running:a
        1 idle 1 #1 -> write 1 idle; #1 idle
        2 idle 1 #2 -> #2 refused: task 1 cannot go from idle to idle
        3 complete 1 #3 -> #3 refused: task 1 cannot go from idle to completed
        4 start 1 #4 -> write 1 running; #4 resumed a
    ",
    );
    for status in ["draft", "stopped", "completed", "failed", "reviewed", "merged"] {
        check(&format!(
            "
            given 1={status}
            1 idle 1 #1 -> #1 refused: task 1 cannot go from {status} to idle
        "
        ));
    }
}

#[test]
fn a_verdict_leaves_the_run_alone_and_the_run_leaves_the_verdict_alone() {
    for (said, status) in [("complete", "completed"), ("fail", "failed"), ("review", "reviewed")] {
        check(&format!(
            "
            given 1=running:a 2=running:b
            1 {said} 1 #1 -> write 1 {status}; #1 marked {status}
            2 exit 1 a 0 -> write 1 a exit 0 raw 0; dismiss 1 a
            3 {said} 2 #2 -> write 2 {status}; #2 marked {status}
            4 stop 2 #3 -> stop 2 b 2s
            5 exit 2 b term:0 -> write 2 b exit -15 raw 0; dismiss 2 b; #3 stopped -15
        "
        ));
    }
}

#[test]
fn verdicts_follow_the_contract() {
    check(
        "
        given 1=draft 2=stopped 3=completed 4=failed 5=reviewed 6=merged
        1 complete 1 #1 -> #1 refused: task 1 cannot go from draft to completed
        1 fail 2 #2 -> write 2 failed; #2 marked failed
        1 review 3 #3 -> write 3 reviewed; #3 marked reviewed
        1 complete 4 #4 -> #4 refused: task 4 cannot go from failed to completed
        1 fail 5 #5 -> #5 refused: task 5 cannot go from reviewed to failed
        1 review 6 #6 -> #6 refused: task 6 cannot go from merged to reviewed
    ",
    );
}

#[test]
fn a_merge_that_was_taken_back_leaves_the_work_done_and_only_the_repository_can_say_so() {
    check(
        "
        given 1=merged 2=reviewed
        1 complete 1 #1 -> #1 refused: task 1 cannot go from merged to completed
        2 taken-back 1 #2 -> write 1 completed; #2 marked completed
        3 merged 1 #3 -> write 1 merged; #3 marked merged
        4 taken-back 2 #4 -> #4 refused: task 2 cannot go from reviewed to completed
    ",
    );
}

#[test]
fn a_task_cannot_be_marked_while_its_start_would_overwrite_the_status() {
    check(
        "
        given 1=stopped 2=running:b
        1 start 1 #1 -> keeper 1 e1 asked
        1 complete 1 #2 -> #2 refused: task 1 is starting
        2 restart 2 #3 -> stop 2 b 2s
        2 complete 2 #4 -> #4 refused: task 2 is restarting
        2 idle 2 #5 -> #5 refused: task 2 is restarting
        3 discard 2 #6 -> #3 refused: the start of task 2 was cancelled
        3 complete 2 #7 -> #7 refused: task 2 is being removed
    ",
    );
}

#[test]
fn a_task_may_be_marked_done_while_it_stops() {
    check(
        "
        given 1=running:a
        1 stop 1 #1 -> stop 1 a 2s
        1 idle 1 #2 -> #2 refused: task 1 is stopping
        1 complete 1 #3 -> write 1 completed; #3 marked completed
        2 exit 1 a term:0 -> write 1 a exit -15 raw 0; dismiss 1 a; #1 stopped -15
    ",
    );
}
