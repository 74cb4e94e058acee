//! Turns a trace file, or a synthetic workload, into requests in order of arrival.
//!
//! Input: a path, or a [`synthetic::SyntheticWorkload`]. Output: a [`Trace`]. The format is told by
//! the first line that isn't blank, never by the file's name: `lines` gives numbered text, `azure`
//! and `mooncake` turn it into requests, `error` says what is wrong with which line. Owns the
//! parsed requests only; the file is closed on return, and may be a pipe, since it is read once
//! from front to back.

mod azure;
mod draws;
mod error;
mod lines;
mod mooncake;
mod settings;
pub(crate) mod synthetic;

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use self::error::{Fault, Problem};
use self::lines::NumberedLines;

pub(crate) use self::error::TraceError;

/// Where a trace comes from, under the names that the JSON report uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TraceFormat {
    /// Azure's LLM inference traces: `TIMESTAMP,ContextTokens,GeneratedTokens`.
    AzureCsv,
    /// Mooncake's traces: one JSON object per line.
    MooncakeJsonl,
    /// Drawn from distributions; see [`synthetic`].
    Synthetic,
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::AzureCsv => "azure-csv",
            Self::MooncakeJsonl => "mooncake-jsonl",
            Self::Synthetic => "synthetic",
        })
    }
}

/// Requests, the earliest first.
#[derive(Debug, PartialEq)]
pub(crate) struct Trace {
    pub(crate) format: TraceFormat,
    /// Sorted by arrival; requests that arrive together keep the order of their lines. Never empty.
    pub(crate) requests: Vec<Request>,
}

/// One request. `prompt_tokens` is at least 1, and `prompt_tokens + output_tokens` does not
/// overflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Its line in the file, counted from 1; for a synthetic trace, its ordinal, counted from 1.
    pub(crate) line: u64,
    /// Since the first request of the trace.
    pub(crate) arrival: Duration,
    pub(crate) prompt_tokens: u64,
    pub(crate) output_tokens: u64,
    /// One per block of the prompt, equal ids meaning an equal prefix; empty where the trace has
    /// none.
    pub(crate) hash_ids: Vec<u64>,
}

impl Request {
    /// What its cache holds when it completes.
    pub(crate) fn final_tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.output_tokens) // exact: see the type
    }
}

impl Trace {
    /// Whether any request says what its prompt begins with.
    pub(crate) fn has_prefixes(&self) -> bool {
        self.requests.iter().any(|request| !request.hash_ids.is_empty())
    }

    /// Reads the trace at `path`, whatever its format.
    ///
    /// # Errors
    /// When the file can't be read, is in no known format, or has a line that is no request: the
    /// first such line is named, and nothing is skipped.
    pub(crate) fn read(path: &Path) -> Result<Self, TraceError> {
        read_file(path).map_err(|fault| TraceError::new(path, fault))
    }

    /// Sorts requests whose arrivals share any one zero, and moves that zero to the first arrival.
    fn assemble(format: TraceFormat, mut requests: Vec<Request>) -> Self {
        requests.sort_by_key(|request| request.arrival);
        let first = requests.first().map_or(Duration::ZERO, |request| request.arrival);
        for request in &mut requests {
            request.arrival = request.arrival.saturating_sub(first); // sorted: never saturates
        }
        Self { format, requests }
    }
}

fn read_file(path: &Path) -> Result<Trace, Fault> {
    let file = File::open(path).map_err(Problem::Unreadable)?;
    if file.metadata().map_err(Problem::Unreadable)?.is_dir() {
        return Err(Problem::Directory.into());
    }
    parse(BufReader::new(file))
}

fn parse(source: impl BufRead) -> Result<Trace, Fault> {
    let mut lines = NumberedLines::new(source);
    if !lines.advance()? {
        return Err(Problem::Empty.into());
    }
    let (format, requests) = if mooncake::claims(lines.text()) {
        (TraceFormat::MooncakeJsonl, mooncake::parse(&mut lines)?)
    } else if azure::claims(lines.text()) {
        (TraceFormat::AzureCsv, azure::parse(&mut lines)?)
    } else {
        return Err(Problem::unknown_format(lines.text()).at(lines.number()));
    };
    if requests.is_empty() {
        return Err(Problem::Empty.into());
    }
    Ok(Trace::assemble(format, requests))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn problem_of(text: &[u8]) -> String {
        TraceError::new(Path::new("t"), parse(text).unwrap_err()).to_string()
    }

    fn formats_of(texts: &[&str]) -> Vec<TraceFormat> {
        texts.iter().map(|text| parse(text.as_bytes()).unwrap().format).collect()
    }

    #[test]
    fn the_format_is_told_by_the_content() {
        let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,1,2\n";
        let mooncake = "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 2}\n";
        assert_eq!(formats_of(&[azure, mooncake]), [TraceFormat::AzureCsv, TraceFormat::MooncakeJsonl]);
    }

    #[test]
    fn the_extension_does_not_decide() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("misnamed.csv");
        std::fs::write(&path, "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 2}").unwrap();
        assert_eq!(Trace::read(&path).unwrap().format, TraceFormat::MooncakeJsonl);
    }

    #[test]
    fn a_request_ends_with_its_prompt_and_its_output() {
        let trace = parse(&b"{\"timestamp\": 0, \"input_length\": 5, \"output_length\": 2}"[..]).unwrap();
        assert_eq!(trace.requests[0].final_tokens(), 7);
    }

    #[test]
    fn requests_are_sorted_by_arrival_and_ties_keep_their_lines() {
        let text = "TIMESTAMP,ContextTokens,GeneratedTokens\n\
                    2023-11-16 00:00:02,1,1\n2023-11-16 00:00:01,2,1\n2023-11-16 00:00:02,3,1\n";
        let trace = parse(text.as_bytes()).unwrap();
        let seen: Vec<_> = trace.requests.iter().map(|r| (r.line, r.arrival.as_secs())).collect();
        assert_eq!(seen, [(3, 0), (2, 1), (4, 1)]);
    }

    #[test]
    fn formats_are_serialised_by_their_public_names() {
        let formats = [TraceFormat::AzureCsv, TraceFormat::MooncakeJsonl, TraceFormat::Synthetic];
        assert_eq!(serde_json::to_string(&formats).unwrap(), r#"["azure-csv","mooncake-jsonl","synthetic"]"#);
    }

    #[test]
    fn a_file_without_requests_is_refused() {
        let expected = "trace \"t\": holds no request; name a trace with at least one";
        for text in ["", "\n \r\n", "\u{feff}", "TIMESTAMP,ContextTokens,GeneratedTokens\n"] {
            assert_eq!(problem_of(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn an_unknown_format_shows_what_was_seen() {
        assert_eq!(
            problem_of(b"\n\nwhen,prompt,answer\n1,2,3\n"),
            "trace \"t\" line 3: \"when,prompt,answer\" opens no known format: wanted the header \
             TIMESTAMP,ContextTokens,GeneratedTokens (Azure) or a JSON object (Mooncake); name a trace of one of these forms"
        );
    }

    #[test]
    fn text_that_is_not_utf8_is_named_by_its_line() {
        assert_eq!(
            problem_of(b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 00:00:02,\xff,1\n"),
            "trace \"t\" line 2: is not UTF-8; convert the file, or correct or remove the line"
        );
    }

    #[test]
    fn a_directory_is_refused_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let text = Trace::read(folder.path()).unwrap_err().to_string();
        assert_eq!(text, format!("trace {:?}: is a directory; name a trace file", folder.path()));
    }

    #[test]
    fn a_missing_file_says_why_it_was_not_read() {
        let text = Trace::read(Path::new("/nonexistent/trace.csv")).unwrap_err().to_string();
        assert_eq!(
            text,
            "trace \"/nonexistent/trace.csv\": can't be read: No such file or directory (os error 2); \
             check the path and its permissions"
        );
    }
}
