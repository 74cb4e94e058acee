//! Prefixes found by their blocks: what is known is mapped, what is cold goes when memory runs short.

use leasehold::{BlockHash, BufferSet, BufferSpec, ErrorKind, Eviction, PrefixCache, PrefixCacheSpec, SharedPrefix};
use leasehold_tests::blocks::{self, chain};
use leasehold_tests::contents::Contents;
use leasehold_tests::rig::{LIMIT, MIB, TestRig, all_sharing_rigs};

const PLANES: usize = 2;

/// Blocks of one granule a plane.
fn cache(rig: &TestRig) -> PrefixCache {
    rig.host.prefix_cache(&rig.backing, &PrefixCacheSpec::new(PLANES, rig.granule)).unwrap()
}

/// A sealed prefix with the blocks of the chain from `first` on.
fn prefix(rig: &TestRig, chain: &[BlockHash], first: usize) -> Result<SharedPrefix, leasehold::Error> {
    let written = blocks::write(&rig.host, &rig.backing, PLANES, rig.granule, &chain[first..])?;
    Ok(written.seal()?)
}

fn insert(rig: &TestRig, cache: &PrefixCache, blocks: &[u8], first: usize) {
    let chain = chain(blocks);
    let prefix = prefix(rig, &chain, first).unwrap();
    assert_eq!(cache.insert(&chain, first, prefix).unwrap(), blocks.len() - first);
}

fn set(rig: &TestRig) -> BufferSet {
    rig.host.buffer_set(&rig.backing, PLANES, &BufferSpec::new(16 * MIB)).unwrap()
}

fn check_contents(rig: &TestRig, set: &BufferSet, chain: &[BlockHash]) {
    for plane in 0..PLANES {
        let bytes = set.seen(plane);
        let seen = usize::try_from(set.len() / rig.granule).unwrap().min(chain.len());
        assert!(blocks::shows(&bytes, plane, rig.granule, &chain[..seen]), "{}: another block", rig.name);
    }
}

#[test]
fn the_known_beginning_of_a_chain_is_found_and_mapped_for_nothing() {
    for rig in all_sharing_rigs() {
        let cache = cache(&rig);
        insert(&rig, &cache, &[1, 2, 3], 0);
        insert(&rig, &cache, &[1, 2, 7], 2);
        let used = rig.used();
        for (blocks, known, parts) in
            [(&[1, 2, 7, 9][..], 3, 2), (&[1, 2, 3], 3, 1), (&[1, 4], 1, 1), (&[4, 1], 0, 0), (&[], 0, 0)]
        {
            let found = cache.find(&chain(blocks));
            assert_eq!((found.blocks, found.parts.len()), (known, parts), "{}: {blocks:?}", rig.name);
            let mut set = set(&rig);
            set.map_prefixes(&found.parts).unwrap();
            assert_eq!(set.shared(), rig.granule * u64::try_from(known).unwrap(), "{}", rig.name);
            check_contents(&rig, &set, &chain(blocks)[..known]);
        }
        assert_eq!(rig.used(), used, "{}: charged once", rig.name);
        let snapshot = cache.snapshot();
        assert_eq!((snapshot.blocks_asked, snapshot.blocks_found), (11, 7), "{}", rig.name);
        assert_eq!((snapshot.prefixes, snapshot.prefixes_in_use, snapshot.blocks), (2, 0, 4), "{}", rig.name);
    }
}

/// Seen elsewhere: a prefix was evicted while somebody still mapped it.
#[test]
fn what_anybody_holds_is_not_evicted_and_what_goes_is_found_no_longer() {
    for rig in all_sharing_rigs() {
        let cache = cache(&rig);
        insert(&rig, &cache, &[1], 0);
        insert(&rig, &cache, &[2], 0);
        insert(&rig, &cache, &[3], 0);
        let block = rig.granule * u64::try_from(PLANES).unwrap();
        let mut mapped = set(&rig);
        mapped.map_prefixes(&cache.find(&chain(&[1])).parts).unwrap();
        let found = cache.find(&chain(&[2]));
        assert_eq!(cache.snapshot().prefixes_in_use, 2, "{}", rig.name);
        assert_eq!(cache.evict(u64::MAX), Eviction { prefixes: 1, blocks: 1, owned_bytes: block }, "{}", rig.name);
        assert_eq!(cache.evict(u64::MAX), Eviction::default(), "{}: and nothing twice", rig.name);
        assert_eq!((rig.used(), cache.find(&chain(&[3])).blocks), (2 * block, 0), "{}", rig.name);
        check_contents(&rig, &mapped, &chain(&[1]));
        drop((mapped, found));
        assert_eq!(cache.evict(u64::MAX).owned_bytes, 2 * block, "{}", rig.name);
        assert_eq!((rig.used(), cache.snapshot().blocks), (0, 0), "{}", rig.name);
    }
}

/// Seen elsewhere: thousands of blocks were evicted and almost nothing was freed, since the blocks that stayed kept the
/// memory.
#[test]
fn an_eviction_reports_the_bytes_that_the_books_got_back() {
    for rig in all_sharing_rigs() {
        let cache = cache(&rig);
        for block in 0..16 {
            insert(&rig, &cache, &[block, 1, 2, 3], 0);
        }
        let prefix = 4 * rig.granule * u64::try_from(PLANES).unwrap();
        // Whoever holds one block of a prefix pins all of its memory.
        let pinned: Vec<_> = (0..12).map(|block| cache.find(&chain(&[block]))).collect();
        let before = rig.used();
        let evicted = cache.evict(u64::MAX);
        assert_eq!((evicted.prefixes, evicted.blocks), (4, 16), "{}", rig.name);
        assert_eq!(evicted.owned_bytes, before - rig.used(), "{}", rig.name);
        assert_eq!(evicted.owned_bytes, 4 * prefix, "{}", rig.name);
        drop(pinned);
        let one = cache.evict(1);
        assert_eq!((one.prefixes, one.owned_bytes), (1, prefix), "{}: no more than is enough", rig.name);
        assert_eq!(cache.snapshot().evicted, Eviction { prefixes: 5, blocks: 20, owned_bytes: 5 * prefix });
    }
}

#[test]
fn under_pressure_the_least_recently_used_goes_and_no_more_than_the_shortfall_needs() {
    for rig in all_sharing_rigs() {
        let cache = cache(&rig);
        let block = rig.granule * u64::try_from(PLANES).unwrap();
        for number in 0..4 {
            insert(&rig, &cache, &[number], 0);
        }
        assert_eq!(cache.find(&chain(&[0])).blocks, 1, "{}: and is used now", rig.name);
        rig.host.governor().set_limit(rig.domain, 5 * block).unwrap();
        let mut set = set(&rig);
        set.grow_to(2 * rig.granule).unwrap();
        assert_eq!(rig.used(), 5 * block, "{}", rig.name);
        let known = |number: u8| cache.find(&chain(&[number])).blocks == 1;
        assert_eq!([0, 1, 2, 3].map(known), [true, false, true, true], "{}", rig.name);
        set.grow_to(5 * rig.granule).unwrap();
        assert_eq!((cache.snapshot().blocks, rig.used()), (0, 5 * block), "{}: all of it went", rig.name);
        let error = set.grow_to(6 * rig.granule).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TierExhausted, "{}: {error}", rig.name);
        rig.host.governor().set_limit(rig.domain, LIMIT).unwrap();
    }
}

#[test]
fn a_prefix_that_was_sealed_twice_is_kept_once_and_its_memory_goes_back() {
    for rig in all_sharing_rigs() {
        let cache = cache(&rig);
        insert(&rig, &cache, &[1, 2], 0);
        let used = rig.used();
        let again = prefix(&rig, &chain(&[1, 2]), 0).unwrap();
        assert_eq!(cache.insert(&chain(&[1, 2]), 0, again).unwrap(), 0, "{}", rig.name);
        rig.host.trim(&rig.backing, u64::MAX).unwrap();
        assert_eq!((rig.used(), cache.snapshot().prefixes), (used, 1), "{}", rig.name);
    }
}

#[test]
fn what_does_not_fit_the_blocks_is_refused() {
    for (rig, other) in all_sharing_rigs().zip(all_sharing_rigs()) {
        let (mine, theirs) = (cache(&rig), cache(&other));
        let blocks = chain(&[1, 2]);
        let short = prefix(&rig, &blocks, 1).unwrap();
        assert_eq!(mine.insert(&blocks, 0, short.clone()).unwrap_err().kind(), ErrorKind::InvalidRequest);
        assert_eq!(theirs.insert(&blocks, 1, short).unwrap_err().kind(), ErrorKind::ForeignPrefix);
        for spec in [PrefixCacheSpec::new(0, MIB), PrefixCacheSpec::new(1, 0), PrefixCacheSpec::new(1, MIB + 1)] {
            let error = rig.host.prefix_cache(&rig.backing, &spec).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{}: {error}", rig.name);
        }
    }
}

#[test]
fn a_cache_that_is_dropped_gives_everything_back_and_is_asked_no_longer() {
    for rig in all_sharing_rigs() {
        let cache = cache(&rig);
        let clone = cache.clone();
        insert(&rig, &cache, &[1, 2], 0);
        drop(cache);
        assert_eq!(clone.find(&chain(&[1, 2])).blocks, 2, "{}", rig.name);
        drop(clone);
        rig.host.trim(&rig.backing, u64::MAX).unwrap();
        assert_eq!(rig.used(), 0, "{}", rig.name);
    }
}

/// Whatever four threads find, map, add and evict under a budget that never suffices: a block shows its own bytes.
#[test]
fn threads_never_see_another_blocks_bytes() {
    for rig in all_sharing_rigs() {
        let cache = cache(&rig);
        let block = rig.granule * u64::try_from(PLANES).unwrap();
        rig.host.governor().set_limit(rig.domain, 24 * block).unwrap();
        let serve = |thread: u64| {
            let mut state = thread.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut set = set(&rig);
            for _ in 0..400 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let blocks: Vec<u8> =
                    (0..1 + state % 5).map(|at| u8::try_from((state >> (8 * at)) % 3).unwrap()).collect();
                let chain = chain(&blocks);
                let found = cache.find(&chain);
                set.map_prefixes(&found.parts).unwrap();
                if found.blocks < chain.len() {
                    match prefix(&rig, &chain, found.blocks) {
                        Ok(new) => {
                            set.map_prefix(&new).unwrap();
                            cache.insert(&chain, found.blocks, new).unwrap();
                        }
                        Err(error) => assert_eq!(error.kind(), ErrorKind::TierExhausted, "{error}"),
                    }
                }
                drop(found);
                check_contents(&rig, &set, &chain);
                if state.is_multiple_of(7) {
                    cache.evict(block);
                }
                set.clear().unwrap();
            }
        };
        std::thread::scope(|scope| {
            (1..=4).for_each(|thread| drop(scope.spawn(move || serve(thread))));
        });
        assert!(rig.host.snapshot().domain(rig.domain).unwrap().peak_bytes <= 24 * block, "{}", rig.name);
        assert_eq!(cache.snapshot().prefixes_in_use, 0, "{}", rig.name);
        cache.evict(u64::MAX);
        rig.host.trim(&rig.backing, u64::MAX).unwrap();
        assert_eq!(rig.used(), 0, "{}", rig.name);
        rig.host.governor().set_limit(rig.domain, LIMIT).unwrap();
    }
}

#[test]
fn a_prefix_that_comes_under_two_chains_is_in_the_cache_once_and_can_go() {
    for rig in all_sharing_rigs() {
        let cache = cache(&rig);
        let block = rig.granule * u64::try_from(PLANES).unwrap();
        let (one, other) = (chain(&[1, 2]), BlockHash::root(b"another tenant").chain([[1], [2]]));
        let prefix = prefix(&rig, &one, 0).unwrap();
        assert_eq!(cache.insert(&one, 0, prefix.clone()).unwrap(), 2, "{}", rig.name);
        assert_eq!(cache.insert(&other, 0, prefix).unwrap(), 2, "{}", rig.name);
        let snapshot = cache.snapshot();
        assert_eq!((snapshot.prefixes, snapshot.prefixes_in_use, snapshot.owned_bytes), (1, 0, 2 * block));
        assert_eq!((cache.find(&one).blocks, cache.find(&other).blocks), (0, 2), "{}", rig.name);
        assert_eq!(cache.evict(u64::MAX).owned_bytes, 2 * block, "{}", rig.name);
        assert_eq!(rig.used(), 0, "{}", rig.name);
    }
}
