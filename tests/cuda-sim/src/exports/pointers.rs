//! Pointers of a caller: null is refused, the rest is taken at its word for the length of one call.
#![expect(unsafe_code, reason = "reads and writes through pointers that C hands over")]

use crate::codes::{Answer, Code};
use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Where one value is to be written.
#[derive(Debug)]
pub(super) struct Out<'call, T> {
    /// Invariant 1: valid for writing one `T` for `'call`, and nobody else writes or reads it meanwhile. [`Out::new`]
    /// demands it.
    target: NonNull<T>,
    call: PhantomData<&'call mut T>,
}

impl<T> Out<'_, T> {
    /// # Safety
    ///
    /// `target` is null, or valid and aligned for writing a `T` for the lifetime that the caller picks, and nobody else
    /// touches it meanwhile.
    pub(super) unsafe fn new(target: *mut T) -> Answer<Self> {
        let target = NonNull::new(target).ok_or(Code::INVALID_VALUE)?;
        Ok(Self { target, call: PhantomData })
    }

    pub(super) fn set(self, value: T) {
        // SAFETY: valid and nobody else's (1).
        unsafe { self.target.write(value) };
    }
}

/// One value that is read, and written again.
#[derive(Debug)]
pub(super) struct InOut<'call, T>(Out<'call, T>);

impl<T: Copy> InOut<'_, T> {
    /// # Safety
    ///
    /// As [`Out::new`], and a value is there.
    pub(super) unsafe fn new(target: *mut T) -> Answer<Self> {
        // SAFETY: the caller says so.
        unsafe { Out::new(target) }.map(Self)
    }

    pub(super) fn change(self, act: impl FnOnce(T) -> Answer<T>) -> Answer<()> {
        // SAFETY: valid and nobody else's (1 of `Out`), and a value is there.
        let before = unsafe { self.0.target.read() };
        self.0.set(act(before)?);
        Ok(())
    }
}

/// # Safety
///
/// `source` is null, or valid and aligned for reading a `T`.
pub(super) unsafe fn read<T: Copy>(source: *const T) -> Answer<T> {
    let source = NonNull::new(source.cast_mut()).ok_or(Code::INVALID_VALUE)?;
    // SAFETY: not null, so valid: the caller says so.
    Ok(unsafe { source.read() })
}

/// # Safety
///
/// `source` is null, or valid for reading `length` values for as long as the caller picks, and nobody writes them
/// meanwhile.
pub(super) unsafe fn slice<'call, T>(source: *const T, length: usize) -> Answer<&'call [T]> {
    let source = checked(source.cast_mut(), length)?;
    // SAFETY: not null and of a size that an object may have, so valid: the caller says so.
    Ok(unsafe { std::slice::from_raw_parts(source.as_ptr(), length) })
}

/// # Safety
///
/// `target` is null, or valid for `length` initialised values for as long as the caller picks, and nobody else touches
/// them meanwhile.
pub(super) unsafe fn slice_mut<'call, T>(target: *mut T, length: usize) -> Answer<&'call mut [T]> {
    let target = checked(target, length)?;
    // SAFETY: not null and of a size that an object may have, so valid: the caller says so.
    Ok(unsafe { std::slice::from_raw_parts_mut(target.as_ptr(), length) })
}

/// A pointer to that many values; where there are none, any pointer will do.
fn checked<T>(pointer: *mut T, length: usize) -> Answer<NonNull<T>> {
    if length == 0 {
        return Ok(NonNull::dangling());
    }
    let bytes = length.checked_mul(size_of::<T>()).ok_or(Code::INVALID_VALUE)?;
    isize::try_from(bytes).map_err(|_| Code::INVALID_VALUE)?;
    NonNull::new(pointer).ok_or(Code::INVALID_VALUE)
}

/// # Safety
///
/// `text` is null, or points to a C string that stays as it is for as long as the caller picks.
pub(super) unsafe fn text<'call>(text: *const c_char) -> Answer<&'call str> {
    let text = NonNull::new(text.cast_mut()).ok_or(Code::INVALID_VALUE)?;
    // SAFETY: not null, so a C string: the caller says so.
    unsafe { CStr::from_ptr(text.as_ptr()) }.to_str().map_err(|_| Code::INVALID_VALUE)
}
