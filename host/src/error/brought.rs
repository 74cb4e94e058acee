//! Why a backing that the program brings itself was not added.

/// Why a backing that the program brings itself was not added.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BroughtError {
    #[error(
        "backing {name:?}: not added: its name is not lower-case words joined by hyphens; rename it, like \"my-pool\""
    )]
    Form { name: String },
    #[error("backing {name:?}: not added: another backing has that name; rename one of them")]
    Taken { name: String },
}
