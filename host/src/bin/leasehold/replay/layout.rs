//! How the stores lay a cache out, and what each way means for sharing prefixes.
//!
//! Pure: the arithmetic is the library's, the words are for people.

use super::geometry::ModelGeometry;
use bytesize::ByteSize;
use clap::ValueEnum;
use leasehold::{CacheGeometry, CacheLayout, Shareability, ShareabilityError};
use std::fmt;

/// The tokens of one block of a prefix cache, as Mooncake's traces name them.
pub(super) const BLOCK_TOKENS: u64 = 512;

/// How a cache's rows lie in its planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayoutName {
    /// Two planes a layer: its keys, its values.
    PerLayer,
    /// One plane: all of a token side by side.
    TokenMajor,
}

impl LayoutName {
    /// The shape of the model's cache in this layout.
    ///
    /// # Errors
    /// None in practice: what a [`ModelGeometry`] holds has been checked.
    pub(super) fn cache(self, model: &ModelGeometry) -> Result<CacheGeometry, ShareabilityError> {
        let layout = match self {
            Self::PerLayer => CacheLayout::PerLayer,
            Self::TokenMajor => CacheLayout::TokenMajor,
        };
        CacheGeometry::new(model.layers(), model.plane_bytes_per_token(), layout)
    }
}

impl fmt::Display for LayoutName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::PerLayer => "per-layer",
            Self::TokenMajor => "token-major",
        })
    }
}

/// What can be shared of the model's prefixes at a granule, in both layouts.
///
/// # Errors
/// When the granule is 0.
pub(super) fn sharing(model: &ModelGeometry, granule: u64) -> Result<String, ShareabilityError> {
    let mut parts = Vec::new();
    for layout in LayoutName::value_variants() {
        let block = layout.cache(model)?.shareability(granule, BLOCK_TOKENS)?;
        parts.push(format!("{layout} {}", of_block(&block)));
    }
    let granule = ByteSize::b(granule).display().iec();
    Ok(format!("prefixes of {} at granules of {granule}: {}", model.name(), parts.join("; ")))
}

/// Why nothing is shared of a trace in that layout, where that is so.
pub(super) fn unshared(
    layout: LayoutName,
    model: &ModelGeometry,
    granule: u64,
) -> Result<Option<String>, ShareabilityError> {
    let block = layout.cache(model)?.shareability(granule, BLOCK_TOKENS)?;
    Ok((block.map_operations == 0).then(|| {
        let (unit, granule) = (block.unit_tokens, ByteSize::b(granule).display().iec());
        format!(
            "laid out {layout}, {unit} tokens at once can be shared at granules of {granule}, and a block of a trace has \
             {BLOCK_TOKENS}: use --layout token-major, or smaller granules"
        )
    }))
}

fn of_block(block: &Shareability) -> String {
    let unit = block.unit_tokens;
    let cost = match block.map_operations {
        0 => format!("a block of {BLOCK_TOKENS} is too short"),
        1 => format!("1 map operation for a block of {BLOCK_TOKENS}"),
        many => format!("{many} map operations for a block of {BLOCK_TOKENS}"),
    };
    let unit = if unit == 1 { "token by token".to_owned() } else { format!("in units of {unit} tokens") };
    format!("{unit}, {cost}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> ModelGeometry {
        "qwen2.5-0.5b".parse().unwrap()
    }

    #[test]
    fn a_layout_keeps_the_bytes_of_a_token() {
        let caches = [LayoutName::PerLayer, LayoutName::TokenMajor].map(|layout| layout.cache(&model()).unwrap());
        assert_eq!(caches.map(|cache| (cache.planes(), cache.plane_row_bytes())), [(48, 256), (1, 12_288)]);
        assert_eq!(caches.map(|cache| cache.bytes_per_token()), [model().bytes_per_token(); 2]);
    }

    #[test]
    fn sharing_is_said_for_both_layouts() {
        assert_eq!(
            sharing(&model(), 4096).unwrap(),
            "prefixes of qwen2.5-0.5b at granules of 4.0 KiB: per-layer in units of 16 tokens, 48 map operations for a \
             block of 512; token-major token by token, 1 map operation for a block of 512"
        );
        assert_eq!(
            sharing(&model(), 2 << 20).unwrap(),
            "prefixes of qwen2.5-0.5b at granules of 2.0 MiB: per-layer in units of 8192 tokens, a block of 512 is too \
             short; token-major in units of 512 tokens, 1 map operation for a block of 512"
        );
    }
}
