//! What memory is for.

use std::fmt;

/// Whether a workspace outlives the step that asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepScope {
    /// Given back at the end of the step.
    OneStep,
    /// Kept from step to step.
    Lasting,
}

/// What memory is for. Refusals name it; a backing may place memory by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryRole {
    /// Keys and values of attention.
    KvCache,
    /// Scratch memory of kernels.
    Workspace(StepScope),
    /// Model weights.
    Weights,
    /// Activations.
    Activation,
}

impl fmt::Display for MemoryRole {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            MemoryRole::KvCache => "kv-cache",
            MemoryRole::Workspace(StepScope::OneStep) => "step-workspace",
            MemoryRole::Workspace(StepScope::Lasting) => "workspace",
            MemoryRole::Weights => "weights",
            MemoryRole::Activation => "activation",
        })
    }
}
