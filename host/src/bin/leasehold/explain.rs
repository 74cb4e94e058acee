//! `leasehold explain`: each stage that one backing went through.

use crate::arguments::ExplainArguments;
use crate::failure::Failure;
use crate::{output, session};
use leasehold::BackingReport;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// The whole report. Its keys are a promise to programs.
#[derive(Debug, Serialize)]
struct ExplainReport {
    name: String,
    state: &'static str,
    reason: Option<String>,
    caution: Option<String>,
    library: String,
    priority: i64,
    required: bool,
    stages: Vec<ExplainedStage>,
}

#[derive(Debug, Serialize)]
struct ExplainedStage {
    stage: String,
    finding: String,
}

impl From<BackingReport> for ExplainReport {
    fn from(report: BackingReport) -> Self {
        let stages = report.stages.into_iter();
        let stages = stages.map(|stage| ExplainedStage { stage: stage.stage.to_string(), finding: stage.finding });
        Self {
            state: report.state.name(),
            reason: report.state.reason().map(str::to_owned),
            caution: report.caution,
            name: report.name,
            library: report.library,
            priority: report.priority,
            required: report.required,
            stages: stages.collect(),
        }
    }
}

pub(crate) fn run(registry: Option<PathBuf>, options: &ExplainArguments) -> Result<(), Failure> {
    let host = session::builder(registry)?.survey()?;
    let backings = host.backings();
    let known: Vec<_> = backings.iter().map(|backing| backing.name.clone()).collect();
    let Some(report) = backings.into_iter().find(|backing| backing.name == options.name) else {
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Failure::unusable(format!(
            "no backing is called {:?}: there are {known}; name one of those",
            options.name
        )));
    };
    let report = ExplainReport::from(report);
    if options.json { output::print_json(&report) } else { output::print(&text(&report)) }
}

fn text(report: &ExplainReport) -> String {
    let mut text = format!("{}: {}", report.name, report.state);
    for ExplainedStage { stage, finding } in &report.stages {
        // Writing to a string can't fail.
        let _ = write!(text, "\n  {stage:<9} {}", output::clean(finding));
    }
    if let Some(caution) = &report.caution {
        let _ = write!(text, "\n  {:<9} {}", "caution", output::clean(caution));
    }
    text
}
