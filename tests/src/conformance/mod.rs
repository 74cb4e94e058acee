//! What the contract asks of every backing, as named cases that any backing can be put through.
//!
//! ```text
//!   &dyn Backing ─► Subject ─► CASES, one after the other ─► Report: passed, failed with why, unsupported with why
//!   what it lacks, with reasons ──────────────────────────►        stale: offered after all, or absent without a reason
//! ```
//!
//! * `capability`: what a case may need, and what our own backings lack of it.
//! * `subject`: the backing, numbers for what is made of it, and what is to be given back.
//! * `bytes`: reading and writing memory by address.
//! * `cases`: the list. `basics`, `regions`, `ranges`, `contents`: plain and virtual memory. `prefixes`, `mapping`,
//!   `mapping_refusals`: shared mapping.
//! * `report`: what came of it.
//!
//! Input: a backing that nobody else uses meanwhile, with enough budget for [`MOST_BYTES`]: as a trait ([`run`]), or of a
//! host in the making ([`of_host`]), through its library's interface where it is loaded. It is called directly, as no host
//! ever would. A case gives back what it made; a backing that can't take it back fails the case. Nothing here panics
//! on what a backing answers, and a panic of the backing fails the case. One thread.

mod basics;
mod bytes;
mod capability;
mod cases;
mod contents;
mod mapping;
mod mapping_refusals;
mod prefixes;
mod ranges;
mod regions;
mod report;
mod subject;

pub use capability::{CUDA_VMM_LACKS, Capability, HOST_MMAP_LACKS};
pub use cases::{CASES, Case};
pub use report::{Outcome, Report, Verdict};

use leasehold::{Host, HostBuilder};
use leasehold_plugin_api::Backing;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use subject::Subject;

/// The most physical memory that a case takes at once, for granules of up to 2 MiB.
pub const MOST_BYTES: u64 = 256 << 20;

/// How a case ends: well, or with what was wrong.
type Check = Result<(), String>;

/// Fails the case with the words unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($words:tt)+) => {
        if !$condition {
            return Err(format!($($words)+));
        }
    };
}
use ensure;

/// Puts a backing through every case. `lacks` are the capabilities that it is known not to offer, each with the reason; an
/// expectation that does not hold, either way, is in the report.
#[must_use]
pub fn run(backing: &dyn Backing, lacks: &[(Capability, &str)]) -> Report {
    let mut report = Report::new(backing, lacks);
    for case in CASES {
        let missing = case.needs.iter().find(|capability| !capability.is_offered_by(backing));
        let verdict = match missing {
            Some(capability) => Verdict::Unsupported { capability: *capability, reason: reason(*capability, lacks) },
            None => match examine(backing, case) {
                Ok(()) => Verdict::Passed,
                Err(why) => Verdict::Failed(why),
            },
        };
        report.outcomes.push(Outcome { case: case.name, verdict });
    }
    report
}

/// Puts the one backing of a host through every case before the host uses it.
///
/// # Errors
///
/// Why there is no such host, or no backing in it.
pub fn of_host(builder: HostBuilder, lacks: &'static [(Capability, &'static str)]) -> Result<(Host, Report), String> {
    let found = Rc::new(RefCell::new(None));
    let report = Rc::clone(&found);
    let builder = builder.examine(move |_, backing| *report.borrow_mut() = Some(run(backing, lacks)));
    let host = builder.survey().map_err(|error| error.to_string())?;
    let report = found.take().ok_or_else(|| format!("{:?}", host.backings()))?;
    Ok((host, report))
}

fn reason(capability: Capability, lacks: &[(Capability, &str)]) -> String {
    let known = lacks.iter().find(|(lacked, _)| *lacked == capability);
    known.map_or_else(|| "no reason is known".to_owned(), |(_, reason)| (*reason).to_owned())
}

fn examine(backing: &dyn Backing, case: &Case) -> Check {
    let subject = Subject::new(backing);
    let outcome = contain(|| (case.check)(&subject));
    // A failure to give back is reported only where the case itself found nothing wrong.
    outcome.and(contain(|| subject.give_everything_back()))
}

fn contain(check: impl FnOnce() -> Check) -> Check {
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|payload| {
        let words = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let words = words.or_else(|| payload.downcast_ref::<String>().cloned());
        Err(format!("it panicked: {}", words.unwrap_or_default()))
    })
}
