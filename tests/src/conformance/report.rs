//! What came of a run.

use super::Capability;
use leasehold_plugin_api::Backing;
use std::fmt;

/// What became of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The backing did as the contract says.
    Passed,
    /// It did not: what was seen, and what was wanted.
    Failed(String),
    /// It does not offer what the case needs.
    Unsupported {
        /// What it does not offer.
        capability: Capability,
        /// Why.
        reason: String,
    },
}

/// One case and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The case's name.
    pub case: &'static str,
    /// What became of it.
    pub verdict: Verdict,
}

/// What came of all cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Every case, in order.
    pub outcomes: Vec<Outcome>,
    /// Expectations that do not hold.
    pub stale: Vec<String>,
}

impl Report {
    /// No case yet; expectations compared with what the backing offers.
    pub(super) fn new(backing: &dyn Backing, lacks: &[(Capability, &str)]) -> Self {
        let stale = Capability::ALL.into_iter().filter_map(|capability| {
            let lacked = lacks.iter().find(|(lacked, _)| *lacked == capability);
            match (capability.is_offered_by(backing), lacked) {
                (true, Some((_, reason))) => Some(format!("{capability} is offered, though declared absent: {reason}")),
                (false, None) => Some(format!("{capability} is not offered, and no reason is declared")),
                _ => None,
            }
        });
        Self { outcomes: Vec::new(), stale: stale.collect() }
    }

    /// Whether every case passed that could be run, and every expectation holds.
    #[must_use]
    pub fn is_conforming(&self) -> bool {
        self.stale.is_empty() && self.failures().next().is_none()
    }

    /// The cases that failed, with what was wrong.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.outcomes.iter().filter_map(|outcome| match &outcome.verdict {
            Verdict::Failed(why) => Some((outcome.case, why.as_str())),
            Verdict::Passed | Verdict::Unsupported { .. } => None,
        })
    }

    /// How many cases passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Passed).count()
    }
}

/// One line for each case that did not pass, and for each expectation that does not hold.
impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Outcome { case, verdict } in &self.outcomes {
            match verdict {
                Verdict::Passed => {}
                Verdict::Failed(why) => writeln!(formatter, "failed: {case}: {why}")?,
                Verdict::Unsupported { capability, reason } => {
                    writeln!(formatter, "unsupported: {case} needs {capability}: {reason}")?;
                }
            }
        }
        self.stale.iter().try_for_each(|stale| writeln!(formatter, "stale: {stale}"))?;
        write!(formatter, "{} of {} cases passed", self.passed(), self.outcomes.len())
    }
}
