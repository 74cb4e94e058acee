//! Calls that failed, and could not all be undone.

use leasehold_cuda_driver::Fault;
use leasehold_plugin_api::{BackingError, ErrorKind};

/// What happens to what such a call left.
pub(crate) const RETRY: &str = "it is tried again before the range is used, and when the region is released";

/// A call that failed, and whether everything is as before.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) fault: Fault,
    /// What the undoing met, where something is left behind.
    pub(crate) undo: Option<Fault>,
}

impl Broken {
    pub(crate) fn undone(fault: Fault) -> Self {
        Self { fault, undo: None }
    }

    /// The failure that the host acts on.
    pub(crate) fn into_error(self, what: &str) -> BackingError {
        let advice = self.fault.advice();
        self.into_advised(what, advice, RETRY)
    }

    /// The same, with what may help where everything is as before, and where something is left behind.
    pub(crate) fn into_advised(self, what: &str, undone: &str, left: &str) -> BackingError {
        match self.undo {
            None => self.fault.into_error(what, undone),
            Some(undo) => {
                let kind = broken_off(self.fault.kind(), undo.kind());
                undo.into_error_of(kind, format!("{what}: {}; undoing it failed too", self.fault), left)
            }
        }
    }
}

/// The kind of a failure that could not be undone. Both kinds leave doubt, and on a lost device nothing can be undone any
/// more.
pub(crate) fn broken_off(failure: ErrorKind, undoing: ErrorKind) -> ErrorKind {
    if [failure, undoing].contains(&ErrorKind::DeviceLost) { ErrorKind::DeviceLost } else { ErrorKind::BrokenOff }
}
