//! The driver's functions on streams, and the fill that can be put on one.
#![expect(unsafe_code, reason = "looks functions of the driver up and calls them")]

use super::{Opaque, check, functions};
use crate::table::Trouble;
use std::ffi::{c_uchar, c_uint, c_ulonglong};
use std::ptr;

/// How a stream relates to the default stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Flavour {
    /// Each of them waits for the other: `CU_STREAM_DEFAULT`.
    Blocking,
    /// Neither waits for the other: `CU_STREAM_NON_BLOCKING`.
    NonBlocking,
}

functions! {
    /// The functions that make streams and fill memory on them.
    Streams;
    create: "cuStreamCreate", (*mut Opaque, c_uint);
    fill: "cuMemsetD8Async", (c_ulonglong, c_uchar, usize, Opaque);
    synchronize: "cuStreamSynchronize", (Opaque);
    destroy: "cuStreamDestroy_v2", (Opaque);
}

/// Where a call succeeds, what it has written is the caller's. Any thread may call.
impl Streams {
    /// Makes a stream in the current context.
    pub(crate) fn create(&self, flavour: Flavour) -> Result<Opaque, Trouble> {
        let flags = match flavour {
            Flavour::Blocking => 0,
            Flavour::NonBlocking => 1,
        };
        let mut stream = ptr::null_mut();
        // SAFETY: the function (1, 2), with an out-parameter that lives. Without a current context it refuses.
        check("cuStreamCreate", unsafe { (self.create)(&raw mut stream, flags) })?;
        Ok(stream)
    }

    /// Puts a fill of device memory on a stream.
    ///
    /// # Safety
    ///
    /// The stream is live. The range is committed device memory that the caller may write, until the fill is over, and
    /// where it is captured, whenever its graph runs.
    pub(crate) unsafe fn fill(&self, base: u64, mark: u8, bytes: usize, stream: Opaque) -> Result<(), Trouble> {
        // SAFETY: the function (1, 2); the caller promises the range and the stream.
        check("cuMemsetD8Async", unsafe { (self.fill)(base, mark, bytes, stream) })
    }

    /// Waits until everything on a stream is over.
    ///
    /// # Safety
    ///
    /// The stream is live.
    pub(crate) unsafe fn wait(&self, stream: Opaque) -> Result<(), Trouble> {
        // SAFETY: the function (1, 2); the caller promises the stream.
        check("cuStreamSynchronize", unsafe { (self.synchronize)(stream) })
    }

    /// Ends a stream.
    ///
    /// # Safety
    ///
    /// It is live and the caller's to end.
    pub(crate) unsafe fn destroy(&self, stream: Opaque) -> Result<(), Trouble> {
        // SAFETY: the function (1, 2); the stream is the caller's to end.
        check("cuStreamDestroy", unsafe { (self.destroy)(stream) })
    }
}
