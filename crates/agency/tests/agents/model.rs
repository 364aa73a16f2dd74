//! The fake model: a server on the loopback device that does what the prompt says, and logs its requests.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use agency_testkit::Sealed;
use serde_json::Value;

pub struct Model {
    server: Child,
    pub port: u16,
    dir: PathBuf,
}

impl Model {
    pub fn start(sealed: &Sealed) -> Model {
        let dir = sealed.home().join("model");
        fs::create_dir(&dir).expect("room for the model");
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/agents/fake-model");
        let mut command = sealed.command("python3");
        command.arg(program).arg(dir.join("log")).arg(&dir).stdout(Stdio::piped());
        let mut server = command.spawn().expect("python3 runs the fake model: is it installed?");
        let stdout = server.stdout.take().expect("stdout is a pipe");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("the fake model speaks UTF-8");
        let port = line.trim().parse().unwrap_or_else(|_| panic!("the fake model names no port: {line:?}"));
        Model { server, port, dir }
    }

    /// Ends `<<hold NAME>>`, now or later.
    pub fn release(&self, name: &str) {
        fs::write(self.dir.join(name), "").expect("room for a file");
    }

    /// All requests of an agent's conversation, in order.
    pub fn requests(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        // The last line may be half written.
        let whole = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let requests = whole.map(|line| serde_json::from_str(line).expect("a request in JSON"));
        requests.filter(|request: &Value| request["aside"] == false).collect()
    }

    /// Whether the model got exactly this text from the user.
    pub fn got(&self, text: &str) -> bool {
        let has_text = |request: &Value| {
            request["texts"].as_array().is_some_and(|texts| texts.iter().any(|said| said == text))
        };
        self.requests().iter().any(has_text)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        if let Err(err) = self.server.kill().and_then(|()| self.server.wait()) {
            eprintln!("cannot end the fake model: {err}");
        }
    }
}
