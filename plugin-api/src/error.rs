//! The failure of one call to a backing: a kind that the host acts on, and words for people.

use std::any::Any;
use std::fmt;

/// What kind of failure it is. The host acts on the kind alone, never on the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No physical memory is left. Nothing is left behind: the host may have others give some back, and then makes the
    /// call once more: a commit of the same ranges, an allocation or a prefix under a new id.
    OutOfMemory,
    /// No address space, or no more mappings, are left while memory may be free.
    AddressSpaceExhausted,
    /// The host's governor refused a charge that the backing made.
    BudgetRefused,
    /// The request could never be granted: a size, an alignment or a range that is wrong in itself.
    InvalidRequest,
    /// The id was never given out, or was released.
    UnknownId,
    /// The range holds granules that are committed already.
    AlreadyCommitted,
    /// The range holds granules that are not committed.
    NotCommitted,
    /// The object belongs to another pool, device or authority.
    Foreign,
    /// The object is sealed, or not sealed yet.
    WrongState,
    /// The backing has no such operation.
    Unsupported,
    /// The driver or device that the backing needs isn't here, or lets this process do nothing yet. Creation reports this, and
    /// the first use of a device that creation has left alone: then nothing changed.
    Unavailable,
    /// The device is gone; nothing on it can be used again.
    DeviceLost,
    /// The code behind the call panicked: the backing's own, or the host's in a service. The host takes the backing out
    /// of service.
    Panicked,
    /// Anything else, an unknown kind from a newer library included.
    Internal,
    /// The call answered a status or an outcome that its reader doesn't know: nobody can tell what it did. The host
    /// takes the backing out of service.
    Unintelligible,
    /// The call failed half-way and could not be undone: nobody can tell what it left of the objects that it was about.
    /// The backing knows, and serves on.
    BrokenOff,
}

impl ErrorKind {
    /// Every kind with its number in an [`ErrorRecord`](crate::abi::ErrorRecord).
    const NUMBERS: [(ErrorKind, u32); 16] = [
        (ErrorKind::OutOfMemory, 1),
        (ErrorKind::AddressSpaceExhausted, 2),
        (ErrorKind::BudgetRefused, 3),
        (ErrorKind::InvalidRequest, 4),
        (ErrorKind::UnknownId, 5),
        (ErrorKind::AlreadyCommitted, 6),
        (ErrorKind::NotCommitted, 7),
        (ErrorKind::Foreign, 8),
        (ErrorKind::WrongState, 9),
        (ErrorKind::Unsupported, 10),
        (ErrorKind::Unavailable, 11),
        (ErrorKind::DeviceLost, 12),
        (ErrorKind::Panicked, 13),
        (ErrorKind::Internal, 14),
        (ErrorKind::Unintelligible, 15),
        (ErrorKind::BrokenOff, 16),
    ];

    /// Whether nobody can tell what the call left behind. Any other failure left everything as it was.
    #[must_use]
    pub const fn leaves_doubt(self) -> bool {
        self.ends_service() || matches!(self, ErrorKind::BrokenOff)
    }

    /// Whether nothing new can be asked of the backing any more: the host takes it out of service.
    #[must_use]
    pub const fn ends_service(self) -> bool {
        matches!(self, ErrorKind::Panicked | ErrorKind::DeviceLost | ErrorKind::Unintelligible)
    }

    /// Its number in an [`ErrorRecord`](crate::abi::ErrorRecord).
    #[must_use]
    pub fn number(self) -> u32 {
        Self::NUMBERS.iter().find(|(kind, _)| *kind == self).map_or(0, |(_, number)| *number)
    }

    /// The kind of that number; a number that is not known counts as [`ErrorKind::Internal`].
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self::NUMBERS.iter().find(|(_, known)| *known == number).map_or(ErrorKind::Internal, |(kind, _)| *kind)
    }
}

/// The failure of one call to a backing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackingError(Box<Detail>);

/// Behind a pointer, so that an answer that succeeds moves no room for a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Detail {
    kind: ErrorKind,
    native_code: Option<i64>,
    requested_bytes: u64,
    available_bytes: u64,
    message: String,
}

impl BackingError {
    /// A failure of that kind. The message says what failed, why (seen, wanted) and what to do, in lower case; it
    /// names foreign codes with name and number. Across a library boundary its first 440 bytes arrive.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Box::new(Detail { kind, native_code: None, requested_bytes: 0, available_bytes: 0, message }))
    }

    /// The request could never be granted.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidRequest, message)
    }

    /// No such operation.
    #[must_use]
    pub fn unsupported(operation: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Unsupported, format!("{operation} is not supported by this backing"))
    }

    /// The id was never given out, or was released.
    #[must_use]
    pub fn unknown_id(id: impl fmt::Display) -> Self {
        Self::new(ErrorKind::UnknownId, format!("{id} is not live here: it was never made, or was released"))
    }

    /// The failure that a caught panic of `whose` code is, with its words. The payload is leaked: dropping it might
    /// panic again.
    #[must_use]
    pub fn from_panic(whose: impl fmt::Display, payload: Box<dyn Any + Send>) -> Self {
        let words = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a payload that is no text".to_owned());
        std::mem::forget(payload);
        Self::new(ErrorKind::Panicked, format!("{whose} panicked: {words}"))
    }

    /// No physical memory is left for `requested_bytes`.
    #[must_use]
    pub fn out_of_memory(requested_bytes: u64) -> Self {
        Self::new(ErrorKind::OutOfMemory, format!("no memory is left for {requested_bytes} bytes"))
            .with_requested(requested_bytes)
    }

    /// The same failure, with the code of the system or driver call that failed.
    #[must_use]
    pub fn with_native_code(mut self, code: i64) -> Self {
        self.0.native_code = Some(code);
        self
    }

    /// The same failure, with the bytes that were asked for.
    #[must_use]
    pub fn with_requested(mut self, bytes: u64) -> Self {
        self.0.requested_bytes = bytes;
        self
    }

    /// The same failure, with the bytes that were to be had.
    #[must_use]
    pub fn with_available(mut self, bytes: u64) -> Self {
        self.0.available_bytes = bytes;
        self
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The code of the system or driver call that failed.
    #[must_use]
    pub fn native_code(&self) -> Option<i64> {
        self.0.native_code
    }

    /// The bytes that were asked for, or 0.
    #[must_use]
    pub fn requested_bytes(&self) -> u64 {
        self.0.requested_bytes
    }

    /// The bytes that were to be had, or 0.
    #[must_use]
    pub fn available_bytes(&self) -> u64 {
        self.0.available_bytes
    }

    /// The words.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for BackingError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.message)
    }
}

impl std::error::Error for BackingError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_survives_its_number_and_an_unknown_number_is_internal() {
        for (kind, number) in ErrorKind::NUMBERS {
            assert_eq!(ErrorKind::from_number(number), kind);
            assert_eq!(kind.number(), number);
        }
        assert_eq!(ErrorKind::from_number(16), ErrorKind::BrokenOff);
        assert_eq!(ErrorKind::from_number(0), ErrorKind::Internal);
        assert_eq!(ErrorKind::from_number(4_000_000), ErrorKind::Internal);
    }

    #[test]
    fn what_broke_off_leaves_doubt_and_ends_no_service() {
        let of = |rule: fn(ErrorKind) -> bool| {
            let kinds = ErrorKind::NUMBERS.into_iter().map(|(kind, _)| kind);
            kinds.filter(|kind| rule(*kind)).collect::<Vec<_>>()
        };
        let ending = [ErrorKind::DeviceLost, ErrorKind::Panicked, ErrorKind::Unintelligible];
        assert_eq!(of(ErrorKind::ends_service), ending);
        assert_eq!(of(ErrorKind::leaves_doubt), [&ending[..], &[ErrorKind::BrokenOff]].concat());
    }

    #[test]
    fn a_panic_is_told_with_its_words_and_its_payload_is_never_dropped() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        let words = |payload| BackingError::from_panic("the plugin", payload).message().to_owned();
        assert_eq!(words(Box::new("a word")), "the plugin panicked: a word");
        assert_eq!(words(Box::new("a word".to_owned())), "the plugin panicked: a word");
        assert_eq!(words(Box::new(Bomb)), "the plugin panicked: a payload that is no text");
    }
}
