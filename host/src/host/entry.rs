//! One backing of the host, with what was found at each stage that it went through.

use super::report::{BackingReport, BackingState, Stage, StageReport};
use crate::backing::CheckedBacking;
use crate::governor::DomainBooks;
use crate::loader::Door;
use std::sync::Arc;

/// One backing of the host, whatever became of it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Arc<str>,
    library: String,
    pub(super) priority: i64,
    pub(super) required: bool,
    pub(super) door: Option<Door>,
    /// Why there is no backing; [`BackingState::Ready`] when there is one.
    state: BackingState,
    pub(super) backing: Option<Arc<CheckedBacking>>,
    stages: Vec<StageReport>,
}

impl Entry {
    pub(super) fn new(name: &str, library: String) -> Self {
        Self {
            name: name.into(),
            library,
            priority: 0,
            required: false,
            door: None,
            state: BackingState::Ready,
            backing: None,
            stages: Vec::new(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn priority(&self) -> i64 {
        self.priority
    }

    pub(super) fn is_required(&self) -> bool {
        self.required
    }

    pub(super) fn backing(&self) -> Option<&Arc<CheckedBacking>> {
        self.backing.as_ref()
    }

    pub(super) fn state(&self) -> BackingState {
        match self.backing.as_ref().and_then(|backing| backing.retired()) {
            Some(reason) => BackingState::Retired { reason: reason.to_owned() },
            None => self.state.clone(),
        }
    }

    pub(super) fn report(&self) -> BackingReport {
        let backing = self.backing.as_ref();
        BackingReport {
            name: self.name.to_string(),
            library: self.library.clone(),
            required: self.required,
            priority: self.priority,
            door: self.door,
            state: self.state(),
            caution: backing.and_then(|backing| caution(backing.books())),
            description: backing.map(|backing| backing.description().clone()),
            capabilities: backing.map(|backing| backing.capabilities().names()).unwrap_or_default(),
            granularity: backing.and_then(|backing| backing.capabilities().granularity()),
            accounting: backing.map(|backing| backing.accounting()),
            authority: backing.map(|backing| backing.books().authority()),
            stages: self.stages.clone(),
        }
    }

    pub(super) fn passed(&mut self, stage: Stage, finding: impl Into<String>) {
        self.stages.push(StageReport { stage, finding: finding.into() });
    }

    /// Ends the entry at a stage.
    pub(super) fn ended(mut self, stage: Stage, state: BackingState) -> Self {
        let finding = format!("{}: {}", state.name(), state.reason().unwrap_or_default());
        if !matches!(state, BackingState::Disabled { .. }) {
            tracing::warn!(backing = &*self.name, "{finding}");
        }
        self.stages.push(StageReport { stage, finding });
        self.state = state;
        self
    }

    pub(super) fn rejected(self, stage: Stage, reason: impl Into<String>) -> Self {
        self.ended(stage, BackingState::Rejected { stage, reason: reason.into() })
    }
}

/// Why books can grant nothing, and what to do.
fn caution(books: &DomainBooks) -> Option<String> {
    let domain = books.domain();
    if books.lacks_size() {
        return Some(format!(
            "no budget on {domain}: no backing reports the size of {domain}, so a budget of \"auto\" or a percentage is 0 \
             bytes; set budget.\"{domain}\" in bytes in registry.toml"
        ));
    }
    let limit_is_nothing = books.ledger().limit() == 0;
    limit_is_nothing
        .then(|| format!("no budget on {domain}: its limit is 0 bytes; raise budget.\"{domain}\" in registry.toml"))
}
