//! CPU time and memory of the processes that hold sessions, from procfs.
//!
//! Does not count the programs inside the sessions; they are the same for all peers.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use agency_testkit::Process;

/// The kernel counts CPU time in these ticks on every architecture of today.
const TICKS_PER_SECOND: f64 = 100.0;

const CHECK_EVERY: Duration = Duration::from_millis(10);
const RESTS_WITHIN: Duration = Duration::from_secs(60);

/// Counts the CPU time of holders from one moment on.
pub struct Meter {
    processes: Vec<Process>,
    before: f64,
    /// Holders that have used no CPU for this long have finished their work.
    quiet: Duration,
}

/// The cost of a piece of work.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    pub cpu: Duration,
    /// When the holders stopped using CPU.
    pub rested: Instant,
}

impl Meter {
    /// Waits until the holders have finished earlier work, and counts from then on.
    pub fn of(processes: Vec<Process>, quiet: Duration) -> Meter {
        let (before, _) = wait_for_rest(&processes, quiet);
        Meter { processes, before, quiet }
    }

    /// Waits until the holders have finished all work since then, postponed work included.
    pub fn spent(&self) -> Spent {
        let (seconds, rested) = wait_for_rest(&self.processes, self.quiet);
        Spent { cpu: Duration::from_secs_f64((seconds - self.before).max(0.0)), rested }
    }
}

/// Seconds of CPU time that these processes have used since they began.
pub fn cpu_of(processes: &[Process]) -> f64 {
    let times = processes
        .iter()
        .filter(|process| process.is_alive())
        .filter_map(|process| cpu_seconds(&fs::read_to_string(format!("/proc/{}/stat", process.pid)).ok()?));
    times.sum()
}

/// Waits until the CPU time stops growing; returns it, and when it last grew.
fn wait_for_rest(processes: &[Process], quiet: Duration) -> (f64, Instant) {
    let deadline = Instant::now() + RESTS_WITHIN;
    let (mut used, mut since) = (cpu_of(processes), Instant::now());
    while since.elapsed() < quiet && Instant::now() < deadline {
        std::thread::sleep(CHECK_EVERY);
        let now = cpu_of(processes);
        if now > used {
            (used, since) = (now, Instant::now());
        }
    }
    (used, since)
}

/// User and system time, of all threads, also those that ended.
fn cpu_seconds(stat: &str) -> Option<f64> {
    // The name may contain parentheses; the fields begin after the last one.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS_PER_SECOND)
}

/// The activity of idle processes, measured far more precisely than in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Idle {
    pub cpu_percent: f64,
    pub wakeups_per_second: f64,
}

pub fn idle(processes: &[Process], window: Duration) -> Idle {
    let began = Instant::now();
    let before = threads_of(processes);
    std::thread::sleep(window);
    activity_between(&before, &threads_of(processes), began.elapsed())
}

/// For each thread: nanoseconds on a CPU, and how often the scheduler put it on one.
type Threads = BTreeMap<PathBuf, (u64, u64)>;

/// Compares thread by thread: a sum would lose the past of a thread that ended, and hide the work of the others.
fn activity_between(before: &Threads, after: &Threads, time: Duration) -> Idle {
    let done = after.iter().map(|(thread, (nanos, runs))| {
        let (nanos_before, runs_before) = before.get(thread).copied().unwrap_or_default();
        (nanos.saturating_sub(nanos_before), runs.saturating_sub(runs_before))
    });
    let (nanos, runs) = done.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let seconds = time.as_secs_f64();
    Idle { cpu_percent: nanos as f64 / 1e9 / seconds * 100.0, wakeups_per_second: runs as f64 / seconds }
}

fn threads_of(processes: &[Process]) -> Threads {
    let tasks = processes.iter().flat_map(|process| {
        let tasks = fs::read_dir(format!("/proc/{}/task", process.pid)).into_iter().flatten();
        tasks.filter_map(|task| Some(task.ok()?.path()))
    });
    let threads = tasks.filter_map(|path| {
        let activity = activity(&fs::read_to_string(path.join("schedstat")).ok()?)?;
        Some((path, activity))
    });
    threads.collect()
}

fn activity(schedstat: &str) -> Option<(u64, u64)> {
    let mut fields = schedstat.split_whitespace().map(|field| field.parse().ok());
    let (on_cpu, _waited, times) = (fields.next()??, fields.next()?, fields.next()??);
    Some((on_cpu, times))
}

/// Proportional set size: each process counts its part of a shared page.
pub fn pss_kb(processes: &[Process]) -> f64 {
    processes.iter().map(one_pss_kb).sum()
}

fn one_pss_kb(process: &Process) -> f64 {
    let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", process.pid)).unwrap_or_default();
    pss_in(&rollup).unwrap_or(0.0)
}

fn pss_in(rollup: &str) -> Option<f64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "42 (a) b) (c) S 1 42 42 0 -1 4194560 100 0 0 0 150 50 7 8 20 0 1 0 1000 0 0";
        assert_eq!(cpu_seconds(stat), Some(2.0));
        assert_eq!(cpu_seconds("42 (short) S 1"), None);
    }

    #[test]
    fn a_thread_that_ends_hides_nothing() {
        let threads = |list: &[(&str, (u64, u64))]| -> Threads {
            list.iter().map(|(name, activity)| (PathBuf::from(name), *activity)).collect()
        };
        let before = threads(&[("stays", (1_000_000_000, 5)), ("ends", (9_000_000_000, 900))]);
        let after = threads(&[("stays", (1_020_000_000, 15)), ("new", (30_000_000, 10))]);
        let idle = activity_between(&before, &after, Duration::from_secs(5));
        assert_eq!(idle, Idle { cpu_percent: 1.0, wakeups_per_second: 4.0 });
    }

    #[test]
    fn activity_is_read_from_the_first_and_the_last_field() {
        assert_eq!(activity("1200 50 7\n"), Some((1200, 7)));
        assert_eq!(activity(""), None);
    }

    #[test]
    fn pss_is_read_and_its_parts_are_not() {
        let rollup =
            "55d0-7ffe ---p 00000000 00:00 0 [rollup]\nRss:  2048 kB\nPss:  182 kB\nPss_Dirty: 90 kB\n";
        assert_eq!(pss_in(rollup), Some(182.0));
        assert_eq!(pss_in(""), None);
    }

    #[test]
    fn a_meter_counts_the_cpu_time_since_it_was_made() {
        let own = Process::find(std::process::id() as i32).unwrap();
        let meter =
            Meter { processes: vec![own], before: cpu_of(&[own]) - 1.0, quiet: Duration::from_millis(50) };
        assert!(meter.spent().cpu >= Duration::from_secs(1));
    }

    #[test]
    fn our_own_process_has_a_size() {
        let own = Process::find(std::process::id() as i32).unwrap();
        assert!(pss_kb(&[own]) > 0.0);
    }
}
