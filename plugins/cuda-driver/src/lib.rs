//! What Leasehold's CUDA backings share: finding the driver, its calls on memory, and owning types over them.
//!
//! ```text
//! a backing ─► Driver ──► Device ──┬─► Reservation ──► map, unmap, set_access      address space of the device
//!               │            │     ├─► PhysicalHandle                              physical memory
//!            library      primary  ├─► DeviceMemory                                a plain allocation
//!          (finds it)     context  └─► Span  read, write, fill, copy               bytes of any of them
//!               └────────────┴──────────┴─► sys ──► the driver, found at run time
//! ```
//!
//! In: plain values. Out: a [`Fault`] where the driver refuses, which names the call and its code; [`Driver::open`] and
//! [`Driver::device`] answer the host's own errors, of kind `Unavailable` where the driver or a device isn't here.
//!
//! The driver is found at run time, at the path that is named or by its names, and everything builds without it. cudarc's
//! functions panic where the library or a symbol is missing, and return an enumeration that an unknown code makes undefined,
//! and its loader takes a toolkit's stub before the driver; so only its plain structs are used, and each function is called
//! through a pointer that returns a number.
//!
//! **Contexts.** What a device is can be asked without a context. Its primary context is retained once for this library in the
//! process, by the first call that needs it, and released when the last value that needs it is gone. Every call makes it
//! current on the calling thread and puts back what was current before, so other code on that thread never notices; it has
//! the thread disturb no graph that is captured elsewhere (`cuThreadExchangeStreamCaptureMode`). That is four to six calls
//! that read and set variables of the thread, and none within [`Device::bind`], which a backing holds around many. Where
//! other code resets the context, every call fails as device lost; only what gives back is still tried, without a context.
//!
//! **Streams.** Zeroing and copies go to two streams of this library's own, which are not ordered against the default stream
//! nor any other. The driver promises no more than that: `cuMemSetAccess` and `cuMemUnmap` may synchronise (CUDA Driver API,
//! API synchronization behavior), and zeroing is a kernel, which queues behind one that fills the device. So a growth may
//! wait for a step that runs.
//!
//! **Closing.** Each owning type has `close(self)`, which gives the value back with the [`Fault`] where the driver
//! refuses. Drop does its best, and counts what it could not do. Nothing tracks which ranges are mapped:
//! that is the backing's own knowledge, and the order is unmap, release, free the addresses.
//!
//! Everything may be used from any thread; nothing panics. Waiting happens in the functions that say so, in
//! copies and fills, and where the driver frees a plain allocation.

mod cause;
mod code;
mod context;
mod device;
mod device_memory;
mod driver;
mod error;
mod library;
mod physical;
mod primary;
mod process;
mod properties;
mod reservation;
mod span;
mod sys;
mod troubles;

pub use context::Bound;
pub use device::{Device, MemoryInfo};
pub use device_memory::DeviceMemory;
pub use driver::Driver;
pub use error::Fault;
pub use physical::PhysicalHandle;
pub use properties::{Access, Grant, Granularity, Properties};
pub use reservation::Reservation;
pub use span::Span;
pub use troubles::{Troubles, troubles};
