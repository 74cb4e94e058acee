//! The options as they are written in the registry, and the settings that they resolve to on this machine.

use crate::mapping::Mapping;
use leasehold_host_memory::sys::{Counting, HugePageAdvice};
use leasehold_host_memory::{Fault, granule};
use leasehold_plugin_api::{BackingError, ByteSize, ErrorKind};
use rustix::io::Errno;
use serde::Deserialize;

/// The options of [`HostMmap`](crate::HostMmap), as written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostMmapOptions {
    /// The unit of commit: a power of two, a multiple of the page size. Default: the page size.
    pub granule: Option<ByteSize>,
    /// What the kernel is told about transparent huge pages. Default: nothing.
    pub huge_pages: HugePages,
    /// Whether a commit also puts a page behind every address, so that no later touch can fault or fail. Default: no.
    pub populate: bool,
}

/// What the kernel is told about transparent huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HugePages {
    /// Nothing: `/sys/kernel/mm/transparent_hugepage/enabled` decides.
    #[default]
    System,
    /// They are wanted: `MADV_HUGEPAGE`.
    Madvise,
    /// They are not wanted: `MADV_NOHUGEPAGE`.
    Never,
}

/// When a page is put behind a committed address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Population {
    OnTouch,
    AtCommit,
}

/// What the options resolve to on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// A page; a power of two.
    pub(crate) page: u64,
    /// The unit of commit; a power of two, a multiple of `page`.
    pub(crate) granule: u64,
    pub(crate) advice: Option<HugePageAdvice>,
    pub(crate) population: Population,
}

impl HostMmapOptions {
    /// Checks the options and what they need from the kernel.
    pub(crate) fn resolve(&self, page: u64) -> Result<Settings, BackingError> {
        let settings = Settings {
            page,
            granule: granule::resolve(self.granule, page, page)?,
            advice: match self.huge_pages {
                HugePages::System => None,
                HugePages::Madvise => Some(HugePageAdvice::Prefer),
                HugePages::Never => Some(HugePageAdvice::Avoid),
            },
            population: if self.populate { Population::AtCommit } else { Population::OnTouch },
        };
        settings.probe()
    }
}

impl Settings {
    /// Tries the advice and the population on one page, so that a kernel without them is found here.
    fn probe(mut self) -> Result<Self, BackingError> {
        if self.advice.is_none() && self.population == Population::OnTouch {
            return Ok(self);
        }
        let sample = match Mapping::reserve(self.page, self.page, Counting::Uncounted, self.advice) {
            Err(Fault { errno: Errno::INVAL, .. }) if self.advice == Some(HugePageAdvice::Avoid) => {
                // A kernel that knows no huge pages gives none.
                self.advice = None;
                return self.probe();
            }
            Err(fault) => return Err(missing("huge_pages", fault, "use huge_pages = \"system\"")),
            Ok(sample) => sample,
        };
        if self.population == Population::AtCommit {
            let advice = "MADV_POPULATE_WRITE came with Linux 5.14: use populate = false";
            let populated = sample.open_access(0, self.page).and_then(|()| sample.populate(0, self.page));
            populated.map_err(|fault| missing("populate", fault, advice))?;
        }
        Ok(self)
    }
}

fn missing(option: &str, fault: Fault, advice: &str) -> BackingError {
    let what = format!("option `{option}` can't be served by this kernel: {fault}; {advice}");
    BackingError::new(ErrorKind::Unavailable, what).with_native_code(i64::from(fault.errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_plugin_api::{OptionValue, Options};

    fn text(key: &str, value: &str) -> Options {
        Options::new().with(key, OptionValue::Text(value.to_owned()))
    }

    fn resolve(options: &Options) -> Result<Settings, BackingError> {
        options.read::<HostMmapOptions>()?.resolve(4096)
    }

    #[test]
    fn no_options_mean_a_page_the_systems_huge_pages_and_touch() {
        let settings = resolve(&Options::new()).unwrap();
        let wanted = Settings { page: 4096, granule: 4096, advice: None, population: Population::OnTouch };
        assert_eq!(settings, wanted);
    }

    #[test]
    fn written_options_are_kept() {
        assert_eq!(resolve(&text("granule", "2 MiB")).unwrap().granule, 2 << 20);
        assert_eq!(resolve(&text("huge_pages", "madvise")).unwrap().advice, Some(HugePageAdvice::Prefer));
        assert_eq!(resolve(&text("huge_pages", "never")).unwrap().advice, Some(HugePageAdvice::Avoid));
        let populate = Options::new().with("populate", OptionValue::Boolean(true));
        assert_eq!(resolve(&populate).unwrap().population, Population::AtCommit);
    }

    #[test]
    fn a_granule_that_is_no_power_of_two_or_less_than_a_page_is_refused() {
        let odd = resolve(&text("granule", "12 KiB")).unwrap_err();
        assert_eq!(
            odd.message(),
            "option `granule` refused: 12288 bytes is not a power of two; write a power of two from 4096 \
             up, such as granule = \"2 MiB\""
        );
        let small = resolve(&text("granule", "2 KiB")).unwrap_err();
        assert!(small.message().contains("2048 bytes is less than a page of 4096 bytes"), "{small}");
        for error in [odd, small, resolve(&text("granule", "0")).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        }
    }

    #[test]
    fn an_unknown_key_or_word_is_refused() {
        for options in [text("granul", "2 MiB"), text("huge_pages", "always"), text("populate", "yes")] {
            assert_eq!(resolve(&options).unwrap_err().kind(), ErrorKind::InvalidRequest);
        }
    }
}
