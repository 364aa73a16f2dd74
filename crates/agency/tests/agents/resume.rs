//! A stopped agent resumes its own session.

use crate::scene::{Agent, Scene};

#[test]
fn claude_resumes_the_session_that_its_hooks_named() {
    let scene = Scene::at_prompt(Agent::Claude);
    scene.deliver("remember the word xylophone");
    scene.wait_waiting("finished");
    let file = scene.task_file();
    let session =
        file.lines().find_map(|line| line.strip_prefix("session_id: ")).unwrap_or_else(|| panic!("{file}"));

    scene.run(&["stop", "x"]).ok();
    scene.run(&["start", "x"]).ok();
    scene.wait_waiting("prompt");
    scene.deliver("what was the word?");
    scene.wait_waiting("finished");
    scene.wait_model_got("what was the word?");
    let newest = scene.model.requests().pop().expect("a request");
    assert_eq!(newest["texts"][0], "remember the word xylophone", "{newest}");
    assert!(scene.task_file().contains(session), "{}", scene.task_file());
}
