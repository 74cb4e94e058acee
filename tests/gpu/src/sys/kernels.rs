//! The driver's functions that load and launch a kernel, and the kernel: it stores one byte.
#![expect(unsafe_code, reason = "looks functions of the driver up and calls them")]

use super::{Opaque, check, functions};
use crate::table::Trouble;
use std::ffi::{CStr, c_char, c_uint, c_void};
use std::ptr;

/// In words that every driver since CUDA 9 compiles for the device that it finds: Parallel Thread Execution ISA, 6.0.
const STORE: &CStr = c"
.version 6.0
.target sm_70
.address_size 64

.visible .entry store(.param .u64 address, .param .u32 byte)
{
    .reg .u64 %at;
    .reg .u32 %value;
    ld.param.u64 %at, [address];
    ld.param.u32 %value, [byte];
    cvta.to.global.u64 %at, %at;
    st.global.u8 [%at], %value;
    ret;
}
";

functions! {
    /// The functions that load and launch kernels.
    Kernels;
    load: "cuModuleLoadData", (*mut Opaque, *const c_void);
    kernel: "cuModuleGetFunction", (*mut Opaque, Opaque, *const c_char);
    launch: "cuLaunchKernel", (Opaque, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Opaque, *mut *mut c_void,
        *mut *mut c_void);
}

/// Any thread may call.
impl Kernels {
    /// Loads the kernel into the current context, where it stays for as long as that lives.
    pub(crate) fn load_store(&self) -> Result<Opaque, Trouble> {
        let (mut module, mut kernel) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the function (1, 2), with an out-parameter that lives and a program that ends with a zero.
        check("cuModuleLoadData", unsafe { (self.load)(&raw mut module, STORE.as_ptr().cast()) })?;
        // SAFETY: the function (1, 2), with an out-parameter that lives, a module that was just loaded, and a C string.
        check("cuModuleGetFunction", unsafe { (self.kernel)(&raw mut kernel, module, c"store".as_ptr()) })?;
        Ok(kernel)
    }

    /// Puts a store of one byte on a stream, by one thread.
    ///
    /// # Safety
    ///
    /// The kernel is of [`Kernels::load_store`], and the stream is live, both of one context. The address is none that
    /// the CPU can touch, and what device memory is there is the caller's.
    pub(crate) unsafe fn store(&self, kernel: Opaque, address: u64, byte: u8, stream: Opaque) -> Result<(), Trouble> {
        let (mut address, mut byte) = (address, u32::from(byte));
        let mut parameters = [(&raw mut address).cast::<c_void>(), (&raw mut byte).cast()];
        let (parameters, none) = (parameters.as_mut_ptr(), ptr::null_mut());
        // SAFETY: the function (1, 2), with as many parameters as the kernel has, each of its type, which the driver copies
        // before it returns; the caller promises the rest.
        let code = unsafe { (self.launch)(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, none) };
        check("cuLaunchKernel", code)
    }
}
