//! The driver, found and initialised: [`Driver::open`], and the devices that it shows.

use crate::code;
use crate::device::Device;
use crate::error::Fault;
use crate::library;
use crate::sys::Calls;
use leasehold_plugin_api::{BackingError, ErrorKind};
use std::path::Path;
use std::sync::OnceLock;

/// The CUDA driver of this process, initialised, with at least one device. Copies are the same driver.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    calls: &'static Calls,
    devices: u32,
}

impl Driver {
    /// Finds the driver, by its usual names or at a path, checks that it has every function that is needed, initialises
    /// it, and counts its devices. A process has one driver: the first that was named or found, and works. Where one was, none
    /// needs to be named.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](ErrorKind::Unavailable), always, with what was tried and what to do: no library, one that is no
    /// driver, a symbol that is missing, no device, a stub, a driver that doesn't match its kernel module or its
    /// device.
    pub fn open(library: Option<&Path>) -> Result<Self, BackingError> {
        static CALLS: OnceLock<Calls> = OnceLock::new();
        let found = match (library, CALLS.get()) {
            (None, Some(calls)) => *calls,
            _ => library::find(library)?,
        };
        let check_same = |calls: &Calls| match library {
            Some(path) if !calls.is_same(&found) => Err(library::another_came_first(path)),
            _ => Ok(()),
        };
        CALLS.get().map_or(Ok(()), check_same)?;
        let devices = found.init().and_then(|()| found.device_count()).map_err(|fault| refusal(&found, fault))?;
        if devices == 0 {
            return Err(refusal(&found, Fault::new("cuDeviceGetCount", code::NO_DEVICE)));
        }
        // One that doesn't work is not kept. But it stays loaded: where it has the driver's own name, as the toolkit's stub
        // has, that name is taken, and the one that is named next is refused.
        let calls = CALLS.get_or_init(|| found);
        check_same(calls)?;
        Ok(Self { calls, devices })
    }

    /// How many devices it shows this process; ordinals are below it.
    #[must_use]
    pub fn device_count(&self) -> u32 {
        self.devices
    }

    /// The version of CUDA that the driver supports, such as `12.8`.
    ///
    /// # Errors
    ///
    /// What the driver answers.
    pub fn version(&self) -> Result<String, Fault> {
        self.calls.version().map(library::dotted)
    }

    /// Whether a device can reach the memory of another one, both by their ordinals. Neither needs a context for that, which
    /// would take memory of it.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](ErrorKind::Unavailable) for an ordinal that no device has, and what the driver answers.
    pub fn can_reach(&self, ordinal: u32, owner: u32) -> Result<bool, BackingError> {
        self.check_ordinal(ordinal)?;
        self.check_ordinal(owner)?;
        let outcome =
            self.calls.device(ordinal).and_then(|device| self.calls.can_reach(device, self.calls.device(owner)?));
        outcome.map_err(|fault| {
            fault
                .into_error(format!("device {ordinal} does not tell whether it reaches device {owner}"), fault.advice())
        })
    }

    fn check_ordinal(&self, ordinal: u32) -> Result<(), BackingError> {
        if ordinal < self.devices {
            return Ok(());
        }
        let message = format!(
            "device {ordinal} is not here: the CUDA driver shows this process {} of them, counted from 0; lower the \
             ordinal or widen CUDA_VISIBLE_DEVICES",
            self.devices
        );
        Err(BackingError::new(ErrorKind::Unavailable, message))
    }

    /// A device, whose primary context is retained while the answer or anything made through it lives.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](ErrorKind::Unavailable) for an ordinal that no device has, and for a device that can't be used;
    /// else of the kind of the [`Fault`], [`OutOfMemory`](ErrorKind::OutOfMemory) among them: a context takes memory of
    /// the device.
    pub fn device(&self, ordinal: u32) -> Result<Device, BackingError> {
        self.check_ordinal(ordinal)?;
        Device::open(self.calls, ordinal)
            .map_err(|fault| fault.into_error(format!("device {ordinal} can't be used"), fault.advice()))
    }
}

/// Why the driver can't be used, and what to do.
fn refusal(calls: &Calls, fault: Fault) -> BackingError {
    let version =
        calls.version().map_or_else(|_| String::new(), |version| format!(" of CUDA {}", library::dotted(version)));
    let what = format!("the CUDA driver{version} can't be used");
    let advice = match fault.code {
        code::UNKNOWN => "check nvidia-smi and the kernel's log",
        _ => fault.advice(),
    };
    fault.into_error_of(ErrorKind::Unavailable, what, advice)
}
