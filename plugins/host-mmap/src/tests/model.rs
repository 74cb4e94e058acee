//! Random calls on a few regions against a plain model: which granules are committed, and what they hold.

use super::memory::{holds, mark, resident};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const REGIONS: u64 = 3;
const PAGES: u64 = 12;

#[derive(Clone, Debug)]
enum Act {
    Commit(Vec<CommitRange>),
    Decommit(Vec<CommitRange>),
}

fn ranges() -> impl Strategy<Value = Vec<CommitRange>> {
    let one = (0..REGIONS, 0..PAGES, 1..=PAGES / 2);
    prop::collection::vec(one.prop_map(|(id, page, pages)| range(id, page * PAGE, pages * PAGE)), 1..4)
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![ranges().prop_map(Act::Commit), ranges().prop_map(Act::Decommit)]
}

/// The granules of the ranges, or `None` where the call is malformed.
fn granules(ranges: &[CommitRange]) -> Option<Vec<(u64, u64)>> {
    let mut granules = Vec::new();
    for part in ranges {
        let end = part.end().filter(|end| *end <= PAGES * PAGE)?;
        granules.extend((part.offset / PAGE..end / PAGE).map(|page| (part.region().get(), page)));
    }
    granules.sort_unstable();
    let named = granules.len();
    granules.dedup();
    (granules.len() == named).then_some(granules)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_calls_agree_with_a_model(acts in prop::collection::vec(act(), 1..60)) {
        let backing = backing(&HostMmapOptions::default());
        let bases: Vec<_> = (0..REGIONS).map(|id| reserve(&backing, id, PAGES * PAGE).base).collect();
        let mut model = BTreeMap::<(u64, u64), u8>::new();
        for (value, act) in (1..).zip(acts) {
            let (Act::Commit(named) | Act::Decommit(named)) = &act;
            let Some(granules) = granules(named) else {
                prop_assert!(backing.commit(named).is_err() && backing.decommit(named).is_err());
                continue;
            };
            let bytes = both(u64::try_from(granules.len()).unwrap() * PAGE);
            match &act {
                Act::Commit(named) => {
                    let free = granules.iter().all(|granule| !model.contains_key(granule));
                    prop_assert_eq!(backing.cost(named).ok(), free.then_some(bytes));
                    prop_assert_eq!(backing.commit(named).ok(), free.then_some(bytes));
                    for (id, page) in granules.into_iter().filter(|_| free) {
                        let base = bases[usize::try_from(id).unwrap()];
                        prop_assert!(holds(base, page * PAGE, PAGE, 0));
                        mark(base, page * PAGE, PAGE, value);
                        model.insert((id, page), value);
                    }
                }
                Act::Decommit(named) => {
                    let held = granules.iter().all(|granule| model.contains_key(granule));
                    prop_assert_eq!(backing.decommit(named).ok(), held.then_some(bytes));
                    model.retain(|granule, _| !held || !granules.contains(granule));
                }
            }
        }
        for (id, base) in (0..).zip(&bases) {
            let held = model.keys().filter(|(region, _)| *region == id).count();
            let bytes = u64::try_from(held).unwrap() * PAGE;
            prop_assert_eq!((committed(&backing, id), resident(*base, 0, PAGES * PAGE)), (bytes, bytes));
        }
        for ((id, page), value) in &model {
            prop_assert!(holds(bases[usize::try_from(*id).unwrap()], page * PAGE, PAGE, *value));
        }
    }
}
