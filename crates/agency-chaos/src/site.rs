//! The place of a run: a sealed environment with three projects, on small disks if the machine allows that.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use agency_testkit::{Sealed, Signal};

use crate::agent;
use crate::processes::Census;

/// In megabytes: small, so that they are quickly filled, and with room for the journals and tasks of each minute.
const STATE_DISK: u64 = 128;
const STATE_PER_MINUTE: u64 = 12;
const PROJECT_DISK: u64 = 48;
const PROJECT_PER_MINUTE: u64 = 2;

pub struct Site {
    sealed: Sealed,
    pub projects: Vec<Project>,
    /// The directories that are small disks of their own; empty if the machine does not allow that.
    pub disks: Vec<PathBuf>,
}

pub struct Project {
    pub root: PathBuf,
    pub vcs: Vcs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vcs {
    Git,
    Jj,
}

impl Site {
    /// A place for a run of so many minutes. `may_mount`: this process is in a mount namespace of its own.
    pub fn make(may_mount: bool, minutes: u64) -> Result<Site, String> {
        let sealed = Sealed::new();
        let mut site = Site { sealed, projects: Vec::new(), disks: Vec::new() };
        let (first, second) = (site.sealed.repo(), site.sealed.home().join("second"));
        make_dir(&site.truth())?;
        make_dir(&second)?;
        if may_mount {
            site.mount(&site.state_disk(), STATE_DISK + minutes * STATE_PER_MINUTE)?;
            site.mount(&second, PROJECT_DISK + minutes * PROJECT_PER_MINUTE)?;
        }
        site.sealed.make_repository(&second);
        site.projects.extend([first, second].map(|root| Project { root, vcs: Vcs::Git }));
        site.make_jj_project()?;
        site.configure();
        Ok(site)
    }

    fn mount(&mut self, dir: &Path, megabytes: u64) -> Result<(), String> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={megabytes}m,mode=0700"), "tmpfs"]).arg(dir);
        let ran = mount.output().map_err(|err| format!("cannot run mount: {err}"))?;
        if !ran.status.success() {
            return Err(format!(
                "cannot mount a small disk: {}",
                String::from_utf8_lossy(&ran.stderr).trim()
            ));
        }
        self.disks.push(dir.to_path_buf());
        Ok(())
    }

    /// Without jj on this machine there is no such project.
    fn make_jj_project(&mut self) -> Result<(), String> {
        let Some(jj) = find_jj() else { return Ok(()) };
        let root = self.sealed.home().join("jj");
        make_dir(&root)?;
        std::os::unix::fs::symlink(jj, self.sealed.root().join("bin/jj")).map_err(|err| err.to_string())?;
        let identity = "user.name = 'Tester'\nuser.email = 'tester@example.com'\n";
        fs::write(self.sealed.home().join(".jjconfig.toml"), identity).map_err(|err| err.to_string())?;
        self.sealed.make_repository(&root);
        self.tool(&root, "jj", &["git", "init", "--colocate"])?;
        self.projects.push(Project { root, vcs: Vcs::Jj });
        Ok(())
    }

    /// One agent that speaks ACP; the other agents are commands.
    fn configure(&self) {
        let quoted = |path: PathBuf| format!("{:?}", path.display().to_string());
        self.sealed.write_config(&format!(
            "default_agent = \"fake\"\nmax_agents = 0\n[agents.fake]\nacp = [\"fake-agent\", \"--acp\", \"\"]\n\
             [agents.fake.env]\nFAKE_AGENT_SESSIONS = {}\nFAKE_AGENT_HEARD = {}\n",
            quoted(self.sealed.home().join("sessions")),
            quoted(agent::heard_file(&self.truth(), ACP_HEARD)),
        ));
    }

    /// Runs git or jj in this directory.
    pub fn tool(&self, dir: &Path, program: &str, args: &[&str]) -> Result<String, String> {
        let mut command = self.sealed.command(program);
        command.current_dir(dir).args(args);
        let ran = command.output().map_err(|err| format!("cannot run {program}: {err}"))?;
        match ran.status.success() {
            true => Ok(String::from_utf8_lossy(&ran.stdout).into_owned()),
            false => {
                Err(format!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&ran.stderr).trim()))
            }
        }
    }

    pub fn agency(&self, project: usize, args: &[String]) -> Command {
        let mut command = self.sealed.agency(args);
        command.current_dir(&self.projects[project].root);
        command
    }

    /// A command for any program, in this environment.
    pub fn command(&self, program: &str) -> Command {
        self.sealed.command(program)
    }

    pub fn census(&self) -> Census {
        Census::take(&self.sealed.home(), &self.state())
    }

    pub fn root(&self) -> &Path {
        self.sealed.root()
    }

    pub fn state(&self) -> PathBuf {
        self.sealed.state()
    }

    /// The directory above the state directory, which stays when Agency's own one is deleted.
    pub fn state_disk(&self) -> PathBuf {
        self.sealed.root().join("state")
    }

    /// The directory with the notes of the agents, which Agency does not know.
    pub fn truth(&self) -> PathBuf {
        self.sealed.root().join("truth")
    }

    /// Keeps the directory. A small disk disappears with the last process of the run, so copy what is on it.
    pub fn keep(&mut self) {
        for disk in &self.disks {
            let copy = disk.with_extension("kept");
            let copied = Command::new("cp").args(["-a", "--"]).arg(disk).arg(&copy).status();
            if !copied.is_ok_and(|status| status.success()) {
                eprintln!("cannot copy all of {} to {}", disk.display(), copy.display());
            }
        }
        self.sealed.keep();
    }
}

impl Drop for Site {
    /// Ends all processes of the run, also those whose pid file was spoiled, and takes the small disks away.
    fn drop(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let left = self.census().processes();
            if left.is_empty() || Instant::now() > deadline {
                break;
            }
            for process in left {
                // `false` means that the process ended by itself.
                process.signal(Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        for disk in &self.disks {
            let unmounted = Command::new("umount").arg("--lazy").arg(disk).status();
            if !unmounted.is_ok_and(|status| status.success()) {
                eprintln!("cannot unmount {}", disk.display());
            }
        }
    }
}

/// All tasks that speak ACP share one process, and so one file.
pub const ACP_HEARD: &str = "acp";

fn make_dir(path: &Path) -> Result<(), String> {
    fs::create_dir(path).map_err(|err| format!("cannot make {}: {err}", path.display()))
}

/// The jj of this machine, or the one that `scripts/tools` installs.
fn find_jj() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin");
    std::env::split_paths(&path).chain([tools]).map(|dir| dir.join("jj")).find(|jj| jj.exists())
}
