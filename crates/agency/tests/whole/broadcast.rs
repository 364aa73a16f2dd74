//! `agency send --to`: one message to several agents, with a receipt from each.

use crate::json::Schema;
use crate::stage::Stage;

#[track_caller]
fn asking(stage: &Stage, slug: &str, labels: &[&str], script: &str) {
    let labels: Vec<&str> = labels.iter().flat_map(|label| ["--label", label]).collect();
    let command = ["--", "fake-agent", "-c", script];
    stage.run([&["new", slug, "--no-attach"], labels.as_slice(), command.as_slice()].concat()).ok();
    stage.wait_printed(slug, "more?");
}

#[test]
fn a_message_goes_to_every_agent_that_fits_and_to_no_other() {
    let stage = Stage::new();
    let script = "loop; ask more?; end";
    asking(&stage, "one", &["api"], script);
    asking(&stage, "two", &["api", "slow"], script);
    asking(&stage, "three", &["ui"], script);
    stage.run(["new", "idea", "--draft", "--label", "api", "-m", "x"]).ok();
    let sent = stage.run(["send", "--to", "label:api", "rebase", "on", "main"]);
    assert_eq!(sent.code, 0, "{sent}");
    let receipts: Vec<&str> = sent.stdout.lines().collect();
    assert!(
        receipts.len() == 2 && receipts[0].starts_with("1 one ") && receipts[1].starts_with("2 two "),
        "{sent}"
    );
    for slug in ["one", "two"] {
        stage.wait_printed(slug, "got: rebase on main");
    }
    let sent = stage.run(["send", "--to", "label:api,label:slow", "--json", "alone"]).json();
    Schema::of("send-to").check(&sent);
    assert_eq!(
        (sent["receipts"].as_array().map(Vec::len), &sent["receipts"][0]["task"]),
        (Some(1), &2.into())
    );
    stage.wait_printed("two", "got: alone");
    assert!(!stage.logs("three").contains("got:") && !stage.logs("one").contains("alone"));
    let none = stage.refused(&["send", "--to", "label:db", "x"]);
    assert!(none.starts_with("Error: no running agent fits label:db\n"), "{none}");
    for everything in ["*", "all", ""] {
        assert_eq!(stage.run(["send", "--to", everything, "x"]).code, 2, "{everything:?}");
    }
}

#[test]
fn an_agent_that_takes_no_message_is_named_and_the_others_get_theirs() {
    let stage = Stage::new();
    asking(&stage, "one", &["api"], "loop; ask more?; end");
    asking(&stage, "menu", &["api"], "say more?; menu Sure? | Yes | No");
    stage.wait_task("menu", "shows a dialog", |task| {
        task["state"]["why"] == "question" || task["state"]["why"] == "permission"
    });
    let sent = stage.run(["send", "--to", "label:api", "hello"]);
    assert_eq!(sent.code, 1, "{sent}");
    assert!(
        sent.stdout.contains("2 menu refused") && sent.stderr.contains("1 agent did not take the message"),
        "{sent}"
    );
    stage.wait_printed("one", "got: hello");
}
