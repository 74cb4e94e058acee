//! Calls that can be made with any values: out-parameters are locals of these functions, and the driver checks the
//! rest.
//!
//! In every function invariants 1 and 2 are those of [`Calls`].
#![expect(unsafe_code, reason = "calls the driver's functions")]

use super::table::{Calls, named};
use super::{MAPPED, Opaque, length, outcome, raw, wide};
use crate::code;
use crate::error::Fault;
use crate::process;
use leasehold_plugin_api::Address;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::NonNull;

impl Calls {
    /// Whether both are of one library: it has one `cuInit`.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.init, other.init)
    }

    /// Where its code is, to find the library by.
    #[expect(clippy::as_conversions, reason = "the only way from a function pointer to its address")]
    pub(crate) fn address(&self) -> usize {
        self.init as usize
    }

    pub(crate) fn init(&self) -> Result<(), Fault> {
        // SAFETY: the function (1, 2), with the only flags that there are.
        outcome(named::init, unsafe { (self.init)(0) })?;
        process::note_initialised();
        Ok(())
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
        NonNull::new(context).ok_or(Fault::new(named::retain_context, code::INVALID_CONTEXT))
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

    /// Whether an address is in a range that is mapped to memory.
    pub(crate) fn is_mapped(&self, address: Address) -> Result<bool, Fault> {
        // How many bytes a boolean has is not documented: no more than these.
        let mut value = 0_u64;
        let data = (&raw mut value).cast();
        // SAFETY: the function (1, 2), with room for the attribute that lives; it looks the address up.
        outcome(named::pointer_attribute, unsafe { (self.pointer_attribute)(data, MAPPED, address.get()) })?;
        Ok(value != 0)
    }

    pub(crate) fn allocate(&self, bytes: u64) -> Result<Address, Fault> {
        let mut address = 0;
        let bytes = length(named::allocate, bytes)?;
        // SAFETY: the function (1, 2), with an out-parameter that lives.
        outcome(named::allocate, unsafe { (self.allocate)(&raw mut address, bytes) })?;
        Ok(Address::new(address))
    }

    pub(crate) fn create_stream(&self, flags: c_uint) -> Result<NonNull<c_void>, Fault> {
        let mut stream = std::ptr::null_mut();
        // SAFETY: the function (1, 2), with an out-parameter that lives; it checks the flags.
        outcome(named::create_stream, unsafe { (self.create_stream)(&raw mut stream, flags) })?;
        NonNull::new(stream).ok_or(Fault::invalid_value(named::create_stream))
    }

    /// Says how this thread minds graphs that others capture, and answers how it did before.
    pub(crate) fn exchange_capture_mode(&self, mut mode: c_uint) -> Result<c_uint, Fault> {
        // SAFETY: the function (1, 2), with a parameter that lives; it checks the value.
        outcome(named::exchange_capture_mode, unsafe { (self.exchange_capture_mode)(&raw mut mode) })?;
        Ok(mode)
    }
}
