//! The driver's calls, one function each: plain values in, a [`Fault`] out where the driver refuses.
//!
//! The functions are found once by name and called through pointers whose answer is a `u32`, the size of `CUresult`: a code
//! that cudarc's enumeration doesn't list would be undefined there. Structs are cudarc's. Nothing here keeps anything, and
//! nothing chooses a context: who owns what, and in which context a call is made, is the business of the types above.
//! Every function may be called from any thread. None panics.
#![expect(unsafe_code, reason = "the functions of the CUDA driver, by pointers that were looked up")]

use crate::error::Fault;
use leasehold_plugin_api::Address;
use libloading::Library;
use std::ffi::{c_int, c_uchar, c_uint, c_ulonglong, c_void};
use std::ptr::NonNull;

/// The driver's structs.
pub(crate) mod raw {
    pub(crate) use cudarc::driver::sys::{
        CUmemAccess_flags_enum, CUmemAccessDesc, CUmemAllocationHandleType_enum, CUmemAllocationProp,
        CUmemAllocationProp_st__bindgen_ty_1, CUmemAllocationType_enum, CUmemLocation, CUmemLocationType_enum,
    };
}

/// `CUcontext` and `CUevent`: pointers that only the driver follows.
pub(crate) type Opaque = *mut c_void;

/// `CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED`.
pub(crate) const VIRTUAL_MEMORY_SUPPORTED: c_int = 102;

/// Declares the table of functions: field, name as documented, symbol, parameters.
macro_rules! calls {
    ($($field:ident: $call:literal, $symbol:ident, ($($parameter:ty),*);)*) => {
        /// The driver's functions that this library calls.
        ///
        /// Invariant 1: each pointer is the function of that symbol, with the parameters that the CUDA Driver API documents
        /// and cudarc's bindings declare. [`Calls::find`] demands it of the library.
        ///
        /// Invariant 2: the library stays loaded for as long as the table is used. [`Calls::find`] demands it.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Calls {
            $($field: unsafe extern "C" fn($($parameter),*) -> c_uint,)*
        }

        impl Calls {
            /// Looks every function up.
            ///
            /// # Errors
            ///
            /// The first symbol that the library lacks.
            ///
            /// # Safety
            ///
            /// What the library has under these names are the CUDA driver's functions, and it stays loaded for as long as
            /// the table is used.
            pub(crate) unsafe fn find(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $($field: {
                        let symbol = concat!(stringify!($symbol), "\0").as_bytes();
                        // SAFETY: the function of that name has these parameters (1); a `CUresult` is a 32-bit number.
                        let found = unsafe { library.get::<unsafe extern "C" fn($($parameter),*) -> c_uint>(symbol) };
                        *found.map_err(|_| stringify!($symbol))?
                    },)*
                })
            }
        }

        /// What a function is called in the documentation.
        mod named {
            $(#[expect(non_upper_case_globals, reason = "as the fields of `Calls`")] pub(super) const $field: &str = $call;)*
        }

        /// The sizes of each function's parameters, here and in cudarc's bindings.
        #[cfg(test)]
        fn sizes() -> Vec<(&'static str, Vec<usize>, Vec<usize>)> {
            use tests::{Sizes, inferred};
            vec![$({
                let bound: unsafe fn($(inferred!($parameter)),*) -> _ = cudarc::driver::sys::$symbol;
                let ours = <unsafe fn($($parameter),*) -> c_uint as Sizes>::of_type();
                (stringify!($symbol), ours, bound.of_value())
            },)*]
        }
    };
}

calls! {
    init: "cuInit", cuInit, (c_uint);
    version: "cuDriverGetVersion", cuDriverGetVersion, (*mut c_int);
    count: "cuDeviceGetCount", cuDeviceGetCount, (*mut c_int);
    device: "cuDeviceGet", cuDeviceGet, (*mut c_int, c_int);
    name: "cuDeviceGetName", cuDeviceGetName, (*mut u8, c_int, c_int);
    total: "cuDeviceTotalMem", cuDeviceTotalMem_v2, (*mut usize, c_int);
    attribute: "cuDeviceGetAttribute", cuDeviceGetAttribute, (*mut c_int, c_int, c_int);
    can_reach: "cuDeviceCanAccessPeer", cuDeviceCanAccessPeer, (*mut c_int, c_int, c_int);
    retain_context: "cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain, (*mut Opaque, c_int);
    release_context: "cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease_v2, (c_int);
    current: "cuCtxGetCurrent", cuCtxGetCurrent, (*mut Opaque);
    set_current: "cuCtxSetCurrent", cuCtxSetCurrent, (Opaque);
    synchronise: "cuCtxSynchronize", cuCtxSynchronize, ();
    info: "cuMemGetInfo", cuMemGetInfo_v2, (*mut usize, *mut usize);
    granularity: "cuMemGetAllocationGranularity", cuMemGetAllocationGranularity,
        (*mut usize, *const raw::CUmemAllocationProp, c_uint);
    reserve: "cuMemAddressReserve", cuMemAddressReserve, (*mut c_ulonglong, usize, usize, c_ulonglong, c_ulonglong);
    free_addresses: "cuMemAddressFree", cuMemAddressFree, (c_ulonglong, usize);
    create: "cuMemCreate", cuMemCreate, (*mut c_ulonglong, usize, *const raw::CUmemAllocationProp, c_ulonglong);
    release: "cuMemRelease", cuMemRelease, (c_ulonglong);
    map: "cuMemMap", cuMemMap, (c_ulonglong, usize, usize, c_ulonglong, c_ulonglong);
    unmap: "cuMemUnmap", cuMemUnmap, (c_ulonglong, usize);
    set_access: "cuMemSetAccess", cuMemSetAccess, (c_ulonglong, usize, *const raw::CUmemAccessDesc, usize);
    access: "cuMemGetAccess", cuMemGetAccess, (*mut c_ulonglong, *const raw::CUmemLocation, c_ulonglong);
    allocate: "cuMemAlloc", cuMemAlloc_v2, (*mut c_ulonglong, usize);
    free: "cuMemFree", cuMemFree_v2, (c_ulonglong);
    copy_in: "cuMemcpyHtoD", cuMemcpyHtoD_v2, (c_ulonglong, *const u8, usize);
    copy_out: "cuMemcpyDtoH", cuMemcpyDtoH_v2, (*mut u8, c_ulonglong, usize);
    copy: "cuMemcpyDtoD", cuMemcpyDtoD_v2, (c_ulonglong, c_ulonglong, usize);
    fill: "cuMemsetD8", cuMemsetD8_v2, (c_ulonglong, c_uchar, usize);
    create_event: "cuEventCreate", cuEventCreate, (*mut Opaque, c_uint);
    record_event: "cuEventRecord", cuEventRecord, (Opaque, Opaque);
    await_event: "cuEventSynchronize", cuEventSynchronize, (Opaque);
    destroy_event: "cuEventDestroy", cuEventDestroy_v2, (Opaque);
}

/// A code as the outcome of a call.
fn outcome(call: &'static str, code: c_uint) -> Result<(), Fault> {
    if code == 0 { Ok(()) } else { Err(Fault::new(call, code)) }
}

/// A size that this machine can't name is more than there is.
fn length(call: &'static str, bytes: u64) -> Result<usize, Fault> {
    usize::try_from(bytes).map_err(|_| Fault::new(call, crate::error::code::OUT_OF_MEMORY))
}

fn wide(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// What can be called with any values: out-parameters are locals of these functions, and the driver checks the rest.
impl Calls {
    /// Whether both are of one library: it has one `cuInit`.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.init, other.init)
    }

    pub(crate) fn init(&self) -> Result<(), Fault> {
        // SAFETY: the function (1, 2), with the only flags that there are.
        outcome(named::init, unsafe { (self.init)(0) })
    }

    /// 1000 × major + 10 × minor.
    pub(crate) fn version(&self) -> Result<c_int, Fault> {
        let mut version = 0;
        // SAFETY: the function (1, 2), with an out-parameter that lives.
        outcome(named::version, unsafe { (self.version)(&raw mut version) })?;
        Ok(version)
    }

    pub(crate) fn device_count(&self) -> Result<u32, Fault> {
        let mut count = 0;
        // SAFETY: the function (1, 2), with an out-parameter that lives.
        outcome(named::count, unsafe { (self.count)(&raw mut count) })?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// The `CUdevice` of an ordinal.
    pub(crate) fn device(&self, ordinal: u32) -> Result<c_int, Fault> {
        let mut device = 0;
        let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        // SAFETY: the function (1, 2), with an out-parameter that lives; it checks the ordinal.
        outcome(named::device, unsafe { (self.device)(&raw mut device, ordinal) })?;
        Ok(device)
    }

    pub(crate) fn device_name(&self, device: c_int) -> Result<String, Fault> {
        let mut name = [0; 256];
        let room = c_int::try_from(name.len()).unwrap_or(0);
        // SAFETY: the function (1, 2), with a buffer that lives and its length; it checks the device.
        outcome(named::name, unsafe { (self.name)(name.as_mut_ptr(), room, device) })?;
        let text = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    pub(crate) fn total_bytes(&self, device: c_int) -> Result<u64, Fault> {
        let mut bytes = 0;
        // SAFETY: the function (1, 2), with an out-parameter that lives; it checks the device.
        outcome(named::total, unsafe { (self.total)(&raw mut bytes, device) })?;
        Ok(wide(bytes))
    }

    pub(crate) fn attribute(&self, attribute: c_int, device: c_int) -> Result<c_int, Fault> {
        let mut value = 0;
        // SAFETY: the function (1, 2), with an out-parameter that lives; it checks attribute and device.
        outcome(named::attribute, unsafe { (self.attribute)(&raw mut value, attribute, device) })?;
        Ok(value)
    }

    pub(crate) fn can_reach(&self, device: c_int, peer: c_int) -> Result<bool, Fault> {
        let mut can = 0;
        // SAFETY: the function (1, 2), with an out-parameter that lives; it checks the devices.
        outcome(named::can_reach, unsafe { (self.can_reach)(&raw mut can, device, peer) })?;
        Ok(can != 0)
    }

    pub(crate) fn retain_context(&self, device: c_int) -> Result<NonNull<c_void>, Fault> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the function (1, 2), with an out-parameter that lives; it checks the device.
        outcome(named::retain_context, unsafe { (self.retain_context)(&raw mut context, device) })?;
        NonNull::new(context).ok_or(Fault::new(named::retain_context, crate::error::code::INVALID_CONTEXT))
    }

    /// What is current on this thread; null for none.
    pub(crate) fn current(&self) -> Result<Opaque, Fault> {
        let mut context = std::ptr::null_mut();
        // SAFETY: the function (1, 2), with an out-parameter that lives.
        outcome(named::current, unsafe { (self.current)(&raw mut context) })?;
        Ok(context)
    }

    /// Waits for all work in the current context.
    pub(crate) fn synchronise(&self) -> Result<(), Fault> {
        // SAFETY: the function (1, 2), without parameters.
        outcome(named::synchronise, unsafe { (self.synchronise)() })
    }

    /// Bytes that are free, and all.
    pub(crate) fn info(&self) -> Result<(u64, u64), Fault> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the function (1, 2), with out-parameters that live.
        outcome(named::info, unsafe { (self.info)(&raw mut free, &raw mut total) })?;
        Ok((wide(free), wide(total)))
    }

    /// `option` is 0 for the minimum, 1 for what is recommended.
    pub(crate) fn granularity(&self, prop: &raw::CUmemAllocationProp, option: c_uint) -> Result<u64, Fault> {
        let mut bytes = 0;
        // SAFETY: the function (1, 2), with an out-parameter and properties that live.
        outcome(named::granularity, unsafe { (self.granularity)(&raw mut bytes, &raw const *prop, option) })?;
        Ok(wide(bytes))
    }

    pub(crate) fn reserve(&self, bytes: u64, align: u64) -> Result<Address, Fault> {
        let mut address = 0;
        let (bytes, align) = (length(named::reserve, bytes)?, length(named::reserve, align)?);
        // SAFETY: the function (1, 2), with an out-parameter that lives, no hint and no flags.
        outcome(named::reserve, unsafe { (self.reserve)(&raw mut address, bytes, align, 0, 0) })?;
        Ok(Address::new(address))
    }

    pub(crate) fn create(&self, bytes: u64, prop: &raw::CUmemAllocationProp) -> Result<u64, Fault> {
        let mut handle = 0;
        let bytes = length(named::create, bytes)?;
        // SAFETY: the function (1, 2), with an out-parameter and properties that live, and no flags.
        outcome(named::create, unsafe { (self.create)(&raw mut handle, bytes, &raw const *prop, 0) })?;
        Ok(handle)
    }

    /// The flags of what the device at `location` may do at an address.
    pub(crate) fn access(&self, location: &raw::CUmemLocation, address: Address) -> Result<u64, Fault> {
        let mut flags = 0;
        // SAFETY: the function (1, 2), with an out-parameter and a location that live; it looks the address up.
        outcome(named::access, unsafe { (self.access)(&raw mut flags, &raw const *location, address.get()) })?;
        Ok(flags)
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<Address, Fault> {
        let mut address = 0;
        let bytes = length(named::allocate, bytes)?;
        // SAFETY: the function (1, 2), with an out-parameter that lives.
        outcome(named::allocate, unsafe { (self.allocate)(&raw mut address, bytes) })?;
        Ok(Address::new(address))
    }

    pub(crate) fn create_event(&self, flags: c_uint) -> Result<Opaque, Fault> {
        let mut event = std::ptr::null_mut();
        // SAFETY: the function (1, 2), with an out-parameter that lives; it checks the flags.
        outcome(named::create_event, unsafe { (self.create_event)(&raw mut event, flags) })?;
        Ok(event)
    }
}

/// What needs values that are alive or owned.
impl Calls {
    /// # Safety
    ///
    /// The caller has retained this device's context once more than it has released it.
    pub(crate) unsafe fn release_context(&self, device: c_int) -> Result<(), Fault> {
        // SAFETY: the function (1, 2); the retain is the caller's to end.
        outcome(named::release_context, unsafe { (self.release_context)(device) })
    }

    /// # Safety
    ///
    /// The context is null, or one that the driver handed out.
    pub(crate) unsafe fn set_current(&self, context: Opaque) -> Result<(), Fault> {
        // SAFETY: the function (1, 2); the context is the driver's own.
        outcome(named::set_current, unsafe { (self.set_current)(context) })
    }

    /// # Safety
    ///
    /// The caller owns the reservation of exactly this address and size, and nothing uses its addresses any more.
    pub(crate) unsafe fn free_addresses(&self, base: Address, bytes: u64) -> Result<(), Fault> {
        let bytes = length(named::free_addresses, bytes)?;
        // SAFETY: the function (1, 2); the reservation is the caller's to end.
        outcome(named::free_addresses, unsafe { (self.free_addresses)(base.get(), bytes) })
    }

    /// # Safety
    ///
    /// The handle is live, and the caller has a reference to end.
    pub(crate) unsafe fn release(&self, handle: u64) -> Result<(), Fault> {
        // SAFETY: the function (1, 2); the reference is the caller's to end.
        outcome(named::release, unsafe { (self.release)(handle) })
    }

    /// # Safety
    ///
    /// The caller owns the reservation around the range, and the handle is live.
    pub(crate) unsafe fn map(&self, base: Address, bytes: u64, handle: u64) -> Result<(), Fault> {
        let bytes = length(named::map, bytes)?;
        // SAFETY: the function (1, 2), with the only offset and flags that there are; range and handle are the caller's.
        outcome(named::map, unsafe { (self.map)(base.get(), bytes, 0, handle, 0) })
    }

    /// # Safety
    ///
    /// The caller owns the reservation around the range.
    pub(crate) unsafe fn unmap(&self, base: Address, bytes: u64) -> Result<(), Fault> {
        let bytes = length(named::unmap, bytes)?;
        // SAFETY: the function (1, 2); the range is the caller's.
        outcome(named::unmap, unsafe { (self.unmap)(base.get(), bytes) })
    }

    /// # Safety
    ///
    /// The caller owns the reservation around the range.
    pub(crate) unsafe fn set_access(
        &self,
        base: Address,
        bytes: u64,
        descriptions: &[raw::CUmemAccessDesc],
    ) -> Result<(), Fault> {
        let bytes = length(named::set_access, bytes)?;
        let (first, count) = (descriptions.as_ptr(), descriptions.len());
        // SAFETY: the function (1, 2), with a slice that lives; the range is the caller's.
        outcome(named::set_access, unsafe { (self.set_access)(base.get(), bytes, first, count) })
    }

    /// # Safety
    ///
    /// The caller owns the allocation, and nothing uses it any more.
    pub(crate) unsafe fn free(&self, base: Address) -> Result<(), Fault> {
        // SAFETY: the function (1, 2); the allocation is the caller's to end.
        outcome(named::free, unsafe { (self.free)(base.get()) })
    }

    /// # Safety
    ///
    /// As many bytes as `from` has, from `to` on, are the device's, and the caller's.
    pub(crate) unsafe fn copy_in(&self, to: Address, from: &[u8]) -> Result<(), Fault> {
        // SAFETY: the function (1, 2), with a slice that lives; the target is the caller's.
        outcome(named::copy_in, unsafe { (self.copy_in)(to.get(), from.as_ptr(), from.len()) })
    }

    /// # Safety
    ///
    /// As many bytes as `to` has, from `from` on, are the device's, and the caller's.
    pub(crate) unsafe fn copy_out(&self, to: &mut [u8], from: Address) -> Result<(), Fault> {
        // SAFETY: the function (1, 2), which has written when it returns, with a slice that lives and is nobody else's; the
        // source is the caller's.
        outcome(named::copy_out, unsafe { (self.copy_out)(to.as_mut_ptr(), from.get(), to.len()) })
    }

    /// # Safety
    ///
    /// Both ranges are devices', and the caller's.
    pub(crate) unsafe fn copy(&self, to: Address, from: Address, bytes: u64) -> Result<(), Fault> {
        let bytes = length(named::copy, bytes)?;
        // SAFETY: the function (1, 2); both ranges are the caller's.
        outcome(named::copy, unsafe { (self.copy)(to.get(), from.get(), bytes) })
    }

    /// # Safety
    ///
    /// The range is the device's, and the caller's.
    pub(crate) unsafe fn fill(&self, to: Address, bytes: u64, byte: u8) -> Result<(), Fault> {
        let bytes = length(named::fill, bytes)?;
        // SAFETY: the function (1, 2); the range is the caller's.
        outcome(named::fill, unsafe { (self.fill)(to.get(), byte, bytes) })
    }

    /// Records it on the default stream.
    ///
    /// # Safety
    ///
    /// The event is live, and of the context that is current.
    pub(crate) unsafe fn record_event(&self, event: Opaque) -> Result<(), Fault> {
        // SAFETY: the function (1, 2), with the default stream; the event is the caller's.
        outcome(named::record_event, unsafe { (self.record_event)(event, std::ptr::null_mut()) })
    }

    /// # Safety
    ///
    /// The event is live.
    pub(crate) unsafe fn await_event(&self, event: Opaque) -> Result<(), Fault> {
        // SAFETY: the function (1, 2); the event is the caller's.
        outcome(named::await_event, unsafe { (self.await_event)(event) })
    }

    /// # Safety
    ///
    /// The event is live, and the caller's to end.
    pub(crate) unsafe fn destroy_event(&self, event: Opaque) -> Result<(), Fault> {
        // SAFETY: the function (1, 2); the event is the caller's to end.
        outcome(named::destroy_event, unsafe { (self.destroy_event)(event) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A parameter's type, as the compiler finds it.
    macro_rules! inferred {
        ($parameter:ty) => {
            _
        };
    }
    pub(super) use inferred;

    /// The sizes of a function's parameters, and of what it answers.
    pub(super) trait Sizes: Sized {
        fn of_type() -> Vec<usize>;

        fn of_value(self) -> Vec<usize> {
            Self::of_type()
        }
    }

    macro_rules! sizes {
        ($($parameter:ident)*) => {
            impl<$($parameter,)* Answer> Sizes for unsafe fn($($parameter),*) -> Answer {
                fn of_type() -> Vec<usize> {
                    vec![$(size_of::<$parameter>(),)* size_of::<Answer>()]
                }
            }
        };
    }
    sizes!();
    sizes!(A);
    sizes!(A B);
    sizes!(A B C);
    sizes!(A B C D);
    sizes!(A B C D E);

    #[test]
    fn each_function_has_the_parameters_that_the_bindings_declare() {
        let all = sizes();
        assert_eq!(all.len(), 33);
        for (symbol, ours, bound) in all {
            assert_eq!(ours, bound, "{symbol}");
        }
    }
}
