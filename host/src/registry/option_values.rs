//! Turns `[backing.options]` into [`Options`]: flat keys, each with a scalar or a list of scalars.
//!
//! Which keys there are is the plugin's business; it refuses those that it does not know.

use super::reader::{Item, Reader, describe, float_value, in_written_order, integer_value};
use leasehold_plugin_api::{OptionValue, Options};
use toml::de::{DeTable, DeValue};

const WANTED_SCALAR: &str = "a text, a finite number that 64 bits hold, true or false";

impl<'t> Reader<'t> {
    /// The options of a backing, less those that were refused.
    pub(super) fn options(&mut self, table: &DeTable<'t>) -> Options {
        in_written_order(table).into_iter().fold(Options::new(), |options, (key, item)| {
            let key = key.get_ref().as_ref();
            match self.option(key, item) {
                Some(value) => options.with(key, value),
                None => options,
            }
        })
    }

    fn option(&mut self, key: &str, item: &Item<'t>) -> Option<OptionValue> {
        match item.get_ref() {
            DeValue::Array(items) => {
                let values: Vec<_> = items.iter().map(|item| self.scalar(key, item)).collect();
                values.into_iter().collect::<Option<_>>().map(OptionValue::List)
            }
            _ => self.scalar(key, item),
        }
    }

    fn scalar(&mut self, key: &str, item: &Item<'t>) -> Option<OptionValue> {
        let value = match item.get_ref() {
            DeValue::Boolean(value) => Some(OptionValue::Boolean(*value)),
            DeValue::Integer(integer) => integer_value(integer).map(OptionValue::Integer),
            DeValue::Float(float) => float_value(float).map(OptionValue::Float),
            DeValue::String(text) => Some(OptionValue::Text(text.as_ref().to_owned())),
            DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
        };
        if value.is_none() {
            let why = format!("seen {}, wanted {WANTED_SCALAR}, or a flat list of these", describe(item.get_ref()));
            self.report(self.at(item), format!("option {key:?} not read"), why, "write it as one of these");
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::RegistryError;
    use super::*;
    use std::path::Path;

    fn options(text: &str) -> Result<Options, RegistryError> {
        let table = DeTable::parse(text).unwrap();
        let mut reader = Reader::new(text);
        let options = reader.options(table.get_ref());
        reader.finish(options, Path::new("registry.toml"))
    }

    #[test]
    fn options_keep_the_order_in_which_they_were_written() {
        let read =
            options("zeta = 1\nalpha = 0x10\nmid = 2.5\non = true\nsize = \"2 MiB\"\npeers = [1, 1_000]\n").unwrap();
        let peers = OptionValue::List(vec![OptionValue::Integer(1), OptionValue::Integer(1000)]);
        let written = Options::new()
            .with("zeta", OptionValue::Integer(1))
            .with("alpha", OptionValue::Integer(16))
            .with("mid", OptionValue::Float(2.5))
            .with("on", OptionValue::Boolean(true))
            .with("size", OptionValue::Text("2 MiB".to_owned()))
            .with("peers", peers);
        assert_eq!(read, written);
    }

    #[test]
    fn a_nested_table_is_refused_at_its_place() {
        let error = options("granule = \"2 MiB\"\ndeep = { a = 1 }\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "registry.toml:2:8: option \"deep\" not read: seen a table, wanted a text, a finite number that 64 bits \
             hold, true or false, or a flat list of these; write it as one of these"
        );
    }

    #[test]
    fn what_no_option_can_hold_is_refused() {
        for (value, seen) in [
            ("2026-01-02", "the date 2026-01-02"),
            ("[[1]]", "a list"),
            ("[1, 2026-01-02]", "the date 2026-01-02"),
            ("nan", "the number nan"),
            ("1e999", "the number 1e999"),
            ("9223372036854775808", "the integer 9223372036854775808"),
        ] {
            let error = options(&format!("key = {value}")).unwrap_err();
            assert_eq!(error.problems().len(), 1, "{value}");
            assert!(error.to_string().contains(&format!("seen {seen},")), "{error}");
        }
    }
}
