//! What all strategies of one run share: the host, the backing, and the sizes that a cache has.

use super::super::store::StoreError;
use super::plane::Touch;
use super::rows::Rows;
use bytesize::ByteSize;
use leasehold::{BackingHandle, CacheGeometry, DomainSnapshot, Error, ErrorKind, Governor, Host};

/// What all strategies of one run share.
#[derive(Clone, Debug)]
pub(crate) struct Setting<'run> {
    pub(crate) host: &'run Host,
    pub(crate) governor: Governor,
    pub(crate) backing: BackingHandle,
    pub(crate) planes: usize,
    /// Bytes of one token in one plane.
    pub(crate) row_bytes: u64,
    /// The most tokens of one request.
    pub(crate) context: u64,
    pub(crate) touch: Touch,
    /// What earlier runs that failed left charged to the domain: no part of this run.
    left_bytes: u64,
}

impl<'run> Setting<'run> {
    pub(crate) fn new(
        host: &'run Host,
        backing: BackingHandle,
        cache: CacheGeometry,
        context: u64,
        touch: Touch,
    ) -> Result<Self, String> {
        let row_bytes = cache.plane_row_bytes();
        let left_bytes = host.snapshot().domain(backing.domain()).map_or(0, |books| books.used_bytes);
        let too_large =
            || format!("{context} tokens of {row_bytes} bytes are more than there are addresses; lower --max-context");
        row_bytes.checked_mul(context).ok_or_else(too_large)?;
        let planes = usize::try_from(cache.planes()).map_err(|_| too_large())?;
        Ok(Self { host, governor: host.governor(), backing, planes, row_bytes, context, touch, left_bytes })
    }

    /// Bytes of one plane that hold so many tokens, at most the context.
    pub(crate) fn plane_bytes(&self, tokens: u64) -> u64 {
        self.row_bytes.saturating_mul(tokens)
    }

    /// The rows of one plane, whoever's they are.
    pub(crate) fn rows(&self, plane: usize) -> Rows<'static> {
        Rows { row_bytes: self.row_bytes, plane, first: 0, ids: &[] }
    }

    /// Refuses a request that is longer than the context, or whose planes of so many bytes each are more than the
    /// budget.
    pub(crate) fn fits(&self, tokens: u64, plane_bytes: u64) -> Result<(), String> {
        if tokens > self.context {
            let context = self.context;
            return Err(format!("{tokens} tokens are more than the context of {context}; raise --max-context"));
        }
        let unit = self.backing.capabilities().granularity().unwrap_or(1);
        let planes = u64::try_from(self.planes).unwrap_or(u64::MAX);
        let needed = plane_bytes.checked_next_multiple_of(unit).unwrap_or(u64::MAX).saturating_mul(planes);
        let limit = self.books().map_or(0, |books| books.limit_bytes).saturating_sub(self.left_bytes);
        if needed > limit {
            let [needed, limit] = [needed, limit].map(|bytes| ByteSize::b(bytes).display().iec());
            return Err(format!("needs {needed} for {tokens} tokens, the budget is {limit}; raise --budget"));
        }
        Ok(())
    }

    pub(crate) fn owned_bytes(&self) -> u64 {
        self.books().map_or(0, |books| books.used_bytes).saturating_sub(self.left_bytes)
    }

    pub(crate) fn peak_owned_bytes(&self) -> u64 {
        self.books().map_or(0, |books| books.peak_bytes).saturating_sub(self.left_bytes)
    }

    fn books(&self) -> Option<DomainSnapshot> {
        self.governor.snapshot().domain(self.backing.domain()).cloned()
    }
}

impl From<Error> for StoreError {
    /// A refusal that making room may help with is no reason to stop.
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::TierExhausted | ErrorKind::OutOfMemory | ErrorKind::AddressSpaceExhausted => {
                Self::Exhausted(error.to_string())
            }
            _ => Self::Broken(error.to_string()),
        }
    }
}
