//! What is known of a failed call beside its code: it decides the kind and the words where the code alone would mislead.

use crate::code;
use crate::process;
use leasehold_plugin_api::ErrorKind;

/// What is known of a failure beside its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Nothing.
    Unknown,
    /// The process was forked from one that had initialised the driver.
    Forked,
    /// The process has no file descriptor left: a handle may take one, and the driver reports that as "out of memory".
    NoDescriptors,
    /// The context was reset by other code of the process, and perhaps made anew at the same address.
    Reset,
    /// The device's compute mode lets no process make a context.
    Prohibited,
}

impl Cause {
    /// What this process shows of a failure with that code, right after it.
    pub(crate) fn of(code: u32) -> Self {
        match code {
            code::NOT_INITIALIZED if process::is_forked() => Self::Forked,
            code::OUT_OF_MEMORY if process::is_out_of_descriptors() => Self::NoDescriptors,
            _ => Self::Unknown,
        }
    }

    /// What kind of failure it is; `None` where the code decides.
    pub(crate) fn kind(self) -> Option<ErrorKind> {
        match self {
            Self::Unknown => None,
            Self::Forked | Self::Reset => Some(ErrorKind::DeviceLost),
            Self::NoDescriptors => Some(ErrorKind::Internal),
            Self::Prohibited => Some(ErrorKind::Unavailable),
        }
    }

    /// What may help; `None` where the code or the kind decides.
    pub(crate) fn advice(self) -> Option<&'static str> {
        match self {
            Self::Unknown | Self::Reset => None,
            Self::Forked => Some("fork workers before a registry is loaded or CUDA is used, or start them by exec"),
            Self::NoDescriptors => Some("raise its limit (ulimit -n), or have fewer handles (option `handle`)"),
            Self::Prohibited => Some("have it allow contexts (nvidia-smi -c DEFAULT), or use another device"),
        }
    }

    /// What follows the name of the code.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::Forked => ", since this process was forked from one that had initialised CUDA",
            Self::NoDescriptors => ", since this process has no file descriptor left",
            Self::Reset => ", since the device's primary context was reset",
            Self::Prohibited => ", since the device's compute mode is prohibited",
        }
    }
}
