//! Turns byte offsets into lines and columns, and ties a value to where it was written.
//!
//! Lines and columns count from 1; a column counts characters, as an editor does.

use std::fmt;
use toml::Spanned;

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Position {
    /// The first character of a text.
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.line, self.column)
    }
}

/// A value, and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) at: Position,
}

/// A text with the offset at which each of its lines starts.
#[derive(Debug)]
pub(super) struct Lines<'t> {
    text: &'t str,
    /// Ascending; the first is 0.
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let after_breaks = text.match_indices('\n').map(|(offset, _)| offset.saturating_add(1));
        Self { text, starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// Where the byte at `offset` stands. Past the end is the end; inside a character is that character.
    pub(super) fn position(&self, offset: usize) -> Position {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or("");
        Position { line, column: before.chars().count().saturating_add(1) }
    }

    /// Where a parsed item starts.
    pub(super) fn of<T>(&self, item: &Spanned<T>) -> Position {
        self.position(item.span().start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str, offset: usize) -> (usize, usize) {
        let position = Lines::new(text).position(offset);
        (position.line, position.column)
    }

    #[test]
    fn lines_and_columns_count_from_one() {
        assert_eq!(at("ab\ncd", 0), (1, 1));
        assert_eq!(at("ab\ncd", 2), (1, 3));
        assert_eq!(at("ab\ncd", 3), (2, 1));
        assert_eq!(at("ab\r\ncd", 5), (2, 2));
    }

    #[test]
    fn a_column_counts_characters() {
        assert_eq!(at("é = 1", 3), (1, 3));
        assert_eq!(at("é = 1", 1), (1, 1));
    }

    #[test]
    fn past_the_end_is_the_end() {
        assert_eq!(at("", 7), (1, 1));
        assert_eq!(at("ab\n", 99), (2, 1));
    }

    proptest! {
        #[test]
        fn a_position_is_within_its_text(text in "(?s).{0,60}", offset in 0_usize..300) {
            let position = Lines::new(&text).position(offset);
            let line = text.split('\n').nth(position.line.checked_sub(1).unwrap()).unwrap();
            prop_assert!((1..=line.chars().count().saturating_add(1)).contains(&position.column));
        }
    }
}
