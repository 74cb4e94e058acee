//! Memory that a pool can't have since its process is at a limit: others are relieved for it as for any other shortage.

use crate::{PAGE, used};
use leasehold::{Buffer, BufferSpec, Domain, Error, ErrorKind, Host};
use leasehold_plugin_api::{OptionValue, Options};
use leasehold_tests::child::in_child;
use leasehold_tests::fault::creator;
use leasehold_tests::victim::Victim;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most bytes of a file, and so of a segment of the pool.
const SEGMENT: u64 = 64 * PAGE;

fn limit(resource: Resource, current: u64) {
    let maximum = getrlimit(resource).maximum;
    setrlimit(resource, Rlimit { current: Some(current), maximum }).unwrap();
}

/// A host with a pool whose segments are small, and that parks nothing.
fn pool_of_small_segments() -> Host {
    limit(Resource::Fsize, SEGMENT);
    let text = |text: &str| OptionValue::Text(text.to_owned());
    let options = Options::new().with("granule", text("4 KiB")).with("park", text("0"));
    Host::builder().limit(Domain::Host, 1 << 30).with_backing("pool", creator("host-pool", options)).load().unwrap()
}

fn buffer(host: &Host) -> Buffer {
    host.buffer(&host.backing("pool").unwrap(), &BufferSpec::new(1 << 30)).unwrap()
}

/// Grows page by page until that fails.
fn fill_up(buffer: &mut Buffer) -> Error {
    loop {
        if let Err(error) = buffer.grow_to(buffer.len() + PAGE) {
            return error;
        }
    }
}

/// A pool that can open no further segment has no memory, until somebody gives some of it back.
fn check_shortage(host: &Host, native_code: i64) {
    let mut victim = buffer(host);
    let error = fill_up(&mut victim);
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    assert!(error.is_exhausted() && error.to_string().contains("no memory for 4096 bytes"), "{error}");
    assert_eq!(error.backing_error().and_then(leasehold_plugin_api::BackingError::native_code), Some(native_code));
    let before = victim.len();
    assert_eq!(used(host), before);
    let victim = Victim::register(host, Domain::Host, victim);
    let mut grows = buffer(host);
    grows.grow_to(3 * PAGE).expect("the victim gave way");
    assert_eq!((victim.len(), used(host)), (before - 3 * PAGE, before));
}

/// The error was of the backing's own kind, so that nobody was relieved and nobody preempted.
#[test]
fn a_pool_that_can_open_no_further_file_is_out_of_memory() {
    if in_child("limits::a_pool_that_can_open_no_further_file_is_out_of_memory", &[]) {
        let host = pool_of_small_segments();
        let open = u64::try_from(std::fs::read_dir("/proc/self/fd").unwrap().count()).unwrap();
        limit(Resource::Nofile, open + 3);
        check_shortage(&host, 24);
    }
}

#[test]
fn a_pool_whose_files_may_be_no_longer_so_large_is_out_of_memory() {
    if in_child("limits::a_pool_whose_files_may_be_no_longer_so_large_is_out_of_memory", &[]) {
        let host = pool_of_small_segments();
        limit(Resource::Fsize, SEGMENT - 1);
        check_shortage(&host, 27);
    }
}
