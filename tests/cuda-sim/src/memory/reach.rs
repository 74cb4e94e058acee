//! Which bytes of the store a range of addresses shows, and whether a device may touch them: CUDA Driver API,
//! `cuMemcpyHtoD` and its kin, `cuMemsetD8`.

use super::Memory;
use crate::abi::{ACCESS_NONE, ACCESS_READ, ACCESS_READ_WRITE};
use crate::codes::{Answer, Code};

/// What somebody wants to do with a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Read,
    Write,
}

impl Wish {
    fn is_granted_by(self, access: u32) -> bool {
        access == ACCESS_READ_WRITE || (access == ACCESS_READ && self == Wish::Read)
    }
}

/// A part of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) begin: u64,
    pub(crate) bytes: u64,
}

impl Memory {
    /// The pieces that a range shows, in order; `CUDA_ERROR_INVALID_VALUE` where it is not mapped, or not for that
    /// device and wish. The context lives.
    pub(crate) fn pieces(&self, device: i32, base: u64, bytes: u64, wish: Wish) -> Answer<Vec<Piece>> {
        let end = base.checked_add(bytes).ok_or(Code::INVALID_VALUE)?;
        let mut pieces = Vec::new();
        let mut at = base;
        while at < end {
            let piece = self.piece_at(device, at, wish)?;
            let bytes = piece.bytes.min(end - at);
            pieces.push(Piece { begin: piece.begin, bytes });
            at += bytes;
        }
        Ok(pieces)
    }

    /// The pieces that a copy or a fill touches. One that touches what its device may not is refused; but the documentation
    /// promises no refusal, so it is a mistake of the caller's books: a violation too.
    fn reach(&mut self, device: i32, base: u64, bytes: u64, wish: Wish) -> Answer<Vec<Piece>> {
        let pieces = self.pieces(device, base, bytes, wish);
        if pieces == Err(Code::INVALID_VALUE) {
            let what = if wish == Wish::Read { "read" } else { "write" };
            self.violation(format!("a copy or fill: device {device} may not {what} {bytes} bytes at {base:#x}"));
        }
        pieces
    }

    /// From an address to the end of its mapping or allocation.
    fn piece_at(&self, device: i32, address: u64, wish: Wish) -> Answer<Piece> {
        if let Some((base, mapping)) = self.mappings.range(..=address).next_back()
            && address - base < mapping.bytes
        {
            let access = mapping.access.get(&device).copied().unwrap_or(ACCESS_NONE);
            let physical = self.physical.get(&mapping.handle).ok_or(Code::UNKNOWN)?;
            let offset = address - base;
            let piece = Piece { begin: physical.begin + offset, bytes: mapping.bytes - offset };
            let wish = if self.lets_write { Wish::Read } else { wish };
            return if wish.is_granted_by(access) { Ok(piece) } else { Err(Code::INVALID_VALUE) };
        }
        // Under unified addressing every device copies to and from a plain allocation.
        let (base, allocation) = self.allocations.range(..=address).next_back().ok_or(Code::INVALID_VALUE)?;
        let offset = address - base;
        let left = allocation.requested.checked_sub(offset).filter(|left| *left > 0).ok_or(Code::INVALID_VALUE)?;
        Ok(Piece { begin: allocation.begin + offset, bytes: left })
    }

    /// What a range shows.
    pub(crate) fn read(&mut self, device: i32, base: u64, mut into: &mut [u8], fresh: u8) -> Answer<()> {
        for piece in self.reach(device, base, length(into), Wish::Read)? {
            let (part, rest) = into.split_at_mut(usize::try_from(piece.bytes).map_err(|_| Code::UNKNOWN)?);
            self.store.read(piece.begin, part, fresh)?;
            into = rest;
        }
        Ok(())
    }

    /// Writes into a range.
    pub(crate) fn write(&mut self, device: i32, base: u64, mut from: &[u8], fresh: u8) -> Answer<()> {
        for piece in self.reach(device, base, length(from), Wish::Write)? {
            let (part, rest) = from.split_at(usize::try_from(piece.bytes).map_err(|_| Code::UNKNOWN)?);
            self.store.write(piece.begin, part, fresh)?;
            from = rest;
        }
        Ok(())
    }

    /// Writes one byte all over a range.
    pub(crate) fn fill(&mut self, device: i32, base: u64, bytes: u64, byte: u8, fresh: u8) -> Answer<()> {
        for piece in self.reach(device, base, bytes, Wish::Write)? {
            self.store.fill(piece.begin, piece.bytes, byte, fresh)?;
        }
        Ok(())
    }

    /// Copies from range to range. Ranges that overlap are undefined: `cuMemcpyDtoD`.
    pub(crate) fn copy(&mut self, device: i32, to: u64, from: u64, bytes: u64, fresh: u8) -> Answer<()> {
        let sources = self.reach(device, from, bytes, Wish::Read)?;
        let targets = self.reach(device, to, bytes, Wish::Write)?;
        let overlap = |a: &Piece, b: &Piece| a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes;
        if sources.iter().any(|source| targets.iter().any(|target| overlap(source, target))) {
            self.violation(format!("cuMemcpyDtoD: {bytes} bytes at {from:#x} overlap those at {to:#x}"));
            return Err(Code::INVALID_VALUE);
        }
        let mut bounce = vec![0; usize::try_from(bytes).map_err(|_| Code::INVALID_VALUE)?];
        self.read(device, from, &mut bounce, fresh)?;
        self.write(device, to, &bounce, fresh)
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
