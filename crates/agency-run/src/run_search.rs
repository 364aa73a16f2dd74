//! Finds the runs that earlier daemons left, by what cannot get lost: the locks on their directories, the answers of
//! their keepers, and processes that carry a run id.
//!
//! The files beside a run only remember. If one is missing or cannot be read, the search writes it again from what a
//! keeper or a process says, and reports that. It adopts nothing: the daemon does.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agency_api::ProcessIdentity;
use agency_api::paths::{RunDir, StateDir};
use agency_core::agent::{Agent, Driver};
use agency_core::ids::RunId;
use agency_core::slug::TaskName;
use agency_core::tokens;
use agency_keeper::keeper_search::{FoundKeeper, find_keepers};
use agency_keeper::pidfile::PidFile;
use agency_keeper::platform;
use agency_keeper::run_lock::{ABANDONED_FILE, LockState, lock_state};
use agency_store::clock;
use agency_store::epoch::DaemonEpoch;
use rustix::process::Signal;

use crate::connection;
use crate::environment::{self, Environment};
use crate::fold;
use crate::keeper_socket::KeeperSocket;
use crate::run_meta::{self, RunMeta, ShellMeta};

/// A keeper whose socket was deleted binds it again within milliseconds of the signal.
const REBIND_WITHIN: Duration = Duration::from_secs(3);

/// The remains of the runs of earlier daemons.
#[derive(Debug, Default)]
pub struct FoundRuns {
    /// Every run that has a directory and that the daemon knows the task of, oldest first.
    pub runs: Vec<FoundRun>,
    /// Live runs that nothing explains: no file, keeper or process names their task.
    pub unexplained: Vec<UnexplainedRun>,
    /// The keepers of this state directory.
    pub keepers: Vec<FoundKeeper>,
    /// Files that were missing or unreadable, and what became of them.
    pub problems: Vec<String>,
}

/// One run of an earlier daemon.
#[derive(Debug)]
pub struct FoundRun {
    /// Its directory.
    pub dir: RunDir,
    /// Whose it is.
    pub meta: RunMeta,
    /// The keeper or process that lives.
    pub holder: Holder,
}

impl FoundRun {
    /// Whether something of the run lives. A session has no holder of its own; it deletes its pid file when it ends.
    pub fn lives(&self) -> bool {
        self.holder != Holder::Nothing || self.meta.acp.is_some() && self.dir.pid_file().exists()
    }

    /// Whether the agent's own process is known to live. A keeper stays after it, until a daemon has read the exit.
    pub fn agent_lives(&self) -> bool {
        let pid_file = PidFile::read(&self.dir.pid_file()).ok().flatten();
        pid_file.and_then(|file| file.child).is_some_and(|child| platform::is_alive(&child))
    }
}

/// A live run that nothing explains: no file, keeper or process names its task.
#[derive(Debug)]
pub struct UnexplainedRun {
    /// The run.
    pub run: RunId,
    /// The keeper or process that lives.
    pub holder: Holder,
}

/// The keeper or process of a run that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// Its keeper. `None` if the lock is held and no process of this machine is known to hold it.
    Keeper(Option<ProcessIdentity>),
    /// A process of its agent, without a keeper.
    Process(ProcessIdentity),
    /// Nothing. A session on a connection has no holder of its own either.
    Nothing,
}

/// A process that carries a run id of this state directory.
struct Member {
    process: ProcessIdentity,
    environment: Environment,
}

/// The facts that the search looks up again and again.
struct Search<'a> {
    state: &'a StateDir,
    epoch: &'a DaemonEpoch,
    keepers: HashMap<String, FoundKeeper>,
    members: HashMap<String, Member>,
    problems: Vec<String>,
}

/// Blocking. Finds all runs in the state directory, and rebuilds what is lost of the live ones. `commands` are the run ids
/// of setups and teardowns, which have no keeper.
pub fn find_runs(state: &StateDir, epoch: &DaemonEpoch, commands: &HashSet<String>) -> FoundRuns {
    let keepers = keepers_of(state);
    recall(state, &keepers);
    let mut members = members_of(state);
    members.retain(|run, _| !commands.contains(run));
    let mut search = Search {
        state,
        epoch,
        keepers: keepers.iter().map(|found| (found.run_id.clone(), found.clone())).collect(),
        members,
        problems: Vec::new(),
    };
    let (mut runs, mut unexplained) = (Vec::new(), Vec::new());
    for dir in run_directories(state) {
        let read = RunMeta::load(&dir);
        if let Ok(Some(meta)) = &read
            && meta.host != state.host()
        {
            let (meta, holder) = (meta.clone(), Holder::Nothing);
            runs.push(FoundRun { dir, meta, holder });
            continue;
        }
        let holder = search.holder(&dir);
        match search.meta(&dir, read, &holder) {
            Some(meta) => runs.push(FoundRun { dir, meta, holder }),
            None if holder == Holder::Nothing => {}
            None => unexplained.push(UnexplainedRun { run: RunId(run_name(&dir)), holder }),
        }
    }
    search.add_runs_without_directory(&mut runs, &mut unexplained);
    number_unknown_orders(&mut runs);
    runs.sort_by_key(|found| found.meta.order);
    FoundRuns { runs, unexplained, keepers, problems: search.problems }
}

/// A process of a run that still lives: its keeper, or one that carries its run id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveProcess {
    /// The process id.
    pub pid: i32,
    /// The run.
    pub run: String,
}

/// Blocking. Every keeper of this state directory, and one process of each run without a keeper. It reads the process
/// table only, so it works without a daemon and without files.
pub fn find_live_processes(state: &StateDir) -> Vec<LiveProcess> {
    let mut live: BTreeMap<String, i32> =
        members_of(state).into_iter().map(|(run, member)| (run, member.process.pid)).collect();
    live.extend(keepers_of(state).into_iter().map(|found| (found.run_id, found.process.pid)));
    live.into_iter().map(|(run, pid)| LiveProcess { pid, run }).collect()
}

/// The keepers whose directories are in this state directory, also if those were deleted.
fn keepers_of(state: &StateDir) -> Vec<FoundKeeper> {
    let root = state.root().canonicalize().unwrap_or_else(|_| state.root().to_path_buf());
    let name = |dir: PathBuf| dir.file_name().map(OsStr::to_owned).unwrap_or_default();
    let parents = [root.join(name(state.runs())), root.join(name(state.connections()))];
    let is_ours =
        |found: &FoundKeeper| found.run_dir.parent().is_some_and(|dir| parents.iter().any(|own| own == dir));
    find_keepers().into_iter().filter(is_ours).collect()
}

/// Asks keepers whose socket is gone to bind it again, and waits for them.
fn recall(state: &StateDir, keepers: &[FoundKeeper]) {
    let is_bound = |found: &FoundKeeper| {
        use std::os::unix::fs::FileTypeExt;
        found.directory(state).socket().symlink_metadata().is_ok_and(|meta| meta.file_type().is_socket())
    };
    let mut waiting: Vec<&FoundKeeper> = keepers.iter().filter(|found| !is_bound(found)).collect();
    for found in &waiting {
        tracing::warn!(run = found.run_id, "the socket of a keeper is gone; the keeper binds it again");
        if let Err(cause) = platform::signal_if_same(&found.process, Signal::USR1) {
            tracing::warn!(run = found.run_id, %cause, "cannot signal a keeper");
        }
    }
    let deadline = Instant::now() + REBIND_WITHIN;
    while !waiting.is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
        waiting.retain(|found| !is_bound(found) && platform::is_alive(&found.process));
    }
}

/// Where a keeper's files are.
trait KeeperDirectory {
    fn directory(&self, state: &StateDir) -> RunDir;
}

impl KeeperDirectory for FoundKeeper {
    fn directory(&self, state: &StateDir) -> RunDir {
        let is_connection =
            self.run_dir.parent().and_then(Path::file_name) == state.connections().file_name();
        match is_connection {
            true => state.connection(&self.run_id),
            false => state.run(&self.run_id),
        }
    }
}

/// One process for each run id: the oldest, which is most likely the agent itself.
fn members_of(state: &StateDir) -> HashMap<String, Member> {
    let mut members: HashMap<String, Member> = HashMap::new();
    let (own, spared) = (std::process::id() as i32, Agent::named("").spare);
    for process in platform::all_processes() {
        // `stop` leaves shared servers alone, so they prove nothing.
        if process.pid == own || process.has_ended() || spared.iter().any(|name| process.is_called(name)) {
            continue;
        }
        let environment: Environment = platform::environment_of(process.pid).into_iter().collect();
        let socket = environment.get(OsStr::new(environment::SOCKET)).map(Path::new);
        if socket.and_then(Path::parent) != Some(state.root()) {
            continue;
        }
        let Some(run) = environment.get(OsStr::new(environment::RUN_ID)).and_then(|run| run.to_str()) else {
            continue;
        };
        let (run, process) = (run.to_owned(), process.identity());
        let is_older = members.get(&run).is_none_or(|known| process.start_time < known.process.start_time);
        if is_older {
            members.insert(run, Member { process, environment });
        }
    }
    members
}

fn run_directories(state: &StateDir) -> Vec<RunDir> {
    match std::fs::read_dir(state.runs()) {
        Ok(entries) => {
            entries.flatten().map(|entry| RunDir(entry.path())).filter(|dir| dir.path().is_dir()).collect()
        }
        Err(cause) => {
            if cause.kind() != io::ErrorKind::NotFound {
                tracing::error!(%cause, directory = %state.runs().display(), "the runs cannot be listed");
            }
            Vec::new()
        }
    }
}

fn run_name(dir: &RunDir) -> String {
    dir.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether a keeper began the run: the journal is the first file that it writes.
pub fn has_begun(dir: &RunDir) -> bool {
    std::fs::read_dir(dir.journal()).is_ok_and(|mut entries| entries.next().is_some())
}

impl Search<'_> {
    /// Finds out what lives of a run. The lock decides; the pid file only says which process it is.
    fn holder(&mut self, dir: &RunDir) -> Holder {
        let run = run_name(dir);
        let pid_file = PidFile::read(&dir.pid_file()).unwrap_or_else(|cause| {
            let problem = format!(
                "{} could not be read: {cause}; the lock says whether a keeper lives",
                dir.pid_file().display()
            );
            tracing::warn!("{problem}");
            self.problems.push(problem);
            None
        });
        // The pid file of a session names the keeper of its connection.
        let is_others = |file: &PidFile| {
            self.keepers.values().any(|found| found.process == file.keeper && found.run_id != run)
        };
        let is_session = pid_file.as_ref().is_some_and(is_others);
        let pid_file = pid_file.filter(|_| !is_session);
        let written = pid_file.as_ref().map(|file| file.keeper.clone()).filter(platform::is_alive);
        let keeper = written.or_else(|| self.keepers.get(&run).map(|found| found.process.clone()));
        let lock = lock_state(dir.path());
        match &lock {
            Ok(LockState::Held) => return Holder::Keeper(keeper),
            // A keeper of an earlier version does not lock a directory that was deleted and made again.
            Ok(LockState::Free(_) | LockState::Unknown(_)) | Err(_) => {
                if keeper.is_some() {
                    return Holder::Keeper(keeper);
                }
            }
        }
        // The last daemon was killed during a launch, and the keeper may start only now: call it off. The file that
        // holds the lock is still open.
        let may_begin = pid_file.is_none() && !is_session && dir.meta().exists();
        if may_begin && !has_begun(dir) && !self.members.contains_key(&run) {
            if let Err(cause) = std::fs::write(dir.path().join(ABANDONED_FILE), b"") {
                tracing::warn!(run, %cause, "cannot call off a start");
            }
            return Holder::Nothing;
        }
        drop(lock);
        self.process_holder(dir, &run, pid_file)
    }

    /// A process without a keeper. After the end of a run only processes live that `stop` spares.
    fn process_holder(&self, dir: &RunDir, run: &str, pid_file: Option<PidFile>) -> Holder {
        if let Some(child) = pid_file.and_then(|file| file.child).filter(platform::is_alive) {
            return Holder::Process(child);
        }
        let Some(member) = self.members.get(run) else { return Holder::Nothing };
        let is_over = matches!(fold::exit_in(&dir.journal()), Ok(Some(_)));
        if is_over { Holder::Nothing } else { Holder::Process(member.process.clone()) }
    }

    /// Whose run it is: from its file, or, if that cannot be read, from its keeper or its processes.
    fn meta(&mut self, dir: &RunDir, read: io::Result<Option<RunMeta>>, holder: &Holder) -> Option<RunMeta> {
        let unreadable = match read {
            Ok(Some(meta)) => return Some(meta),
            Ok(None) if *holder == Holder::Nothing && !has_begun(dir) && !dir.pid_file().exists() => {
                return None;
            }
            Ok(None) => "it is missing".to_owned(),
            Err(cause) => cause.to_string(),
        };
        let path = dir.meta();
        let found = self.identify(dir, holder);
        let problem = match &found {
            Some((meta, from)) => {
                if let Err(cause) = meta.write(dir) {
                    tracing::warn!(%cause, file = %path.display(), "cannot write a file again");
                }
                format!("{} could not be read: {unreadable}; it is written again from {from}", path.display())
            }
            None => {
                format!("{} could not be read: {unreadable}; nothing says whose run it is", path.display())
            }
        };
        tracing::warn!(run = run_name(dir), "{problem}");
        self.problems.push(problem);
        found.map(|(meta, _)| meta)
    }

    fn identify(&self, dir: &RunDir, holder: &Holder) -> Option<(RunMeta, &'static str)> {
        let keeper = match holder {
            Holder::Keeper(_) => self.ask_keeper(dir),
            Holder::Process(_) | Holder::Nothing => None,
        };
        let member = || self.members.get(&run_name(dir));
        keeper
            .or_else(|| Some((self.meta_in_environment(dir, &member()?.environment, None)?, "its processes")))
            .or_else(|| Some((connection::owner_in_journal(&dir.journal())?, "its journal")))
            .or_else(|| Some((self.meta_on_connection(dir)?, "the journal of its connection")))
    }

    /// The lines of a lost session on its connection name its directory, and the directory names its task.
    fn meta_on_connection(&self, dir: &RunDir) -> Option<RunMeta> {
        let session = connection::find_session(self.state, &self.keepers, &run_name(dir))?;
        let name: TaskName = session.cwd.file_name()?.to_str()?.parse().ok()?;
        let root =
            session.cwd.ancestors().find(|path| path.file_name() == Some(OsStr::new(".agency")))?.parent()?;
        Some(RunMeta {
            root: root.to_path_buf(),
            task: name.id.0,
            slug: name.slug.as_str().to_owned(),
            driver: Driver::Acp.to_string(),
            acp: Some(session),
            ..self.unknown_meta(dir)
        })
    }

    fn ask_keeper(&self, dir: &RunDir) -> Option<(RunMeta, &'static str)> {
        let socket = KeeperSocket::connect(dir, self.epoch)
            .inspect_err(|cause| tracing::warn!(run = run_name(dir), %cause, "a keeper does not say whose run it holds"))
            .ok()?;
        let said = socket.welcome.owner.and_then(|owner| serde_json::from_value::<RunMeta>(owner).ok());
        let driver = if socket.welcome.lifeline { Driver::Terminal } else { Driver::StreamJson };
        said.or_else(|| {
            self.meta_in_environment(dir, &environment::from_wire(socket.environment), Some(driver))
        })
        .map(|meta| (meta, "its keeper"))
    }

    /// Keepers of earlier versions do not say whose run they hold, but the environment of the agent does.
    fn meta_in_environment(
        &self,
        dir: &RunDir,
        env: &Environment,
        driver: Option<Driver>,
    ) -> Option<RunMeta> {
        let text = |name: &str| env.get(OsStr::new(name))?.to_str().map(str::to_owned);
        Some(RunMeta {
            root: PathBuf::from(env.get(OsStr::new(tokens::PROJECT_ROOT))?),
            task: text(tokens::TASK_ID)?.parse().ok()?,
            slug: text(tokens::SLUG)?,
            driver: driver.map(|driver| driver.to_string()).unwrap_or_default(),
            shell: text(environment::SHELL_NAME).map(|name| ShellMeta { name, command: None }),
            ..self.unknown_meta(dir)
        })
    }

    /// The facts that hold for every run. The project and the task know the rest.
    fn unknown_meta(&self, dir: &RunDir) -> RunMeta {
        RunMeta {
            run: RunId(run_name(dir)),
            host: self.state.host().to_owned(),
            host_name: run_meta::host_name(),
            root: PathBuf::new(),
            vcs: String::new(),
            task: 0,
            slug: String::new(),
            agent: String::new(),
            driver: String::new(),
            program: String::new(),
            base_branch: None,
            acp: None,
            shell: None,
            started_at: clock::timestamp(),
            order: UNKNOWN_ORDER,
        }
    }

    /// Runs whose directory was deleted and not made again: only their processes are left.
    fn add_runs_without_directory(
        &mut self,
        runs: &mut Vec<FoundRun>,
        unexplained: &mut Vec<UnexplainedRun>,
    ) {
        let lost: BTreeMap<&String, &Member> = self
            .members
            .iter()
            .filter(|(run, _)| {
                !self.state.run(run).path().exists() && !self.state.connection(run).path().exists()
            })
            .collect();
        for (run, member) in lost {
            let (dir, holder) = (self.state.run(run), Holder::Process(member.process.clone()));
            let Some(meta) = self.meta_in_environment(&dir, &member.environment, None) else {
                unexplained.push(UnexplainedRun { run: RunId(run.clone()), holder });
                continue;
            };
            runs.push(FoundRun { dir, meta, holder });
        }
    }
}

/// The order of a run whose file was lost: before all others of its task, unless it lives.
const UNKNOWN_ORDER: u64 = 0;

/// A live run is the last of its task. Writes its number down: once it has ended, it must not count as later than the runs
/// after it.
fn number_unknown_orders(runs: &mut [FoundRun]) {
    let mut last: HashMap<(PathBuf, u64), u64> = HashMap::new();
    for found in runs.iter().filter(|found| found.meta.shell.is_none()) {
        let order = last.entry((found.meta.root.clone(), found.meta.task)).or_default();
        *order = (*order).max(found.meta.order);
    }
    let is_unknown = |found: &&mut FoundRun| {
        found.meta.shell.is_none() && found.meta.order == UNKNOWN_ORDER && found.lives()
    };
    for found in runs.iter_mut().filter(is_unknown) {
        let order = last.entry((found.meta.root.clone(), found.meta.task)).or_default();
        *order += 1;
        found.meta.order = *order;
        if let Err(cause) = found.meta.write(&found.dir) {
            tracing::warn!(run = %found.meta.run, %cause, "cannot write the number of a run");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(dir: &Path, name: &str, order: u64, holder: Holder) -> FoundRun {
        let meta = RunMeta {
            run: RunId(name.to_owned()),
            host: String::new(),
            host_name: String::new(),
            root: "/project".into(),
            vcs: String::new(),
            task: 1,
            slug: "one".to_owned(),
            agent: String::new(),
            driver: String::new(),
            program: String::new(),
            base_branch: None,
            acp: None,
            shell: None,
            started_at: String::new(),
            order,
        };
        let dir = RunDir(dir.join(name));
        std::fs::create_dir_all(dir.path()).unwrap();
        FoundRun { dir, meta, holder }
    }

    #[test]
    fn a_run_without_a_number_is_the_last_while_it_lives_and_stays_before_later_ones() {
        let dir = tempfile::tempdir().unwrap();
        let mut runs = [
            run(dir.path(), "first", 1, Holder::Nothing),
            run(dir.path(), "lost", UNKNOWN_ORDER, Holder::Keeper(None)),
        ];
        number_unknown_orders(&mut runs);
        assert_eq!(runs[1].meta.order, 2);
        let written = RunMeta::load(&runs[1].dir).unwrap().map(|meta| meta.order);
        assert_eq!(written, Some(2), "the next daemon knows the number");
        let mut runs = [
            run(dir.path(), "ended", UNKNOWN_ORDER, Holder::Nothing),
            run(dir.path(), "live", 3, Holder::Keeper(None)),
        ];
        number_unknown_orders(&mut runs);
        assert!(runs[0].meta.order < runs[1].meta.order);
    }
}
