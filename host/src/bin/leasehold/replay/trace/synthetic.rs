//! Draws a workload from distributions: log-normal lengths, Poisson arrivals.
//!
//! Input: a [`SyntheticWorkload`]. Output: a [`Trace`] whose lines are ordinals. Equal workloads
//! give equal traces: the generator is ChaCha8, whose output is fixed, and prompts, outputs and
//! gaps draw from streams of their own, so that one setting's change leaves the other two as they
//! were. Each draw is rounded to a whole number by itself, which absorbs the last bit in which two
//! C libraries' `exp` may differ; no error adds up.

use std::time::Duration;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::draws::{Gaps, Lengths};
use super::settings::{SyntheticError, check};
use super::{Request, Trace, TraceFormat};

/// What to draw.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SyntheticWorkload {
    pub(crate) seed: u64,
    pub(crate) requests: u64,
    /// The distribution's mean, before lengths are rounded and clamped to
    /// 1..=[`MAX_LENGTH_TOKENS`](super::draws::MAX_LENGTH_TOKENS).
    pub(crate) mean_prompt_tokens: f64,
    /// As `mean_prompt_tokens`, of the outputs.
    pub(crate) mean_output_tokens: f64,
    /// Of the lengths' logarithm, for both: 0 makes all equal; 1 is about as uneven as
    /// conversations are.
    pub(crate) sigma: f64,
    pub(crate) requests_per_second: f64,
}

impl SyntheticWorkload {
    /// Draws the requests; the first arrives at 0.
    ///
    /// # Errors
    /// When a setting is out of its range.
    pub(crate) fn draw(&self) -> Result<Trace, SyntheticError> {
        check("--requests", self.requests, self.requests >= 1, "1 or more")?;
        let mut prompts = Lengths::new("--mean-prompt", self.mean_prompt_tokens, self.sigma, self.stream(0))?;
        let mut outputs = Lengths::new("--mean-output", self.mean_output_tokens, self.sigma, self.stream(1))?;
        let mut gaps = Gaps::new(self.requests_per_second, self.stream(2))?;
        let mut arrival = Duration::ZERO;
        let mut requests = Vec::new();
        for line in 1..=self.requests {
            let (prompt_tokens, output_tokens) = (prompts.draw(), outputs.draw());
            requests.push(Request { line, arrival, prompt_tokens, output_tokens, hash_ids: Vec::new() });
            arrival = arrival.saturating_add(gaps.draw());
        }
        Ok(Trace::assemble(TraceFormat::Synthetic, requests))
    }

    fn stream(&self, stream: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(stream);
        rng
    }
}

#[cfg(test)]
mod tests {
    use super::super::draws::MAX_LENGTH_TOKENS;
    use super::*;

    fn workload() -> SyntheticWorkload {
        SyntheticWorkload {
            seed: 7,
            requests: 1000,
            mean_prompt_tokens: 1024.0,
            mean_output_tokens: 200.0,
            sigma: 1.0,
            requests_per_second: 5.0,
        }
    }

    #[test]
    fn a_seed_gives_these_requests_on_every_machine() {
        let trace = workload().draw().unwrap();
        let first: Vec<_> = trace.requests[..4]
            .iter()
            .map(|r| (r.line, r.arrival.as_nanos(), r.prompt_tokens, r.output_tokens))
            .collect();
        assert_eq!(
            first,
            [(1, 0, 286, 339), (2, 311_022_278, 156, 20), (3, 340_215_409, 1512, 278), (4, 369_877_922, 890, 134)]
        );
        let tokens: u64 = trace.requests.iter().map(|r| r.prompt_tokens * 31 + r.output_tokens).sum();
        assert_eq!((tokens, trace.requests[999].arrival.as_nanos()), (32_865_167, 192_897_967_925));
    }

    #[test]
    fn the_first_request_arrives_at_zero_and_the_format_is_synthetic() {
        let trace = workload().draw().unwrap();
        assert_eq!((trace.format, trace.requests[0].arrival), (TraceFormat::Synthetic, Duration::ZERO));
    }

    #[test]
    fn the_mean_is_kept_whatever_sigma_is() {
        for sigma in [0.0, 0.5, 1.0] {
            let trace = SyntheticWorkload { sigma, requests: 20_000, ..workload() }.draw().unwrap();
            let sum: u64 = trace.requests.iter().map(|r| r.prompt_tokens).sum();
            assert!((980..=1070).contains(&(sum / 20_000)), "sigma {sigma}: mean {}", sum / 20_000);
        }
    }

    #[test]
    fn arrivals_come_at_the_rate_that_was_asked_for() {
        let trace = SyntheticWorkload { requests: 20_000, ..workload() }.draw().unwrap();
        let seconds = trace.requests[19_999].arrival.as_secs();
        assert!((3880..=4120).contains(&seconds), "{seconds} s");
    }

    #[test]
    fn a_setting_changes_its_own_draws_only() {
        let faster = SyntheticWorkload { requests_per_second: 50.0, ..workload() }.draw().unwrap();
        let lengths =
            |trace: &Trace| -> Vec<_> { trace.requests.iter().map(|r| (r.prompt_tokens, r.output_tokens)).collect() };
        assert_eq!(lengths(&faster), lengths(&workload().draw().unwrap()));
    }

    #[test]
    fn lengths_stay_between_one_and_the_longest() {
        let wild = SyntheticWorkload { sigma: 10.0, mean_prompt_tokens: 1e6, ..workload() }.draw().unwrap();
        assert!(wild.requests.iter().all(|r| (1..=MAX_LENGTH_TOKENS).contains(&r.prompt_tokens)));
    }

    #[test]
    fn a_setting_out_of_range_is_named() {
        let cases = [
            (SyntheticWorkload { requests: 0, ..workload() }, "--requests is 0: wanted 1 or more"),
            (SyntheticWorkload { mean_prompt_tokens: 0.5, ..workload() }, "--mean-prompt is 0.5: wanted 1 to 1048576"),
            (
                SyntheticWorkload { mean_output_tokens: f64::NAN, ..workload() },
                "--mean-output is NaN: wanted 1 to 1048576",
            ),
            (SyntheticWorkload { sigma: -1.0, ..workload() }, "sigma is -1: wanted 0 to 10"),
            (SyntheticWorkload { requests_per_second: 0.0, ..workload() }, "--rate is 0: wanted 0.000001 to 1000000"),
        ];
        for (workload, problem) in cases {
            let text = workload.draw().unwrap_err().to_string();
            assert_eq!(text, format!("synthetic workload: {problem}; correct it"));
        }
    }
}
