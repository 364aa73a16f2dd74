//! How many files, terminals and processes there may be.

use std::fs;

use rustix::process::{Resource, getrlimit};

use super::finding::{About, Finding};

/// The daemon raises its own limit up to the hard one, and needs a handful for every agent and viewer.
const FEW_FILES: u64 = 1024;

/// Ten agents with their terminals, and as many again.
const FEW_PTYS: u64 = 20;

const FEW_PROCESSES: u64 = 256;

pub(super) fn look() -> Vec<Finding> {
    [Some(open_files()), Some(processes()), cgroup_processes(), ptys()].into_iter().flatten().collect()
}

fn open_files() -> Finding {
    let limit = getrlimit(Resource::Nofile);
    let words = format!("open files {}, at most {}", said(limit.current), said(limit.maximum));
    match limit.maximum {
        Some(hard) if hard < FEW_FILES => About::Limits.warning(
            format!("{words}: too few for many agents"),
            "raise `nofile` in /etc/security/limits.conf, or LimitNOFILE of the service",
        ),
        _ => About::Limits.fine(words),
    }
}

fn processes() -> Finding {
    match getrlimit(Resource::Nproc).current {
        Some(limit) if limit < FEW_PROCESSES => About::Limits.warning(
            format!("processes {limit}: agents start many"),
            "raise `nproc` in /etc/security/limits.conf",
        ),
        limit => About::Limits.fine(format!("processes {}", said(limit))),
    }
}

fn said(limit: Option<u64>) -> String {
    limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string())
}

/// A container's own limit, which nobody is told about until it is reached.
fn cgroup_processes() -> Option<Finding> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = own.lines().find_map(|line| line.strip_prefix("0::"))?.trim_start_matches('/').to_owned();
    let number = |name: &str| -> Option<u64> {
        fs::read_to_string(format!("/sys/fs/cgroup/{group}/pids.{name}")).ok()?.trim().parse().ok()
    };
    left(
        "processes of this control group",
        number("current")?,
        number("max")?,
        FEW_PROCESSES,
        "raise TasksMax, or the container's limit of pids",
    )
}

fn ptys() -> Option<Finding> {
    let number = |name: &str| -> Option<u64> {
        fs::read_to_string(format!("/proc/sys/kernel/pty/{name}")).ok()?.trim().parse().ok()
    };
    if !std::path::Path::new("/dev/ptmx").exists() {
        return Some(
            About::Limits
                .broken("there is no /dev/ptmx: no terminal can be made", "mount devpts on /dev/pts"),
        );
    }
    left("terminals", number("nr")?, number("max")?, FEW_PTYS, "sysctl kernel.pty.max=4096")
}

fn left(what: &str, used: u64, most: u64, few: u64, fix: &str) -> Option<Finding> {
    let words = format!("{what}: {used} of {most} in use");
    Some(match most.saturating_sub(used) {
        0 => About::Limits.broken(words, fix),
        left if left < few => About::Limits.warning(words, fix),
        _ => About::Limits.fine(words),
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn what_is_left_decides() {
        let level = |used| left("terminals", used, 100, 20, "more").map(|finding| finding.level);
        assert_eq!(
            [level(5), level(81), level(100), level(120)],
            [Some(Level::Fine), Some(Level::Warning), Some(Level::Broken), Some(Level::Broken)]
        );
    }
}
