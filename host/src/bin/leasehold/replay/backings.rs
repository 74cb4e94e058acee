//! Chooses the backings that a trace is replayed on, and sets their budgets.

use super::arguments::ReplayArguments;
use super::outcome::FailedRun;
use super::strategy::StrategyName;
use super::trace::Trace;
use crate::failure::Failure;
use crate::{output, session};
use leasehold::{BackingHandle, Host, Requirements};
use std::path::PathBuf;

/// The budget of the synthetic workload, unless `--budget` says otherwise: small enough that requests compete for it on any
/// machine.
const SYNTHETIC_BUDGET_BYTES: u64 = 512 << 20;
/// The budget of a trace, unless `--budget` says otherwise: prealloc uses the whole budget.
const TRACE_BUDGET_BYTES: u64 = 4 << 30;

/// The host under the budget that was asked for, and the backings to run on.
pub(super) struct Chosen {
    pub(super) host: Host,
    pub(super) backings: Vec<BackingHandle>,
    /// Backings that were named and are not ready.
    pub(super) failed: Vec<FailedRun>,
}

pub(super) fn choose(registry: Option<PathBuf>, arguments: &ReplayArguments, trace: &Trace) -> Result<Chosen, Failure> {
    let host = session::builder(registry)?.load()?;
    let (mut backings, mut failed) = (Vec::new(), Vec::new());
    for name in &arguments.backing {
        match named(&host, name).and_then(|backing| check_writable(backing, arguments)) {
            Ok(backing) => backings.push(backing),
            Err(Failure::DoesNotHold(reason)) => {
                failed.push(FailedRun { backing: name.clone(), strategy: None, reason });
            }
            Err(unusable) => return Err(unusable),
        }
    }
    if arguments.backing.is_empty() {
        backings.push(best(&host, arguments, trace)?);
    }
    set_budgets(&host, arguments, &backings)?;
    Ok(Chosen { host, backings, failed })
}

/// A name that no backing has is a mistake in what was asked; one that is not ready does not hold.
fn named(host: &Host, name: &str) -> Result<BackingHandle, Failure> {
    let is_known = host.backings().iter().any(|report| report.name == name);
    host.backing(name).map_err(|error| if is_known { error.into() } else { Failure::unusable(error) })
}

/// Rows are written, unless `--no-touch` is given.
fn check_writable(backing: BackingHandle, arguments: &ReplayArguments) -> Result<BackingHandle, Failure> {
    let capabilities = backing.capabilities();
    if arguments.no_touch || capabilities.host_access().is_direct() || capabilities.has_transfer() {
        return Ok(backing);
    }
    Err(Failure::does_not_hold("its memory can't be written from the CPU; pass --no-touch to commit without writing"))
}

/// The best backing that fits; where something is to be shared, the best that can share it.
fn best(host: &Host, arguments: &ReplayArguments, trace: &Trace) -> Result<BackingHandle, Failure> {
    let requirements = Requirements::growable();
    let requirements = if arguments.no_touch { requirements } else { requirements.copies() };
    let shares = trace.has_prefixes() || arguments.strategy.contains(&StrategyName::Sharing);
    if shares && let Ok(found) = host.find(&requirements.clone().shared_mapping()) {
        return Ok(found);
    }
    Ok(host.find(&requirements)?)
}

fn set_budgets(host: &Host, arguments: &ReplayArguments, backings: &[BackingHandle]) -> Result<(), Failure> {
    let most = if arguments.trace.is_none() { SYNTHETIC_BUDGET_BYTES } else { TRACE_BUDGET_BYTES };
    for domain in backings.iter().map(BackingHandle::domain) {
        let limit = host.snapshot().domain(domain).map_or(0, |books| books.limit_bytes);
        let budget = arguments.budget.map_or(most.min(limit), |budget| budget.as_u64());
        host.governor().set_limit(domain, budget)?;
    }
    Ok(())
}

/// Says which library each backing came from.
pub(super) fn say_where_from(host: &Host, backings: &[BackingHandle]) {
    for report in host.backings() {
        if backings.iter().any(|backing| backing.name() == report.name) {
            let door = report.door.map(|door| format!(" (door: {door})")).unwrap_or_default();
            output::say(&format!("backing: {} from {}{door}", report.name, output::clean(&report.library)));
        }
    }
}
