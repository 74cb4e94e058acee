//! Continuous batching, as an engine does it: a fixed number of requests run at once, each over a buffer set; each gets
//! its prompt at once and its answer token by token, and ends; the next request takes its place.
//!
//! In: a mix and a seed. Out: growths that are due one by one, so that a caller can time or count each. It owns the
//! buffer sets of the requests that run.

use leasehold::{BackingHandle, BufferSet, BufferSpec, Error, HolderId, Host};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Keys and values of 24 layers.
pub const PLANES: usize = 48;

/// The longest context, in tokens.
const CONTEXT: u64 = 32_768;

/// How many requests run at once, and how many bytes a token has in a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Requests at once.
    pub requests: usize,
    /// Bytes of one token in one plane.
    pub row_bytes: u64,
    /// Whether the first byte of each granule is written once it is reached.
    pub touched: bool,
}

/// Requests that run.
#[derive(Debug)]
pub struct Traffic {
    mix: Mix,
    granule: u64,
    numbers: ChaCha8Rng,
    running: Vec<Request>,
    started: u64,
}

#[derive(Debug)]
struct Request {
    cache: BufferSet,
    tokens: u64,
    /// Tokens at which it ends.
    last: u64,
}

impl Traffic {
    /// No request yet, on a backing with that granule.
    #[must_use]
    pub fn new(mix: Mix, granule: u64, seed: u64) -> Self {
        Self { mix, granule, numbers: ChaCha8Rng::seed_from_u64(seed), running: Vec::new(), started: 0 }
    }

    /// One step of the engine: requests that are done end, others take their place with prompts of 100 to 1,999 tokens, and
    /// each request gets one token; an answer has 50 to 3,999. `grow` is called for each growth with its target length in
    /// bytes, and makes it.
    ///
    /// # Errors
    ///
    /// The first growth or reservation that is refused.
    pub fn step(
        &mut self,
        host: &Host,
        backing: &BackingHandle,
        mut grow: impl FnMut(&mut BufferSet, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Mix { requests, row_bytes, touched } = self.mix;
        self.running.retain(|request| request.tokens < request.last);
        while self.running.len() < requests {
            self.started += 1;
            let spec = BufferSpec::new(CONTEXT * row_bytes).holder(HolderId::new(self.started));
            let mut cache = host.buffer_set(backing, PLANES, &spec)?;
            let tokens = self.numbers.random_range(100..2000);
            grow(&mut cache, tokens * row_bytes)?;
            let last = tokens + self.numbers.random_range(50..4000);
            self.running.push(Request { cache, tokens, last });
        }
        for Request { cache, tokens, .. } in &mut self.running {
            *tokens += 1;
            let bytes = *tokens * row_bytes;
            grow(cache, bytes)?;
            if touched && bytes % self.granule < row_bytes {
                for plane in 0..PLANES {
                    cache.fill(plane, bytes - row_bytes, 1, 1)?;
                }
            }
        }
        Ok(())
    }

    /// Planes of the requests that run.
    #[must_use]
    pub fn planes(&self) -> usize {
        self.running.len() * PLANES
    }

    /// Base and capacity of every plane, in bytes.
    ///
    /// # Panics
    ///
    /// Never: every set has that many planes.
    #[must_use]
    pub fn ranges(&self) -> Vec<(leasehold::Address, u64)> {
        let of_set = |cache: &BufferSet| {
            let capacity = cache.capacity();
            (0..PLANES).filter_map(|plane| Some((cache.base(plane)?, capacity))).collect::<Vec<_>>()
        };
        self.running.iter().flat_map(|request| of_set(&request.cache)).collect()
    }
}
