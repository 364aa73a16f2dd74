//! How many more agents the machine can run, measured before a start makes anything.
//!
//! Measures and refuses; changes no limit. A figure that cannot be read counts as no limit: if the kernel refuses something
//! later, the daemon undoes the start and reports the cause.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agency_api::view::{LimitedResource, ResourceUse};
use agency_api::{Failure, FailureCode};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit, getuid};

use crate::launch::LaunchError;

/// The files that the daemon holds for each run: the keeper's socket, sometimes a duplicate to wait for space in it, the
/// lifeline, and the directory of the workspace.
const FILES_OF_A_RUN: u64 = 4;

/// The files that a start needs for a moment: pipes to git or to the keeper, the journal.
const FILES_OF_A_START: u64 = 10;

/// Kept free so that people can list, attach, type and stop when the limit is reached.
const SPARE_FILES: u64 = 24;

/// Keeper and agent, and for a moment the two parents of a keeper that forks twice.
const PROCESSES_OF_A_START: u64 = 4;

/// Kept free for threads of the daemon and for the user's own commands, which can end other processes.
const SPARE_PROCESSES: u64 = 16;

/// The use of each limit.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Capacity {
    files: Option<ResourceUse>,
    terminals: Option<ResourceUse>,
    /// Each with the limit that bounds it.
    processes: Vec<(Bound, ResourceUse)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Bound {
    User,
    Group(PathBuf),
    System,
}

impl Capacity {
    /// Reads all figures.
    pub fn measure() -> Capacity {
        let groups = control_groups().into_iter().map(|(dir, figure)| (Bound::Group(dir), figure));
        let system = system_tasks();
        let user = system.and_then(|system| user_tasks(system.used)).map(|figure| (Bound::User, figure));
        Capacity {
            files: open_files(),
            terminals: terminals(),
            processes: user
                .into_iter()
                .chain(groups)
                .chain(system.map(|figure| (Bound::System, figure)))
                .collect(),
        }
    }

    /// Every figure, with the amount that one start needs.
    pub fn figures(&self) -> Vec<LimitedResource> {
        let bounded = |what: String, figure, needed, hint: &str| LimitedResource {
            what,
            figure,
            needed,
            hint: hint.to_owned(),
        };
        let files = self.files.map(|figure| {
            let needed = FILES_OF_A_RUN + FILES_OF_A_START + SPARE_FILES;
            bounded("open files of the daemon".to_owned(), figure, needed, FILES_HINT)
        });
        let terminals =
            self.terminals.map(|figure| bounded("terminals".to_owned(), figure, 1, TERMINALS_HINT));
        let needed = PROCESSES_OF_A_START + SPARE_PROCESSES;
        let processes = self.processes.iter();
        let processes =
            processes.map(|(bound, figure)| bounded(bound.counted(), *figure, needed, bound.hint()));
        files.into_iter().chain(terminals).chain(processes).collect()
    }

    /// Fails if this many agents cannot be started at once.
    pub fn check_starts(&self, starts: u64) -> Result<(), Failure> {
        let files = starts * (FILES_OF_A_RUN + FILES_OF_A_START) + SPARE_FILES;
        if let Some(figure) = self.files.filter(|figure| figure.lacks(files)) {
            return Err(no_room(format!(
                "the daemon has {} files open and may have {} (RLIMIT_NOFILE); a start needs {files} to spare",
                figure.used, figure.limit
            ))
            .hint(FILES_HINT));
        }
        if let Some(figure) = self.terminals.filter(|figure| figure.lacks(starts)) {
            return Err(no_room(format!(
                "{} terminals are open and {} may be (kernel.pty.max)",
                figure.used, figure.limit
            ))
            .hint(TERMINALS_HINT));
        }
        let needed = starts * PROCESSES_OF_A_START + SPARE_PROCESSES;
        match self.processes.iter().find(|(_, figure)| figure.lacks(needed)) {
            Some((bound, figure)) => Err(no_room(bound.filled(*figure, needed)).hint(bound.hint())),
            None => Ok(()),
        }
    }
}

const FILES_HINT: &str = "stop another task, or raise the hard limit (`ulimit -Hn`, nofile in /etc/security/limits.conf) \
                          and run `agency daemon restart` from a new login";
const TERMINALS_HINT: &str = "stop another task, or raise it: sysctl kernel.pty.max=N";

fn no_room(why: String) -> Failure {
    Failure::new("there is no room for another agent").code(FailureCode::OutOfCapacity).because(why)
}

impl Bound {
    fn counted(&self) -> String {
        match self {
            Bound::User => "your processes and threads".to_owned(),
            Bound::Group(dir) => format!("processes and threads in {}", dir.display()),
            Bound::System => "processes and threads of the system".to_owned(),
        }
    }

    fn filled(&self, figure: ResourceUse, needed: u64) -> String {
        let ResourceUse { used, limit } = figure;
        let what = match self {
            Bound::User => {
                format!("you have {used} processes and threads and may have {limit} (RLIMIT_NPROC)")
            }
            Bound::Group(dir) => format!(
                "the control group {} has {used} processes and threads and may have {limit} (pids.max)",
                dir.display()
            ),
            Bound::System => {
                format!(
                    "the system has {used} processes and threads and may have {limit} (kernel.threads-max, kernel.pid_max)"
                )
            }
        };
        format!("{what}; a start needs {needed} to spare")
    }

    fn hint(&self) -> &'static str {
        match self {
            Bound::User => {
                "stop another task, or raise the limit (`ulimit -u`, nproc in /etc/security/limits.conf) \
                 and run `agency daemon restart` from a new login"
            }
            Bound::Group(_) => {
                "stop another task, or raise the limit (TasksMax= of the systemd unit, --pids-limit of the container)"
            }
            Bound::System => "stop another task, or raise both with sysctl",
        }
    }
}

/// The hint for a limit that a start reached although the measurement allowed it.
pub fn hint(error: &LaunchError) -> Option<&'static str> {
    let (what, cause) = match error {
        LaunchError::Keeper { source, .. } => ("fork", source),
        LaunchError::Step { what, source } => (what.as_str(), source),
        LaunchError::Silent => return None,
    };
    match Errno::from_io_error(cause)? {
        Errno::MFILE => Some(FILES_HINT),
        Errno::NFILE => Some("the whole system has too many files open: close some, or sysctl fs.file-max=N"),
        Errno::NOSPC | Errno::IO | Errno::AGAIN if what == "open a terminal" => Some(TERMINALS_HINT),
        // If another keeper holds the run, the lock fails with the same number.
        Errno::AGAIN if !what.starts_with("lock") => Some(Bound::User.hint()),
        _ => None,
    }
}

/// The open files of this process, and their limit.
pub fn open_files() -> Option<ResourceUse> {
    // Without the directory that is being read.
    let used = fs::read_dir("/proc/self/fd").or_else(|_| fs::read_dir("/dev/fd")).ok()?.count() as u64 - 1;
    Some(ResourceUse { used, limit: getrlimit(Resource::Nofile).current? })
}

fn terminals() -> Option<ResourceUse> {
    let number = |name: &str| number_in(&Path::new("/proc/sys/kernel/pty").join(name)).ok();
    Some(ResourceUse { used: number("nr")?, limit: number("max")? })
}

/// Every control group around this process that has a limit. Processes that it starts count there too.
fn control_groups() -> Vec<(PathBuf, ResourceUse)> {
    let memberships = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let Some(group) = group_dir(&memberships) else { return Vec::new() };
    let limited = |dir: &Path| {
        let (used, limit) =
            (number_in(&dir.join("pids.current")).ok()?, number_in(&dir.join("pids.max")).ok()?);
        Some((dir.to_path_buf(), ResourceUse { used, limit }))
    };
    group.ancestors().take_while(|dir| *dir != Path::new("/sys/fs")).filter_map(limited).collect()
}

/// The directory of the control group that counts processes: in the unified tree, or in the older tree for `pids`.
fn group_dir(memberships: &str) -> Option<PathBuf> {
    let find = |wanted: &str| {
        memberships.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|name| name == wanted).then(|| path.trim_start_matches('/'))
        })
    };
    let older = find("pids").map(|path| Path::new("/sys/fs/cgroup/pids").join(path));
    older.or_else(|| find("").map(|path| Path::new("/sys/fs/cgroup").join(path)))
}

/// Processes and threads of all users.
fn system_tasks() -> Option<ResourceUse> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    let used = load.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()?;
    let number = |name: &str| number_in(&Path::new("/proc/sys/kernel").join(name)).ok();
    Some(ResourceUse { used, limit: number("threads-max")?.min(number("pid_max")?) })
}

/// Processes and threads of this user. Counting them is slow, so this is `None` while those of all users are far below the
/// limit.
fn user_tasks(of_all_users: u64) -> Option<ResourceUse> {
    let limit = getrlimit(Resource::Nproc).current?;
    let all_users = ResourceUse { used: of_all_users, limit };
    // The limit does not apply to root.
    if getuid().is_root() || !all_users.lacks(PROCESSES_OF_A_START * 64 + SPARE_PROCESSES) {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?;
    let used = processes.filter_map(|entry| own_threads(&entry.ok()?.path())).sum();
    Some(ResourceUse { used, limit })
}

fn own_threads(process: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let is_ours = process.metadata().ok()?.uid() == getuid().as_raw();
    // One subdirectory for each thread, and the two links of every directory.
    is_ours.then(|| process.join("task").metadata().ok().map(|tasks| tasks.nlink().saturating_sub(2)))?
}

/// Fails for `max`, which means no limit.
fn number_in(path: &Path) -> io::Result<u64> {
    fs::read_to_string(path)?.trim().parse().map_err(|err| io::Error::new(io::ErrorKind::InvalidData, err))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(used: u64, limit: u64) -> ResourceUse {
        ResourceUse { used, limit }
    }

    #[track_caller]
    fn check(capacity: &Capacity, starts: u64, cause: &str) {
        let failure = capacity.check_starts(starts).expect_err("refused");
        assert_eq!(failure.message, "there is no room for another agent");
        assert_eq!(failure.causes, [cause]);
        assert!(failure.hint.is_some());
    }

    #[test]
    fn unknown_figures_are_no_reason_to_refuse() {
        assert_eq!(Capacity::default().check_starts(1000), Ok(()));
    }

    #[test]
    fn some_files_stay_free_for_other_work() {
        let capacity = Capacity { files: Some(figure(26, 64)), ..Capacity::default() };
        assert_eq!(capacity.check_starts(1), Ok(()));
        check(
            &capacity,
            2,
            "the daemon has 26 files open and may have 64 (RLIMIT_NOFILE); a start needs 52 to spare",
        );
    }

    #[test]
    fn a_start_that_gets_no_terminal_hears_about_terminals() {
        // A private devpts that is full fails with EAGAIN, the number of a full process table.
        for errno in [Errno::NOSPC, Errno::AGAIN] {
            let error = LaunchError::Step { what: "open a terminal".into(), source: errno.into() };
            assert_eq!(hint(&error), Some(TERMINALS_HINT));
        }
        let fork = LaunchError::Step { what: "fork".into(), source: Errno::AGAIN.into() };
        assert_eq!(hint(&fork), Some(Bound::User.hint()));
    }

    #[test]
    fn the_last_terminal_can_be_had() {
        let capacity = Capacity { terminals: Some(figure(4095, 4096)), ..Capacity::default() };
        assert_eq!(capacity.check_starts(1), Ok(()));
        check(&capacity, 2, "4095 terminals are open and 4096 may be (kernel.pty.max)");
    }

    #[test]
    fn each_bound_of_processes_is_named() {
        let full = |bound| Capacity { processes: vec![(bound, figure(90, 100))], ..Capacity::default() };
        check(
            &full(Bound::User),
            1,
            "you have 90 processes and threads and may have 100 (RLIMIT_NPROC); a start needs 20 to spare",
        );
        check(
            &full(Bound::Group("/sys/fs/cgroup/user.slice".into())),
            1,
            "the control group /sys/fs/cgroup/user.slice has 90 processes and threads and may have 100 (pids.max); \
             a start needs 20 to spare",
        );
        check(
            &full(Bound::System),
            1,
            "the system has 90 processes and threads and may have 100 (kernel.threads-max, kernel.pid_max); \
             a start needs 20 to spare",
        );
    }

    #[test]
    fn the_group_is_found_in_both_kinds_of_trees() {
        let dir = |text| group_dir(text).expect("a group");
        assert_eq!(dir("0::/user.slice/a\n"), Path::new("/sys/fs/cgroup/user.slice/a"));
        assert_eq!(dir("0::/\n"), Path::new("/sys/fs/cgroup"));
        assert_eq!(
            dir("12:cpu,cpuacct:/x\n3:pids:/docker/1\n0::/\n"),
            Path::new("/sys/fs/cgroup/pids/docker/1")
        );
        assert_eq!(group_dir(""), None);
    }

    #[test]
    fn this_machine_has_room_for_one() {
        let capacity = Capacity::measure();
        assert!(
            capacity.files.is_some_and(|files| files.used >= 3 && files.limit > files.used),
            "{capacity:?}"
        );
        assert_eq!(capacity.check_starts(1), Ok(()));
        let figures = capacity.figures();
        assert!(figures.iter().all(|bounded| !bounded.figure.lacks(bounded.needed)), "{figures:?}");
    }

    #[test]
    fn a_limit_that_a_start_reaches_has_its_hint() {
        let step = |what: &str, errno: Errno| LaunchError::Step { what: what.into(), source: errno.into() };
        assert_eq!(hint(&step("open a terminal", Errno::NOSPC)), Some(TERMINALS_HINT));
        assert_eq!(hint(&step("write the pid file", Errno::NOSPC)), None);
        assert_eq!(hint(&step("lock the run: another keeper holds it", Errno::AGAIN)), None);
        assert_eq!(hint(&step("exec sh", Errno::AGAIN)), Some(Bound::User.hint()));
        assert_eq!(hint(&step("open the journal", Errno::MFILE)), Some(FILES_HINT));
    }
}
