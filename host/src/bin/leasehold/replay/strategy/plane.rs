//! Where the rows of one plane are written and checked: in a slice where the CPU can touch the memory, else by copies.
//!
//! A plane begins with the row of [`Rows::first`]. Copies go through a buffer of the rows that are written, or of the whole
//! plane that is checked.

use super::super::store::StoreError;
use super::rows::{self, Rows};
use leasehold::{Allocation, BackingHandle, BufferSet, Error, Prefix};
use std::ops::Range;

/// Whether rows are written and checked, and how; or memory is only committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// As slices, which the CPU can touch.
    Slices,
    /// By copies that the backing makes.
    Copies,
    Nothing,
}

/// Some memory to write rows to.
pub(crate) trait PlaneMut {
    fn slice_mut(&mut self) -> Result<&mut [u8], Error>;
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error>;
}

/// Some memory to check rows of.
pub(crate) trait Plane {
    fn slice(&self) -> Result<&[u8], Error>;
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Error>;
}

impl Touch {
    /// How rows of that backing's memory are written and checked.
    pub(crate) fn rows_of(backing: &BackingHandle) -> Self {
        if backing.capabilities().host_access().is_direct() { Self::Slices } else { Self::Copies }
    }

    /// Writes the rows of some tokens.
    pub(crate) fn write(self, mut to: impl PlaneMut, rows: Rows<'_>, tokens: Range<u64>) -> Result<(), StoreError> {
        match self {
            Self::Nothing => Ok(()),
            Self::Slices => rows::write(to.slice_mut()?, rows, tokens),
            Self::Copies if tokens.is_empty() => Ok(()),
            Self::Copies => {
                let part = Rows { first: tokens.start, ..rows };
                let mut bytes = rows.room_for(&tokens)?;
                rows::write(&mut bytes, part, tokens.clone())?;
                let offset = rows.offset(tokens.start)?;
                Ok(to.write(offset, &bytes)?)
            }
        }
    }

    /// Checks the rows of all tokens before `tokens`.
    pub(crate) fn check(self, plane: impl Plane, rows: Rows<'_>, tokens: u64) -> Result<(), StoreError> {
        match self {
            Self::Nothing => Ok(()),
            Self::Slices => rows::check(plane.slice()?, rows, tokens),
            Self::Copies => {
                let mut bytes = rows.room_for(&(rows.first..tokens))?;
                plane.read(0, &mut bytes)?;
                rows::check(&bytes, rows, tokens)
            }
        }
    }
}

/// What of a plane is private: behind the prefixes, or all of it.
impl PlaneMut for (&mut BufferSet, usize) {
    fn slice_mut(&mut self) -> Result<&mut [u8], Error> {
        self.0.private_mut(self.1)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let offset = self.0.shared().saturating_add(offset);
        self.0.write(self.1, offset, bytes)
    }
}

impl Plane for (&BufferSet, usize) {
    fn slice(&self) -> Result<&[u8], Error> {
        self.0.plane(self.1)
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        self.0.read(self.1, offset, into)
    }
}

impl PlaneMut for (&mut Prefix, usize) {
    fn slice_mut(&mut self) -> Result<&mut [u8], Error> {
        self.0.plane_mut(self.1)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        self.0.write(self.1, offset, bytes)
    }
}

impl PlaneMut for &mut Allocation {
    fn slice_mut(&mut self) -> Result<&mut [u8], Error> {
        self.as_mut_slice()
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        Allocation::write(self, offset, bytes)
    }
}

impl Plane for &Allocation {
    fn slice(&self) -> Result<&[u8], Error> {
        self.as_slice()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Error> {
        Allocation::read(self, offset, into)
    }
}
