//! Each workspace has its own ports and keeps them as long as it exists.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};

use agency_testkit::CommandOutput;

use crate::stage::Stage;

fn port(stage: &Stage, slug: &str) -> u64 {
    stage.task(slug)["port"].as_u64().expect("a port")
}

#[test]
fn each_workspace_has_ports_and_all_its_processes_know_them() {
    let stage = Stage::with_config(
        r#"
        [workspace]
        ports = 3
        port_base = 26000
        setup = ["sh", "-c", 'echo setup $AGENCY_PORT $AGENCY_PORT_2 $0', "$AGENCY_PORT_1"]
        [agents.server]
        start = ["fake-agent", "-c", "args; env AGENCY_PORT; env AGENCY_PORT_2; env AGENCY_PORT_3; ask ready?", "--port=$AGENCY_PORT_1"]
        run = ["sh", "-c", 'echo run $0', "$AGENCY_PORT"]
        "#,
    );
    let made = stage.run(["new", "one", "--no-attach", "-m", "x", "--agent", "server"]);
    let first = port(&stage, "one");
    assert_eq!(stage.task("one")["ports"], 3);
    assert!(made.stderr.contains(&format!("setup {first} {} {}\n", first + 2, first + 1)), "{made}");
    let printed = stage.wait_printed("one", "ready?");
    assert!(printed.contains(&format!("arg 1: --port={}", first + 1)), "{printed}");
    assert!(printed.contains(&format!("\n{first}\n{}\n", first + 2)), "{printed}");
    assert_eq!(stage.run(["run", "one", "hi"]).ok(), format!("run {first}\n"));
    let line = "echo $AGENCY_PORT $AGENCY_PORT_2 ${AGENCY_PORT_9-unset}";
    let mut exec = stage.agency(["exec", "one", "--", "sh", "-c", line]);
    exec.env("AGENCY_PORT_9", "of another");
    assert_eq!(CommandOutput::of(exec, b"").ok(), format!("{first} {} unset\n", first + 2));

    stage.play("two", "ask ready?");
    let second = port(&stage, "two");
    let row = |first: u64| (first..first + 3).collect::<BTreeSet<u64>>();
    assert!(row(first).is_disjoint(&row(second)));
    stage.kill_daemon();
    stage.run(["restart", "one"]).ok();
    assert_eq!((port(&stage, "one"), port(&stage, "two")), (first, second), "they stay");

    stage.run(["rm", "one", "--discard"]).ok();
    stage.play("three", "ask ready?");
    assert_eq!(port(&stage, "three"), first, "given back and given again");
}

#[test]
fn a_used_port_is_not_assigned() {
    let stage = Stage::new();
    // Below the ephemeral ports of the system, which Agency never assigns.
    let bound = (27_000..32_000).find_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok());
    let server = bound.expect("one of five thousand ports");
    let used = server.local_addr().expect("an address").port();
    stage.configure(&format!("[workspace]\nport_base = {used}\nports = 1\n"));
    stage.play("one", "ask ready?");
    let given = stage.task("one")["port"].as_u64();
    assert!(given.is_some_and(|given| given > u64::from(used)), "{given:?} beside {used}");
    stage.configure("[workspace]\nports = 0\n");
    stage.play("two", "ask ready?");
    assert!(stage.task("two")["port"].is_null());
    stage.configure("[workspace]\nport_base = 65535\n");
    let made = stage.run(["new", "three", "--no-attach", "--", "fake-agent", "-c", "ask q"]);
    assert!(made.stderr.contains("there are no 10 free ports from 65535 on"), "{made}");
    assert_eq!(made.stdout, "3 three running\n");

    let given = u16::try_from(given.unwrap_or_default()).expect("a port");
    stage.run(["stop", "one"]).ok();
    let _other = TcpListener::bind((Ipv4Addr::LOCALHOST, given)).expect("it was free");
    let again = stage.run(["start", "one"]);
    assert!(again.stderr.contains(&format!("port {given} in use by another program")), "{again}");
    assert_eq!(stage.task("one")["port"], given, "it stays");
}
