//! The bytes of all devices: one file in memory, each piece of physical memory a range of it that is never used again.
//!
//! No part of it is ever mapped, so no CPU comes by a byte but through [`Store::read`] and [`Store::write`]. What is in
//! the file is what the device sees, each bit turned where the byte of fresh memory has a one: holes, which the file
//! reads as zero, so read as that byte and cost nothing.

use crate::codes::{Answer, Code};
use rustix::fs::{FallocateFlags, MemfdFlags};
use std::os::fd::OwnedFd;

const CHUNK: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct Store {
    file: Option<OwnedFd>,
    end: u64,
}

impl Store {
    /// A fresh range: where it begins.
    pub(crate) fn take(&mut self, bytes: u64) -> Answer<u64> {
        let begin = self.end;
        let end = begin.checked_add(bytes).ok_or(Code::OUT_OF_MEMORY)?;
        let file = self.open()?;
        rustix::fs::ftruncate(file, end).map_err(|_| Code::OUT_OF_MEMORY)?;
        self.end = end;
        Ok(begin)
    }

    fn open(&mut self) -> Answer<&OwnedFd> {
        if self.file.is_none() {
            let made = rustix::fs::memfd_create("leasehold-cuda-sim", MemfdFlags::CLOEXEC);
            self.file = Some(made.map_err(|_| Code::OUT_OF_MEMORY)?);
        }
        self.file.as_ref().ok_or(Code::UNKNOWN)
    }

    /// Gives a range's pages back.
    pub(crate) fn give_back(&self, begin: u64, bytes: u64) {
        if let Some(file) = &self.file {
            // Where it fails the pages stay until the process ends; nobody sees them, since no range is used again.
            let _ = rustix::fs::fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, begin, bytes);
        }
    }

    /// Fills `into` from `begin` on.
    pub(crate) fn read(&self, begin: u64, into: &mut [u8], fresh: u8) -> Answer<()> {
        let file = self.file.as_ref().ok_or(Code::UNKNOWN)?;
        let mut at = begin;
        for part in into.chunks_mut(CHUNK) {
            let mut done = 0;
            while done < part.len() {
                let read = rustix::io::pread(file, &mut part[done..], at).map_err(|_| Code::UNKNOWN)?;
                if read == 0 {
                    return Err(Code::UNKNOWN);
                }
                done += read;
                at += u64::try_from(read).unwrap_or(0);
            }
            part.iter_mut().for_each(|byte| *byte ^= fresh);
        }
        Ok(())
    }

    /// Writes `from` at `begin`.
    pub(crate) fn write(&self, begin: u64, from: &[u8], fresh: u8) -> Answer<()> {
        let mut at = begin;
        for part in from.chunks(CHUNK) {
            let turned: Vec<u8> = part.iter().map(|byte| byte ^ fresh).collect();
            at = self.write_turned(at, &turned)?;
        }
        Ok(())
    }

    /// Writes bytes as the file has them, and answers where they end.
    fn write_turned(&self, begin: u64, turned: &[u8]) -> Answer<u64> {
        let file = self.file.as_ref().ok_or(Code::UNKNOWN)?;
        let (mut at, mut rest) = (begin, turned);
        while !rest.is_empty() {
            let written = rustix::io::pwrite(file, rest, at).map_err(|_| Code::UNKNOWN)?;
            rest = &rest[written..];
            at += u64::try_from(written).unwrap_or(0);
        }
        Ok(at)
    }

    /// Writes one byte many times.
    pub(crate) fn fill(&self, begin: u64, bytes: u64, byte: u8, fresh: u8) -> Answer<()> {
        let chunk = vec![byte ^ fresh; CHUNK.min(usize::try_from(bytes).unwrap_or(CHUNK))];
        let mut at = begin;
        let end = begin + bytes;
        while at < end {
            let part = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
            at = self.write_turned(at, &chunk[..part])?;
        }
        Ok(())
    }
}
