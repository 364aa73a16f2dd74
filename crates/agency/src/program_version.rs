//! Asks a program for its version.
//!
//! The program gets no input, no terminal and little time. If it hangs, its whole process group is killed.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use agency_api::Bytes;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// Programs written in JavaScript take a second on a busy machine.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// A version is one line, so more bytes are not read.
const LONGEST_ANSWER: u64 = 4096;

pub(crate) async fn ask_version(program: Option<Bytes>) -> Option<String> {
    let program = program?;
    let mut command = Command::new(program.as_os_str());
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.process_group(0).kill_on_drop(true);
    let mut child = command.spawn().ok()?;
    let group = child.id().and_then(|pid| Pid::from_raw(pid as i32));
    let answer = tokio::time::timeout(ANSWERS_WITHIN, async {
        let mut said = Vec::new();
        child.stdout.take()?.take(LONGEST_ANSWER).read_to_end(&mut said).await.ok()?;
        let status = child.wait().await.ok()?;
        (status.success() && status.signal().is_none()).then_some(said)
    })
    .await;
    // The child is not collected yet, so the number still names its group. The group may be empty by now.
    if answer.is_err()
        && let Some(group) = group
    {
        kill_process_group(group, Signal::KILL).unwrap_or_default();
    }
    find_version(&String::from_utf8_lossy(&answer.ok()??))
}

/// The first word with digits and dots: `git version 2.43.0`, `2.1.4 (Claude Code)`, `codex-cli 0.3.1`.
fn find_version(text: &str) -> Option<String> {
    let words = text.lines().find(|line| !line.trim().is_empty())?.split_whitespace();
    let is_version = |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
    words
        .map(|word| word.trim_start_matches('v').trim_end_matches([',', ')']))
        .find(is_version)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_anywhere_in_the_line() {
        for (text, number) in [
            ("git version 2.43.0\n", Some("2.43.0")),
            ("2.1.4 (Claude Code)\n", Some("2.1.4")),
            ("\ncodex-cli 0.3.1-beta\n", Some("0.3.1-beta")),
            ("aider v1.0\n", Some("1.0")),
            ("no idea\n", None),
            ("", None),
        ] {
            assert_eq!(find_version(text).as_deref(), number, "{text:?}");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_program_that_fails_or_is_not_there_has_no_version() {
        assert_eq!(ask_version(None).await, None);
        assert_eq!(ask_version(Some("/no/such/program".into())).await, None);
        assert_eq!(ask_version(Some("/bin/false".into())).await, None);
    }
}
