//! Turns the rows of an Azure LLM inference trace into requests.
//!
//! Input: lines, the header first: `TIMESTAMP,ContextTokens,GeneratedTokens` in any order, other
//! columns ignored; a timestamp is a civil time to the nanosecond, `2023-11-16 18:15:46.6805900`.
//! Output: requests whose arrivals count from the earliest civil time there is. Source:
//! github.com/Azure/AzurePublicDataset (Patel et al., *Splitwise*, ISCA 2024). Sorting and the
//! origin of arrivals are `Trace`'s.

use std::io::BufRead;
use std::num::IntErrorKind;
use std::time::Duration;

use csv::StringRecord;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use super::Request;
use super::error::{Fault, Problem, quoted};
use super::lines::NumberedLines;

const TIMESTAMP: &str = "TIMESTAMP";
const CONTEXT: &str = "ContextTokens";
const GENERATED: &str = "GeneratedTokens";

const A_TIME: &str = "a time such as 2023-11-16 18:15:46.6805900";
const A_NUMBER: &str = "a whole number";

/// Whether a first line is this format's header. One known column is enough, so that a missing one
/// can be named.
pub(super) fn claims(header: &str) -> bool {
    let header = split(header);
    [TIMESTAMP, CONTEXT, GENERATED].iter().any(|column| header.iter().any(|name| name == *column))
}

/// The requests of all lines after the one that `lines` stands on, which is the header.
pub(super) fn parse<R: BufRead>(lines: &mut NumberedLines<R>) -> Result<Vec<Request>, Fault> {
    let columns = Columns::find(lines.text()).map_err(|problem| problem.at(lines.number()))?;
    let mut requests = Vec::new();
    while lines.advance()? {
        let line = lines.number();
        requests.push(columns.request(line, &split(lines.text())).map_err(|problem| problem.at(line))?);
    }
    Ok(requests)
}

/// Where the header has each column.
struct Columns {
    timestamp: usize,
    context: usize,
    generated: usize,
}

impl Columns {
    fn find(header: &str) -> Result<Self, Problem> {
        let names = split(header);
        let find = |column: &'static str| {
            let mut places = names.iter().enumerate().filter(|(_, name)| *name == column).map(|(place, _)| place);
            let seen = quoted(header);
            match (places.next(), places.next()) {
                (Some(place), None) => Ok(place),
                (None, _) => Err(Problem::NoColumn { column, seen }),
                (Some(_), Some(_)) => Err(Problem::TwiceAColumn { column, seen }),
            }
        };
        Ok(Self { timestamp: find(TIMESTAMP)?, context: find(CONTEXT)?, generated: find(GENERATED)? })
    }

    fn request(&self, line: u64, row: &StringRecord) -> Result<Request, Problem> {
        let arrival = time(field(row, self.timestamp, TIMESTAMP, A_TIME)?)?;
        let prompt_tokens = whole_number(CONTEXT, field(row, self.context, CONTEXT, A_NUMBER)?)?;
        let output_tokens = whole_number(GENERATED, field(row, self.generated, GENERATED, A_NUMBER)?)?;
        if prompt_tokens == 0 {
            return Err(Problem::Field { field: CONTEXT, seen: quoted("0"), wanted: "1 or more" });
        }
        if prompt_tokens.checked_add(output_tokens).is_none() {
            return Err(Problem::TooManyTokens { prompt_tokens, output_tokens });
        }
        Ok(Request { line, arrival, prompt_tokens, output_tokens, hash_ids: Vec::new() })
    }
}

/// One line's fields, without surrounding blanks. Lines are split one by one because no field of
/// this format holds a line end: an unclosed quote then spoils its own line instead of swallowing
/// the rest of the file, and line numbers are exact. A reader takes longer to build than a line to
/// split, so only lines with quotes get one.
fn split(line: &str) -> StringRecord {
    if line.contains('"') { split_quoted(line) } else { line.split(',').map(str::trim).collect() }
}

fn split_quoted(line: &str) -> StringRecord {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .buffer_capacity(line.len())
        .from_reader(line.as_bytes());
    let mut row = StringRecord::new();
    // Reading text from memory into a flexible record has no failure: no I/O, valid UTF-8, any
    // number of fields. Were there one, the row would lack fields, and that is reported.
    let _read = reader.read_record(&mut row);
    row
}

fn field<'row>(
    row: &'row StringRecord,
    place: usize,
    field: &'static str,
    wanted: &'static str,
) -> Result<&'row str, Problem> {
    row.get(place).ok_or(Problem::NoField { field, wanted })
}

fn time(text: &str) -> Result<Duration, Problem> {
    let refused = || Problem::Field { field: TIMESTAMP, seen: quoted(text), wanted: A_TIME };
    // With an offset from UTC it is an instant; a civil time would be read from that too, and lose the offset.
    let instant = text.parse::<Timestamp>().map(|instant| Offset::UTC.to_datetime(instant));
    let time = instant.or_else(|_| text.parse::<DateTime>()).map_err(|_| refused())?;
    Duration::try_from(time.duration_since(DateTime::MIN)).map_err(|_| refused())
}

fn whole_number(field: &'static str, text: &str) -> Result<u64, Problem> {
    text.parse().map_err(|error: std::num::ParseIntError| Problem::Field {
        field,
        seen: quoted(text),
        wanted: match error.kind() {
            IntErrorKind::PosOverflow => "at most 18446744073709551615",
            _ => A_NUMBER,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::problem_of;
    use super::super::{Trace, parse};
    use super::*;

    const HEADER: &str = "TIMESTAMP,ContextTokens,GeneratedTokens";

    fn trace_of(text: &str) -> Trace {
        parse(text.as_bytes()).unwrap()
    }

    /// The problem of a trace whose third line is `row` and whose other lines are right.
    fn problem_of_row(row: &str) -> String {
        problem_of(format!("{HEADER}\n2023-11-16 18:15:46.6805900,374,44\n{row}\n").as_bytes())
    }

    #[test]
    fn rows_become_requests() {
        let trace =
            trace_of(&format!("{HEADER}\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,0\n"));
        let expected = [(2, Duration::ZERO, 374, 44), (3, Duration::new(4, 314_579_000), 396, 0)];
        let seen: Vec<_> =
            trace.requests.iter().map(|r| (r.line, r.arrival, r.prompt_tokens, r.output_tokens)).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn columns_are_found_by_name_and_others_ignored() {
        let trace = trace_of(
            "region,GeneratedTokens, ContextTokens ,TIMESTAMP\nwest,7,\"9\",2024-05-10 00:00:00.009930+00:00\n",
        );
        let request = &trace.requests[0];
        assert_eq!((request.prompt_tokens, request.output_tokens), (9, 7));
    }

    #[test]
    fn an_offset_from_utc_counts() {
        let trace = trace_of(&format!(
            "{HEADER}\n2024-05-10 03:00:00+02:00,1,1\n2024-05-10 00:30:00-01:00,2,1\n2024-05-10 01:45:00Z,3,1\n"
        ));
        let minutes: Vec<_> = trace.requests.iter().map(|request| request.arrival.as_secs() / 60).collect();
        assert_eq!(minutes, [0, 30, 45]);
    }

    #[test]
    fn a_byte_order_mark_and_windows_line_ends_change_nothing() {
        let row = "2023-11-16 18:15:46.6805900,374,44";
        assert_eq!(trace_of(&format!("\u{feff}{HEADER}\r\n{row}\r\n")), trace_of(&format!("{HEADER}\n{row}")));
    }

    #[test]
    fn a_malformed_line_is_named_by_its_number() {
        assert_eq!(
            problem_of_row("2023-11-16 18:15:47,1,abc"),
            "trace \"t\" line 3: GeneratedTokens is \"abc\": wanted a whole number; correct or remove the line"
        );
    }

    #[test]
    fn each_wrong_field_says_what_was_wanted() {
        let cases = [
            ("2023-11-16 18:15:47,-1,4", "ContextTokens is \"-1\": wanted a whole number"),
            ("2023-11-16 18:15:47,1.5,4", "ContextTokens is \"1.5\": wanted a whole number"),
            ("2023-11-16 18:15:47,,4", "ContextTokens is \"\": wanted a whole number"),
            ("2023-11-16 18:15:47,0,4", "ContextTokens is \"0\": wanted 1 or more"),
            (
                "2023-11-16 18:15:47,1,18446744073709551616",
                "GeneratedTokens is \"18446744073709551616\": wanted at most 18446744073709551615",
            ),
            ("2023-11-16 18:15:47,1", "GeneratedTokens is missing: wanted a whole number"),
            (
                "2023-13-16 18:15:47,1,4",
                "TIMESTAMP is \"2023-13-16 18:15:47\": wanted a time such as 2023-11-16 18:15:46.6805900",
            ),
            (
                "2023-11-16 18:15:47,18446744073709551615,1",
                "18446744073709551615 prompt tokens and 1 output tokens overflow 64 bits",
            ),
        ];
        for (row, problem) in cases {
            assert_eq!(problem_of_row(row), format!("trace \"t\" line 3: {problem}; correct or remove the line"));
        }
    }

    #[test]
    fn an_unclosed_quote_spoils_its_own_line_only() {
        let text = problem_of_row("2023-11-16 18:15:47,\"1,4\n2023-11-16 18:15:48,1,4");
        assert_eq!(
            text,
            "trace \"t\" line 3: ContextTokens is \"1,4\": wanted a whole number; correct or remove the line"
        );
    }

    #[test]
    fn a_missing_column_is_named() {
        assert_eq!(
            problem_of(b"TIMESTAMP,ContextTokens\n2023-11-16 18:15:47,1\n"),
            "trace \"t\" line 1: the header \"TIMESTAMP,ContextTokens\" has no column GeneratedTokens: wanted \
             TIMESTAMP,ContextTokens,GeneratedTokens; add the column"
        );
    }

    #[test]
    fn a_column_that_comes_twice_is_refused() {
        assert_eq!(
            problem_of(b"TIMESTAMP,ContextTokens,GeneratedTokens,TIMESTAMP\n"),
            "trace \"t\" line 1: the header \"TIMESTAMP,ContextTokens,GeneratedTokens,TIMESTAMP\" has the column \
             TIMESTAMP twice: wanted it once; rename or remove one"
        );
    }

    #[test]
    fn quotes_change_nothing_where_none_are_needed() {
        for line in ["a,b,c", " a , b,", ",", "a"] {
            assert_eq!(split(line), split_quoted(line), "{line:?}");
        }
        assert_eq!(split("\"a\", b"), split("a,b"));
    }
}
