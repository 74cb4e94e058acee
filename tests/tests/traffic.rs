//! An hour of ordinary traffic in small: continuous batching over host-pool with its default options.
//!
//! Growth by single granules took any parked run, so that a region fell into ever more pieces: 32 requests of 48 planes had
//! 16.5 mappings a plane after 2,110 tokens, and then the process had none left and every call was refused.
//! `cargo bench -p leasehold-tests --bench traffic` runs 60,000 steps of more mixes.

use leasehold::Domain;
use leasehold_tests::observe::Mappings;
use leasehold_tests::plugins::{Registry, library, text};
use leasehold_tests::traffic::{Mix, Traffic};

const STEPS: u64 = 5000;

#[test]
fn continuous_batching_keeps_few_mappings_a_plane() {
    let registry = Registry::new().backing("pool", &text(&library("leasehold_host_pool")), "");
    let host = registry.builder().limit(Domain::Host, 1 << 40).load().unwrap();
    let backing = host.backing("pool").unwrap();
    let mix = Mix { requests: 32, row_bytes: 2048, touched: false };
    let mut traffic = Traffic::new(mix, backing.capabilities().granularity().unwrap(), 3);
    for step in 1..=STEPS {
        traffic
            .step(&host, &backing, |cache, bytes| cache.grow_to(bytes))
            .unwrap_or_else(|error| panic!("{step}: {error}"));
        if step % 250 == 0 {
            let maps = Mappings::read();
            let counts: Vec<_> =
                traffic.ranges().iter().map(|(base, bytes)| maps.within(*base, *bytes).count()).collect();
            let (all, most) = (counts.iter().sum::<usize>(), counts.iter().max());
            assert!(all <= 3 * traffic.planes(), "{all} mappings of {} planes at step {step}", traffic.planes());
            assert!(most <= Some(&4), "{most:?} mappings of one plane at step {step}");
        }
    }
    drop(traffic);
    host.trim(&backing, u64::MAX).unwrap();
    assert_eq!(host.snapshot().domain(Domain::Host).unwrap().used_bytes, 0);
}
