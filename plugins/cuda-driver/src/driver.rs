//! The driver, found and initialised: [`Driver::open`], and the devices that it shows.

use crate::code;
use crate::device::Device;
use crate::error::Fault;
use crate::library::{self, Candidate};
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
    /// it, and counts its devices. By name it is the one that is loaded already, else `libcuda.so.1`, else `libcuda.so`; a
    /// toolkit's stub is passed over. A process has one driver: the first that was named or found, and works. Where one was,
    /// none needs to be named.
    ///
    /// It makes no context, and takes no memory of a device. But a process that is forked from this one afterwards can't use
    /// the driver.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](ErrorKind::Unavailable), always, with what was tried and what to do: no library, one that is no
    /// driver, a symbol that is missing, no device, a stub, a driver that doesn't match its kernel module or its
    /// device, a process that was forked.
    pub fn open(library: Option<&Path>) -> Result<Self, BackingError> {
        static CALLS: OnceLock<Calls> = OnceLock::new();
        let (calls, devices) = match (library, CALLS.get()) {
            (None, None) => find_by_name()?,
            (None, Some(calls)) => (*calls, initialise(calls).map_err(|fault| refusal(calls, fault, None))?),
            (Some(path), known) => {
                let candidate = library::at(path)?;
                if known.is_some_and(|known| !known.is_same(candidate.calls())) {
                    return Err(library::another_came_first(path));
                }
                try_candidate(candidate)?
            }
        };
        // Another thread may have come first.
        let kept = CALLS.get_or_init(|| calls);
        match library {
            Some(path) if !kept.is_same(&calls) => Err(library::another_came_first(path)),
            _ => Ok(Self { calls: kept, devices }),
        }
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

    /// A device. No context is made for it: that waits for the first call that needs one.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](ErrorKind::Unavailable) for an ordinal that no device has, and for a device on which no process may make
    /// a context; else of the kind of the [`Fault`].
    pub fn device(&self, ordinal: u32) -> Result<Device, BackingError> {
        self.check_ordinal(ordinal)?;
        let unusable = format!("device {ordinal} can't be used");
        let ask = |fault: Fault| fault.into_error(&unusable, fault.advice());
        let device = Device::open(self.calls, ordinal).map_err(ask)?;
        if device.is_prohibited().map_err(ask)? {
            let why =
                "its compute mode is prohibited; have it allow contexts (nvidia-smi -c DEFAULT), or use another device";
            return Err(BackingError::new(ErrorKind::Unavailable, format!("{unusable}: {why}")));
        }
        Ok(device)
    }
}

/// The first candidate that is a driver and no stub. It is kept, and so is one that fails otherwise: that is the driver.
fn find_by_name() -> Result<(Calls, u32), BackingError> {
    let mut passed_over = None;
    for candidate in library::candidates() {
        match candidate.and_then(try_candidate) {
            Ok(found) => return Ok(found),
            Err(error) if is_passed_over(&error) => passed_over = passed_over.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    Err(passed_over.unwrap_or_else(library::absent))
}

/// Whether the next candidate may be the driver: this one is a stub, or lacks symbols, which has no code.
fn is_passed_over(error: &BackingError) -> bool {
    error.native_code().is_none_or(|native| native == i64::from(code::STUB_LIBRARY))
}

/// Initialises a library, and keeps it unless it is a stub.
fn try_candidate(candidate: Candidate) -> Result<(Calls, u32), BackingError> {
    match initialise(candidate.calls()) {
        Ok(devices) => Ok((candidate.keep(), devices)),
        Err(fault) if fault.code == code::STUB_LIBRARY => {
            Err(refusal(candidate.calls(), fault, candidate.path().as_deref()))
        }
        Err(fault) => Err(refusal(&candidate.keep(), fault, None)),
    }
}

/// Initialises the driver, and counts its devices, of which there is one.
fn initialise(calls: &Calls) -> Result<u32, Fault> {
    calls.init()?;
    match calls.device_count()? {
        0 => Err(Fault::new("cuDeviceGetCount", code::NO_DEVICE)),
        devices => Ok(devices),
    }
}

/// Why the driver can't be used, and what to do. `path` is that of a stub.
fn refusal(calls: &Calls, fault: Fault, path: Option<&str>) -> BackingError {
    let advice = match (fault.code, path) {
        (code::UNKNOWN, _) => "check nvidia-smi and the kernel's log".to_owned(),
        (code::STUB_LIBRARY, Some(path)) => format!(
            "{path} is the toolkit's stub, which only serves to link: take its folder out of LD_LIBRARY_PATH, name the \
             driver's libcuda.so.1 (option `driver`), or install it"
        ),
        _ => fault.advice().to_owned(),
    };
    let version =
        calls.version().map_or_else(|_| String::new(), |version| format!(" of CUDA {}", library::dotted(version)));
    let what = format!("the CUDA driver{version} can't be used");
    fault.into_error_of(ErrorKind::Unavailable, what, advice)
}
