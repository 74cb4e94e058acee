//! The file that holds what operations cost, and the comparison of a run with it.
//!
//! `tests/benches/baseline` measures and calls this; the rules are here, where a test can reach them: an operation fails where
//! it takes more than 5 % more instructions, or more system calls, mappings or calls of the driver at all. Figures that a
//! run has not measured are not compared.

mod comparison;
mod profile;

pub use comparison::{Comparison, compare};
pub use profile::{Cost, cost_of_calls};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the file holds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Why it was last written.
    pub reason: String,
    /// The compiler of that run.
    pub compiler: String,
    /// The figures, by the name of the operation.
    pub paths: Paths,
}

/// The figures of one run, by the name of the operation.
pub type Paths = BTreeMap<String, Figures>;

/// What one operation costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Calls of the CUDA driver that one operation makes, by function.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub driver_calls: BTreeMap<String, u64>,
    /// Instructions of one operation in user space, those of a simulated driver left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<f64>,
    /// Kernel mappings in the planes that the operations leave behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mappings: Option<u64>,
    /// System calls of one operation; not of one that calls the simulated driver, which makes its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_calls: Option<f64>,
}

impl Baseline {
    /// Reads the text of the file.
    ///
    /// # Errors
    ///
    /// The text is not the JSON that [`to_text`](Self::to_text) writes.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The text of the file: keys in order and one operation a line, so that a difference shows what changed.
    #[must_use]
    pub fn to_text(&self) -> String {
        let line = |(name, figures): (&String, &Figures)| format!("    {}: {}", json(name), json(figures));
        let lines: Vec<_> = self.paths.iter().map(line).collect();
        format!(
            "{{\n  \"compiler\": {},\n  \"paths\": {{\n{}\n  }},\n  \"reason\": {}\n}}\n",
            json(&self.compiler),
            lines.join(",\n"),
            json(&self.reason)
        )
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("text, numbers and maps of them are JSON")
}
