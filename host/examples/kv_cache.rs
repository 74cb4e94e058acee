//! An engine's KV cache: 2 × 24 planes that grow a token at a time and never move.
//!
//! `cargo build --workspace && cargo run -p leasehold --example kv_cache` from a clone, or with the path of another
//! registry file as the argument.

#![expect(clippy::arithmetic_side_effects, reason = "the numbers are small")]

use leasehold::{BufferSpec, Error, GrowthPolicy, Host, MemoryRole, Requirements, Tier};

const LAYERS: usize = 24;
const PLANE_BYTES_PER_TOKEN: u64 = 256; // 2 heads × 64 numbers × 2 bytes
const CONTEXT: u64 = 32_768;

fn main() -> Result<(), Error> {
    let registry = std::env::args().nth(1).unwrap_or_else(|| "registry.toml".to_owned());
    let host = Host::load(registry)?;
    let backing = host.find(&Requirements::growable().tier(Tier::Host).host_access())?;

    // Address space for the longest context; no memory yet.
    let spec =
        BufferSpec::new(CONTEXT * PLANE_BYTES_PER_TOKEN).role(MemoryRole::KvCache).growth(GrowthPolicy::Step(64 << 10));
    let mut cache = host.buffer_set(&backing, 2 * LAYERS, &spec)?;
    let keys_of_layer_7 = cache.base(14);

    for token in 0..1000 {
        match cache.grow_to((token + 1) * PLANE_BYTES_PER_TOKEN) {
            Ok(()) => {}
            Err(error) if error.is_exhausted() => break, // preempt somebody, or stop here
            Err(error) => return Err(error),
        }
        for plane in 0..cache.planes() {
            let row = cache.plane_mut(plane)?.rchunks_exact_mut(256).next();
            row.expect("a whole token was added").fill(7);
        }
    }

    assert_eq!(cache.base(14), keys_of_layer_7, "a plane never moves");
    println!("{}: {} tokens, {} bytes committed", backing.name(), cache.len() / 256, cache.committed_total());
    println!("{}", host.snapshot());
    Ok(())
}
