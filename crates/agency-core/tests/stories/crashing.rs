//! Runs that end by themselves, and what follows.

use std::time::Duration;

use agency_core::exit::{ExitCode, RunExit};
use agency_core::ids::{Epoch, ProjectId, RunId, TaskId, TaskKey};
use agency_core::restart::RestartPolicy;
use agency_core::supervisor::{Event, FoundRun, FoundTask, Limits, RunTerms, StreamState, Supervisor};
use agency_core::task_status::TaskStatus;

use crate::script::check;

#[test]
fn a_crash_that_waits_for_its_restart_is_an_error_of_the_stream() {
    let key = TaskKey { project: ProjectId("p".into()), task: TaskId(1) };
    let mut supervisor = Supervisor::new(Limits::default());
    let mut state = |event: Option<Event>| {
        event.into_iter().for_each(|event| drop(supervisor.handle(Duration::from_secs(1), event)));
        supervisor.stream_state(&key, true)
    };
    assert_eq!(state(None), StreamState::Stopped);
    let (stop_grace, restart) = (Duration::from_secs(30), RestartPolicy::OnCrash { max_restarts: 3 });
    let terms = RunTerms { stop_grace, restart, takes_slot: true };
    let live = |run: &str| FoundRun::Live { run: RunId(run.into()), terms };
    let found = FoundTask { key: key.clone(), status: TaskStatus::Running, run: live("a") };
    assert_eq!(state(Some(Event::Booted { tasks: vec![found] })), StreamState::Running);
    let exit = RunExit::by_itself(ExitCode::Signal(9));
    let crash = Event::RunExited { key: key.clone(), run: RunId("a".into()), exit };
    assert_eq!(state(Some(crash)), StreamState::Error);
    let ready = Event::KeeperReady { key: key.clone(), epoch: Epoch(1), run: RunId("b".into()) };
    assert_eq!(state(Some(ready)), StreamState::Running);
    assert_eq!(Supervisor::new(Limits::default()).stream_state(&key, false), StreamState::Idle);
}

#[test]
fn a_run_that_ends_leaves_a_running_or_idle_task_stopped() {
    for status in ["running", "idle"] {
        check(&format!(
            "
            given 1={status}:a
            1 exit 1 a 0 -> write 1 a exit 0 raw 0; dismiss 1 a; write 1 stopped
        "
        ));
    }
}

#[test]
fn a_crash_is_reported_and_stays_down_if_the_policy_is_never() {
    check(
        "
        given 1=running:a
        1 exit 1 a -11 -> write 1 a exit -11 raw -11; dismiss 1 a; report crashed 1 a -11; write 1 stopped
    ",
    );
}

#[test]
fn an_unknown_end_is_not_a_crash() {
    check(
        "
        given 1=started:a on-crash=3
        1 exit 1 a unknown -> write 1 a exit unknown raw unknown; dismiss 1 a; write 1 stopped
    ",
    );
}

#[test]
fn a_crash_is_restarted_until_the_attempts_are_used_up() {
    check(
        "
        given 1=started:a on-crash=2
        1 exit 1 a 1 -> write 1 a exit 1 raw 1; dismiss 1 a; report crashed 1 a 1
        ; report restarting 1 attempt 1; keeper 1 e1 crash
        2 ready 1 e1 b ->
        3 exit 1 b 1 -> write 1 b exit 1 raw 1; dismiss 1 b; report crashed 1 b 1
        ; report restarting 1 attempt 2; keeper 1 e2 crash
        4 ready 1 e2 c ->
        5 exit 1 c 1 -> write 1 c exit 1 raw 1; dismiss 1 c; report crashed 1 c 1
        ; report given up 1: crashed again after 2 restarts; write 1 stopped
    ",
    );
}

#[test]
fn ten_seconds_of_life_give_all_attempts_back() {
    check(
        "
        given 1=started:a on-crash=1
        1 exit 1 a 1 -> write 1 a exit 1 raw 1; dismiss 1 a; report crashed 1 a 1
        ; report restarting 1 attempt 1; keeper 1 e1 crash
        2 ready 1 e1 b ->
        12 exit 1 b 1 -> write 1 b exit 1 raw 1; dismiss 1 b; report crashed 1 b 1
        ; report restarting 1 attempt 1; keeper 1 e2 crash
    ",
    );
}

#[test]
fn an_idle_task_that_is_restarted_stays_idle() {
    check(
        "
        given 1=started:a on-crash=3
        1 idle 1 #2 -> write 1 idle; #2 idle
        2 exit 1 a 1 -> write 1 a exit 1 raw 1; dismiss 1 a; report crashed 1 a 1
        ; report restarting 1 attempt 1; keeper 1 e1 crash
        3 ready 1 e1 b ->
        4 start 1 #3 -> write 1 running; #3 resumed b
    ",
    );
}

#[test]
fn a_start_that_meets_a_restart_after_a_crash_joins_it_and_makes_the_task_running() {
    check(
        "
        given 1=started:a on-crash=1
        1 idle 1 #2 -> write 1 idle; #2 idle
        2 exit 1 a 1 -> write 1 a exit 1 raw 1; dismiss 1 a; report crashed 1 a 1
        ; report restarting 1 attempt 1; keeper 1 e1 crash
        3 start 1 #3 ->
        4 ready 1 e1 b -> write 1 running; #3 started b
        5 exit 1 b 1 -> write 1 b exit 1 raw 1; dismiss 1 b; report crashed 1 b 1
        ; report restarting 1 attempt 1; keeper 1 e2 crash
    ",
    );
}

#[test]
fn a_restart_after_a_crash_that_cannot_be_made_is_given_up() {
    check(
        "
        given 1=started:a on-crash=3
        1 exit 1 a 1 -> write 1 a exit 1 raw 1; dismiss 1 a; report crashed 1 a 1
        ; report restarting 1 attempt 1; keeper 1 e1 crash
        2 not-ready 1 e1 the workspace is gone
        -> report restart failed 1: could not start the agent of task 1: the workspace is gone; write 1 stopped
    ",
    );
}

#[test]
fn a_stop_ends_the_restarting_too() {
    check(
        "
        given 1=started:a on-crash=3
        1 exit 1 a 1 -> write 1 a exit 1 raw 1; dismiss 1 a; report crashed 1 a 1
        ; report restarting 1 attempt 1; keeper 1 e1 crash
        2 stop 1 #2 ->
        3 ready 1 e1 b -> stop 1 b 2s
        4 exit 1 b term:0 -> write 1 b exit -15 raw 0; dismiss 1 b; write 1 stopped; #2 stopped -15
    ",
    );
}

#[test]
fn an_agent_whose_work_is_marked_done_is_not_restarted() {
    for (said, status) in [("complete", "completed"), ("fail", "failed"), ("review", "reviewed")] {
        check(&format!(
            "
            given 1=started:a on-crash=3
            1 {said} 1 #2 -> write 1 {status}; #2 marked {status}
            2 exit 1 a 1 -> write 1 a exit 1 raw 1; dismiss 1 a; report crashed 1 a 1
        "
        ));
    }
}

#[test]
fn an_agent_that_lives_just_long_enough_does_not_loop_for_ever() {
    let mut story = String::from(
        "
        given 1=started:run0 on-crash=3
    ",
    );
    for crash in 1..=10 {
        let (now, before, epoch) = (crash * 11, crash - 1, crash);
        story += &format!(
            "
        {now} exit 1 run{before} 1 -> write 1 run{before} exit 1 raw 1; dismiss 1 run{before}
        ; report crashed 1 run{before} 1; report restarting 1 attempt 1; keeper 1 e{epoch} crash
        {now} ready 1 e{epoch} run{crash} ->
        "
        );
    }
    story += "
        121 exit 1 run10 1 -> write 1 run10 exit 1 raw 1; dismiss 1 run10; report crashed 1 run10 1
        ; report given up 1: more than 10 restarts in 5 minutes; write 1 stopped
        122 start 1 #2 on-crash=3 -> keeper 1 e11 asked
    ";
    check(&story);
}
