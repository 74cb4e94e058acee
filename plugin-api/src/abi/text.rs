//! Texts across the boundary: borrowed, or copied into a field of fixed size.

use abi_stable::StableAbi;

/// Borrowed UTF-8 bytes. Valid for as long as the operation that passes them says.
#[repr(C)]
#[derive(Clone, Copy, Debug, StableAbi)]
pub struct Text {
    /// First byte; may be anything when `len` is 0.
    pub data: *const u8,
    /// Number of bytes.
    pub len: usize,
}

impl Text {
    /// Borrows a text.
    #[must_use]
    pub fn borrow(text: &str) -> Self {
        Self { data: text.as_ptr(), len: text.len() }
    }
}

/// Copies a text into a field, cut at a character where it doesn't fit. Answers the bytes that were copied.
pub(super) fn copy_text(text: &str, into: &mut [u8]) -> usize {
    let mut len = text.len().min(into.len());
    while !text.is_char_boundary(len) {
        len = len.saturating_sub(1);
    }
    let (Some(target), Some(source)) = (into.get_mut(..len), text.as_bytes().get(..len)) else { return 0 };
    target.copy_from_slice(source);
    len
}

/// Reads a text from a field. Bytes that are not UTF-8 are replaced; a length past the end is taken for the end.
pub(super) fn read_text(bytes: &[u8], len: usize) -> String {
    let bytes = bytes.get(..len).unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}
