//! Why a library did not become a plugin.

use std::fmt;
use std::path::{Path, PathBuf};

/// The stage at which a library was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadStage {
    Inspect,
    Open,
    Door,
    Layout,
    Choose,
}

impl fmt::Display for LoadStage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            LoadStage::Inspect => "inspect",
            LoadStage::Open => "open",
            LoadStage::Door => "door",
            LoadStage::Layout => "layout",
            LoadStage::Choose => "choose",
        })
    }
}

/// A library that was refused: the stage, the path, what was seen and wanted, what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoadError {
    stage: LoadStage,
    path: Option<PathBuf>,
    why: String,
    todo: String,
}

impl LoadError {
    pub(crate) fn new(stage: LoadStage, why: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { stage, path: None, why: why.into(), todo: todo.into() }
    }

    pub(crate) fn at(mut self, path: &Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stage, path, why, todo } = self;
        write!(formatter, "{stage}: ")?;
        if let Some(path) = path {
            write!(formatter, "{}: ", path.display())?;
        }
        write!(formatter, "{why}; {todo}")
    }
}

impl std::error::Error for LoadError {}
