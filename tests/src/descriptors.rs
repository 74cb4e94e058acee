//! The file descriptors of this process: a limit on them, for a test in a process of its own.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::os::fd::AsRawFd;

/// Lets this process open at most so many files more, by its soft limit.
///
/// # Panics
///
/// Where the system refuses.
pub fn limit_descriptors(more: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("the hard limit is allowed");
    let first_free = File::open("/dev/null").expect("there is room now").as_raw_fd();
    let current = u64::try_from(first_free).expect("it is open") + more;
    setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum }).expect("less is allowed");
}
