//! What an hour of continuous batching costs on host-pool with its default options: refusals, mappings a plane, and how
//! long the growths take that cross a granule.
//!
//! `cargo bench -p leasehold-tests --bench traffic` takes some ten minutes, most of them in the mixes whose memory is
//! written; `-- 5000` runs so many steps a mix instead of 60,000. docs/performance.md quotes a run.

use leasehold::{Domain, Host};
use leasehold_tests::observe::Mappings;
use leasehold_tests::plugins::{Registry, library, text};
use leasehold_tests::traffic::{Mix, Traffic};
use std::time::{Duration, Instant};

/// Requests at once, and bytes of a token in a plane.
const MIXES: [(usize, u64); 4] = [(32, 2048), (64, 1024), (128, 256), (64, 256)];

/// Steps between two looks at the mappings.
const LOOK: u64 = 1000;

fn main() {
    let steps = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(60_000);
    println!(
        "| requests × row | written | steps | mappings a plane: mean, worst mean, most | growths | p50 | p99 | max |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (requests, row_bytes) in MIXES {
        for touched in [false, true] {
            println!("{}", run(Mix { requests, row_bytes, touched }, steps));
        }
    }
}

/// Mappings a plane, over all looks.
#[derive(Default)]
struct Looks {
    means: Vec<f64>,
    most: usize,
}

impl Looks {
    fn look(&mut self, traffic: &Traffic) {
        let maps = Mappings::read();
        let counts = traffic.ranges().into_iter().map(|(base, bytes)| maps.within(base, bytes).count());
        let (sum, most) = counts.fold((0, 0), |(sum, most), count| (sum + count, most.max(count)));
        self.means.push(sum as f64 / traffic.planes() as f64);
        self.most = self.most.max(most);
    }
}

/// Runs a mix in a host of its own, up to the first refusal; one row of the table.
fn run(mix: Mix, steps: u64) -> String {
    let registry = Registry::new().backing("pool", &text(&library("leasehold_host_pool")), "");
    let host = registry.builder().limit(Domain::Host, 1 << 40).load().expect("its backing is ready");
    let backing = host.backing("pool").expect("it is there");
    let granule = backing.capabilities().granularity().expect("it grows");
    let (mut traffic, mut looks, mut growths) = (Traffic::new(mix, granule, 3), Looks::default(), Vec::new());
    let mut refusal = None;
    let mut done = 0;
    while done < steps && refusal.is_none() {
        refusal = step(&mut traffic, &host, &backing, &mut growths).err();
        done += 1;
        if done % LOOK == 0 {
            looks.look(&traffic);
        }
    }
    let Mix { requests, row_bytes, touched } = mix;
    let mean = looks.means.iter().sum::<f64>() / looks.means.len() as f64;
    let worst = looks.means.iter().fold(0.0_f64, |worst, mean| worst.max(*mean));
    let end = refusal.map_or_else(|| format!("{done}"), |error| format!("{done}, then refused: {error}"));
    let (count, [p50, p99, max]) = (growths.len(), quantiles(growths));
    format!(
        "| {requests} × {row_bytes} B | {} | {end} | {mean:.2}, {worst:.2}, {} | {count} | {p50:.1?} | {p99:.1?} | {max:.1?} |",
        if touched { "yes" } else { "no" },
        looks.most,
    )
}

/// Times the growths that commit something.
fn step(
    traffic: &mut Traffic,
    host: &Host,
    backing: &leasehold::BackingHandle,
    growths: &mut Vec<Duration>,
) -> Result<(), leasehold::Error> {
    traffic.step(host, backing, |cache, bytes| {
        let (begin, before) = (Instant::now(), cache.committed());
        let outcome = cache.grow_to(bytes);
        if cache.committed() > before && before > 0 {
            growths.push(begin.elapsed());
        }
        outcome
    })
}

/// The median, the 99th percentile and the longest.
fn quantiles(mut times: Vec<Duration>) -> [Duration; 3] {
    times.sort_unstable();
    let at =
        |share: f64| times.get((times.len() as f64 * share) as usize).or(times.last()).copied().unwrap_or_default();
    [at(0.5), at(0.99), at(1.0)]
}
