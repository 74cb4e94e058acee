//! What a backing is made from, and what comes out of it.

use super::{BackingTable, HostServicesTable, Text};
use crate::{OptionValue, Options};
use abi_stable::StableAbi;
use std::ffi::c_void;

/// The option's value is `integer`, 0 or 1.
pub const OPTION_BOOLEAN: u32 = 1;
/// The option's value is `integer`.
pub const OPTION_INTEGER: u32 = 2;
/// The option's value is `float`.
pub const OPTION_FLOAT: u32 = 3;
/// The option's value is `text`.
pub const OPTION_TEXT: u32 = 4;

/// The option is a scalar.
pub const LIST_NONE: u32 = 0;
/// The option is one element of a list: the elements of one list follow each other under the same key.
pub const LIST_ELEMENT: u32 = 1;
/// The option is a list without elements, and has no value.
pub const LIST_EMPTY: u32 = 2;

/// One scalar option, or one element of a list.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct OptionRecord {
    /// The key.
    pub key: Text,
    /// Which of the values holds: one of the `OPTION_…` numbers.
    pub kind: u32,
    /// Whether it is part of a list: one of the `LIST_…` numbers.
    pub list: u32,
    /// A whole number or a truth value.
    pub integer: i64,
    /// A number with a fraction.
    pub float: f64,
    /// A text.
    pub text: Text,
}

impl OptionRecord {
    /// The records of all options. They borrow from them.
    #[must_use]
    pub fn list(options: &Options) -> Vec<Self> {
        let mut records = Vec::new();
        for (key, value) in options.iter() {
            match value {
                OptionValue::List(values) if values.is_empty() => records.push(Self::without_value(key, LIST_EMPTY)),
                OptionValue::List(values) => {
                    records.extend(values.iter().map(|value| Self::scalar(key, LIST_ELEMENT, value)));
                }
                scalar => records.push(Self::scalar(key, LIST_NONE, scalar)),
            }
        }
        records
    }

    fn without_value(key: &str, list: u32) -> Self {
        Self { key: Text::borrow(key), kind: 0, list, integer: 0, float: 0.0, text: Text::borrow("") }
    }

    fn scalar(key: &str, list: u32, value: &OptionValue) -> Self {
        let record = Self::without_value(key, list);
        match value {
            OptionValue::Boolean(value) => Self { kind: OPTION_BOOLEAN, integer: i64::from(*value), ..record },
            OptionValue::Integer(value) => Self { kind: OPTION_INTEGER, integer: *value, ..record },
            OptionValue::Float(value) => Self { kind: OPTION_FLOAT, float: *value, ..record },
            OptionValue::Text(value) => Self { kind: OPTION_TEXT, text: Text::borrow(value), ..record },
            // A list in a list has no form in the tables; the plugin refuses the kind 0.
            OptionValue::List(_) => record,
        }
    }
}

/// What the host passes to make a backing. Everything in it is borrowed for the call, but for the table of services.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct CreateRequest {
    /// Valid for the life of the process.
    pub services: *const HostServicesTable,
    /// Which backing this is: passed back in every call of a service.
    pub services_context: u64,
    /// First option; may be anything when there is none.
    pub options: *const OptionRecord,
    /// Number of options.
    pub option_count: usize,
}

/// A backing that was made: the plugin's own pointer, and the table that takes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct BackingInstance {
    /// The plugin's own pointer, passed back in every call. Ends with `destroy`.
    pub this: *mut c_void,
    /// Never null on success; valid for the life of the process.
    pub table: *const BackingTable,
}
