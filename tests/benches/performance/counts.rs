//! What can be counted exactly: kernel mappings of a region, calls to a backing, system calls.

use crate::child;
use crate::growth::{TOKEN, WHOLE};
use crate::hosts::{BUDGET, GIB, MIB, Single};
use leasehold::{BufferSpec, Domain, GrowthPolicy, Host};
use leasehold_host_mmap::{HostMmap, HostMmapOptions};
use leasehold_plugin_api::{
    AllocateRequest, Allocation, Backing, BackingError, Change, CommitRange, Description, Region, RegionId,
    ReleaseOutcome, ReleaseTarget, ReserveRequest, VirtualBacking,
};
use std::fs;
use std::io::{Write, stdout};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const STEP: u64 = 2 * MIB;

/// A list of counts.
pub(crate) fn describe() -> String {
    let exact = commit_calls(GrowthPolicy::Exact);
    let stepped = commit_calls(GrowthPolicy::Step(STEP));
    let system = system_calls().unwrap_or_else(|why| format!("not counted: {why}"));
    format!(
        "* kernel mappings of a region while it grows to 1 GiB in 2 MiB steps: at most {}\n\
         * calls of `commit` for 500 MiB, 4 KiB at a time: Exact {exact}, Step(2 MiB) {stepped}\n\
         * system calls for 512 steps of 2 MiB: {system}",
        most_mappings()
    )
}

fn most_mappings() -> usize {
    let host = Single::loaded();
    let mut buffer = host.buffer(GIB, GrowthPolicy::Exact);
    let base = buffer.base().get();
    let mut most = 0;
    for bytes in steps() {
        buffer.grow_to(bytes).expect("there is memory");
        most = most.max(mappings_within(base, base + GIB));
    }
    most
}

fn steps() -> impl Iterator<Item = u64> {
    (1..=GIB / STEP).map(|count| count * STEP)
}

/// Lines of /proc/self/maps that reach into the range.
fn mappings_within(from: u64, to: u64) -> usize {
    let maps = fs::read_to_string("/proc/self/maps").expect("there is a /proc");
    let ends = maps.lines().filter_map(|line| line.split_whitespace().next()?.split_once('-'));
    let number = |text| u64::from_str_radix(text, 16).expect("the kernel writes hexadecimal numbers");
    ends.filter(|(begin, end)| number(begin) < to && number(end) > from).count()
}

/// host-mmap, with its calls of `commit` counted.
struct Counting {
    inner: HostMmap,
    commits: Arc<AtomicU64>,
}

fn commit_calls(policy: GrowthPolicy) -> u64 {
    let commits = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&commits);
    let host = Host::builder()
        .limit(Domain::Host, BUDGET)
        .with_backing("counting", |_| {
            let inner = HostMmap::new(&HostMmapOptions::default())?;
            Ok(Box::new(Counting { inner, commits: counted }))
        })
        .load()
        .expect("the backing is ready");
    let backing = host.backing("counting").expect("it is there");
    let spec = BufferSpec::new(WHOLE).growth(policy);
    let mut buffer = host.buffer(&backing, &spec).expect("address space costs nothing");
    (1..=WHOLE / TOKEN).for_each(|count| buffer.grow_to(count * TOKEN).expect("there is memory"));
    commits.load(Ordering::Relaxed)
}

impl Backing for Counting {
    fn describe(&self) -> Description {
        self.inner.describe()
    }

    fn allocate(&self, request: &AllocateRequest) -> Result<Allocation, BackingError> {
        self.inner.allocate(request)
    }

    fn release(&self, target: ReleaseTarget) -> ReleaseOutcome {
        self.inner.release(target)
    }

    fn as_virtual_backing(&self) -> Option<&dyn VirtualBacking> {
        Some(self)
    }
}

impl VirtualBacking for Counting {
    fn granularity(&self) -> u64 {
        self.inner.granularity()
    }

    fn reserve(&self, request: &ReserveRequest) -> Result<Region, BackingError> {
        self.inner.reserve(request)
    }

    fn commit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.inner.commit(ranges)
    }

    fn decommit(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        self.inner.decommit(ranges)
    }

    fn cost(&self, ranges: &[CommitRange]) -> Result<Change, BackingError> {
        self.inner.cost(ranges)
    }

    fn committed_bytes(&self, region: RegionId) -> Result<u64, BackingError> {
        self.inner.committed_bytes(region)
    }
}

const BEGIN: &str = "growth begins";
const END: &str = "growth ends";

/// Grows between two marks that a tracer sees.
pub(crate) fn steps_in_this_process() {
    let host = Single::loaded();
    let mut buffer = host.buffer(GIB, GrowthPolicy::Exact);
    mark(BEGIN);
    steps().for_each(|bytes| buffer.grow_to(bytes).expect("there is memory"));
    mark(END);
}

fn mark(text: &str) {
    println!("{text}");
    stdout().flush().expect("someone listens");
}

/// Counts between the marks by strace, where that is installed and may trace.
fn system_calls() -> Result<String, String> {
    let trace = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let (program, arguments) = child::command(&["steps"]);
    let output = Command::new("strace").arg("-f").arg("-o").arg(trace.path()).arg(program).args(arguments).output();
    let output = output.map_err(|error| format!("strace can't be run ({error})"))?;
    if !output.status.success() {
        return Err(format!("strace failed ({})", output.status));
    }
    let text = fs::read_to_string(trace.path()).map_err(|error| error.to_string())?;
    let (_, text) = text.split_once(BEGIN).ok_or("no mark in the trace")?;
    let (text, _) = text.split_once(END).ok_or("no mark in the trace")?;
    // The rest of the line of the first mark, and the begin of the line of the second.
    let calls = text.lines().count().saturating_sub(2);
    let protects = text.matches(" mprotect(").count();
    Ok(format!("{calls}, of which {protects} are `mprotect`"))
}
