//! A driver call that failed: which one, with which code, in words that name both, and what kind of failure that is.

use crate::cause::Cause;
use crate::code;
use leasehold_plugin_api::{BackingError, ErrorKind};
use std::fmt;

/// One failed driver call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The driver's function, as its documentation names it.
    pub call: &'static str,
    /// Its `CUresult`: a number, since a driver may have codes that are not listed here.
    pub code: u32,
    cause: Cause,
}

impl Fault {
    /// The failure of `call` with that code.
    #[must_use]
    pub fn new(call: &'static str, code: u32) -> Self {
        Self { call, code, cause: Cause::Unknown }
    }

    /// The failure of a call that was made just now, with what this process shows of its cause.
    pub(crate) fn of_call(call: &'static str, code: u32) -> Self {
        Self { call, code, cause: Cause::of(code) }
    }

    /// The same failure, of a device in the prohibited compute mode.
    pub(crate) fn of_prohibited_device(self) -> Self {
        Self { cause: Cause::Prohibited, ..self }
    }

    /// What every call is in a context that has another id than the one that was retained.
    pub(crate) fn of_reset_context() -> Self {
        Self { call: "cuCtxGetId", code: code::CONTEXT_IS_DESTROYED, cause: Cause::Reset }
    }

    /// Whether the context that the call was to be made in has ended.
    pub(crate) fn is_of_ended_context(self) -> bool {
        [code::INVALID_CONTEXT, code::CONTEXT_IS_DESTROYED].contains(&self.code)
    }

    /// The failure of `call` that the driver reports where it has no memory: `CUDA_ERROR_OUT_OF_MEMORY`.
    #[must_use]
    pub fn out_of_memory(call: &'static str) -> Self {
        Self::new(call, code::OUT_OF_MEMORY)
    }

    /// The failure of `call` that the driver reports for values that it refuses: `CUDA_ERROR_INVALID_VALUE`.
    #[must_use]
    pub fn invalid_value(call: &'static str) -> Self {
        Self::new(call, code::INVALID_VALUE)
    }

    /// The failure of `call` where the device or its driver has no such thing: `CUDA_ERROR_NOT_SUPPORTED`.
    #[must_use]
    pub fn not_supported(call: &'static str) -> Self {
        Self::new(call, code::NOT_SUPPORTED)
    }

    /// Whether the driver refused the values of the call: of an address, that nothing is mapped there.
    #[must_use]
    pub fn is_invalid_value(self) -> bool {
        self.code == code::INVALID_VALUE
    }

    /// The name of its code; `CUresult` for one that is not known.
    #[must_use]
    pub fn name(self) -> &'static str {
        code::NAMES.iter().find(|(code, _)| *code == self.code).map_or("CUresult", |(_, name)| *name)
    }

    /// What the host may act on.
    ///
    /// | code | kind |
    /// |---|---|
    /// | 1, 2 and 304 from `cuMemAddressReserve` | [`AddressSpaceExhausted`](ErrorKind::AddressSpaceExhausted) |
    /// | 46 and 999 from `cuDevicePrimaryCtxRetain`: no context was made | [`Unavailable`](ErrorKind::Unavailable) |
    /// | 2 while the process has no file descriptor left | [`Internal`](ErrorKind::Internal) |
    /// | 2 | [`OutOfMemory`](ErrorKind::OutOfMemory) |
    /// | 3: the process was forked after `cuInit` | [`DeviceLost`](ErrorKind::DeviceLost) |
    /// | 4, 201, 709: the driver shut down, or the context ended under users | [`DeviceLost`](ErrorKind::DeviceLost) |
    /// | 810: the MPS server ended this client | [`DeviceLost`](ErrorKind::DeviceLost) |
    /// | the sticky ones: 700 and its kin, 719, ECC, NVLink, 999 | [`DeviceLost`](ErrorKind::DeviceLost) |
    /// | 801 | [`Unsupported`](ErrorKind::Unsupported) |
    /// | 802: the fabric manager is not up yet | [`Unavailable`](ErrorKind::Unavailable) |
    /// | all others, 1 and unknown ones included | [`Internal`](ErrorKind::Internal) |
    ///
    /// 201 (`CUDA_ERROR_INVALID_CONTEXT`) can only mean that: every call is made with a context current that this
    /// library retains. 1 (`CUDA_ERROR_INVALID_VALUE`) is a mistake of the backing, which checks requests before it
    /// calls: never the host's. Of a reservation that was checked only its size or its alignment can be what the driver
    /// has no addresses for, and which of its codes it reports then isn't documented. 701, 703 to 708, 711 to 713 and
    /// 720 refuse one call and leave the context as it was.
    #[must_use]
    pub fn kind(self) -> ErrorKind {
        if let Some(kind) = self.cause.kind() {
            return kind;
        }
        match self.code {
            code::INVALID_VALUE | code::OUT_OF_MEMORY | code::OPERATING_SYSTEM
                if self.call == "cuMemAddressReserve" =>
            {
                ErrorKind::AddressSpaceExhausted
            }
            code::DEVICE_UNAVAILABLE | code::UNKNOWN if self.call == "cuDevicePrimaryCtxRetain" => {
                ErrorKind::Unavailable
            }
            code::OUT_OF_MEMORY => ErrorKind::OutOfMemory,
            code::NOT_INITIALIZED
            | code::DEINITIALIZED
            | code::INVALID_CONTEXT
            | code::CONTEXT_IS_DESTROYED
            | code::MPS_CLIENT_TERMINATED => ErrorKind::DeviceLost,
            code::NOT_SUPPORTED => ErrorKind::Unsupported,
            code::SYSTEM_NOT_READY => ErrorKind::Unavailable,
            sticky if code::STICKY.contains(&sticky) => ErrorKind::DeviceLost,
            _ => ErrorKind::Internal,
        }
    }

    /// What may help against this failure: by its cause where that is known, else by its code, else by its
    /// [kind](Self::kind).
    #[must_use]
    pub fn advice(self) -> &'static str {
        self.cause.advice().or_else(|| self.advice_on_code()).unwrap_or_else(|| match self.kind() {
            ErrorKind::OutOfMemory => "free memory of the device, or lower the budget of its domain",
            ErrorKind::AddressSpaceExhausted => "reserve less, or release regions first",
            ErrorKind::DeviceLost => "nothing of this context works any more: end the process, or make everything anew",
            ErrorKind::Unsupported => "the device or its driver can't do that: use another",
            ErrorKind::Unavailable => "see nvidia-smi -q for the device's state and compute mode",
            _ => "try again; where it stays so, see what the driver says of the code",
        })
    }

    fn advice_on_code(self) -> Option<&'static str> {
        match self.code {
            code::NOT_INITIALIZED => Some(
                "a process that was forked after CUDA was initialised gets this: fork workers before that, or start \
                 them by exec",
            ),
            code::STUB_LIBRARY => Some(
                "the library is the toolkit's stub, which only serves to link: take its folder (…/lib64/stubs) out of \
                 LD_LIBRARY_PATH, name the driver's libcuda.so.1 (option `driver`), or install it",
            ),
            code::DEVICE_UNAVAILABLE => {
                Some("another process has the device to itself (compute mode exclusive): end it, or use another device")
            }
            code::NO_DEVICE => Some(
                "it shows no device: check nvidia-smi and CUDA_VISIBLE_DEVICES, and in a container pass the devices \
                 through",
            ),
            code::SYSTEM_NOT_READY => {
                Some("wait until the fabric manager is up (systemctl status nvidia-fabricmanager), then try again")
            }
            code::SYSTEM_DRIVER_MISMATCH => {
                Some("libcuda.so and the kernel's module are of different versions: reboot, or reload the module")
            }
            code::COMPAT_NOT_SUPPORTED_ON_DEVICE => {
                Some("the compatibility libcuda.so doesn't support this device: take it out of LD_LIBRARY_PATH")
            }
            code::MPS_CLIENT_TERMINATED => {
                Some("the MPS server ended this process's access to the device: end the process, and start it again")
            }
            _ => None,
        }
    }

    /// The failure that the host acts on: of this fault's [kind](Self::kind), with its code.
    #[must_use]
    pub fn into_error(self, what: impl fmt::Display, advice: impl fmt::Display) -> BackingError {
        self.into_error_of(self.kind(), what, advice)
    }

    /// The same, of a kind that the caller knows better.
    #[must_use]
    pub fn into_error_of(self, kind: ErrorKind, what: impl fmt::Display, advice: impl fmt::Display) -> BackingError {
        BackingError::new(kind, format!("{what}: {self}; {advice}")).with_native_code(i64::from(self.code))
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} failed: {} ({})", self.call, self.name(), self.code)?;
        formatter.write_str(self.cause.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_its_call_and_its_code() {
        assert_eq!(Fault::new("cuMemCreate", 2).to_string(), "cuMemCreate failed: CUDA_ERROR_OUT_OF_MEMORY (2)");
        assert_eq!(Fault::new("cuMemMap", 12_345).to_string(), "cuMemMap failed: CUresult (12345)");
        let error = Fault::new("cuMemCreate", 2).into_error("commit", "free some");
        assert_eq!(error.message(), "commit: cuMemCreate failed: CUDA_ERROR_OUT_OF_MEMORY (2); free some");
        assert_eq!(error.native_code(), Some(2));
    }

    #[test]
    fn what_callers_tell_apart_has_words_of_its_own() {
        assert_eq!(Fault::out_of_memory("cuMemCreate"), Fault::new("cuMemCreate", 2));
        assert_eq!(Fault::invalid_value("cuMemMap"), Fault::new("cuMemMap", 1));
        assert!(Fault::new("cuMemcpy", 1).is_invalid_value());
        assert!(!Fault::new("cuMemcpy", 2).is_invalid_value());
    }

    #[test]
    fn each_code_has_the_kind_that_the_host_can_act_on() {
        let kind = |call, code| Fault::new(call, code).kind();
        for call in ["cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemAlloc", "cuDevicePrimaryCtxRetain"] {
            assert_eq!(kind(call, 2), ErrorKind::OutOfMemory);
        }
        assert_eq!(kind("cuMemAddressReserve", 2), ErrorKind::AddressSpaceExhausted);
        for code in [3, 4, 201, 709, 810, 700, 702, 710, 714, 715, 716, 717, 718, 719, 999] {
            assert_eq!(kind("cuMemMap", code), ErrorKind::DeviceLost, "{code}");
        }
        for code in [1, 101, 400, 401, 701, 703, 704, 705, 708, 711, 712, 713, 720, 800, 4_000_000_000] {
            assert_eq!(kind("cuMemMap", code), ErrorKind::Internal, "{code}");
        }
        assert_eq!(kind("cuMemSetAccess", 801), ErrorKind::Unsupported);
        assert_eq!(kind("cuMemCreate", 802), ErrorKind::Unavailable);
        for code in [46, 802, 999] {
            assert_eq!(
                kind("cuDevicePrimaryCtxRetain", code),
                ErrorKind::Unavailable,
                "{code}: there is no context to lose"
            );
        }
    }

    #[test]
    fn a_code_that_calls_for_an_act_says_which() {
        let advice = [
            (3, "forked"),
            (34, "stub"),
            (46, "another process has the device"),
            (100, "CUDA_VISIBLE_DEVICES"),
            (802, "fabric manager"),
            (803, "reboot"),
            (804, "compatibility"),
            (810, "MPS server ended"),
        ];
        for (code, words) in advice {
            let text = Fault::new("cuInit", code).advice();
            assert!(text.contains(words), "{code}: {text}");
        }
        let prohibited = Fault::new("cuDevicePrimaryCtxRetain", 999).of_prohibited_device();
        assert!(
            prohibited.to_string().ends_with("(999), since the device's compute mode is prohibited"),
            "{prohibited}"
        );
        assert_eq!(prohibited.kind(), ErrorKind::Unavailable);
        assert!(prohibited.advice().contains("nvidia-smi -c DEFAULT"));
    }
}
