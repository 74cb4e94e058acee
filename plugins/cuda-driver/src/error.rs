//! A driver call that failed: which one, with which code, in words that name both, and what kind of failure that is.

use leasehold_plugin_api::{BackingError, ErrorKind};
use std::fmt;

/// One failed driver call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The driver's function, as its documentation names it.
    pub call: &'static str,
    /// Its `CUresult`: a number, since a driver may know codes that nobody here does.
    pub code: u32,
}

/// The codes that this library itself answers or tells apart.
pub(crate) mod code {
    pub(crate) const INVALID_VALUE: u32 = 1;
    pub(crate) const OUT_OF_MEMORY: u32 = 2;
    pub(crate) const DEINITIALIZED: u32 = 4;
    pub(crate) const STUB_LIBRARY: u32 = 34;
    pub(crate) const DEVICE_UNAVAILABLE: u32 = 46;
    pub(crate) const NO_DEVICE: u32 = 100;
    pub(crate) const INVALID_CONTEXT: u32 = 201;
    pub(crate) const OPERATING_SYSTEM: u32 = 304;
    pub(crate) const CONTEXT_IS_DESTROYED: u32 = 709;
    pub(crate) const NOT_SUPPORTED: u32 = 801;
    pub(crate) const SYSTEM_DRIVER_MISMATCH: u32 = 803;
    pub(crate) const COMPAT_NOT_SUPPORTED_ON_DEVICE: u32 = 804;
}

/// Codes after which nothing in the process's context works any more, by the driver's own words ("this leaves the
/// process in an inconsistent state and any further CUDA work will return the same error") or by their nature: CUDA
/// Driver API, `CUresult`. Any call answers them for work that was launched earlier, so the call itself may have had
/// its effect.
const STICKY: [u32; 15] = [214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 911, 999];

impl Fault {
    /// The failure of `call` with that code.
    #[must_use]
    pub fn new(call: &'static str, code: u32) -> Self {
        Self { call, code }
    }

    /// The failure of `call` that the driver answers where it has no memory: `CUDA_ERROR_OUT_OF_MEMORY`.
    #[must_use]
    pub fn out_of_memory(call: &'static str) -> Self {
        Self::new(call, code::OUT_OF_MEMORY)
    }

    /// The failure of `call` that the driver answers to values that it refuses: `CUDA_ERROR_INVALID_VALUE`.
    #[must_use]
    pub fn invalid_value(call: &'static str) -> Self {
        Self::new(call, code::INVALID_VALUE)
    }

    /// Whether the driver refused the values of the call: of an address, that nothing is mapped there.
    #[must_use]
    pub fn is_invalid_value(self) -> bool {
        self.code == code::INVALID_VALUE
    }

    /// The name of its code; `CUresult` for one that is not known.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(code, _)| *code == self.code).map_or("CUresult", |(_, name)| *name)
    }

    /// What the host may act on.
    ///
    /// | code | kind |
    /// |---|---|
    /// | 1, 2 and 304 from `cuMemAddressReserve` | [`AddressSpaceExhausted`](ErrorKind::AddressSpaceExhausted) |
    /// | 2 | [`OutOfMemory`](ErrorKind::OutOfMemory) |
    /// | 4, 201, 709: the driver shut down, or the context ended under users | [`DeviceLost`](ErrorKind::DeviceLost) |
    /// | the sticky ones: 700 and its kin, 719, ECC, NVLink, 999 | [`DeviceLost`](ErrorKind::DeviceLost) |
    /// | 801 | [`Unsupported`](ErrorKind::Unsupported) |
    /// | all others, 1 and unknown ones included | [`Internal`](ErrorKind::Internal) |
    ///
    /// 201 (`CUDA_ERROR_INVALID_CONTEXT`) can only mean that: every call is made with a context current that this
    /// library retains. 1 (`CUDA_ERROR_INVALID_VALUE`) is a mistake of the backing, which checks requests before it
    /// calls: never the host's. Of a reservation that was checked only its size or its alignment can be what the driver
    /// has no addresses for, and which of its codes it answers then isn't documented. 701, 703 to 708, 711 to 713 and
    /// 720 refuse one call and leave the context as it was.
    #[must_use]
    pub fn kind(self) -> ErrorKind {
        match self.code {
            code::INVALID_VALUE | code::OUT_OF_MEMORY | code::OPERATING_SYSTEM
                if self.call == "cuMemAddressReserve" =>
            {
                ErrorKind::AddressSpaceExhausted
            }
            code::OUT_OF_MEMORY => ErrorKind::OutOfMemory,
            code::DEINITIALIZED | code::INVALID_CONTEXT | code::CONTEXT_IS_DESTROYED => ErrorKind::DeviceLost,
            code::NOT_SUPPORTED => ErrorKind::Unsupported,
            sticky if STICKY.contains(&sticky) => ErrorKind::DeviceLost,
            _ => ErrorKind::Internal,
        }
    }

    /// What may help against a failure of this [kind](Self::kind), for whoever knows nothing more.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self.kind() {
            ErrorKind::OutOfMemory => "free memory of the device, or lower the budget of its domain",
            ErrorKind::AddressSpaceExhausted => "reserve less, or release regions first",
            ErrorKind::DeviceLost => "nothing of this context works any more: end the process, or make everything anew",
            ErrorKind::Unsupported => "the device or its driver can't do that: use another",
            _ => "try again; where it stays so, see what the driver says of the code",
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
        write!(formatter, "{} failed: {} ({})", self.call, self.name(), self.code)
    }
}

/// `CUresult` of CUDA 13: <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html>.
const NAMES: [(u32, &str); 105] = [
    (1, "CUDA_ERROR_INVALID_VALUE"),
    (2, "CUDA_ERROR_OUT_OF_MEMORY"),
    (3, "CUDA_ERROR_NOT_INITIALIZED"),
    (4, "CUDA_ERROR_DEINITIALIZED"),
    (5, "CUDA_ERROR_PROFILER_DISABLED"),
    (6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED"),
    (7, "CUDA_ERROR_PROFILER_ALREADY_STARTED"),
    (8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED"),
    (34, "CUDA_ERROR_STUB_LIBRARY"),
    (36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"),
    (46, "CUDA_ERROR_DEVICE_UNAVAILABLE"),
    (47, "CUDA_ERROR_MULTICAST_RESOURCE_FULL"),
    (100, "CUDA_ERROR_NO_DEVICE"),
    (101, "CUDA_ERROR_INVALID_DEVICE"),
    (102, "CUDA_ERROR_DEVICE_NOT_LICENSED"),
    (200, "CUDA_ERROR_INVALID_IMAGE"),
    (201, "CUDA_ERROR_INVALID_CONTEXT"),
    (202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT"),
    (205, "CUDA_ERROR_MAP_FAILED"),
    (206, "CUDA_ERROR_UNMAP_FAILED"),
    (207, "CUDA_ERROR_ARRAY_IS_MAPPED"),
    (208, "CUDA_ERROR_ALREADY_MAPPED"),
    (209, "CUDA_ERROR_NO_BINARY_FOR_GPU"),
    (210, "CUDA_ERROR_ALREADY_ACQUIRED"),
    (211, "CUDA_ERROR_NOT_MAPPED"),
    (212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY"),
    (213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER"),
    (214, "CUDA_ERROR_ECC_UNCORRECTABLE"),
    (215, "CUDA_ERROR_UNSUPPORTED_LIMIT"),
    (216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE"),
    (217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"),
    (218, "CUDA_ERROR_INVALID_PTX"),
    (219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"),
    (220, "CUDA_ERROR_NVLINK_UNCORRECTABLE"),
    (221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"),
    (222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
    (223, "CUDA_ERROR_JIT_COMPILATION_DISABLED"),
    (224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY"),
    (225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"),
    (226, "CUDA_ERROR_CONTAINED"),
    (227, "CUDA_ERROR_INSUFFICIENT_LOADER_VERSION"),
    (300, "CUDA_ERROR_INVALID_SOURCE"),
    (301, "CUDA_ERROR_FILE_NOT_FOUND"),
    (302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"),
    (303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"),
    (304, "CUDA_ERROR_OPERATING_SYSTEM"),
    (400, "CUDA_ERROR_INVALID_HANDLE"),
    (401, "CUDA_ERROR_ILLEGAL_STATE"),
    (402, "CUDA_ERROR_LOSSY_QUERY"),
    (500, "CUDA_ERROR_NOT_FOUND"),
    (600, "CUDA_ERROR_NOT_READY"),
    (700, "CUDA_ERROR_ILLEGAL_ADDRESS"),
    (701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
    (702, "CUDA_ERROR_LAUNCH_TIMEOUT"),
    (703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"),
    (704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"),
    (705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"),
    (708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"),
    (709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"),
    (710, "CUDA_ERROR_ASSERT"),
    (711, "CUDA_ERROR_TOO_MANY_PEERS"),
    (712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"),
    (713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"),
    (714, "CUDA_ERROR_HARDWARE_STACK_ERROR"),
    (715, "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
    (716, "CUDA_ERROR_MISALIGNED_ADDRESS"),
    (717, "CUDA_ERROR_INVALID_ADDRESS_SPACE"),
    (718, "CUDA_ERROR_INVALID_PC"),
    (719, "CUDA_ERROR_LAUNCH_FAILED"),
    (720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"),
    (721, "CUDA_ERROR_TENSOR_MEMORY_LEAK"),
    (800, "CUDA_ERROR_NOT_PERMITTED"),
    (801, "CUDA_ERROR_NOT_SUPPORTED"),
    (802, "CUDA_ERROR_SYSTEM_NOT_READY"),
    (803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    (804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"),
    (805, "CUDA_ERROR_MPS_CONNECTION_FAILED"),
    (806, "CUDA_ERROR_MPS_RPC_FAILURE"),
    (807, "CUDA_ERROR_MPS_SERVER_NOT_READY"),
    (808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"),
    (809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"),
    (810, "CUDA_ERROR_MPS_CLIENT_TERMINATED"),
    (811, "CUDA_ERROR_CDP_NOT_SUPPORTED"),
    (812, "CUDA_ERROR_CDP_VERSION_MISMATCH"),
    (900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
    (901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"),
    (902, "CUDA_ERROR_STREAM_CAPTURE_MERGE"),
    (903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"),
    (904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"),
    (905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"),
    (906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"),
    (907, "CUDA_ERROR_CAPTURED_EVENT"),
    (908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"),
    (909, "CUDA_ERROR_TIMEOUT"),
    (910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"),
    (911, "CUDA_ERROR_EXTERNAL_DEVICE"),
    (912, "CUDA_ERROR_INVALID_CLUSTER_SIZE"),
    (913, "CUDA_ERROR_FUNCTION_NOT_LOADED"),
    (914, "CUDA_ERROR_INVALID_RESOURCE_TYPE"),
    (915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"),
    (916, "CUDA_ERROR_KEY_ROTATION"),
    (917, "CUDA_ERROR_STREAM_DETACHED"),
    (918, "CUDA_ERROR_GRAPH_RECAPTURE_FAILURE"),
    (919, "CUDA_ERROR_FABRIC_NOT_READY"),
    (999, "CUDA_ERROR_UNKNOWN"),
];

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
        for code in [4, 201, 709, 700, 702, 710, 714, 715, 716, 717, 718, 719, 999] {
            assert_eq!(kind("cuMemMap", code), ErrorKind::DeviceLost, "{code}");
        }
        for code in [1, 3, 101, 400, 401, 701, 703, 704, 705, 708, 711, 712, 713, 720, 800, 4_000_000_000] {
            assert_eq!(kind("cuMemMap", code), ErrorKind::Internal, "{code}");
        }
        assert_eq!(kind("cuMemSetAccess", 801), ErrorKind::Unsupported);
    }
}
