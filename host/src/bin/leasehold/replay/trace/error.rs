//! Says what is wrong with a trace: which file, which line, what was seen, what was wanted, what to
//! do.
//!
//! Parsers know lines but no path: they give a [`Fault`]; [`TraceError`] adds the path and is what
//! leaves the module.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The longest excerpt of a trace that an error shows, in characters.
const EXCERPT_CHARS: usize = 64;

/// A trace that can't be used. Its text names the file, the line where there is one, and the
/// remedy.
#[derive(Debug)]
pub(crate) struct TraceError {
    path: PathBuf,
    fault: Fault,
}

impl TraceError {
    pub(super) fn new(path: &Path, fault: Fault) -> Self {
        Self { path: path.to_owned(), fault }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trace {:?}", self.path)?;
        if let Some(line) = self.fault.line {
            write!(f, " line {line}")?;
        }
        write!(f, ": {}", self.fault.problem)
    }
}

impl std::error::Error for TraceError {} // the text holds its causes

/// A problem, and the line it was found on.
#[derive(Debug)]
pub(super) struct Fault {
    line: Option<u64>,
    problem: Problem,
}

impl From<Problem> for Fault {
    /// A problem of the file as a whole.
    fn from(problem: Problem) -> Self {
        Self { line: None, problem }
    }
}

/// What can be wrong with a trace.
#[derive(Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("can't be read: {0}; check the path and its permissions")]
    Unreadable(io::Error),
    #[error("is a directory; name a trace file")]
    Directory,
    #[error("holds no request; name a trace with at least one")]
    Empty,
    #[error("is not UTF-8; convert the file, or correct or remove the line")]
    NotUtf8,
    #[error("is longer than {limit_bytes} bytes; name a trace with one request per line")]
    TooLong { limit_bytes: u64 },
    #[error(
        "{seen} opens no known format: wanted the header TIMESTAMP,ContextTokens,GeneratedTokens (Azure) or a JSON \
         object (Mooncake); name a trace of one of these forms"
    )]
    UnknownFormat { seen: String },
    #[error("the header {seen} has no column {column}: wanted TIMESTAMP,ContextTokens,GeneratedTokens; add the column")]
    NoColumn { column: &'static str, seen: String },
    #[error("the header {seen} has the column {column} twice: wanted it once; rename or remove one")]
    TwiceAColumn { column: &'static str, seen: String },
    #[error("{field} is missing: wanted {wanted}; correct or remove the line")]
    NoField { field: &'static str, wanted: &'static str },
    #[error("{field} is {seen}: wanted {wanted}; correct or remove the line")]
    Field { field: &'static str, seen: String, wanted: &'static str },
    #[error("is no JSON object of a request: {why} (column {column}); correct or remove the line")]
    Json { why: String, column: usize },
    #[error(
        "{prompt_tokens} prompt tokens and {output_tokens} output tokens overflow 64 bits; correct or remove the line"
    )]
    TooManyTokens { prompt_tokens: u64, output_tokens: u64 },
}

impl Problem {
    pub(super) fn at(self, line: u64) -> Fault {
        Fault { line: Some(line), problem: self }
    }

    pub(super) fn unknown_format(seen: &str) -> Self {
        Self::UnknownFormat { seen: quoted(seen) }
    }
}

/// The beginning of `text`, in quotes and with control characters escaped.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", excerpt(text))
}

/// The beginning of `text`.
pub(super) fn excerpt(text: &str) -> String {
    let mut rest = text.chars();
    let mut excerpt: String = rest.by_ref().take(EXCERPT_CHARS).collect();
    if rest.next().is_some() {
        excerpt.push('…');
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_cut_only_where_it_is_longer() {
        let whole = "é".repeat(EXCERPT_CHARS);
        assert_eq!(excerpt(&whole), whole);
        assert_eq!(excerpt(&format!("{whole}é")), format!("{whole}…"));
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(quoted("a\u{1b}[2J"), r#""a\u{1b}[2J""#);
    }
}
