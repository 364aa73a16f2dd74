//! Lines of the two protocols: output, and the steps of their scripts.

use std::io::Write;
use std::process::exit;

pub(crate) fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()).is_err()
    {
        // The client closed our output.
        exit(0)
    }
}

/// Appends a message that the agent received to the file that `FAKE_AGENT_HEARD` names, so that a test knows what
/// arrived even if the agent is killed before it answers.
pub(crate) fn record_heard(text: &str) {
    let Some(path) = std::env::var_os("FAKE_AGENT_HEARD") else { return };
    let file = std::fs::OpenOptions::new().append(true).create(true).open(&path);
    if let Err(err) = file.and_then(|mut file| file.write_all(format!("{text}\n").as_bytes())) {
        eprintln!("fake-agent: {}: {err}", path.display());
    }
}

/// The steps between `;` or line ends, each as its word and the rest.
pub(crate) fn steps_of(script: &str) -> impl Iterator<Item = (&str, &str)> {
    let steps = script.split(['\n', ';']).map(str::trim).filter(|step| !step.is_empty());
    steps.map(|step| {
        let (word, rest) = step.split_once(char::is_whitespace).unwrap_or((step, ""));
        (word, rest.trim_start())
    })
}
