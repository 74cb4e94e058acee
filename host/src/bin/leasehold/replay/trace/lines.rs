//! Turns bytes into numbered lines of text, blank ones left out.
//!
//! Input: any `BufRead`. Output: one line at a time, without its end (LF or CRLF), without
//! surrounding blanks and, on the first, without a byte order mark. Owns one line; its buffer is
//! used again for the next. Numbers count every line of the file from 1, blank ones too, so that an
//! editor finds what an error names.

use std::io::{BufRead, Read};

use super::error::{Fault, Problem};

/// Far above any request: a prompt of a million tokens names 2,000 blocks. Keeps a file without
/// line ends (or `/dev/zero`) from filling memory.
const LONGEST_LINE_BYTES: u64 = 16 << 20;

pub(super) struct NumberedLines<R> {
    source: R,
    line: String,
    number: u64,
}

impl<R: BufRead> NumberedLines<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, line: String::new(), number: 0 }
    }

    /// Goes to the next line that isn't blank; false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, Fault> {
        loop {
            self.number = self.number.saturating_add(1);
            if !self.read_line()? {
                return Ok(false);
            }
            if !self.text().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The line gone to last.
    pub(super) fn text(&self) -> &str {
        let line = match self.number {
            1 => self.line.strip_prefix('\u{feff}').unwrap_or(&self.line),
            _ => &self.line,
        };
        line.trim()
    }

    /// Its number in the file, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    fn read_line(&mut self) -> Result<bool, Fault> {
        let mut bytes = std::mem::take(&mut self.line).into_bytes();
        bytes.clear();
        let read = self.source.by_ref().take(LONGEST_LINE_BYTES).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| Problem::Unreadable(error).at(self.number))?;
        if u64::try_from(read).is_ok_and(|read| read == LONGEST_LINE_BYTES) && !bytes.ends_with(b"\n") {
            return Err(Problem::TooLong { limit_bytes: LONGEST_LINE_BYTES }.at(self.number));
        }
        self.line = String::from_utf8(bytes).map_err(|_| Problem::NotUtf8.at(self.number))?;
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(bytes: &[u8]) -> Vec<(u64, String)> {
        let mut lines = NumberedLines::new(bytes);
        let mut seen = Vec::new();
        while lines.advance().unwrap() {
            seen.push((lines.number(), lines.text().to_owned()));
        }
        seen
    }

    #[test]
    fn blank_lines_are_left_out_and_counted() {
        assert_eq!(lines_of(b"a\n\n  \nb"), [(1, "a".to_owned()), (4, "b".to_owned())]);
    }

    #[test]
    fn windows_line_ends_and_a_byte_order_mark_are_dropped() {
        assert_eq!(lines_of("\u{feff}a\r\nb\r\n".as_bytes()), [(1, "a".to_owned()), (2, "b".to_owned())]);
    }

    #[test]
    fn a_line_without_an_end_is_refused_before_it_fills_memory() {
        let mut lines = NumberedLines::new(std::io::BufReader::new(std::io::repeat(b'a')));
        assert!(lines.advance().is_err());
        assert!(u64::try_from(lines.line.capacity()).unwrap() <= LONGEST_LINE_BYTES * 2);
    }
}
