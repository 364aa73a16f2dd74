//! An agent that plays a script, so that a test knows what it does and when.
//!
//! `fake-agent FILE [ARG…]` or `fake-agent -c "say hello; ask name?; exit 3" [ARG…]`. `script.rs` lists the commands.
//! Works on a terminal and on plain pipes. `fake-agent --stream-json SCRIPT` and `fake-agent --acp SCRIPT` speak these
//! protocols: see `stream.rs` and `acp.rs`. With `FAKE_AGENT_HEARD=FILE` these two append every message to FILE.

mod acp;
mod child;
mod ending;
mod input;
mod lines;
mod player;
mod reply;
mod script;
mod stream;
mod terminal;

use std::process::exit;

use player::Player;
use script::Script;

fn main() {
    let mut args = std::env::args().skip(1);
    let text = match args.next().as_deref() {
        Some("--stream-json") => stream::play(args),
        Some("--acp") => acp::play(args),
        Some("--child") => child::run(args),
        Some("-c") => args.next().unwrap_or_default(),
        Some(path) => std::fs::read_to_string(path).unwrap_or_else(|err| fail(&format!("{path}: {err}"))),
        None => fail("usage: fake-agent FILE [ARG…] | fake-agent -c SCRIPT [ARG…]"),
    };
    let script = Script::parse(&text).unwrap_or_else(|err| fail(&err.to_string()));
    Player::new(args.collect()).play(&script.steps);
}

fn fail(why: &str) -> ! {
    eprintln!("fake-agent: {why}");
    exit(2)
}
