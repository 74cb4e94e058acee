//! What can be wrong with a registry file: everything that was found in one reading, each with its place.

use super::position::Position;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a registry file was not read. Prints one line for each problem.
#[derive(Debug)]
pub(crate) struct RegistryError {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// The file's bytes could not be had.
    Unreadable { why: String, remedy: &'static str, source: Option<io::Error> },
    /// Never empty; ascending by position.
    Invalid(Vec<Problem>),
}

/// One thing that is wrong, in the three parts that an error text has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) at: Position,
    /// What failed.
    pub(crate) what: String,
    /// What was seen and what was wanted.
    pub(crate) why: String,
    /// What to do about it.
    pub(crate) remedy: String,
}

impl RegistryError {
    /// The operating system did not give the file.
    pub(super) fn from_io(path: &Path, error: io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => "name an existing file",
            io::ErrorKind::PermissionDenied => "give this user the right to read it",
            _ => "name a file that can be read",
        };
        Self::unreadable(path, error.to_string(), remedy, Some(error))
    }

    /// The path leads to a directory, a pipe or a device.
    pub(super) fn not_a_file(path: &Path, seen: &str) -> Self {
        Self::unreadable(path, format!("seen {seen}, wanted a file"), "name the registry file itself", None)
    }

    fn unreadable(path: &Path, why: String, remedy: &'static str, source: Option<io::Error>) -> Self {
        Self { path: path.to_owned(), kind: Kind::Unreadable { why, remedy, source } }
    }

    /// The problems of one file in the order of their places; nothing when there is no problem.
    pub(super) fn from_problems(path: &Path, mut problems: Vec<Problem>) -> Option<Self> {
        problems.sort_by_key(|problem| problem.at);
        let kind = (!problems.is_empty()).then_some(Kind::Invalid(problems))?;
        Some(Self { path: path.to_owned(), kind })
    }

    /// What is wrong inside the file; empty when the file could not be had at all.
    #[cfg(test)]
    pub(crate) fn problems(&self) -> &[Problem] {
        match &self.kind {
            Kind::Unreadable { .. } => &[],
            Kind::Invalid(problems) => problems,
        }
    }
}

impl fmt::Display for RegistryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.kind {
            Kind::Unreadable { why, remedy, .. } => write!(formatter, "{path}: not read: {why}; {remedy}"),
            Kind::Invalid(problems) => {
                let lines: Vec<_> = problems.iter().map(|problem| format!("{path}:{problem}")).collect();
                formatter.write_str(&lines.join("\n"))
            }
        }
    }
}

impl Error for RegistryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            Kind::Unreadable { source, .. } => source.as_ref().map(|source| -> &(dyn Error + 'static) { source }),
            Kind::Invalid(_) => None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}: {}; {}", self.at, self.what, self.why, self.remedy)
    }
}
