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

impl HolderId {
    /// Nobody in particular. Two requests of nobody are not of the same holder: neither sees what the other left.
    pub const NOBODY: Self = Self::new(0);

    /// Whether memory that `former` left may show to this holder.
    #[must_use]
    pub fn may_see(self, former: Self) -> bool {
        self == former && self != Self::NOBODY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_sees_what_it_left_itself_and_nobody_sees_nothing() {
        let (one, other) = (HolderId::new(1), HolderId::new(2));
        assert!(one.may_see(one) && !one.may_see(other));
        assert!(!one.may_see(HolderId::NOBODY) && !HolderId::NOBODY.may_see(HolderId::NOBODY));
    }
}
