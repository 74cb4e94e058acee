//! Serves prompts that begin alike, and holds what they have in common once: the program of the README.
#![expect(clippy::arithmetic_side_effects, reason = "the numbers are small")]

use leasehold::{
    BlockHash, BufferSet, BufferSpec, Error, GovernorSnapshot, Host, PrefixCache, PrefixCacheSpec, PrefixSpec,
    Requirements,
};

const PLANES: usize = 2 * 24; // keys and values of each layer
const ROW: u64 = 2 * 64 * 2; // bytes of one token in one plane
const BLOCK: u64 = 256; // tokens that are shared or not as a whole: 64 KiB a plane, one granule of host-pool

fn main() -> Result<(), Error> {
    let registry = std::env::args().nth(1).unwrap_or_else(|| "registry.toml".to_owned());
    println!("{}", serve(&registry)?);
    Ok(())
}

pub(crate) fn serve(registry: &str) -> Result<GovernorSnapshot, Error> {
    let host = Host::load(registry)?;
    let backing = host.find(&Requirements::growable().shared_mapping().host_access())?;
    let known = host.prefix_cache(&backing, &PrefixCacheSpec::new(PLANES, BLOCK * ROW))?;

    let system_prompt = ["you are", "a helpful", "assistant"]; // a block of tokens each
    let prompts = ["what is", "why is", "where is"].map(|question| [&system_prompt[..], &[question]].concat());
    let mut running = Vec::new();
    for prompt in &prompts {
        let mut cache = host.buffer_set(&backing, PLANES, &BufferSpec::new(1024 * BLOCK * ROW))?;
        begin(&host, &backing, &known, prompt, &mut cache)?;
        cache.grow_to(cache.shared() + 100 * ROW)?; // what is generated is private, and grows behind the prompt
        for plane in 0..PLANES {
            cache.private_mut(plane)?.fill(9);
        }
        running.push(cache);
    }
    Ok(host.snapshot())
}

/// Maps the blocks of a prompt that are known, and makes the others known.
fn begin(
    host: &Host,
    backing: &leasehold::BackingHandle,
    known: &PrefixCache,
    prompt: &[&str],
    cache: &mut BufferSet,
) -> Result<(), Error> {
    let chain = BlockHash::root(b"tenant 1").chain(prompt);
    let found = known.find(&chain);
    cache.map_prefixes(&found.parts)?; // costs address space only
    if found.blocks < chain.len() {
        let blocks = u64::try_from(chain.len() - found.blocks).unwrap_or(u64::MAX);
        let mut prefix = host.prefix(backing, &PrefixSpec::new(blocks * BLOCK * ROW).planes(PLANES))?;
        for plane in 0..PLANES {
            prefix.plane_mut(plane)?.fill(7); // where prefill would write
        }
        let prefix = prefix.seal()?; // from now on nobody can write it, nowhere
        cache.map_prefix(&prefix)?;
        known.insert(&chain, found.blocks, prefix)?;
    }
    Ok(())
}
