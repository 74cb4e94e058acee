//! Why no backing was found.

use super::ErrorKind;

/// Why no backing was found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FindError {
    #[error("no backing is called {name:?}: there are {known}; correct the name, or add the backing to registry.toml")]
    Unknown { name: String, known: String },
    #[error("backing {name:?} is {state}: {reason}")]
    NotReady { name: String, state: &'static str, reason: String },
    #[error("no backing fits: {reasons}; lower the requirements, or add a backing to registry.toml")]
    NoneFits { reasons: String },
    #[error("required backing {name:?} is {state}: {reason}")]
    Required { name: String, state: &'static str, reason: String },
}

impl FindError {
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Required { .. } => ErrorKind::RequiredBacking,
            _ => ErrorKind::NoBackingFits,
        }
    }
}
