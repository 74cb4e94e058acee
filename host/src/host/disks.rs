//! Which number each disk has: what its entry's option `ordinal` says, or its place among the disks.
//!
//! Pure. A backing does not number its disk: where it names a disk, the host reads the number of its entry, so that two
//! vendors who both count from 0 never charge one budget.

use leasehold_plugin_api::{OptionValue, Options};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The option of an entry that numbers its disk.
const ORDINAL: &str = "ordinal";

/// The numbers of the disks of one host.
#[derive(Debug, Default)]
pub(super) struct DiskNumbers {
    /// The first disk of each number.
    taken: BTreeMap<u32, Taken>,
    /// Disks so far.
    places: u32,
}

#[derive(Debug)]
struct Taken {
    entry: Arc<str>,
    choice: Choice,
}

/// How a disk came to its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Named,
    Place,
}

impl DiskNumbers {
    /// The number of the next disk, unless its entry names one: its place, or the first number after it that is free.
    pub(super) fn next(&self) -> u32 {
        (self.places..=u32::MAX).find(|number| !self.taken.contains_key(number)).unwrap_or(u32::MAX)
    }

    /// The backing of an entry turned out to be a disk: it has the number that its options name, or else
    /// [`next`](Self::next). Two entries share a number where both name it, and only then.
    pub(super) fn take(&mut self, entry: &Arc<str>, named: Option<u32>) -> Result<(), String> {
        let (number, choice) = named.map_or_else(|| (self.next(), Choice::Place), |number| (number, Choice::Named));
        match self.taken.get(&number) {
            Some(Taken { entry: other, choice: Choice::Place }) => {
                return Err(format!(
                    "option {ORDINAL:?} names disk:{number}, which {other:?} has by its place among the disks; write a \
                     number that is free, or the same one in the options of both to share its budget"
                ));
            }
            Some(_) => {}
            None => drop(self.taken.insert(number, Taken { entry: Arc::clone(entry), choice })),
        }
        self.places = self.places.saturating_add(1);
        Ok(())
    }
}

/// The number that an entry's options name, if its backing is a disk: to a backing of another tier the option may mean
/// anything.
pub(super) fn named(options: &Options) -> Result<Option<u32>, String> {
    let Some((_, value)) = options.iter().find(|(key, _)| *key == ORDINAL) else { return Ok(None) };
    let seen = match value {
        OptionValue::Integer(number) => match u32::try_from(*number) {
            Ok(number) => return Ok(Some(number)),
            Err(_) => number.to_string(),
        },
        OptionValue::Text(text) => format!("the text {text:?}"),
        OptionValue::Float(number) => number.to_string(),
        OptionValue::Boolean(value) => value.to_string(),
        OptionValue::List(_) => "a list".to_owned(),
    };
    let largest = u32::MAX;
    Err(format!(
        "option {ORDINAL:?} of a disk not read: seen {seen}, wanted a number from 0 to {largest}; correct \
         [backing.options]"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes numbers for disks with these options, and says which each would have had without.
    fn next_of(options: &[Option<u32>]) -> Vec<u32> {
        let mut numbers = DiskNumbers::default();
        let mut take = |option: &Option<u32>| {
            let next = numbers.next();
            numbers.take(&"any".into(), *option).expect("is free");
            next
        };
        options.iter().map(&mut take).collect()
    }

    #[test]
    fn a_disk_without_the_option_has_its_place() {
        assert_eq!(next_of(&[None, None, None]), [0, 1, 2]);
    }

    #[test]
    fn a_disk_with_the_option_counts_as_a_place() {
        assert_eq!(next_of(&[Some(7), None, None]), [0, 1, 2]);
    }

    #[test]
    fn a_number_that_an_earlier_disk_names_is_passed_over() {
        assert_eq!(next_of(&[Some(1), None, None, None]), [0, 2, 3, 4]);
    }

    #[test]
    fn two_disks_share_a_number_where_both_name_it() {
        assert_eq!(next_of(&[Some(4), Some(4), None]), [0, 1, 2]);
        let mut numbers = DiskNumbers::default();
        numbers.take(&"first".into(), None).expect("is free");
        let refusal = numbers.take(&"second".into(), Some(0)).expect_err("the first has it by its place");
        assert!(refusal.contains("names disk:0, which \"first\" has by its place"), "{refusal}");
        assert_eq!(numbers.next(), 1, "a disk that was refused has no place");
    }

    #[test]
    fn an_option_that_is_no_number_is_refused() {
        for value in [OptionValue::Text("1".to_owned()), OptionValue::Float(1.0), OptionValue::Integer(-1)] {
            let refusal = named(&Options::new().with(ORDINAL, value)).expect_err("is no number");
            assert!(refusal.contains("wanted a number from 0 to 4294967295"), "{refusal}");
        }
        assert_eq!(named(&Options::new()), Ok(None));
    }
}
