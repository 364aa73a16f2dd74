//! A daemon that is killed during a turn: the agent continues, and the next daemon knows what it did meanwhile.

use crate::scene::{Agent, Scene};

#[test]
fn the_next_daemon_knows_what_claude_did_without_one() {
    let scene = Scene::at_prompt(Agent::Claude);
    scene.deliver("<<say I have begun.>> <<hold on>> <<bash touch made>> <<hold still>>");
    scene.wait_running();
    let before = scene.history();
    let run = scene.task()["run"].as_str().expect("a live run").to_owned();

    scene.daemon().expect("a daemon lives").kill();
    scene.model.release("on");
    scene.eventually("the hook of the permission", crate::scene::SOON, || {
        scene.hooks(&run).iter().any(|hook| hook == "PermissionRequest").then_some(())
    });
    assert!(scene.daemon().is_none(), "no command has started one");

    scene.wait_waiting("permission");
    let history = scene.history();
    assert_eq!(history[..before.len()], before, "no earlier state is lost");
    scene.keys("1");
    scene.wait_running();
    scene.model.release("still");
    scene.wait_waiting("finished");
    assert!(scene.is_made());
}

#[test]
fn the_next_daemon_knows_what_codex_did_without_one() {
    let scene = Scene::at_prompt(Agent::Codex);
    scene.deliver("<<say I have begun.>> <<hold on>>");
    scene.wait_running();
    let before = scene.history();
    scene.daemon().expect("a daemon lives").kill();
    scene.model.release("on");
    scene.wait_waiting("finished");
    assert_eq!(scene.history()[..before.len()], before, "no earlier state is lost");
    scene.deliver("hello");
    scene.wait_model_got("hello");
}

#[test]
fn the_events_of_a_turn_can_be_read_later() {
    let scene = Scene::at_prompt(Agent::Claude);
    scene.deliver("hello");
    scene.wait_waiting("finished");
    let newest = scene.changes().pop().expect("there were changes");
    let time = newest["time"].as_str().expect("a time");
    let mut events =
        agency_testkit::Pty::spawn(scene.agency_command(&["events", "--json", "--since", "10m"]), 500, 24);
    let printed = events.wait_for(time);
    for why in ["question", "prompt"] {
        assert!(printed.contains(&format!(r#""why":"{why}""#)), "{printed}");
    }
}
