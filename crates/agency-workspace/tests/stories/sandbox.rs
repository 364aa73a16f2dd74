//! A sandbox: a temporary directory, a sealed environment, and git to prepare scenes with.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use agency_workspace::{Environment, MergeChecks, OpenError, Project, Vcs, WorkspaceName};
use tempfile::TempDir;

/// The root of the project in which a process is to be killed. [`Sandbox::run_in_child`] sets it.
const CUT: &str = "AGENCY_TEST_CUT_IN";

pub(crate) struct Sandbox {
    dir: TempDir,
    environment: Vec<(OsString, OsString)>,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("home");
        fs::create_dir(&home).unwrap();
        let path = path_with_tools();
        let mut environment: Vec<(OsString, OsString)> =
            vec![("PATH".into(), path), ("HOME".into(), home.into())];
        for (name, value) in [("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")] {
            environment.push((name.into(), value.into()));
        }
        environment.push(("JJ_CONFIG".into(), dir.path().join("home/jj.toml").into()));
        write(&dir.path().join("home/jj.toml"), "user.name = 'Ada'\nuser.email = 'ada@example.org'\n");
        Self { dir, environment }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.into(), value.into()));
        self
    }

    /// A user who has configured a name in git. Most stories need none.
    pub(crate) fn with_identity(self) -> Self {
        let config = self.path().join("home/gitconfig");
        write(&config, "[user]\n\tname = Ada\n\temail = ada@example.org\n");
        self.with("GIT_CONFIG_GLOBAL", config)
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.environment.iter().map(|(name, value)| (name, value))
    }

    pub(crate) fn environment(&self) -> Environment {
        Environment::of(self.environment.clone())
    }

    pub(crate) fn open(&self, path: &Path) -> Project {
        self.try_open(path).unwrap()
    }

    pub(crate) fn try_open(&self, path: &Path) -> Result<Project, OpenError> {
        Project::open_with(path, None, self.environment())
    }

    pub(crate) fn open_plain(&self, path: &Path) -> Project {
        Project::open_with(path, Some(Vcs::Plain), self.environment()).unwrap()
    }

    /// Runs git as the user would, and asserts that it succeeds.
    pub(crate) fn git<A: AsRef<OsStr>>(&self, dir: &Path, args: &[A]) -> String {
        let mut command = Command::new("git");
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        for role in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{role}_NAME"), "Ada")
                .env(format!("GIT_{role}_EMAIL"), "ada@example.org");
        }
        command.args(["-c", "protocol.file.allow=always"]).current_dir(dir).args(args);
        let output = command.output().unwrap();
        let shown = args.iter().map(|arg| arg.as_ref().display().to_string()).collect::<Vec<_>>().join(" ");
        assert!(output.status.success(), "git {shown}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Runs jj as the user would, and asserts that it succeeds.
    pub(crate) fn jj(&self, dir: &Path, args: &[&str]) -> String {
        // `Command` searches our own PATH, not the one that the program gets.
        let path = self.environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
        let found = std::env::split_paths(&path.unwrap()).map(|dir| dir.join("jj")).find(|jj| jj.exists());
        let mut command =
            Command::new(found.expect("jj is needed: scripts/tools installs it below target/tools"));
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        let output =
            command.current_dir(dir).args(["--no-pager", "--color=never"]).args(args).output().unwrap();
        assert!(
            output.status.success(),
            "jj {}: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// A jj repository with one commit, which holds `readme`, on the bookmark `main`. The user's working copy
    /// is an empty change on top of it.
    pub(crate) fn jj_repository(&self, name: &str, colocated: bool) -> PathBuf {
        let root = self.path().join(name);
        fs::create_dir_all(&root).unwrap();
        self.jj(&root, &["git", "init", if colocated { "--colocate" } else { "--no-colocate" }]);
        self.jj_commit(&root, "readme", "hello\n");
        root
    }

    /// Writes a file, commits everything, and moves `main` there.
    pub(crate) fn jj_commit(&self, dir: &Path, file: &str, content: &str) {
        write(&dir.join(file), content);
        self.jj(dir, &["commit", "-m", file]);
        self.jj(dir, &["bookmark", "set", "main", "-r", "@-"]);
    }

    /// Writes a script to `bin` that replaces a program; `$real` is the program itself.
    pub(crate) fn wrap_program(&self, program: &str, script: &str) -> PathBuf {
        let path = self.environment.iter().find(|(name, _)| name == "PATH").unwrap().1.clone();
        let bin = self.path().join("bin");
        let mut there = std::env::split_paths(&path).filter(|dir| *dir != bin).map(|dir| dir.join(program));
        let real = there.find(|found| found.exists()).unwrap();
        write(&bin.join(program), &format!("#!/bin/sh\nreal='{}'\n{script}\n", real.display()));
        fs::set_permissions(bin.join(program), fs::Permissions::from_mode(0o755)).unwrap();
        bin
    }

    /// Makes a program kill its caller after the given call.
    pub(crate) fn kill_caller_after(&self, program: &str, call: u32) {
        let count = self.path().join("count");
        write(&count, "0");
        let script = format!(
            "count=$(($(cat '{0}') + 1))\necho $count >'{0}'\n\
             [ $count = {call} ] || exec \"$real\" \"$@\"\n\"$real\" \"$@\"\nkill -9 $PPID",
            count.display()
        );
        self.wrap_program(program, &script);
    }

    /// Runs a story in a child process, with the programs of `bin`. The story finds its project by
    /// [`project_to_be_killed_in`]. Returns false if the child was killed.
    pub(crate) fn run_in_child(&self, story: &str, root: &Path) -> bool {
        let path = self.path_with_bin();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", story]);
        command.env_clear().envs(self.variables()).env("PATH", path).env(CUT, root);
        let output = command.output().unwrap();
        let was_killed = output.status.signal() == Some(9);
        assert!(was_killed || output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        !was_killed
    }

    pub(crate) fn path_with_bin(&self) -> OsString {
        let path = self.environment.iter().find(|(name, _)| name == "PATH").unwrap().1.clone();
        std::env::join_paths([self.path().join("bin")].into_iter().chain(std::env::split_paths(&path)))
            .unwrap()
    }

    /// Opens the same project with the programs of `bin` first in the PATH.
    pub(crate) fn open_with_bin(&self, root: &Path) -> Project {
        let mut variables = self.environment.clone();
        variables.retain(|(name, _)| name != "PATH");
        variables.push(("PATH".into(), self.path_with_bin()));
        Project::open_with(root, None, Environment::of(variables)).unwrap()
    }

    /// A repository with one commit on `main`, which holds `readme`.
    pub(crate) fn repository(&self, name: &str) -> PathBuf {
        let root = self.path().join(name);
        fs::create_dir_all(&root).unwrap();
        self.git(&root, &["init", "--quiet", "--initial-branch=main"]);
        self.commit(&root, "readme", "hello\n");
        root
    }

    /// Writes a file and commits it.
    pub(crate) fn commit(&self, dir: &Path, file: &str, content: &str) -> String {
        write(&dir.join(file), content);
        self.git(dir, &["add", "--", file]);
        self.git(dir, &["commit", "--quiet", "--message", file]);
        self.git(dir, &["rev-parse", "HEAD"])
    }

    pub(crate) fn hook(&self, root: &Path, hook: &str, script: &str) {
        let path = root.join(".git/hooks").join(hook);
        write(&path, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Everything that a failed or undone call must leave unchanged: refs, worktrees and files.
    pub(crate) fn full_state(&self, root: &Path) -> String {
        let refs = self.git(root, &["for-each-ref"]);
        let worktrees = self.git(root, &["worktree", "list", "--porcelain"]);
        let config = fs::read_to_string(root.join(".git/config")).unwrap();
        let files = files_under(root).join("\n");
        format!("{refs}\n{worktrees}\n{config}\n{files}")
    }
}

/// The PATH with the directory in which `scripts/tools` installs rare programs.
fn path_with_tools() -> OsString {
    let path = std::env::var_os("PATH").unwrap();
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/bin");
    std::env::join_paths(std::env::split_paths(&path).chain([tools])).unwrap()
}

pub(crate) fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Lists files and empty directories, without those of git and jj. The empty folder of worktrees does not
/// count.
pub(crate) fn files_under(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        let entries: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        if entries.is_empty() && !dir.ends_with(".agency/worktrees") {
            found.push(dir.display().to_string());
        }
        let own = |path: &PathBuf| [".git", ".jj"].map(OsStr::new).contains(&path.file_name().unwrap());
        for path in entries.into_iter().filter(|path| !own(path)) {
            if path.is_dir() { open.push(path) } else { found.push(path.display().to_string()) }
        }
    }
    found.sort();
    found
}

/// Returns the project in which this process is to be killed, if a story started it for that.
pub(crate) fn project_to_be_killed_in() -> Option<Project> {
    let root = std::env::var_os(CUT)?;
    Some(Project::open_with(Path::new(&root), None, Environment::inherited()).unwrap())
}

pub(crate) fn name(name: &str) -> WorkspaceName {
    name.parse().unwrap()
}

/// Formats an error as the command line prints it.
pub(crate) fn format_error(err: &dyn Error, hint: Option<String>) -> String {
    let mut lines = vec![format!("Error: {err}")];
    let mut cause = err.source();
    while let Some(err) = cause {
        lines.push(format!("Caused by: {err}"));
        cause = err.source();
    }
    lines.extend(hint.map(|hint| format!("Hint: {hint}")));
    lines.join("\n")
}

/// All calls share their answers, as those of a daemon do.
static CHECKS: LazyLock<MergeChecks> = LazyLock::new(MergeChecks::default);

/// Returns the workspaces whose merge the user has taken back.
pub(crate) fn taken_back(project: &Project) -> Vec<WorkspaceName> {
    CHECKS.find_taken_back(project).workspaces
}
