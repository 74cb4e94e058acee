//! The account of a failure, and what a status says.

use super::text::{copy_text, read_text};
use super::{STATUS_FAILED, STATUS_OK, STATUS_PANICKED};
use crate::{BackingError, ErrorKind};
use abi_stable::StableAbi;

/// Bytes of message that an [`ErrorRecord`] holds.
pub const MESSAGE_BYTES: usize = 440;

/// The account of a failure. As the error record of a call it is the caller's, who clears it, and is written on failure
/// only; in an [`OutcomeRecord`](super::OutcomeRecord) it is a part of the answer.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct ErrorRecord {
    kind: u32,
    has_native_code: u32,
    native_code: i64,
    requested_bytes: u64,
    available_bytes: u64,
    message_len: usize,
    message: [u8; MESSAGE_BYTES],
}

impl ErrorRecord {
    /// A record with nothing in it.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            kind: 0,
            has_native_code: 0,
            native_code: 0,
            requested_bytes: 0,
            available_bytes: 0,
            message_len: 0,
            message: [0; MESSAGE_BYTES],
        }
    }

    /// Empties the record for another call. The bytes of the message stay, out of reach.
    #[inline]
    pub fn clear(&mut self) {
        self.kind = 0;
        self.has_native_code = 0;
        self.requested_bytes = 0;
        self.available_bytes = 0;
        self.message_len = 0;
    }

    /// Writes an error. A message that doesn't fit is cut at a character.
    pub fn write(&mut self, error: &BackingError) {
        self.kind = error.kind().number();
        self.has_native_code = u32::from(error.native_code().is_some());
        self.native_code = error.native_code().unwrap_or(0);
        self.requested_bytes = error.requested_bytes();
        self.available_bytes = error.available_bytes();
        self.message_len = copy_text(error.message(), &mut self.message);
    }

    /// Reads the error. Bytes that are not UTF-8 are replaced; a length past the end is taken for the end.
    #[must_use]
    pub fn read(&self) -> BackingError {
        let message = read_text(&self.message, self.message_len);
        let message = if message.is_empty() { "no reason was given".to_owned() } else { message };
        let error = BackingError::new(ErrorKind::from_number(self.kind), message)
            .with_requested(self.requested_bytes)
            .with_available(self.available_bytes);
        if self.has_native_code == 0 { error } else { error.with_native_code(self.native_code) }
    }

    /// What an answer's status says, where this is its error record.
    ///
    /// # Errors
    ///
    /// What is in the record, for [`STATUS_FAILED`]; the same as a panic for [`STATUS_PANICKED`]; for a status that is
    /// not known [`Unintelligible`](ErrorKind::Unintelligible).
    #[inline]
    pub fn answer(&self, status: u32) -> Result<(), BackingError> {
        if status == STATUS_OK { Ok(()) } else { Err(self.failure(status)) }
    }

    #[cold]
    fn failure(&self, status: u32) -> BackingError {
        match status {
            STATUS_FAILED => self.read(),
            STATUS_PANICKED => BackingError::new(ErrorKind::Panicked, self.read().message()),
            status => BackingError::new(ErrorKind::Unintelligible, format!("its status {status} is not known")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let mut record = ErrorRecord::empty();
        record.write(&BackingError::invalid("é".repeat(MESSAGE_BYTES)));
        let read = record.read();
        assert_eq!(read.message().len(), MESSAGE_BYTES);
        assert!(read.message().chars().all(|character| character == 'é'));
    }

    #[test]
    fn a_message_length_past_the_end_is_taken_for_the_end() {
        let mut record = ErrorRecord::empty();
        record.write(&BackingError::invalid("short"));
        record.message_len = usize::MAX;
        assert!(record.read().message().starts_with("short"));
    }

    #[test]
    fn an_error_survives_its_record() {
        let error = BackingError::out_of_memory(4096).with_available(12).with_native_code(-12);
        let mut record = ErrorRecord::empty();
        record.write(&error);
        assert_eq!(record.read(), error);
    }

    #[test]
    fn a_status_that_is_not_known_leaves_doubt_whatever_the_record_says() {
        let mut record = ErrorRecord::empty();
        record.write(&BackingError::invalid("short"));
        assert_eq!(record.answer(STATUS_OK), Ok(()));
        assert_eq!(record.answer(STATUS_FAILED), Err(BackingError::invalid("short")));
        assert_eq!(record.answer(STATUS_PANICKED), Err(BackingError::new(ErrorKind::Panicked, "short")));
        let error = record.answer(3).expect_err("is not known");
        assert_eq!((error.kind(), error.message()), (ErrorKind::Unintelligible, "its status 3 is not known"));
    }
}
