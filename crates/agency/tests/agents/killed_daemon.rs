//! The daemon dies in the middle of a turn: the agent goes on, and what it did meanwhile is known afterwards.

use crate::scene::{Agent, Scene};

#[test]
fn what_claude_did_without_a_daemon_is_known_to_the_next() {
    let scene = Scene::at_prompt(Agent::Claude);
    scene.deliver("<<say I have begun.>> <<hold on>> <<bash touch made>> <<hold still>>");
    scene.wait_running();
    let before = scene.history();
    let run = scene.task()["run"].as_str().expect("a live run").to_owned();

    scene.daemon().expect("a daemon lives").kill();
    scene.model.open("on");
    scene.eventually("the hook of the permission", crate::scene::SOON, || {
        scene.hooks(&run).iter().any(|hook| hook == "PermissionRequest").then_some(())
    });
    assert!(scene.daemon().is_none(), "nobody has asked for one");

    scene.wait_waiting("permission");
    let history = scene.history();
    assert_eq!(history[..before.len()], before, "nothing of before is lost");
    scene.keys("1");
    scene.wait_running();
    scene.model.open("still");
    scene.wait_waiting("finished");
    assert!(scene.repo().join(".agency/worktrees/1-x/made").exists());
}

#[test]
fn what_codex_did_without_a_daemon_is_known_to_the_next() {
    let scene = Scene::at_prompt(Agent::Codex);
    scene.deliver("<<say I have begun.>> <<hold on>>");
    scene.wait_running();
    let before = scene.history();
    scene.daemon().expect("a daemon lives").kill();
    scene.model.open("on");
    scene.wait_waiting("finished");
    assert_eq!(scene.history()[..before.len()], before, "nothing of before is lost");
    scene.deliver("hello");
    scene.wait_told("hello");
}

#[test]
fn the_events_of_a_turn_are_told_to_who_asks_later() {
    let scene = Scene::at_prompt(Agent::Claude);
    scene.deliver("hello");
    scene.wait_waiting("finished");
    let newest = scene.changes().pop().expect("there were changes");
    let time = newest["time"].as_str().expect("a time");
    let mut events =
        agency_testkit::Pty::spawn(scene.typed(&["events", "--json", "--since", "10m"]), 500, 24);
    let told = events.wait_for(time);
    for why in ["question", "prompt"] {
        assert!(told.contains(&format!(r#""why":"{why}""#)), "{told}");
    }
}
