//! Runs one program for a notification, and kills it if it takes too long.
//!
//! The output of the user's own program is dropped: it may contain secrets, which must not reach a log.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::words;

/// Long enough for a program that calls a server. The daemon's loop does not wait for it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A program's error message is short.
const MAX_STDERR_BYTES: u64 = 4096;

/// Where the standard error of the program goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stderr {
    Dropped,
    /// The last line becomes the reason of the failure.
    Reported,
}

/// Runs a program without a shell, with `input` on its standard input and `env` added to the daemon's environment.
pub async fn run(
    argv: &[String],
    env: &[(&str, OsString)],
    input: &[u8],
    stderr: Stderr,
) -> Result<(), String> {
    run_within(TIMEOUT, argv, env, input, stderr).await
}

async fn run_within(
    limit: Duration,
    argv: &[String],
    env: &[(&str, OsString)],
    input: &[u8],
    stderr: Stderr,
) -> Result<(), String> {
    let [program, arguments @ ..] = argv else { return Err("there is no program to run".to_owned()) };
    let mut command = Command::new(program);
    command.args(arguments).envs(env.iter().map(|(name, value)| (name, value)));
    command.current_dir(home()).process_group(0).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(match stderr {
        Stderr::Dropped => Stdio::null(),
        Stderr::Reported => Stdio::piped(),
    });
    let mut child = command.spawn().map_err(|err| format!("cannot be run: {err}"))?;
    match tokio::time::timeout(limit, feed_and_wait(&mut child, input)).await {
        Ok(Ok((status, _))) if status.success() => Ok(()),
        Ok(Ok((_, said))) if !said.is_empty() => Err(said),
        Ok(Ok((status, _))) => Err(format!("it ended with {status}")),
        Ok(Err(err)) => Err(format!("cannot wait for it: {err}")),
        Err(_) => {
            kill_group(&mut child).await;
            Err(format!("it was killed after {} s", limit.as_secs()))
        }
    }
}

async fn feed_and_wait(child: &mut Child, input: &[u8]) -> std::io::Result<(ExitStatus, String)> {
    if let Some(mut stdin) = child.stdin.take() {
        // The program may end without reading its input.
        stdin.write_all(input).await.unwrap_or_default();
    }
    let mut said = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        // Without a readable message, the exit status is the reason of the failure.
        stderr.take(MAX_STDERR_BYTES).read_to_end(&mut said).await.unwrap_or_default();
    }
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().map(words::clean).rfind(|line| !line.is_empty());
    Ok((child.wait().await?, last.unwrap_or_default()))
}

/// Kills the program together with its process group.
async fn kill_group(child: &mut Child) {
    // The daemon has not reaped the child yet, so no other process has its id.
    let group = child.id().and_then(|id| Pid::from_raw(id as i32));
    if let Some(Err(cause)) = group.map(|group| kill_process_group(group, Signal::KILL)) {
        tracing::debug!(%cause, "the process group of a notification's program is gone already");
    }
    if let Err(cause) = child.kill().await {
        tracing::warn!(%cause, "a notification's program cannot be killed");
    }
}

fn home() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_dir());
    home.unwrap_or_else(|| PathBuf::from("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Vec<String> {
        ["sh", "-c", line].map(str::to_owned).to_vec()
    }

    #[tokio::test]
    async fn a_program_reads_the_input_and_its_failure_is_returned() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("got");
        assert_eq!(
            run(&shell(&format!("cat > '{}'", file.display())), &[], b"{}", Stderr::Dropped).await,
            Ok(())
        );
        assert_eq!(std::fs::read(file).unwrap(), b"{}");
        let large = vec![b'x'; 1 << 20];
        assert_eq!(
            run(&shell("exit 0"), &[], &large, Stderr::Dropped).await,
            Ok(()),
            "a program may ignore its input"
        );
        assert_eq!(
            run(&shell("exit 3"), &[], b"", Stderr::Dropped).await,
            Err("it ended with exit status: 3".to_owned())
        );
        let failing = shell("echo first >&2; echo '  no bus ' >&2; exit 1");
        assert_eq!(run(&failing, &[], b"", Stderr::Reported).await, Err("no bus".to_owned()));
        let missing = run(&["/no/such/program".to_owned()], &[], b"", Stderr::Dropped)
            .await
            .expect_err("no such program");
        assert!(missing.starts_with("cannot be run: "), "{missing}");
    }

    #[tokio::test]
    async fn a_program_that_hangs_is_killed() {
        let outcome =
            run_within(Duration::from_millis(10), &shell("sleep 1000 & wait"), &[], b"", Stderr::Dropped)
                .await;
        assert_eq!(outcome, Err("it was killed after 0 s".to_owned()));
    }
}
