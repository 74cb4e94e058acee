//! Turns a cache's geometry, a granule and the length of a prefix into how much of the prefix can be shared, and what
//! sharing it costs.
//!
//! Pure arithmetic: no backing, no buffer, no input or output. It answers before anything is committed whether a
//! prefix is worth sharing in a given layout.
//!
//! **The rule.** A shared prefix is physical memory that is owned once and mapped into every user's planes. What is
//! mapped is a granule: it is shared whole or not at all, and what a user writes itself, its private part, begins on
//! a granule. So the shared tokens of a plane fill whole granules. A token is shared whole or not at all too: were its
//! row cut by that border, both parts would need each other. The shared bytes of a plane are therefore a multiple of
//! the granule *and* of the row, which is a multiple of `lcm(granule, row)` bytes, or of
//!
//! ```text
//! lcm(granule, row) / row  =  granule / gcd(granule, row)   tokens: the unit.
//! ```
//!
//! A prefix of n tokens shares `n − n mod unit` of them; the rest is private to each user. This holds for each plane
//! alike, since all planes of a cache have rows of the same size and begin on a granule.
//!
//! **Map operations.** A run of granules that is contiguous in the prefix and in the plane is one mapping, so a prefix
//! that is contiguous in each plane takes one operation a plane, and one that was put together from k pieces takes k:
//! the fewer planes, the cheaper. That is what a token-major layout buys, besides the smaller unit.

/// How the rows of a cache lie in its planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheLayout {
    /// Two planes a layer, one for the keys and one for the values; a row is one token of one layer.
    PerLayer,
    /// One plane; a row is one token, the keys and values of all layers side by side.
    TokenMajor,
}

/// The shape of a cache: how many planes it has, and how long their rows are.
///
/// # Invariants
/// 1. Neither figure is 0.
/// 2. `planes × plane_row_bytes` does not overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheGeometry {
    planes: u64,
    plane_row_bytes: u64,
}

/// How much of a prefix can be shared, and what that costs. See the rule at
/// [`CacheGeometry::shareability`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Shareability {
    /// Tokens, counted from the beginning of the prefix, that can be shared: whole units.
    pub shareable_tokens: u64,
    /// Tokens at its end that must be private to each user; fewer than a unit.
    pub rest_tokens: u64,
    /// The fewest tokens that can be shared, and the step in which more can.
    pub unit_tokens: u64,
    /// The planes into which the prefix is mapped.
    pub planes: u64,
    /// What mapping it for one user takes, where it is contiguous in each plane: one operation a plane, none where
    /// nothing can be shared.
    pub map_operations: u64,
    /// Physical bytes of the shared part in all planes, paid once, however many use it.
    pub owned_bytes: u64,
    /// Those of one plane: what [`PrefixSpec::new`](crate::PrefixSpec::new) takes.
    pub plane_bytes: u64,
}

/// A geometry or a question that has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShareabilityError {
    /// A figure that must be at least 1.
    #[error("shareability: {figure} is 0: wanted 1 or more; give the cache's and the backing's own figures")]
    Zero {
        /// Which figure.
        figure: &'static str,
    },
    /// A token whose bytes can't be counted.
    #[error("shareability: {planes} planes of {row_bytes} bytes a row overflow 64 bits; lower them")]
    TokenTooLarge {
        /// Planes of the cache.
        planes: u64,
        /// Bytes of one token in one plane.
        row_bytes: u64,
    },
    /// A prefix whose bytes can't be counted.
    #[error("shareability: {tokens} tokens of {bytes_per_token} bytes overflow 64 bits; ask for a shorter prefix")]
    PrefixTooLong {
        /// Tokens that could be shared.
        tokens: u64,
        /// Bytes of one token in all planes.
        bytes_per_token: u64,
    },
}

impl CacheGeometry {
    /// A cache of `layers` layers, which keep `row_bytes` bytes of keys and as many of values for each token:
    /// `kv_heads × head_dim × element_bytes`.
    ///
    /// # Errors
    /// When a figure is 0, or a token's bytes overflow.
    pub fn new(layers: u64, row_bytes: u64, layout: CacheLayout) -> Result<Self, ShareabilityError> {
        if layers == 0 {
            return Err(ShareabilityError::Zero { figure: "layers" });
        }
        let rows = layers.saturating_mul(2); // where that saturates, a token's bytes overflow
        let whole = Self::from_planes(rows, row_bytes)?;
        match layout {
            CacheLayout::PerLayer => Ok(whole),
            CacheLayout::TokenMajor => Self::from_planes(1, whole.bytes_per_token()),
        }
    }

    /// A cache of `planes` planes, each of which keeps `plane_row_bytes` bytes for each token: of a model whose layers keep
    /// something else than keys and as many values, one latent row say.
    ///
    /// # Errors
    /// When a figure is 0, or a token's bytes overflow.
    pub fn from_planes(planes: u64, plane_row_bytes: u64) -> Result<Self, ShareabilityError> {
        for (figure, value) in [("planes", planes), ("row_bytes", plane_row_bytes)] {
            if value == 0 {
                return Err(ShareabilityError::Zero { figure });
            }
        }
        let too_large = ShareabilityError::TokenTooLarge { planes, row_bytes: plane_row_bytes };
        planes.checked_mul(plane_row_bytes).filter(|_| planes < u64::MAX).ok_or(too_large)?;
        Ok(Self { planes, plane_row_bytes })
    }

    /// Planes of one cache: [`CacheLayout`] says of what.
    #[must_use]
    pub fn planes(&self) -> u64 {
        self.planes
    }

    /// Bytes of one token in one plane.
    #[must_use]
    pub fn plane_row_bytes(&self) -> u64 {
        self.plane_row_bytes
    }

    /// Bytes of one token in all planes, the same in each layout.
    #[must_use]
    pub fn bytes_per_token(&self) -> u64 {
        self.plane_row_bytes.saturating_mul(self.planes) // exact by invariant 2
    }

    /// The fewest tokens that can be shared at `granule` bytes, and the step in which more can:
    /// `granule / gcd(granule, row)`.
    ///
    /// # Errors
    /// When the granule is 0.
    pub fn unit_tokens(&self, granule: u64) -> Result<u64, ShareabilityError> {
        let unit = granule.checked_div(greatest_common_divisor(granule, self.plane_row_bytes()));
        unit.filter(|unit| *unit > 0).ok_or(ShareabilityError::Zero { figure: "granule" })
    }

    /// How much of a prefix of `prefix_tokens` tokens can be shared where memory is mapped by granules of `granule`
    /// bytes, any number of them at a time.
    ///
    /// A granule is shared whole or not at all, and the private part begins on a granule: the shared tokens of each
    /// plane fill whole granules, so they are a multiple of `lcm(granule, row) / row`.
    ///
    /// ```
    /// use leasehold::{CacheGeometry, CacheLayout};
    ///
    /// # fn main() -> Result<(), leasehold::ShareabilityError> {
    /// // qwen2.5-0.5b: 24 layers, 2 heads × 64 numbers × 2 bytes.
    /// let per_layer = CacheGeometry::new(24, 256, CacheLayout::PerLayer)?.shareability(64 << 10, 1000)?;
    /// assert_eq!((per_layer.unit_tokens, per_layer.shareable_tokens, per_layer.rest_tokens), (256, 768, 232));
    /// assert_eq!(per_layer.map_operations, 48);
    ///
    /// // The same cache, token-major: rows of 12 KiB in one plane.
    /// let token_major = CacheGeometry::new(24, 256, CacheLayout::TokenMajor)?.shareability(64 << 10, 1000)?;
    /// assert_eq!((token_major.unit_tokens, token_major.shareable_tokens, token_major.map_operations), (16, 992, 1));
    ///
    /// // llama-3-8b at granules of 2 MiB, as devices have them: a prefix of 1000 tokens is too short to share.
    /// let llama = CacheGeometry::new(32, 2048, CacheLayout::PerLayer)?;
    /// assert_eq!(llama.unit_tokens(2 << 20)?, 1024);
    /// assert_eq!(llama.shareability(2 << 20, 1000)?.map_operations, 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the granule is 0, or the shared bytes overflow.
    pub fn shareability(&self, granule: u64, prefix_tokens: u64) -> Result<Shareability, ShareabilityError> {
        let unit_tokens = self.unit_tokens(granule)?;
        let rest_tokens = prefix_tokens.checked_rem(unit_tokens).unwrap_or(0); // the unit is never 0
        let shareable_tokens = prefix_tokens.saturating_sub(rest_tokens);
        let bytes_per_token = self.bytes_per_token();
        let owned_bytes = shareable_tokens
            .checked_mul(bytes_per_token)
            .ok_or(ShareabilityError::PrefixTooLong { tokens: shareable_tokens, bytes_per_token })?;
        Ok(Shareability {
            shareable_tokens,
            rest_tokens,
            unit_tokens,
            planes: self.planes(),
            map_operations: if shareable_tokens == 0 { 0 } else { self.planes() },
            owned_bytes,
            plane_bytes: shareable_tokens.saturating_mul(self.plane_row_bytes), // no more than `owned_bytes`
        })
    }
}

impl Shareability {
    /// What mapping it for one user takes where it lies in `pieces` pieces, as when blocks that were made at different
    /// times follow one another: as many operations in each plane. At most `u64::MAX`.
    ///
    /// ```
    /// use leasehold::{CacheGeometry, CacheLayout};
    ///
    /// # fn main() -> Result<(), leasehold::ShareabilityError> {
    /// let prefix = CacheGeometry::new(24, 256, CacheLayout::PerLayer)?.shareability(64 << 10, 1024)?;
    /// assert_eq!(prefix.map_operations_in_pieces(2), 96);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn map_operations_in_pieces(&self, pieces: u64) -> u64 {
        self.map_operations.saturating_mul(pieces)
    }
}

/// Euclid's. The other figure where one is 0.
fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while let Some(rest) = one.checked_rem(other) {
        (one, other) = (other, rest);
    }
    one
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "the figures of these tests are small")]
mod tests {
    use super::CacheLayout::{PerLayer, TokenMajor};
    use super::*;
    use proptest::prelude::*;

    fn geometry(layers: u64, row_bytes: u64, layout: CacheLayout) -> CacheGeometry {
        CacheGeometry::new(layers, row_bytes, layout).unwrap()
    }

    /// The longest prefix whose end in a plane is the end of a granule too, found by trying.
    fn longest_by_trying(granule: u64, row: u64, prefix: u64) -> u64 {
        (0..=prefix).rev().find(|tokens| (tokens * row).is_multiple_of(granule)).unwrap()
    }

    proptest! {
        #[test]
        fn the_shareable_part_is_the_longest_that_ends_with_a_granule(
            layers in 1u64..100,
            row in 1u64..5000,
            granule in prop_oneof![1u64..5000, (0u32..22).prop_map(|bits| 1 << bits)],
            prefix in 0u64..20_000,
            layout in prop_oneof![Just(PerLayer), Just(TokenMajor)],
        ) {
            let geometry = geometry(layers, row, layout);
            let found = geometry.shareability(granule, prefix).unwrap();
            let row = geometry.plane_row_bytes();
            prop_assert_eq!(found.shareable_tokens, longest_by_trying(granule, row, prefix));
            prop_assert_eq!(found.shareable_tokens + found.rest_tokens, prefix);
            prop_assert!(found.rest_tokens < found.unit_tokens);
            prop_assert_eq!(found.owned_bytes, found.shareable_tokens * row * found.planes);
            prop_assert_eq!(found.map_operations > 0, found.shareable_tokens > 0);
        }

        #[test]
        fn the_unit_is_the_first_length_that_can_be_shared(row in 1u64..3000, granule in 1u64..3000) {
            let unit = geometry(1, row, PerLayer).unit_tokens(granule).unwrap();
            prop_assert_eq!((1..).find(|tokens| (tokens * row).is_multiple_of(granule)), Some(unit));
        }

        #[test]
        fn no_figures_panic(figures in any::<[u64; 4]>(), layout in prop_oneof![Just(PerLayer), Just(TokenMajor)]) {
            let [layers, row, granule, prefix] = figures;
            if let Ok(geometry) = CacheGeometry::new(layers, row, layout) {
                let _ = geometry.shareability(granule, prefix);
            }
        }
    }

    #[test]
    fn models_have_these_units_at_the_granules_of_hosts_and_devices() {
        let qwen = |layout| geometry(24, 256, layout);
        let llama = |layout| geometry(32, 2048, layout);
        let unit = |geometry: CacheGeometry, granule| geometry.unit_tokens(granule).unwrap();
        assert_eq!([4 << 10, 64 << 10, 2 << 20].map(|granule| unit(qwen(PerLayer), granule)), [16, 256, 8192]);
        assert_eq!([4 << 10, 64 << 10, 2 << 20].map(|granule| unit(qwen(TokenMajor), granule)), [1, 16, 512]);
        assert_eq!([4 << 10, 64 << 10, 2 << 20].map(|granule| unit(llama(PerLayer), granule)), [2, 32, 1024]);
        assert_eq!([4 << 10, 64 << 10, 2 << 20].map(|granule| unit(llama(TokenMajor), granule)), [1, 1, 16]);
    }

    #[test]
    fn both_layouts_hold_the_same_bytes() {
        let owned = |layout| geometry(24, 256, layout).shareability(64 << 10, 512).unwrap().owned_bytes;
        assert_eq!((owned(PerLayer), owned(TokenMajor)), (512 * 12_288, 512 * 12_288));
    }

    #[test]
    fn pieces_multiply_the_map_operations() {
        let prefix = geometry(24, 256, PerLayer).shareability(64 << 10, 512).unwrap();
        assert_eq!([0, 1, 3].map(|pieces| prefix.map_operations_in_pieces(pieces)), [0, 48, 144]);
        assert_eq!(prefix.map_operations_in_pieces(u64::MAX), u64::MAX);
    }

    #[test]
    fn each_figure_that_is_wrong_is_named() {
        let problem = |layers, row, granule, prefix| {
            let geometry = CacheGeometry::new(layers, row, PerLayer);
            geometry.and_then(|geometry| geometry.shareability(granule, prefix)).unwrap_err().to_string()
        };
        let wanted = |figure| {
            format!("shareability: {figure} is 0: wanted 1 or more; give the cache's and the backing's own figures")
        };
        assert_eq!(problem(0, 256, 4096, 1), wanted("layers"));
        assert_eq!(problem(24, 0, 4096, 1), wanted("row_bytes"));
        assert_eq!(problem(24, 256, 0, 1), wanted("granule"));
        assert_eq!(
            problem(1 << 63, 1, 4096, 1),
            "shareability: 18446744073709551615 planes of 1 bytes a row overflow 64 bits; lower them"
        );
        assert_eq!(
            problem(1 << 31, 1 << 32, 4096, 1),
            "shareability: 4294967296 planes of 4294967296 bytes a row overflow 64 bits; lower them"
        );
        assert_eq!(
            problem(1 << 30, 1 << 10, 1, 1 << 50),
            "shareability: 1125899906842624 tokens of 2199023255552 bytes overflow 64 bits; ask for a shorter prefix"
        );
    }
}
