//! Turns a trace's hashes into what its prompts have in common: the bound of every prefix cache.
//!
//! Input: requests in order of arrival, with one hash id per block of [`BLOCK_TOKENS`] tokens of the prompt. Output: a
//! [`PrefixBound`]. Pure; what a store really shares is a [`PrefixUse`], and the store's own affair.
//!
//! **What a hit is.** A prompt's block is hit when an earlier prompt began with the same blocks up to and with this
//! one. Blocks follow one another: after the first miss nothing is hit, whatever the ids say, since what a token means
//! to a model depends on all before it. The last block may be partial; it counts for the tokens that the prompt has.
//!
//! **Ids that don't fit the prompt.** Ids past the prompt's end are not looked at: they name no token. Where there are
//! fewer ids than blocks, the tokens past them have no name and are never hit.

use super::layout::BLOCK_TOKENS;
use super::trace::Request;
use serde::Serialize;
use std::collections::HashMap;

/// What a run shared between requests; all 0 where its store shares nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct PrefixUse {
    /// Tokens of prompts that were found instead of filled.
    pub(crate) hit_tokens: u64,
    /// Bytes that these tokens would have taken a second time.
    pub(crate) bytes_not_stored_twice: u64,
}

/// What a cache without a limit would hit: it keeps every prompt from its arrival on, refused ones too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PrefixBound {
    pub(crate) hit_tokens: u64,
    pub(crate) prompt_tokens: u64,
    /// Whether any request has hash ids; without, nothing can be said.
    pub(crate) is_known: bool,
}

impl PrefixBound {
    /// Of requests in order of arrival.
    pub(crate) fn of(requests: &[Request]) -> Self {
        let mut prompts = PromptTree::default();
        let mut bound = Self::default();
        for request in requests {
            bound.prompt_tokens = bound.prompt_tokens.saturating_add(request.prompt_tokens);
            bound.hit_tokens = bound.hit_tokens.saturating_add(prompts.insert(request));
            bound.is_known |= !request.hash_ids.is_empty();
        }
        bound
    }

    /// The hits' share of all prompt tokens, in percent.
    #[expect(clippy::as_conversions, reason = "no `From`, as large sums round; a ratio of sums may")]
    pub(crate) fn hit_percent(&self) -> f64 {
        match self.prompt_tokens {
            0 => 0.0,
            prompt => self.hit_tokens as f64 / prompt as f64 * 100.0,
        }
    }
}

/// The blocks of a prompt that have ids, and the tokens of each.
fn blocks(request: &Request) -> impl Iterator<Item = (u64, u64)> {
    let starts = (0..).map(|block: u64| block.saturating_mul(BLOCK_TOKENS));
    let tokens = starts.map(|start| request.prompt_tokens.saturating_sub(start).min(BLOCK_TOKENS));
    request.hash_ids.iter().copied().zip(tokens).take_while(|(_, tokens)| *tokens > 0)
}

/// All beginnings of the prompts so far. A node stands for the blocks on the way to it; the root is 0.
#[derive(Debug, Default)]
struct PromptTree {
    /// From a node and the next block's id to the node behind it.
    next: HashMap<(usize, u64), usize>,
}

impl PromptTree {
    /// Adds a prompt; answers how many of its tokens were there, in blocks that were there.
    fn insert(&mut self, request: &Request) -> u64 {
        let mut node = 0;
        let mut hit_tokens: u64 = 0;
        for (id, tokens) in blocks(request) {
            let fresh = self.next.len().saturating_add(1);
            let behind = *self.next.entry((node, id)).or_insert(fresh);
            if behind != fresh {
                hit_tokens = hit_tokens.saturating_add(tokens); // behind a fresh node all are fresh
            }
            node = behind;
        }
        hit_tokens
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    fn request(prompt_tokens: u64, hash_ids: &[u64]) -> Request {
        Request { line: 1, arrival: Duration::ZERO, prompt_tokens, output_tokens: 1, hash_ids: hash_ids.to_vec() }
    }

    fn hits(requests: &[(u64, &[u64])]) -> u64 {
        let requests: Vec<_> = requests.iter().map(|(tokens, ids)| request(*tokens, ids)).collect();
        PrefixBound::of(&requests).hit_tokens
    }

    #[test]
    fn the_leading_blocks_that_were_there_are_hit() {
        assert_eq!(hits(&[(1536, &[1, 2, 3])]), 0);
        assert_eq!(hits(&[(1536, &[1, 2, 3]), (1536, &[1, 2, 4])]), 1024);
        assert_eq!(hits(&[(1536, &[1, 2, 3]), (1536, &[1, 2, 3])]), 1536);
    }

    #[test]
    fn nothing_is_hit_after_a_miss() {
        assert_eq!(hits(&[(1536, &[1, 2, 3]), (1536, &[9, 2, 3])]), 0);
        assert_eq!(hits(&[(1536, &[1, 2, 3]), (1536, &[1, 9, 3])]), 512);
    }

    #[test]
    fn a_beginning_may_be_put_together_from_no_two_prompts() {
        // 1 began a prompt, and 7 came second in one, but no prompt began with 1, 7.
        assert_eq!(hits(&[(1024, &[1, 2]), (1024, &[6, 7]), (1024, &[1, 7])]), 512);
    }

    #[test]
    fn a_partial_block_counts_for_the_tokens_that_the_prompt_has() {
        assert_eq!(hits(&[(600, &[1, 2]), (600, &[1, 2])]), 600);
        assert_eq!(hits(&[(1024, &[1, 2]), (513, &[1, 2])]), 513);
        assert_eq!(hits(&[(1, &[1]), (1, &[1])]), 1);
    }

    #[test]
    fn ids_past_the_prompt_name_nothing_and_tokens_past_the_ids_have_no_name() {
        assert_eq!(hits(&[(512, &[1, 2]), (1024, &[1, 2])]), 512);
        assert_eq!(hits(&[(2048, &[1]), (2048, &[1])]), 512);
        assert_eq!(hits(&[(2048, &[]), (2048, &[])]), 0);
    }

    #[test]
    fn a_trace_without_ids_says_nothing() {
        let without = PrefixBound::of(&[request(100, &[])]);
        assert_eq!(without, PrefixBound { hit_tokens: 0, prompt_tokens: 100, is_known: false });
        assert!(PrefixBound::of(&[request(100, &[]), request(100, &[1])]).is_known);
    }

    #[test]
    fn the_share_of_hits_is_of_all_prompt_tokens() {
        let bound = PrefixBound::of(&[request(512, &[1]), request(512, &[1]), request(1024, &[])]);
        assert!((bound.hit_percent() - 25.0).abs() < 1e-9, "{bound:?}");
        assert_eq!(PrefixBound::default().hit_percent().to_bits(), 0f64.to_bits());
    }

    proptest! {
        #[test]
        fn a_hit_is_the_longest_beginning_that_an_earlier_prompt_has(
            prompts in prop::collection::vec((1u64..2000, prop::collection::vec(0u64..3, 0..5)), 0..12),
        ) {
            let requests: Vec<_> = prompts.iter().map(|(tokens, ids)| request(*tokens, ids)).collect();
            let ids = |request| blocks(request).map(|(id, _)| id).collect::<Vec<_>>();
            let mut expected: u64 = 0;
            for (position, later) in requests.iter().enumerate() {
                let in_common = |earlier| ids(earlier).iter().zip(ids(later)).take_while(|(one, other)| **one == *other).count();
                let longest = requests[..position].iter().map(in_common).max().unwrap_or(0);
                let hit: u64 = blocks(later).take(longest).map(|(_, tokens)| tokens).sum();
                expected = expected.checked_add(hit).unwrap();
            }
            prop_assert_eq!(PrefixBound::of(&requests).hit_tokens, expected);
        }
    }
}
