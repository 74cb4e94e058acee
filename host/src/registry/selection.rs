//! Turns `LEASEHOLD_SELECT` and `LEASEHOLD_DISABLE` into which backings are taken.
//!
//! Each holds globs with commas between them, matched against the names of backings. A comma always separates, so
//! `{a,b}` is to be written as two globs. A variable that is unset, empty or without a glob changes nothing.

use crate::machine::EnvironmentTrust;
use globset::{Glob, GlobSet, GlobSetBuilder};
use std::env;
use std::ffi::OsString;

const SELECT: &str = "LEASEHOLD_SELECT";
const DISABLE: &str = "LEASEHOLD_DISABLE";

/// Which of the registry's backings are taken: those that are selected, less those that are disabled.
///
/// It only takes away: a backing with `enabled = false` in the registry stays disabled.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    select: Option<Globs>,
    disable: Option<Globs>,
}

/// A list of globs that is no such list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: not read: {why}; write globs with commas between them, for example cuda-*,host-mmap")]
pub struct SelectionError {
    variable: &'static str,
    why: String,
}

/// At least one glob.
#[derive(Clone, Debug)]
struct Globs {
    written: String,
    set: GlobSet,
}

impl Selection {
    /// Every backing.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Only what `select` matches, and not what `disable` matches; `None` and the empty text change nothing.
    ///
    /// # Errors
    ///
    /// A glob is malformed. The error names the environment variable that stands for the argument.
    pub fn new(select: Option<&str>, disable: Option<&str>) -> Result<Self, SelectionError> {
        let globs = |variable, text: Option<&str>| text.map_or(Ok(None), |text| Globs::parse(variable, text));
        Ok(Self { select: globs(SELECT, select)?, disable: globs(DISABLE, disable)? })
    }

    /// What the environment asks for. In a program that has more rights than its caller (set-uid, set-gid, file
    /// capabilities), or that can't find out, the environment is ignored and every backing is taken.
    ///
    /// # Errors
    ///
    /// A variable is no UTF-8, or holds a malformed glob.
    pub fn from_environment() -> Result<Self, SelectionError> {
        Self::from_variables(EnvironmentTrust::of_this_process(), |variable| env::var_os(variable))
    }

    fn from_variables(
        environment: EnvironmentTrust,
        value: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, SelectionError> {
        if environment == EnvironmentTrust::Untrusted {
            return Ok(Self::all());
        }
        let text = |variable| value(variable).map(|value| utf_8(variable, value)).transpose();
        Self::new(text(SELECT)?.as_deref(), text(DISABLE)?.as_deref())
    }

    /// Why the backing of this name is not taken; `None` when it is.
    pub(crate) fn exclusion(&self, name: &str) -> Option<String> {
        let unselected = self.select.as_ref().filter(|globs| !globs.set.is_match(name));
        let disabled = self.disable.as_ref().filter(|globs| globs.set.is_match(name));
        unselected
            .map(|globs| format!("{SELECT}={:?} does not match it", globs.written))
            .or_else(|| disabled.map(|globs| format!("{DISABLE}={:?} matches it", globs.written)))
    }
}

fn utf_8(variable: &'static str, value: OsString) -> Result<String, SelectionError> {
    value.into_string().map_err(|value| SelectionError { variable, why: format!("seen {value:?}, wanted UTF-8") })
}

impl Globs {
    fn parse(variable: &'static str, text: &str) -> Result<Option<Self>, SelectionError> {
        let refusal = |error: globset::Error| SelectionError {
            variable,
            why: format!("seen {:?}: {}", error.glob().unwrap_or(text), error.kind()),
        };
        let mut globs = text.split(',').map(str::trim).filter(|glob| !glob.is_empty()).peekable();
        if globs.peek().is_none() {
            return Ok(None);
        }
        let mut builder = GlobSetBuilder::new();
        for glob in globs {
            builder.add(Glob::new(glob).map_err(refusal)?);
        }
        Ok(Some(Self { written: text.to_owned(), set: builder.build().map_err(refusal)? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::ffi::OsStringExt;

    const NAMES: [&str; 4] = ["host-mmap", "host-pool", "cuda-vmm", "cuda-pool"];

    fn taken(select: Option<&str>, disable: Option<&str>) -> Vec<&'static str> {
        let selection = Selection::new(select, disable).unwrap();
        NAMES.into_iter().filter(|name| selection.exclusion(name).is_none()).collect()
    }

    #[test]
    fn without_globs_every_backing_is_taken() {
        for nothing in [None, Some(""), Some(" , ,")] {
            assert_eq!(taken(nothing, nothing), NAMES);
        }
    }

    #[test]
    fn only_what_is_selected_is_taken() {
        assert_eq!(taken(Some("cuda-*"), None), ["cuda-vmm", "cuda-pool"]);
        assert_eq!(taken(Some("host-mmap, *-vmm"), None), ["host-mmap", "cuda-vmm"]);
        assert_eq!(taken(Some("mmap"), None), [""; 0]);
    }

    #[test]
    fn what_is_disabled_is_not_taken() {
        assert_eq!(taken(None, Some("*-pool")), ["host-mmap", "cuda-vmm"]);
        assert_eq!(taken(Some("cuda-*"), Some("*-pool")), ["cuda-vmm"]);
    }

    #[test]
    fn an_exclusion_says_which_variable_did_it() {
        let selection = Selection::new(Some("host-*"), Some("*-pool")).unwrap();
        assert_eq!(selection.exclusion("host-mmap"), None);
        assert_eq!(selection.exclusion("host-pool").unwrap(), "LEASEHOLD_DISABLE=\"*-pool\" matches it");
        assert_eq!(selection.exclusion("cuda-vmm").unwrap(), "LEASEHOLD_SELECT=\"host-*\" does not match it");
    }

    #[test]
    fn a_malformed_glob_is_refused_with_its_variable() {
        assert_eq!(
            Selection::new(Some("host-*,cuda-["), None).unwrap_err().to_string(),
            "LEASEHOLD_SELECT: not read: seen \"cuda-[\": unclosed character class; missing ']'; write globs with \
             commas between them, for example cuda-*,host-mmap"
        );
        let error = Selection::new(Some("host-*"), Some("{a,b}")).unwrap_err().to_string();
        assert!(error.starts_with("LEASEHOLD_DISABLE: not read: seen \"{a\": "), "{error}");
    }

    #[test]
    fn the_environment_is_read_when_it_is_trusted() {
        let value = |variable: &str| (variable == DISABLE).then(|| OsString::from("cuda-*"));
        let selection = Selection::from_variables(EnvironmentTrust::Trusted, value).unwrap();
        assert!(selection.exclusion("cuda-vmm").is_some());
        let selection = Selection::from_variables(EnvironmentTrust::Untrusted, value).unwrap();
        assert!(selection.exclusion("cuda-vmm").is_none());
    }

    #[test]
    fn a_variable_that_is_no_utf_8_is_refused() {
        let value = |variable: &str| (variable == SELECT).then(|| OsString::from_vec(vec![b'a', 0xff]));
        assert_eq!(
            Selection::from_variables(EnvironmentTrust::Trusted, value).unwrap_err().to_string(),
            "LEASEHOLD_SELECT: not read: seen \"a\\xFF\", wanted UTF-8; write globs with commas between them, for \
             example cuda-*,host-mmap"
        );
        assert!(Selection::from_variables(EnvironmentTrust::Untrusted, value).is_ok());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(?s).{0,20}|[a-z*?,{}!\\[\\]\\\\-]{0,20}") {
            let _ = Selection::new(Some(&text), Some(&text)).map(|selection| selection.exclusion("host-mmap"));
        }
    }
}
