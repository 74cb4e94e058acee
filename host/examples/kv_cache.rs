//! An engine's KV cache: the keys and values of 24 layers grow a token at a time, and never move.
//! Takes the path of a registry file; default: `registry.toml`.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers are small")]

use leasehold::{BufferSpec, Error, GovernorSnapshot, GrowthPolicy, Host, Requirements, Tier};

const PLANES: usize = 2 * 24; // keys and values of each layer
const ROW: u64 = 2 * 64 * 2; // bytes of one token in one plane: heads × head size × bytes of a number
const CONTEXT: u64 = 32_768; // tokens

fn main() -> Result<(), Error> {
    let registry = std::env::args().nth(1).unwrap_or_else(|| "registry.toml".to_owned());
    println!("{}", serve(&registry)?);
    Ok(())
}

pub(crate) fn serve(registry: &str) -> Result<GovernorSnapshot, Error> {
    let host = Host::load(registry)?;
    let backing = host.find(&Requirements::growable().tier(Tier::Host).copies())?;

    // Address space for the longest context; not a byte is committed or leased yet.
    let spec = BufferSpec::new(CONTEXT * ROW).growth(GrowthPolicy::Step(64 << 10));
    let mut cache = host.buffer_set(&backing, PLANES, &spec)?;
    let keys_of_layer_7 = cache.base(14);

    for token in 1..=1000 {
        match cache.grow_to(token * ROW) {
            Ok(()) => {}
            Err(error) if error.is_exhausted() => break, // the budget is used up: preempt somebody
            Err(error) => return Err(error),
        }
        for plane in 0..PLANES {
            cache.fill(plane, (token - 1) * ROW, ROW, 7)?; // attention writes there itself
        }
    }
    assert_eq!(cache.base(14), keys_of_layer_7);

    cache.shrink_to(100 * ROW)?; // forget all but the first hundred tokens
    Ok(host.snapshot())
}
