//! A sealed environment with helpers to run commands, list tasks and wait for agents.
//!
//! Contains no expectations; those are in the tests.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agency_testkit::{CommandOutput, Keeper, Process, Sealed};
use serde_json::Value;

/// Far more than any test needs, so that only a condition that never holds reaches it.
pub const SOON: Duration = Duration::from_secs(60);

pub struct Stage {
    sealed: Sealed,
}

impl Deref for Stage {
    type Target = Sealed;

    fn deref(&self) -> &Sealed {
        &self.sealed
    }
}

impl Stage {
    /// The shell is the default agent, whatever is installed on this machine.
    pub fn new() -> Stage {
        Stage::with_config("")
    }

    pub fn with_config(toml: &str) -> Stage {
        let stage = Stage { sealed: Sealed::new() };
        stage.configure(toml);
        stage
    }

    pub fn configure(&self, toml: &str) {
        self.write_config(&format!("default_agent = \"shell\"\n{toml}"));
    }

    /// A task whose agent plays this script.
    #[track_caller]
    pub fn play(&self, slug: &str, script: &str) -> Value {
        self.run(["new", slug, "--no-attach", "--", "fake-agent", "-c", script]).ok();
        self.task(slug)
    }

    /// Standard error of a command that must fail with exit code 1 and print nothing on standard output.
    #[track_caller]
    pub fn refused(&self, args: &[&str]) -> String {
        refused(self.run(args))
    }

    pub fn git(&self, dir: &Path, args: &[&str]) -> String {
        let mut git = self.command("git");
        git.current_dir(dir).args(args);
        CommandOutput::of(git, b"").ok()
    }

    #[track_caller]
    pub fn listing(&self) -> Value {
        self.run(["ls", "--json"]).json()
    }

    /// The task in `agency ls --json`.
    #[track_caller]
    pub fn task(&self, slug: &str) -> Value {
        let listing = self.listing();
        let tasks = listing["tasks"].as_array().expect("a list of tasks");
        let task = tasks.iter().find(|task| task["slug"] == slug);
        task.unwrap_or_else(|| panic!("no task {slug} in {listing}")).clone()
    }

    #[track_caller]
    pub fn status(&self, slug: &str) -> String {
        self.task(slug)["status"].as_str().expect("a status").to_owned()
    }

    /// Waits until the condition holds for the task.
    #[track_caller]
    pub fn wait_task(&self, slug: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        self.eventually(&format!("{slug} {what}"), SOON, || Some(self.task(slug)).filter(&is_so))
    }

    #[track_caller]
    pub fn wait_status(&self, slug: &str, status: &str) -> Value {
        self.wait_task(slug, status, |task| task["status"] == status)
    }

    #[track_caller]
    pub fn logs(&self, slug: &str) -> String {
        self.run(["logs", slug]).ok()
    }

    /// Waits until the agent has printed the text, and returns its whole output.
    #[track_caller]
    pub fn wait_printed(&self, slug: &str, text: &str) -> String {
        let what = format!("{slug} prints {text:?}");
        self.eventually(&what, SOON, || Some(self.logs(slug)).filter(|logs| logs.contains(text)))
    }

    /// The keeper of the task's live run.
    #[track_caller]
    pub fn keeper(&self, slug: &str) -> Keeper {
        let task = self.task(slug);
        let run = task["run"].as_str().unwrap_or_else(|| panic!("no live run: {task}")).to_owned();
        self.keeper_of(&run)
    }

    #[track_caller]
    pub fn keeper_of(&self, run: &str) -> Keeper {
        let keeper = self.keepers().into_iter().find(|keeper| keeper.run == run);
        keeper.unwrap_or_else(|| panic!("no keeper of run {run} lives"))
    }

    #[track_caller]
    pub fn agent(&self, slug: &str) -> Process {
        self.keeper(slug).child.expect("a keeper knows its agent")
    }

    /// Sends SIGKILL to the daemon and waits until it has ended.
    #[track_caller]
    pub fn kill_daemon(&self) {
        self.daemon().expect("a daemon lives").kill();
    }

    pub fn task_path(&self, name: &str) -> PathBuf {
        self.repo().join(".agency/tasks").join(format!("{name}.md"))
    }

    #[track_caller]
    pub fn task_file(&self, name: &str) -> String {
        let path = self.task_path(name);
        fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()))
    }

    pub fn worktree(&self, name: &str) -> PathBuf {
        self.repo().join(".agency/worktrees").join(name)
    }

    /// Everything that a start creates: task files and their mirrors, worktrees, branches, runs.
    pub fn traces(&self) -> Vec<String> {
        let projects = names_in(&self.state().join("projects"));
        let mirrors =
            projects.iter().map(|project| self.state().join("projects").join(project).join("tasks"));
        let dirs = [
            self.repo().join(".agency/tasks"),
            self.repo().join(".agency/worktrees"),
            self.state().join("r"),
        ];
        let mut traces: Vec<String> =
            dirs.into_iter().chain(mirrors).flat_map(|dir| names_in(&dir)).collect();
        if self.repo().join(".git").exists() {
            let branches = self.git(&self.repo(), &["branch", "--list", "--format=%(refname:short)"]);
            traces.extend(branches.lines().filter(|branch| *branch != "main").map(str::to_owned));
        }
        traces
    }

    /// A `PATH` that leads to git, a shell and nothing else of this machine.
    pub fn bare_path(&self) -> PathBuf {
        let bare = self.home().join("bare");
        if !bare.exists() {
            fs::create_dir(&bare).expect("room for a directory");
            for program in ["git", "sh", "cat"] {
                let found = CommandOutput::of(self.shell(&format!("command -v {program}")), b"").ok();
                std::os::unix::fs::symlink(found.trim(), bare.join(program))
                    .expect("a new directory is empty");
            }
        }
        bare
    }

    /// Another process writes the file: otherwise a child that another thread forks meanwhile could hold it open for
    /// writing, and no process could run it.
    pub fn write_program(&self, path: &Path, content: &[u8]) {
        let path = path.display();
        CommandOutput::of(self.shell(&format!("cat >'{path}' && chmod 755 '{path}'")), content).ok();
    }

    pub fn shell(&self, line: &str) -> std::process::Command {
        let mut shell = self.command("sh");
        shell.args(["-c", line]);
        shell
    }
}

#[track_caller]
pub fn refused(ran: CommandOutput) -> String {
    assert_eq!(ran.code, 1, "{ran}");
    assert_eq!(ran.stdout, "", "{ran}");
    assert!(ran.stderr.starts_with("Error: "), "{ran}");
    ran.stderr
}

fn names_in(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
