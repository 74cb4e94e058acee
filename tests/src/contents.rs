//! The bytes of buffers and prefixes, wherever their memory is: slices where the CPU can touch it, else copies.

use leasehold::{Buffer, BufferSet, Error, ErrorKind, Prefix, SharedPrefix};
use std::borrow::Cow;
use std::ops::Range;

/// What has planes whose bytes can be seen. A single buffer is plane 0.
pub trait Contents {
    /// The bytes of a plane.
    fn seen(&self, plane: usize) -> Cow<'_, [u8]>;
}

/// What has planes that can be written.
pub trait ContentsMut: Contents {
    /// Sets `bytes` bytes of a plane from `from` on, which are private, to one value.
    fn paint_part(&mut self, plane: usize, from: u64, bytes: u64, mark: u8);

    /// Sets all bytes of a plane from `from` on, which are private, to one value.
    fn paint(&mut self, plane: usize, from: u64, mark: u8);
}

/// The slice, or as many bytes copied.
fn slice_or_copy<'a>(
    slice: Result<&'a [u8], Error>,
    bytes: u64,
    copy: impl FnOnce(&mut [u8]) -> Result<(), Error>,
) -> Cow<'a, [u8]> {
    match slice {
        Ok(slice) => Cow::Borrowed(slice),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            let mut copied = vec![0xee; usize::try_from(bytes).expect("fits")];
            copy(&mut copied).unwrap_or_else(|error| panic!("{error}"));
            Cow::Owned(copied)
        }
    }
}

impl Contents for BufferSet {
    fn seen(&self, plane: usize) -> Cow<'_, [u8]> {
        slice_or_copy(self.plane(plane), self.len(), |into| self.read(plane, 0, into))
    }
}

impl Contents for Buffer {
    fn seen(&self, _plane: usize) -> Cow<'_, [u8]> {
        slice_or_copy(self.as_slice(), self.len(), |into| self.read(0, into))
    }
}

impl Contents for Prefix {
    fn seen(&self, plane: usize) -> Cow<'_, [u8]> {
        slice_or_copy(self.plane(plane), self.plane_bytes(), |into| self.read(plane, 0, into))
    }
}

impl Contents for SharedPrefix {
    fn seen(&self, plane: usize) -> Cow<'_, [u8]> {
        slice_or_copy(self.plane(plane), self.plane_bytes(), |into| self.read(plane, 0, into))
    }
}

impl ContentsMut for BufferSet {
    fn paint_part(&mut self, plane: usize, from: u64, bytes: u64, mark: u8) {
        let begin = from - self.shared();
        match self.private_mut(plane) {
            Ok(private) => private[range(begin, bytes)].fill(mark),
            Err(_) => self.fill(plane, from, bytes, mark).unwrap_or_else(|error| panic!("{error}")),
        }
    }

    fn paint(&mut self, plane: usize, from: u64, mark: u8) {
        self.paint_part(plane, from, self.len() - from, mark);
    }
}

impl ContentsMut for Buffer {
    fn paint_part(&mut self, _plane: usize, from: u64, bytes: u64, mark: u8) {
        let begin = from - self.shared();
        match self.private_mut() {
            Ok(private) => private[range(begin, bytes)].fill(mark),
            Err(_) => self.fill(from, bytes, mark).unwrap_or_else(|error| panic!("{error}")),
        }
    }

    fn paint(&mut self, plane: usize, from: u64, mark: u8) {
        self.paint_part(plane, from, self.len() - from, mark);
    }
}

impl ContentsMut for Prefix {
    fn paint_part(&mut self, plane: usize, from: u64, bytes: u64, mark: u8) {
        match self.plane_mut(plane) {
            Ok(slice) => slice[range(from, bytes)].fill(mark),
            Err(_) => {
                let bytes = vec![mark; usize::try_from(bytes).expect("fits")];
                self.write(plane, from, &bytes).unwrap_or_else(|error| panic!("{error}"));
            }
        }
    }

    fn paint(&mut self, plane: usize, from: u64, mark: u8) {
        self.paint_part(plane, from, self.plane_bytes() - from, mark);
    }
}

fn range(begin: u64, bytes: u64) -> Range<usize> {
    let begin = usize::try_from(begin).expect("fits");
    begin..begin + usize::try_from(bytes).expect("fits")
}
