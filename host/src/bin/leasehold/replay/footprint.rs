//! Adds up what a run holds: bytes owned, and bytes that its tokens need.
//!
//! Input: tokens as they come and go, and the store's owned bytes at each step.
//! Output: the peak of what tokens need, and the waste over the steps. Sums are 128 bits wide, where no trace
//! overflows them; saturating arithmetic is for the lint.

/// See the module.
#[derive(Debug)]
pub(super) struct Footprint {
    bytes_per_token: u64,
    live_tokens: u128,
    peak_ideal_bytes: u128,
    owned_byte_steps: u128,
    ideal_byte_steps: u128,
}

impl Footprint {
    pub(super) fn new(bytes_per_token: u64) -> Self {
        Self { bytes_per_token, live_tokens: 0, peak_ideal_bytes: 0, owned_byte_steps: 0, ideal_byte_steps: 0 }
    }

    /// `tokens` more are held.
    pub(super) fn add(&mut self, tokens: u64) {
        self.live_tokens = self.live_tokens.saturating_add(tokens.into());
    }

    /// `tokens` are held no longer.
    pub(super) fn remove(&mut self, tokens: u64) {
        self.live_tokens = self.live_tokens.saturating_sub(tokens.into());
    }

    /// Notes a peak of what tokens need, which only rises between closes: noting before each close, and at the end of a
    /// step, finds it exactly.
    pub(super) fn note_peak(&mut self) {
        self.peak_ideal_bytes = self.peak_ideal_bytes.max(self.live_bytes());
    }

    /// Counts one step, with what it starts from.
    pub(super) fn count_step(&mut self, owned_bytes: u64) {
        self.owned_byte_steps = self.owned_byte_steps.saturating_add(owned_bytes.into());
        self.ideal_byte_steps = self.ideal_byte_steps.saturating_add(self.live_bytes());
    }

    /// What the tokens that are held need now.
    pub(super) fn ideal_bytes(&self) -> u64 {
        saturated(self.live_bytes())
    }

    pub(super) fn peak_ideal_bytes(&self) -> u64 {
        saturated(self.peak_ideal_bytes)
    }

    /// The share of owned bytes, over all steps, that no token needed; 0 where nothing was owned.
    /// Below 0 where a store shares bytes between caches.
    #[expect(clippy::as_conversions, reason = "no `From`, as large sums round; a ratio of sums may")]
    pub(super) fn waste(&self) -> f64 {
        match self.owned_byte_steps {
            0 => 0.0,
            owned => 1.0 - self.ideal_byte_steps as f64 / owned as f64,
        }
    }

    fn live_bytes(&self) -> u128 {
        self.live_tokens.saturating_mul(self.bytes_per_token.into())
    }
}

fn saturated(bytes: u128) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waste_is_the_share_of_owned_bytes_that_no_token_needs() {
        let mut footprint = Footprint::new(2);
        footprint.add(10);
        footprint.count_step(40);
        footprint.add(10);
        footprint.count_step(40);
        assert!((footprint.waste() - 0.25).abs() < 1e-12, "{}", footprint.waste());
    }

    #[test]
    fn owning_nothing_wastes_nothing() {
        assert_eq!(Footprint::new(2).waste().to_bits(), 0f64.to_bits());
    }

    #[test]
    fn peaks_outlive_what_made_them() {
        let mut footprint = Footprint::new(2);
        footprint.add(10);
        footprint.note_peak();
        footprint.remove(10);
        footprint.note_peak();
        assert_eq!(footprint.peak_ideal_bytes(), 20);
    }
}
