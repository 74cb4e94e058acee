//! Random calls on a few regions and prefixes against a plain model: what is where, what it holds, and who is charged.

use super::memory::{fill, first_byte, holds};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const PAGE: u64 = 4 * KIB;
const REGIONS: u64 = 3;
const PAGES: u64 = 10;
const PARKED: u64 = 12;

#[derive(Clone, Debug)]
enum Act {
    Commit(Vec<(u64, u64, u64)>),
    Decommit(Vec<(u64, u64, u64)>),
    Create(u64, u64),
    Seal(u64),
    Map(u64, u64, u64, u64, u64),
    Unmap(usize),
    ReleasePrefix(u64),
    Renew(u64),
    Trim(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let parts = || prop::collection::vec((0..REGIONS, 0..PAGES, 1..=PAGES / 2), 1..3);
    prop_oneof![
        4 => parts().prop_map(Act::Commit),
        3 => parts().prop_map(Act::Decommit),
        1 => (1..4_u64, 0..REGIONS).prop_map(|(pages, who)| Act::Create(pages, who)),
        1 => (0..8_u64).prop_map(Act::Seal),
        2 => (0..8_u64, 0..3_u64, 1..4_u64, 0..REGIONS, 0..PAGES).prop_map(|(a, b, c, d, e)| Act::Map(a, b, c, d, e)),
        1 => (0..4_usize).prop_map(Act::Unmap),
        1 => (0..8_u64).prop_map(Act::ReleasePrefix),
        1 => (0..REGIONS).prop_map(Act::Renew),
        1 => (0..20_u64).prop_map(Act::Trim),
    ]
}

/// A live handle, or one that only mappings keep alive.
#[derive(Clone, Debug)]
struct ModelPrefix {
    window: leasehold_plugin_api::Address,
    pages: u64,
    value: u8,
    is_sealed: bool,
    is_live: bool,
}

struct Model {
    pool: HostPool,
    books: Arc<Books>,
    /// Base, id and holder of each region.
    regions: Vec<(leasehold_plugin_api::Address, u64, HolderId)>,
    private: BTreeMap<(u64, u64), u8>,
    mapped: Vec<PrefixMapping>,
    prefixes: Vec<ModelPrefix>,
    next_region: u64,
    next_value: u8,
}

/// Values tell their holder: odd ones are the first's.
fn holder(who: u64) -> HolderId {
    if who == 0 { ONE } else { OTHER }
}

impl Model {
    fn new() -> Self {
        let granule = Some(ByteSize(PAGE));
        let (pool, books) = pool(&HostPoolOptions { granule, ..parking(PARKED * PAGE) });
        let (private, mapped, prefixes) = Default::default();
        let regions = Vec::new();
        let mut model = Self { pool, books, regions, private, mapped, prefixes, next_region: 0, next_value: 1 };
        (0..REGIONS).for_each(|who| model.reserve(who));
        model
    }

    fn reserve(&mut self, who: u64) {
        let id = self.next_region;
        self.next_region += 1;
        let region = reserve(&self.pool, id, PAGES * PAGE, holder(who));
        let slot = usize::try_from(who).unwrap();
        self.regions.insert(slot, (region.base, id, holder(who)));
    }

    /// A fresh value of that holder.
    fn value(&mut self, holder: HolderId) -> u8 {
        self.next_value = self.next_value.checked_add(2).unwrap_or(1) | 1;
        if holder == ONE { self.next_value } else { self.next_value & !1 | 128 }
    }

    fn region(&self, who: u64) -> (leasehold_plugin_api::Address, u64, HolderId) {
        self.regions[usize::try_from(who).unwrap()]
    }

    fn ranges(&self, parts: &[(u64, u64, u64)]) -> Vec<CommitRange> {
        parts.iter().map(|(who, page, pages)| range(self.region(*who).1, page * PAGE, pages * PAGE)).collect()
    }

    /// The pages of the parts, or `None` where the call is malformed.
    fn pages(parts: &[(u64, u64, u64)]) -> Option<Vec<(u64, u64)>> {
        let mut named = Vec::new();
        for (who, page, pages) in parts {
            (page + pages <= PAGES).then_some(())?;
            named.extend((*page..page + pages).map(|page| (*who, page)));
        }
        named.sort_unstable();
        let count = named.len();
        named.dedup();
        (named.len() == count).then_some(named)
    }

    fn is_prefix(&self, (who, page): (u64, u64)) -> bool {
        let id = self.region(who).1;
        self.mapped.iter().any(|mapping| {
            let first = mapping.offset / PAGE;
            mapping.region().get() == id && (first..first + mapping.source.bytes / PAGE).contains(&page)
        })
    }

    fn commit(&mut self, parts: &[(u64, u64, u64)]) {
        let is_free = |page: &(u64, u64)| !self.private.contains_key(page) && !self.is_prefix(*page);
        let pages = Self::pages(parts).filter(|pages| pages.iter().all(is_free));
        let answer = self.pool.commit(&self.ranges(parts));
        assert_eq!(answer.is_ok(), pages.is_some(), "{answer:?}");
        for (who, page) in pages.into_iter().flatten() {
            let (base, _, holder) = self.region(who);
            let seen = first_byte(base, page * PAGE);
            assert!(holds(base, page * PAGE, PAGE, seen));
            assert!(seen == 0 || (seen % 2 == 1) == (holder == ONE), "{seen} shows to {holder}");
            let value = self.value(holder);
            fill(base, page * PAGE, PAGE, value);
            self.private.insert((who, page), value);
        }
    }

    fn decommit(&mut self, parts: &[(u64, u64, u64)]) {
        let is_there = |pages: &Vec<(u64, u64)>| pages.iter().all(|page| self.private.contains_key(page));
        let pages = Self::pages(parts).filter(is_there);
        let answer = self.pool.decommit(&self.ranges(parts));
        assert_eq!(answer.is_ok(), pages.is_some(), "{answer:?}");
        for page in pages.into_iter().flatten() {
            self.private.remove(&page);
        }
    }

    fn create(&mut self, pages: u64, who: u64) {
        let id = u64::try_from(self.prefixes.len()).unwrap();
        let window = create(&self.pool, id, pages * PAGE, holder(who)).unwrap().window;
        let seen = first_byte(window, 0);
        assert!(seen == 0 || (seen % 2 == 1) == (holder(who) == ONE), "{seen} shows to {}", holder(who));
        let value = self.value(holder(who));
        fill(window, 0, pages * PAGE, value);
        self.prefixes.push(ModelPrefix { window, pages, value, is_sealed: false, is_live: true });
    }

    fn prefix(&mut self, id: u64) -> Option<&mut ModelPrefix> {
        self.prefixes.get_mut(usize::try_from(id).unwrap()).filter(|prefix| prefix.is_live)
    }

    fn map(&mut self, (id, from, pages, who, page): (u64, u64, u64, u64, u64)) {
        let wanted = place(id, from * PAGE, pages * PAGE, self.region(who).1, page * PAGE);
        let is_source = self.prefix(id).is_some_and(|prefix| prefix.is_sealed && from + pages <= prefix.pages);
        let is_free = |page: &(u64, u64)| !self.private.contains_key(page) && !self.is_prefix(*page);
        let is_target = Self::pages(&[(who, page, pages)]).is_some_and(|pages| pages.iter().all(is_free));
        let answer = self.pool.map_prefix(&[wanted]);
        assert_eq!(answer.is_ok(), is_source && is_target, "{answer:?}");
        self.mapped.extend((is_source && is_target).then_some(wanted));
    }

    fn act(&mut self, act: &Act) {
        match act {
            Act::Commit(parts) => self.commit(parts),
            Act::Decommit(parts) => self.decommit(parts),
            Act::Create(pages, who) => self.create(*pages, *who),
            Act::Seal(id) => {
                let may = self.prefix(*id).is_some_and(|prefix| !std::mem::replace(&mut prefix.is_sealed, true));
                assert_eq!(self.pool.seal(PrefixId::new(*id)).is_ok(), may);
            }
            Act::Map(id, from, pages, who, page) => self.map((*id, *from, *pages, *who, *page)),
            Act::Unmap(nth) if *nth < self.mapped.len() => {
                let mapping = self.mapped.swap_remove(*nth);
                self.pool.unmap(&[mapping]).unwrap();
                assert!(self.pool.unmap(&[mapping]).is_err());
            }
            Act::Unmap(_) => {}
            Act::ReleasePrefix(id) => {
                let was_live = self.prefix(*id).is_some_and(|prefix| std::mem::replace(&mut prefix.is_live, false));
                let outcome = self.pool.release_prefix(PrefixId::new(*id));
                assert_eq!(outcome == ReleaseOutcome::Complete, was_live);
            }
            Act::Renew(who) => {
                let (_, id, _) = self.regions.remove(usize::try_from(*who).unwrap());
                release(&self.pool, id);
                self.mapped.retain(|mapping| mapping.region().get() != id);
                self.private.retain(|(region, _), _| region != who);
                self.reserve(*who);
            }
            Act::Trim(pages) => {
                let parked = self.pool.pool.parked_bytes();
                assert_eq!(self.pool.trim(pages * PAGE), Ok(parked.min(pages * PAGE)));
            }
        }
    }

    /// Whether memory and books are as the model has them.
    fn check(&self) {
        let mut owned = 0;
        for (who, (base, id, _)) in (0..).zip(&self.regions) {
            let pages = self.private.iter().filter(|((region, _), _)| *region == who);
            let bytes = u64::try_from(pages.clone().count()).unwrap() * PAGE;
            assert_eq!(committed(&self.pool, *id), bytes);
            owned += bytes;
            pages.for_each(|((_, page), value)| assert!(holds(*base, page * PAGE, PAGE, *value)));
        }
        for mapping in &self.mapped {
            let prefix = &self.prefixes[usize::try_from(mapping.source.prefix().get()).unwrap()];
            let (base, ..) = self.regions.iter().find(|(_, id, _)| *id == mapping.region().get()).unwrap();
            assert!(holds(*base, mapping.offset, mapping.source.bytes, prefix.value));
        }
        for (id, prefix) in (0..).zip(&self.prefixes) {
            let is_mapped = self.mapped.iter().any(|mapping| mapping.source.prefix().get() == id);
            owned += if prefix.is_live || is_mapped { prefix.pages * PAGE } else { 0 };
            assert!(!prefix.is_live || holds(prefix.window, 0, prefix.pages * PAGE, prefix.value));
        }
        let parked = self.pool.pool.parked_bytes();
        assert!(parked <= PARKED * PAGE);
        assert_eq!(self.books.charged(), owned + parked);
        // Every owned page was written, parked ones when they were behind something.
        assert_eq!(self.pool.pool.resident_bytes(), owned + parked);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn random_calls_agree_with_a_model(acts in prop::collection::vec(act(), 1..60)) {
        let mut model = Model::new();
        for act in &acts {
            model.act(act);
            model.check();
        }
    }
}
