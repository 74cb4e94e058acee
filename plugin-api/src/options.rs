//! The options of one backing: flat keys, each with a scalar or a list of scalars.

use crate::{BackingError, ErrorKind};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The value of one option.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text; sizes such as `"2 MiB"` are texts that [`ByteSize`](crate::ByteSize) reads.
    Text(String),
    /// A list of scalars.
    List(Vec<OptionValue>),
}

/// The options of one backing, in the order in which they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    entries: Vec<(String, OptionValue)>,
}

/// The options of a backing that has none: every key is refused.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoOptions {}

impl Options {
    /// No options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same options with one more. A key that is there already gets the new value.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: OptionValue) -> Self {
        let key = key.into();
        match self.entries.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => self.entries.push((key, value)),
        }
        self
    }

    /// Every key with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OptionValue)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Reads the options as a type, refusing every key that the type doesn't name.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`](ErrorKind::InvalidRequest), naming the key.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, BackingError> {
        let mut unknown = Vec::new();
        let value = serde_ignored::deserialize(self.to_table(), |path| unknown.push(path.to_string()))
            .map_err(|error| refusal(error.to_string().trim_end()))?;
        match unknown.first() {
            None => Ok(value),
            Some(key) => Err(refusal(&format!("unknown option `{key}`"))),
        }
    }

    fn to_table(&self) -> toml::Table {
        self.entries.iter().map(|(key, value)| (key.clone(), value.to_toml())).collect()
    }
}

const SIZE: &str = "expected a size such as \"2 MiB\", or a number of bytes";

fn refusal(why: &str) -> BackingError {
    // The words of `ByteSize`, which says what its parser is and not what it wants.
    let why = why.replace("expected parsable string", SIZE).replace("expected integer overflow", SIZE);
    let why = why.replace('\n', "; ");
    BackingError::new(ErrorKind::InvalidRequest, format!("options refused: {why}; correct [backing.options]"))
}

impl OptionValue {
    fn to_toml(&self) -> toml::Value {
        match self {
            OptionValue::Boolean(value) => toml::Value::Boolean(*value),
            OptionValue::Integer(value) => toml::Value::Integer(*value),
            OptionValue::Float(value) => toml::Value::Float(*value),
            OptionValue::Text(value) => toml::Value::String(value.clone()),
            OptionValue::List(values) => toml::Value::Array(values.iter().map(Self::to_toml).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ByteSize;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Sample {
        granule: ByteSize,
        #[serde(default)]
        peers: Vec<u32>,
    }

    fn text(value: &str) -> OptionValue {
        OptionValue::Text(value.to_owned())
    }

    #[test]
    fn a_type_reads_its_options() {
        let options = Options::new()
            .with("granule", text("2 MiB"))
            .with("peers", OptionValue::List(vec![OptionValue::Integer(1), OptionValue::Integer(3)]));
        assert_eq!(options.read(), Ok(Sample { granule: ByteSize::mib(2), peers: vec![1, 3] }));
    }

    #[test]
    fn a_key_that_the_type_does_not_name_is_refused() {
        let options = Options::new().with("granule", text("2 MiB")).with("granul", text("1"));
        let error = options.read::<Sample>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        assert_eq!(error.message(), "options refused: unknown option `granul`; correct [backing.options]");
    }

    #[test]
    fn a_value_of_the_wrong_type_names_its_key() {
        let options = Options::new().with("granule", OptionValue::Boolean(true));
        let error = options.read::<Sample>().unwrap_err();
        assert!(error.message().contains("granule"), "{error}");
    }

    #[test]
    fn a_size_that_is_none_is_told_what_a_size_is() {
        for wrong in [text("lots"), OptionValue::Integer(-1)] {
            let error = Options::new().with("granule", wrong).read::<Sample>().unwrap_err();
            assert!(error.message().contains("expected a size such as \"2 MiB\", or a number of bytes"), "{error}");
        }
    }

    #[test]
    fn no_options_refuses_every_key() {
        assert!(Options::new().read::<NoOptions>().is_ok());
        assert!(Options::new().with("any", text("thing")).read::<NoOptions>().is_err());
    }
}
