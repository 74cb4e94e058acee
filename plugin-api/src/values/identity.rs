//! Identities. All are minted by the host, none is derived from an address, none is used twice.

use std::fmt;

/// The identity of one domain's books: 128 bits of OS randomness, minted by the host.
///
/// A counter would not do: each shared library has its own copy of every static, so two would mint the same number.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuthorityId([u8; 16]);

impl AuthorityId {
    /// The identity with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for AuthorityId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for AuthorityId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AuthorityId({self})")
    }
}

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident, $noun:literal) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// The identity with this number.
            #[must_use]
            pub const fn new(value: u64) -> Self {
                Self(value)
            }

            /// Its number.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!($noun, " {}"), self.0)
            }
        }
    };
}

numbered!(
    /// One reserved address range. Minted by the host, never used again after its release.
    RegionId,
    "region"
);
numbered!(
    /// One plain allocation. Minted by the host, never used again after its release.
    AllocationId,
    "allocation"
);
numbered!(
    /// One shared prefix. Minted by the host, never used again after its release.
    PrefixId,
    "prefix"
);
numbered!(
    /// On whose behalf memory is held: a request, a session, a tenant. Chosen by the engine; one holder's bytes never
    /// show to another.
    HolderId,
    "holder"
);
