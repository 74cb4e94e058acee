//! Turns the lines of a Mooncake trace into requests.
//!
//! Input: one JSON object per line: `timestamp` (milliseconds, fractions allowed), `input_length`
//! and `output_length` (tokens), `hash_ids` (optional; one per 512 tokens of the prompt, equal ids
//! meaning an equal prefix); other keys are ignored. Output: requests whose arrivals count from
//! timestamp 0. Source: github.com/kvcache-ai/Mooncake (Qin et al., FAST 2025). Sorting and the
//! origin of arrivals are `Trace`'s.

use std::io::BufRead;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::Request;
use super::error::{Fault, Problem, excerpt};
use super::lines::NumberedLines;

const TIMESTAMP: &str = "timestamp";
const INPUT: &str = "input_length";
const OUTPUT: &str = "output_length";

const A_TIME: &str = "milliseconds, 0 or more";
const A_NUMBER: &str = "a whole number";

/// A line as it is written. Numbers stay [`Value`]s, so that what is wrong with one can be said by
/// its key.
#[derive(Deserialize)]
struct WrittenRequest {
    timestamp: Option<Value>,
    input_length: Option<Value>,
    output_length: Option<Value>,
    hash_ids: Option<Vec<u64>>,
}

/// Whether a first line belongs to this format.
pub(super) fn claims(line: &str) -> bool {
    line.starts_with('{')
}

/// The requests of the line that `lines` stands on and of all after it.
pub(super) fn parse<R: BufRead>(lines: &mut NumberedLines<R>) -> Result<Vec<Request>, Fault> {
    let mut requests = Vec::new();
    loop {
        let line = lines.number();
        requests.push(request(line, lines.text()).map_err(|problem| problem.at(line))?);
        if !lines.advance()? {
            return Ok(requests);
        }
    }
}

fn request(line: u64, text: &str) -> Result<Request, Problem> {
    if !claims(text) {
        // Checked here because serde would take an array for the fields in their order.
        return Err(Problem::Json { why: "expected `{`".to_owned(), column: 1 });
    }
    let written: WrittenRequest = serde_json::from_str(text).map_err(|error| malformed(&error))?;
    let arrival = milliseconds(&present(TIMESTAMP, written.timestamp, A_TIME)?)?;
    let prompt_tokens = whole_number(INPUT, &present(INPUT, written.input_length, A_NUMBER)?)?;
    let output_tokens = whole_number(OUTPUT, &present(OUTPUT, written.output_length, A_NUMBER)?)?;
    if prompt_tokens == 0 {
        return Err(Problem::Field { field: INPUT, seen: "0".to_owned(), wanted: "1 or more" });
    }
    if prompt_tokens.checked_add(output_tokens).is_none() {
        return Err(Problem::TooManyTokens { prompt_tokens, output_tokens });
    }
    Ok(Request { line, arrival, prompt_tokens, output_tokens, hash_ids: written.hash_ids.unwrap_or_default() })
}

/// serde_json counts lines inside the text it was given, which is always line 1 here: only its
/// column is kept.
fn malformed(error: &serde_json::Error) -> Problem {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    Problem::Json { why: text.strip_suffix(&place).unwrap_or(&text).to_owned(), column: error.column() }
}

fn present(field: &'static str, value: Option<Value>, wanted: &'static str) -> Result<Value, Problem> {
    value.ok_or(Problem::NoField { field, wanted })
}

fn whole_number(field: &'static str, value: &Value) -> Result<u64, Problem> {
    value.as_u64().ok_or_else(|| Problem::Field { field, seen: excerpt(&value.to_string()), wanted: A_NUMBER })
}

fn milliseconds(value: &Value) -> Result<Duration, Problem> {
    if let Some(whole) = value.as_u64() {
        return Ok(Duration::from_millis(whole)); // exact, unlike the way through a float
    }
    let refused = || Problem::Field { field: TIMESTAMP, seen: excerpt(&value.to_string()), wanted: A_TIME };
    let milliseconds = value.as_f64().ok_or_else(refused)?;
    Duration::try_from_secs_f64(milliseconds / 1000.0).map_err(|_| refused())
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::problem_of;
    use super::*;

    const RIGHT: &str = r#"{"timestamp": 27, "input_length": 1024, "output_length": 6, "hash_ids": [46, 47]}"#;

    fn requests_of(text: &str) -> Vec<Request> {
        parse(text.as_bytes()).unwrap().requests
    }

    #[test]
    fn lines_become_requests() {
        let second = r#"{"timestamp": 29.5, "input_length": 2, "output_length": 0}"#;
        let requests = requests_of(&format!("{RIGHT}\n{second}\n"));
        let expected =
            Request { line: 1, arrival: Duration::ZERO, prompt_tokens: 1024, output_tokens: 6, hash_ids: vec![46, 47] };
        assert_eq!(requests[0], expected);
        assert_eq!((requests[1].arrival, requests[1].output_tokens), (Duration::from_micros(2500), 0));
        assert!(requests[1].hash_ids.is_empty());
    }

    #[test]
    fn unknown_keys_are_ignored() {
        let more = RIGHT.replace('{', r#"{"model": {"name": "x"}, "#);
        assert_eq!(requests_of(&more), requests_of(RIGHT));
    }

    #[test]
    fn a_byte_order_mark_and_windows_line_ends_change_nothing() {
        assert_eq!(requests_of(&format!("\u{feff}{RIGHT}\r\n\r\n")), requests_of(RIGHT));
    }

    #[test]
    fn each_wrong_value_is_named_by_key_and_line() {
        let cases = [
            ("27", "-1", "timestamp is -1: wanted milliseconds, 0 or more"),
            ("27", "1e300", "timestamp is 1e+300: wanted milliseconds, 0 or more"),
            ("27", "\"now\"", "timestamp is \"now\": wanted milliseconds, 0 or more"),
            ("1024", "-5", "input_length is -5: wanted a whole number"),
            ("1024", "0", "input_length is 0: wanted 1 or more"),
            ("1024", "\"1024\"", "input_length is \"1024\": wanted a whole number"),
            ("\"output_length\": 6", "\"output\": 6", "output_length is missing: wanted a whole number"),
            ("6", "0.5", "output_length is 0.5: wanted a whole number"),
            ("6", "18446744073709551616", "output_length is 1.8446744073709552e+19: wanted a whole number"),
            ("6", "18446744073709551615", "1024 prompt tokens and 18446744073709551615 output tokens overflow 64 bits"),
            ("46", "-46", "is no JSON object of a request: invalid value: integer `-46`, expected u64 (column 76)"),
            ("]}", "]", "is no JSON object of a request: EOF while parsing an object (column 80)"),
        ];
        for (right, wrong, problem) in cases {
            let text = format!("{RIGHT}\n\n{}\n", RIGHT.replacen(right, wrong, 1));
            let expected = format!("trace \"t\" line 3: {problem}; correct or remove the line");
            assert_eq!(problem_of(text.as_bytes()), expected, "{wrong}");
        }
    }

    #[test]
    fn a_later_line_that_is_no_object_is_refused() {
        assert_eq!(
            problem_of(format!("{RIGHT}\n[27, 1024, 6, [46, 47]]\n").as_bytes()),
            "trace \"t\" line 2: is no JSON object of a request: expected `{` (column 1); \
             correct or remove the line"
        );
    }
}
