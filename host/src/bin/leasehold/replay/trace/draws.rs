//! Turns a generator's output into lengths and gaps.
//!
//! Input: a distribution's settings, checked here, and a generator, which each owns. Output: whole
//! tokens and whole nanoseconds, one draw at a time.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp, LogNormal};

use super::settings::{SyntheticError, check};

/// The longest prompt, and the longest output, ever drawn.
pub(super) const MAX_LENGTH_TOKENS: u64 = 1 << 20;

/// The slowest and the fastest rate of arrivals; within them, no gap overflows and none rounds to
/// nothing.
const REQUESTS_PER_SECOND: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// Lengths in tokens.
pub(super) struct Lengths {
    tokens: LogNormal<f64>,
    rng: ChaCha8Rng,
}

impl Lengths {
    /// A log-normal variable's mean is exp(μ + σ²/2) (Johnson, Kotz, Balakrishnan, *Continuous
    /// Univariate Distributions* 1, 2nd ed., ch. 14), so μ = ln(mean) − σ²/2 keeps the mean
    /// whatever σ is.
    pub(super) fn new(setting: &'static str, mean: f64, sigma: f64, rng: ChaCha8Rng) -> Result<Self, SyntheticError> {
        let longest = f64_of(MAX_LENGTH_TOKENS);
        check(setting, mean, (1.0..=longest).contains(&mean), &format!("1 to {MAX_LENGTH_TOKENS}"))?;
        let right = "0 to 10"; // past 10, nearly every length would be a clamped one
        check("sigma", sigma, (0.0..=10.0).contains(&sigma), right)?;
        let tokens = LogNormal::new(mean.ln() - sigma * sigma / 2.0, sigma);
        let tokens = tokens.map_err(|_| SyntheticError::new("sigma", sigma, right))?;
        Ok(Self { tokens, rng })
    }

    pub(super) fn draw(&mut self) -> u64 {
        rounded(self.tokens.sample(&mut self.rng)).clamp(1, MAX_LENGTH_TOKENS)
    }
}

/// Times between arrivals.
pub(super) struct Gaps {
    seconds: Exp<f64>,
    rng: ChaCha8Rng,
}

impl Gaps {
    /// A Poisson process has exponential gaps.
    pub(super) fn new(requests_per_second: f64, rng: ChaCha8Rng) -> Result<Self, SyntheticError> {
        let setting = "--rate";
        let right = "0.000001 to 1000000";
        check(setting, requests_per_second, REQUESTS_PER_SECOND.contains(&requests_per_second), right)?;
        let seconds = Exp::new(requests_per_second);
        let seconds = seconds.map_err(|_| SyntheticError::new(setting, requests_per_second, right))?;
        Ok(Self { seconds, rng })
    }

    pub(super) fn draw(&mut self) -> Duration {
        Duration::from_nanos(rounded(self.seconds.sample(&mut self.rng) * 1e9))
    }
}

#[expect(clippy::as_conversions, reason = "a float's cast saturates, and sends NaN to 0: it never wraps")]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}

#[expect(clippy::as_conversions, reason = "no `From`, as large values round; a bound may")]
fn f64_of(value: u64) -> f64 {
    value as f64
}
