//! A command that runs beside the others; its output goes to files.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use agency_testkit::Process;

/// A listing of many tasks would fill the log.
const MOST_SAID: usize = 400;

pub struct Call {
    child: Child,
    stdout: File,
    stderr: File,
    words: String,
    since: Instant,
}

/// The end of a call.
pub struct Ended {
    /// The negative signal number if a signal ended it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub words: String,
}

impl Call {
    pub fn start(mut command: Command) -> std::io::Result<Call> {
        let words: Vec<String> = command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        command.stdin(File::open("/dev/null")?).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        Ok(Call { child: command.spawn()?, stdout, stderr, words: words.join(" "), since: Instant::now() })
    }

    pub fn words(&self) -> &str {
        &self.words
    }

    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }

    pub fn process(&self) -> Option<Process> {
        Process::find(i32::try_from(self.child.id()).ok()?)
    }

    /// The result, if the command has ended.
    pub fn poll(&mut self) -> std::io::Result<Option<Ended>> {
        let Some(status) = self.child.try_wait()? else { return Ok(None) };
        let (stdout, stderr) = (read_back(&mut self.stdout)?, read_back(&mut self.stderr)?);
        Ok(Some(Ended { code: code_of(status), stdout, stderr, words: self.words.clone() }))
    }

    /// `None`: the command has not ended in time. It is killed then.
    pub fn wait(mut self, within: Duration) -> std::io::Result<Option<Ended>> {
        let deadline = Instant::now() + within;
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(ended) = self.poll()? {
                return Ok(Some(ended));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // A call that has ended cannot be killed, and was waited for.
        if self.child.try_wait().is_ok_and(|status| status.is_none())
            && let Err(err) = self.child.kill().and_then(|()| self.child.wait())
        {
            eprintln!("cannot end `{}`: {err}", self.words);
        }
    }
}

impl Ended {
    pub fn is_ok(&self) -> bool {
        self.code == 0
    }

    /// Command, exit code and output in a few lines.
    pub fn describe(&self) -> String {
        let Ended { code, stdout, stderr, words } = self;
        let said = format!("{} {}", stdout.trim(), stderr.trim()).replace('\n', " / ");
        let said: String = said.chars().take(MOST_SAID).collect();
        format!("`agency {words}` ended with {code}: {said}")
    }
}

fn code_of(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| -signal)).unwrap_or(i32::MIN)
}

fn read_back(file: &mut File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
