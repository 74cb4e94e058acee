//! From a registry file to backings that are ready: which library is loaded, which of its backings, and what becomes of
//! an entry that can't be had while the others go on.

mod availability;
mod choosing;
mod elsewhere;
mod files;
mod libraries;
mod names;
mod options;

use leasehold::{BackingReport, BackingState, BufferSpec, ErrorKind, Host, Stage};
use leasehold_tests::plugins;

const ROGUE: &str = "leasehold_rogue";

fn rogue() -> String {
    plugins::text(&plugins::library(ROGUE))
}

fn report(host: &Host, name: &str) -> BackingReport {
    host.backings().into_iter().find(|report| report.name == name).expect("is reported")
}

fn device_name(host: &Host, name: &str) -> String {
    report(host, name).description.expect("was asked").device_name
}

/// A buffer on the backing grows, and holds what was written.
fn assert_works(host: &Host, name: &str) {
    let backing = host.backing(name).expect("is ready");
    let mut buffer = host.buffer(&backing, &BufferSpec::new(1 << 20)).expect("is admitted");
    buffer.grow_to(10_000).expect("grows");
    buffer.as_mut_slice().expect("is memory of the host").fill(7);
    assert_eq!(buffer.as_slice().expect("is memory of the host")[9_999], 7);
}

/// Rejected at this stage; answers the reason.
fn rejection(host: &Host, name: &str, stage: Stage) -> String {
    let report = report(host, name);
    let BackingState::Rejected { stage: at, reason } = report.state else { panic!("{name}: {:?}", report.state) };
    assert_eq!(at, stage, "{name}: {reason}");
    assert_eq!(report.stages.last().expect("has stages").stage, stage);
    let error = host.backing(name).expect_err("is not handed out");
    assert_eq!(error.kind(), ErrorKind::NoBackingFits);
    assert_eq!(error.to_string(), format!("backing {name:?} is rejected: {reason}"));
    reason
}
