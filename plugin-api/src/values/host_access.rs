//! Whether the CPU can touch a backing's memory, and the claim of it, which is bound to the type that makes it.
#![expect(unsafe_code, reason = "one claim is the author's to make, and has duties")]

use std::fmt;
use std::marker::PhantomData;

/// Whether the CPU can load and store at the addresses of a backing, and what a fork makes of its memory.
///
/// This is a report and no claim: it gives no slices. See [`HostAccess`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CpuAccess {
    /// Only the device can touch the memory, or nothing was claimed; see [`Transfer`](crate::Transfer).
    #[default]
    None,
    /// The CPU can, in the process that made the backing alone. A forked child has no copy of the bytes.
    Direct,
    /// The CPU can, and a forked child has a private copy of the bytes at the same addresses.
    DirectAndCopiedByFork,
}

impl CpuAccess {
    /// Whether the CPU can touch the memory, in the process that made the backing.
    #[must_use]
    pub const fn is_direct(self) -> bool {
        matches!(self, Self::Direct | Self::DirectAndCopiedByFork)
    }

    /// Whether a forked child has a private copy of the bytes, which its CPU can touch.
    #[must_use]
    pub const fn is_copied_by_fork(self) -> bool {
        matches!(self, Self::DirectAndCopiedByFork)
    }
}

/// The claim that the CPU can touch the memory of backings of the type `B`, or that there is no such claim.
///
/// The host makes slices of what has direct access, so that this is the one claim of the contract whose breach is
/// undefined behaviour; everything else that a backing returns is checked. The claim names the type: a backing that wraps
/// another takes nothing over with its description, and makes a claim of its own, or has no slices.
///
/// ```compile_fail,E0308
/// use leasehold_plugin_api::HostAccess;
/// struct Mine;
/// struct Wrapper(Mine);
/// // SAFETY: nothing is ever handed out.
/// const OF_MINE: HostAccess<Mine> = unsafe { HostAccess::direct() };
/// const OF_THE_WRAPPER: HostAccess<Wrapper> = OF_MINE; // mismatched types
/// ```
pub struct HostAccess<B: ?Sized> {
    access: CpuAccess,
    /// Invariant in `B`, so that no subtype takes the claim over either.
    backing: PhantomData<fn(&mut B) -> &mut B>,
}

impl<B: ?Sized> HostAccess<B> {
    /// No claim: the host makes no slices.
    #[must_use]
    pub const fn none() -> Self {
        Self::of(CpuAccess::None)
    }

    /// Committed bytes, and those of allocations and prefixes, are ordinary memory of this process.
    ///
    /// # Safety
    ///
    /// For every backing of type `B` that safe code can hand to a host, and of every address range that it hands out, from
    /// its commit or allocation to its decommit or release; of a prefix's window from its creation to its release, and of a
    /// part of it from its mapping to its unmapping:
    ///
    /// * it is readable, writable (a prefix: until it is sealed) and initialised memory of this process, whose provenance
    ///   is exposed (or was never Rust's, as with memory that the kernel maps);
    /// * only the host reads or writes it: it has one owner, and the backing itself leaves it alone;
    /// * it is taken away (decommitted, released, unmapped) only through the value of type `B` that was moved into the
    ///   host: there is no second handle by which code can do so. A type that is `Clone` and shares its memory, or that
    ///   wraps an `Arc` which others may hold, can't promise that.
    #[must_use]
    pub const unsafe fn direct() -> Self {
        Self::of(CpuAccess::Direct)
    }

    /// The same as [`direct`](Self::direct); and a child that this process forks has a private copy of the bytes.
    ///
    /// # Safety
    ///
    /// The duties of [`direct`](Self::direct); and what is committed when the process forks is, in the child, memory at
    /// the same addresses with the same bytes, readable and writable as before, which the parent and other processes
    /// neither see nor change: private memory that is neither shared nor kept out of children (`MADV_DONTFORK`).
    #[must_use]
    pub const unsafe fn direct_and_copied_by_fork() -> Self {
        Self::of(CpuAccess::DirectAndCopiedByFork)
    }

    const fn of(access: CpuAccess) -> Self {
        Self { access, backing: PhantomData }
    }

    /// What is claimed.
    #[must_use]
    pub const fn access(self) -> CpuAccess {
        self.access
    }
}

impl<B: ?Sized> Clone for HostAccess<B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: ?Sized> Copy for HostAccess<B> {}

impl<B: ?Sized> fmt::Debug for HostAccess<B> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("HostAccess").field(&self.access).finish()
    }
}
