//! The options as they are written in the registry, and the settings that they resolve to on this machine.

use leasehold_host_memory::granule;
use leasehold_plugin_api::{BackingError, ByteSize};
use serde::Deserialize;

/// The granule where none is written: pages are mapped one by one whatever the granule is, and 16 of them a call keep
/// calls few and waste small.
const DEFAULT_GRANULE: u64 = 64 << 10;

/// What is parked at most where nothing is written.
const DEFAULT_PARK: ByteSize = ByteSize(256 << 20);

/// The options of [`HostPool`](crate::HostPool), as written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostPoolOptions {
    /// The unit of commit: a power of two, a multiple of the page size. Default: 64 KiB, or the page size where that is
    /// more.
    pub granule: Option<ByteSize>,
    /// The most bytes to keep for the next commit. Default: 256 MiB.
    pub park: Option<ByteSize>,
    /// When parked memory is zeroed before it serves again. Default: when it goes to another holder.
    pub scrub: Scrub,
}

/// When parked memory is zeroed before it serves again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scrub {
    /// When it goes to another holder than the one that left it.
    #[default]
    Holders,
    /// Also when it goes back to the same one.
    Always,
}

/// What the options resolve to on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The unit of commit; a power of two, a multiple of the page.
    pub(crate) granule: u64,
    /// The most frames to park.
    pub(crate) park_frames: u64,
    pub(crate) scrub: Scrub,
}

impl HostPoolOptions {
    /// Checks the options.
    pub(crate) fn resolve(&self, page: u64) -> Result<Settings, BackingError> {
        let granule = granule::resolve(self.granule, DEFAULT_GRANULE.max(page), page)?;
        let ByteSize(park) = self.park.unwrap_or(DEFAULT_PARK);
        Ok(Settings { granule, park_frames: park.checked_div(granule).unwrap_or(0), scrub: self.scrub })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_plugin_api::{ErrorKind, OptionValue, Options};

    fn text(key: &str, value: &str) -> Options {
        Options::new().with(key, OptionValue::Text(value.to_owned()))
    }

    fn resolve(options: &Options) -> Result<Settings, BackingError> {
        options.read::<HostPoolOptions>()?.resolve(4096)
    }

    #[test]
    fn no_options_mean_64_kib_and_256_mib_parked() {
        let wanted = Settings { granule: 64 << 10, park_frames: 4096, scrub: Scrub::Holders };
        assert_eq!(resolve(&Options::new()), Ok(wanted));
        assert_eq!(HostPoolOptions::default().resolve(1 << 20).unwrap().granule, 1 << 20);
    }

    #[test]
    fn written_options_are_kept_and_whole_granules_are_parked() {
        let written = text("granule", "2 MiB").with("park", OptionValue::Text("5 MiB".to_owned()));
        let wanted = Settings { granule: 2 << 20, park_frames: 2, scrub: Scrub::Holders };
        assert_eq!(resolve(&written), Ok(wanted));
        assert_eq!(resolve(&text("park", "0")).unwrap().park_frames, 0);
        assert_eq!(resolve(&text("scrub", "always")).unwrap().scrub, Scrub::Always);
    }

    #[test]
    fn a_wrong_granule_and_an_unknown_key_or_word_are_refused() {
        let wrong = [text("granule", "12 KiB"), text("granule", "2 KiB"), text("scrub", "never"), text("parks", "1")];
        for options in wrong {
            assert_eq!(resolve(&options).unwrap_err().kind(), ErrorKind::InvalidRequest);
        }
    }
}
