//! Carries `leasehold replay` out: reads or draws the trace, runs each strategy on each backing, prints the report.

use super::arguments::ReplayArguments;
use super::backings::{self, Chosen};
use super::layout::unshared;
use super::options::ReplayOptions;
use super::outcome::{FailedRun, Run, RunSummary, Runs};
use super::report::{ReportFile, page};
use super::results;
use super::scheduler::replay;
use super::setup::Setup;
use super::store::CacheStore;
use super::strategy::{ReallocatedStore, ReservedStore, Setting, SharingStore, StrategyName, Touch};
use super::summary::ReplayReport;
use super::table;
use super::trace::Trace;
use super::trace::synthetic::SyntheticWorkload;
use crate::failure::Failure;
use crate::output;
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use leasehold::{BackingHandle, Host};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Requests of the synthetic workload, unless `--requests` says otherwise.
const SYNTHETIC_REQUESTS: u64 = 128;
/// Its lengths' spread: about as uneven as conversations are.
const SYNTHETIC_SIGMA: f64 = 1.0;

pub(crate) fn run(registry: Option<PathBuf>, arguments: &ReplayArguments) -> Result<(), Failure> {
    let trace = trace(arguments)?;
    let Chosen { host, backings, failed } = backings::choose(registry, arguments, &trace)?;
    backings::say_where_from(&host, &backings);
    let setup = Setup::new(arguments, &trace, &host, &backings).map_err(Failure::does_not_hold)?;
    let report = report_file(arguments, &host)?;
    let mut runs = Runs { finished: Vec::new(), failed };
    let outcome = run_all(&host, &backings, &trace, arguments, &mut runs);
    // What was measured before a failure is not lost.
    if outcome.is_ok() || !runs.is_empty() {
        print(&setup, &runs, arguments)?;
    }
    if let Some(report) = report {
        write_report(report, &setup, &runs)?;
    }
    outcome?;
    runs.hold()
}

/// Runs every strategy on every backing. A run that fails is kept with its reason, and the others go on.
fn run_all(
    host: &Host,
    backings: &[BackingHandle],
    trace: &Trace,
    arguments: &ReplayArguments,
    runs: &mut Runs,
) -> Result<(), Failure> {
    for backing in backings {
        say_what_is_unshared(arguments, trace, backing)?;
        for strategy in strategies(arguments, trace, backing) {
            match run_one(host, backing, strategy, trace, arguments) {
                Ok(run) => runs.finished.push(run),
                Err(Failure::DoesNotHold(reason)) => runs.failed.push(failed(host, backing, strategy, reason)),
                Err(unusable) => return Err(unusable),
            }
        }
    }
    Ok(())
}

/// A run that failed, once what it left has been given back as far as that can be.
fn failed(host: &Host, backing: &BackingHandle, strategy: StrategyName, reason: String) -> FailedRun {
    // A backing that fails may fail here too: what stays charged is reported.
    host.reap();
    let _ = host.trim(backing, u64::MAX);
    let left = match charged(host, backing) {
        0 => String::new(),
        bytes => format!("; {bytes} bytes stay charged to {}, which later runs there lack", backing.domain()),
    };
    FailedRun { backing: backing.name().to_owned(), strategy: Some(strategy), reason: reason + &left }
}

/// What the backing's domain has charged.
fn charged(host: &Host, backing: &BackingHandle) -> u64 {
    host.snapshot().domain(backing.domain()).map_or(0, |books| books.used_bytes)
}

/// The file for the report, if one is asked for; a path that can't be written is refused before any run.
fn report_file(arguments: &ReplayArguments, host: &Host) -> Result<Option<ReportFile>, Failure> {
    let registry = host.registry().map(Path::to_owned);
    let libraries = host.backings().into_iter().map(|report| PathBuf::from(report.library));
    let read: Vec<_> = arguments.trace.iter().cloned().chain(registry).chain(libraries).collect();
    let file = arguments.report.as_ref().map(|path| ReportFile::open(path, &read));
    file.transpose().map_err(Failure::unusable)
}

fn write_report(report: ReportFile, setup: &Setup, runs: &Runs) -> Result<(), Failure> {
    let page = page(setup, runs).map_err(Failure::does_not_hold)?;
    let path = report.write(&page).map_err(Failure::unusable)?;
    output::say(&output::clean(&format!("report: {}", path.display())));
    Ok(())
}

/// Reads the trace, or draws one.
fn trace(arguments: &ReplayArguments) -> Result<Trace, Failure> {
    let Some(path) = &arguments.trace else {
        let workload = SyntheticWorkload {
            seed: arguments.seed,
            requests: arguments.requests.unwrap_or(SYNTHETIC_REQUESTS),
            mean_prompt_tokens: arguments.mean_prompt,
            mean_output_tokens: arguments.mean_output,
            sigma: SYNTHETIC_SIGMA,
            requests_per_second: arguments.rate,
        };
        return workload.draw().map_err(Failure::unusable);
    };
    let mut trace = Trace::read(path).map_err(Failure::unusable)?;
    if let Some(requests) = arguments.requests {
        trace.requests.truncate(usize::try_from(requests).unwrap_or(usize::MAX));
    }
    Ok(trace)
}

fn granule(backing: &BackingHandle) -> u64 {
    backing.capabilities().granularity().unwrap_or(1)
}

fn touch(arguments: &ReplayArguments, backing: &BackingHandle) -> Touch {
    if arguments.no_touch { Touch::Nothing } else { Touch::rows_of(backing) }
}

/// Says why sharing shares nothing, where it was asked for and can't.
fn say_what_is_unshared(arguments: &ReplayArguments, trace: &Trace, backing: &BackingHandle) -> Result<(), Failure> {
    if !arguments.strategy.contains(&StrategyName::Sharing) {
        return Ok(());
    }
    let why = match trace.has_prefixes() {
        false => Some("no request says what it shares (hash_ids)".to_owned()),
        true => unshared(arguments.layout, &arguments.model, granule(backing)).map_err(Failure::unusable)?,
    };
    if let Some(why) = why {
        output::say(&format!("sharing on {} shares nothing: {why}", backing.name()));
    }
    Ok(())
}

/// Those that were asked for; else all that the backing can serve, sharing only where there is something to share.
fn strategies(arguments: &ReplayArguments, trace: &Trace, backing: &BackingHandle) -> Vec<StrategyName> {
    let capabilities = backing.capabilities();
    let serves = |strategy: &StrategyName| match strategy {
        StrategyName::Leasehold => capabilities.has_virtual_backing(),
        StrategyName::Prealloc | StrategyName::Realloc => true,
        StrategyName::Sharing => {
            capabilities.has_virtual_backing() && capabilities.has_shared_mapping() && trace.has_prefixes()
        }
    };
    match arguments.strategy.as_slice() {
        [] => StrategyName::value_variants().iter().copied().filter(serves).collect(),
        asked => asked.to_vec(),
    }
}

fn run_one(
    host: &Host,
    backing: &BackingHandle,
    strategy: StrategyName,
    trace: &Trace,
    arguments: &ReplayArguments,
) -> Result<Run, Failure> {
    let cache = arguments.layout.cache(&arguments.model).map_err(Failure::unusable)?;
    let before = charged(host, backing);
    let setting = Setting::new(host, backing.clone(), cache, arguments.context(), touch(arguments, backing));
    let setting = setting.map_err(Failure::unusable)?;
    host.governor().restart_peak(backing.domain())?;
    let grows = backing.capabilities().has_virtual_backing();
    let summary = match strategy {
        StrategyName::Leasehold => {
            serve(&mut ReservedStore::growing(setting, arguments.growth), strategy, trace, arguments)
        }
        StrategyName::Prealloc if grows => serve(&mut ReservedStore::preallocated(setting), strategy, trace, arguments),
        StrategyName::Prealloc => serve(&mut ReallocatedStore::preallocated(setting), strategy, trace, arguments),
        StrategyName::Realloc => serve(&mut ReallocatedStore::new(setting), strategy, trace, arguments),
        StrategyName::Sharing => {
            let unit = cache.unit_tokens(granule(backing)).map_err(Failure::unusable)?;
            serve(&mut SharingStore::new(setting, arguments.growth, unit)?, strategy, trace, arguments)
        }
    }?;
    // What a pool parks is no reason to doubt the run, nor to favour the next one.
    host.trim(backing, u64::MAX)?;
    let left = charged(host, backing).saturating_sub(before);
    if left > 0 {
        return Err(Failure::does_not_hold(format!("{left} bytes stayed charged after it")));
    }
    Ok(Run { backing: backing.name().to_owned(), strategy, summary })
}

/// Serves the whole trace, with a progress bar on a terminal.
fn serve<S: CacheStore>(
    store: &mut S,
    strategy: StrategyName,
    trace: &Trace,
    arguments: &ReplayArguments,
) -> Result<RunSummary, Failure> {
    let options = ReplayOptions {
        step: Duration::from_millis(arguments.step_ms),
        max_running: arguments.max_running,
        bytes_per_token: arguments.model.bytes_per_token(),
    };
    let bar = ProgressBar::new(u64::try_from(trace.requests.len()).unwrap_or(u64::MAX));
    let style = ProgressStyle::with_template("{msg:>9} {bar:40} {pos}/{len} requests, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(strategy.to_string());
    if bar.is_hidden() {
        output::say(&format!("replaying {} requests: {strategy}", trace.requests.len()));
    }
    let outcome = replay(&trace.requests, options, store, &mut |ended, _| bar.set_position(ended));
    bar.finish_and_clear();
    outcome.map_err(Failure::does_not_hold)
}

fn print(setup: &Setup, runs: &Runs, arguments: &ReplayArguments) -> Result<(), Failure> {
    if arguments.json {
        output::print_json(&ReplayReport::new(setup, runs))?;
    } else {
        output::print(&table::text(setup, runs))?;
    }
    let refusals = results::refusals(setup, runs).into_iter().chain(results::failures(runs));
    refusals.for_each(|refusal| output::say(&output::clean(&refusal)));
    Ok(())
}
