//! One command for several tasks, waits for several, and everything that comes back after a reboot.

use agency_testkit::Pause;

use crate::json::Schema;
use crate::merging::completed_task;
use crate::stage::Stage;
use crate::state_log::NO_SILENCE;
use crate::work_diff::stage;

fn statuses(stage: &Stage) -> Vec<String> {
    let listing = stage.listing();
    let tasks = listing["tasks"].as_array().expect("a list");
    tasks.iter().map(|task| task["status"].as_str().expect("a status").to_owned()).collect()
}

#[test]
fn each_task_is_done_or_fails_by_itself() {
    let stage = Stage::new();
    for slug in ["one", "two", "three"] {
        stage.play(slug, "ask ready?");
    }
    let stopped = stage.run(["stop", "1", "absent", "three"]);
    assert_eq!((stopped.code, stopped.stdout.as_str()), (1, "1 one stopped\n3 three stopped\n"), "{stopped}");
    assert!(stopped.stderr.contains("no task is called `absent`"), "{stopped}");
    assert_eq!(stage.run(["complete", "1", "2"]).ok(), "1 one completed\n2 two completed\n");
    assert_eq!(stage.run(["stop", "--all"]).ok(), "2 two: agent stopped (task is completed)\n");
    assert!(stage.run(["stop", "--all"]).stderr.contains("no agent is running in this project"));

    let started = stage.run(["start", "one", "three", "--json"]);
    assert_eq!(started.code, 0, "{started}");
    for line in started.stdout.lines() {
        Schema::of("start").check(&serde_json::from_str(line).expect("a document"));
    }
    assert_eq!(statuses(&stage), ["running", "completed", "running"]);
    let stopped = stage.run(["stop", "one", "--json"]).json();
    Schema::of("stop").check(&stopped);

    let removed = stage.run(["rm", "1", "2", "3"]);
    assert_eq!((removed.code, removed.stdout.as_str()), (1, "1 one removed\n2 two removed\n"), "{removed}");
    assert!(removed.stderr.contains("the agent of task 3 is still running"), "{removed}");
    assert_eq!(stage.run(["undo"]).ok().lines().count(), 2);
    assert_eq!(statuses(&stage), ["stopped", "completed", "running"]);
}

#[test]
fn a_script_reads_the_new_task_as_json() {
    let stage = Stage::new();
    let new = stage.run(["new", "one", "--json", "--", "fake-agent", "-c", "ask ready?"]).json();
    Schema::of("new").check(&new);
    assert_eq!((new["task"]["id"].as_u64(), new["task"]["status"].as_str()), (Some(1), Some("running")));
}

#[test]
fn all_merged_tasks_are_removed_at_once() {
    let stage = stage();
    for slug in ["one", "two", "three"] {
        completed_task(&stage, slug, slug);
    }
    stage.run(["merge", "one"]).ok();
    stage.run(["merge", "three"]).ok();
    assert_eq!(stage.run(["rm", "--merged"]).ok(), "1 one removed\n3 three removed\n");
    assert!(stage.run(["rm", "--merged"]).stderr.contains("no task is merged"));
    assert_eq!(statuses(&stage), ["completed"]);
}

#[test]
fn a_wait_ends_with_the_first_or_with_all_of_its_tasks() {
    let stage = Stage::with_config(NO_SILENCE);
    let pause = Pause::at(stage.home().join("pause"));
    stage.play("slow", &format!("say busy; await {}; ask more>", pause.path().display()));
    stage.play("asks", "ask ready?");
    stage.wait_state("slow", "running (kernel)");
    let first = stage.run(["wait", "slow", "asks", "--any", "--json"]).json();
    Schema::of("wait").check(&first);
    assert_eq!((first["task"].as_str(), first["reached"].as_bool()), (Some("asks"), Some(true)));
    assert_eq!(stage.run(["wait", "asks", "--until", "question,permission"]).code, 0);
    let late = stage.run(["wait", "slow", "asks", "--timeout", "1"]);
    assert_eq!(late.code, 4, "{late}");
    assert!(late.stderr.contains("timed out: some of slow, asks are not in that state yet"), "{late}");
    assert_eq!(stage.run(["wait", "asks", "--until", "permission", "--timeout", "50ms"]).code, 4);
    pause.release();
    let all = stage.run(["wait", "slow", "asks"]).ok();
    assert_eq!(all.lines().count(), 2, "{all}");
    stage.run(["stop", "asks"]).ok();
    assert_eq!(stage.run(["wait", "slow", "asks"]).code, 3, "one of them has exited");
}

#[test]
fn after_a_reboot_one_command_starts_everything_that_ran() {
    let stage = Stage::new();
    for slug in ["ran", "also", "stopped"] {
        stage.play(slug, "ask ready?");
    }
    stage.run(["stop", "stopped"]).ok();
    assert!(stage.run(["start", "--all"]).stderr.contains("no agent was ended by a reboot"));
    // A reboot ends the daemon, the keepers and the agents at the same time.
    let (keepers, agents) =
        (["ran", "also"].map(|slug| stage.keeper(slug)), ["ran", "also"].map(|s| stage.agent(s)));
    stage.kill_daemon();
    keepers.into_iter().for_each(|keeper| keeper.process.kill());
    agents.into_iter().for_each(|agent| agent.kill());
    stage.wait_status("ran", "stopped");
    stage.wait_status("also", "stopped");
    let started = stage.run(["start", "--all"]);
    assert_eq!((started.code, started.stdout.as_str()), (0, "1 ran running\n2 also running\n"), "{started}");
    assert_eq!(statuses(&stage), ["running", "running", "stopped"]);

    stage.run(["daemon", "stop", "--agents"]).ok();
    assert_eq!(statuses(&stage), ["stopped", "stopped", "stopped"]);
    assert_eq!(stage.run(["start", "--all"]).ok(), "1 ran running\n2 also running\n");
}

#[test]
fn a_name_means_the_task_that_is_still_open() {
    let stage = stage();
    completed_task(&stage, "fix", "a");
    stage.run(["merge", "fix"]).ok();
    stage.play("fix", "ask ready?");
    assert_eq!(stage.run(["stop", "fix"]).ok(), "2 fix stopped\n");
    stage.play("fix", "ask ready?");
    let refusal = stage.refused(&["stop", "fix"]);
    assert!(refusal.contains("1-fix\n") && refusal.contains("3-fix\n"), "{refusal}");
    // A hint that leads to another refusal would be of no use.
    for command in ["attach", "send", "stop"] {
        let words: &[&str] = if command == "send" { &["1", "hi"] } else { &["1"] };
        let refusal = stage.run([&[command], words].concat()).stderr;
        assert!(!refusal.contains("agency start 1"), "{command}: {refusal}");
    }
}
