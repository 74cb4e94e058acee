//! Reads the sections of a registry file: format, search folders, budgets, backings.

use super::budget::{BudgetError, BudgetSpec};
use super::file::RegistryFile;
use super::position::Position;
use super::reader::{Item, Key, Reader, in_written_order};
use leasehold_plugin_api::Domain;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use toml::de::{DeTable, DeValue};

/// The formats that this version reads.
const FORMAT: i64 = 1;

const FORMAT_KEY: Key = Key { name: "format", wanted: "an integer", example: "format = 1" };
const SEARCH: Key =
    Key { name: "search", wanted: "a list of folders", example: "search = [\"plugins\", \"/usr/lib/leasehold\"]" };
const BUDGET: Key = Key {
    name: "budget",
    wanted: "a table of domains",
    example: "[budget] on a line of its own, host = \"auto\" below",
};
const BACKING: Key = Key { name: "backing", wanted: "a list of tables", example: "[[backing]] in double brackets" };
const AMOUNT: Key = Key {
    name: "budget",
    wanted: "\"auto\", a size such as \"8 GiB\", a percentage such as \"75%\" or a number of bytes",
    example: "host = \"8 GiB\"",
};
const KEYS: [Key; 4] = [FORMAT_KEY, SEARCH, BUDGET, BACKING];

/// The first place where each of some keys was written.
type Seen<T> = BTreeMap<T, Position>;

impl<'t> Reader<'t> {
    /// Reads everything that `table` holds into `file`. A format that is not read here may mean anything by its
    /// keys, so then nothing else is looked at.
    pub(super) fn sections(&mut self, table: &DeTable<'t>, file: &mut RegistryFile) {
        match table.get(FORMAT_KEY.name) {
            Some(item) if self.integer(FORMAT_KEY, item).is_some_and(|format| format != FORMAT) => {
                return self.refuse_format(item);
            }
            Some(_) => {}
            None => self.report(
                Position::START,
                "format missing",
                "the file does not say which format it is in",
                format!("add the line format = {FORMAT} at its top"),
            ),
        }
        self.refuse_unknown_keys(table, "a registry", &KEYS);
        if let Some(item) = table.get(SEARCH.name) {
            file.search = self.search(item);
        }
        if let Some(item) = table.get(BUDGET.name) {
            file.budgets = self.budgets(item);
        }
        if let Some(item) = table.get(BACKING.name) {
            self.backings(item, file);
        }
    }

    fn refuse_format(&mut self, item: &Item<'t>) {
        let seen = item.get_ref().as_integer().map(ToString::to_string).unwrap_or_default();
        let why = format!("seen {seen}, this version reads only format {FORMAT}");
        self.report(
            self.at(item),
            "format not read",
            why,
            format!("write format = {FORMAT}, or use a newer leasehold"),
        );
    }

    fn search(&mut self, item: &Item<'t>) -> Vec<PathBuf> {
        let DeValue::Array(items) = item.get_ref() else {
            return self.refuse(SEARCH, item).unwrap_or_default();
        };
        items.iter().filter_map(|item| self.text(SEARCH, item)).map(|folder| folder.value.into()).collect()
    }

    fn budgets(&mut self, item: &Item<'t>) -> BTreeMap<Domain, BudgetSpec> {
        let Some(table) = self.table(BUDGET, item) else { return BTreeMap::new() };
        let mut seen = Seen::new();
        let mut budgets = BTreeMap::new();
        for (key, item) in in_written_order(table) {
            let at = self.at(key);
            let Some(domain) = self.domain(key.get_ref(), at) else { continue };
            if let Some(first) = first_place(&mut seen, domain, at) {
                let why = format!("domain {domain} is on line {} and on line {}", first.line, at.line);
                self.report(at, "second budget", why, "keep one of them");
            }
            if let Some(spec) = self.budget(item) {
                budgets.insert(domain, spec);
            }
        }
        budgets
    }

    fn domain(&mut self, key: &str, at: Position) -> Option<Domain> {
        let domain = key.parse().ok();
        if domain.is_none() {
            let why = format!("seen {key:?}, wanted host, \"device:N\" or \"disk:N\"");
            self.report(at, "budget for no domain", why, "write for example \"device:0\" = \"90%\", with its quotes");
        }
        domain
    }

    fn budget(&mut self, item: &Item<'t>) -> Option<BudgetSpec> {
        let read: Result<BudgetSpec, BudgetError> = match item.get_ref() {
            DeValue::String(text) => text.parse(),
            DeValue::Integer(_) => BudgetSpec::from_integer(self.integer(AMOUNT, item)?),
            _ => return self.refuse(AMOUNT, item),
        };
        match read {
            Ok(spec) => Some(spec),
            Err(error) => {
                let remedy = format!("write for example {}", AMOUNT.example);
                self.report(self.at(item), "budget not read", error.to_string(), remedy);
                None
            }
        }
    }

    fn backings(&mut self, item: &Item<'t>, file: &mut RegistryFile) {
        let DeValue::Array(items) = item.get_ref() else {
            return self.refuse(BACKING, item).unwrap_or_default();
        };
        let mut seen = Seen::new();
        for item in items.iter() {
            let Some(table) = self.table(BACKING, item) else { continue };
            let Some(entry) = self.backing(table, self.at(item)) else { continue };
            let at = entry.name.at;
            if let Some(first) = first_place(&mut seen, entry.name.value.clone(), at) {
                let why = format!("{:?} is on line {} and on line {}", entry.name.value, first.line, at.line);
                self.report(at, "second backing of one name", why, "give one of them another name");
            }
            file.backings.push(entry);
        }
    }
}

/// Where `key` was written before; the first time, remembers this place.
fn first_place<T: Ord>(seen: &mut Seen<T>, key: T, at: Position) -> Option<Position> {
    match seen.entry(key) {
        Entry::Occupied(first) => Some(*first.get()),
        Entry::Vacant(free) => {
            free.insert(at);
            None
        }
    }
}
