//! Makes physical handles of one kind.

use crate::options::DeviceSetting;
use crate::source::{Need, Piece};
use leasehold_cuda_driver::{Device, Fault, PhysicalHandle, Properties};
use leasehold_plugin_api::BackingError;

/// Makes handles of one granule each on one device.
#[derive(Clone, Debug)]
pub struct HandleFactory {
    device: Device,
    properties: Properties,
    granule: u64,
}

/// What came of handles that were given back.
#[derive(Debug)]
pub struct Released<T> {
    /// Bytes that are owned no longer.
    pub bytes: u64,
    /// What the driver did not take.
    pub kept: Vec<(PhysicalHandle, T)>,
    /// Why it did not, the last time.
    pub fault: Option<Fault>,
}

impl HandleFactory {
    /// For what the options say.
    #[must_use]
    pub fn new(setting: &DeviceSetting) -> Self {
        Self { device: setting.device.clone(), properties: setting.properties, granule: setting.granule }
    }

    /// Bytes of one handle.
    #[must_use]
    pub fn granule(&self) -> u64 {
        self.granule
    }

    /// Gives handles back, and answers those that the driver does not take, each with what came with it.
    pub fn release<T>(&self, handles: impl IntoIterator<Item = (PhysicalHandle, T)>) -> Released<T> {
        let mut handles = handles.into_iter().peekable();
        // Where it fails, each handle is tried for itself. Where there is none, no context is made for it.
        let _bound = handles.peek().is_some().then(|| self.device.bind());
        let (mut granules, mut kept, mut fault) = (0_u64, Vec::new(), None);
        for (handle, what) in handles {
            match handle.close() {
                Ok(()) => granules = granules.saturating_add(1),
                Err((handle, refused)) => {
                    kept.push((handle, what));
                    fault = Some(refused);
                }
            }
        }
        Released { bytes: granules.saturating_mul(self.granule), kept, fault }
    }

    /// Bytes that the parts lack of what is needed, part by part.
    #[must_use]
    pub fn missing_bytes(&self, needs: &[Need], parts: &[Vec<Piece>]) -> u64 {
        let missing = needs.iter().zip(parts).map(|(need, part)| need.granules.saturating_sub(granules_of(part)));
        missing.fold(0_u64, u64::saturating_add).saturating_mul(self.granule)
    }

    /// Makes what the parts lack.
    ///
    /// # Errors
    ///
    /// What the driver answers; what was made until there is in the parts.
    pub fn complete(&self, needs: &[Need], parts: &mut [Vec<Piece>]) -> Result<(), BackingError> {
        let bytes = self.missing_bytes(needs, parts);
        let refuse = |fault: Fault| {
            fault.into_error(format!("no memory for {bytes} bytes"), fault.advice()).with_requested(bytes)
        };
        let _bound = self.device.bind().map_err(refuse)?;
        for (need, part) in needs.iter().zip(parts) {
            for _ in granules_of(part)..need.granules {
                let handle = self.device.create(self.properties, self.granule).map_err(refuse)?;
                part.push(Piece { handle, former: None });
            }
        }
        Ok(())
    }
}

fn granules_of(part: &[Piece]) -> u64 {
    u64::try_from(part.len()).unwrap_or(u64::MAX)
}
