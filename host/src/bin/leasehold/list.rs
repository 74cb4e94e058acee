//! `leasehold list`: every backing of the registry file.

use crate::arguments::ListArguments;
use crate::failure::Failure;
use crate::{output, session};
use bytesize::ByteSize;
use leasehold::{Accounting, BackingReport};
use serde::Serialize;
use std::path::PathBuf;

/// The whole report. Its keys are a promise to programs.
#[derive(Debug, Serialize)]
struct ListReport {
    backings: Vec<ListedBacking>,
}

#[derive(Debug, Serialize)]
struct ListedBacking {
    name: String,
    state: &'static str,
    library: String,
    door: Option<String>,
    tier: Option<String>,
    device: Option<String>,
    capabilities: Vec<&'static str>,
    granularity: Option<u64>,
    accounting: Option<&'static str>,
    authority: Option<String>,
    reason: Option<String>,
    caution: Option<String>,
}

impl From<BackingReport> for ListedBacking {
    fn from(report: BackingReport) -> Self {
        let device = report.description.as_ref().map(|description| description.device);
        Self {
            state: report.state.name(),
            reason: report.state.reason().map(str::to_owned),
            caution: report.caution,
            name: report.name,
            library: report.library,
            door: report.door.map(|door| door.to_string()),
            tier: device.map(|device| device.tier.to_string()),
            device: device.map(|device| device.to_string()),
            capabilities: report.capabilities,
            granularity: report.granularity,
            accounting: report.accounting.map(|accounting| match accounting {
                Accounting::Buffer => "buffer",
                Accounting::Backing { .. } => "backing",
            }),
            authority: report.authority.map(|authority| authority.to_string()),
        }
    }
}

pub(crate) fn run(registry: Option<PathBuf>, options: &ListArguments) -> Result<(), Failure> {
    let host = session::builder(registry)?.survey()?;
    let report = ListReport { backings: host.backings().into_iter().map(ListedBacking::from).collect() };
    if options.json {
        output::print_json(&report)?;
    } else {
        output::print(&table(&report))?;
    }
    Ok(host.check_required()?)
}

/// The table, and below it why a backing isn't ready, or can serve nothing: reasons are too long for a column.
fn table(report: &ListReport) -> String {
    let header = ["name", "state", "tier", "device", "capabilities", "granule", "pays", "door", "library"];
    let mut table = output::table(&header, &[5]);
    for backing in &report.backings {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_owned());
        table.add_row([
            backing.name.clone(),
            backing.state.to_owned(),
            text(&backing.tier),
            text(&backing.device),
            if backing.capabilities.is_empty() { "–".to_owned() } else { backing.capabilities.join(", ") },
            backing.granularity.map_or_else(|| "–".to_owned(), |bytes| ByteSize::b(bytes).display().iec().to_string()),
            backing.accounting.unwrap_or("–").to_owned(),
            text(&backing.door),
            output::clean(&backing.library),
        ]);
    }
    let reason = |backing: &ListedBacking| {
        let (name, state) = (&backing.name, backing.state);
        match (&backing.reason, &backing.caution) {
            (Some(reason), _) => Some(format!("\n{name} is {state}: {}", output::clean(reason))),
            (None, Some(caution)) => Some(format!("\n{name} is {state}, but: {}", output::clean(caution))),
            (None, None) => None,
        }
    };
    report.backings.iter().filter_map(reason).fold(table.to_string(), |text, line| text + &line)
}
