//! Turns one `[[backing]]` into a [`BackingEntry`].

use super::position::{Located, Position};
use super::reader::{Item, Key, Reader};
use leasehold_plugin_api::Options;
use toml::de::DeTable;

/// One `[[backing]]`, as written, with the defaults of what was left out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BackingEntry {
    /// The name that engines ask for.
    pub(crate) name: Located<String>,
    /// `"builtin"`, a bare name, or a path with a slash.
    pub(crate) library: Located<String>,
    /// Which of the library's backings; its only one when left out.
    pub(crate) backing: Option<String>,
    /// What the library's bytes must hash to.
    pub(crate) sha256: Option<[u8; 32]>,
    /// Whether the host refuses to start without it.
    pub(crate) required: bool,
    pub(crate) enabled: bool,
    /// Among backings that fit, the highest wins.
    pub(crate) priority: i64,
    pub(crate) options: Options,
}

const NAME: Key = Key {
    name: "name",
    wanted: "words of lower-case letters and digits, joined by hyphens",
    example: "name = \"host-mmap\"",
};
const LIBRARY: Key = Key {
    name: "library",
    wanted: "\"builtin\", a bare library name, or a path with a slash",
    example: "library = \"leasehold_host_mmap\" or library = \"./libleasehold_host_mmap.so\"",
};
const BACKING: Key =
    Key { name: "backing", wanted: "the name of one of the library's backings", example: "backing = \"host-mmap\"" };
const SHA256: Key =
    Key { name: "sha256", wanted: "64 hexadecimal digits", example: "what `sha256sum` prints for the library" };
const REQUIRED: Key = Key { name: "required", wanted: "true or false", example: "required = true" };
const ENABLED: Key = Key { name: "enabled", wanted: "true or false", example: "enabled = false" };
const PRIORITY: Key = Key { name: "priority", wanted: "an integer that 64 bits hold", example: "priority = 10" };
const OPTIONS: Key =
    Key { name: "options", wanted: "a table", example: "[backing.options] on a line of its own, with its keys below" };
const KEYS: [Key; 8] = [NAME, LIBRARY, BACKING, SHA256, REQUIRED, ENABLED, PRIORITY, OPTIONS];

impl<'t> Reader<'t> {
    /// One `[[backing]]` that starts at `at`. Every key is looked at, also when an earlier one was refused.
    pub(super) fn backing(&mut self, table: &DeTable<'t>, at: Position) -> Option<BackingEntry> {
        self.refuse_unknown_keys(table, "[[backing]]", &KEYS);
        let name = self.required(NAME, table, at, Self::backing_name);
        let library = self.required(LIBRARY, table, at, Self::library);
        let backing = table.get(BACKING.name).and_then(|item| self.text(BACKING, item));
        let sha256 = table.get(SHA256.name).and_then(|item| self.sha256(item));
        let required = table.get(REQUIRED.name).and_then(|item| self.boolean(REQUIRED, item));
        let enabled = table.get(ENABLED.name).and_then(|item| self.boolean(ENABLED, item));
        let priority = table.get(PRIORITY.name).and_then(|item| self.integer(PRIORITY, item));
        let options = table.get(OPTIONS.name).and_then(|item| self.table(OPTIONS, item));
        let options = options.map(|table| self.options(table));
        Some(BackingEntry {
            name: name?,
            library: library?,
            backing: backing.map(|backing| backing.value),
            sha256,
            required: required.unwrap_or(false),
            enabled: enabled.unwrap_or(true),
            priority: priority.unwrap_or(0),
            options: options.unwrap_or_default(),
        })
    }

    fn required<T>(
        &mut self,
        key: Key,
        table: &DeTable<'t>,
        at: Position,
        read: impl FnOnce(&mut Self, &Item<'t>) -> Option<T>,
    ) -> Option<T> {
        let Some(item) = table.get(key.name) else {
            let what = format!("{} missing", key.name);
            self.report(at, what, "every [[backing]] needs one", format!("add for example {}", key.example));
            return None;
        };
        read(self, item)
    }

    fn backing_name(&mut self, item: &Item<'t>) -> Option<Located<String>> {
        let name = self.text(NAME, item)?;
        if is_backing_name(&name.value) { Some(name) } else { self.refuse(NAME, item) }
    }

    fn library(&mut self, item: &Item<'t>) -> Option<Located<String>> {
        let library = self.text(LIBRARY, item)?;
        let bare_file = library.value.ends_with(".so") && !library.value.contains('/');
        if bare_file { self.refuse(LIBRARY, item) } else { Some(library) }
    }

    fn sha256(&mut self, item: &Item<'t>) -> Option<[u8; 32]> {
        item.get_ref().as_str().and_then(parse_sha256).or_else(|| self.refuse(SHA256, item))
    }
}

/// Whether a name is lower-case words joined by hyphens.
pub(crate) fn is_backing_name(name: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    name.split('-').all(is_word)
}

fn parse_sha256(text: &str) -> Option<[u8; 32]> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| u8::try_from(digit.to_digit(16)?).ok()).collect();
    let bytes: Vec<u8> = digits?
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => Some(high.checked_shl(4)? | low),
            _ => None,
        })
        .collect::<Option<_>>()?;
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_words_joined_by_hyphens() {
        for name in ["a", "host-mmap", "cuda-vmm-2", "0"] {
            assert!(is_backing_name(name), "{name}");
        }
        for name in ["", "-", "a-", "-a", "a--b", "Host", "a_b", "a b", "é", "a.b", "a/b"] {
            assert!(!is_backing_name(name), "{name}");
        }
    }

    #[test]
    fn a_pin_is_64_hexadecimal_digits() {
        let digits = "00ff".repeat(16);
        let bytes = parse_sha256(&digits).unwrap();
        assert_eq!(bytes[..4], [0x00, 0xff, 0x00, 0xff]);
        assert_eq!(parse_sha256(&digits.to_uppercase()), Some(bytes));
        for wrong in ["", &digits[1..], &digits[2..], &format!("{digits}0"), &format!("{}g", &digits[1..])] {
            assert_eq!(parse_sha256(wrong), None, "{wrong}");
        }
    }
}
