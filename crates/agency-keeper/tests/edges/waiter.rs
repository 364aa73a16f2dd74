//! A program that waits in a given way: this test binary again, with a variable that names the way.
//!
//! Tests run in their own threads, but a probe looks at main threads. So a forked child waits: it has one thread.

use std::os::fd::AsRawFd;

use agency_api::keeper::Start;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};

use crate::harness::Run;

const HOW: &str = "AGENCY_TEST_WAITS";
const A_WHILE: Timespec = Timespec { tv_sec: 1000, tv_nsec: 0 };

/// Starts the program, which prints "waiting" and whose only child waits.
pub(crate) fn waiting(how: &str) -> Run {
    let program = std::env::current_exe().expect("our own file");
    let program = program.to_str().expect("a readable path");
    let argv = [program, "--exact", "waiter::waits_in_the_given_way", "--nocapture"];
    Run::with(&argv, |spec| {
        if let Start::Spawn { env, .. } = &mut spec.start {
            env.push((HOW.into(), how.into()));
        }
    })
}

/// Not a test by itself: the program that the other tests start.
#[test]
#[allow(unsafe_code)]
fn waits_in_the_given_way() {
    let Ok(how) = std::env::var(HOW) else { return };
    println!("waiting");
    // SAFETY: the child only waits and ends; no lock that another thread holds is touched.
    match unsafe { libc::fork() } {
        0 => {
            wait(&how);
            // SAFETY: this only ends the process.
            unsafe { libc::_exit(0) }
        }
        child => {
            let child = rustix::process::Pid::from_raw(child).expect("a child");
            rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty()).expect("it ends");
        }
    }
}

fn wait(how: &str) {
    let terminal = std::io::stdin();
    let (pipe, _writer) = std::io::pipe().expect("a pipe");
    let timeout = how.ends_with("-a-while").then_some(&A_WHILE);
    match how.trim_end_matches("-a-while") {
        "read" => {
            rustix::io::read(&terminal, &mut [0; 1]).expect("a key");
        }
        "poll" => wait_in_poll(&mut [PollFd::new(&terminal, PollFlags::IN)], timeout),
        "poll-pipe" => wait_in_poll(&mut [PollFd::new(&pipe, PollFlags::IN)], timeout),
        "poll-with-pipe" => {
            let mut fds = [PollFd::new(&pipe, PollFlags::IN), PollFd::new(&terminal, PollFlags::IN)];
            wait_in_poll(&mut fds, timeout);
        }
        "inner-terminal" => read_inner_terminal(),
        "select" => select(&[0], &[]),
        "select-as-editors-do" => select(&[0], &[0]),
        "select-with-pipe" => select(&[0, pipe.as_raw_fd()], &[]),
        "epoll" => wait_in_epoll(&[&terminal], timeout),
        "epoll-with-pipe" => wait_in_epoll(&[&terminal, &pipe], timeout),
        "another-thread" => std::thread::park(),
        other => panic!("unknown way to wait: {other}"),
    }
}

fn wait_in_poll(fds: &mut [PollFd<'_>], timeout: Option<&Timespec>) {
    poll(fds, timeout).expect("woken");
}

fn wait_in_epoll(fds: &[&dyn std::os::fd::AsFd], timeout: Option<&Timespec>) {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll descriptor");
    for fd in fds {
        epoll::add(&epoll, fd.as_fd(), epoll::EventData::new_u64(0), epoll::EventFlags::IN).expect("watched");
    }
    let mut events: Vec<epoll::Event> = Vec::with_capacity(1);
    epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), timeout).expect("woken");
}

fn read_inner_terminal() {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let master = openpt(flags).expect("a terminal");
    unlockpt(&master).expect("it can be opened");
    let name = ptsname(&master, Vec::new()).expect("it has a name");
    let terminal = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its other end");
    rustix::io::read(&terminal, &mut [0; 1]).expect("a key");
}

#[allow(unsafe_code)]
fn select(read: &[i32], exceptions: &[i32]) {
    // SAFETY: an `fd_set` of zeros is empty, and each descriptor is small enough for it.
    unsafe {
        let mut sets: [libc::fd_set; 2] = std::mem::zeroed();
        for (fds, set) in [read, exceptions].into_iter().zip(&mut sets) {
            fds.iter().for_each(|fd| libc::FD_SET(*fd, set));
        }
        let count = read.iter().chain(exceptions).max().map_or(0, |fd| fd + 1);
        let [read, exceptions] = &mut sets;
        libc::select(count, read, std::ptr::null_mut(), exceptions, std::ptr::null_mut());
    }
}
