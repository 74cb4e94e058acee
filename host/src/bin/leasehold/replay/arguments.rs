//! What may be asked of `leasehold replay`.

use super::geometry::ModelGeometry;
use super::layout::LayoutName;
use super::strategy::StrategyName;
use bytesize::ByteSize;
use clap::Args;
use leasehold::GrowthPolicy;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

/// What may be asked of `leasehold replay`.
#[derive(Debug, Args)]
#[command(
    after_help = "A request's prompt is its prefill; then each step adds a token to every running request, in all \
    planes. A refused growth preempts the youngest request, which queues again. The strategies run one after \
    the other, under the same budget and the same governor:\n  \
    leasehold  reserves the context window, commits as the cache grows\n  \
    prealloc   commits the context window up front\n  \
    realloc    doubles and copies\n  \
    sharing    as leasehold, and maps what prompts have in common; needs a trace with hash_ids\n\
    A run that fails is reported with its reason, the others go on, and the exit status is 1. \
    Waste is 1 - ideal bytes / owned bytes, summed over the steps. Latencies are those of growth calls that succeeded, \
    copying included, touching not."
)]
pub(crate) struct ReplayArguments {
    /// The trace: Azure LLM inference CSV or Mooncake JSONL, told apart by content; default: a synthetic workload
    pub(super) trace: Option<PathBuf>,

    /// The model: llama-3-8b, llama-3-70b, qwen2.5-0.5b, qwen2.5-14b, or
    /// layers=L,kv_heads=H,head_dim=D,element_bytes=B,context=C
    #[arg(long, default_value = "qwen2.5-0.5b")]
    pub(super) model: ModelGeometry,

    /// How the stores lay a cache out: per-layer has a plane for the keys and one for the values of each layer;
    /// token-major has one plane, in which a token's rows of all layers lie side by side
    #[arg(long, value_enum, default_value_t = LayoutName::PerLayer, value_name = "NAME")]
    pub(super) layout: LayoutName,

    /// The most tokens of one request, prompt and output; default: the model's context window
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_context: Option<u64>,

    /// The budget of the backing's domain; default: 512 MiB for the synthetic workload, 4 GiB for a trace, or the
    /// registry file's where that is less
    #[arg(long, value_name = "BYTES", value_parser = size, allow_negative_numbers = true)]
    pub(super) budget: Option<ByteSize>,

    /// The backing; may be given more than once; default: the one of the highest priority that fits
    #[arg(long, value_name = "NAME")]
    pub(super) backing: Vec<String>,

    /// The strategy; may be given more than once; default: all that trace and backing can serve, which is prealloc and
    /// realloc where the backing offers no virtual-backing
    #[arg(long, value_enum, value_name = "NAME")]
    pub(super) strategy: Vec<StrategyName>,

    /// How far ahead the strategy `leasehold` commits: exact, geometric, or step:BYTES
    #[arg(long, default_value = "exact", value_parser = growth_policy)]
    pub(super) growth: GrowthPolicy,

    /// The most requests that run at once; default: as many as fit
    #[arg(long, value_name = "N")]
    pub(super) max_running: Option<NonZeroUsize>,

    /// Milliseconds of trace time in which each running request generates one token
    #[arg(long, default_value_t = 25, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) step_ms: u64,

    /// Replay only the first N requests; for the synthetic workload: how many to draw [default there: 128]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(super) requests: Option<u64>,

    /// The synthetic workload's seed
    #[arg(long, conflicts_with = "trace", default_value_t = 1)]
    pub(super) seed: u64,

    /// The synthetic workload's mean prompt, in tokens
    #[arg(long, conflicts_with = "trace", default_value_t = 512.0, value_name = "TOKENS")]
    pub(super) mean_prompt: f64,

    /// The synthetic workload's mean output, in tokens
    #[arg(long, conflicts_with = "trace", default_value_t = 192.0, value_name = "TOKENS")]
    pub(super) mean_output: f64,

    /// The synthetic workload's requests a second
    #[arg(long, conflicts_with = "trace", default_value_t = 20.0, value_name = "N")]
    pub(super) rate: f64,

    /// Commit memory, but don't write the tokens' rows or check them
    #[arg(long)]
    pub(super) no_touch: bool,

    /// Write a page with charts over trace time: one HTML file that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl ReplayArguments {
    /// The most tokens of one request.
    pub(super) fn context(&self) -> u64 {
        self.max_context.unwrap_or_else(|| self.model.context_window())
    }
}

/// Reads `exact`, `geometric` or `step:BYTES`.
fn growth_policy(text: &str) -> Result<GrowthPolicy, String> {
    let wanted = || format!("{text:?} is no growth policy: wanted exact, geometric or step:BYTES, say \"step:2 MiB\"");
    match text {
        "exact" => Ok(GrowthPolicy::Exact),
        "geometric" => Ok(GrowthPolicy::Geometric),
        _ => {
            let step = text.strip_prefix("step:").ok_or_else(wanted)?;
            let step = ByteSize::from_str(step).map_err(|_| wanted())?.as_u64();
            if step == 0 { Err(wanted()) } else { Ok(GrowthPolicy::Step(step)) }
        }
    }
}

/// A number of bytes, with or without a unit.
fn size(text: &str) -> Result<ByteSize, String> {
    ByteSize::from_str(text).map_err(|_| "wanted bytes, such as \"512 MiB\", \"8 GiB\" or 1073741824".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_is_none_says_how_one_is_written() {
        assert_eq!(size("512 MiB"), Ok(ByteSize::mib(512)));
        assert!(size("banana").unwrap_err().contains("\"512 MiB\""));
    }

    #[test]
    fn a_growth_policy_reads_as_it_is_written() {
        assert_eq!(growth_policy("exact"), Ok(GrowthPolicy::Exact));
        assert_eq!(growth_policy("geometric"), Ok(GrowthPolicy::Geometric));
        assert_eq!(growth_policy("step:2 MiB"), Ok(GrowthPolicy::Step(2 << 20)));
        for wrong in ["", "Exact", "step", "step:", "step:0", "step:-1", "step:x"] {
            assert!(growth_policy(wrong).is_err(), "{wrong:?}");
        }
    }
}
