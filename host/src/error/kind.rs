//! What kind of failure it is: what users act on.

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The registry file or a selection can't be read or is wrong. The text names line and column.
    Registry,
    /// A backing that the registry file calls required is not ready.
    RequiredBacking,
    /// No backing that is ready fits the requirements, or none has that name.
    NoBackingFits,
    /// No books are kept of that domain.
    UnknownDomain,
    /// The backing keeps other books than this governor's, or belongs to another host.
    AuthorityMismatch,
    /// The backing hasn't got the capability that is needed.
    Unsupported,
    /// A size, alignment or range that could never be granted.
    InvalidRequest,
    /// The prefix belongs to another backing.
    ForeignPrefix,
    /// What was asked for does not fit the state of things: a sealed prefix is not written to, one that is not sealed is
    /// not mapped, and it is mapped only where nothing private is in the way.
    WrongState,
    /// The growth would pass the reservation.
    CapacityExceeded,
    /// The budget of the domain is used up. Making room and trying again may help.
    TierExhausted,
    /// The system or device has no memory left, and who was asked to give some gave too little. Making room and trying again
    /// may help.
    OutOfMemory,
    /// The system or device has no address space, or no more mappings, left.
    AddressSpaceExhausted,
    /// The backing is out of service: it broke the contract, panicked, lost its device, or 16 of its releases in a row
    /// failed; or this process was forked from the one that made the host.
    OutOfService,
    /// Some memory could not be given back yet. It stays charged; see [`Host::reap`](crate::Host::reap).
    NotReleased,
    /// Any other failure that the backing reported.
    Backing,
    /// The operating system failed the host itself.
    System,
}
