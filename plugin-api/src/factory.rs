//! How a backing is made, and how one library tells the host which backings it has.

use crate::{Backing, BackingError, CpuAccess, HostAccess, HostServices, Options};
use serde::de::DeserializeOwned;

/// How a backing is made from its options.
pub trait BackingFactory: Backing + Sized + 'static {
    /// The backing's name, unique within its library: lower-case words joined by hyphens.
    const NAME: &'static str;

    /// What it is, in a few words.
    const SUMMARY: &'static str;

    /// Whether the CPU can touch its memory. Without a claim the host makes no slices of it.
    const HOST_ACCESS: HostAccess<Self> = HostAccess::none();

    /// Its options: the table `[backing.options]` of the registry file. A key that the type doesn't name is refused
    /// before [`create`](BackingFactory::create) is called; `#[serde(deny_unknown_fields)]` makes that refusal list the
    /// keys there are.
    type Options: DeserializeOwned;

    /// Makes one. `host` may be kept for as long as the backing lives.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when the driver or the device that it needs isn't here, saying
    /// which and what to install; [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when an option's value is
    /// wrong.
    fn create(options: Self::Options, host: HostServices) -> Result<Self, BackingError>;
}

type Create = fn(&Options, HostServices) -> Result<Box<dyn Backing>, BackingError>;

/// One backing of one library, as [`export_backing!`](crate::export_backing) leaves it for [`inventory`].
#[derive(Clone, Copy, Debug)]
pub struct BackingRegistration {
    name: &'static str,
    summary: &'static str,
    package: &'static str,
    version: &'static str,
    access: CpuAccess,
    create: Create,
}

inventory::collect!(BackingRegistration);

impl BackingRegistration {
    /// The registration of one backing, from one package.
    #[must_use]
    pub const fn of<B: BackingFactory>(package: &'static str, version: &'static str) -> Self {
        let (name, summary, access) = (B::NAME, B::SUMMARY, B::HOST_ACCESS.access());
        Self { name, summary, package, version, access, create: create_boxed::<B> }
    }

    /// Every backing that is linked into this very library or program, by name.
    #[must_use]
    pub fn linked_in() -> Vec<&'static BackingRegistration> {
        let mut found: Vec<_> = inventory::iter::<BackingRegistration>().collect();
        found.sort_by_key(|registration| registration.name);
        found
    }

    /// The backing's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it is, in a few words.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        self.summary
    }

    /// The package that it comes from.
    #[must_use]
    pub fn package(&self) -> &'static str {
        self.package
    }

    /// That package's version.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// Whether the CPU can touch its memory, as its type claims.
    #[must_use]
    pub fn access(&self) -> CpuAccess {
        self.access
    }

    /// Makes a backing.
    ///
    /// # Errors
    ///
    /// What [`Options::read`] and [`BackingFactory::create`] answer.
    pub fn create(&self, options: &Options, host: HostServices) -> Result<Box<dyn Backing>, BackingError> {
        (self.create)(options, host)
    }
}

fn create_boxed<B: BackingFactory>(options: &Options, host: HostServices) -> Result<Box<dyn Backing>, BackingError> {
    let options = options.read::<B::Options>()?;
    Ok(Box::new(B::create(options, host)?))
}

/// Offers a backing to the host: from this library when it is loaded, or linked in as `library = "builtin"`.
#[macro_export]
macro_rules! export_backing {
    ($backing:ty) => {
        $crate::inventory::submit! {
            $crate::BackingRegistration::of::<$backing>(
                ::core::env!("CARGO_PKG_NAME"),
                ::core::env!("CARGO_PKG_VERSION"),
            )
        }
    };
}
