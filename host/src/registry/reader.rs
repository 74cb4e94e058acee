//! Reads typed values out of parsed TOML, gathering every problem instead of stopping at the first.
//!
//! A method that can't read its value reports why and answers `None`; the caller goes on with the next one, and
//! [`Reader::finish`] turns the problems into one error.

use super::error::{Problem, RegistryError};
use super::position::{Lines, Located, Position};
use std::path::Path;
use toml::Spanned;
use toml::de::{DeFloat, DeInteger, DeString, DeTable, DeValue};

/// A parsed value with its place.
pub(super) type Item<'t> = Spanned<DeValue<'t>>;

/// A key of the schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    /// What its value has to be, with an article.
    pub(super) wanted: &'static str,
    /// A line that shows it.
    pub(super) example: &'static str,
}

/// The text that is read, and what was found to be wrong with it so far.
#[derive(Debug)]
pub(super) struct Reader<'t> {
    lines: Lines<'t>,
    problems: Vec<Problem>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { lines: Lines::new(text), problems: Vec::new() }
    }

    /// Where an item starts.
    pub(super) fn at<T>(&self, item: &Spanned<T>) -> Position {
        self.lines.of(item)
    }

    /// Where the byte at `offset` stands.
    pub(super) fn at_offset(&self, offset: usize) -> Position {
        self.lines.position(offset)
    }

    /// Notes a problem: what failed, what was seen and wanted, what to do.
    pub(super) fn report(
        &mut self,
        at: Position,
        what: impl Into<String>,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.problems.push(Problem { at, what: what.into(), why: why.into(), remedy: remedy.into() });
    }

    /// Notes that the value of `key` is not what it has to be.
    pub(super) fn refuse<T>(&mut self, key: Key, item: &Item<'_>) -> Option<T> {
        let why = format!("seen {}, wanted {}", describe(item.get_ref()), key.wanted);
        self.report(self.at(item), format!("{} not read", key.name), why, format!("write for example {}", key.example));
        None
    }

    /// Notes every key of `table` that is not in `known`.
    pub(super) fn refuse_unknown_keys(&mut self, table: &DeTable<'_>, section: &str, known: &[Key]) {
        let names: Vec<_> = known.iter().map(|key| key.name).collect();
        for key in table.keys().filter(|key| !names.contains(&key.get_ref().as_ref())) {
            let what = format!("unknown key {:?}", key.get_ref());
            let why = format!("{section} has the keys {}", names.join(", "));
            self.report(self.at(key), what, why, "correct it or take it out");
        }
    }

    /// A text with at least one character.
    pub(super) fn text(&mut self, key: Key, item: &Item<'_>) -> Option<Located<String>> {
        match item.get_ref().as_str() {
            Some(text) if !text.is_empty() => Some(self.locate(text.to_owned(), item)),
            _ => self.refuse(key, item),
        }
    }

    pub(super) fn boolean(&mut self, key: Key, item: &Item<'_>) -> Option<bool> {
        item.get_ref().as_bool().or_else(|| self.refuse(key, item))
    }

    pub(super) fn integer(&mut self, key: Key, item: &Item<'_>) -> Option<i64> {
        let integer = item.get_ref().as_integer().and_then(integer_value);
        integer.or_else(|| self.refuse(key, item))
    }

    pub(super) fn table<'v>(&mut self, key: Key, item: &'v Item<'t>) -> Option<&'v DeTable<'t>> {
        item.get_ref().as_table().or_else(|| self.refuse(key, item))
    }

    pub(super) fn locate<T>(&self, value: T, item: &Item<'_>) -> Located<T> {
        Located { value, at: self.at(item) }
    }

    /// The value, unless there was a problem. No value without a problem can't be: both readings of `None` report.
    pub(super) fn finish<T>(self, value: T, path: &Path) -> Result<T, RegistryError> {
        RegistryError::from_problems(path, self.problems).map_or(Ok(value), Err)
    }
}

/// The entries of a table in the order in which they were written.
pub(super) fn in_written_order<'v, 't>(table: &'v DeTable<'t>) -> Vec<(&'v Spanned<DeString<'t>>, &'v Item<'t>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// The number, when 64 bits hold it.
pub(super) fn integer_value(integer: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// The number, when it is one and is finite.
pub(super) fn float_value(float: &DeFloat<'_>) -> Option<f64> {
    float.as_str().parse().ok().filter(|value: &f64| value.is_finite())
}

/// What a value is, in words.
pub(super) fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(integer) => format!("the integer {integer}"),
        DeValue::Float(float) => format!("the number {float}"),
        DeValue::Boolean(value) => format!("{value}"),
        DeValue::Datetime(date) => format!("the date {date}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
